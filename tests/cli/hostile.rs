//! Checking, rebuilding and shortening a hostile transcript takes time in proportion to its size.

use clawutils::estimate::{Gauge, Request};
use clawutils::input::Input;
use clawutils::lint;
use clawutils::messages::rebuild::{RebuildOptions, from_inputs};
use clawutils::truncate;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write;
use std::hint::black_box;

/// A function that makes a hostile transcript whose size is proportional to its argument.
type Make = fn(usize) -> String;

/// Returns `count` lines, each made from its number.
fn each(count: usize, record: impl Fn(usize) -> String) -> String {
    (0..count).map(|number| record(number) + "\n").collect()
}

fn user(id: impl std::fmt::Display) -> String {
    format!(r#"{{"id":"u{id}","type":"user","content":"q"}}"#)
}

fn call(id: impl std::fmt::Display) -> String {
    format!(r#"{{"type":"tool_use","tool_use_id":"{id}","name":"f","input":{{}}}}"#)
}

fn result(id: impl std::fmt::Display) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"done"}}"#)
}

fn retract(target: impl std::fmt::Display) -> String {
    format!(r#"{{"type":"retract","target":"{target}"}}"#)
}

fn compaction(id: impl std::fmt::Display, first_kept: impl std::fmt::Display) -> String {
    format!(
        r#"{{"id":"k{id}","type":"compaction","summary":"S","first_kept_entry_id":"{first_kept}"}}"#
    )
}

/// Each kind of hostile transcript: its name, the argument for the smaller transcript, and the function.
const KINDS: [(&str, usize, Make); 9] = [
    ("retracts of records", 1500, |count| {
        each(count, user) + &each(count, |number| retract(format!("u{number}")))
    }),
    ("retracts of missing records", 600, |count| {
        each(count, user) + &each(count, |number| retract(format!("x{number}")))
    }),
    ("early results with one id", 500, |count| {
        let turn = [user("0"), call("x"), result("x"), user("1")];
        each(count, |_| result("x")) + &turn.join("\n")
    }),
    ("calls in one reply", 700, |count| each(count, call) + &each(count, result) + &user("")),
    ("results without a call", 500, |count| each(count, result)),
    ("torn lines", 400, |length| each(10, |_| r#"{"a":"#.repeat(length))),
    ("torn lines that begin as records", 200, |length| {
        each(10, |_| r#"{"type":"x","a":"#.repeat(length))
    }),
    ("compactions whose first kept record is missing", 400, |count| {
        each(count, user) + &each(count, |number| compaction(number, format!("x{number}")))
    }),
    ("long ids with a common prefix", 150, |count| {
        each(count, |number| {
            let id = format!("{}{number:06}", "x".repeat(58));
            let answered = [call(&id), result(&id), user(number)].join("\n");
            format!("{answered}\n{answered}")
        })
    }),
];

/// Returns the CPU time, in nanoseconds, to check a transcript, to rebuild it, and to shorten its results.
fn cost(transcript: &str) -> u64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    };
    let input = || Input::memory("t", transcript.as_bytes().to_vec());
    let begun = now();
    black_box(lint::lint(input()).expect("findings"));
    let mut messages =
        from_inputs(&[input()], &RebuildOptions::default()).expect("messages").messages;
    let gauge = Gauge::new(Request { messages: &messages, ..Request::default() }, None);
    let options = truncate::TruncateOptions::new(1000, truncate::MAX_FRACTION, 1);
    black_box(truncate::truncate(&mut messages, Request::default(), gauge, options));
    now() - begun
}

/// A transcript of eight times the size should take about eight times as long; if the cost were quadratic, it
/// would take 64 times as long. Up to five attempts are made, because noise can distort a measurement.
#[test]
fn audit_24_time_grows_linearly_with_the_size_of_a_hostile_transcript() {
    let mut slow = String::new();
    for (name, count, make) in KINDS {
        let (small, large) = (make(count), make(8 * count));
        let mut ratios = (0..5).map(|_| cost(&large) / cost(&small).max(1));
        if ratios.all(|ratio| ratio > 16) {
            writeln!(slow, "{name}").expect("text");
        }
    }
    assert!(slow.is_empty(), "eight times the size took more than 16 times as long:\n{slow}");
}
