//! The batch services of the fake provider: Anthropic's Message Batches, OpenAI's files and batches, and Gemini's batch mode.
//!
//! Each request of a batch is answered as if it had come alone. A batch ends after a number of looks at it, and its results are
//! in the reverse order.

use super::answer::{CREATED, CREATED_AT};
use super::http::{Answer, Body, Request};
use super::{MODEL, Shared};
use crate::common::reply_to;
use serde_json::{Value, json};

/// What becomes of a request the first time that it is in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is answered.
    Answered,
    /// It fails with a server error.
    Fails,
    /// It expires.
    Expires,
}

/// The services.
pub(super) struct Services {
    /// The number of looks after which a batch ends.
    pub(super) looks: usize,
    /// The fate of each new request, by its number.
    pub(super) fate: fn(usize) -> Fate,
    /// True if the answer to the next request that creates a batch is lost.
    pub(super) loses_answer: bool,
    /// True if the next answer with results is cut off.
    pub(super) cuts_results: bool,
    /// True if batches of others are in the list before and after each one.
    pub(super) is_shared: bool,
    /// The bodies of the requests so far.
    known: Vec<Value>,
    files: Vec<String>,
    pub(super) batches: Vec<Sent>,
}

/// A batch as it was received.
pub(super) struct Sent {
    /// The ids and bodies of its requests.
    pub(super) requests: Vec<(String, Value)>,
    name: Value,
    outcomes: Vec<Outcome>,
    looks: usize,
}

/// The result of a request: a status and a body, or none.
type Outcome = Option<(u16, Value)>;

impl Services {
    pub(super) fn new(looks: usize, fate: fn(usize) -> Fate) -> Services {
        Services {
            looks,
            fate,
            loses_answer: false,
            cuts_results: false,
            is_shared: false,
            known: Vec::new(),
            files: Vec::new(),
            batches: Vec::new(),
        }
    }

    fn is_over(&self, number: usize) -> bool {
        self.batches[number].looks >= self.looks
    }
}

/// Returns the answer to a request to a batch service; `None` if the connection is closed without one.
pub(super) fn answer(shared: &Shared, request: &Request) -> Option<Option<Answer>> {
    shared.state().batches.as_ref()?;
    let path = request.bare_path().to_owned();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let value = || serde_json::from_slice::<Value>(&request.body).expect("JSON");
    let json = |body: Value| Some(Some(Answer::json(200, Vec::new(), &body)));
    let lines = |lines: Vec<String>, is_cut: bool| {
        let mut text = lines.join("\n").into_bytes();
        text.truncate(if is_cut { text.len() * 2 / 3 } else { text.len() });
        Some(Some(Answer { status: 200, headers: Vec::new(), body: Body::Whole(text) }))
    };
    match (request.method.as_str(), &parts[..]) {
        ("POST", ["v1", "messages", "batches"]) => {
            let body = value();
            let requests = list(&body["requests"], |it| (&it["custom_id"], &it["params"]));
            create(shared, request, Value::Null, requests, "/v1/messages")
        }
        ("POST", ["v1", "files"]) => {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let kind = request.header("content-type").unwrap_or_default();
            let boundary = kind.split("boundary=").nth(1).expect("a boundary");
            assert!(text.contains("name=\"purpose\"\r\n\r\nbatch\r\n"), "{text}");
            let file =
                text.split("content-type: application/jsonl\r\n\r\n").nth(1).expect("a file");
            let file = file.split(&format!("\r\n--{boundary}--")).next().unwrap_or_default();
            let mut state = shared.state();
            let services = state.batches.as_mut()?;
            services.files.push(file.to_owned());
            json(json!({"id": format!("file-{}", services.files.len()), "object": "file"}))
        }
        ("POST", ["v1", "batches"]) => {
            let body = value();
            let number = number(body["input_file_id"].as_str().expect("a file"));
            let file = shared.state().batches.as_ref()?.files[number].clone();
            let lines: Vec<Value> =
                file.lines().map(|it| serde_json::from_str(it).expect("JSON")).collect();
            let path = body["endpoint"].as_str().expect("an endpoint").to_owned();
            assert!(lines.iter().all(|line| line["method"] == "POST" && line["url"] == *path));
            let requests = list(&json!(lines), |it| (&it["custom_id"], &it["body"]));
            let name = body["metadata"].clone();
            create(shared, request, name, requests, &path)
        }
        ("POST", ["v1beta", "models", model]) if model.ends_with(":batchGenerateContent") => {
            let body = value();
            let batch = &body["batch"];
            let requests = list(&batch["inputConfig"]["requests"]["requests"], |it| {
                (&it["metadata"]["key"], &it["request"])
            });
            let name = batch["displayName"].clone();
            let path = path.replace("batchGenerateContent", "generateContent");
            create(shared, request, name, requests, &path)
        }
        ("GET", ["v1", "messages", "batches"] | ["v1" | "v1beta", "batches"]) => {
            let mut state = shared.state();
            let services = state.batches.as_mut()?;
            let mut list: Vec<Value> = Vec::new();
            for number in (0..services.batches.len()).rev() {
                list.push(describe(services, number, &path, false));
                if services.is_shared {
                    // A batch of somebody else, of the same size.
                    let mut other = describe(services, number, &path, false);
                    other["id"] = json!(format!("batch-other-{number}"));
                    list.insert(list.len() - 1, other);
                }
            }
            match path.starts_with("/v1beta") {
                true => json(json!({"operations": list})),
                false => json(json!({"data": list, "has_more": false})),
            }
        }
        ("GET", ["v1", "messages", "batches", id, rest @ ..]) if id.starts_with("batch-other") => {
            let state = shared.state();
            let services = state.batches.as_ref()?;
            let mut other = describe(services, number(id), &path, false);
            other["id"] = json!(id);
            other["processing_status"] = json!("ended");
            match rest {
                [] => json(other),
                _ => lines(
                    vec![json!({"custom_id": "mine", "result": {"type": "expired"}}).to_string()],
                    false,
                ),
            }
        }
        ("GET", ["v1", "messages", "batches", id] | ["v1" | "v1beta", "batches", id]) => {
            let mut state = shared.state();
            let services = state.batches.as_mut()?;
            services.batches[number(id)].looks += 1;
            json(describe(services, number(id), &path, true))
        }
        ("GET", ["v1", "messages", "batches", id, "results"]) => {
            let mut state = shared.state();
            let is_cut = std::mem::take(&mut state.batches.as_mut()?.cuts_results);
            let results = results(state.batches.as_ref()?, number(id), |id, outcome| {
                let result = match outcome {
                    Some((200, body)) => json!({"type": "succeeded", "message": body}),
                    Some((_, body)) => json!({"type": "errored", "error": body}),
                    None => json!({"type": "expired"}),
                };
                json!({"custom_id": id, "result": result})
            });
            lines(results.iter().map(Value::to_string).collect(), is_cut)
        }
        ("GET", ["v1", "files", id, "content"]) => {
            let mut state = shared.state();
            let is_cut = std::mem::take(&mut state.batches.as_mut()?.cuts_results);
            let results =
                results(state.batches.as_ref()?, number(id), |id, outcome| match outcome {
                    Some((status, body)) => json!({
                        "id": "batch_req", "custom_id": id, "error": null,
                        "response": {"status_code": status, "request_id": "r", "body": body},
                    }),
                    None => json!({
                        "id": "batch_req", "custom_id": id, "response": null,
                        "error": {"code": "batch_expired", "message": "not executed in time"},
                    }),
                });
            let is_output = |it: &Value| it["response"]["status_code"] == 200;
            let wanted = id.starts_with("output");
            let results = results.iter().filter(|it| is_output(it) == wanted);
            lines(results.map(Value::to_string).collect(), is_cut)
        }
        ("POST", _) if path.ends_with("/responses") || path.ends_with(":generateContent") => {
            shared.note(request, 200);
            json(plain_reply(&value()))
        }
        _ => None,
    }
}

fn list(entries: &Value, parts: fn(&Value) -> (&Value, &Value)) -> Vec<(String, Value)> {
    let entries = entries.as_array().expect("a list of requests").iter().map(parts);
    entries.map(|(id, body)| (id.as_str().expect("an id").to_owned(), body.clone())).collect()
}

/// Returns the number at the end of an id, counted from 0.
fn number(id: &str) -> usize {
    let number = id.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
    let is_other = id.starts_with("batch-other");
    number.expect("a number") - usize::from(!is_other)
}

/// Creates a batch, and answers its requests, each as if it had come alone.
fn create(
    shared: &Shared,
    request: &Request,
    name: Value,
    requests: Vec<(String, Value)>,
    path: &str,
) -> Option<Option<Answer>> {
    let mut outcomes = Vec::new();
    for (_, body) in &requests {
        assert!(body.get("stream").is_none_or(|it| it == false), "a stream in a batch");
        let fate = {
            let mut state = shared.state();
            let services = state.batches.as_mut()?;
            let is_new = !services.known.contains(body);
            services.known.push(body.clone());
            let count = services.known.len() - 1;
            if is_new { (services.fate)(count) } else { Fate::Answered }
        };
        outcomes.push(match fate {
            Fate::Expires => None,
            Fate::Fails if path == "/v1/messages" => Some((
                529,
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
            )),
            Fate::Fails if path.contains("generate") => {
                Some((503, json!({"code": 14, "message": "busy"})))
            }
            Fate::Fails => {
                Some((500, json!({"error": {"message": "busy", "type": "server_error"}})))
            }
            Fate::Answered => {
                let single = Request {
                    method: "POST".to_owned(),
                    path: path.to_owned(),
                    headers: request
                        .headers
                        .iter()
                        .map(|(name, value)| match name.as_str() {
                            "content-type" => (name.clone(), "application/json".to_owned()),
                            _ => (name.clone(), value.clone()),
                        })
                        .collect(),
                    body: body.to_string().into_bytes(),
                };
                shared.alone(single)
            }
        });
    }
    let mut state = shared.state();
    let services = state.batches.as_mut()?;
    services.batches.push(Sent { requests, name, outcomes, looks: 0 });
    let lost = std::mem::take(&mut services.loses_answer);
    let last = services.batches.len() - 1;
    let described = describe(services, last, request.bare_path(), false);
    Some((!lost).then(|| Answer::json(200, Vec::new(), &described)))
}

/// Describes a batch. Only Gemini's description has the results, if they are wanted.
fn describe(services: &Services, index: usize, path: &str, results_too: bool) -> Value {
    let (batch, is_over) = (&services.batches[index], services.is_over(index));
    let (number, all) = (index + 1, batch.requests.len());
    if path.starts_with("/v1/messages") {
        let running = if is_over { 0 } else { all };
        return json!({
            "id": format!("msgbatch-{number}"), "type": "message_batch", "created_at": CREATED_AT,
            "processing_status": if is_over { "ended" } else { "in_progress" },
            "request_counts": {
                "processing": running, "succeeded": all - running,
                "errored": 0, "canceled": 0, "expired": 0,
            },
        });
    }
    if path.starts_with("/v1beta") {
        let mut batch_value = json!({
            "name": format!("batches/b-{number}"),
            "metadata": {
                "displayName": batch.name, "createTime": CREATED_AT, "model": MODEL,
                "state": if is_over { "BATCH_STATE_SUCCEEDED" } else { "BATCH_STATE_RUNNING" },
            },
            "done": is_over,
        });
        if is_over && results_too {
            // Without keys, the results must be in the order of the requests.
            let results: Vec<Value> = batch
                .outcomes
                .iter()
                .map(|outcome| match outcome {
                    Some((200, body)) => json!({"response": body}),
                    Some((_, error)) => json!({"error": error}),
                    None => json!({"error": {"code": 4, "message": "expired"}}),
                })
                .collect();
            batch_value["response"] = json!({"inlinedResponses": {"inlinedResponses": results}});
        }
        return batch_value;
    }
    json!({
        "id": format!("batch-{number}"), "object": "batch", "created_at": CREATED,
        "status": if is_over { "completed" } else { "in_progress" }, "metadata": batch.name,
        "output_file_id": is_over.then(|| format!("output-{number}")),
        "error_file_id": is_over.then(|| format!("errors-{number}")),
        "request_counts": {"total": all, "completed": 0, "failed": 0},
    })
}

/// Returns the results of a batch, in the reverse order.
fn results(services: &Services, index: usize, result: fn(&str, &Outcome) -> Value) -> Vec<Value> {
    let batch = &services.batches[index];
    assert!(services.is_over(index), "the results are not there yet");
    let each = batch.requests.iter().zip(&batch.outcomes).rev();
    each.map(|((id, _), outcome)| result(id, outcome)).collect()
}

/// Returns the reply of Responses or Gemini to a body.
fn plain_reply(body: &Value) -> Value {
    let items = body["input"].as_array().or(body["contents"].as_array());
    let items = items.map(Vec::as_slice).unwrap_or_default();
    let last = items.iter().rfind(|item| item["role"] == "user").expect("a prompt");
    let text = last["content"].as_str().or(last["content"][0]["text"].as_str());
    let text = text.or(last["parts"][0]["text"].as_str()).unwrap_or_default();
    let reply = reply_to(items.len(), text);
    if body["contents"].is_array() {
        return json!({
            "candidates": [{"content": {"role": "model", "parts": [{"text": reply}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12},
            "modelVersion": MODEL,
        });
    }
    let content = json!([{"type": "output_text", "text": reply, "annotations": []}]);
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": MODEL,
        "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}],
        "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
    })
}
