//! claw-replay call: sends the requests of a transcript again, and compares the new replies with the recorded ones.

mod batch;
mod hostile;
mod limits;
mod recorded;
mod update;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use super::{Reports, each};
use crate::common::provider::{FakeProvider, Step};
use crate::common::{AssertExt, Sandbox, reply_to};

/// Runs `claw-replay call --quiet` with the offline provider, unless the arguments name another one.
fn offline(sandbox: &Sandbox, args: &[&str]) -> Assert {
    let command = sandbox.cmd("claw-replay").env("CLAW_PROVIDER", "offline");
    command.args(["call", "--quiet"]).args(args).assert()
}

/// Runs `claw-replay call --quiet` with a provider.
fn live(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> Assert {
    let command = sandbox.cmd("claw-replay").envs(provider.env());
    command.args(["call", "--quiet"]).args(args).assert()
}

/// Appends turns with the offline provider, and records the calls in `tape`.
fn turns(sandbox: &Sandbox, path: &str, prompts: &[&str]) {
    for prompt in prompts {
        let turn = sandbox.cmd("claw-turn").args(["--provider", "offline", "--record", "tape"]);
        turn.args(["-m", prompt, path]).assert().success();
    }
}

/// Appends records to a transcript with claw-append, which adds valid ids.
fn append_records(sandbox: &Sandbox, path: &str, records: &[Value]) {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    sandbox.cmd("claw-append").arg(path).write_stdin(text).assert().success();
}

fn prompt(text: &str) -> Value {
    json!({"type": "user", "content": text})
}

fn answer(text: &str) -> Value {
    json!({"type": "assistant", "content": [{"type": "text", "text": text}]})
}

/// Returns the records of a turn with a tool call and its result.
fn tool_turn(input: Value) -> [Value; 4] {
    [
        prompt("look"),
        json!({"type": "tool_use", "tool_use_id": "c1", "name": "read", "input": input}),
        json!({"type": "tool_result", "tool_use_id": "c1", "content": "found"}),
        answer("done"),
    ]
}

/// Returns the name, the status and the message of each case of a report.
fn cases(report: &Value) -> Vec<(String, String, String)> {
    let cases = report["cases"].as_array().expect("cases");
    let text = |case: &Value, name: &str| case[name].as_str().unwrap_or_default().to_owned();
    let case = |case| (text(case, "name"), text(case, "status"), text(case, "message"));
    cases.iter().map(case).collect()
}

#[test]
fn recorded_turns_pass_and_a_changed_system_prompt_has_no_recording() {
    let sandbox = Sandbox::new();
    turns(&sandbox, "d/a.jsonl", &["one", "two"]);
    turns(&sandbox, "d/b.jsonl", &["one", "three"]);
    let args = ["--replay", "tape", "d"];
    let run = offline(&sandbox, &args).success();
    for jobs in ["1", "3"] {
        let again = offline(&sandbox, &[&args[..], &["--jobs", jobs]].concat());
        assert_eq!(again.stdout_text(), run.stdout_text());
    }
    for report in &run.reports() {
        let same =
            |name: &str| (name.to_owned(), "passed".to_owned(), "the reply is the same".to_owned());
        assert_eq!(cases(report), [same("turn 1"), same("turn 2")]);
    }
    sandbox.write("prompt", "Be brief.");
    sandbox.write("c.json", format!(r#"{{"system":"{}"}}"#, sandbox.path("prompt").display()));
    for run in [
        offline(&sandbox, &["--system", "prompt", "--replay", "tape", "d"]),
        offline(&sandbox, &["--config", "c.json", "--replay", "tape", "d"]),
        sandbox
            .cmd("claw-replay")
            .args(["call", "--quiet", "d"])
            .env("CLAW_PROVIDER", "offline")
            .env("CLAW_REPLAY", "tape")
            .env("CLAW_SYSTEM", "prompt")
            .assert(),
    ] {
        let reports = run.code(1).reports();
        let message = reports[1]["message"].as_str().expect("a message");
        assert!(message.starts_with("turn 1: not-recorded"), "{message}");
        let difference = "differs at .system: recorded nothing, sent \"Be brief.\"";
        assert!(message.contains(difference), "{message}");
    }
}

#[test]
fn sessions_with_the_same_beginning_share_recordings() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    for (name, reply) in [("b", "first"), ("a", "second"), ("c", "third")] {
        provider.script(Step::text(reply));
        let turn = sandbox.cmd("claw-turn").envs(provider.env()).args(["--record", "tape"]);
        turn.args(["-m", "hello", &format!("d/{name}.jsonl")]).assert().success();
    }
    let args = ["--replay", "tape", "--jobs", "2", "d"];
    live(&sandbox, &provider, &args).success();
    assert_eq!(provider.requests().len(), 3, "the replay sent a request");
    // If the reply in the transcript matches none of the recordings, it is compared with the first recording.
    append_records(&sandbox, "e.jsonl", &[prompt("hello"), answer("fourth")]);
    let report = live(&sandbox, &provider, &["--replay", "tape", "e.jsonl"]).code(1).report();
    let detail = report["cases"][0]["detail"].as_str().expect("a detail");
    assert_eq!(detail, "--- recorded\n+++ new\n-fourth\n+first\n");
}

#[test]
fn a_recorded_failure_does_not_hide_the_reply_of_the_next_attempt() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let turn = |args: &[&str]| {
        let turn = sandbox.cmd("claw-turn").envs(provider.env()).args(["--record", "tape"]);
        turn.args(args).arg("s.jsonl").assert()
    };
    provider.script(Step::error(400, "invalid_request_error", "no"));
    turn(&["-m", "hi"]).code(76);
    provider.script(Step::text("yes"));
    turn(&["--again"]).success();
    let replay = |path| live(&sandbox, &provider, &["--replay", "tape", path]);
    replay("s.jsonl").success();
    // The message reports the reply that differs, not the recorded failure.
    append_records(&sandbox, "t.jsonl", &[prompt("hi"), answer("no")]);
    assert_eq!(replay("t.jsonl").code(1).report()["message"], "turn 1: the text differs in line 1");
    // If the request is not ready to send, only one recording is tried.
    let args = ["--replay", "tape", "--limit-turns", "0", "t.jsonl"];
    let message = live(&sandbox, &provider, &args).code(1).report()["message"].clone();
    assert_eq!(
        message,
        "turn 1: not ready to send: no-messages: message 1: there is nothing to send; append a prompt first"
    );
    // A recording that `claw-replay call` made can be replayed.
    provider.script(Step::text("no"));
    live(&sandbox, &provider, &["--record", "more", "t.jsonl"]).success();
    live(&sandbox, &provider, &["--replay", "more", "t.jsonl"]).success();
}

#[test]
fn a_changed_reply_is_found_by_call_but_not_by_check_or_guard() {
    let sandbox = Sandbox::new();
    for n in 0..6 {
        let path = format!("d/{n}.jsonl");
        let first = if n == 3 { "Reply to no message".to_owned() } else { reply_to(1, "why?") };
        let second = reply_to(3, "how?");
        let records = [prompt("why?"), answer(&first), prompt("how?"), answer(&second)];
        append_records(&sandbox, &path, &records);
    }
    sandbox.cmd("claw-replay").args(["check", "--window", "32000", "d"]).assert().success();
    sandbox.cmd("claw-replay").args(["guard", "--window", "32000", "d"]).assert().success();
    let run = offline(&sandbox, &["--jobs", "1", "d"]).code(1);
    let failed: Vec<Value> =
        run.reports().into_iter().filter(|report| report["status"] == "failed").collect();
    assert_eq!(each(&failed, "path"), ["d/3.jsonl"]);
    assert_eq!(failed[0]["message"], "turn 1: the text differs in line 1");
    assert_eq!(failed[0]["cases"][0]["line"], 2);
    for jobs in ["2", "4"] {
        assert_eq!(offline(&sandbox, &["--jobs", jobs, "d"]).stdout_text(), run.stdout_text());
    }
    offline(&sandbox, &["--turns", "last", "d"]).success();
}

#[test]
fn each_request_of_a_turn_contains_the_recorded_results_before_it() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    append_records(&sandbox, "s.jsonl", &tool_turn(json!({"a": 1, "b": 2})));
    let run = |how: &str, input: Value| {
        provider.script(Step::call("other", "read", input));
        provider.script(Step::text("done"));
        live(&sandbox, &provider, &["--compare", how, "s.jsonl"])
    };
    let report = run("calls-and-inputs", json!({"b": 2.0, "a": 1})).success().report();
    let names: Vec<String> = cases(&report).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["turn 1, call 1", "turn 1, call 2"]);
    let requests = provider.requests();
    let last = requests.last().expect("a request").messages();
    assert_eq!((last.len(), &last[2]["content"][0]["content"]), (3, &json!("found")));
    let report = run("calls-and-inputs", json!({"a": 2, "b": 2})).code(1).report();
    assert_eq!(
        report["message"],
        "turn 1, call 1: tool call 1: the input of a call to 'read' differs"
    );
    assert_eq!(
        report["cases"][0]["detail"],
        "--- recorded\n+++ new\n-call read {\"a\":1,\"b\":2}\n+call read {\"a\":2,\"b\":2}\n"
    );
    run("calls", json!({"a": 2})).success();
    provider.all_legal();
}

#[test]
fn a_command_compares_replies() {
    let sandbox = Sandbox::new();
    append_records(&sandbox, "s.jsonl", &[prompt("why?"), answer("Reply to 9 messages: why?")]);
    let run = |command: &str| offline(&sandbox, &["--compare", command, "s.jsonl"]);
    run("tee both | grep -c why | grep -qx 2").success();
    let both = sandbox.read_json("both");
    assert_eq!((&both[0]["reply"], &both[1]["reply"]), (&json!("recorded"), &json!("new")));
    assert_eq!((&both[1]["transcript"], &both[1]["case"]), (&json!("s.jsonl"), &json!("turn 1")));
    assert_eq!(both[0]["text"], "Reply to 9 messages: why?");
    assert_eq!(both[1]["text"], "Reply to 1 message: why?");
    let report = run("echo not polite; exit 1").code(1).report();
    assert_eq!(report["cases"][0]["detail"], "not polite\n");
    let report = run("exit 4").code(1).report();
    assert_eq!(
        report["message"],
        "turn 1: cannot compare the replies: 'exit 4' ended with status 4"
    );
    for command in ["/no/such-command", "exactly"] {
        let text = format!("cannot run '{command}', the command of --compare; give exact, calls, ");
        run(command).code(78).stdout("").stderr(contains(text));
    }
}

#[test]
fn a_case_states_its_line_in_the_session_of_another_program() {
    let sandbox = Sandbox::new();
    let time = "2026-01-01T00:00:00.000Z";
    let message = |id: &str, parent: &str, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message});
    let records = [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": time, "cwd": "/"}),
        json!({"type": "model_change", "id": "m", "parentId": null, "timestamp": time}),
        message("a", "m", json!({"role": "user", "content": "why?"})),
        message("b", "a", json!({"role": "assistant", "content": [{"type": "text", "text": "?"}]})),
    ];
    sandbox.write("s.jsonl", records.map(|record| format!("{record}\n")).concat());
    let report = offline(&sandbox, &["s.jsonl"]).code(1).report();
    assert_eq!(report["cases"][0]["line"], 4, "{report}");
}

#[test]
fn turns_can_be_chosen() {
    let sandbox = Sandbox::new();
    turns(&sandbox, "s.jsonl", &["one", "two", "three"]);
    let open = prompt("four").to_string();
    sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(open).assert().success();
    let names = |choice: &str| {
        let report = offline(&sandbox, &["--turns", choice, "s.jsonl"]).success().report();
        let name = |(name, status, _): (String, String, String)| format!("{name} {status}");
        cases(&report).into_iter().map(name).collect::<Vec<_>>()
    };
    let all = ["turn 1 passed", "turn 2 passed", "turn 3 passed", "turn 4 skipped"];
    assert_eq!(names("all"), all);
    assert_eq!(names("last"), ["turn 3 passed"]);
    assert_eq!(names("9,2,2"), ["turn 2 passed", "turn 9 skipped"]);
    offline(&sandbox, &["--turns", "0", "s.jsonl"]).code(2);
    let report = offline(&sandbox, &["--turns", "9,10", "s.jsonl"]).code(1).report();
    assert_eq!(report["message"], "turn 9: the transcript has no such turn");
}

#[test]
fn wrong_options_end_the_run_before_any_call() {
    let sandbox = Sandbox::new();
    turns(&sandbox, "s.jsonl", &["one"]);
    sandbox.write("broken/x/request.json", "{");
    for (args, status, error) in [
        (&["--replay", "none"][..], 65, "record into it first"),
        (&["--replay", "broken"], 65, "cannot use the recording"),
        (&["--provider", "openai", "--model", "m"], 77, "no key"),
        (&["--provider", "ollama"], 78, "no model is named"),
        (&["--max-cost", "1"], 78, "no price for 'offline'"),
        (&["--tools", "none"], 74, "cannot read 'none'"),
        (&["--pass-rate", "2"], 2, "not a share from 0 to 1"),
        (&["--update", "--repeat", "2"], 2, "--update"),
    ] {
        let run = offline(&sandbox, &[args, &["s.jsonl"]].concat());
        run.code(status).stdout("").stderr(contains(error));
    }
    let only = sandbox.cmd("claw-replay").env("PATH", "/nowhere").env("CLAW_PROVIDER", "offline");
    let run = only.args(["call", "s.jsonl"]).assert();
    run.code(78).stdout("").stderr(contains("cannot run 'claw-call'"));
}

#[test]
fn a_failed_call_is_made_again_by_the_next_run() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    append_records(&sandbox, "s.jsonl", &[prompt("hi"), answer("yes")]);
    let run = || {
        let args = ["--state", "state.jsonl", "--max-retries", "0", "s.jsonl"];
        live(&sandbox, &provider, &args)
    };
    provider.script(Step::error(529, "overloaded_error", "Overloaded"));
    let message = run().code(1).report()["message"].clone();
    assert!(message.as_str().is_some_and(|it| it.starts_with("turn 1: overloaded")), "{message}");
    provider.script(Step::text("yes"));
    let first = run().success();
    assert_eq!(run().success().stdout_text(), first.stdout_text());
    assert_eq!(provider.requests().len(), 2, "a request was sent twice");
}

#[test]
fn reports_are_made_again_if_a_recording_or_the_prices_have_changed() {
    let sandbox = Sandbox::new();
    turns(&sandbox, "d/a.jsonl", &["one"]);
    let price = |price: u64| {
        sandbox.write("prices", format!("* {price} 0 0 {price}\n"));
    };
    price(1);
    let args = ["--replay", "tape", "--state", "state.jsonl", "--prices", "prices", "d"];
    let passed = offline(&sandbox, &args).success();
    let stored = sandbox.read_text("state.jsonl");
    assert_eq!(offline(&sandbox, &args).success().stdout_text(), passed.stdout_text());
    assert_eq!(sandbox.read_text("state.jsonl"), stored, "the report was made again");
    price(20);
    assert_ne!(offline(&sandbox, &args).success().stdout_text(), passed.stdout_text());
    // The directory of the recordings does not change.
    sandbox.sh("sed -i 's/message: one/message: two/' tape/*/body").assert().success();
    let run = offline(&sandbox, &args).code(1);
    assert!(run.stdout_text().contains("message: two"), "{run}");
}
