//! Translates pi's messages into records.

use crate::dialect::time;
use crate::dialect::translation::{
    Reply, ReplyPart, SourceLine, ToolResult, Translation, image_block, text_block,
};
use crate::json::write::{self, Members};
use crate::json::{self, Object, elements};
use std::borrow::Cow;

/// A model and its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    provider: Option<String>,
    name: Option<String>,
}

impl Model {
    /// Returns the model that a record names, if it is a model change or a reply.
    #[must_use]
    pub fn of_entry(entry: &Object<'_>) -> Option<Model> {
        match entry.get("type") {
            Some("\"model_change\"") => Some(Model::of(entry, "modelId")),
            Some("\"message\"") => {
                let message = Object::parse(entry.get("message")?).ok()?;
                let is_reply = message.get("role") == Some("\"assistant\"");
                is_reply.then(|| Model::of(&message, "model"))
            }
            _ => None,
        }
    }

    fn of(object: &Object<'_>, name: &str) -> Model {
        let string = |name: &str| object.string(name).map(Cow::into_owned);
        Model { provider: string("provider"), name: string(name) }
    }
}

/// Translates a record with a message. `model` is the model that continues the conversation.
///
/// # Errors
/// Fails if the translation cannot be written.
pub fn message(
    entry: &Object<'_>,
    line: &SourceLine<'_>,
    model: Option<&Model>,
    out: &mut Translation,
) -> anyhow::Result<()> {
    let raw = entry.get("message").unwrap_or_default();
    let Ok(message) = Object::parse(raw) else {
        out.unknown("message records without a message", line.place);
        return out.imported(line, entry.text());
    };
    let ts = message.get("timestamp").and_then(time::of_millis).or_else(|| line.ts.clone());
    let line = &SourceLine { ts, ..line.clone() };
    let own = message.get("content").unwrap_or("[]");
    match message.string("role").as_deref() {
        Some("user" | "custom" | "hookMessage") => out.user(line, &content(own)),
        Some("assistant") => out.reply(line, &reply(&message, own, model)),
        Some("toolResult") => {
            let call = message.get("toolCallId").filter(|id| id.starts_with('"'));
            let (call, is_error) = (call.unwrap_or("\"\""), message.is_true("isError"));
            out.result(line, 1, &ToolResult { call, content: result(own), is_error })
        }
        Some("bashExecution") if !message.is_true("excludeFromContext") => {
            out.user(line, &json::quote(&bash_execution(&message)))
        }
        Some("bashExecution") => out.imported(line, entry.text()),
        role => {
            let role = role.unwrap_or_default();
            out.unknown(format!("messages of the unknown role '{role}'"), line.place);
            out.imported(line, entry.text())
        }
    }
}

/// Returns the content of a prompt. A string is kept unchanged, and images are converted to the form that records use.
#[must_use]
pub fn content(raw: &str) -> Cow<'_, str> {
    match elements(raw) {
        Some(blocks) => Cow::Owned(write::list(blocks.into_iter().map(block))),
        None if raw.starts_with('"') => Cow::Borrowed(raw),
        None => Cow::Borrowed("[]"),
    }
}

/// Returns a block of a prompt or a result in the form that records use.
fn block(raw: &str) -> Cow<'_, str> {
    let Ok(block) = Object::parse(raw) else { return Cow::Borrowed(raw) };
    let get = |name: &str| block.get(name).unwrap_or("\"\"");
    match block.get("type") {
        Some("\"text\"") => Cow::Owned(text_block(get("text"))),
        Some("\"image\"") if block.get("data").is_some() => {
            Cow::Owned(image_block(get("mimeType"), get("data")))
        }
        _ => Cow::Borrowed(raw),
    }
}

/// Returns the content of a result as pi sends it: one text if there is no image.
fn result(raw: &str) -> Cow<'_, str> {
    let Some(blocks) = elements(raw) else { return Cow::Borrowed(raw) };
    let texts: Option<Vec<&str>> = blocks
        .iter()
        .map(|raw| {
            let block = Object::parse(raw).ok()?;
            let is_text = block.get("type") == Some("\"text\"");
            block.get("text").filter(|text| is_text && text.len() > 1 && text.starts_with('"'))
        })
        .collect();
    match texts.as_deref() {
        Some([]) => Cow::Borrowed("\"\""),
        // The text is a slice of the line, so it is not copied.
        Some([text]) => Cow::Borrowed(text),
        Some(texts) => {
            let inner = texts.iter().map(|text| &text[1..text.len() - 1]);
            Cow::Owned(["\"", &inner.collect::<Vec<_>>().join("\\n"), "\""].concat())
        }
        None => content(raw),
    }
}

fn reply<'a>(message: &Object<'a>, content: &'a str, now: Option<&Model>) -> Reply<'a> {
    let stop_reason = message.get("stopReason");
    let is_interrupted = matches!(stop_reason, Some("\"error\"" | "\"aborted\""));
    let is_same_model = now.is_none_or(|now| *now == Model::of(message, "model"));
    let keeps_thinking =
        is_same_model && message.get("api").is_none_or(|api| api == "\"anthropic-messages\"");
    let mut reply = Reply {
        model: message.get("model").filter(|model| model.starts_with('"')),
        provider: message.get("provider").filter(|provider| provider.starts_with('"')),
        stop_reason: match stop_reason {
            Some("\"stop\"") => Some("end_turn"),
            Some("\"length\"") => Some("max_tokens"),
            Some("\"toolUse\"") => Some("tool_use"),
            _ => None,
        },
        usage: message.get("usage").and_then(usage),
        is_interrupted,
        ..Reply::default()
    };
    for raw in elements(content).unwrap_or_default() {
        let Ok(block) = Object::parse(raw) else { continue };
        let get = |name: &str| block.get(name).filter(|raw| raw.starts_with('"'));
        match block.get("type") {
            Some("\"text\"") => reply.parts.push(ReplyPart::text(get("text").unwrap_or("\"\""))),
            // Of an interrupted reply, only the text is kept.
            _ if is_interrupted => {}
            Some("\"thinking\"") => match thinking(&block, is_same_model, keeps_thinking) {
                Thinking::Part(part) => reply.parts.push(part),
                Thinking::Reasoning(text) => {
                    let reasoning = reply.reasoning.get_or_insert_default();
                    reasoning.push_str(&text);
                }
                Thinking::None => {}
            },
            Some("\"toolCall\"") => {
                let arguments = block.get("arguments").filter(|input| input.starts_with('{'));
                let quoted = |name| Cow::Borrowed(get(name).unwrap_or("\"\""));
                let input = Cow::Borrowed(arguments.unwrap_or("{}"));
                reply.parts.push(ReplyPart::Call(quoted("id"), quoted("name"), input));
            }
            _ => {}
        }
    }
    reply
}

/// The translation of a thinking block.
enum Thinking<'a> {
    Part(ReplyPart<'a>),
    /// Reasoning of another API, which cannot be sent again.
    Reasoning(String),
    None,
}

/// Translates a thinking block as pi sends it: unchanged to the model that wrote it, and as plain text to any other.
fn thinking<'a>(block: &Object<'a>, is_same_model: bool, is_kept: bool) -> Thinking<'a> {
    let text = block.get("thinking").filter(|raw| raw.starts_with('"')).unwrap_or("\"\"");
    let signature = block.get("thinkingSignature").filter(|raw| !json::is_blank(raw));
    let is_redacted = block.is_true("redacted");
    let new = |members: Members| Thinking::Part(ReplyPart::Block(Cow::Owned(members.into_json())));
    match signature {
        Some(data) if is_redacted && is_kept => {
            new(Members::of_type("redacted_thinking").raw("data", data))
        }
        _ if is_redacted || json::is_blank(text) => Thinking::None,
        Some(signature) if is_kept => {
            new(Members::of_type("thinking").raw("thinking", text).raw("signature", signature))
        }
        Some(_) if is_same_model => {
            Thinking::Reasoning(json::string(text).unwrap_or_default().into_owned())
        }
        _ => Thinking::Part(ReplyPart::text(text)),
    }
}

/// Converts pi's token counts to the names of the Anthropic API. Returns `None` if all are zero, because nothing was
/// counted then.
fn usage(raw: &str) -> Option<Cow<'_, str>> {
    let usage = Object::parse(raw).ok()?;
    let number = |name: &str| usage.number(name).unwrap_or(0);
    let counts = ["input", "cacheRead", "cacheWrite", "output"].map(number);
    if counts == [0; 4] {
        return None;
    }
    let [input, cache_read, cache_write, output] = counts;
    let members = Members::new()
        .number("input_tokens", input)
        .number("cache_read_input_tokens", cache_read)
        .number("cache_creation_input_tokens", cache_write)
        .number("output_tokens", output);
    Some(Cow::Owned(members.into_json()))
}

/// Returns the text that pi sends for a command that the user ran.
fn bash_execution(message: &Object<'_>) -> String {
    let string = |name: &str| message.string(name).unwrap_or_default();
    let mut text = format!("Ran `{}`\n", string("command"));
    match string("output") {
        output if output.is_empty() => text.push_str("(no output)"),
        output => text.push_str(&format!("```\n{output}\n```")),
    }
    if message.is_true("cancelled") {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = message.get("exitCode").filter(|code| !matches!(*code, "0" | "null"))
    {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    let path = string("fullOutputPath");
    if message.is_true("truncated") && !path.is_empty() {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}
