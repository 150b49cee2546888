//! claw-index mcp: frames that a client may send by mistake or by intent, at random. None of them ends the server or breaks its
//! answers, and a request among them is answered as if it came alone.

use std::collections::HashMap;
use std::env;

use serde_json::{Value, json};

use super::mcp::{hello, sandbox};
use crate::choices::Choices;
use crate::common::{AssertExt, Sandbox, frames};

/// The number of sessions in a short and in a full run.
const SESSIONS: [u64; 2] = [6, 3000];
/// The number of frames in a session.
const FRAMES: usize = 400;
/// The diagnostic for a session whose first message is not a request.
const REFUSED: &str =
    "claw-index: cannot serve the client: its first message is not 'initialize'\n";

/// The metadata of version 2026-07-28 of the protocol, with which a request needs no session. It stands for `META`.
const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}"#;
/// Requests that the server understands or refuses: the method and the parameters.
#[rustfmt::skip]
const REQUESTS: [(&str, &str); 20] = [
    ("tools/call", r#"{"name":"search","arguments":{"words":"needle","session":"d/a.jsonl","role":"user","since":"2026-01-01","limit":3}}"#),
    ("tools/call", r#"{"name":"list_sessions","arguments":{"limit":1,"skip":1}}"#),
    ("tools/call", r#"{"name":"read_turns","arguments":{"session":"d/a.jsonl","first":1,"count":2,"full":true}}"#),
    ("tools/call", r#"{"name":"statistics","arguments":{"limit":2}}"#),
    ("tools/call", r#"{"name":"query","arguments":{"sql":"SELECT key, 'x' FROM sessions WHERE turn_count > 1"}}"#),
    ("initialize", r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}"#),
    ("ping", "{}"),
    ("server/discover", r#"{"_meta":META}"#),
    ("tools/list", r#"{"cursor":"1","_meta":META}"#),
    ("resources/list", r#"{"cursor":"1"}"#),
    ("resources/read", r#"{"uri":"claw-session:d%2Fa.jsonl"}"#),
    ("resources/templates/list", "{}"),
    ("resources/subscribe", r#"{"uri":"claw-session:d%2Fa.jsonl"}"#),
    ("subscriptions/listen", r#"{"_meta":META,"notifications":{"toolsListChanged":true}}"#),
    ("prompts/list", "{}"),
    ("prompts/get", r#"{"name":"p","arguments":{"a":"b"}}"#),
    ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}"#),
    ("logging/setLevel", r#"{"level":"debug"}"#),
    ("tasks/get", r#"{"taskId":"t"}"#),
    ("x/y", r#"{"a":[1]}"#),
];
/// Frames that need no answer.
#[rustfmt::skip]
const UNASKED: [&str; 7] = [
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"r"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5,"total":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m","data":[1]}}"#,
];

/// A frame, and its id if it is a request that must be answered.
#[derive(Clone)]
struct Frame {
    line: Vec<u8>,
    id: Option<String>,
}

/// Returns one of [`REQUESTS`], with this id.
fn any_request(id: &str, choices: &mut Choices) -> Value {
    let (method, params) = choices.of_these(&REQUESTS);
    let params: Value = serde_json::from_str(&params.replace("META", META)).expect("JSON");
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns the frames of a session, three of four of which are changed. If the first is, which decides what the session is, no
/// frame must be answered.
fn session(choices: &mut Choices) -> Vec<Frame> {
    let first = hello(0, "2025-11-25");
    let is_begun = !choices.one_in(5);
    let line = match is_begun {
        true => first.into_bytes(),
        false => frames::changed(&serde_json::from_str(&first).expect("JSON"), choices),
    };
    let mut frames = vec![Frame { line, id: None }];
    for at in 0..FRAMES {
        if choices.one_in(4) {
            let id = format!("sound {at}");
            let line = any_request(&id, choices).to_string().into_bytes();
            frames.push(Frame { line, id: is_begun.then_some(id) });
            continue;
        }
        let frame = match choices.one_in(4) {
            true => serde_json::from_str(choices.of_these(&UNASKED)).expect("JSON"),
            false => any_request("wrong", choices),
        };
        frames.push(Frame { line: frames::changed(&frame, choices), id: None });
    }
    frames
}

/// Returns the id of an answer, which an answer to what is no request lacks, or the reason why it is not one of JSON-RPC.
fn id_of(line: &str) -> Result<Option<Value>, String> {
    if line.chars().any(char::is_control) {
        return Err(format!("a control character: {line:?}"));
    }
    let answer: Value = serde_json::from_str(line).map_err(|why| format!("{why}: {line}"))?;
    let error = &answer["error"];
    let is_error = error["code"].is_i64() && error["message"].is_string();
    let is_answer = answer["jsonrpc"] == "2.0" && answer["result"].is_object() != is_error;
    let id = answer.get("id").cloned();
    let is_right = match &id {
        Some(id) => is_answer && (id.is_string() || id.is_i64()),
        None => is_answer && error["code"] == -32600,
    };
    if is_right { Ok(id) } else { Err(format!("not an answer of JSON-RPC: {line}")) }
}

/// Sends frames to a server, and returns the number of its answers, or what is wrong with them.
fn answers(frames: &[Frame], sandbox: &Sandbox) -> Result<usize, String> {
    let before = sandbox.read("i.db");
    let input: Vec<u8> = frames.iter().flat_map(|it| [&it.line[..], b"\n"].concat()).collect();
    let server = sandbox.cmd("claw-index").args(["--db", "i.db", "mcp"]);
    let run = server.write_stdin(input).assert();
    match (run.get_output().status.code(), run.stderr_text()) {
        (Some(0), "") | (Some(65), REFUSED) => {}
        (status, text) => return Err(format!("status {status:?}: {text}")),
    }
    if sandbox.read("i.db") != before {
        return Err("the index has changed".to_owned());
    }
    let (mut counts, mut count) = (HashMap::<Option<Value>, usize>::new(), 0);
    for line in run.stdout_text().lines() {
        *counts.entry(id_of(line)?).or_default() += 1;
        count += 1;
    }
    for id in frames.iter().filter_map(|frame| frame.id.as_deref()) {
        match counts.get(&Some(id.into())) {
            Some(1) => {}
            answers => return Err(format!("'{id}' has {answers:?} answers")),
        }
    }
    if count > frames.len() { Err(format!("{count} answers")) } else { Ok(count) }
}

/// Runs a session, and returns the number of its answers. If something is wrong, leaves out frames as long as it still is.
fn run(seed: u64, sandbox: &Sandbox) -> usize {
    let mut frames = session(&mut Choices::seeded(seed));
    let mut why = match answers(&frames, sandbox) {
        Ok(count) => return count,
        Err(why) => why,
    };
    let mut size = frames.len() / 2;
    while size > 0 {
        let mut at = 1;
        while at < frames.len() {
            let mut fewer = frames.clone();
            fewer.drain(at..(at + size).min(frames.len()));
            match answers(&fewer, sandbox) {
                Ok(_) => at += size,
                Err(still) => (frames, why) = (fewer, still),
            }
        }
        size /= 2;
    }
    let lines: Vec<_> = frames.iter().map(|it| String::from_utf8_lossy(&it.line)).collect();
    panic!("CLAW_TEST_SEED={seed}: {why}\n{}", lines.join("\n"));
}

#[test]
fn no_frame_disturbs_the_answers_to_others() {
    let sandbox = sandbox();
    let seeds = match env::var("CLAW_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..=seed,
        None => 1..=SESSIONS[usize::from(env::var_os("CLAW_TEST_FULL").is_some())],
    };
    let count = seeds.clone().count();
    let answers: usize = seeds.map(|seed| run(seed, &sandbox)).sum();
    assert!(answers > count * FRAMES / 8, "{answers} answers in {count} sessions");
}

#[test]
fn a_wrong_answer_is_noticed() {
    for line in [
        "",
        "{}",
        "[]",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1}",
    ] {
        assert!(id_of(line).is_err(), "{line}");
    }
}
