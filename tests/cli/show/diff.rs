//! `claw-show --diff`: two sessions side by side from where they part.

use super::browser::seen;
use super::{call, reply, result, skipped, user};
use crate::common::{AssertExt, Sandbox};
use predicates::str::contains;
use serde_json::json;

/// A reply with a model and counts, which has a price.
fn priced(text: &str, tokens: u64) -> String {
    let usage = json!({"input_tokens": tokens, "output_tokens": 10});
    format!(
        "{}\n",
        json!({"type": "assistant", "content": text, "model": "claude-sonnet-4-5", "usage": usage})
    )
}

/// Two sessions that part in their second turn.
fn forks() -> Sandbox {
    let sandbox = Sandbox::new();
    let base = user("List the files.")
        + &priced("Two.", 100)
        + &user("Fix it.")
        + &call("c1")
        + &result("c1", "old");
    let own = |text: &str| base.clone() + &priced(text, 300);
    sandbox.write("a.jsonl", own("I added a line.") + &user("Thanks") + &reply("Welcome"));
    sandbox.write(
        "b.jsonl",
        own("I wrote it again.")
            + &user("Test it")
            + &reply("ok")
            + &user("Thanks")
            + &reply("Welcome"),
    );
    sandbox.write("base.jsonl", base);
    sandbox
}

#[test]
fn audit_42_two_forks_are_shown_from_where_they_part() {
    let sandbox = forks();
    let run = sandbox
        .cmd("claw-show")
        .args(["--diff", "a.jsonl", "b.jsonl"])
        .assert()
        .success()
        .stderr("");
    let text = run.stdout_text();
    let expected = "\
A · List the files.
  a.jsonl
  3 turns · 400 in · 20 out · $0.0015 · 1 call
  after that: 1 turn · 300 in · 10 out · $0.0010
B · List the files.
  b.jsonl
  4 turns · 400 in · 20 out · $0.0015 · 1 call
  after that: 2 turns · 300 in · 10 out · $0.0010

The same beginning: 1 turn · a part of turn 2 · 5 messages · 139 tokens

── turn 2 ──────────────────────────────────────────────────────────────────────

user
  Fix it.

  (the same: 2 messages)

A│ assistant · claude-sonnet-4-5 · 300 in · 10 out · $0.0010
A│   I added a line.
A│
A│ ── 300 in · 10 out · $0.0010 · 1 call
B│ assistant · claude-sonnet-4-5 · 300 in · 10 out · $0.0010
B│   I wrote it again.
B│
B│ ── 300 in · 10 out · $0.0010 · 1 call

── B turn 3 ────────────────────────────────────────────────────────────────────

B│ user
B│   Test it
B│
B│ assistant
B│   ok

── A turn 3 · B turn 4 ─────────────────────────────────────────────────────────

user
  Thanks

  (the same: 1 message)

";
    assert_eq!(text, expected, "{text}");
}

#[test]
fn audit_42_sessions_without_a_difference_or_a_common_beginning() {
    let sandbox = forks();
    sandbox.write("other.jsonl", user("Why?") + &reply("Because."));
    sandbox.write("empty.jsonl", "");
    for (a, b, line) in [
        ("a.jsonl", "a.jsonl", "The sessions are the same: 3 turns · 8 messages · "),
        ("base.jsonl", "a.jsonl", "The same beginning: 1 turn · a part of turn 2 · 5 messages"),
        ("a.jsonl", "other.jsonl", "The sessions have no common beginning.\n"),
        ("empty.jsonl", "other.jsonl", "The sessions have no common beginning.\n"),
        ("empty.jsonl", "empty.jsonl", "The sessions are the same.\n"),
    ] {
        let run = sandbox.cmd("claw-show").args(["--diff", a, b]).assert().success();
        assert!(run.stdout_text().contains(line), "{a} {b}\n{run}");
    }
    let same = sandbox.cmd("claw-show").args(["--diff", "a.jsonl", "a.jsonl"]).assert();
    assert!(!same.stdout_text().contains("turn 1 ─"), "{same}");
    let full = sandbox.cmd("claw-show").args(["--diff", "--full", "a.jsonl", "a.jsonl"]).assert();
    assert!(
        full.stdout_text().contains("── turn 1 ─") && full.stdout_text().contains("Welcome"),
        "{full}"
    );
}

#[test]
fn audit_42_a_copy_of_a_session_is_the_same_and_a_branch_is_compared_with_the_newest_one() {
    let sandbox = forks();
    let script = "claw-session new --label work >/dev/null && claw-append \"$(claw-session path work)\" <base.jsonl && \
                  claw-session fork work --label copy >/dev/null && \
                  claw-show --diff \"$(claw-session path work)\" \"$(claw-session path copy)\"";
    let run = sandbox.sh(script).assert().success();
    assert!(run.stdout_text().contains("The sessions are the same: 2 turns · 5 messages"), "{run}");
    // A session of Claude Code with two branches.
    let record = |kind: &str, id: &str, parent: &str, text: &str| {
        let parent = Some(parent).filter(|it| !it.is_empty());
        let message = json!({"role": kind, "content": text, "id": format!("m{id}")});
        format!(
            "{}\n",
            json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message})
        )
    };
    let tree = record("user", "1", "", "Begin")
        + &record("assistant", "2", "1", "Begun")
        + &record("user", "3", "2", "Left")
        + &record("assistant", "4", "3", "Gone left")
        + &record("user", "5", "2", "Right")
        + &record("assistant", "6", "5", "Gone right");
    sandbox.write("tree.jsonl", tree);
    let run =
        sandbox.cmd("claw-show").args(["--diff", "--leaf", "4", "tree.jsonl"]).assert().success();
    let text = run.stdout_text();
    assert!(text.contains("The same beginning: 1 turn · 2 messages"), "{text}");
    assert!(text.contains("A│   Gone right") && text.contains("B│   Gone left"), "{text}");
    assert!(text.contains("tree.jsonl (4)"), "{text}");
}

#[test]
fn audit_42_columns_fit_the_width_and_fall_back_below_80() {
    let sandbox = forks();
    let long = "語".repeat(300) + &"\u{1b}[31mx\u{202e}".repeat(50);
    let code = format!("```\n{}\n```", "let x = 1; ".repeat(40));
    sandbox.write("c.jsonl", user("q") + &reply(&long) + &user("p") + &reply(&code));
    let show = |args: &[&str]| {
        sandbox
            .cmd("claw-show")
            .arg("--diff")
            .args(args)
            .args(["a.jsonl", "c.jsonl"])
            .assert()
            .success()
            .stdout_text()
    };
    for width in [80, 81, 120, 200] {
        for color in ["never", "always"] {
            let text = show(&["--width", &width.to_string(), "--color", color]);
            let text = without_styles(&text);
            assert!(text.contains(" │ user\n"), "{text}");
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "{width}: {line}");
            }
            let rows: Vec<&str> = text.lines().filter(|line| line.contains('│')).collect();
            let column = |line: &&str| {
                unicode_width::UnicodeWidthStr::width(line.split('│').next().unwrap_or(""))
            };
            assert!(rows.iter().all(|row| column(row) == (width - 3) / 2 + 1), "{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        }
    }
    assert!(show(&["--width", "79"]).contains("A│ user\n"));
    assert!(show(&[]).contains("A│ user\n"), "not a terminal");
    if sandbox.sh("command -v script").assert().get_output().status.code() != Some(0) {
        skipped("no script(1)");
        return;
    }
    for (columns, begin) in [(100, "│"), (60, "A│")] {
        let script = format!(
            "script -qec 'stty cols {columns}; NO_COLOR=1 claw-show --diff a.jsonl c.jsonl' /dev/null"
        );
        let text = sandbox.sh(&script).assert().success().stdout_text();
        assert_eq!(text.contains("A│"), begin == "A│", "{columns}: {text}");
    }
}

/// Removes the terminal codes of styles.
fn without_styles(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("\u{1b}", |(_, rest)| rest))
}

#[test]
fn audit_42_a_comparison_is_a_page_without_scripts_that_fits_a_phone() {
    let sandbox = forks();
    let hostile = super::data("show/hostile.jsonl");
    let everything = super::data("show/everything.jsonl");
    sandbox
        .cmd("claw-show")
        .args(["--diff", "a.jsonl", "b.jsonl", "--output", "d.html"])
        .assert()
        .success()
        .stdout("");
    let hostile = sandbox
        .cmd("claw-show")
        .args(["--diff", "--output", "h.html"])
        .args([everything, hostile])
        .assert();
    hostile.success();
    let page = sandbox.read_text("d.html");
    for part in [
        "<h1 dir=\"auto\">Comparison: List the files.</h1>",
        "<summary>The same beginning: 1 turn · a part of turn 2 · 5 messages",
        "<section class=\"turn\" id=\"a2-b2\">",
        "<p class=\"which\">B</p>",
        "<summary>the same: 2 messages</summary>",
        "after that: 2 turns",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let pages =
        json!([["wide", "d.html", 1280], ["phone", "d.html", 390], ["hostile", "h.html", 390]]);
    let Some(seen) = seen(&sandbox, &pages) else { return };
    for name in ["wide", "phone", "hostile"] {
        let own = &seen[name];
        assert_eq!(own["overflow"], 0, "{name}: {own}");
        assert_eq!((&own["active"], &own["handlers"]), (&json!(0), &json!(0)), "{name}: {own}");
        assert_eq!(own["wide"], json!([]), "{name}");
    }
}

#[test]
fn audit_42_a_comparison_is_redacted_and_in_the_language_of_the_reader() {
    let sandbox = forks();
    sandbox.write("patterns", "word added|wrote\n");
    let show = |args: &[&str]| {
        let run = sandbox.cmd("claw-show").args(["--diff", "--redact", "patterns"]).args(args);
        run.args(["a.jsonl", "b.jsonl"]).assert().success().stdout_text()
    };
    for format in ["text", "html"] {
        let text = show(&["--format", format]);
        assert!(
            !text.contains("I added")
                && !text.contains("I wrote")
                && text.contains("[REDACTED:word]"),
            "{text}"
        );
    }
    assert!(show(&["--language", "ja"]).contains("共通の始まり: 1 ターン · ターン 2 の一部"));
    assert!(show(&["--language", "zh"]).contains("共同的开头：1 轮"));
}

#[test]
fn audit_42_a_comparison_needs_two_sessions() {
    let sandbox = forks();
    for (args, error) in [
        (&["a.jsonl"][..], "--diff takes two files"),
        (&[], "--diff takes two files"),
        (&["a.jsonl", "b.jsonl", "base.jsonl"], "--diff takes two files"),
        (&["-", "-"], "cannot compare '<stdin>' with itself"),
        (&["--leaf", "x", "a.jsonl", "b.jsonl"], "--diff with --leaf takes one file"),
        (&["--format", "markdown", "a.jsonl", "b.jsonl"], "--diff writes text or html"),
        (&["--turn", "1", "a.jsonl", "b.jsonl"], "--turn"),
    ] {
        sandbox
            .cmd("claw-show")
            .arg("--diff")
            .args(args)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(error));
    }
    sandbox.cmd("claw-show").args(["--diff", "a.jsonl", "missing.jsonl"]).assert().code(74);
    let run = sandbox.sh("claw-show --diff - b.jsonl <a.jsonl").assert().success();
    assert!(run.stdout_text().contains("<stdin>"), "{run}");
}
