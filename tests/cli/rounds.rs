//! claw-turn --tools: it calls the model, runs the tool calls of the reply, and calls the model again. A tool call that
//! has a result never runs again.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::json;

use crate::common::provider::{FakeProvider, Step};
use crate::common::{Cmd, Sandbox, send, send_to_group};
use crate::conversations::builds;
use crate::exec::{has_ended, line_of, tools};
use crate::summaries::TALKED;

/// A tool that logs each run in `log` and prints a long result.
const WORK: &str = "n=$(sed 's/[^0-9]//g'); sleep 0.02; i=0; while test $i -lt 150
    do echo \"step $i: compiled module $i\"; i=$((i+1)); done; echo $n >>log";

/// Returns a sandbox with these tools, each with its description for the model.
fn sandbox_with(scripts: &[(&str, &str)]) -> Sandbox {
    let sandbox = tools(scripts);
    for (name, _) in scripts {
        sandbox.write(&format!("box/{name}.json"), r#"{"input_schema":{"type":"object"}}"#);
    }
    sandbox
}

fn turn(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(provider.env()).env("TMPDIR", sandbox.dir());
    cmd.args(["--no-checkpoint", "--tools", "box"]).args(args).arg("s.jsonl")
}

/// Returns a reply that calls `name` once.
fn call(n: usize, name: &str) -> Step {
    Step::call(&format!("t{n}"), name, json!({ "n": n }))
}

/// Returns the ids of the calls that have a result in the transcript, in file order.
fn answered(sandbox: &Sandbox) -> Vec<String> {
    let records = sandbox.read_json("s.jsonl").into_iter();
    let results = records.filter(|record| record["type"] == "tool_result");
    results.map(|record| record["tool_use_id"].as_str().expect("an id").to_owned()).collect()
}

/// Returns the ids of the calls of `work` that ran to completion, in order.
fn log(sandbox: &Sandbox) -> Vec<String> {
    let log = fs::read_to_string(sandbox.path("workspace/log")).unwrap_or_default();
    log.lines().map(|n| format!("t{n}")).collect()
}

#[test]
fn a_turn_continues_until_a_reply_has_no_calls() {
    let (sandbox, provider) =
        (sandbox_with(&[("work", WORK), ("no", "exit 1")]), FakeProvider::new());
    let text = |text: &str| json!({"type": "text", "text": text});
    let used = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"n": 1}});
    let two = json!([text("I look."), used("t1", "work"), used("t2", "no")]);
    provider.script(Step::Reply(json!({"content": two, "model": "m", "stop_reason": "tool_use"})));
    provider.script(call(3, "work"));
    provider.script(Step::text("Done."));
    turn(&sandbox, &provider, &["-m", "Go.", "--deny", "no"])
        .assert()
        .success()
        .stdout("I look.\nReply to 3 messages: Go.\nDone.\n")
        .stderr("claw-exec: running work, no\nclaw-exec: running work\n");
    assert_eq!(
        (answered(&sandbox), log(&sandbox)),
        (vec!["t1".into(), "t2".into(), "t3".into()], vec!["t1".into(), "t3".into()])
    );
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        let body = request.json.as_ref().expect("a body");
        assert_eq!(body["tools"][1], json!({"name": "work", "input_schema": {"type": "object"}}));
    }
    let results = requests[1].messages().last().expect("a message")["content"].clone();
    assert_eq!(
        (results[0]["tool_use_id"].as_str(), results[1]["is_error"].as_bool()),
        (Some("t1"), Some(true))
    );
    assert!(results[1]["content"].to_string().contains("is not allowed here"));
    provider.all_legal();
}

#[test]
fn v63_d52_no_call_runs_twice_after_an_overflow_between_rounds() {
    let (sandbox, provider) = (sandbox_with(&[("work", WORK)]), FakeProvider::new());
    builds().append(&sandbox, "s.jsonl");
    let before = answered(&sandbox).len();
    let overflows =
        [Step::Overflow, Step::Overflow, Step::text(format!("They built and failed. {TALKED}"))];
    (1..5).for_each(|n| provider.script(call(n, "work")));
    overflows.into_iter().for_each(|step| provider.script(step));
    provider.script(call(5, "work"));
    provider.script(Step::text("All five."));
    turn(&sandbox, &provider, &["-m", "Go.", "--no-proactive"])
        .assert()
        .success()
        .stdout(contains("Reply to 11 messages: Go.\nAll five.\n"))
        .stderr(contains("claw-truncate: shortened"))
        .stderr(contains("claw-compact: summarised"));
    let five = ["t1", "t2", "t3", "t4", "t5"];
    assert_eq!(log(&sandbox), five);
    assert_eq!(answered(&sandbox)[before..], five);
    let refused =
        provider.requests().into_iter().filter(|request| request.violation.is_some()).count();
    assert_eq!((refused, provider.pending()), (0, 0));
}

#[test]
fn rounds_are_limited_and_the_again_option_continues() {
    let (sandbox, provider) = (sandbox_with(&[("work", WORK)]), FakeProvider::new());
    (1..4).for_each(|n| provider.script(call(n, "work")));
    turn(&sandbox, &provider, &["-m", "Go.", "--max-rounds", "2"])
        .assert()
        .code(5)
        .stdout(contains("Reply to 5 messages: Go.\n"))
        .stderr(contains("stopped after 2 rounds of tool calls; raise --max-rounds"));
    assert_eq!(log(&sandbox), ["t1", "t2"]);
    turn(&sandbox, &provider, &["--again"]).assert().success().stdout(contains("Reply to "));
    assert_eq!(
        (log(&sandbox), answered(&sandbox)),
        (
            ["t1", "t2", "t3"].map(String::from).to_vec(),
            ["t1", "t2", "t3"].map(String::from).to_vec()
        )
    );
    // Without --tools, a call does not run. After a new prompt, it does not run either.
    provider.script(call(4, "work"));
    let cmd = sandbox.cmd("claw-turn").envs(provider.env()).args([
        "--no-checkpoint",
        "-m",
        "Go.",
        "s.jsonl",
    ]);
    cmd.assert().success();
    turn(&sandbox, &provider, &["-m", "Stop."]).assert().success();
    assert_eq!(log(&sandbox).len(), 3);
    sandbox
        .cmd("claw-rebuild")
        .arg("s.jsonl")
        .assert()
        .success()
        .stdout(contains("interrupted: this call"));
}

#[test]
fn unusable_tools_are_reported_before_anything_is_written() {
    let (sandbox, provider) = (sandbox_with(&[("work", WORK)]), FakeProvider::new());
    for (args, status) in [
        (&["--tools", "nowhere"][..], 74),
        (&["--tools", "workspace"], 78),
        (&["--jobs", "0"], 2),
        (&["--exec-timeout", "soon"], 2),
        (&["--max-rounds", "many"], 2),
    ] {
        let cmd =
            sandbox.cmd("claw-turn").envs(provider.env()).args(["--tools", "box", "-m", "Go."]);
        cmd.args(args).arg("s.jsonl").assert().code(status).stdout("");
    }
    let cmd = turn(&sandbox, &provider, &["-m", "Go."]).env("CLAW_WORKSPACE", "gone");
    cmd.assert().code(78).stderr(contains("no such directory"));
    let cmd = sandbox.cmd("claw-turn").envs(provider.env()).args(["--ask", "-m", "Go.", "s.jsonl"]);
    cmd.assert().code(2).stderr(contains("options for tools need --tools"));
    assert!(!sandbox.exists("s.jsonl") && provider.requests().is_empty());
}

#[test]
fn p_6_a_signal_ends_a_running_tool_and_keeps_earlier_results() {
    let hang = "sleep 600 & test -e child || { echo $! >child; sleep 600; }; echo at last";
    let third = "test -e begun || { echo >begun; sleep 600; }; echo at last";
    for (name, status, to_group) in
        [("INT", 130, true), ("QUIT", 131, true), ("TERM", 143, false), ("TERM", 143, true)]
    {
        let sandbox = sandbox_with(&[("work", WORK), ("hang", hang), ("third", third)]);
        let provider = FakeProvider::new();
        let calls = [("t1", "work"), ("t2", "hang"), ("t3", "third")]
            .map(|(id, name)| (id.into(), name.into(), json!({"n": 1})));
        provider.script(Step::Calls(calls.to_vec()));
        let mut child = turn(&sandbox, &provider, &["-m", "Go.", "--jobs", "2"]).spawn();
        let grandchild = line_of(&sandbox, "workspace/child");
        // With two jobs, the third call begins when the first one has its result.
        line_of(&sandbox, "workspace/begun");
        if to_group {
            assert!(send_to_group(name, child.id()));
        } else {
            send(name, child.id());
        }
        let began = Instant::now();
        assert_eq!(child.wait().expect("an exit status").code(), Some(status));
        assert!(began.elapsed() < Duration::from_secs(20) && has_ended(&grandchild));
        assert_eq!(answered(&sandbox), ["t1"], "{name}");
        sandbox.sh("ls -d claw-turn.* 2>/dev/null").assert().stdout("");
        // The next turn runs only the calls that have no result yet.
        turn(&sandbox, &provider, &["--again"]).assert().success().stdout(contains("Reply to "));
        assert_eq!(
            (log(&sandbox), answered(&sandbox)),
            (vec!["t1".to_owned()], ["t1", "t2", "t3"].map(str::to_owned).to_vec())
        );
        provider.all_legal();
    }
}

/// SIGKILL cannot be forwarded, so claw-exec itself notices that its turn has ended.
#[test]
fn the_tools_of_a_killed_turn_end_before_the_next_turn_runs_any() {
    let hang = "sleep 600 & echo $! >child; p=$PPID
        for n in 1 2; do read -r _ _ _ p _ </proc/$p/stat; done
        test -e shell || { echo $p >shell; sleep 600; }; echo at last";
    let (sandbox, provider) = (sandbox_with(&[("hang", hang)]), FakeProvider::new());
    if !std::path::Path::new("/proc/self/stat").exists() {
        return;
    }
    provider.script(call(1, "hang"));
    let mut child = turn(&sandbox, &provider, &["-m", "Go."]).spawn();
    let shell = line_of(&sandbox, "workspace/shell");
    let grandchild = line_of(&sandbox, "workspace/child");
    send("KILL", shell.trim().parse().expect("a process id"));
    turn(&sandbox, &provider, &["--again"]).assert().success().stdout(contains("Reply to "));
    assert!(has_ended(&grandchild));
    assert_eq!(child.wait().expect("an exit status").code(), None);
    assert_eq!(answered(&sandbox), ["t1"]);
    assert_eq!(sandbox.read_text("s.jsonl").matches("at last").count(), 1);
    provider.all_legal();
}

/// The next turn waits even if the program that runs the tools is late to see the end of its turn.
#[test]
fn the_next_turn_waits_for_the_tools_of_a_killed_turn() {
    let hang = "sleep 600 & echo $! >child; echo $PPID >exec; p=$PPID
        for n in 1 2; do read -r _ _ _ p _ </proc/$p/stat; done
        echo $p >shell; sleep 600";
    let (sandbox, provider) = (sandbox_with(&[("hang", hang)]), FakeProvider::new());
    if !cfg!(target_os = "linux") {
        return;
    }
    provider.script(call(1, "hang"));
    // Without a session of its own, the kernel would continue the stopped program when the shell ends.
    let script = "exec setsid claw-turn --no-checkpoint --tools box -m Go. s.jsonl";
    let cmd = sandbox.sh(script).envs(provider.env()).env("TMPDIR", sandbox.dir());
    let mut child = cmd.spawn();
    let pid = |file: &str| line_of(&sandbox, file).trim().parse().expect("a process id");
    let (shell, exec) = (pid("workspace/shell"), pid("workspace/exec"));
    send("STOP", exec);
    send("KILL", shell);
    child.wait().expect("an exit status");
    let next = |seconds: &str| {
        sandbox
            .cmd("claw-session")
            .args(["lock", "s.jsonl", "--lock-timeout", seconds, "true"])
            .assert()
    };
    next("0.2").code(75).stderr(contains("another turn held it"));
    send("CONT", exec);
    next("20").success();
    assert!(has_ended(&line_of(&sandbox, "workspace/child")));
}

#[test]
fn v63_no_call_with_a_result_runs_again_after_a_kill_at_any_moment() {
    let args = ["--no-proactive", "-m", "Go."];
    let script = |provider: &FakeProvider| {
        let call = |n: usize| (format!("t{n}"), "work".to_owned(), json!({ "n": n }));
        for round in [vec![1, 2], vec![3], vec![4, 5]] {
            provider.script(Step::Calls(round.into_iter().map(call).collect()));
        }
    };
    let (sandbox, provider) = (sandbox_with(&[("work", WORK)]), FakeProvider::new());
    script(&provider);
    let began = Instant::now();
    turn(&sandbox, &provider, &args).assert().success();
    let whole = began.elapsed();
    for round in 1..7_u32 {
        // A tool whose claw-exec was killed may still run, and writes to the log of its own round.
        let (sandbox, provider) = (sandbox_with(&[("work", WORK)]), FakeProvider::new());
        script(&provider);
        let mut child = turn(&sandbox, &provider, &args).spawn();
        thread::sleep(whole * round / 7);
        let name = ["KILL", "TERM", "INT"][round as usize % 3];
        send_to_group(name, child.id());
        child.wait().expect("an exit status");
        sandbox.sh("touch s.jsonl").assert().success();
        let done = answered(&sandbox);
        let again = turn(&sandbox, &provider, &["--again"]).assert();
        // If the prompt is missing or the reply is complete, there is nothing to send.
        let has_nothing_to_send = again.get_output().status.code() == Some(7);
        assert!(
            has_nothing_to_send || again.get_output().status.code() == Some(0),
            "round {round}\n{again}"
        );
        let (log, answered) = (log(&sandbox), answered(&sandbox));
        for id in &done {
            let times = log.iter().filter(|own| *own == id).count();
            assert_eq!(times, 1, "round {round}: {id} must run once: {log:?}");
        }
        let mut once = answered.clone();
        once.dedup();
        assert_eq!(once, answered, "round {round}: expected one result per call, in order");
        provider.all_legal();
    }
}

#[test]
fn the_reply_of_each_round_is_shown_with_and_without_stream() {
    for args in [&[][..], &["--stream"]] {
        let (sandbox, provider) = (sandbox_with(&[("work", WORK)]), FakeProvider::new());
        provider.script(call(1, "work"));
        provider.script(Step::text("Done."));
        turn(&sandbox, &provider, &[args, &["-m", "Go."]].concat())
            .assert()
            .success()
            .stdout("Reply to 1 message: Go.\nDone.\n");
    }
}

#[test]
fn audit_21_a_turn_passes_allowed_variables_to_tools() {
    let tool_output = |args: &[&str]| {
        let (sandbox, provider) =
            (sandbox_with(&[("tell", "echo \"it is $DB_PASS\"")]), FakeProvider::new());
        provider.script(call(1, "tell"));
        provider.script(Step::text("Done."));
        let args = [args, &["-m", "Go."]].concat();
        turn(&sandbox, &provider, &args).env("DB_PASS", "open").assert().success();
        let records = sandbox.read_json("s.jsonl");
        let result =
            records.iter().find(|record| record["type"] == "tool_result").expect("a result");
        result["content"].as_str().expect("text").to_owned()
    };
    assert_eq!(tool_output(&[]), "it is \n");
    assert_eq!(tool_output(&["--pass-env", "DB_PASS"]), "it is open\n");
}
