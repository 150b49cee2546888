//! claw-chat on a terminal and with input from a pipe: exercises from the claw0 tutorial, commands, keys, interruptions
//! and user errors.

use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::pty::{CTRL_C, CTRL_D, ENTER, Pty, can_run};
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::session::{CLAW0, claw0};

const SIZE: (u16, u16) = (100, 40);
const PROMPT: &str = "you> ";

fn chat(sandbox: &Sandbox) -> Cmd {
    let cmd = sandbox.cmd("claw-chat");
    cmd.env("CLAW_PROVIDER", "offline").env("CLAW_WINDOW", "4000")
}

/// Starts a chat on a terminal and waits for the first prompt.
fn on_a_terminal(cmd: Cmd) -> Pty {
    let mut pty = Pty::run(cmd, SIZE);
    pty.wait_for(PROMPT);
    pty
}

trait Typist {
    /// Types a line, then waits for `text` and for the next prompt.
    fn line(&mut self, line: &str, text: &str) -> &mut Self;
}

impl Typist for Pty {
    #[track_caller]
    fn line(&mut self, line: &str, text: &str) -> &mut Pty {
        self.press(line).press(ENTER).wait_for(text).wait_for(PROMPT)
    }
}

/// Runs a chat whose input is a pipe.
fn piped(sandbox: &Sandbox, lines: &str) -> Assert {
    chat(sandbox).write_stdin(lines).assert()
}

#[test]
fn the_exercise_for_claw0s_current_format_works() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.line("/new my-project", "(my-project): 0 turns restored")
        .line(
            "Tell me about Python generators",
            "Reply to 1 message: Tell me about Python generators",
        )
        .line("/new experiments", "(experiments): 0 turns restored")
        .line("/list", "(experiments)")
        .line("/switch my-p", "(my-project): 1 turn restored")
        .line("/context", " / 4,000 tokens")
        .line("/compact", "nothing to gain: 2 messages")
        .press("quit\r");
    pty.end().success();
    // The next chat resumes the session.
    let mut pty = on_a_terminal(chat(&sandbox));
    let screen = pty.line("And in tests?", "Reply to 3 messages: And in tests?").screen();
    assert!(screen.contains("(my-project): 1 turn restored"), "{screen}");
    pty.press("EXIT\r").end().success();
}

#[test]
fn the_exercise_for_claw0s_first_format_works() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.line("My name is Alice", "Reply to 1 message: My name is Alice")
        .line("And yours?", "Reply to 3 messages: And yours?")
        .press("/quit\r");
    pty.end().success();
    let id = sandbox.sh("claw-session current").assert().success().stdout_text();
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.line("/history", "My name is Alice");
    assert!(pty.screen().contains("(initial): 2 turns restored"), "{}", pty.screen());
    pty.line("/new", ": 0 turns restored")
        .line("/sessions", "(initial)")
        // /switch also accepts an id.
        .line(&format!("/switch {}", id.trim()), "(initial): 2 turns restored")
        .line("What is my name?", "Reply to 5 messages: What is my name?")
        .press(CTRL_D);
    pty.end().success();
}

/// Returns the messages that claw0 builds from a transcript in its current format. claw0 reads four types of records,
/// requires their members, adds a call to the assistant message before it, and joins consecutive results.
fn as_claw0_reads(records: &[Value]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for record in records {
        let member = |name: &str| record.get(name).expect("a member that claw0 needs").clone();
        let (role, block) = match record["type"].as_str().expect("a type") {
            kind @ ("user" | "assistant") => {
                messages.push(json!({"role": kind, "content": member("content")}));
                continue;
            }
            "tool_use" => (
                "assistant",
                json!({"type": "tool_use", "id": member("tool_use_id"),
                "name": member("name"), "input": member("input")}),
            ),
            "tool_result" => (
                "user",
                json!({"type": "tool_result",
                "tool_use_id": member("tool_use_id"), "content": member("content")}),
            ),
            _ => continue,
        };
        let continues = |last: &&mut Value| {
            last["role"] == role
                && (role == "assistant" || last["content"][0]["type"] == "tool_result")
        };
        match messages.last_mut().filter(continues).and_then(|last| last["content"].as_array_mut())
        {
            Some(blocks) => blocks.push(block),
            None => messages.push(json!({"role": role, "content": [block]})),
        }
    }
    messages
}

#[test]
fn a_workspace_of_claw0_can_be_continued_and_stays_readable_for_claw0() {
    let sandbox = claw0();
    let file = format!("{CLAW0}/sessions/49c71f1146e5.jsonl");
    let before = sandbox.read_text(&file);
    sandbox.program("model", MODEL);
    sandbox.sh(CLOCK).assert().success();
    let options = ["--call", "model", "--tools", "tools", "my-p"];
    chat(&sandbox)
        .args(options)
        .write_stdin("What time is it?\n/new ours\nhi\n/list\n")
        .assert()
        .success()
        .stderr(contains("49c71f1146e5 (my-project): 1 turn restored"))
        .stdout(contains("It is five.\n"));

    let after = sandbox.read_text(&file);
    assert!(after.starts_with(&before), "{after}");
    let added: Vec<Value> = after[before.len()..]
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        as_claw0_reads(&added),
        [
            json!({"role": "user", "content": "What time is it?"}),
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "clock", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "5\n"}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "It is five."}]}),
        ]
    );
    // claw0 lists and sorts sessions by these members.
    let index: Value =
        serde_json::from_str(&sandbox.read_text(&format!("{CLAW0}/sessions.json"))).expect("JSON");
    let index = index.as_object().expect("an object by id");
    assert_eq!(index.len(), 5);
    let labels: Vec<&str> =
        index.values().map(|entry| entry["label"].as_str().expect("a label")).collect();
    assert!(
        ["my-project", "ours", "smol"].iter().all(|label| labels.contains(label)),
        "{labels:?}"
    );
    for entry in index.values() {
        let times =
            ["created_at", "last_active"].map(|name| entry[name].as_str().expect("a time").len());
        assert_eq!(times, [32, 32], "{entry}");
    }
    assert_eq!(index["49c71f1146e5"]["message_count"], 7);
}

/// A model that calls the tool `clock` and then answers.
const MODEL: &str = r#"case $(cat) in
*tool_result*) echo '{"type":"assistant","content":[{"type":"text","text":"It is five."}]}' ;;
*) echo '{"type":"assistant","content":[]}'
echo '{"type":"tool_use","tool_use_id":"t1","name":"clock","input":{}}' ;;
esac"#;
/// A script that creates the tool `clock`.
const CLOCK: &str = r#"mkdir tools
printf '#!/bin/sh\necho 5\n' >tools/clock && chmod +x tools/clock
echo '{"description":"","input_schema":{"type":"object"}}' >tools/clock.json"#;

#[test]
fn compactions_and_turns_can_be_undone() {
    let sandbox = Sandbox::new();
    let prompts = (1..=8).map(|n| format!("Question {n} {}\n", "about this and that ".repeat(80)));
    piped(&sandbox, &prompts.collect::<String>()).success();
    let path = sandbox.sh("claw-session path initial").assert().success().stdout_text();
    let messages = || sandbox.cmd("claw-rebuild").arg(path.trim()).assert().success().stdout_text();
    let before = messages();
    piped(&sandbox, "/compact the questions\n").success();
    assert!(messages().starts_with(r#"{"role":"user","content":"[Previous conversation summary]"#));
    piped(&sandbox, "/undo\n")
        .success()
        .stderr(contains("undone: the newest compaction or truncation"));
    assert_eq!(messages(), before);
    piped(&sandbox, "/undo\n").code(5).stderr(contains("no cut is in effect"));
    piped(&sandbox, "/undo turn\n").success();
    assert_eq!(messages().lines().count(), 14);
    piped(&sandbox, "/show\n")
        .success()
        .stdout(contains("── turn 8 "))
        .stdout(contains("(retracted)"));
    piped(&sandbox, "/checkpoint\n").success();
    let status = piped(&sandbox, "/status\n").success().stdout_text();
    for line in ["turns        7\n", "compactions  0\n", "checkpoints  1\n"] {
        assert!(status.contains(line), "{status}");
    }
}

#[test]
fn a_line_can_be_edited_continued_completed_and_recalled() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    // Ctrl-C discards only the line.
    pty.press("never mind").wait_for("mind").press(CTRL_C).wait_for(PROMPT);
    pty.line("helo\x02l\x05!", "Reply to 1 message: hello!");
    // A paste of several lines is one prompt; the offline provider repeats the last line.
    pty.press("\x1b[200~one\ntwo\n\nthree\x1b[201~")
        .wait_for("three")
        .line(" four", ": three four");
    pty.press("five\\\r").wait_for("...> ").line("six", "Reply to 5 messages: six");
    // Up arrow for the history; Tab for completion.
    pty.press("\x1b[A\x1b[A").wait_for("two").press("\x15");
    pty.press("/sw\t").wait_for("/switch ").press("init\t").wait_for("initial");
    pty.line("", "(initial): 3 turns restored").line(" secret", "Reply to 7 messages:  secret");
    pty.press(CTRL_D).end().success();
    let path = sandbox.sh("claw-session path initial").assert().success().stdout_text();
    let prompts = sandbox.sh(&format!("grep '\"user\"' {path}")).assert().success().stdout_text();
    assert!(prompts.contains(r#""content":"one\ntwo\n\nthree four""#), "{prompts}");
    assert!(
        prompts.contains(r#""content":"five\nsix""#) && !prompts.contains("never"),
        "{prompts}"
    );

    let kept = sandbox.read_text("state/chat_history");
    assert!(kept.contains("hello!\n") && !kept.contains("secret"), "{kept}");
    sandbox.sh("stat -c %a state/chat_history").assert().success().stdout("600\n");
    // The next chat has the history, including entries of several lines.
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.press("\x1b[A\x1b[A\x1b[A").wait_for("two").line("", ": three four").press(CTRL_D);
    pty.end().success();
}

#[test]
fn unknown_and_invalid_commands_are_not_sent() {
    let sandbox = Sandbox::new();
    let wrong = "claw-chat: no such command: '/switchinitial'; /help lists them, and '//' begins a prompt with a slash\n";
    piped(&sandbox, "/switchinitial\n").code(2).stderr(contains(wrong)).stdout("");
    for (line, status, why) in [
        ("/switch\n", 2, "a session is required: /switch NAME"),
        ("/switch nowhere\n", 1, "no session 'nowhere'"),
        ("/delete\n", 2, "a session is required: /delete NAME"),
        ("/delete init\n", 2, "cannot delete the current session"),
        ("/history many\n", 2, "invalid value 'many' for --count: not a whole number"),
        ("/undo all\n", 2, "invalid value 'all' for --undo: use"),
        ("/\u{1b}[31m\n", 2, r"$'/\E[31m'"),
        ("/list\n/compact\nnever reached\n", 5, "nothing to gain"),
    ] {
        let run = piped(&sandbox, line).code(status).stderr(contains(why));
        assert!(
            !run.stdout_text().contains("Reply") && !run.stderr_text().contains('\u{1b}'),
            "{line}"
        );
    }
    piped(&sandbox, "//etc is what?\n\n  \n/HELP\n")
        .success()
        .stdout(contains("Reply to 1 message: /etc is what?\n  /new"));
    piped(&sandbox, "no line end").success().stdout("Reply to 3 messages: no line end\n");
}

#[test]
fn d7_sessions_are_forked_labelled_and_deleted_by_name() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "hi\n/fork idea\nmore\n/label better idea\n/switch init\n").success();
    piped(&sandbox, "/status\n").success().stdout(contains("turns        1\n"));
    piped(&sandbox, "/switch better\n/status\n/switch initial\n")
        .success()
        .stdout(contains("turns        2\n"));
    piped(&sandbox, "/delete better idea\n").success().stdout(contains(".jsonl"));
    piped(&sandbox, "/list\n").success().stdout(contains("(initial)"));
    assert_eq!(piped(&sandbox, "/list\n").lines().len(), 1);
    // On a terminal, the program asks for confirmation.
    if can_run() {
        piped(&sandbox, "/new other\n/switch init\n").success();
        let mut pty = on_a_terminal(chat(&sandbox));
        pty.press("/delete other\r")
            .wait_for("delete this session permanently? [y/N] ")
            .line("", "");
        // Ctrl-C means no.
        pty.press("/delete other\r")
            .wait_for("delete this session permanently? [y/N] ")
            .press(CTRL_C);
        pty.wait_for(PROMPT);
        pty.line("/list", "(other)");
        pty.press("/delete other\r")
            .wait_for("delete this session permanently? [y/N] ")
            .line("y", ".jsonl");
        pty.line("/list", "(initial)").press(CTRL_D).end().success();
        assert!(!pty.screen().ends_with("(other)\nyou>"), "{}", pty.screen());
    }
}

#[test]
fn options_and_session_names_select_the_session() {
    let sandbox = Sandbox::new();
    chat(&sandbox)
        .args(["--new", "work"])
        .write_stdin("hi\n")
        .assert()
        .success()
        .stderr(contains("(work): 0 turns restored"));
    chat(&sandbox)
        .args(["--workspace", "other"])
        .write_stdin("/list\n")
        .assert()
        .success()
        .stderr(contains("(initial)"));
    chat(&sandbox)
        .args(["wor"])
        .write_stdin("/list\n")
        .assert()
        .success()
        .stderr(contains("(work): 1 turn restored"));
    chat(&sandbox)
        .args(["--agent", "ops"])
        .write_stdin("/status\n")
        .assert()
        .success()
        .stdout(contains("agent        ops\n"));
    chat(&sandbox)
        .arg("nobody")
        .write_stdin("hi\n")
        .assert()
        .code(1)
        .stderr(contains("no session 'nobody'"));
    for args in [&["a", "b"][..], &["--window"], &["--nothing"], &[""]] {
        chat(&sandbox).args(args).write_stdin("hi\n").assert().code(2).stdout("");
    }
}

/// A model that answers when the file `go` exists, with text that contains an escape sequence.
const SLOW: &str = r#"cat >/dev/null; : >asked; while test ! -e go; do sleep 0.02; done
printf '%s\n' '{"type":"assistant","content":[{"type":"text","text":"late \u001b[31mred"}],"stop_reason":"end_turn"}'"#;

#[test]
fn an_interrupted_turn_can_be_continued() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.program("slow", SLOW);
    let mut pty = on_a_terminal(chat(&sandbox).args(["--call", "slow"]));
    pty.press("hello\r").wait_for("hello");
    sandbox.sh("while test ! -e asked; do sleep 0.02; done").assert().success();
    pty.press(CTRL_C)
        .wait_for("claw-chat: interrupted; /again continues the turn, /undo turn undoes it")
        .wait_for(PROMPT);
    sandbox.write("go", "");
    pty.line("/again", r"late \u{1b}[31mred").press(CTRL_D);
    pty.end().success();
    assert!(!pty.output().contains("\u{1b}[31m"), "{:?}", pty.output());
    piped(&sandbox, "/status\n").success().stdout(contains("turns        1\n"));
}

#[test]
fn the_answer_is_shown_as_it_arrives() {
    if !can_run() {
        return;
    }
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(Step::Slow(4, Duration::from_secs(60)));
    let mut pty = on_a_terminal(sandbox.cmd("claw-chat").arg("--plain").envs(provider.env()));
    pty.press("next?\r").wait_for("Reply to");
    assert!(
        !pty.screen().ends_with(PROMPT.trim_end()),
        "a prompt is shown before the answer ends: {}",
        pty.screen()
    );
    pty.press(CTRL_C).wait_for("claw-chat: interrupted").wait_for(PROMPT).press(CTRL_D);
    pty.end().success();
}

#[test]
fn tools_run_after_the_user_confirms() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.program("model", MODEL);
    sandbox.sh(CLOCK).assert().success();
    let mut pty =
        on_a_terminal(chat(&sandbox).args(["--call", "model", "--tools", "tools", "--ask"]));
    pty.press("What time is it?\r").wait_for("run clock {}? [y/N] ");
    pty.line("y", "It is five.").line("/context", "results").press(CTRL_D);
    pty.end().success();
}

/// Returns the messages of the current session.
fn messages(sandbox: &Sandbox) -> String {
    let script = "claw-rebuild \"$(claw-session path \"$(claw-session current)\")\"";
    sandbox.sh(script).assert().success().stdout_text()
}

#[test]
fn audit_04_the_advice_after_a_failure_depends_on_what_was_stored() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "hi\n").success();
    let before = messages(&sandbox);
    // The turn fails before the prompt is stored.
    let run = chat(&sandbox)
        .env("CLAW_PROVIDER", "anthropic")
        .write_stdin("lost\n")
        .assert()
        .code(77)
        .stderr(contains(
            "claw-chat: no answer (status 77); the prompt was not stored, so type it again\n",
        ));
    assert!(
        !run.stderr_text().contains("/undo") && !run.stderr_text().contains("/again"),
        "{}",
        run.stderr_text()
    );
    assert_eq!(messages(&sandbox), before);
    // The turn fails after the prompt is stored.
    sandbox.program("away", "cat >/dev/null; exit 69");
    let away = |lines: &str| chat(&sandbox).args(["--call", "away"]).write_stdin(lines).assert();
    let advice =
        "claw-chat: no answer (status 69); /again continues the turn, /undo turn undoes it\n";
    away("kept\n").code(69).stderr(contains(advice));
    away("/again\n").code(69).stderr(contains(advice));
    piped(&sandbox, "/undo turn\n").success();
    assert_eq!(messages(&sandbox), before);
    // After the undo, no prompt is waiting for an answer.
    let run = away("/again\n");
    assert!(!run.stderr_text().contains("/undo"), "{}", run.stderr_text());
}

#[test]
fn audit_04_an_undo_can_be_reversed_until_the_next_prompt() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "one\ntwo\n").success();
    let before = messages(&sandbox);
    piped(&sandbox, "/undo turn\n/undo turn\n").success().stderr(contains("/redo restores it\n"));
    assert_eq!(messages(&sandbox), "");
    piped(&sandbox, "/redo\n/redo\n").success().stderr(contains("reversed the last /undo"));
    assert_eq!(messages(&sandbox), before);
    piped(&sandbox, "/redo\n").code(5).stderr(contains("nothing to redo"));
    piped(&sandbox, "/undo turn\nthree\n/redo\n").code(5).stderr(contains("nothing to redo"));
}

#[test]
fn audit_27_each_session_of_a_chat_has_its_own_key_and_its_label_is_shown() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "one\n/new\ntwo\nthree\n/new\n").success();
    for (key, turns) in [
        ("main:cli:user", "1 turn "),
        ("main:cli:user-2", "2 turns "),
        ("main:cli:user-3", "0 turns "),
    ] {
        piped(&sandbox, &format!("/switch {key}\n"))
            .success()
            .stderr(contains(format!(": {turns}restored\n")));
    }
    piped(&sandbox, "/label\n").success().stdout("\n").stderr(contains("has no label"));
    piped(&sandbox, "/label my work\n/label\n/exit\nnever read\n").success().stdout("my work\n");
}

#[test]
fn audit_27_help_without_a_slash_is_sent_only_if_it_is_repeated() {
    let sandbox = Sandbox::new();
    let question = "claw-chat: did you mean /help? To send 'help' to the model, type it again\n";
    piped(&sandbox, "help\n").code(2).stderr(contains(question)).stdout("");
    if can_run() {
        let mut pty = on_a_terminal(chat(&sandbox));
        pty.line("help", "did you mean /help?").line("help", "Reply to 1 message: help");
        pty.line("Help", "did you mean /help?").line("hi", "Reply to 3 messages: hi");
        pty.line("Help", "did you mean /help?").press(CTRL_D).end().success();
    }
}

#[test]
fn audit_27_the_index_is_current_when_a_chat_ends() {
    let sandbox = claw0();
    let index = format!("{CLAW0}/sessions.json");
    let read = || -> Value { serde_json::from_str(&sandbox.read_text(&index)).expect("JSON") };
    let before = read();
    // claw0 resumes the session that its index lists as last active.
    let run = chat(&sandbox).arg("experiments").env("SOURCE_DATE_EPOCH", "1800000000");
    run.write_stdin("hi\nmore\n").assert().success();
    let after = read();
    let times = after.as_object().expect("an object").iter();
    let newest = times.max_by_key(|(_, entry)| entry["last_active"].to_string()).expect("one");
    assert_eq!((newest.0.as_str(), &newest.1["message_count"]), ("5d0aa520d32f", &json!(6)));
    for (id, entry) in before.as_object().expect("an object") {
        assert_eq!(after[id]["created_at"], entry["created_at"], "{id}");
    }
}

#[test]
fn audit_27_an_expired_session_is_followed_by_a_new_one() {
    let sandbox = Sandbox::new();
    let at = |minutes: u64, lines: &str| {
        let now = (1_767_225_600 + minutes * 60).to_string();
        let run = chat(&sandbox)
            .args(["--idle", "30"])
            .env("SOURCE_DATE_EPOCH", now)
            .write_stdin(lines)
            .assert()
            .success();
        run.stderr_text().to_owned()
    };
    assert!(at(0, "hi\n").contains("(initial): 0 turns restored"));
    assert!(at(30, "hi\n").contains("(initial): 1 turn restored"));
    let stderr = at(61, "hi\n/list\n");
    assert!(stderr.contains("has expired") && stderr.contains(": 0 turns restored"), "{stderr}");
    // A session that the user selects is used even if it has expired.
    let stderr = at(200, "/switch initial\nhi\nhi\n");
    assert!(stderr.ends_with("(initial): 2 turns restored\n"), "{stderr}");
    chat(&sandbox)
        .args(["--reset", "daily@25:00"])
        .write_stdin("")
        .assert()
        .code(2)
        .stderr(contains("daily@04:00"));
}

#[test]
fn audit_28_the_context_is_shown_for_an_unknown_window() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "hi\n").success();
    let run = chat(&sandbox).env("CLAW_PROVIDER", "anthropic").env("CLAW_MODEL", "mine");
    run.env_remove("CLAW_WINDOW")
        .write_stdin("/context\n")
        .assert()
        .success()
        .stdout(contains(" tokens; the window is not known: set it with --window or CLAW_WINDOW\n"))
        .stdout(contains("  user\n"));
    chat(&sandbox)
        .env_remove("CLAW_WINDOW")
        .write_stdin("/context\n")
        .assert()
        .success()
        .stdout(contains(" / 200,000 tokens\n"));
}

#[test]
fn context_prints_what_claw_estimate_prints() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "hi\nhow are you?\n").success();
    let list = sandbox.cmd("claw-session").args(["list", "--json"]).assert().success().json();
    let path = list[0]["path"].as_str().expect("a path").to_owned();
    let context = piped(&sandbox, "/context\n").success().stdout_text();
    sandbox.write("s.jsonl", sandbox.read(&path));
    for script in [
        "claw-estimate --bar --parts s.jsonl",
        "claw-rebuild --meta s.jsonl | claw-estimate --bar --parts",
    ] {
        let run = sandbox.sh(script).env("CLAW_PROVIDER", "offline").env("CLAW_WINDOW", "4000");
        let text = run.assert().success().stdout_text();
        assert!(context.contains(&text), "{context}{text}");
    }
}

#[test]
fn audit_29_a_banner_names_the_model_and_help() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    assert!(
        pty.output()
            .starts_with("claw-chat: model offline (offline); /help lists the commands\r\n")
    );
    pty.line("/model", "model offline (offline)");
    pty.line("/model mine", "model mine (offline)").line("hi", "Reply to 1 message: hi");
    pty.press(CTRL_D).end().success();
    piped(&sandbox, "/status\n").success().stdout(contains("model        mine\n"));
    let cmd = chat(&sandbox).env_remove("CLAW_PROVIDER");
    let mut pty = on_a_terminal(cmd);
    assert!(pty.output().starts_with("claw-chat: no model is set; /model NAME sets one; /help"));
    pty.press(CTRL_D).end().success();
}

#[test]
fn settings_can_be_shown_and_changed() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "config.json",
        r#"{"max-rounds":7,"profiles":{"local":{"model":"small"},"big":{"model":"large"},"away":{"agent":"other"}}}"#,
    );
    let chat = |lines: &str| {
        let cmd = sandbox
            .cmd("claw-chat")
            .env("CLAW_CONFIG", "config.json")
            .env("CLAW_PROVIDER", "offline");
        cmd.args(["--profile", "local"]).write_stdin(lines).assert()
    };
    let lines = "/model\n/set profile big\n/model\n/set model own\nhi\n/model\n/unset model\n/model\n/status\n";
    let output = chat(lines).success().stdout_text();
    let models: Vec<&str> = output.lines().filter(|line| line.starts_with("model ")).collect();
    let shown = ["small", "large", "own", "large"].map(|name| format!("model {name} (offline)"));
    assert_eq!(models[..4], shown, "{output}");
    assert_eq!(models[4], "model        own", "the turn used another model");

    chat("/set max-rounds\n/set max-rounds 9\n/set max-rounds\n/unset max-rounds\n/set max-rounds\n").success().stdout("max-rounds  7  file 'config.json'\nmax-rounds  9  CLAW_MAX_ROUNDS\nmax-rounds  7  file 'config.json'\n");
    let output = chat("/set stream no\n/set\n").success().stdout_text();
    let keys: Vec<&str> =
        output.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(keys, ["max-rounds", "model", "profile", "provider", "stream"], "{output}");
    // An invalid setting changes nothing.
    for (line, status, why) in [
        ("/set windo 5000", 2, "claw-config: unknown key 'windo'; did you mean 'window'?"),
        ("/set windo", 2, "claw-config: unknown key 'windo'; did you mean 'window'?"),
        ("/set window x", 2, "claw-config: invalid value 'x' for 'window': not a whole number"),
        ("/set profile none", 78, "no profile 'none'; the file has away, big, local"),
        ("/set system none.md", 74, "none.md': no such file"),
        ("/unset", 2, "unknown key ''"),
        ("/set agent other", 2, "cannot change the agent or the workspace of a conversation; "),
        ("/set workspace w", 2, "cannot change the agent or the workspace of a conversation; "),
        ("/set profile away", 2, "cannot change the agent or the workspace of a conversation; "),
    ] {
        chat(&format!("{line}\n")).code(status).stderr(contains(why)).stdout("");
    }
    if can_run() {
        let mut pty = on_a_terminal(self::chat(&sandbox));
        pty.line("/set system none.md", "cannot read").line("/set system", "system  -  default");
        pty.press("/set temp\t 0.5\r").wait_for(PROMPT);
        pty.line("/set temperature", "temperature  0.5  CLAW_TEMPERATURE")
            .press(CTRL_D)
            .end()
            .success();
    }
}

#[test]
fn audit_29_a_prompt_can_be_written_in_an_editor() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "/edit\n").code(2).stderr(contains("/edit needs a terminal"));
    if !can_run() {
        return;
    }
    sandbox.program("ed1", "test -t 0 && printf '/one\\ntwo\\n' >>\"$2\"");
    sandbox.program("ed2", ": >\"$1\"");
    sandbox.program("ed3", "echo x >>\"$1\"; exit 3");
    let editing = |editor: &str| {
        on_a_terminal(chat(&sandbox).env("VISUAL", editor).env("TMPDIR", sandbox.dir().as_os_str()))
    };
    let mut pty = editing("ed1 -f");
    pty.line("/edit zero", "Reply to 1 message: two").press(CTRL_D).end().success();
    assert!(messages(&sandbox).contains(r#""content":"zero/one\ntwo""#), "{}", messages(&sandbox));
    let before = messages(&sandbox);
    let mut pty = editing("ed2");
    pty.line("/edit", "nothing was sent: the prompt is empty").press(CTRL_D).end().success();
    let mut pty = editing("ed3");
    pty.line("/edit", "nothing was sent: the editor ended with status 3")
        .press(CTRL_D)
        .end()
        .success();
    assert_eq!(messages(&sandbox), before);
    sandbox.sh("ls -d claw-chat.* 2>/dev/null").assert().code(2);
}

#[test]
fn audit_29_a_session_is_exported_without_replacing_a_file() {
    let sandbox = Sandbox::new();
    let export = |line: &str| piped(&sandbox, &format!("{line}\n"));
    piped(&sandbox, "a *good* day\n").success();
    for (file, begin) in [("a b.md", "#"), ("page.html", "<!"), ("s.txt", "")] {
        export(&format!("/export {file}"))
            .success()
            .stderr(contains(format!("exported to '{file}'\n")));
        let text = sandbox.read_text(file);
        assert!(
            text.trim_start().to_lowercase().starts_with(begin) && text.contains("good"),
            "{file}: {text}"
        );
        export(&format!("/export {file}"))
            .code(2)
            .stderr(contains("file exists; give another name"));
    }
    sandbox.sh("stat -c %a s.txt; ls *.part 2>/dev/null").assert().code(2).stdout("600\n");
    export("/export s.pdf").code(2).stderr(contains("end its name in .md, .html or .txt"));
    export("/export").success().stderr(contains("exported to 'claw-"));
    export("/export no/such.md").code(74);
}

#[test]
fn audit_29_answers_are_wrapped_and_rendered_for_the_terminal() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let prompt = "This is a **very** long line of words that has to be wrapped";
    for (options, is_rendered) in [(&[][..], true), (&["--no-stream"], true), (&["--plain"], false)]
    {
        let cmd = chat(&sandbox).args(options).args(["--new"]);
        let mut pty = Pty::run(cmd, (40, 24));
        pty.wait_for(PROMPT).press(prompt).press(ENTER).wait_for("Reply to 1").wait_for(PROMPT);
        let screen = pty.screen();
        let answer = screen.split("Reply to 1").nth(1).expect("an answer").to_owned();
        let rendered = " message: This is a very long\nline of words that has to be wrapped\nyou>";
        assert_eq!(answer == rendered, is_rendered, "{options:?}: {screen}");
        assert_eq!(answer.contains("**very**"), !is_rendered, "{options:?}: {screen}");
        pty.press(CTRL_D).end().success();
    }
    // Output to a file is not rendered.
    let mut pty = Pty::run(sandbox.sh("CLAW_PROVIDER=offline claw-chat --new >out"), (40, 24));
    pty.wait_for(PROMPT).line(prompt, "wrapped\r\n").press(CTRL_D).end().success();
    assert_eq!(sandbox.read_text("out"), format!("Reply to 1 message: {prompt}\n"));
}

/// A program in place of claw-call that shows the first paragraph of an answer at once, and the second when the file
/// `go` exists.
const TWO_PARTS: &str = r#"cat >/dev/null
for reply; do :; done
printf 'The first paragraph of the answer stands here.\n\n'
: >asked
while test ! -e go; do sleep 0.02; done
printf 'The end of it.\n'
echo '{"type":"assistant","content":[{"type":"text","text":"both"}],"stop_reason":"end_turn"}' >"$reply""#;

#[test]
fn audit_29_text_typed_ahead_is_not_echoed_into_the_answer() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.program("claw-call-2", TWO_PARTS);
    let mut pty = on_a_terminal(chat(&sandbox).args(["--call", "claw-call-2"]));
    pty.press("hello\r").wait_for("The first paragraph of the answer stands here.");
    pty.press("typed ahead\r");
    std::thread::sleep(Duration::from_millis(200));
    sandbox.write("go", "");
    pty.wait_for("The end of it.")
        .wait_for("typed ahead")
        .wait_for("The end of it.")
        .wait_for(PROMPT);
    assert_eq!(pty.screen().matches("typed ahead").count(), 1, "{}", pty.screen());
    assert!(
        pty.screen().contains("stands here.\n\nThe end of it.\nyou> typed ahead\n"),
        "{}",
        pty.screen()
    );
    pty.press(CTRL_D).end().success();
}

#[test]
fn audit_29_echo_is_restored_however_a_turn_or_the_chat_ends() {
    if !can_run() {
        return;
    }
    // The script in place of claw-call, and the signal that ends the chat, if any.
    for (call, signal) in [
        ("exit 69", None),
        ("kill -9 $PPID", None),
        ("kill -TERM $(cat pid); sleep 0.2", Some("TERM")),
        ("kill -HUP $(cat pid); sleep 0.2", Some("HUP")),
        ("kill -INT 0; sleep 1", None),
    ] {
        let sandbox = Sandbox::new();
        sandbox.program("fails", &format!("stty -a <&2 | grep -q -- -echo && : >quiet\n{call}"));
        let chat = "trap - INT; echo $$ >pid; exec claw-chat --call fails";
        let script = format!("trap : INT; sh -c '{chat}'; echo ended; stty -a");
        let run = sandbox.sh(&script).env("CLAW_PROVIDER", "offline").env("CLAW_WINDOW", "4000");
        let mut pty = Pty::run(run.timeout(Duration::from_secs(60)), SIZE);
        pty.wait_for(PROMPT).press("hello\r");
        if signal.is_none() {
            pty.wait_for("claw-chat: ").wait_for(PROMPT).press(CTRL_D);
        }
        pty.wait_for("ended").wait_for(" echo ").end();
        assert!(sandbox.exists("quiet"), "{call}: {}", pty.screen());
    }
}

#[test]
fn audit_29_ctrl_c_keeps_the_part_of_the_answer_that_was_shown() {
    if !can_run() {
        return;
    }
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(Step::Slow(4, Duration::from_secs(60)));
    let cmd = sandbox.cmd("claw-chat").arg("--plain").envs(provider.env());
    let mut pty = on_a_terminal(cmd);
    pty.press("next?\r").wait_for("Reply to").press(CTRL_C);
    pty.wait_for("claw-chat: interrupted; /again continues").wait_for(PROMPT);
    pty.line("/history", "assistant").line("/again", "Reply to 1 message").press(CTRL_D);
    pty.end().success();
    let script = "claw-rebuild --interrupted \"$(claw-session path initial)\"";
    sandbox.sh(script).assert().success().stdout(contains("Reply to"));
    assert!(!messages(&sandbox).contains("interrupted"), "{}", messages(&sandbox));
    assert_eq!(messages(&sandbox).lines().count(), 2);
}
