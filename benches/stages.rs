//! The speed of each stage on a transcript of eight mebibytes that scripts/dev/gen-corpus generates.
//!
//!     scripts/dev/gen-corpus --ids 8 >corpus.jsonl
//!     CLAW_BENCH=corpus.jsonl cargo bench
//!
//! The first run is the baseline; a later run reports by how much each stage became faster or slower.
//! scripts/dev/bench measures whole programs, also in comparison with others.

#![allow(clippy::expect_used, reason = "a benchmark cannot run without its input")]

use clawutils::compact::cut;
use clawutils::estimate::{Estimate, Gauge, Method, Request};
use clawutils::input::Input;
use clawutils::json::Object;
use clawutils::messages;
use clawutils::messages::rebuild::{Form, RebuildOptions, from_inputs};
use clawutils::rules;
use clawutils::truncate;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Returns the transcript in the file `CLAW_BENCH`, or a small generated one to try the benchmarks.
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

fn stages(criterion: &mut Criterion) {
    let bytes = transcript();
    let input = [Input::memory("corpus", bytes.clone())];
    let rebuilt = from_inputs(&input, &RebuildOptions::default()).expect("a transcript");
    let text = String::from_utf8(bytes.clone()).expect("UTF-8");
    let pipe = rebuilt.messages.iter().map(|m| m.to_line() + "\n").collect::<String>();
    let request = Request { messages: &rebuilt.messages, ..Request::default() };
    let tokens = Estimate::of(request, Method::Script).unmeasured;

    let mut group = criterion.benchmark_group("stages");
    group.sample_size(20).throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("scan", |bencher| {
        bencher.iter(|| text.lines().filter(|line| Object::parse(line).is_ok()).count());
    });
    group.bench_function("scan by serde_json", |bencher| {
        bencher.iter(|| text.lines().filter(|line| Object::parse_slowly(line).is_ok()).count());
    });
    group.bench_function("rebuild", |bencher| {
        let form = Form { array: false, meta: false };
        bencher.iter(|| form.stream(&input, &RebuildOptions::default(), &mut std::io::sink()));
    });
    group.bench_function("read messages", |bencher| {
        bencher.iter(|| messages::read("pipe", pipe.as_bytes()).map(|messages| messages.len()));
    });
    group.bench_function("check", |bencher| {
        bencher.iter(|| rules::violations(black_box(&rebuilt.messages)).len());
    });
    group.bench_function("estimate", |bencher| {
        bencher.iter(|| Estimate::of(black_box(request), Method::Script).tokens);
    });
    group.bench_function("truncate", |bencher| {
        let options = truncate::TruncateOptions::new(tokens, truncate::MAX_FRACTION, tokens / 2);
        let gauge = Gauge::new(request, None);
        bencher.iter(|| {
            let mut messages = rebuilt.messages.clone();
            truncate::truncate(&mut messages, Request::default(), gauge, options).after
        });
    });
    group.bench_function("cut", |bencher| {
        bencher.iter(|| cut::legal(black_box(&rebuilt.messages)).len());
    });
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
