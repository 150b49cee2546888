//! claw-turn: the steps of its overflow guard, providers that refuse requests, its prompt, reply and options, and turns
//! that are killed.

use std::collections::HashSet;
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Recorded, Step};
use crate::common::{AssertExt, Cmd, Sandbox, send_to_group};
use crate::conversations::{Conversation, builds, chat, log, rebuild, words};

const PROMPT: &str = "And what is next?";

/// Returns a conversation that fits a small window only if it is both shortened and summarised.
fn builds_and_chat() -> Conversation {
    (0..6).fold(builds(), |conversation, n| {
        conversation.user(&format!("Why {n}?")).assistant(&words(600))
    })
}

/// Returns a `claw-turn` command that sends [`PROMPT`] in `s.jsonl` and makes no checkpoint afterwards.
fn turn(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(provider.env()).arg("--no-checkpoint").args(args);
    cmd.args(["-m", PROMPT, "s.jsonl"])
}

/// A transcript and a provider after a turn.
struct Case {
    sandbox: Sandbox,
    provider: FakeProvider,
    /// The transcript before the turn.
    before: Vec<u8>,
}

impl Case {
    /// Runs a turn on a conversation with a provider that answers with these steps. Returns the case and the result of
    /// the turn.
    #[track_caller]
    fn new(conversation: &Conversation, steps: &[Step], args: &[&str]) -> (Case, Assert) {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("s.jsonl", "");
        conversation.append(&sandbox, "s.jsonl");
        let before = sandbox.read("s.jsonl");
        steps.iter().for_each(|step| provider.script(step.clone()));
        let run = turn(&sandbox, &provider, args).assert();
        let case = Case { sandbox, provider, before };
        assert!(
            case.sandbox.read("s.jsonl").starts_with(&case.before),
            "the transcript was rewritten"
        );
        case.provider.all_legal();
        (case, run)
    }

    /// Returns the records of one type that the turn added.
    fn added(&self, kind: &str) -> Vec<Value> {
        let old = self.before.iter().filter(|byte| **byte == b'\n').count();
        let records = self.sandbox.read_json("s.jsonl").into_iter().skip(old);
        records.filter(|record| record["type"] == kind).collect()
    }

    /// Returns the number of requests for a reply, and the number of requests for a summary.
    fn requests(&self) -> (usize, usize) {
        let requests = self.provider.requests();
        let summaries = requests.iter().filter(|request| is_summary(request)).count();
        (requests.len() - summaries, summaries)
    }

    /// Checks that no request was sent twice.
    #[track_caller]
    fn assert_no_request_twice(&self) -> &Case {
        let requests = self.provider.requests();
        let bodies: HashSet<&[u8]> = requests.iter().map(|request| &request.body[..]).collect();
        assert_eq!(bodies.len(), requests.len());
        self
    }
}

/// Checks that the requests broke no rule except the one about the window.
#[track_caller]
fn assert_legal_but_for_the_window(provider: &FakeProvider) {
    let broken = provider.requests().into_iter().filter_map(|request| request.violation);
    let others: Vec<_> = broken.filter(|broken| broken.rule != "A12").collect();
    assert!(others.is_empty(), "{others:#?}");
}

fn is_summary(request: &Recorded) -> bool {
    request.messages().len() == 1 && request.last_user_text().contains("\n<conversation ")
}

// ---- the stages ------------------------------------------------------------------------------

#[test]
fn v59_an_accepted_request_is_sent_once() {
    let (case, run) = Case::new(&builds(), &[Step::text("All four\nof them.")], &[]);
    run.success().stdout("All four\nof them.\n").stderr("");
    assert_eq!(case.requests(), (1, 0));
    assert_eq!(case.provider.single_request().last_user_text(), PROMPT);
    let records = case.sandbox.read_json("s.jsonl");
    let [.., prompt, reply] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((&prompt["type"], &prompt["content"]), (&json!("user"), &json!(PROMPT)));
    assert_eq!((&reply["type"], &reply["model"]), (&json!("assistant"), &json!("test-model")));
}

#[test]
fn v59_an_overflow_shortens_results_and_retries() {
    let (case, run) = Case::new(&builds(), &[Step::Overflow], &[]);
    let run = run.success().stderr(contains("claw-call: overflow "));
    let run = run.stderr(contains(
        "claw-turn: overflow: shortening tool results\nclaw-truncate: shortened ",
    ));
    run.stderr(contains(" tokens; all of it: claw-rebuild --record ID, for "))
        .stderr(contains("summar").not());
    assert_eq!(case.assert_no_request_twice().requests(), (2, 0));
    assert!(!case.added("truncation").is_empty() && case.added("compaction").is_empty());
    assert_eq!(case.added("error").len(), 1);
    assert_eq!(case.added("error")[0]["class"], "overflow");
}

#[test]
fn v59_a_second_overflow_summarises() {
    let (case, run) = Case::new(&builds(), &[Step::Overflow, Step::Overflow], &[]);
    let run = run.success().stderr(contains("claw-turn: overflow: summarising the old part ("));
    let run = run.stderr(contains("claw-compact: summarised ")).stderr(contains(" (1 call, "));
    assert_eq!(case.assert_no_request_twice().requests(), (3, 1));
    assert_eq!((case.added("compaction").len(), case.added("error").len()), (1, 2));
    // The last request begins with the summary, and its reply is printed.
    let last = case.provider.requests().pop().expect("a request");
    assert!(last.messages()[0].to_string().contains("[Previous conversation summary]"));
    run.stdout(contains(format!(": {PROMPT}\n")));
}

#[test]
fn v59_a_provider_that_refuses_every_request_ends_the_turn() {
    let (case, run) = Case::new(&builds(), &vec![Step::Overflow; 99], &[]);
    run.code(3).stdout("").stderr(contains("does not fit after all steps; "));
    let (calls, _) = case.assert_no_request_twice().requests();
    assert!((3..=8).contains(&calls) && case.added("error").len() == calls, "{calls}");
    // The prompt is kept, so the turn can continue with a larger window.
    assert!(rebuild(&case.sandbox, "s.jsonl").contains(PROMPT));
}

#[test]
fn v60_d33_with_nothing_to_shorten_the_stage_is_skipped() {
    let (case, run) = Case::new(&chat(), &[Step::Overflow], &[]);
    run.success().stderr(contains("claw-truncate: no result can be shortened: "));
    assert_eq!(case.assert_no_request_twice().requests(), (2, 1));
    assert!(case.added("truncation").is_empty());
    assert_eq!(case.added("compaction").len(), 1);
}

#[test]
fn v60_d42_with_nothing_to_shorten_or_summarise_a_turn_ends_after_one_request() {
    let (case, run) =
        Case::new(&Conversation::new().user("x").assistant("y"), &[Step::Overflow], &[]);
    run.code(3)
        .stdout("")
        .stderr(contains("claw-turn: the request does not fit after all steps; "))
        .stderr(contains("; try a model with a larger window"))
        .stderr(contains("nothing to gain"));
    assert_eq!(case.requests(), (1, 0));
}

#[test]
fn v62_a_busy_provider_uses_up_no_stage() {
    let steps =
        [Step::busy(), Step::Overflow, Step::busy(), Step::busy(), Step::Overflow, Step::busy()];
    let (case, run) = Case::new(&builds(), &steps, &["--max-retries", "2"]);
    run.success();
    assert_eq!(case.provider.pending(), 0);
    assert_eq!((case.added("error").len(), case.added("compaction").len()), (2, 1));
    // Only requests that were answered with 429 were repeated.
    let requests = case.provider.requests();
    let answered: Vec<&[u8]> =
        requests.iter().filter(|r| r.status != 429).map(|r| &r.body[..]).collect();
    assert_eq!(answered.iter().collect::<HashSet<_>>().len(), answered.len());
}

#[test]
fn v61_v62_failures_other_than_overflow_never_drop_history() {
    for (step, status) in [
        (Step::busy(), 75),
        (Step::error(401, "authentication_error", "invalid x-api-key"), 77),
        (Step::error(400, "invalid_request_error", "temperature: context token"), 76),
        (Step::error(500, "api_error", "context deadline exceeded: token"), 69),
        (Step::Drop, 69),
    ] {
        let (case, run) =
            Case::new(&builds(), std::slice::from_ref(&step), &["--max-retries", "0"]);
        run.code(status).stdout("");
        assert_eq!(case.requests(), (1, 0), "{step:?}");
        let lost = case.added("truncation").len() + case.added("compaction").len();
        assert_eq!((lost, case.added("error").len()), (0, 1), "{step:?}");
        // The next turn succeeds.
        turn(&case.sandbox, &case.provider, &[]).assert().success();
        case.provider.all_legal();
    }
    // A failure between the stages drops nothing either.
    let (case, run) =
        Case::new(&builds(), &[Step::Overflow, Step::busy()], &["--max-retries", "0"]);
    run.code(75).stdout("");
    assert!(case.added("compaction").is_empty());
}

#[test]
fn v64_d44_a_failed_summary_drops_no_history() {
    let text = |text: &str, reason: &str| {
        let content = json!([{"type": "text", "text": text}]);
        let usage = json!({"input_tokens": 1, "output_tokens": 1});
        Step::Reply(
            json!({"content": content, "model": "m", "stop_reason": reason, "usage": usage}),
        )
    };
    let failures: Vec<Vec<Step>> = vec![
        vec![text("", "end_turn")],
        vec![text(" \n", "end_turn")],
        vec![text("half of", "max_tokens")],
        vec![text("I will not.", "refusal")],
        vec![text("half of", "model_context_window_exceeded")],
        vec![text(&words(9000), "end_turn")],
        vec![Step::call("a", "f", json!({}))],
        vec![Step::Overflow; 9],
        vec![Step::error(400, "invalid_request_error", "no")],
        vec![Step::error(401, "authentication_error", "no")],
        vec![Step::error(529, "overloaded_error", "no")],
        vec![Step::error(500, "api_error", "no")],
        vec![Step::Raw { status: 200, headers: vec![], body: "<html>".into() }],
        vec![Step::Drop],
        vec![Step::Cut(20)],
    ];
    for failure in failures {
        let steps = [vec![Step::Overflow], failure.clone()].concat();
        let (case, run) = Case::new(&chat(), &steps, &["--max-retries", "0", "--no-fallback"]);
        run.code(3).stdout("").stderr(contains("; try a model with a larger window"));
        let (answers, summaries) = case.requests();
        assert!(answers == 1 && summaries <= 3, "{failure:?}: {summaries}");
        let expected = {
            let sandbox = Sandbox::new();
            sandbox.write("s.jsonl", &case.before);
            Conversation::new().user(PROMPT).append(&sandbox, "s.jsonl");
            rebuild(&sandbox, "s.jsonl")
        };
        assert!(rebuild(&case.sandbox, "s.jsonl") == expected, "{failure:?}");
    }
}

#[test]
fn a_turn_continues_with_the_local_summary_if_the_model_fails() {
    let refused = || Step::error(401, "authentication_error", "no");
    let steps = [Step::Overflow, refused()];
    let (case, run) = Case::new(&chat(), &steps, &["--fallback", "local"]);
    run.success().stdout(contains(PROMPT)).stderr(contains("; trying local"));
    assert_eq!(case.added("compaction")[0]["strategy"], "local");
    assert_eq!(case.assert_no_request_twice().requests(), (2, 1));
    // The fallback is used both before an overflow and after one.
    let args = ["--fallback", "local", "--window", "4000"];
    let (case, run) = Case::new(&chat(), &[refused(), Step::Overflow, refused()], &args);
    run.success();
    assert_eq!(case.added("compaction").len(), 2);
    let (_, run) = Case::new(&chat(), &[], &["--fallback", "magic"]);
    run.code(2);
}

#[test]
fn v65_the_output_limit_is_lowered_before_history_is_reduced() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().window(12_000);
    builds().append(&sandbox, "s.jsonl");
    turn(&sandbox, &provider, &[])
        .assert()
        .success()
        .stderr(contains("trying again with --max-tokens "));
    assert_eq!(provider.requests().len(), 2);
    assert_legal_but_for_the_window(&provider);
    let kinds: Vec<Value> =
        sandbox.read_json("s.jsonl").iter().map(|r| r["type"].clone()).collect();
    assert!(!kinds.contains(&json!("truncation")) && !kinds.contains(&json!("compaction")));
}

#[test]
fn v67_d43_the_next_turn_begins_with_a_request_that_fits() {
    for (conversation, window, stages) in
        [(builds(), 8000, 1), (chat(), 4000, 1), (builds_and_chat(), 4000, 2)]
    {
        let sandbox = Sandbox::new();
        let provider = FakeProvider::new().window(window);
        conversation.append(&sandbox, "s.jsonl");
        let first = turn(&sandbox, &provider, &[]).assert().success().stderr(contains("overflow"));
        let done = ["claw-truncate: shortened ", "claw-compact: summarised "];
        let done = done.iter().filter(|done| first.stderr_text().contains(**done)).count();
        assert_eq!(done, stages, "{}", first.stderr_text());
        let before = provider.requests().len();
        // Even without the file of learned windows, the next request fits, because the transcript has the records that
        // made it fit in the first turn.
        std::fs::remove_file(sandbox.path("state/windows.jsonl"))
            .expect("a file of learned windows");
        turn(&sandbox, &provider, &["--no-proactive", "--max-tokens", "200"])
            .assert()
            .success()
            .stderr("");
        assert_eq!(provider.requests().len(), before + 1);
        assert_legal_but_for_the_window(&provider);
    }
}

// ---- before an overflow ----------------------------------------------------------------------

#[test]
fn compaction_begins_at_the_window_less_the_reserve() {
    let tokens = {
        let sandbox = Sandbox::new();
        chat().user(PROMPT).append(&sandbox, "s.jsonl");
        let messages = rebuild(&sandbox, "s.jsonl");
        let run = sandbox.cmd("claw-estimate").write_stdin(messages).assert();
        run.success().json_one().as_u64().expect("a number")
    };
    let reserve = |left: u64| (10_000 - left).to_string();
    for (reserve, args, expected) in [
        (reserve(tokens + 1), vec![], (1, 0)),
        (reserve(tokens), vec![], (1, 1)),
        (reserve(tokens), vec!["--no-proactive"], (1, 0)),
        (reserve(tokens), vec!["--no-guard"], (1, 1)),
    ] {
        let window = ["--window", "10000", "--reserve", &reserve];
        let (case, run) = Case::new(&chat(), &[], &[&window[..], &args].concat());
        let run = run.success();
        assert_eq!(case.assert_no_request_twice().requests(), expected, "{reserve} {args:?}");
        assert_eq!(case.added("compaction").len(), expected.1);
        if expected.1 == 1 {
            run.stderr(contains(
                "summarising the old part ahead of an overflow\nclaw-compact: summarised ",
            ));
        }
    }
}

#[test]
fn a_failed_early_compaction_does_not_prevent_the_request() {
    for step in [Step::error(500, "api_error", "no"), Step::text(""), Step::Overflow] {
        let window = ["--window", "4000", "--max-retries", "0"];
        let (case, run) = Case::new(&chat(), &[step], &window);
        run.success().stdout(contains(PROMPT));
        assert_eq!(case.requests().0, 1);
    }
    let args = ["--window", "4000", "--no-fallback", "--max-retries", "0"];
    let (_, run) = Case::new(&chat(), &[Step::text("")], &args);
    run.success().stderr(contains("claw-compact: summary from 'claw-call' rejected: it is blank"));
}

/// Nearly all of the conversation is one long result, so a compaction would save nothing. The result is shortened
/// before the first request.
#[test]
fn l7_results_are_shortened_if_an_early_compaction_saves_nothing() {
    let conversation = Conversation::new().user("Build it.").tool(log(900));
    let (case, run) = Case::new(&conversation, &[], &["--window", "6000"]);
    run.success()
        .stderr(contains("claw-compact: nothing to gain: "))
        .stderr(contains("\nclaw-truncate: shortened 1 result: "));
    assert_eq!(case.requests(), (1, 0));
    assert_eq!((case.added("truncation").len(), case.added("error").len()), (1, 0));
}

#[test]
fn m9_with_no_guard_a_turn_ends_at_the_first_overflow() {
    let (case, run) = Case::new(&builds(), &[Step::Overflow], &["--no-guard"]);
    run.code(3)
        .stdout("")
        .stderr(contains("claw-turn: overflow").not())
        .stderr(contains("the prompt is kept"));
    assert_eq!(case.requests(), (1, 0));
    assert_eq!(case.added("error").len(), 1);
}

#[test]
fn the_configured_reserve_applies() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new();
    chat().append(&sandbox, "s.jsonl");
    sandbox.write("claw.json", r#"{"session":{"compaction":{"reserveTokens":9000}}}"#);
    turn(&sandbox, &provider, &["--window", "10000", "--config", "claw.json"])
        .assert()
        .success()
        .stderr(contains("ahead of an overflow"));
}

// ---- prompt, reply and options ---------------------------------------------------------------

#[test]
fn the_prompt_comes_from_standard_input_or_an_option() {
    let provider = FakeProvider::new();
    let odd = "-n \"two\" 'words' $(exit 9) `x` \\n\n\tand a line — ünïcode";
    let sandbox = Sandbox::new();
    let cmd = || sandbox.cmd("claw-turn").envs(provider.env());
    cmd().arg("a.jsonl").write_stdin(odd).assert().success();
    cmd().args(["-m", odd, "b.jsonl"]).assert().success();
    cmd().arg(format!("--message={odd}")).arg("c.jsonl").assert().success();
    cmd().args(["-m", odd, "--", "./d"]).assert().success();
    for file in ["a.jsonl", "b.jsonl", "c.jsonl", "d"] {
        assert_eq!(sandbox.read_json(file)[0]["content"], odd, "{file}");
    }
    // A prompt may be longer than a command line.
    cmd().arg("long.jsonl").write_stdin(words(100_000)).assert().success();
    assert_eq!(provider.requests().pop().expect("a request").last_user_text().len(), 500_000);
}

#[test]
fn closed_standard_streams_and_variables_of_another_turn_change_nothing() {
    for (redirect, shown) in
        [("<&-", true), ("2>&-", true), (">&-", false), ("<&- 2>&-", true), ("<&- >&- 2>&-", false)]
    {
        for options in ["", "--stream"] {
            let sandbox = Sandbox::new();
            let script = format!("claw-turn --no-checkpoint {options} -m hi s.jsonl {redirect}");
            let run = sandbox.sh(&script).env("CLAW_PROVIDER", "offline");
            run.env("CLAW_TURN", "1")
                .env("settings", "exit 9")
                .assert()
                .success()
                .stdout(if shown { "Reply to 1 message: hi\n" } else { "" })
                .stderr("");
            assert_eq!(sandbox.read_json("s.jsonl").len(), 2, "{script}");
        }
    }
    // Without --message, a prompt must come from standard input.
    let sandbox = Sandbox::new();
    sandbox
        .sh("claw-turn s.jsonl <&-")
        .env("CLAW_PROVIDER", "offline")
        .assert()
        .code(74)
        .stderr(contains("standard input is closed"));
    assert!(!sandbox.exists("s.jsonl"));
}

#[test]
fn an_empty_prompt_ends_with_65_and_changes_nothing() {
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    for prompt in ["", "\n", " \t\n\n"] {
        let cmd = sandbox.cmd("claw-turn").envs(provider.env());
        cmd.arg("s.jsonl")
            .write_stdin(prompt)
            .assert()
            .code(65)
            .stdout("")
            .stderr(contains("the text is blank"));
        let cmd = sandbox.cmd("claw-turn").envs(provider.env());
        cmd.args(["-m", prompt, "s.jsonl"]).assert().code(65);
    }
    let cmd = sandbox.cmd("claw-turn").envs(provider.env());
    cmd.arg("s.jsonl").write_stdin(b"\xff\xfe".to_vec()).assert().code(65).stdout("");
    assert!(provider.requests().is_empty() && !sandbox.exists("s.jsonl"));
}

#[test]
fn an_invalid_command_line_ends_with_2() {
    let sandbox = Sandbox::new();
    for args in [
        &[][..],
        &["a.jsonl", "b.jsonl"],
        &["--odd", "s.jsonl"],
        &["--odd=1", "s.jsonl"],
        &["-x", "s.jsonl"],
        &["s.jsonl", "--window"],
        &["--window"],
        &["-m"],
        &["--log", "xml", "s.jsonl"],
        &["--window", "many", "s.jsonl"],
        &["--provider", "oracle", "s.jsonl"],
        &["--max-tokens", "few", "s.jsonl"],
        &["--max-retries", "few", "s.jsonl"],
        &["--timeout", "soon", "s.jsonl"],
    ] {
        let run = sandbox
            .cmd("claw-turn")
            .args(["--provider", "offline"])
            .args(args)
            .write_stdin("hi")
            .assert()
            .code(2)
            .stdout("");
        assert!(!run.stderr_text().is_empty(), "{args:?}\n{run}");
        assert!(!sandbox.exists("s.jsonl"), "{args:?}");
    }
    sandbox
        .cmd("claw-turn")
        .arg("--help")
        .assert()
        .success()
        .stdout(contains("Usage: claw-turn [OPTIONS] SESSION"));
    sandbox.cmd("claw-turn").arg("--version").assert().success().stdout(contains("claw-turn 0."));
}

#[test]
fn an_unusable_configuration_ends_with_78_before_anything_is_written() {
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    sandbox.write("bad.json", "nonsense");
    let cmd = || turn(&sandbox, &provider, &[]);
    for cmd in [
        cmd().env("CLAW_WINDOW", "many"),
        cmd().env("CLAW_PROVIDER", "oracle"),
        cmd().env("CLAW_CONFIG", "bad.json"),
        turn(&sandbox, &provider, &["--window", "100", "--max-tokens", "100"]),
        turn(&sandbox, &provider, &["--window", "100", "--reserve", "100"]),
        cmd().env_remove("CLAW_MODEL"),
        cmd().env("ANTHROPIC_AUTH_TOKEN", "a-token"),
    ] {
        cmd.assert().code(78).stdout("").stderr(contains("claw-"));
        assert!(!sandbox.exists("s.jsonl") && provider.requests().is_empty());
    }
}

#[test]
fn stdout_has_only_the_text_of_the_reply() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    for (content, stdout) in [
        (json!([thinking, text("One."), text(" Two.")]), "One. Two.\n"),
        (json!([text("Before.\n"), call, text("After.")]), "Before.\nAfter.\n"),
        (json!([call]), ""),
    ] {
        let reply = json!({"content": content, "model": "m", "stop_reason": "end_turn"});
        let (_, run) = Case::new(&Conversation::new(), &[Step::Reply(reply)], &[]);
        run.success().stdout(stdout).stderr("");
    }
}

#[test]
fn p3_a_reply_that_cannot_be_written_is_kept_and_the_turn_fails() {
    let sandbox = Sandbox::new();
    let command = "claw-turn --provider offline -m hi s.jsonl";
    sandbox.sh(&format!("{command} >/dev/full")).assert().code(74).stderr(contains("'<stdout>'"));
    sandbox.sh(&format!("{{ {command}; echo $? >&2; }} | :")).assert().success().stderr("141\n");
    assert_eq!(rebuild(&sandbox, "s.jsonl").lines().count(), 4);
}

#[test]
fn v66_a_truncated_reply_is_kept_and_shown_and_the_exit_status_is_6() {
    let content = json!([{"type": "text", "text": "So I"}]);
    let reply = json!({"content": content, "model": "m", "stop_reason": "max_tokens"});
    let (case, run) = Case::new(&chat(), &[Step::Reply(reply)], &[]);
    run.code(6).stdout("So I\n");
    assert_eq!(case.added("assistant")[0]["stop_reason"], "max_tokens");
}

/// The reply is kept; the prompt can be sent again at once, or be followed by another prompt.
#[test]
fn audit_01_a_session_continues_after_a_reply_of_only_thinking() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let redacted = json!({"type": "redacted_thinking", "data": "eHg="});
    for (content, again) in [(json!([thinking]), true), (json!([thinking, redacted]), false)] {
        let reply = json!({"content": content, "model": "m", "stop_reason": "max_tokens"});
        let (case, run) = Case::new(&chat(), &[Step::Reply(reply), Step::text("Yes.")], &[]);
        run.code(6).stdout("");
        assert_eq!(case.added("assistant")[0]["content"], content);

        let cmd = case.sandbox.cmd("claw-turn").envs(case.provider.env()).arg("--no-checkpoint");
        let cmd = if again { cmd.arg("--again") } else { cmd.args(["-m", "Well?"]) };
        cmd.arg("s.jsonl").assert().success().stdout("Yes.\n").stderr(contains("final-thinking"));
        case.provider.all_legal();
        assert_eq!(case.added("assistant").len(), 2);
        // The messages that were sent are still the first messages of the transcript.
        let last = case.provider.requests().pop().expect("a request");
        let sent = last.messages();
        let now = case.sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().json();
        assert_eq!(now[..sent.len()], *sent);
    }
}

#[test]
fn with_log_json_every_stage_writes_a_json_line() {
    let (_, run) = Case::new(&builds(), &[Step::Overflow, Step::Overflow], &["--log", "json"]);
    let run = run.success();
    let line = |line: &str| serde_json::from_str::<Value>(line).expect("a JSON line");
    let lines: Vec<Value> = run.stderr_text().lines().map(line).collect();
    let programs: Vec<&Value> = lines.iter().map(|line| &line["program"]).collect();
    let one = ["claw-call", "claw-turn", "claw-truncate"];
    let two = ["claw-call", "claw-turn", "claw-compact"];
    assert_eq!(programs, [one, two].concat());
    for stage in [&lines[2], &lines[5]] {
        let (before, after) = (stage["before"].as_u64(), stage["after"].as_u64());
        assert!(stage["outcome"] == "applied" && after < before && after.is_some(), "{stage}");
    }
}

#[test]
fn the_system_prompt_is_sent_with_every_request_for_a_reply() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new();
    builds().append(&sandbox, "it's s.jsonl");
    sandbox.write("it's system", "Be brief.");
    (0..2).for_each(|_| provider.script(Step::Overflow));
    let cmd = sandbox.cmd("claw-turn").envs(provider.env());
    cmd.args(["--system", "it's system", "--max-tokens", "123", "-m", "hi", "it's s.jsonl"])
        .assert()
        .success();
    let requests = provider.requests();
    let (summaries, answers): (Vec<_>, Vec<_>) = requests.iter().partition(|r| is_summary(r));
    assert_eq!((answers.len(), summaries.len()), (3, 1));
    for request in answers {
        let body = request.json.as_ref().expect("a body");
        assert_eq!((&body["system"], &body["max_tokens"]), (&json!("Be brief."), &json!(123)));
    }
}

#[test]
fn the_model_can_be_any_program_that_reads_messages_and_writes_records() {
    let sandbox = Sandbox::new();
    builds().append(&sandbox, "s.jsonl");
    sandbox.program(
        "model",
        r#"n=$(($(cat calls 2>/dev/null || echo 0) + 1))
        echo $n >calls
        cat >"stdin.$n"
        test $n -gt 2 || exit 3
        echo '{"type":"assistant","content":"A word.","stop_reason":"end_turn"}'"#,
    );
    // The program reports an overflow without details, and all stages still run in order.
    let cmd =
        sandbox.cmd("claw-turn").args(["--window", "9000", "--no-proactive", "--call", "model"]);
    cmd.args(["-m", PROMPT, "s.jsonl"])
        .assert()
        .success()
        .stdout("A word.\n")
        .stderr(contains("claw-truncate: shortened "))
        .stderr(contains("claw-compact: summarised "));
    assert_eq!(sandbox.read_text("calls"), "4\n");
    // What a program wrote before it failed is no reply.
    let fails = r#"echo '{"type":"assistant","content":"Half."}'; exit 42 #"#;
    let run = sandbox.cmd("claw-turn").args(["--call", fails, "-m", PROMPT, "s.jsonl"]).assert();
    run.code(42).stdout("");
    assert!(!sandbox.read_text("s.jsonl").contains("Half."));
}

#[test]
fn a_model_that_reports_too_many_bytes_without_a_record_gets_a_smaller_request() {
    let sandbox = Sandbox::new();
    builds().append(&sandbox, "s.jsonl");
    let model = r#"bytes=$(wc -c); test "$bytes" -lt 25000 || exit 4; echo '{"type":"assistant","content":"Yes."}' #"#;
    let cmd = sandbox.cmd("claw-turn").args(["--no-proactive", "--call", model]);
    let run = cmd.args(["-m", PROMPT, "s.jsonl"]).assert().success().stdout("Yes.\n");
    run.stderr(contains("too many bytes: leaving out images, then shortening results"))
        .stderr(contains("claw-truncate: shortened "));
    let stored = sandbox.read_json("s.jsonl");
    assert!(stored.iter().any(|it| it["type"] == "error" && it["class"] == "too-large"));
}

// ---- portability -----------------------------------------------------------------------------

#[test]
fn every_stage_runs_with_the_offline_provider() {
    let sandbox = Sandbox::new();
    builds_and_chat().append(&sandbox, "s.jsonl");
    let args = ["--provider", "offline", "--window", "4000", "--no-proactive"];
    let cmd = || sandbox.cmd("claw-turn").args(args).args(["-m", PROMPT, "s.jsonl"]);
    cmd()
        .assert()
        .success()
        .stdout(contains(format!(" messages: {PROMPT}\n")))
        .stderr(contains("prompt is too long: "))
        .stderr(contains("shortened "))
        .stderr(contains("summarised "));
    cmd().assert().success().stderr(contains("overflow").not());
}

#[test]
fn every_stage_runs_on_a_transcript_of_another_program() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().window(4000);
    // Records without ids are identified by their offsets.
    sandbox.write("s.jsonl", builds_and_chat().lines());
    let before = sandbox.read("s.jsonl");
    turn(&sandbox, &provider, &[])
        .assert()
        .success()
        .stderr(contains("shortened "))
        .stderr(contains("summarised "))
        .stdout(contains(PROMPT));
    assert!(sandbox.read("s.jsonl").starts_with(&before));
    let records = sandbox.read_json("s.jsonl");
    let view = |kind: &str| records.iter().find(|record| record["type"] == kind).cloned();
    let names = [
        view("truncation").expect("a truncation")["record_id"].to_string(),
        view("compaction").expect("a compaction")["first_kept_entry_id"].to_string(),
    ];
    assert!(names.iter().all(|name| name.starts_with("\"@")), "{names:?}");
    turn(&sandbox, &provider, &[]).assert().success().stderr(contains("overflow").not());
    assert_legal_but_for_the_window(&provider);
}

#[test]
fn two_concurrent_turns_lose_nothing() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new();
    (0..2).for_each(|_| provider.script(Step::Hang(Duration::from_millis(200))));
    let both: Vec<_> = ["one", "two"]
        .map(|prompt| sandbox.cmd("claw-turn").envs(provider.env()).args(["-m", prompt, "s.jsonl"]))
        .map(Cmd::spawn)
        .into();
    for mut child in both {
        assert!(child.wait().expect("an exit status").success());
    }
    let records = sandbox.read_json("s.jsonl");
    let count = |kind: &str| records.iter().filter(|record| record["type"] == kind).count();
    assert_eq!((count("user"), count("assistant")), (2, 2));
    turn(&sandbox, &provider, &[]).assert().success();
    provider.all_legal();
}

#[test]
fn every_shell_behaves_the_same() {
    let mut transcripts: Vec<(String, Vec<u8>, String)> = Vec::new();
    for shell in ["sh", "dash", "bash", "bash --posix", "busybox sh", "ksh", "zsh --emulate sh"] {
        let sandbox = Sandbox::new();
        if sandbox.sh(&format!("command -v {shell}")).assert().get_output().status.code() != Some(0)
        {
            continue;
        }
        let provider = FakeProvider::new();
        (0..2).for_each(|_| provider.script(Step::Overflow));
        builds().append(&sandbox, "s.jsonl");
        let script = format!(r#"exec {shell} "$(command -v claw-turn)" -m "$PROMPT" s.jsonl"#);
        let run = sandbox
            .sh(&script)
            .envs(provider.env())
            .env("PROMPT", PROMPT)
            .assert()
            .success()
            .stderr(contains("summarised "));
        transcripts.push((shell.to_owned(), sandbox.read("s.jsonl"), run.stdout_text()));
    }
    let (first, rest) = transcripts.split_first().expect("a shell");
    for other in rest {
        assert!((&first.1, &first.2) == (&other.1, &other.2), "{} and {}", first.0, other.0);
    }
}

#[test]
fn the_scripts_pass_shellcheck() {
    let sandbox = Sandbox::new();
    if sandbox.sh("command -v shellcheck").assert().get_output().status.code() != Some(0) {
        return;
    }
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    let script =
        r#"find "$SCRIPTS" -type f -exec grep -q '^#!/bin/sh' {} \; -exec shellcheck {} +"#;
    sandbox.sh(script).env("SCRIPTS", scripts).assert().success().stdout("");
}

#[test]
fn the_demo_carries_a_turn_through_an_overflow() {
    let run = Sandbox::new().cmd("dev/demo").arg("demo").assert().success().stderr("");
    let shown = run.stdout_text();
    assert!(shown.lines().count() <= 40, "{shown}");
    let steps = [
        "prompt is too long: ",
        "overflow: shortening tool results",
        "claw-truncate: shortened 4 results: ",
        "overflow: summarising the old part",
        "claw-compact: summarised ",
        "Reply to 11 messages: Which package do I install?\n",
        "[Previous conversation summary]",
        r#""type":"compaction""#,
        "make install PREFIX=",
    ];
    let mut rest = shown.as_str();
    for step in steps {
        (_, rest) = rest.split_once(step).unwrap_or_else(|| panic!("{step:?} in {shown}"));
    }
}

// ---- kills -----------------------------------------------------------------------------------

/// A deterministic sequence of pseudorandom numbers below one.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }
}

#[test]
fn v58_p6_a_transcript_continues_after_a_kill_at_any_moment() {
    let rounds = if env::var_os("CLAW_TEST_FULL").is_some() { 300 } else { 15 };
    let sandbox = Sandbox::new();
    builds_and_chat().append(&sandbox, "base.jsonl");
    let base = sandbox.read("base.jsonl");
    let slow = Duration::from_millis(15);
    let run = |provider: &FakeProvider| {
        (0..9).for_each(|_| provider.script(Step::Hang(slow)));
        turn(&sandbox, provider, &["--window", "12000", "--no-proactive"])
            .env("TMPDIR", sandbox.dir())
    };
    sandbox.write("s.jsonl", &base);
    // Measure the time that all stages take without a kill.
    let began = Instant::now();
    run(&FakeProvider::new().window(4000)).assert().success().stderr(contains("summarised "));
    let whole = began.elapsed();

    let mut dice = Dice(1);
    let mut seen = HashSet::new();
    for round in 0..rounds {
        sandbox.write("s.jsonl", &base);
        std::fs::remove_dir_all(sandbox.path("state")).expect("the state directory can be removed");
        let provider = FakeProvider::new().window(4000);
        let signal = if round % 2 == 0 { "KILL" } else { "TERM" };
        let mut child = run(&provider).spawn();
        // The signal is sent at a random point in this round's share of the time.
        thread::sleep(whole.mul_f64((f64::from(round) + dice.next()) / f64::from(rounds)));
        send_to_group(signal, child.id());
        let end = child.wait().expect("an exit status");
        let is_expected = [Some(0), Some(143)].contains(&end.code()) || end.signal().is_some();
        assert!(is_expected, "round {round}: {end}");

        let left = sandbox.read("s.jsonl");
        assert!(left.starts_with(&base), "round {round}");
        let rebuilt = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert();
        let messages = rebuilt.success().json();
        seen.insert(left[base.len()..].iter().filter(|byte| **byte == b'\n').count());
        if signal == "TERM" {
            sandbox.sh("ls -d claw-turn.*").assert().stdout("");
        }
        // With one more prompt, the transcript can be sent and gets a reply.
        assert!(messages.len() >= 2, "round {round}");
        run(&provider).assert().success().stdout(contains(PROMPT));
        assert_legal_but_for_the_window(&provider);
        // The turn that was killed left its temporary directory, which this one removes.
        sandbox.sh("ls -d claw-turn.*").assert().stdout("");
    }
    assert!(seen.len() > 2, "expected kills at different points: {seen:?}");
}

#[test]
fn a_failed_turn_is_retried_without_a_second_prompt() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new();
    provider.script(Step::error(401, "authentication_error", "invalid x-api-key"));
    turn(&sandbox, &provider, &[]).assert().code(77).stdout("");
    let again = || sandbox.cmd("claw-turn").envs(provider.env()).args(["--again", "s.jsonl"]);
    again().assert().success().stdout(contains(PROMPT));
    assert_eq!(
        provider.requests()[0].body,
        provider.requests()[1].body,
        "the retry must reuse the recorded prompt"
    );
    assert_eq!(
        rebuild(&sandbox, "s.jsonl").matches(PROMPT).count(),
        2,
        "expected one prompt and one reply"
    );
    again().assert().code(7).stdout("");
}

#[test]
fn a_provider_command_without_a_reply_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox
        .cmd("claw-turn")
        .args(["--call", "true", "-m", "hi", "s.jsonl"])
        .assert()
        .code(69)
        .stderr(contains("'true' gave no reply"));
}
