//! claw-replay call: turns recorded by claw-turn are replayed, including those with overflows, retries or tools.

use serde_json::json;

use super::super::Reports;
use super::{cases, live};
use crate::common::Sandbox;
use crate::common::provider::{FakeProvider, Step};
use crate::conversations::builds;
use crate::exec::tools;

/// Runs a turn and records its calls in `tape`.
fn turn(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) {
    let turn = sandbox.cmd("claw-turn").envs(provider.env()).env("TMPDIR", sandbox.dir());
    let usual = ["--no-checkpoint", "--record", "tape", "-m", "And now?", "s.jsonl"];
    turn.args(usual).args(args).assert().success();
}

#[test]
fn a_recorded_turn_is_replayed_whatever_steps_it_took() {
    let over = || Step::Overflow;
    for (name, steps, options, replay) in [
        ("a plain turn", vec![], &[][..], &[][..]),
        ("shortened results", vec![over()], &[], &[]),
        ("a summary", vec![over(), over(), Step::text("They built.")], &[], &[]),
        ("a summary ahead of an overflow", vec![], &["--reserve", "97000"], &[]),
        ("retries", vec![Step::busy(), over(), Step::busy(), Step::busy()], &[], &[]),
        ("streaming", vec![over()], &["--stream"], &["--stream"]),
        ("the last turns", vec![], &["--limit-turns", "2"], &["--limit-turns", "2"]),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        builds().append(&sandbox, "s.jsonl");
        steps.into_iter().for_each(|step| provider.script(step));
        let window = ["--window", "100000"];
        turn(&sandbox, &provider, &[options, &window].concat());
        let before = provider.requests().len();
        let args = [&["--turns", "last", "--replay", "tape", "s.jsonl"], replay, &window].concat();
        let report = live(&sandbox, &provider, &args).report();
        assert_eq!(report["status"], "passed", "{name}: {report}");
        assert_eq!(provider.requests().len(), before, "{name}");
    }
}

#[test]
fn the_calls_of_a_turn_with_tools_are_replayed_and_no_tool_runs() {
    let (sandbox, provider) =
        (tools(&[("work", "echo run >>log; echo done")]), FakeProvider::new());
    sandbox.write("box/work.json", r#"{"input_schema":{"type":"object"}}"#);
    for n in [1, 2] {
        let id = |m: usize| format!("t{n}{m}");
        let calls = (0..2).map(|m| (id(m), "work".to_owned(), json!({"n": n, "m": m})));
        provider.script(Step::Calls(calls.collect()));
    }
    provider.script(Step::text("All done."));
    turn(&sandbox, &provider, &["--tools", "box"]);
    let log = sandbox.read("workspace/log");
    let replay = |args: &[&str]| {
        live(&sandbox, &provider, &[&["--replay", "tape", "s.jsonl"], args].concat())
    };
    let report = replay(&["--tools", "box"]).success().report();
    let names: Vec<String> = cases(&report).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["turn 1, call 1", "turn 1, call 2", "turn 1, call 3"]);
    assert_eq!(sandbox.read("workspace/log"), log);
    let message = replay(&[]).code(1).report()["message"].clone();
    let message = message.as_str().expect("a message");
    assert!(message.contains("differs at .tools: recorded "), "{message}");
}
