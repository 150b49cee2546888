//! Omission records: claw-truncate writes them for what a provider refused, rebuild leaves the blocks out, and undo brings
//! them back.

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox, media};
use crate::conversations::{Conversation, append, rebuild, rebuild_meta};

/// Returns an image of about `bytes` bytes.
fn image(bytes: usize) -> Value {
    media::image("image/png", &media::png_of(bytes))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thinking(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": "signed"})
}

/// A conversation with something of each kind, in records of every form: a prompt with an image, a reply with thinking and
/// two calls, results with items that rebuild drops, a run of user records, and blocks of another program.
fn conversation() -> Conversation {
    let call = json!({"type": "tool_use", "id": "d", "name": "f", "input": {"path": "x"}});
    let done =
        json!({"type": "tool_result", "tool_use_id": "d", "content": [text("seen"), image(3000)]});
    let user = |content: Value| json!({"type": "user", "content": content});
    let assistant = |content: Value| json!({"type": "assistant", "content": content});
    Conversation::new()
        .record(user(json!([text("Look."), image(2000)])))
        .record(assistant(json!([text(" "), thinking("first"), text("I look.")])))
        .call("f", json!({"path": "a"}))
        .call("g", json!({"path": "b"}))
        .result(json!([text(" "), text("one"), image(4000), text("two"), image(5000)]))
        .answer(1, "a result")
        .record(user(json!("And this?")))
        .record(user(json!([text(" "), text("It is here:"), image(6000)])))
        .record(assistant(json!([thinking("second"), text("Then:"), call])))
        .record(user(json!([done, text("Next.")])))
        .record(assistant(json!([thinking("third"), text("I see.")])))
        .user("The prompt.")
}

fn transcript() -> Sandbox {
    let sandbox = Sandbox::new();
    conversation().append(&sandbox, "s.jsonl");
    sandbox
}

fn refused(places: &Value) -> Value {
    json!({"type": "error", "class": "bad-request", "fault": "block", "message": "no good",
        "places": places})
}

/// Runs the step after a refusal on `s.jsonl`, and appends its records. Returns what it reported.
#[track_caller]
fn step(sandbox: &Sandbox, failure: &Value) -> String {
    sandbox.write("failure", failure.to_string());
    let meta = sandbox.cmd("claw-rebuild").args(["--meta", "s.jsonl"]).assert().stdout_text();
    let cmd = sandbox.cmd("claw-truncate").args(["--record", "--failure", "failure"]);
    let run = cmd.write_stdin(meta).assert().success();
    append(sandbox, "s.jsonl", run.stdout_text());
    run.stderr_text().to_owned()
}

fn messages(sandbox: &Sandbox) -> Vec<Value> {
    let lines = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success();
    lines.json()
}

/// Returns each block and each item of a result: its place, and the value.
fn blocks(messages: &[Value]) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    for (m, message) in messages.iter().enumerate() {
        if message["content"].is_string() {
            found.push((json!({"message": m}), message["content"].clone()));
        }
        for (b, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            found.push((json!({"message": m, "block": b}), block.clone()));
            for (p, part) in block["content"].as_array().into_iter().flatten().enumerate() {
                found.push((json!({"message": m, "block": b, "part": p}), part.clone()));
            }
        }
    }
    found
}

#[test]
fn any_block_that_a_refusal_names_is_left_out_and_brought_back() {
    let before = messages(&transcript());
    let all = blocks(&before);
    assert!(all.len() >= 25, "{}", all.len());
    for (place, block) in all {
        let is_prompt = place["message"] == before.len() - 1;
        if is_prompt || block == json!("The prompt.") {
            continue;
        }
        let sandbox = transcript();
        let report = step(&sandbox, &refused(&json!([place])));
        let record = sandbox.read_json("s.jsonl").pop().unwrap();
        assert_eq!(record["type"], "omission", "{place} {block}");
        let (now, line) = (messages(&sandbox), serde_json::to_string(&block).unwrap());
        let now_text = serde_json::to_string(&now).unwrap();
        assert!(!now_text.contains(&line), "{place} is still there: {now_text}");
        let id = record["record_id"].as_str().unwrap();
        if block["type"] == "thinking" {
            assert!(!now_text.contains("bytes left out"), "{place}");
        } else {
            let how = format!(
                "left out: the provider refused it: no good; all of it: claw-rebuild --record {id} ...]"
            );
            assert!(now_text.contains(&how), "{place}: {now_text}");
        }
        assert!(report.contains(&format!("claw-rebuild --record {id}")), "{report}");
        // The record with this id has the block.
        let run = sandbox.cmd("claw-rebuild").args(["--record", id, "s.jsonl"]).assert().success();
        let inner = match block["type"].as_str() {
            Some("text") => block["text"].to_string(),
            Some("tool_use") => block["input"].to_string(),
            Some("tool_result") => match &block["content"] {
                Value::String(text) => text.clone(),
                items => items[0]["text"].to_string(),
            },
            Some(_) => block["source"]["data"].as_str().map_or("signed".to_owned(), str::to_owned),
            None => block.to_string(),
        };
        assert!(run.stdout_text().contains(inner.trim_matches('"')), "{id}: {inner}");
        // Everything else is as it was.
        let kept = |messages: &[Value]| -> usize {
            messages.iter().map(|it| it["content"].as_array().map_or(1, Vec::len)).sum()
        };
        let dropped = usize::from(block["type"] == "thinking");
        assert_eq!((kept(&now) + dropped, now.len()), (kept(&before), before.len()), "{place}");
        sandbox.cmd("claw-check").arg("s.jsonl").assert().success();
        let undo = sandbox.cmd("claw-rebuild").args(["--undo", "cut", "s.jsonl"]).assert();
        append(&sandbox, "s.jsonl", undo.success().stdout_text());
        assert_eq!(messages(&sandbox), before, "{place}");
    }
}

#[test]
fn the_text_of_the_prompt_is_never_left_out() {
    let sandbox = transcript();
    let last = messages(&sandbox).len() - 1;
    sandbox.write("failure", refused(&json!([{"message": last}])).to_string());
    let meta = sandbox.cmd("claw-rebuild").args(["--meta", "s.jsonl"]).assert().stdout_text();
    let cmd = sandbox.cmd("claw-truncate").args(["--record", "--failure", "failure"]);
    cmd.write_stdin(meta).assert().code(5).stdout("");
}

#[test]
fn a_result_can_be_shortened_before_and_after_an_image_is_left_out() {
    let long: String = (0..4000).map(|n| format!("line {n}\n")).collect();
    let result = json!([text(&long), image(4000), text(&long), image(5000)]);
    let conversation =
        Conversation::new().user("Look.").tool(result).assistant("I see.").user("Next.");
    let shorten = |sandbox: &Sandbox, window: &str| {
        let meta = rebuild_meta(sandbox, "s.jsonl");
        let cmd = sandbox.cmd("claw-truncate").args(["--record", "--window", window]);
        append(sandbox, "s.jsonl", cmd.write_stdin(meta).assert().stdout_text());
    };
    let place = json!([{"message": 2, "block": 0, "part": 3}]);
    let [first, second] = [true, false].map(|is_first| {
        let sandbox = Sandbox::new();
        conversation.append(&sandbox, "s.jsonl");
        if is_first {
            shorten(&sandbox, "20000");
            // The second text is now within the first one.
            let items = messages(&sandbox)[2]["content"][0]["content"].as_array().unwrap().len();
            let at = json!([{"message": 2, "block": 0, "part": items - 1}]);
            step(&sandbox, &refused(&at));
        } else {
            step(&sandbox, &refused(&place));
            shorten(&sandbox, "20000");
        }
        rebuild(&sandbox, "s.jsonl")
    });
    let shapes = [&first, &second]
        .map(|it| (it.matches("image of").count(), it.matches("\"image\"").count()));
    assert_eq!(shapes, [(1, 1); 2], "{first}\n{second}");
    for shown in [first, second] {
        assert!(shown.contains(" lines) left out, sha256 "), "{shown}");
    }
}

#[test]
fn bytes_are_brought_under_the_limit_and_images_go_first() {
    let fault = |more: Value| {
        let mut record = json!({"type": "error", "class": "too-large", "fault": "bytes"});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let size = |sandbox: &Sandbox| rebuild(sandbox, "s.jsonl").len();
    let big = || {
        (0..6).fold(Conversation::new(), |it, n| {
            it.user(&format!("Do {n}."))
                .tool(json!([text("shot"), image(100_000)]))
                .assistant("Done.")
        })
    };
    for (failure, left) in [
        // No limit is known: half of the request.
        (fault(json!({})), 2),
        (fault(json!({"request_bytes": 620_000})), 2),
        (fault(json!({"request_bytes": 620_000, "limit_bytes": 600_000})), 5),
        (fault(json!({"request_bytes": 620_000, "limit_bytes": 250_000})), 2),
        (fault(json!({"request_bytes": 620_000, "limit_bytes": 20_000})), 0),
    ] {
        let sandbox = Sandbox::new();
        big().append(&sandbox, "s.jsonl");
        let before = size(&sandbox);
        let report = step(&sandbox, &failure);
        let shown = rebuild(&sandbox, "s.jsonl");
        assert_eq!(shown.matches("\"image\"").count(), left, "{failure} {report}");
        assert!(
            report.contains(&format!("left out {} image", 6 - left))
                && report.contains(" bytes; all of it"),
            "{report}"
        );
        // The oldest are gone.
        let last = shown.lines().filter(|line| line.contains("\"image\"")).count();
        assert_eq!(last, left);
        assert!(left == 0 || shown.lines().last().unwrap().contains("Done."));
        assert!(shown.len() < before);
    }
}

#[test]
fn long_results_and_inputs_follow_when_no_image_is_left() {
    let sandbox = Sandbox::new();
    let lines: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    Conversation::new()
        .user("Write it.")
        .assistant("I write.")
        .call("write", json!({"text": lines}))
        .result(lines.clone())
        .assistant("Done.")
        .user("And now?")
        .append(&sandbox, "s.jsonl");
    let report = step(&sandbox, &json!({"fault": "bytes", "limit_bytes": 5000}));
    assert!(report.contains("shortened 1 result, left out the input of 1 call"), "{report}");
    let shown = rebuild(&sandbox, "s.jsonl");
    assert!(shown.len() < 4000 && shown.contains("\"left_out\":\"[... input of "), "{shown}");
}

#[test]
fn a_refusal_that_nothing_cures_changes_nothing() {
    let sandbox = transcript();
    for failure in [
        json!({"type": "error", "class": "bad-request", "message": "unknown field"}),
        json!({"type": "error", "class": "bad-request", "fault": "none"}),
        json!({"type": "error", "class": "auth", "fault": "wait"}),
    ] {
        sandbox.write("failure", failure.to_string());
        let cmd = sandbox.cmd("claw-truncate").args(["--record", "--failure", "failure"]);
        let run = cmd.write_stdin(rebuild_meta(&sandbox, "s.jsonl")).assert().code(5).stdout("");
        run.stderr(contains("a smaller request would be refused too"));
    }
}

#[test]
fn a_limit_that_the_endpoint_stated_is_kept_ahead_of_a_refusal() {
    let sandbox = Sandbox::new();
    Conversation::new()
        .user("Look.")
        .tool(json!([text("shot"), image(100_000)]))
        .assistant("Done.")
        .user("Next.")
        .append(&sandbox, "s.jsonl");
    let env = [("CLAW_PROVIDER", "ollama"), ("CLAW_MODEL", "m"), ("CLAW_STATE_DIR", "state")];
    sandbox.write(
        "state/sizes.jsonl",
        format!(
            "{}\n",
            json!({"endpoint": "http://127.0.0.1:11434", "limit_bytes": 50_000, "ts": 4e9})
        ),
    );
    let run = |limits: &str| {
        sandbox.write("state/sizes.jsonl", limits);
        let cmd = sandbox.cmd("claw-truncate").envs(env).args(["--record", "--window", "100000"]);
        cmd.write_stdin(rebuild_meta(&sandbox, "s.jsonl")).assert()
    };
    let line =
        json!({"endpoint": "http://127.0.0.1:11434", "limit_bytes": 50_000, "ts": 1_767_225_600});
    run("").code(5).stderr(contains("no result can be shortened"));
    run(&format!("{line}\n")).success().stderr(contains("left out 1 image"));
}
