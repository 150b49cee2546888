//! claw-turn: each branch of the overflow guard, first with the fake provider and then replayed from the recording.

use std::env;
use std::process::Command;
use std::thread;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::{Conversation, builds, chat, rebuild};

const PROMPT: &str = "And what is next?";

fn refused(status: u16, kind: &str) -> Step {
    Step::error(status, kind, "a context token")
}

/// A branch: its name, the conversation so far, the provider's answers, options, and the exit status.
type Branch = (&'static str, Conversation, Vec<Step>, &'static [&'static str], i32);

fn branches() -> Vec<Branch> {
    let over = || Step::Overflow;
    vec![
        ("it fits", builds(), vec![], &[], 0),
        ("results are shortened", builds(), vec![over()], &[], 0),
        ("the old part is summarised", builds(), vec![over(), over()], &[], 0),
        ("nothing to shorten", chat(), vec![over()], &[], 0),
        ("nothing helps", chat(), vec![over(), Step::text("Done.")], &["--no-fallback"], 3),
        (
            "nothing to shorten or summarise",
            Conversation::new().user("x").assistant("y"),
            vec![over()],
            &[],
            3,
        ),
        ("no guard", builds(), vec![over()], &["--no-guard"], 3),
        ("a blank summary", chat(), vec![over(), Step::text(" ")], &["--no-fallback"], 3),
        ("a refused request for a summary", chat(), vec![over(), refused(401, "e")], &[], 0),
        ("ahead of an overflow", chat(), vec![], &["--reserve", "97000"], 0),
        (
            "busy in between",
            builds(),
            vec![Step::busy(), over(), Step::busy(), Step::busy()],
            &[],
            0,
        ),
        ("busy for too long", builds(), vec![Step::busy()], &["--max-retries", "0"], 75),
        ("a refused key", builds(), vec![refused(401, "e")], &[], 77),
        ("a refused request", builds(), vec![refused(400, "e")], &[], 76),
        ("a server that fails", builds(), vec![refused(500, "e")], &["--max-retries", "0"], 69),
        ("no answer", builds(), vec![Step::Drop], &["--max-retries", "0"], 69),
        ("an interrupted answer", builds(), vec![Step::Cut(9)], &["--max-retries", "0"], 69),
        ("streamed", builds(), vec![over()], &["--stream"], 0),
        (
            "an interrupted stream",
            builds(),
            vec![over(), Step::Cut(90)],
            &["--stream", "--max-retries", "0"],
            69,
        ),
    ]
}

/// Returns a `claw-turn` command on `s.jsonl`, with a window so large that the guard acts only after a refusal (unless
/// `args` reserve most of it), and without a checkpoint.
fn turn(sandbox: &Sandbox, env: &[(String, String)], args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(env.iter().cloned());
    let usual = ["--no-checkpoint", "--window", "100000", "-m", PROMPT];
    cmd.args(usual).args(args).arg("s.jsonl")
}

fn with_conversation(conversation: &Conversation) -> Sandbox {
    let sandbox = Sandbox::new();
    conversation.append(&sandbox, "s.jsonl");
    sandbox
}

/// The outcome of a turn: exit status, standard output, types of records, and messages. Ids are left out, because
/// they depend on the request id of the provider, which is not recorded.
#[derive(PartialEq)]
struct Outcome {
    status: Option<i32>,
    stdout: String,
    kinds: Vec<Value>,
    messages: String,
}

impl Outcome {
    fn by(sandbox: &Sandbox, run: &Assert) -> Outcome {
        let records = sandbox.read_json("s.jsonl");
        Outcome {
            status: run.get_output().status.code(),
            stdout: run.stdout_text(),
            kinds: records.iter().map(|record| record["type"].clone()).collect(),
            messages: rebuild(sandbox, "s.jsonl"),
        }
    }
}

/// Runs a branch with the provider in this shape, then from the recording, and compares the outcomes.
fn assert_replay_equals_live(shape: Shape, branch: Branch) {
    let (name, conversation, steps, args, status) = branch;
    let first = with_conversation(&conversation);
    let before = first.read("s.jsonl");
    let provider = FakeProvider::new();
    let steps_count = steps.len();
    steps.into_iter().for_each(|step| provider.script(step));
    let tape = first.path("tape").display().to_string();
    let env = provider.env_for(shape);
    let live = turn(&first, &env, &[args, &["--record", &tape]].concat()).assert().code(status);
    provider.all_legal();
    assert_eq!(provider.pending(), 0, "{name}: not all {steps_count} steps were used");
    let asked = provider.requests().len();
    // The provider is stopped, and there is no key.
    drop(provider);
    let keyless: Vec<_> = env.into_iter().filter(|(name, _)| !name.contains("KEY")).collect();
    let again = || {
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", &before);
        let run =
            turn(&sandbox, &keyless, &[args, &["--replay", &tape]].concat()).assert().code(status);
        let same = Outcome::by(&sandbox, &run) == Outcome::by(&first, &live);
        assert!(same, "{shape:?}: {name}\n{}", run.stderr_text());
        sandbox.read("s.jsonl")
    };
    let replayed = again();
    let recorded = std::fs::read_dir(&tape).expect("a tape").count();
    assert_eq!(recorded, asked, "{shape:?}: {name}");
    // Two replays write the same bytes; testing this in one shape is enough.
    if shape == Shape::Anthropic {
        assert!(again() == replayed, "{shape:?}: {name}");
    }
}

/// A replay gives the same result. A short run tests each branch in one shape, a full run in every shape.
#[test]
fn q3_every_branch_has_the_same_outcome_live_and_replayed() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let all = || branches().into_iter().enumerate();
    thread::scope(|scope| {
        for (offset, shape) in Shape::ALL.into_iter().enumerate() {
            let tried = all().filter(move |(n, _)| is_full || n % Shape::ALL.len() == offset);
            scope.spawn(move || {
                tried.for_each(|(_, branch)| assert_replay_equals_live(shape, branch))
            });
        }
    });
}

/// The replay is tested with the provider still running, and then in a network namespace without any network.
#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn q2_a_replay_opens_no_connection() {
    let first = with_conversation(&builds());
    let provider = FakeProvider::new();
    (0..2).for_each(|_| provider.script(Step::Overflow));
    let tape = first.path("tape").display().to_string();
    let env = provider.env();
    let live = turn(&first, &env, &["--record", &tape]).assert().success();
    let asked = provider.requests().len();

    let second = with_conversation(&builds());
    let again = turn(&second, &env, &["--replay", &tape]).assert();
    assert!(Outcome::by(&second, &again) == Outcome::by(&first, &live), "{}", again.stderr_text());
    assert_eq!(provider.requests().len(), asked, "the replay sent a request");

    let own = Command::new("unshare").args(["-rn", "true"]).output();
    if !own.is_ok_and(|ended| ended.status.success()) {
        println!("skipped: no network namespaces here");
        return;
    }
    let third = with_conversation(&builds());
    let script = r#"exec unshare -rn claw-turn --no-checkpoint --window 100000 -m "$PROMPT" --replay "$TAPE" s.jsonl"#;
    let apart = third.sh(script).envs(env).env("PROMPT", PROMPT).env("TAPE", &tape).assert();
    assert!(Outcome::by(&third, &apart) == Outcome::by(&first, &live), "{}", apart.stderr_text());
}

/// If the recording lacks a request, the turn ends with 8, and the transcript stays usable.
#[test]
fn q2_a_request_that_is_not_recorded_ends_with_8() {
    let first = with_conversation(&builds());
    let provider = FakeProvider::new();
    let tape = first.path("tape").display().to_string();
    turn(&first, &provider.env(), &["--record", &tape]).assert().success();
    let other = with_conversation(&builds());
    turn(&other, &provider.env(), &["--replay", &tape, "-m", "Something else"])
        .assert()
        .code(8)
        .stdout("")
        .stderr(contains("nothing recorded for this request"))
        .stderr(contains("which differs at .messages[24]"));
    let error = json!("not-recorded");
    assert!(other.read_json("s.jsonl").iter().any(|record| record["class"] == error));
    turn(&other, &provider.env(), &[]).assert().success();
    provider.all_legal();
}
