//! claw-turn: each branch of the guard against the fake provider, recorded, and once more
//! from the recording with nobody there to ask.

use std::env;
use std::process::Command;
use std::thread;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::talks::{Talk, builds, chat, rebuild};

const PROMPT: &str = "And what is next?";

fn refused(status: u16, kind: &str) -> Step {
    Step::error(status, kind, "a context token")
}

/// A branch: its name, the talk before, what is answered, options, and the status it ends in.
type Branch = (&'static str, Talk, Vec<Step>, &'static [&'static str], i32);

fn branches() -> Vec<Branch> {
    let over = || Step::Overflow;
    vec![
        ("it fits", builds(), vec![], &[], 0),
        ("results are shortened", builds(), vec![over()], &[], 0),
        ("the old part is summarised", builds(), vec![over(), over()], &[], 0),
        ("nothing to shorten", chat(), vec![over()], &[], 0),
        (
            "nothing helps",
            builds(),
            vec![over(), over(), Step::text("They built."), over()],
            &[],
            3,
        ),
        ("nothing to do", Talk::new().user("x").assistant("y"), vec![over()], &[], 3),
        ("no guard", builds(), vec![over()], &["--no-guard"], 3),
        ("a summary that is none", chat(), vec![over(), Step::text(" ")], &["--no-fallback"], 3),
        ("a summary that is refused", chat(), vec![over(), refused(401, "e")], &[], 0),
        ("ahead of an overflow", chat(), vec![], &["--reserve", "97000"], 0),
        (
            "busy in between",
            builds(),
            vec![Step::busy(), over(), Step::busy(), Step::busy()],
            &[],
            0,
        ),
        ("busy for too long", builds(), vec![Step::busy()], &["--max-retries", "0"], 75),
        ("a key that is not taken", builds(), vec![refused(401, "e")], &[], 77),
        ("a shape that is not taken", builds(), vec![refused(400, "e")], &[], 76),
        ("a server that fails", builds(), vec![refused(500, "e")], &["--max-retries", "0"], 69),
        ("no answer", builds(), vec![Step::Drop], &["--max-retries", "0"], 69),
        ("half an answer", builds(), vec![Step::Cut(9)], &["--max-retries", "0"], 69),
        ("streamed", builds(), vec![over()], &["--stream"], 0),
        (
            "half a stream",
            builds(),
            vec![over(), Step::Cut(90)],
            &["--stream", "--max-retries", "0"],
            69,
        ),
    ]
}

/// A turn on `s.jsonl` with a window that the guard is not to act on by itself, and nothing after it.
fn turn(sandbox: &Sandbox, env: &[(String, String)], args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(env.iter().cloned());
    let usual = ["--no-checkpoint", "--window", "100000", "-m", PROMPT];
    cmd.args(usual).args(args).arg("s.jsonl")
}

fn with_talk(talk: &Talk) -> Sandbox {
    let sandbox = Sandbox::new();
    talk.append(&sandbox, "s.jsonl");
    sandbox
}

/// What a turn left: status, standard output, the types of the records, and what they say. Ids differ from
/// those of the recording: they depend on the provider's name for an exchange, which is not recorded.
#[derive(PartialEq)]
struct Left {
    status: Option<i32>,
    stdout: String,
    kinds: Vec<Value>,
    messages: String,
}

impl Left {
    fn by(sandbox: &Sandbox, run: &Assert) -> Left {
        let records = sandbox.read_json("s.jsonl");
        Left {
            status: run.get_output().status.code(),
            stdout: run.stdout_text(),
            kinds: records.iter().map(|record| record["type"].clone()).collect(),
            messages: rebuild(sandbox, "s.jsonl"),
        }
    }
}

/// Runs a branch live in this shape and again from its recording, which has to leave the same.
fn live_and_again(shape: Shape, branch: Branch) {
    let (name, talk, steps, args, status) = branch;
    let first = with_talk(&talk);
    let before = first.read("s.jsonl");
    let provider = FakeProvider::new();
    let steps_count = steps.len();
    steps.into_iter().for_each(|step| provider.script(step));
    let tape = first.path("tape").display().to_string();
    let env = provider.env_for(shape);
    let live = turn(&first, &env, &[args, &["--record", &tape]].concat()).assert().code(status);
    provider.all_legal();
    assert_eq!(provider.pending(), 0, "{name}: {steps_count} steps");
    let asked = provider.requests().len();
    // Nobody is there any more, and there is no key.
    drop(provider);
    let gone: Vec<_> = env.into_iter().filter(|(name, _)| !name.contains("KEY")).collect();
    let again = || {
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", &before);
        let run =
            turn(&sandbox, &gone, &[args, &["--replay", &tape]].concat()).assert().code(status);
        let same = Left::by(&sandbox, &run) == Left::by(&first, &live);
        assert!(same, "{shape:?}: {name}\n{}", run.stderr_text());
        sandbox.read("s.jsonl")
    };
    let replayed = again();
    let recorded = std::fs::read_dir(&tape).expect("a tape").count();
    assert_eq!(recorded, asked, "{shape:?}: {name}");
    // Twice the same bytes; once is enough for all shapes.
    if shape == Shape::Anthropic {
        assert!(again() == replayed, "{shape:?}: {name}");
    }
}

/// Q-2, Q-3, Q-4: what was recorded gives the same bytes again. Each branch is tried in one shape, in a full run in all.
#[test]
fn q3_every_branch_and_every_shape_live_and_from_its_recording() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let all = || branches().into_iter().enumerate();
    thread::scope(|scope| {
        for (offset, shape) in Shape::ALL.into_iter().enumerate() {
            let tried = all().filter(move |(n, _)| is_full || n % Shape::ALL.len() == offset);
            scope.spawn(move || tried.for_each(|(_, branch)| live_and_again(shape, branch)));
        }
    });
}

/// Q-2: a replay in a network namespace of its own, where there is nothing at all to connect to, and with
/// a provider at the address that sees nobody.
#[test]
#[allow(clippy::print_stdout, reason = "a case that is left out says so")]
fn q2_a_replay_opens_no_connection() {
    let first = with_talk(&builds());
    let provider = FakeProvider::new();
    (0..2).for_each(|_| provider.script(Step::Overflow));
    let tape = first.path("tape").display().to_string();
    let env = provider.env();
    let live = turn(&first, &env, &["--record", &tape]).assert().success();
    let asked = provider.requests().len();

    let second = with_talk(&builds());
    let again = turn(&second, &env, &["--replay", &tape]).assert();
    assert!(Left::by(&second, &again) == Left::by(&first, &live), "{}", again.stderr_text());
    assert_eq!(provider.requests().len(), asked, "the provider was asked");

    let own = Command::new("unshare").args(["-rn", "true"]).output();
    if !own.is_ok_and(|ended| ended.status.success()) {
        println!("skipped: no network namespaces here");
        return;
    }
    let third = with_talk(&builds());
    let script = r#"exec unshare -rn claw-turn --no-checkpoint --window 100000 -m "$PROMPT" --replay "$TAPE" s.jsonl"#;
    let apart = third.sh(script).envs(env).env("PROMPT", PROMPT).env("TAPE", &tape).assert();
    assert!(Left::by(&third, &apart) == Left::by(&first, &live), "{}", apart.stderr_text());
}

/// A recording that lacks the second request ends the turn with 8, and the transcript goes on.
#[test]
fn q2_a_miss_is_8_and_costs_nothing() {
    let first = with_talk(&builds());
    let provider = FakeProvider::new();
    let tape = first.path("tape").display().to_string();
    turn(&first, &provider.env(), &["--record", &tape]).assert().success();
    let other = with_talk(&builds());
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
