//! Untrusted text never controls a terminal: control characters are escaped in diagnostics about transcripts, messages
//! and providers, and in a reply that is shown on a terminal. Data is not changed.

use assert_cmd::assert::Assert;
use predicates::str::contains;

use crate::common::{AssertExt, Sandbox};

/// The output of a hostile tool: a colour, its eight-bit form, an overwritten line, a DEL character, and text that runs
/// backwards. It is the content of a JSON string, and escapes only what JSON requires.
const EVIL: &str = "\\u001b[31m\u{9b}31m\\r\u{7f}\u{202e}evil";

/// [`EVIL`] as diagnostics show it.
const SHOWN: &str = r"\u{1b}[31m\u{9b}31m\r\u{7f}\u{202e}evil";

/// [`EVIL`] as JSON diagnostics show it.
const SHOWN_JSON: &str = r"\u001b[31m\u009b31m\r\u007f\u202eevil";

/// Checks that `text` has only lines of printable characters.
#[track_caller]
fn assert_harmless(text: &str) {
    let is_odd = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
    let odd: Vec<char> = text.chars().filter(is_odd).collect();
    assert!(odd.is_empty(), "{odd:?} in {text:?}");
}

/// Checks that standard error is harmless and shows [`EVIL`] escaped, in both log formats.
#[track_caller]
fn assert_escaped(run: impl Fn(&[&str]) -> Assert) {
    for (form, shown) in [("text", SHOWN), ("json", SHOWN_JSON)] {
        let run = run(&["--log", form]);
        assert_harmless(run.stderr_text());
        run.stderr(contains(shown));
    }
}

#[test]
fn findings_escape_the_text_of_a_transcript() {
    let sandbox = Sandbox::new();
    let result = format!(r#"{{"type":"tool_result","tool_use_id":"{EVIL}","content":"x"}}"#);
    sandbox
        .write("s.jsonl", format!(r#"{{"{EVIL}":1,"{EVIL}":2,"type":"{EVIL}"}}"#) + "\n" + &result);
    assert_escaped(|args| sandbox.cmd("claw-rebuild").args(args).arg("s.jsonl").assert());
    let run = sandbox.cmd("claw-check").arg("s.jsonl").assert();
    assert_harmless(&run.stdout_text());
    run.stdout(contains("duplicate-member"))
        .stdout(contains("orphan-result"))
        .stdout(contains(SHOWN_JSON));
}

#[test]
fn errors_escape_the_text_of_records_and_messages() {
    let sandbox = Sandbox::new();
    let record = format!(
        r#"{{"type":"user","content":[{{"type":"tool_use","name":"f","input":1}},{{"{EVIL}":1}}]}}"#
    );
    let run = sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(record).assert();
    assert_harmless(run.code(65).stderr_text());
    let message = format!(r#"{{"role":"{EVIL}","content":"x"}}"#);
    for (program, args) in [
        ("claw-estimate", &[][..]),
        ("claw-truncate", &["--window", "1000"]),
        ("claw-compact", &["--plan"]),
        ("claw-checkpoint", &["--if-due"]),
    ] {
        let cmd = || sandbox.cmd(program).args(args).write_stdin(message.clone());
        assert_escaped(|args| cmd().args(args).assert());
    }
}

#[test]
fn a_printed_record_is_escaped_only_with_printable() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", format!(r#"{{"type":"user","content":"a\tb\n{EVIL}"}}"#));
    let record = || sandbox.cmd("claw-rebuild").args(["--record", "@0", "s.jsonl"]);
    let raw = "a\tb\n\u{1b}[31m\u{9b}31m\r\u{7f}\u{202e}evil\n";
    record().assert().success().stdout(raw);
    record().arg("--printable").assert().success().stdout(format!("a\tb\n{SHOWN}\n"));
    sandbox.cmd("claw-rebuild").args(["--printable", "s.jsonl"]).assert().code(2);
}

#[test]
#[allow(clippy::print_stdout, reason = "reports a skipped test")]
fn a_reply_is_escaped_on_a_terminal_and_unchanged_in_a_pipe() {
    let sandbox = Sandbox::new();
    let reply = format!(
        r#"{{"type":"assistant","content":[{{"type":"text","text":"red\n{EVIL}"}}],"stop_reason":"end_turn"}}"#
    );
    sandbox.write("reply", reply);
    // A model that ignores its options, reads the messages and answers.
    sandbox.program("model", "cat >/dev/null; cat reply");
    let turn = "claw-turn --call model -m hi s.jsonl";
    sandbox.sh(turn).assert().success().stdout("red\n\u{1b}[31m\u{9b}31m\r\u{7f}\u{202e}evil\n");
    if sandbox.sh("command -v script").assert().get_output().status.code() != Some(0) {
        println!("skipped: no script(1)");
        return;
    }
    let run = sandbox.sh(&format!("script -qec '{turn}' /dev/null")).assert();
    // The terminal itself adds a carriage return to each line end.
    let shown = run.success().stdout_text().replace("\r\n", "\n");
    assert_harmless(&shown);
    assert_eq!(shown, format!("red\n{SHOWN}\n"));
}

#[cfg(feature = "http")]
mod calls {
    use super::*;
    use crate::common::provider::{FakeProvider, Step};

    /// Some providers repeat the request in a refusal.
    #[test]
    fn a_refusal_escapes_the_text_of_the_provider() {
        let provider = FakeProvider::new();
        let sandbox = Sandbox::new();
        let text = "\u{1b}[31m\u{9b}31m\r\u{7f}\u{202e}evil";
        let ask = r#"{"role":"user","content":"hi"}"#;
        assert_escaped(|args| {
            provider.script(Step::error(400, "invalid_request_error", text));
            let run =
                sandbox.cmd("claw-call").envs(provider.env()).args(args).write_stdin(ask).assert();
            assert!(run.get_output().status.code() == Some(76), "the call must fail\n{run}");
            run
        });
        let message = format!(r#"{{"role":"{EVIL}","content":"x"}}"#);
        assert_escaped(|args| {
            sandbox
                .cmd("claw-call")
                .envs(provider.env())
                .args(args)
                .write_stdin(message.clone())
                .assert()
        });
    }
}
