//! Conversations to test with, and functions that append them to a transcript, rebuild the messages of a transcript,
//! and run a program on these messages.

use assert_cmd::assert::Assert;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// Records to be appended to a transcript.
#[derive(Clone, Default)]
pub struct Conversation {
    records: Vec<Value>,
    calls: usize,
}

impl Conversation {
    /// Returns an empty conversation.
    pub fn new() -> Conversation {
        Conversation::default()
    }

    /// Returns `n` alternating messages, the user's first: short questions, and answers of `words` words.
    pub fn plain(n: usize, words: usize) -> Conversation {
        (0..n).fold(Conversation::new(), |conversation, i| match i % 2 {
            0 => conversation.user(&format!("question {i}")),
            _ => conversation.assistant(&format!("answer {i}: {}", self::words(words))),
        })
    }

    /// Returns a conversation described by `kinds`, one letter per message: `u` and `a` are text, `c` is an assistant
    /// text with a call and `r` the call's result; `C` is an assistant text with two calls and `R` their results in
    /// reverse order.
    pub fn of(kinds: &str, words: usize) -> Conversation {
        let text = self::words(words);
        kinds.chars().fold(Conversation::new(), |conversation, kind| match kind {
            'u' => conversation.user(&text),
            'a' => conversation.assistant(&text),
            'c' => conversation.assistant("I look.").call("f", json!({})),
            'r' => conversation.result(text.clone()),
            'C' => conversation.assistant("I look.").call("f", json!({})).call("g", json!({})),
            'R' => conversation.result(text.clone()).answer(1, text.clone()),
            _ => conversation,
        })
    }

    /// Adds any record.
    pub fn record(mut self, record: Value) -> Conversation {
        self.records.push(record);
        self
    }

    /// Adds a user message.
    pub fn user(self, text: &str) -> Conversation {
        self.record(json!({"type": "user", "content": text}))
    }

    /// Adds an assistant message.
    pub fn assistant(self, text: &str) -> Conversation {
        let content = json!([{"type": "text", "text": text}]);
        self.record(json!({"type": "assistant", "content": content, "stop_reason": "end_turn"}))
    }

    /// Adds a tool call; the ids of the calls are `call_1`, `call_2` and so on.
    pub fn call(mut self, name: &str, input: Value) -> Conversation {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        self.record(json!({"type": "tool_use", "tool_use_id": id, "name": name, "input": input}))
    }

    /// Adds the result of the newest call.
    pub fn result(self, content: impl Into<Value>) -> Conversation {
        self.answer(0, content)
    }

    /// Adds the result of the call that was added `back` calls before the newest one.
    pub fn answer(self, back: usize, content: impl Into<Value>) -> Conversation {
        let id = format!("call_{}", self.calls - back);
        let content = content.into();
        self.record(json!({"type": "tool_result", "tool_use_id": id, "content": content}))
    }

    /// Adds a short assistant message, a tool call and its result.
    pub fn tool(self, result: impl Into<Value>) -> Conversation {
        let path = format!("src/file_{}.rs", self.calls + 1);
        self.assistant("I look.").call("read_file", json!({"path": path})).result(result)
    }

    /// Returns the records as lines.
    pub fn lines(&self) -> String {
        self.records.iter().map(|record| format!("{record}\n")).collect()
    }

    /// Appends the records to a transcript.
    #[track_caller]
    pub fn append(&self, sandbox: &Sandbox, file: &str) {
        append(sandbox, file, self.lines());
    }
}

/// Six turns with long results: about 9000 tokens as the fake provider counts.
#[cfg(feature = "http")]
pub fn builds() -> Conversation {
    (1..=6).fold(Conversation::new(), |conversation, n| {
        let conversation = conversation.user(&format!("Build target {n}.")).tool(log(150));
        conversation.assistant(&format!("Target {n} fails: a header is missing."))
    })
}

/// Six turns of text: about 4700 tokens as the fake provider counts.
#[cfg(feature = "http")]
pub fn chat() -> Conversation {
    Conversation::plain(12, 600)
}

/// Returns `n` words that count as one token each, even in the estimate that is used for an unknown model.
pub fn words(n: usize) -> String {
    "snow ".repeat(n)
}

/// Returns the output of a build: `lines` ordinary lines, and the important one at the end.
pub fn log(lines: usize) -> String {
    let steps =
        (1..=lines).map(|i| format!("step {i}: compiled module_{i} in {} ms\n", i * 7 % 90));
    steps.collect::<String>() + "error: missing header zlib.h\n"
}

/// Appends records to a transcript.
#[track_caller]
pub fn append(sandbox: &Sandbox, file: &str, records: impl Into<Vec<u8>>) {
    sandbox.cmd("claw-append").arg(file).write_stdin(records).assert().success();
}

/// Returns the messages of a transcript, which must have no finding.
#[track_caller]
pub fn rebuild(sandbox: &Sandbox, file: &str) -> String {
    let run = sandbox.cmd("claw-rebuild").args(["--strict", file]).assert();
    run.success().stdout_text()
}

/// Returns the messages of a transcript with the metadata that `--record` needs.
#[track_caller]
pub fn rebuild_meta(sandbox: &Sandbox, file: &str) -> String {
    let run = sandbox.cmd("claw-rebuild").args(["--strict", "--meta", file]).assert();
    run.success().stdout_text()
}

/// Retracts the last record of a transcript.
#[track_caller]
pub fn undo_last(sandbox: &Sandbox, file: &str) {
    let last = sandbox.read_json(file).pop().unwrap_or_default();
    append(sandbox, file, json!({"type": "retract", "target": last["id"]}).to_string());
}

/// Runs a program such as claw-compact on the messages of a transcript, with `--record`.
#[track_caller]
pub fn stage(sandbox: &Sandbox, program: &str, args: &[&str], file: &str) -> Assert {
    let messages = rebuild_meta(sandbox, file);
    sandbox.cmd(program).arg("--record").args(args).write_stdin(messages).assert()
}
