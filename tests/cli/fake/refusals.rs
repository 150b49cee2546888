//! The fake provider: requests that it refuses in the chat completions API and in Ollama's chat API.

use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;

use super::client::{change, conversation, hello, path, post, request, send};

/// A rule, and a change to [`conversation`] that breaks it: a JSON pointer, and the new value, or `None` to remove the
/// old value.
type Case = (&'static str, &'static str, Option<Value>);

#[track_caller]
fn refused(shape: Shape, cases: Vec<Case>) {
    for (rule, pointer, value) in cases {
        let mut body = conversation(shape);
        change(&mut body, pointer, value.clone());
        let provider = FakeProvider::new();
        provider.script(Step::text("the reply to a legal request"));
        let response = post(&provider, shape, &body);
        let recorded = provider.single_request();
        let broken = recorded.violation.as_ref().map(|v| (v.rule, v.message.as_str()));
        let Some((found, message)) = broken else {
            panic!("{shape:?} accepts {pointer} {value:?}")
        };
        assert_eq!(found, rule, "{shape:?} {pointer} {value:?}: {message}");
        assert_eq!((response.status, provider.pending()), (400, 1));
        let error = &response.json()["error"];
        let error = if shape == Shape::OpenAi { &error["message"] } else { error };
        assert_eq!(error, message);
    }
}

#[track_caller]
fn passes(shape: Shape, changes: Vec<(&str, Option<Value>)>) {
    let provider = FakeProvider::new();
    let mut body = conversation(shape);
    for (pointer, value) in changes {
        change(&mut body, pointer, value);
    }
    assert_eq!(post(&provider, shape, &body).status, 200);
    provider.all_legal();
}

#[test]
fn each_shape_requires_its_own_headers() {
    let status = |shape: Shape, headers: &[(&str, &str)]| {
        send(&FakeProvider::new(), path(shape), headers, &hello(shape)).expect("an answer").status
    };
    let kind = ("content-type", "application/json");
    let bearer = ("authorization", "Bearer key");
    assert_eq!(status(Shape::OpenAi, &[kind, bearer]), 200);
    assert_eq!(status(Shape::OpenAi, &[kind]), 401);
    assert_eq!(status(Shape::OpenAi, &[kind, ("authorization", "Bearer ")]), 401);
    assert_eq!(status(Shape::OpenAi, &[kind, ("x-api-key", "key")]), 401);
    assert_eq!(status(Shape::OpenAi, &[kind, bearer, ("x-api-key", "key")]), 400);
    assert_eq!(status(Shape::OpenAi, &[bearer]), 400);
    assert_eq!(status(Shape::Ollama, &[kind]), 200);
    assert_eq!(status(Shape::Ollama, &[kind, bearer]), 200);
    assert_eq!(status(Shape::Ollama, &[kind, ("anthropic-version", "2023-06-01")]), 400);
    assert_eq!(status(Shape::Ollama, &[]), 400);

    let leak = request(Shape::OpenAi, json!([{"role": "user", "content": "it is test-key-1"}]));
    let provider = FakeProvider::new();
    assert_eq!(post(&provider, Shape::OpenAi, &leak).status, 400);
    assert_eq!(provider.single_request().violation.expect("a violation").rule, "key");
    let nowhere = send(&provider, "/api/generate", &[kind], &hello(Shape::Ollama));
    assert_eq!(nowhere.expect("an answer").json(), json!({"error": "Not found"}));
}

/// Changes after which both APIs refuse the request.
fn common_cases() -> Vec<Case> {
    let user = |text: &str| Some(json!({"role": "user", "content": text}));
    vec![
        ("leftovers", "/messages/1/_meta", Some(json!({}))),
        ("leftovers", "/tools/0/input_schema", Some(json!({}))),
        ("leftovers", "/messages/1/content", Some(json!([{"type": "tool_result"}]))),
        ("leftovers", "/messages/2/content", Some(json!([{"type": "tool_use", "id": "a"}]))),
        ("leftovers", "/messages/5/cache_control", Some(json!({"type": "ephemeral"}))),
        ("members", "/system", Some(json!("be brief"))),
        ("members", "/messages/1/id", Some(json!(1))),
        ("members", "/messages/1/tool_calls", Some(json!([]))),
        ("shape", "/model", None),
        ("shape", "/model", Some(json!(1))),
        ("blank", "/model", Some(json!(" "))),
        ("shape", "/messages", None),
        ("shape", "/messages", Some(json!({}))),
        ("shape", "/messages/1", Some(json!("do it"))),
        ("roles", "/messages", Some(json!([]))),
        ("stream", "/stream", Some(json!("yes"))),
        ("tools", "/tools", Some(json!({}))),
        ("tools", "/tools/0/type", Some(json!("custom"))),
        ("tools", "/tools/1", Some(json!({"type": "function", "function": {"name": "read"}}))),
        ("shape", "/tools/0/function/name", Some(json!("a.b"))),
        ("shape", "/tools/0/function/parameters", Some(json!([]))),
        ("content", "/messages/1/content", None),
        ("content", "/messages/1/content", Some(json!(5))),
        ("blank", "/messages/0/content", Some(json!(""))),
        ("blank", "/messages/1/content", Some(json!(" \n"))),
        ("blank", "/messages/2/content", Some(json!("\t"))),
        ("shape", "/messages/2/tool_calls", Some(json!([]))),
        ("shape", "/messages/2/tool_calls/0/function/name", Some(json!(""))),
        ("members", "/messages/2/tool_calls/0/input", Some(json!({}))),
        ("arguments", "/messages/2/tool_calls/0/function/arguments", None),
        ("roles", "/messages/0", user("one more")),
        ("roles", "/messages/1/role", Some(json!("system"))),
        ("roles", "/messages/5/role", Some(json!("system"))),
        ("roles", "/messages/1/role", Some(json!("assistant"))),
        ("roles", "/messages/5/role", Some(json!("function"))),
        ("unique", "/messages/2/tool_calls/1/id", Some(json!("a"))),
        ("unique", "/messages/4/tool_call_id", Some(json!("b"))),
        ("results", "/messages/3/tool_call_id", Some(json!("z"))),
        ("results", "/messages/2", Some(json!({"role": "assistant", "content": "so be it"}))),
        ("answered", "/messages/4", None),
        ("answered", "/messages/3", user("wait")),
        ("last", "/messages/5", Some(json!({"role": "assistant", "content": "done"}))),
    ]
}

#[test]
fn both_apis_refuse_a_request_that_breaks_a_common_rule() {
    for shape in [Shape::OpenAi, Shape::Ollama] {
        passes(shape, vec![]);
        refused(shape, common_cases());
    }
}

#[test]
fn chat_completions_refuse_a_request_that_breaks_a_rule() {
    let arguments = "/messages/2/tool_calls/0/function/arguments";
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let orphan = json!([{"role": "tool", "tool_call_id": "a", "content": "done"}]);
    refused(
        Shape::OpenAi,
        vec![
            ("max_tokens", "/max_tokens", None),
            ("max_tokens", "/max_tokens", Some(json!(0))),
            ("max_tokens", "/max_tokens", Some(json!("100"))),
            ("max_tokens", "/max_completion_tokens", Some(json!(100))),
            ("stream", "/stream_options", Some(json!({"include_usage": true}))),
            ("members", "/options", Some(json!({}))),
            ("members", "/messages/3/tool_name", Some(json!("read"))),
            ("content", "/messages/1/content", Some(Value::Null)),
            ("content", "/messages/1/content", Some(json!([{"type": "image"}]))),
            ("content", "/messages/0/content", Some(json!([{"type": "image_url"}]))),
            ("content", "/messages/2/content", Some(text("so be it"))),
            ("content", "/messages/2/tool_calls", None),
            ("content", "/messages/3/content", None),
            ("blank", "/messages/1/content", Some(json!([]))),
            ("blank", "/messages/1/content", Some(text(" "))),
            ("blank", "/messages/2/content", Some(json!(""))),
            ("blank", "/messages/2/tool_calls/0/id", Some(json!(""))),
            ("shape", "/messages/2/tool_calls/0/id", None),
            ("shape", "/messages/2/tool_calls/0/type", None),
            ("shape", "/messages/3/tool_call_id", None),
            ("arguments", arguments, Some(json!({}))),
            ("arguments", arguments, Some(json!("[]"))),
            ("arguments", arguments, Some(json!("{oops"))),
            ("arguments", arguments, Some(json!(""))),
            ("results", "/messages", Some(orphan)),
        ],
    );
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}});
    passes(Shape::OpenAi, vec![("/messages/1/content", Some(json!([image])))]);
    passes(Shape::OpenAi, vec![("/messages/2/content", None)]);
    passes(Shape::OpenAi, vec![("/messages/0/role", Some(json!("developer")))]);
    passes(Shape::OpenAi, vec![("/messages/5", None)]);
    let limit = ("/max_completion_tokens", Some(json!(100)));
    passes(Shape::OpenAi, vec![("/max_tokens", None), limit]);
}

#[test]
fn ollama_refuses_a_request_that_breaks_a_rule() {
    let arguments = "/messages/2/tool_calls/0/function/arguments";
    let orphan = json!([{"role": "tool", "tool_name": "read", "content": "done"}]);
    refused(
        Shape::Ollama,
        vec![
            ("stream", "/stream", None),
            ("truncate", "/truncate", None),
            ("truncate", "/truncate", Some(json!(true))),
            ("options", "/options", None),
            ("options", "/options/num_ctx", None),
            ("options", "/options/num_ctx", Some(json!("4096"))),
            ("options", "/options/num_predict", None),
            ("options", "/options/num_predict", Some(json!(-1))),
            ("members", "/max_tokens", Some(json!(100))),
            ("members", "/messages/2/images", Some(json!(["eA=="]))),
            ("roles", "/messages/0/role", Some(json!("developer"))),
            ("content", "/messages/1/content", Some(json!([{"type": "text", "text": "hi"}]))),
            ("content", "/messages/2/content", Some(Value::Null)),
            ("content", "/messages/3/content", None),
            ("blank", "/messages/2/tool_calls", None),
            ("images", "/messages/1/images", Some(json!("eA=="))),
            ("images", "/messages/1/images", Some(json!([]))),
            ("images", "/messages/1/images", Some(json!(["data:image/png;base64,eA=="]))),
            ("images", "/messages/1/images", Some(json!(["eA="]))),
            ("arguments", arguments, Some(json!("{}"))),
            ("arguments", arguments, Some(json!([]))),
            ("shape", "/messages/3/tool_name", None),
            ("results", "/messages/3/tool_name", Some(json!("write"))),
            ("results", "/messages", Some(orphan)),
        ],
    );
    let image = ("/messages/1/images", Some(json!(["eA=="])));
    passes(Shape::Ollama, vec![image, ("/messages/1/content", Some(json!("")))]);
    // Without ids, results are matched by tool name.
    let no_ids = vec![
        ("/messages/2/tool_calls/0/id", None),
        ("/messages/2/tool_calls/1/id", None),
        ("/messages/3/tool_call_id", None),
        ("/messages/4/tool_call_id", None),
    ];
    passes(Shape::Ollama, no_ids);
}
