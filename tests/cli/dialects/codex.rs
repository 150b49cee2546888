//! Tests with Codex CLI's rollout files.

use std::fs;

use serde_json::{Value, json};

use super::{assert_same, plain, read_json, run, sessions, used, without_additions};
use crate::common::{AssertExt, Sandbox};

/// The prompt with which each session of the corpus was resumed.
const PROBE: &str = "Resume probe: where were we?";
/// The words with which Codex begins the summary of a compaction.
const SUMMARY: &str = "Another language model started to solve this problem";

/// Converts the request that Codex sent into messages. Leaves out system prompts and reasoning, and puts the summary
/// first.
fn sent(request: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    for item in request["input"].as_array().expect("items") {
        let message = match (item["type"].as_str(), item["role"].as_str()) {
            (Some("message"), Some(role @ ("user" | "assistant"))) => {
                json!({"role": role, "content": blocks(&item["content"])})
            }
            (Some("function_call"), _) => {
                let arguments = item["arguments"].as_str().expect("a string");
                let input: Value = serde_json::from_str(arguments).expect("JSON");
                call(item, &input)
            }
            (Some("custom_tool_call"), _) => call(item, &json!({"input": item["input"]})),
            (Some("function_call_output" | "custom_tool_call_output"), _) => {
                let output = match &item["output"] {
                    // Version 0.80.0 of Codex stores this output as an object, and sends it as text.
                    Value::String(text)
                        if text.starts_with(
                            "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess",
                        ) =>
                    {
                        json!(stored(text))
                    }
                    Value::String(text) if text == "aborted" => json!("[interrupted]"),
                    Value::String(text) => json!(text),
                    list => blocks(list),
                };
                let mut block = json!({"type": "tool_result", "tool_use_id": item["call_id"], "content": output});
                if output == "[interrupted]" {
                    block["is_error"] = json!(true);
                }
                json!({"role": "user", "content": [block]})
            }
            _ => continue,
        };
        let is_summary =
            message["content"][0]["text"].as_str().is_some_and(|text| text.starts_with(SUMMARY));
        messages.insert(if is_summary { 0 } else { messages.len() }, message);
    }
    let mut messages = plain(&messages);
    for message in &mut messages {
        // Codex puts the output that it adds for an interrupted call first; claw-rebuild keeps the order of the calls.
        let blocks = message["content"].as_array_mut().expect("a list");
        blocks.sort_by_key(|it| it["tool_use_id"].as_str().unwrap_or("~").to_owned());
    }
    messages
}

/// Returns the output of a patch as version 0.80.0 of Codex stores it.
fn stored(sent: &str) -> String {
    let output = sent.split_once("Output:\n").expect("an output").1;
    format!(
        "{{\"output\":{},\"metadata\":{{\"exit_code\":0,\"duration_seconds\":0.0}}}}",
        json!(output)
    )
}

fn call(item: &Value, input: &Value) -> Value {
    let block =
        json!({"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": input});
    json!({"role": "assistant", "content": [block]})
}

fn blocks(content: &Value) -> Value {
    let block = |block: &Value| match block["type"].as_str() {
        Some("input_image") => {
            let url = block["image_url"].as_str().expect("a URL");
            let data = url.strip_prefix("data:image/png;base64,").expect("a PNG image");
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
        }
        _ => json!({"type": "text", "text": block["text"]}),
    };
    content.as_array().expect("blocks").iter().map(block).collect()
}

#[test]
fn every_session_gives_the_request_that_codex_sent() {
    for directory in sessions("codex") {
        let name = directory.display().to_string();
        let text = fs::read_to_string(directory.join("session.jsonl")).expect("a session");
        let probe = json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload":
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROBE}]}});
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", format!("{text}{probe}\n"));
        let ours = without_additions(run(&sandbox, &["claw-rebuild", "s.jsonl"]));
        let theirs = sent(&read_json(directory.join("sent-after-resume.json")));
        assert_same(&name, &ours, &theirs);
        sandbox.cmd("claw-rebuild").args(["--ready", "s.jsonl"]).assert().success();
        let history = &read_json(directory.join("facts.json"))["whole_history"];
        let records = &history["usage_sum_of_token_usage_records"];
        let sum = if records["input_tokens"].as_u64().unwrap_or(0) > 0 {
            records
        } else {
            &history["last_token_count_total"]
        };
        let number = |name: &str| sum[name].as_u64().expect("a count");
        let cached = number("cached_input_tokens");
        let counts = [number("input_tokens") - cached, cached, 0, number("output_tokens")];
        assert_eq!(used(&sandbox), counts, "{name}");
    }
}

/// Returns the lines of a rollout file: its first record, and prompts with ordinals from `first` on.
fn rollout(id: &str, base: Value, first: usize, prompts: &[&str]) -> Vec<String> {
    let record = |ordinal: usize, kind: &str, payload: Value| {
        let time = "2026-01-01T00:00:00Z";
        let record =
            json!({"timestamp": time, "ordinal": ordinal, "type": kind, "payload": payload});
        format!("{record}\n")
    };
    let meta = json!({"id": id, "cli_version": "0.169.0", "history_base": base});
    let prompt = |(index, text): (usize, &&str)| {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        record(first + index, "response_item", item)
    };
    let prompts = prompts.iter().enumerate().map(prompt);
    [record(first - 1, "session_meta", meta)].into_iter().chain(prompts).collect()
}

#[test]
fn the_part_of_the_earlier_file_that_a_rollout_file_continues_is_read_first() {
    let base = |id: &str, ordinal: usize, bytes: usize| json!({"thread_id": id, "end_ordinal_exclusive": ordinal, "end_byte_offset": bytes});
    let length = |lines: &[String]| lines.concat().len();
    let first = rollout("t1", Value::Null, 1, &["one", "two"]);
    let rewound = rollout("t1", base("t1", 2, length(&first[..2])), 2, &["three", "four"]);
    let forked = rollout("t2", base("s2", 3, length(&rewound[..2]) - 1), 3, &["five", "six"]);
    let torn = vec![forked.concat().trim_end().trim_end_matches('}').to_owned()];
    let continuing = |id: &str, base: Value| rollout(id, base, 2, &["seven"]);
    let sandbox = Sandbox::new();
    for (path, lines, words, finding) in [
        ("22/rollout-2026-t1.jsonl", first, "one two", None),
        ("22/rollout-2026-t1_s2.jsonl", rewound, "one three four", None),
        ("23/rollout-2026-t2.jsonl", torn, "one three five", Some((3, "torn"))),
        ("23/rollout-2026-t3.jsonl", continuing("t3", base("t1", 2, 0)), "one seven", None),
        (
            "23/rollout-2026-t4.jsonl",
            continuing("t4", base("t9", 2, 9)),
            "seven",
            Some((1, "cannot be found")),
        ),
        (
            "23/rollout-2026-t5.jsonl",
            continuing("t5", base("t1", 2, 9999)),
            "seven",
            Some((1, "ends before")),
        ),
        (
            "23/rollout-2026-t6.jsonl",
            continuing("t6", base("t6", 2, 9)),
            "seven",
            Some((1, "cannot be found")),
        ),
    ] {
        let path = format!("sessions/2026/11/{path}");
        sandbox.write(&path, lines.concat());
        let messages = plain(&run(&sandbox, &["claw-rebuild", &path]));
        let blocks = messages.iter().flat_map(|it| it["content"].as_array().expect("blocks"));
        let texts: Vec<&str> = blocks.map(|it| it["text"].as_str().expect("a string")).collect();
        assert_eq!(texts.join(" "), words, "{path}");
        let mut found = sandbox.cmd("claw-check").arg(&path).assert().json();
        found.retain(|it| it["rule"] != "open-mode");
        assert_eq!(found.len(), usize::from(finding.is_some()), "{path}: {found:?}");
        for (found, (line, message)) in found.iter().zip(finding) {
            assert_eq!((&found["input"], &found["line"]), (&json!(path), &json!(line)));
            assert!(found["message"].as_str().is_some_and(|it| it.contains(message)), "{found}");
        }
    }
}
