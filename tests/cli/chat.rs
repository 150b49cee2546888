//! claw-chat: the "Try it" of both of claw0's chapters, typed on a terminal; what a person types by mistake; and
//! the same without a terminal.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::pty::{CTRL_C, CTRL_D, ENTER, Pty, is_there};
use crate::common::{Cmd, Run, Sandbox, hears};
use crate::session::{CLAW0, claw0};

const SIZE: (u16, u16) = (100, 40);
const PROMPT: &str = "you> ";

fn chat(sandbox: &Sandbox) -> Cmd {
    let cmd = sandbox.cmd("claw-chat");
    cmd.env("CLAW_PROVIDER", "offline").env("CLAW_WINDOW", "4000").timeout(Duration::from_secs(60))
}

/// A chat on a terminal that waits for the first line.
fn on_a_terminal(cmd: Cmd) -> Pty {
    let mut pty = Pty::run(cmd, SIZE);
    pty.wait_for(PROMPT);
    pty
}

trait Typist {
    /// Types a line, and waits until this text came and then the next prompt.
    fn line(&mut self, line: &str, text: &str) -> &mut Self;
}

impl Typist for Pty {
    #[track_caller]
    fn line(&mut self, line: &str, text: &str) -> &mut Pty {
        self.press(line).press(ENTER).wait_for(text).wait_for(PROMPT)
    }
}

/// What is said to lines that are no terminal's.
fn piped(sandbox: &Sandbox, lines: &str) -> Run {
    chat(sandbox).stdin(lines).run()
}

#[test]
fn the_present_chapter_of_claw0_can_be_tried() {
    if !is_there() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.line("/new my-project", "(my-project): 0 turns restored")
        .line(
            "Tell me about Python generators",
            "Reply to 1 messages: Tell me about Python generators",
        )
        .line("/new experiments", "(experiments): 0 turns restored")
        .line("/list", "(experiments)")
        .line("/switch my-p", "(my-project): 1 turn restored")
        .line("/context", " / 4,000 tokens")
        .line("/compact", "nothing to gain: 2 messages")
        .press("quit\r");
    pty.end().ok();
    // What was said is there again.
    let mut pty = on_a_terminal(chat(&sandbox));
    let screen = pty.line("And in tests?", "Reply to 3 messages: And in tests?").screen();
    assert!(screen.contains("(my-project): 1 turn restored"), "{screen}");
    pty.press("EXIT\r").end().ok();
}

#[test]
fn the_first_chapter_of_claw0_can_be_tried() {
    if !is_there() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.line("My name is Alice", "Reply to 1 messages: My name is Alice")
        .line("And yours?", "Reply to 3 messages: And yours?")
        .press("/quit\r");
    pty.end().ok();
    let id = sandbox.sh("claw-session current").run().ok().stdout_text();
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.line("/history", "My name is Alice");
    assert!(pty.screen().contains("(initial): 2 turns restored"), "{}", pty.screen());
    pty.line("/new", ": 0 turns restored")
        .line("/sessions", "(initial)")
        // A key names the newest session that has it; an id the other.
        .line(&format!("/switch {}", id.trim()), "(initial): 2 turns restored")
        .line("What is my name?", "Reply to 5 messages: What is my name?")
        .press(CTRL_D);
    pty.end().ok();
}

/// The messages that claw0's present program makes of a transcript: it knows four types, needs their members, and
/// pairs by position.
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
        let goes_on = |last: &&mut Value| {
            last["role"] == role
                && (role == "assistant" || last["content"][0]["type"] == "tool_result")
        };
        match messages.last_mut().filter(goes_on).and_then(|last| last["content"].as_array_mut()) {
            Some(blocks) => blocks.push(block),
            None => messages.push(json!({"role": role, "content": [block]})),
        }
    }
    messages
}

#[test]
fn a_workspace_of_claw0_is_gone_on_with_and_handed_back() {
    let sandbox = claw0();
    let file = format!("{CLAW0}/sessions/49c71f1146e5.jsonl");
    let before = sandbox.read_text(&file);
    sandbox.program("model", MODEL);
    sandbox.sh(CLOCK).run().ok();
    let options = ["--call", "model", "--tools", "tools", "my-p"];
    let run = chat(&sandbox).args(options).stdin("What time is it?\n/new ours\nhi\n/list\n").run();
    run.ok().err_has("49c71f1146e5 (my-project): 1 turn restored").stdout_has("It is five.\n");

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
    // What claw0 lists and sorts by.
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

/// A model that asks a clock, and the clock.
const MODEL: &str = r#"case $(cat) in
*tool_result*) echo '{"type":"assistant","content":[{"type":"text","text":"It is five."}]}' ;;
*) echo '{"type":"assistant","content":[]}'
echo '{"type":"tool_use","tool_use_id":"t1","name":"clock","input":{}}' ;;
esac"#;
const CLOCK: &str = r#"mkdir tools
printf '#!/bin/sh\necho 5\n' >tools/clock && chmod +x tools/clock
echo '{"description":"","input_schema":{"type":"object"}}' >tools/clock.json"#;

#[test]
fn a_long_talk_is_compacted_and_the_cut_is_taken_back() {
    let sandbox = Sandbox::new();
    let says = (1..=8).map(|n| format!("Question {n} {}\n", "about this and that ".repeat(20)));
    piped(&sandbox, &says.collect::<String>()).ok();
    let path = sandbox.sh("claw-session path initial").run().ok().stdout_text();
    let messages = || sandbox.cmd("claw-rebuild").arg(path.trim()).run().ok().stdout_text();
    let before = messages();
    piped(&sandbox, "/compact the questions\n").ok();
    assert!(messages().starts_with(r#"{"role":"user","content":"[Previous conversation summary]"#));
    piped(&sandbox, "/undo\n").ok().err_has("taken back: the newest cut");
    assert_eq!(messages(), before);
    piped(&sandbox, "/undo\n").code(5).err_has("no cut counts");
    piped(&sandbox, "/undo turn\n").ok();
    assert_eq!(messages().lines().count(), 14);
    piped(&sandbox, "/show\n").ok().stdout_has("── turn 8 ").stdout_has("(taken back)");
    piped(&sandbox, "/checkpoint\n").ok();
    let status = piped(&sandbox, "/status\n").ok().stdout_text();
    for line in ["turns        7\n", "compactions  0\n", "checkpoints  1\n"] {
        assert!(status.contains(line), "{status}");
    }
}

#[test]
fn a_line_is_edited_kept_and_completed() {
    if !is_there() || !hears(2) {
        return;
    }
    let sandbox = Sandbox::new();
    let mut pty = on_a_terminal(chat(&sandbox));
    // Ctrl-C takes back the line alone.
    pty.press("never mind").wait_for("mind").press(CTRL_C).wait_for(PROMPT);
    pty.line("helo\x02l\x05!", "Reply to 1 messages: hello!");
    // What is pasted is one prompt; the offline provider repeats its last line.
    pty.press("\x1b[200~one\ntwo\n\nthree\x1b[201~")
        .wait_for("three")
        .line(" four", ": three four");
    pty.press("five\\\r").wait_for("...> ").line("six", "Reply to 5 messages: six");
    // Arrow up; the tabulator.
    pty.press("\x1b[A\x1b[A").wait_for("two").press("\x15");
    pty.press("/sw\t").wait_for("/switch ").press("init\t").wait_for("initial");
    pty.line("", "(initial): 3 turns restored").line(" secret", "Reply to 7 messages:  secret");
    pty.press(CTRL_D).end().ok();
    let said = sandbox.sh("claw-session path initial").run().ok().stdout_text();
    let said = sandbox.sh(&format!("grep '\"user\"' {said}")).run().ok().stdout_text();
    assert!(said.contains(r#""content":"one\ntwo\n\nthree four""#), "{said}");
    assert!(said.contains(r#""content":"five\nsix""#) && !said.contains("never"), "{said}");

    let kept = sandbox.read_text("state/chat_history");
    assert!(kept.contains("hello!\n") && !kept.contains("secret"), "{kept}");
    sandbox.sh("stat -c %a state/chat_history").run().ok().stdout_is("600\n");
    // The next talk has the history, lines that belong together and all.
    let mut pty = on_a_terminal(chat(&sandbox));
    pty.press("\x1b[A\x1b[A\x1b[A").wait_for("two").line("", ": three four").press(CTRL_D);
    pty.end().ok();
}

#[test]
fn what_is_no_command_is_not_sent() {
    let sandbox = Sandbox::new();
    let wrong = "claw-chat: no such command: '/switchinitial'; /help lists them, and '//' begins a prompt with a slash\n";
    piped(&sandbox, "/switchinitial\n").code(2).err_has(wrong).stdout_is("");
    for (line, status, why) in [
        ("/switch\n", 2, "which one? /switch NAME"),
        ("/switch nowhere\n", 1, "no session 'nowhere'"),
        ("/delete\n", 2, "which one? /delete NAME"),
        ("/delete init\n", 2, "you are in this session"),
        ("/history many\n", 2, "'many' is no number"),
        ("/undo all\n", 2, "cannot take back 'all'"),
        ("/\u{1b}[31m\n", 2, r"$'/\E[31m'"),
        ("/list\n/compact\nnever reached\n", 5, "nothing to gain"),
    ] {
        let run = piped(&sandbox, line);
        run.code(status).err_has(why);
        assert!(!run.stdout_text().contains("Reply") && !run.stderr.contains('\u{1b}'), "{line}");
    }
    piped(&sandbox, "//etc is what?\n\n  \n/HELP\n")
        .ok()
        .stdout_has("Reply to 1 messages: /etc is what?\n  /new");
    piped(&sandbox, "no line end").ok().stdout_is("Reply to 3 messages: no line end\n");
}

#[test]
fn d7_sessions_are_forked_labelled_and_deleted_by_name() {
    let sandbox = Sandbox::new();
    piped(&sandbox, "hi\n/fork idea\nmore\n/label better idea\n/switch init\n").ok();
    piped(&sandbox, "/status\n").ok().stdout_has("turns        1\n");
    piped(&sandbox, "/switch better\n/status\n/switch initial\n")
        .ok()
        .stdout_has("turns        2\n");
    piped(&sandbox, "/delete better idea\n").ok().stdout_has(".jsonl");
    piped(&sandbox, "/list\n").ok().stdout_has("(initial)");
    assert_eq!(piped(&sandbox, "/list\n").lines().len(), 1);
    // On a terminal that is asked first.
    if is_there() {
        piped(&sandbox, "/new other\n/switch init\n").ok();
        let mut pty = on_a_terminal(chat(&sandbox));
        pty.press("/delete other\r").wait_for("delete it for ever? [y/N] ").line("", "");
        pty.line("/list", "(other)");
        pty.press("/delete other\r").wait_for("delete it for ever? [y/N] ").line("y", ".jsonl");
        pty.line("/list", "(initial)").press(CTRL_D).end().ok();
        assert!(!pty.screen().ends_with("(other)\nyou>"), "{}", pty.screen());
    }
}

#[test]
fn options_and_names_choose_the_session() {
    let sandbox = Sandbox::new();
    chat(&sandbox)
        .args(["--new", "work"])
        .stdin("hi\n")
        .run()
        .ok()
        .err_has("(work): 0 turns restored");
    chat(&sandbox).args(["--workspace", "other"]).stdin("/list\n").run().ok().err_has("(initial)");
    chat(&sandbox).args(["wor"]).stdin("/list\n").run().ok().err_has("(work): 1 turn restored");
    chat(&sandbox)
        .args(["--agent", "ops"])
        .stdin("/status\n")
        .run()
        .ok()
        .stdout_has("agent        ops\n");
    chat(&sandbox).arg("nobody").stdin("hi\n").run().code(1).err_has("no session 'nobody'");
    for args in [&["a", "b"][..], &["--window"], &["--nothing"], &[""]] {
        chat(&sandbox).args(args).stdin("hi\n").run().code(2).stdout_is("");
    }
}

/// A model that answers when the test says so, and with what no terminal should obey.
const SLOW: &str = r#"cat >/dev/null; : >asked; while test ! -e go; do sleep 0.02; done
printf '%s\n' '{"type":"assistant","content":[{"type":"text","text":"late \u001b[31mred"}],"stop_reason":"end_turn"}'"#;

#[test]
fn a_turn_is_interrupted_and_goes_on_later() {
    if !is_there() || !hears(2) {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.program("slow", SLOW);
    let mut pty = on_a_terminal(chat(&sandbox).args(["--call", "slow"]));
    pty.press("hello\r").wait_for("hello");
    sandbox.sh("while test ! -e asked; do sleep 0.02; done").run().ok();
    pty.press(CTRL_C).wait_for("claw-chat: interrupted; /again goes on").wait_for(PROMPT);
    sandbox.write("go", "");
    pty.line("/again", r"late \u{1b}[31mred").press(CTRL_D);
    pty.end().ok();
    assert!(!pty.output().contains("\u{1b}[31m"), "{:?}", pty.output());
    piped(&sandbox, "/status\n").ok().stdout_has("turns        1\n");
}

#[test]
fn the_answer_is_shown_as_it_comes() {
    if !is_there() || !hears(2) {
        return;
    }
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(Step::Slow(4, Duration::from_secs(60)));
    let mut pty = on_a_terminal(sandbox.cmd("claw-chat").envs(provider.env()));
    pty.press("next?\r").wait_for("Reply to");
    assert!(
        !pty.screen().ends_with(PROMPT.trim_end()),
        "the answer has not ended: {}",
        pty.screen()
    );
    pty.press(CTRL_C).wait_for("claw-chat: interrupted").wait_for(PROMPT).press(CTRL_D);
    pty.end().ok();
}

#[test]
fn tools_are_run_when_the_user_says_so() {
    if !is_there() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.program("model", MODEL);
    sandbox.sh(CLOCK).run().ok();
    let mut pty =
        on_a_terminal(chat(&sandbox).args(["--call", "model", "--tools", "tools", "--ask"]));
    pty.press("What time is it?\r")
        .wait_for("claw-turn: running clock")
        .wait_for("run clock {}? [y/N] ");
    pty.line("y", "It is five.").line("/context", "results").press(CTRL_D);
    pty.end().ok();
}
