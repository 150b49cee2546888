//! claw-estimate: how full the context window is, and what fills it.

use clawutils::estimate::{Estimate, Method, Request, report};
use serde_json::{Value, json};

use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::{Conversation, rebuild_meta, words};

const PARTS: [&str; 6] = ["system", "tools", "user", "assistant", "results", "images"];

fn tokens_of(json: &Value, name: &str) -> u64 {
    json[name].as_u64().expect("tokens")
}

fn tokens(json: &Value) -> u64 {
    tokens_of(json, "tokens")
}

/// Returns the sum of all parts.
fn sum(json: &Value) -> u64 {
    PARTS.iter().map(|part| tokens_of(json, part)).sum()
}

/// Returns the number at the beginning of a line.
fn number(line: &str) -> u64 {
    let number = line.split_whitespace().next().expect("a number").replace(',', "");
    number.parse().expect("a number")
}

/// Returns a block of each kind.
fn blocks() -> [Value; 8] {
    [
        json!({"type": "text", "text": "What is in the file?"}),
        json!({"type": "text", "text": "永久だ。"}),
        json!({"type": "thinking", "thinking": "I have to look into it.", "signature": "s"}),
        json!({"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "x"}}),
        json!({"type": "tool_result", "tool_use_id": "a", "content": "some words of a file"}),
        json!({"type": "tool_result", "tool_use_id": "b", "content": [
            {"type": "image", "source": {"type": "url", "url": "x"}},
            {"type": "text", "text": "a picture"},
        ]}),
        json!({"type": "image", "source": {"type": "url", "url": "x"}}),
        json!({"type": "new_kind", "data": "some words"}),
    ]
}

#[test]
fn audit_28_the_parts_and_the_messages_add_up_to_the_total() {
    let blocks = blocks();
    for case in 0..500_usize {
        // Each message has some of the blocks. In every third case, the second message has a provider's count.
        let pick = |at: usize| case.wrapping_mul(2_654_435_761).wrapping_add(at * 97) % 11;
        let line = |at: usize| {
            let content: Vec<&Value> =
                blocks.iter().skip(pick(at) % 8).take(pick(at + 1)).collect();
            let role = ["user", "assistant"][at % 2];
            let mut message = json!({"role": role, "content": content, "_meta": {"id": "x"}});
            if at == 1 && case % 3 == 0 {
                let usage = json!({"input_tokens": case * 7 + 900, "output_tokens": pick(3)});
                message["_meta"]["usage"] = usage;
            }
            message.to_string() + "\n"
        };
        let text: String = (0..pick(7)).map(line).collect();
        let messages = clawutils::messages::read("t", text.as_bytes()).expect("messages");
        let request = Request {
            messages: &messages,
            system: (case % 2 == 0).then_some("Be brief."),
            tools: (case % 5 == 0).then_some("[]"),
            model: None,
        };
        let estimate = Estimate::of(request, Method::Script);
        let rows = report::parts(&estimate, &messages, None, None);
        let parts = rows.iter().filter(|row| !row.contains("  record "));
        assert_eq!(parts.map(|row| number(row)).sum::<u64>(), estimate.tokens, "{case}: {text}");
        let json: Value = serde_json::from_str(&report::json(
            &estimate,
            &messages,
            (None, None),
            None,
            None,
            None,
        ))
        .expect("JSON");
        assert_eq!(sum(&json), estimate.tokens, "{case}: {json}");
        let of_messages: u64 =
            json["messages"].as_array().expect("a list").iter().map(tokens).sum();
        let rest = tokens_of(&json, "system") + tokens_of(&json, "tools");
        assert_eq!(of_messages + rest, estimate.tokens, "{case}: {json}");
    }
}

fn estimate(sandbox: &Sandbox, args: &[&str]) -> Value {
    sandbox.cmd("claw-estimate").arg("--json").args(args).assert().success().json_one()
}

/// A session with a large record of each kind.
fn session() -> Conversation {
    let image =
        json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}});
    let picture = json!([{"type": "text", "text": "a picture"}, image]);
    Conversation::new()
        .user(&words(100))
        .tool(words(3000))
        .tool(picture)
        .assistant(&words(500))
        .user("And now?")
}

#[test]
fn the_largest_records_are_named() {
    let sandbox = Sandbox::new();
    session().append(&sandbox, "s.jsonl");
    let ids: Vec<String> = sandbox
        .read_json("s.jsonl")
        .iter()
        .map(|record| record["id"].as_str().unwrap_or_default().to_owned())
        .collect();
    let found = estimate(&sandbox, &["s.jsonl"]);
    let largest: Vec<(&str, &str)> = found["largest"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["id"].as_str().expect("an id"), it["part"].as_str().expect("a part")))
        .collect();
    // The assistant's last text is a separate message. Each call is in one message with the text before it.
    let at = |at: usize| &*ids[at];
    let expected = [
        (at(3), "results"),
        (at(6), "images"),
        (at(7), "assistant"),
        (at(0), "user"),
        (at(1), "assistant"),
    ];
    assert_eq!(largest[..5], expected, "{found}");
    assert!(largest.len() <= 10 && sum(&found) == tokens(&found), "{found}");
    assert!(tokens_of(&found, "results") >= 3000 && tokens_of(&found, "images") > 500, "{found}");

    let run = sandbox.cmd("claw-estimate").args(["--parts", "--window", "90000", "s.jsonl"]);
    let text = run.assert().success().stdout_text();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    let record = |at: usize, part: &str| format!("record {} ({part})", ids[at]);
    assert!(
        rows[4].ends_with(&record(3, "results")) && rows[5].ends_with(&record(6, "images")),
        "{text}"
    );
    assert!(rows.last().is_some_and(|row| row.ends_with("left before compaction")), "{text}");
    // Messages without `_meta` have no ids.
    let messages = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().stdout_text();
    sandbox.write("m", messages);
    assert_eq!(estimate(&sandbox, &["m"])["largest"], json!([]));
}

#[test]
fn a_count_is_divided_among_the_messages_that_it_covers() {
    let sandbox = Sandbox::new();
    let usage = json!({"input_tokens": 1500, "output_tokens": 20});
    let reply = json!({"type": "assistant", "content": [{"type": "text", "text": "yes"}], "model": "m", "usage": usage});
    let session = Conversation::new().user(&words(1000)).record(reply).user(&words(300));
    session.append(&sandbox, "s.jsonl");
    let found = estimate(&sandbox, &["--model", "m", "s.jsonl"]);
    let messages = found["messages"].as_array().expect("a list");
    assert_eq!(tokens(&messages[0]) + tokens(&messages[1]), 1520, "{found}");
    assert_eq!(tokens_of(&found, "estimated"), tokens(&messages[2]), "{found}");
    assert_eq!((sum(&found), tokens_of(&found, "measured")), (tokens(&found), 1520), "{found}");
}

#[test]
fn a_transcript_has_the_size_of_its_messages() {
    let sandbox = Sandbox::new();
    session().append(&sandbox, "own");
    let chat = |words: &str| json!({"role": "user", "content": words}).to_string() + "\n";
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": words(50)});
    sandbox.write("openai", format!("{}{call}\n{result}\n", chat("hi")));
    sandbox.write(
        "gemini",
        json!({"role": "user", "parts": [{"text": words(40)}]}).to_string() + "\n",
    );
    sandbox.write("array", format!("[{}]", chat(&words(60)).trim()));
    let pi = json!({"type": "message", "timestamp": "2025-11-20T23:33:01Z", "message": {"role": "user", "content": words(70)}});
    sandbox.write("pi", format!("{pi}\n"));
    let claw0 = json!({"type": "user", "content": words(80), "ts": 1.5}).to_string() + "\n";
    sandbox.write("claw0", claw0);
    sandbox.write("empty", "");
    for file in ["own", "openai", "gemini", "array", "pi", "claw0", "empty"] {
        let size = |cmd: Cmd| cmd.arg("--json").assert().success().stderr("").stdout_text();
        let piped = sandbox.cmd("claw-estimate").write_stdin(rebuild_meta(&sandbox, file));
        let (direct, piped) = (size(sandbox.cmd("claw-estimate").arg(file)), size(piped));
        assert_eq!(direct, piped, "{file}");
        assert!(file == "empty" || !direct.contains(r#""tokens":0"#), "{file}: {direct}");
    }
    // Several transcripts are read as if they were concatenated.
    let joined = sandbox.cmd("claw-rebuild").args(["--meta", "own", "claw0"]).assert().success();
    sandbox.write("joined", joined.stdout_text());
    assert_eq!(
        estimate(&sandbox, &["own", "claw0"])["tokens"],
        estimate(&sandbox, &["joined"])["tokens"]
    );
}

#[test]
fn transcripts_and_messages_are_not_mixed() {
    let sandbox = Sandbox::new();
    session().append(&sandbox, "s.jsonl");
    sandbox.write("m", rebuild_meta(&sandbox, "s.jsonl"));
    let why = "claw-estimate: cannot read 'm': not a transcript (looks like messages, as claw-rebuild prints them); give the transcript that the messages come from\n";
    sandbox.cmd("claw-estimate").args(["m", "s.jsonl"]).assert().code(65).stdout("").stderr(why);
}

#[test]
fn findings_in_a_transcript_are_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", "{\"type\":\"user\",\"content\":\"hello\"}\nnonsense\n");
    let run = sandbox.cmd("claw-estimate").arg("s.jsonl").assert().success().stdout("7\n");
    assert!(
        run.stderr_text().starts_with("claw-estimate: not-an-object: 's.jsonl' line 2"),
        "{}",
        run.stderr_text()
    );
}
