//! Translates pi's messages into records.

use crate::dialect::blocks::only_quoted;
use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Block, Content, Reply, ReplyPart, Usage};
use crate::json;
use crate::json::outline::Value;

/// The members of a message, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    value: Value<'a>,
    role: Option<&'a str>,
    content: Option<Value<'a>>,
    /// Milliseconds since 1970.
    pub timestamp: Option<&'a str>,
    api: Option<&'a str>,
    model: Option<&'a str>,
    provider: Option<&'a str>,
    stop_reason: Option<&'a str>,
    usage: Option<Value<'a>>,
}

impl<'a> Message<'a> {
    /// Reads a message, which must be an object.
    #[must_use]
    pub fn of(value: Value<'a>) -> Message<'a> {
        let mut own = Message {
            value,
            role: None,
            content: None,
            timestamp: None,
            api: None,
            model: None,
            provider: None,
            stop_reason: None,
            usage: None,
        };
        for (name, member) in value.members() {
            match &*name {
                "role" => own.role = Some(member.text()),
                "content" => own.content = Some(member),
                "timestamp" => own.timestamp = Some(member.text()),
                "api" => own.api = Some(member.text()),
                "model" => own.model = Some(member.text()),
                "provider" => own.provider = Some(member.text()),
                "stopReason" => own.stop_reason = Some(member.text()),
                "usage" => own.usage = Some(member),
                _ => {}
            }
        }
        own
    }

    /// Returns the model and the provider, as JSON, if the message is a reply.
    #[must_use]
    pub fn selected_model(&self) -> Option<[Option<&'a str>; 2]> {
        (self.role == Some("\"assistant\"")).then(|| [self.model, self.provider].map(only_quoted))
    }
}

/// Translates the record of a message. `is_same_model` is true if the model that wrote a reply continues the
/// conversation. Returns true if the translation depends on that.
pub fn write(
    message: &Message<'_>,
    source: &RecordSource<'_>,
    is_same_model: bool,
    out: &mut Translation<'_>,
) -> bool {
    match message.role.and_then(json::string).as_deref() {
        Some("user" | "custom" | "hookMessage") => {
            let content = content(message.content);
            out.record(source, 1, "user").content("content", &content);
        }
        Some("assistant") => {
            let (reply, has_thinking) = reply(message, is_same_model);
            out.reply(source, 1, &reply);
            return has_thinking;
        }
        Some("toolResult") => {
            let value = message.value;
            out.record(source, 1, "tool_result")
                .raw("tool_use_id", value.quoted("toolCallId").unwrap_or("\"\""))
                .content("content", &result(message.content))
                .flag("is_error", value.is_true("isError"));
        }
        Some("bashExecution") if !message.value.is_true("excludeFromContext") => {
            out.record(source, 1, "user").string("content", &bash_execution(message.value));
        }
        Some("bashExecution") => out.imported(source),
        role => {
            let role = role.unwrap_or_default();
            out.unknown(format!("messages of the unknown role '{role}'"), source.line.place);
            out.imported(source);
        }
    }
    false
}

/// Returns the content of a prompt. A string is kept unchanged, and images are converted to the form that records use.
#[must_use]
pub fn content(content: Option<Value<'_>>) -> Content<'_> {
    let Some(content) = content else { return Content::Blocks(Vec::new()) };
    match content.elements() {
        Some(blocks) => Content::Blocks(blocks.map(block).collect()),
        None if content.text().starts_with('"') => Content::Json(content.text().into()),
        None => Content::Blocks(Vec::new()),
    }
}

/// Returns a block of a prompt or a result in the form that records use.
fn block(block: Value<'_>) -> Block<'_> {
    let get = |name: &str| block.get(name).unwrap_or("\"\"");
    match block.get("type") {
        Some("\"text\"") => Block::Text(get("text").into()),
        Some("\"image\"") if block.get("data").is_some() => {
            Block::Image(get("mimeType").into(), get("data").into())
        }
        _ => Block::Json(block.text()),
    }
}

/// Returns the content of a result as pi sends it: one text if there is no image.
fn result(own: Option<Value<'_>>) -> Content<'_> {
    let Some(own) = own else { return Content::Lines(Vec::new()) };
    let Some(blocks) = own.elements() else { return Content::Json(own.text().into()) };
    match blocks.map(text).collect::<Option<Vec<&str>>>() {
        Some(texts) => Content::Lines(texts),
        None => content(Some(own)),
    }
}

/// Returns the text of a text block.
fn text(block: Value<'_>) -> Option<&str> {
    if block.get("type") == Some("\"text\"") { block.quoted("text") } else { None }
}

/// Returns a reply, and true if it has thinking.
fn reply<'a>(message: &Message<'a>, is_same_model: bool) -> (Reply<'a>, bool) {
    let stop_reason = message.stop_reason;
    let is_interrupted = matches!(stop_reason, Some("\"error\"" | "\"aborted\""));
    let keeps_thinking =
        is_same_model && message.api.is_none_or(|api| api == "\"anthropic-messages\"");
    let mut reply = Reply {
        model: only_quoted(message.model),
        provider: only_quoted(message.provider),
        stop_reason: match stop_reason {
            Some("\"stop\"") => Some("end_turn".into()),
            Some("\"length\"") => Some("max_tokens".into()),
            Some("\"toolUse\"") => Some("tool_use".into()),
            _ => None,
        },
        usage: message.usage.and_then(usage),
        is_interrupted,
        ..Reply::default()
    };
    let mut has_thinking = false;
    for block in message.content.and_then(Value::elements).into_iter().flatten() {
        match block.get("type") {
            Some("\"text\"") => {
                reply.parts.push(ReplyPart::text(block.quoted("text").unwrap_or("\"\"")));
            }
            // Of an interrupted reply, only the text is kept.
            _ if is_interrupted => {}
            Some("\"thinking\"") => {
                has_thinking = true;
                match thinking(block, is_same_model, keeps_thinking) {
                    Thinking::Block(block) => reply.parts.push(ReplyPart::Block(block)),
                    Thinking::Reasoning(text) => {
                        reply.reasoning.get_or_insert_default().push_str(&text);
                    }
                    Thinking::None => {}
                }
            }
            Some("\"toolCall\"") => {
                let input = block.object("arguments").map_or("{}", Value::text).into();
                let quoted = |name| block.quoted(name).unwrap_or("\"\"");
                let (id, name) = (quoted("id").into(), quoted("name"));
                reply.parts.push(ReplyPart::Call { id, name, input });
            }
            _ => {}
        }
    }
    (reply, has_thinking)
}

/// The translation of a thinking block.
enum Thinking<'a> {
    Block(Block<'a>),
    /// Reasoning from an API other than Anthropic's, which cannot be sent again.
    Reasoning(String),
    None,
}

/// Translates a thinking block as pi sends it. A signed block from Anthropic's API goes back unchanged to the model
/// that wrote it; a signed block from another API becomes reasoning if the model is the same. Every other block becomes
/// plain text, except that an empty block and redacted thinking are dropped.
fn thinking(block: Value<'_>, is_same_model: bool, is_kept: bool) -> Thinking<'_> {
    let text = block.quoted("thinking").unwrap_or("\"\"");
    let signature = block.get("thinkingSignature").filter(|raw| !json::is_blank(raw));
    let is_redacted = block.is_true("redacted");
    match signature {
        Some(data) if is_redacted && is_kept => Thinking::Block(Block::RedactedThinking(data)),
        _ if is_redacted || json::is_blank(text) => Thinking::None,
        Some(signature) if is_kept => Thinking::Block(Block::Thinking(text, signature)),
        Some(_) if is_same_model => {
            Thinking::Reasoning(json::string(text).unwrap_or_default().into_owned())
        }
        _ => Thinking::Block(Block::Text(text.into())),
    }
}

/// Returns pi's token counts, or `None` if all are zero, because nothing was counted then.
fn usage(usage: Value<'_>) -> Option<Usage<'_>> {
    let names = ["input", "cacheRead", "cacheWrite", "output"];
    let counts = names.map(|name| usage.number(name).unwrap_or(0));
    (counts != [0; 4]).then_some(Usage::Split(counts))
}

/// Returns the text that pi sends for a command that the user ran.
fn bash_execution(message: Value<'_>) -> String {
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
