//! claw-rebuild: replies that end in thinking, and results of calls whose ids are reused.

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox, rules};
use clawutils::messages::fold::BEGINNING;

/// Rebuilds records, one per line.
#[track_caller]
fn rebuild(records: &[Value], args: &[&str]) -> Assert {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    Sandbox::new().cmd("claw-rebuild").args(args).write_stdin(lines).assert()
}

fn user(content: impl Into<Value>) -> Value {
    json!({"type": "user", "content": content.into()})
}

fn assistant(content: Value) -> Value {
    json!({"type": "assistant", "content": content})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": {}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": text})
}

/// Abbreviates messages: `u` and `a` for the roles, then a letter or a short text for each block.
fn short(messages: &[Value]) -> String {
    let block = |block: &Value| match block["type"].as_str() {
        Some("thinking") => "T".to_owned(),
        Some("redacted_thinking") => "R".to_owned(),
        Some("tool_use") => format!("call {}", block["id"].as_str().unwrap_or_default()),
        Some("tool_result") => block["content"].as_str().unwrap_or_default()[..4].to_owned(),
        _ => block["text"].as_str().unwrap_or_default().to_owned(),
    };
    let content = |message: &Value| match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(block).collect::<Vec<_>>().join("+"),
        text => text.as_str().unwrap_or_default().to_owned(),
    };
    let all = messages.iter();
    let all = all.map(|it| format!("{}:{}", &it["role"].as_str().unwrap_or("?")[..1], content(it)));
    all.collect::<Vec<_>>().join(" ")
}

/// Checks that the messages break no rule of the fake provider.
#[track_caller]
fn assert_accepted(messages: &[Value]) {
    let body = json!({"model": "m", "max_tokens": 1, "messages": messages});
    rules::check(&body, b"").unwrap_or_else(|why| panic!("{why:?}: {body}"));
}

// ---- thinking --------------------------------------------------------------------------------

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": "s"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Each row has the records of a reply between the prompts `p` and `q`, the rebuilt messages, and the number of
/// findings.
#[test]
fn audit_01_a_reply_never_ends_in_thinking() {
    let redacted = json!({"type": "redacted_thinking", "data": "eHg="});
    let (t, x, r) = (thinking(), text("x"), redacted);
    let used = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let blank = text(" \n");
    for (reply, left, found) in [
        (vec![assistant(json!([t]))], "u:p+q", 1),
        (vec![assistant(json!([r]))], "u:p+q", 1),
        (vec![assistant(json!([t, t, r, t]))], "u:p+q", 1),
        (vec![assistant(json!([t, blank]))], "u:p+q", 1),
        (vec![assistant(json!([t, x, t]))], "u:p a:T+x u:q", 1),
        (vec![assistant(json!([t, x, r, blank]))], "u:p a:T+x u:q", 1),
        (vec![assistant(json!([x])), assistant(json!([t]))], "u:p a:x u:q", 1),
        // Thinking is kept if a call or text follows, in the same record or in the next one.
        (vec![assistant(json!([t, r, used]))], "u:p a:T+R+call c u:(int+q", 0),
        (vec![assistant(json!([t])), call("c"), result("c", "done")], "u:p a:T+call c u:done+q", 0),
        (vec![assistant(json!([t])), assistant(json!([x]))], "u:p a:T+x u:q", 0),
        (
            vec![assistant(json!([t, used])), result("c", "done"), assistant(json!([t]))],
            "u:p a:T+call c u:done+q",
            1,
        ),
        // A repeated call is dropped, so the thinking before it is the end of the reply and is also dropped.
        (
            vec![
                assistant(json!([x, used])),
                assistant(json!([t])),
                call("c"),
                result("c", "done"),
            ],
            "u:p a:x+call c u:done+q",
            1,
        ),
        // An incomplete thinking block is dropped even if it is not at the end.
        (vec![assistant(json!([{"type": "redacted_thinking"}, x]))], "u:p a:x u:q", 0),
        (vec![assistant(json!([{"type": "thinking", "signature": "s"}, x]))], "u:p a:x u:q", 0),
    ] {
        let records = [vec![user("p")], reply, vec![user("q")]].concat();
        let run = rebuild(&records, &[]).success();
        let messages = run.json();
        assert_eq!(short(&messages), left, "{records:?}");
        assert_eq!(
            run.stderr_text().matches("final-thinking: '<stdin>'").count(),
            found,
            "{}",
            run.stderr_text()
        );
        assert_accepted(&messages);
    }
}

/// A reply of only thinking leaves its prompt unanswered, so the prompt can be sent again.
#[test]
fn audit_01_a_prompt_whose_reply_is_only_thinking_can_be_sent_again() {
    let records = [user("p"), assistant(json!([thinking()]))];
    let run = rebuild(&records, &["--ready"]);
    assert_eq!(short(&run.success().json()), "u:p");
    // If the reply continues with text, the prompt is answered.
    let records = [user("p"), assistant(json!([thinking()])), assistant(json!([text("x")]))];
    rebuild(&records, &["--ready"]).code(7);
    // If a transcript begins with a reply of only thinking, the messages begin with the user message after it.
    let records = [assistant(json!([thinking()])), user("p")];
    assert_eq!(short(&rebuild(&records, &["--ready"]).success().json()), "u:p");
}

// ---- ids that are reused -----------------------------------------------------------------------

#[test]
fn audit_22_a_result_after_its_call_replaces_a_result_before_the_call() {
    let (orphan, real) = (result("x", "orphan"), result("x", "real"));
    for (records, left, found) in [
        (vec![orphan.clone(), call("x"), real.clone()], "a:call x u:real", 1),
        (vec![orphan.clone(), user("p"), call("x"), real.clone()], "u:p a:call x u:real", 1),
        // This also applies if the result of another call comes first, or if two results precede the call.
        (
            vec![orphan.clone(), call("x"), call("y"), result("y", "of y"), real.clone()],
            "a:call x+call y u:real+of y",
            1,
        ),
        (vec![orphan.clone(), result("x", "other"), call("x"), real.clone()], "a:call x u:real", 2),
        // Without a later result, the result before the call is used, as in claw0's first format.
        (vec![real.clone(), call("x"), user("p")], "a:call x u:real+p", 0),
        (vec![real.clone(), call("x"), assistant(json!("a"))], "a:call x u:real a:a", 0),
        // If a user message follows the call, the earlier result was already sent, so a later result is dropped.
        (vec![real.clone(), call("x"), user("p"), result("x", "late")], "a:call x u:real+p", 1),
        // A call at the end waits for its own result.
        (vec![orphan.clone(), call("x")], "a:call x", 1),
    ] {
        let run = rebuild(&records, &[]).success();
        let messages = short(&run.json());
        let messages = messages.trim_start_matches(&format!("u:{BEGINNING} "));
        assert_eq!(messages, left, "{records:?}");
        assert_eq!(
            run.stderr_text().lines().filter(|line| line.contains("'<stdin>'")).count(),
            found
        );
    }
    // Although an earlier result has the same id, the call counts as open, so its tool will be run.
    rebuild(&[orphan, user("p"), call("x")], &["--open"])
        .success()
        .stdout(contains(r#""tool_use_id":"x""#));
}

/// A result belongs to the nearest call before it, even if an older call with the same id has no result.
#[test]
fn audit_22_a_second_result_does_not_go_to_an_older_call_with_the_same_id() {
    let records =
        [call("x"), user("stop"), call("x"), result("x", "real"), result("x", "again"), user("p")];
    let run = rebuild(&records, &[]);
    let messages = run.stderr(contains("duplicate-result: '<stdin>' line 5")).json();
    assert_accepted(&messages);
    assert!(short(&messages).ends_with("a:call x u:(int+stop a:call x_2 u:real+p"), "{messages:?}");
}
