//! estimate: compare the time of the estimate with that of bpe-openai, the fastest tokenizer for o200k.
//!
//! Usage: estimate FILE ROUNDS
//!
//! Estimates the messages in FILE (one per line, as claw-rebuild prints them) for gpt-5, and counts their tokens with the
//! tokenizer. The two take turns. Prints the seconds of each round as `ESTIMATE COUNT`. Reading the messages and loading
//! the vocabulary is not included. scripts/dev/bench builds and runs this program.

use clawutils::estimate::{Estimate, Method, Model, Request};
use clawutils::messages;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, rounds] = &arguments[..] else { panic!("usage: estimate FILE ROUNDS") };
    let bytes = std::fs::read(path).expect("a file that can be read");
    let messages = messages::read(path, &bytes).expect("messages");
    let model = Some(Model::named("gpt-5"));
    let request = Request { messages: &messages, model, ..Request::default() };
    let seconds = |method| {
        let begun = Instant::now();
        assert!(Estimate::of(request, method).unmeasured > 0, "no text");
        begun.elapsed().as_secs_f64()
    };
    seconds(Method::Exact);
    for _ in 0..rounds.parse().expect("a number of rounds") {
        println!("{} {}", seconds(Method::Script), seconds(Method::Exact));
    }
}
