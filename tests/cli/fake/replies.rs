//! Reads whole and streamed replies of every shape as a [`Reply`].

use serde_json::{Value, json};

use crate::common::shapes::Shape;

use super::client::Response;

/// The content of a reply.
#[derive(Debug, Default, PartialEq)]
pub struct Reply {
    /// The text of all blocks.
    pub text: String,
    /// The id, name and input of each call.
    pub calls: Vec<(String, String, Value)>,
    /// The stop reason.
    pub stop: String,
    /// The tokens of the prompt and of the reply.
    pub usage: (u64, u64),
}

fn str_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads a complete reply.
pub fn read(shape: Shape, response: &Response) -> Reply {
    assert!(response.ended && response.status == 200, "{}", response.head);
    let streams = response.head.contains("chunked");
    match (shape, streams) {
        (Shape::Anthropic, false) => anthropic(&response.json()),
        (Shape::Anthropic, true) => anthropic_stream(&response.body()),
        (Shape::OpenAi, false) => openai(&response.json()),
        (Shape::OpenAi, true) => openai_stream(&response.body()),
        (Shape::Ollama, _) => ollama(&response.body(), streams),
    }
}

fn anthropic(body: &Value) -> Reply {
    let mut reply = Reply { stop: str_of(&body["stop_reason"]), ..Reply::default() };
    for block in body["content"].as_array().expect("content") {
        match block["type"].as_str() {
            Some("text") => reply.text += &str_of(&block["text"]),
            _ => reply.calls.push((
                str_of(&block["id"]),
                str_of(&block["name"]),
                block["input"].clone(),
            )),
        }
    }
    let usage = |name: &str| body["usage"][name].as_u64().expect("usage");
    reply.usage = (usage("input_tokens"), usage("output_tokens"));
    reply
}

fn anthropic_stream(body: &str) -> Reply {
    let mut message = Value::Null;
    let mut names = Vec::new();
    let mut input = String::new();
    for event in body.strip_suffix("\n\n").expect("the end of an event").split("\n\n") {
        let (name, data) = event.split_once('\n').expect("two lines");
        let data: Value =
            serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
        let name = name.strip_prefix("event: ").expect("an event").to_owned();
        assert_eq!(name, data["type"]);
        let index = data["index"].as_u64().unwrap_or_default() as usize;
        match name.as_str() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().expect("content");
                assert_eq!(content.len(), index);
                content.push(data["content_block"].clone());
                input.clear();
            }
            "content_block_delta" => match data["delta"]["type"].as_str() {
                Some("text_delta") => {
                    let text = &mut message["content"][index]["text"];
                    *text = json!(str_of(text) + &str_of(&data["delta"]["text"]));
                }
                _ => input += &str_of(&data["delta"]["partial_json"]),
            },
            "content_block_stop" if !input.is_empty() => {
                message["content"][index]["input"] = serde_json::from_str(&input).expect("JSON");
            }
            "message_delta" => {
                message["stop_reason"] = data["delta"]["stop_reason"].clone();
                message["usage"]["output_tokens"] = data["usage"]["output_tokens"].clone();
            }
            _ => {}
        }
        names.push(name);
    }
    assert_eq!(names.first().map(String::as_str), Some("message_start"));
    assert_eq!(names.last().map(String::as_str), Some("message_stop"));
    anthropic(&message)
}

fn openai_usage(body: &Value) -> (u64, u64) {
    let usage = |name: &str| body["usage"][name].as_u64().expect("usage");
    assert_eq!(usage("total_tokens"), usage("prompt_tokens") + usage("completion_tokens"));
    (usage("prompt_tokens"), usage("completion_tokens"))
}

fn openai(body: &Value) -> Reply {
    let choice = &body["choices"][0];
    let call = |call: &Value| {
        let input = str_of(&call["function"]["arguments"]);
        let input = serde_json::from_str(&input).expect("JSON");
        (str_of(&call["id"]), str_of(&call["function"]["name"]), input)
    };
    let calls = choice["message"]["tool_calls"].as_array().into_iter().flatten();
    Reply {
        text: str_of(&choice["message"]["content"]),
        calls: calls.map(call).collect(),
        stop: str_of(&choice["finish_reason"]),
        usage: openai_usage(body),
    }
}

fn openai_stream(body: &str) -> Reply {
    let mut reply = Reply::default();
    let mut calls: Vec<(String, String, String)> = Vec::new();
    let events =
        body.strip_suffix("\n\ndata: [DONE]\n\n").expect("the end of the stream").split("\n\n");
    for event in events {
        let chunk: Value =
            serde_json::from_str(event.strip_prefix("data: ").expect("data")).expect("JSON");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let Some(choice) = chunk["choices"].get(0) else {
            reply.usage = openai_usage(&chunk);
            continue;
        };
        reply.text += &str_of(&choice["delta"]["content"]);
        reply.stop += &str_of(&choice["finish_reason"]);
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            if call["id"].is_string() {
                calls.push((str_of(&call["id"]), str_of(&call["function"]["name"]), String::new()));
            }
            let index = call["index"].as_u64().expect("an index") as usize;
            calls[index].2 += &str_of(&call["function"]["arguments"]);
        }
    }
    let whole = calls.into_iter();
    reply.calls =
        whole.map(|(id, n, i)| (id, n, serde_json::from_str(&i).expect("JSON"))).collect();
    reply
}

fn ollama(body: &str, streams: bool) -> Reply {
    let mut reply = Reply::default();
    let lines: Vec<Value> =
        body.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() > 1 || !streams);
    for (n, line) in lines.iter().enumerate() {
        reply.text += &str_of(&line["message"]["content"]);
        for call in line["message"]["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            reply.calls.push((
                str_of(&call["id"]),
                str_of(&function["name"]),
                function["arguments"].clone(),
            ));
        }
        assert_eq!(line["done"], n + 1 == lines.len());
    }
    let last = lines.last().expect("a line");
    reply.stop = str_of(&last["done_reason"]);
    let usage = |name: &str| last[name].as_u64().expect("usage");
    reply.usage = (usage("prompt_eval_count"), usage("eval_count"));
    reply
}
