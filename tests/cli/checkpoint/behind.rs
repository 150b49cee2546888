//! claw-turn: a checkpoint is made in the background after the reply.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::checkpoint::ids;
#[cfg(feature = "http")]
use crate::common::provider::{FakeProvider, Step};
use crate::common::{Cmd, Sandbox, kill_group, send_to_group};
use crate::conversations::{Conversation, rebuild};

/// Scripts that the model runs before it answers with a checkpoint: none, a short wait, a wait for a file.
const NO_WAIT: &str = ":";
const SHORT_WAIT: &str = "sleep 0.1";
const WAIT_FOR_FILE: &str = "until test -e go; do sleep 0.02; done";

/// Returns a claw-turn command after which a checkpoint is due, with the sandbox as `TMPDIR`. The program `model`
/// answers both the turn and the request for a checkpoint.
fn turn(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").env("TMPDIR", sandbox.dir()).args(args);
    cmd.args(["--window", "20000", "--call", "model", "-m", "And what is next?", "s.jsonl"])
}

/// Returns a sandbox with a long conversation and a model that runs `first` before it answers with a checkpoint. The
/// model saves the request for a checkpoint in the file `asked`.
fn with_model(first: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    Conversation::plain(6, 2000).append(&sandbox, "s.jsonl");
    let answer = r#"{"type":"assistant","content":"All of it.","stop_reason":"end_turn"}"#;
    let script = r#"cat >"input.$$"
        if grep -q '^{"role":"user","content":"Take stock' "input.$$"
        then
            printf '%s\n' "$@" >args
            env >env
            mv "input.$$" asked
            FIRST
        fi
        echo 'ANSWER'"#;
    sandbox.program("model", &script.replace("FIRST", first).replace("ANSWER", answer));
    sandbox
}

/// Waits until `is_so` returns true.
#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn checkpoints(sandbox: &Sandbox) -> usize {
    let records = sandbox.read_json_so_far("s.jsonl");
    records.iter().filter(|record| record["type"] == "checkpoint").count()
}

#[test]
fn a_turn_makes_a_due_checkpoint_in_the_background_without_waiting() {
    let sandbox = with_model(WAIT_FOR_FILE);
    // This returns only because the background process does not hold the outputs of the turn open.
    turn(&sandbox, &["--timeout", "50"])
        .write_stdin("unused")
        .assert()
        .success()
        .stdout("All of it.\n")
        .stderr("");
    assert_eq!(checkpoints(&sandbox), 0);
    sandbox.write("go", "");
    wait_for("checkpoint", || checkpoints(&sandbox) == 1);
    let record = sandbox.read_json("s.jsonl").pop().expect("a record");
    assert_eq!(
        (&record["summary"], &record["covers_up_to"]),
        (&json!("All of it."), &ids(&sandbox)[7])
    );
    // The model is called with the options of a summary request, and the temporary directory is removed.
    let args = sandbox.read_text("args");
    assert!(args.contains("--window\n20000\n"), "{args}");
    assert!(sandbox.read_text("env").contains("CLAW_TIMEOUT=50\n"));
    sandbox.sh("ls -d claw-turn.*").assert().stdout("");
    // The messages of the next turn do not contain the checkpoint.
    turn(&sandbox, &["--no-checkpoint"]).assert().success();
    assert!(!rebuild(&sandbox, "s.jsonl").contains("covers_up_to"));
}

#[test]
fn no_checkpoint_is_made_if_it_is_disabled() {
    let sandbox = with_model(NO_WAIT);
    sandbox.write("config", r#"{"session":{"checkpoint":{"enabled":false}}}"#);
    turn(&sandbox, &["--no-checkpoint"]).assert().success();
    turn(&sandbox, &["--config", "config"]).assert().success();
    thread::sleep(Duration::from_millis(300));
    assert!(!sandbox.exists("asked"));
    // --no-guard does not disable checkpoints.
    turn(&sandbox, &["--no-guard", "--no-proactive"]).assert().success();
    wait_for("checkpoint", || checkpoints(&sandbox) == 1);
}

#[test]
fn killing_a_checkpoint_at_any_moment_leaves_the_transcript_valid() {
    let sandbox = with_model(SHORT_WAIT);
    let base = sandbox.read("s.jsonl");
    for (round, pause) in [0, 10, 20, 40, 80, 160, 320].into_iter().cycle().take(14).enumerate() {
        sandbox.write("s.jsonl", &base);
        let mut child = turn(&sandbox, &[]).spawn();
        // The background process stays in the process group that the turn leads.
        child.wait().expect("the end of the turn");
        let replied = sandbox.read("s.jsonl");
        thread::sleep(Duration::from_millis(pause));
        kill_group(child.id());
        let left = sandbox.read("s.jsonl");
        assert!(left.starts_with(&replied), "round {round}");
        let lines = left[replied.len()..].iter().filter(|byte| **byte == b'\n').count();
        assert!(lines <= 1 && left.ends_with(b"\n"), "round {round}");
        let messages = rebuild(&sandbox, "s.jsonl");
        assert!(messages.contains("All of it."), "round {round}");
    }
}

#[test]
fn a_hangup_does_not_stop_a_checkpoint() {
    let sandbox = with_model(WAIT_FOR_FILE);
    let mut child = turn(&sandbox, &[]).spawn();
    child.wait().expect("the end of the turn");
    wait_for("request", || sandbox.exists("asked"));
    assert!(send_to_group("HUP", child.id()));
    sandbox.write("go", "");
    wait_for("checkpoint", || checkpoints(&sandbox) == 1);
}

#[test]
#[cfg(feature = "http")]
fn a_turn_with_a_provider_makes_its_checkpoint_once() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    Conversation::plain(6, 2000).append(&sandbox, "s.jsonl");
    let turn = |prompt| {
        let cmd = sandbox.cmd("claw-turn").envs(provider.env()).env("CLAW_WINDOW", "20000");
        cmd.args(["-m", prompt, "s.jsonl"]).assert().success();
    };
    provider.script(Step::text("All of it."));
    provider.script(Step::text(r#"{"summary":"They built.","open_questions":["What is next?"]}"#));
    turn("And what is next?");
    wait_for("checkpoint", || checkpoints(&sandbox) == 1);
    let known = crate::checkpoint::meta_checkpoint(&sandbox);
    assert_eq!(
        (&known["summary"], &known["generated_by"]),
        (&json!("They built."), &json!("test-model"))
    );
    turn("Thanks.");
    thread::sleep(Duration::from_millis(300));
    assert_eq!((provider.requests().len(), checkpoints(&sandbox)), (3, 1));
    provider.all_legal();
}
