//! Reads a response.

use crate::json::write::{Members, opening};
use crate::json::{Object, elements, on_one_line};
use crate::provider::Reply;
use crate::provider::collect::{CallIds, RawString, bounded, call_block};

/// The members of a call, besides its name, id and input, that must go back with it (`response_function_tool_call_param.py` in
/// openai 3.57.0). OpenAI refuses a call without its namespace: `Missing namespace for function_call 'f'. It does not exist in
/// the default namespace.` (public reports, 2026).
const CALL_MEMBERS: [&str; 3] = ["async", "caller", "namespace"];

/// The type of a call of a custom tool, whose input is text and no JSON (`response_custom_tool_call.py`), and the member of the
/// input in which it is kept.
pub(super) const CUSTOM: &str = "custom_tool_call";
pub(super) const CUSTOM_INPUT: &str = "input";

/// Reads a complete response.
///
/// # Errors
/// Returns what is missing, or which tool call has an invalid input, phrased to follow "the answer".
pub(super) fn read(response: &Object<'_>) -> Result<Reply, String> {
    let mut output = response.get("output").and_then(elements).ok_or("has no output")?;
    if response.string("object").as_deref() != Some("response.compaction") {
        return read_items(response, &output);
    }
    // The output repeats the user's messages, which the compaction keeps itself.
    output.retain(|raw| {
        Object::parse(raw).is_ok_and(|item| item.string("type").as_deref() == Some("compaction"))
    });
    let reply = read_items(response, &output)?;
    Ok(Reply { stop_reason: Some("compaction".to_owned()), ..reply })
}

/// Reads a response with these items.
///
/// # Errors
/// Returns which tool call has an invalid input, phrased to follow "the answer".
pub(super) fn read_items<S: AsRef<str>>(
    response: &Object<'_>,
    items: &[S],
) -> Result<Reply, String> {
    bounded(items.len())?;
    let reason = stop_reason(response)?;
    let mut reply = Reply {
        model: response.string("model").map(Into::into),
        usage: response.get("usage").filter(|raw| raw.starts_with('{')).map(on_one_line),
        stop_reason: Some(reason),
        ..Reply::default()
    };
    let mut ids = CallIds::default();
    for (number, raw) in items.iter().enumerate() {
        let is_last = number + 1 == items.len();
        let item = Object::parse(raw.as_ref()).map_err(|_| "has an item that is not an object")?;
        add_item(&item, is_last, &mut ids, &mut reply)?;
    }
    let begin = opening!("type": "tool_use", "id");
    let has_calls = reply.blocks.iter().any(|block| block.starts_with(begin));
    if has_calls && reply.stop_reason.as_deref() == Some("end_turn") {
        reply.stop_reason = Some("tool_use".to_owned());
    }
    Ok(reply)
}

/// Returns the stop reason in Anthropic's vocabulary; an unknown reason is kept.
///
/// # Errors
/// If the response is not finished.
fn stop_reason(response: &Object<'_>) -> Result<String, String> {
    let details = response.get("incomplete_details").and_then(|raw| Object::parse(raw).ok());
    let reason = details.as_ref().and_then(|details| details.string("reason"));
    let status = response.string("status").unwrap_or_default();
    Ok(match (&*status, reason.as_deref()) {
        ("completed" | "", None) => "end_turn".to_owned(),
        (_, Some("max_output_tokens")) => "max_tokens".to_owned(),
        (_, Some("content_filter")) => "refusal".to_owned(),
        (_, Some(other)) => other.to_owned(),
        ("incomplete", None) => "max_tokens".to_owned(),
        (status, None) => return Err(format!("is not finished: its status is '{status}'")),
    })
}

/// Adds the blocks of an item.
fn add_item(
    item: &Object<'_>,
    is_last: bool,
    ids: &mut CallIds,
    reply: &mut Reply,
) -> Result<(), String> {
    match item.string("type").as_deref() {
        Some("message") => {
            let phase = item.get("phase").filter(|raw| raw.starts_with('"'));
            let phase = phase.map(|raw| Members::of_type("reasoning").raw("phase", raw));
            reply.blocks.extend(phase.map(Members::into_json));
            for part in item.get("content").and_then(elements).unwrap_or_default() {
                add_part(part, reply);
                reply.blocks.extend(annotations(item, part));
            }
        }
        Some(kind @ ("function_call" | CUSTOM)) => {
            let text = |name: &str| item.string(name).unwrap_or_default();
            let (id, name) = (text("call_id"), text("name"));
            if name.is_empty() {
                return Err("has a tool call without a name".to_owned());
            }
            let id = ids.next(&if id.is_empty() { text("id") } else { id });
            let input = match kind {
                CUSTOM => Members::new().string(CUSTOM_INPUT, &text("input")).into_json(),
                _ => text("arguments").into_owned(),
            };
            let block = match call_block(&id, &name, &input) {
                // It is dropped when records are made.
                Err(_) if is_last && reply.may_end_in_partial_call() => call_block(&id, &name, ""),
                block => block,
            };
            reply.blocks.extend(call_members(item));
            reply.blocks.push(block?);
        }
        _ => {
            let own = Members::of_type("reasoning").raw("item", &on_one_line(item.text()));
            reply.blocks.push(own.into_json());
        }
    }
    Ok(())
}

/// Returns the block with the [`CALL_MEMBERS`] of a call, which stands before it, and with the type of a call of a custom tool;
/// `None` if it has none.
fn call_members(item: &Object<'_>) -> Option<String> {
    let is_custom = item.string("type").as_deref() == Some(CUSTOM);
    let is_kept = |name: &str| CALL_MEMBERS.contains(&name) || is_custom && name == "type";
    let members = item.members().filter(|member| member.value != "null" && is_kept(&member.name()));
    let call = members.fold(Members::new(), Members::member).into_json();
    (call != "{}")
        .then(|| Members::of_type("reasoning").raw("call", &on_one_line(&call)).into_json())
}

/// Returns the block with what a part of a message cites, which stands after its text; `None` if it cites nothing. The id of the
/// message must go back with it (`response_output_message_param.py`).
fn annotations(message: &Object<'_>, part: &str) -> Option<String> {
    let part = Object::parse(part).ok()?;
    let list = part.get("annotations").filter(|raw| elements(raw).is_some_and(|it| !it.is_empty()));
    let block = Members::of_type("reasoning").raw("annotations", &on_one_line(list?));
    Some(block.optional(Members::raw, "id", message.get("id")).into_json())
}

/// Adds a part of a message. Audio is not kept.
fn add_part(raw: &str, reply: &mut Reply) {
    let Ok(part) = Object::parse(raw) else { return };
    let mut text = RawString::default();
    match part.string("type").as_deref() {
        Some("output_text" | "text") => text.keep(part.get("text")),
        Some("refusal") => {
            text.keep(part.get("refusal"));
            if reply.stop_reason.as_deref() == Some("end_turn") {
                reply.stop_reason = Some("refusal".to_owned());
            }
        }
        kind => {
            let kind = kind.unwrap_or("part").trim_start_matches("output_").to_owned();
            text.keep(Some(&crate::json::quote(&format!("[{kind}]"))));
            reply.left_out.push(kind);
        }
    }
    if !text.is_empty() {
        reply.blocks.push(text_block(text));
    }
}

/// Returns a text block.
pub(super) fn text_block(text: RawString) -> String {
    text.into_between(concat!(opening!("type": "text", "text"), "\""), "\"}")
}
