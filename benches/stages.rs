//! The speed of each stage on a transcript of eight mebibytes that scripts/dev/gen-corpus generates.
//!
//!     scripts/dev/gen-corpus --ids 8 >corpus.jsonl
//!     CLAW_BENCH=corpus.jsonl cargo bench
//!
//! The row below the times of a benchmark has its throughput, in bytes of the transcript. scripts/dev/bench measures
//! whole programs, and compares them with others.

#![allow(clippy::expect_used, reason = "a benchmark cannot run without its input")]

use clawutils::compact::cut;
use clawutils::estimate::{Estimate, Gauge, Method, Request};
use clawutils::input::Input;
use clawutils::json::Object;
use clawutils::messages::rebuild::{Form, RebuildOptions, from_inputs};
use clawutils::messages::{self, Message};
use clawutils::rules;
use clawutils::truncate;
use divan::Bencher;
use divan::counter::BytesCount;

/// Returns the transcript in the file that `CLAW_BENCH` names, or a small generated one to try the benchmarks.
fn transcript() -> Vec<u8> {
    if let Some(path) = std::env::var_os("CLAW_BENCH") {
        return std::fs::read(path).expect("CLAW_BENCH names a file");
    }
    let result = "2026-01-02T03:04:05Z INFO  build: \\\"step\\\" took 12 ms\\n".repeat(40);
    let turn = |number: usize| {
        [
            r#"{"type":"user","content":"What does the build say?"}"#.to_owned(),
            format!(r#"{{"type":"tool_use","tool_use_id":"c{number}","name":"run","input":{{"command":"make"}}}}"#),
            format!(r#"{{"type":"tool_result","tool_use_id":"c{number}","content":"{result}"}}"#),
            r#"{"type":"assistant","content":[{"type":"text","text":"All is well."}]}"#.to_owned(),
        ]
        .join("\n")
    };
    (0..300).map(turn).collect::<Vec<_>>().join("\n").into_bytes()
}

/// The transcript, as each stage reads it.
struct Corpus {
    text: String,
    inputs: [Input; 1],
    messages: Vec<Message<'static>>,
    /// The messages as lines of JSON.
    pipe: String,
}

impl Corpus {
    fn read() -> Corpus {
        let bytes = transcript();
        let inputs = [Input::memory("corpus", bytes.clone())];
        let messages =
            from_inputs(&inputs, &RebuildOptions::default()).expect("a transcript").messages;
        let pipe = messages.iter().map(|message| message.to_line() + "\n").collect();
        Corpus { text: String::from_utf8(bytes).expect("UTF-8"), inputs, messages, pipe }
    }

    /// Returns the request with all messages.
    fn request(&self) -> Request<'_, '_> {
        Request { messages: &self.messages, ..Request::default() }
    }
}

fn main() {
    divan::main();
}

/// Measures a stage, and reports its throughput in bytes of the transcript.
fn measure<Output>(bencher: Bencher<'_, '_>, stage: impl Fn(&Corpus) -> Output) {
    let corpus = Corpus::read();
    bencher.counter(BytesCount::of_str(&corpus.text)).bench_local(|| stage(&corpus));
}

#[divan::bench]
fn scan(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| {
        corpus.text.lines().filter(|line| Object::parse(line).is_ok()).count()
    });
}

#[divan::bench]
fn scan_by_serde_json(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| {
        corpus.text.lines().filter(|line| Object::parse_slowly(line).is_ok()).count()
    });
}

#[divan::bench]
fn rebuild(bencher: Bencher<'_, '_>) {
    let form = Form { array: false, meta: false };
    measure(bencher, |corpus| {
        form.stream(&corpus.inputs, &RebuildOptions::default(), &mut std::io::sink())
    });
}

#[divan::bench]
fn read_messages(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| {
        messages::read("pipe", corpus.pipe.as_bytes()).map(|messages| messages.len())
    });
}

#[divan::bench]
fn check(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| rules::violations(&corpus.messages).len());
}

#[divan::bench]
fn estimate(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| Estimate::of(corpus.request(), Method::Script).tokens);
}

#[divan::bench]
fn truncate(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| {
        let gauge = Gauge::new(corpus.request(), None);
        let tokens = Estimate::of(corpus.request(), Method::Script).unmeasured;
        let options = truncate::TruncateOptions::new(tokens, truncate::MAX_FRACTION, tokens / 2);
        let mut messages = corpus.messages.clone();
        truncate::truncate(&mut messages, Request::default(), gauge, options).after
    });
}

#[divan::bench]
fn cut(bencher: Bencher<'_, '_>) {
    measure(bencher, |corpus| cut::legal(&corpus.messages).len());
}
