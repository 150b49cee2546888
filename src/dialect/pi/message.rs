//! Translates pi's messages into records.

use crate::dialect::blocks::only_quoted;
use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Author, Block, Content, Reply, ReplyPart, Usage};
use crate::injected;
use crate::json;
use crate::json::outline::Value;
use crate::usage::Counts;
use std::borrow::Cow;

/// The way in which a reply is sent again. It decides what becomes of its thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// To the model that wrote it.
    SameModel,
    /// To another model. Thinking is not sent.
    OtherModel,
    /// To another model, by a version of pi before 0.86. Thinking is sent as text.
    OtherModelAsText,
}

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
        let names = ["role", "timestamp", "api", "model", "provider", "stopReason"];
        let [role, timestamp, api, model, provider, stop_reason] = value.texts(names);
        let [content, usage] = value.pick(["content", "usage"]);
        Message { value, role, content, timestamp, api, model, provider, stop_reason, usage }
    }

    /// Returns the model and the provider, as JSON, if the message is a reply.
    #[must_use]
    pub fn selected_model(&self) -> Option<[Option<&'a str>; 2]> {
        (self.role == Some("\"assistant\"")).then(|| [self.model, self.provider].map(only_quoted))
    }

    /// Returns the message of an extension, which is the record itself and not a member of it.
    #[must_use]
    pub fn custom(record: Value<'a>) -> Message<'a> {
        Message { role: Some("\"custom\""), timestamp: None, ..Message::of(record) }
    }

    /// Returns the message with the content of an edit. It has no token counts, because the original has them.
    #[must_use]
    pub fn replaced(self, edit: Value<'a>) -> Message<'a> {
        let replacement = edit.member("replacement");
        let inner = replacement.filter(|it| it.is_object()).and_then(|it| it.member("content"));
        Message { content: inner.or(replacement), usage: None, ..self }
    }

    /// Returns true if it is a system message.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.role == Some("\"system\"")
    }

    /// Returns true if a later record can omit it or replace its content.
    #[must_use]
    pub fn is_editable(&self) -> bool {
        const ROLES: [&str; 5] =
            ["\"user\"", "\"assistant\"", "\"toolResult\"", "\"custom\"", "\"hookMessage\""];
        self.role.is_some_and(|role| ROLES.contains(&role))
    }

    /// Translates the message into records, of which the first is record `number` of the line. Returns true if the
    /// translation depends on `replay`.
    pub fn write(
        &self,
        source: &RecordSource<'_>,
        number: usize,
        replay: Replay,
        out: &mut Translation<'_>,
    ) -> bool {
        let value = self.value;
        match self.role.and_then(json::string).as_deref() {
            // pi excludes only commands from the context, OpenClaw also messages.
            _ if value.is_true("excludeFromContext") => out.imported(source),
            Some(role @ ("user" | "custom" | "hookMessage")) => {
                let kind = value.string("customType").unwrap_or_else(|| "extension".into());
                let author = match role {
                    "user" => Author::default(),
                    _ => Author::program(injected::name_of_kind(&kind)),
                };
                let content = content(self.content);
                out.record(source, number, "user").author(&author).content("content", &content);
            }
            Some("assistant") => {
                let (mut reply, has_thinking) = reply(self, source, replay, out);
                let call = reply.usage.as_ref().and_then(|_| call_id(source.line.value));
                reply.call = call.map(Cow::Owned);
                out.reply(source, number, &reply);
                return has_thinking;
            }
            Some("toolResult") => {
                out.record(source, number, "tool_result")
                    .raw("tool_use_id", value.quoted("toolCallId").unwrap_or("\"\""))
                    .content("content", &result(self.content))
                    .flag("is_error", value.is_true("isError"));
            }
            Some("bashExecution") => {
                let command = value.string("command").unwrap_or_default();
                let typed = Some(Cow::Owned(format!("!{command}")));
                let author = Author { injected: Some("command output".into()), typed };
                let mut record = out.record(source, number, "user");
                record.author(&author).string("content", &bash_execution(value));
            }
            Some("branchSummary") => {
                let summary = branch_summary(&value.string("summary").unwrap_or_default());
                let mut record = out.record(source, number, "user");
                record.author(&Author::program("summary")).string("content", &summary);
            }
            // System prompts are not part of the messages.
            Some("system") => out.imported(source),
            role => {
                let role = role.unwrap_or_default();
                out.unknown(format!("messages of the unknown role '{role}'"), source.line.place);
                out.imported(source);
            }
        }
        false
    }
}

/// Returns the text that pi sends for the summary of a branch.
#[must_use]
pub fn branch_summary(summary: &str) -> String {
    format!(
        "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{summary}</summary>"
    )
}

/// Returns the content of a prompt. A string is kept unchanged, and images are converted to the form that records use.
fn content(content: Option<Value<'_>>) -> Content<'_> {
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
fn reply<'a>(
    message: &Message<'a>,
    source: &RecordSource<'_>,
    replay: Replay,
    out: &mut Translation<'_>,
) -> (Reply<'a>, bool) {
    let stop_reason = message.stop_reason;
    let is_interrupted = matches!(stop_reason, Some("\"error\"" | "\"aborted\""));
    let is_anthropic = message.api.is_none_or(|api| api == "\"anthropic-messages\"");
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
    if let Some(text) = message.content.filter(|content| content.text().starts_with('"')) {
        reply.parts.push(ReplyPart::text(text.text()));
    }
    for block in message.content.and_then(Value::elements).into_iter().flatten() {
        match block.get("type") {
            Some("\"text\"") => {
                reply.parts.push(ReplyPart::text(block.quoted("text").unwrap_or("\"\"")));
            }
            // Of an interrupted reply, only the text is kept.
            _ if is_interrupted => {}
            Some("\"thinking\"") => {
                has_thinking = true;
                match thinking(block, replay, is_anthropic) {
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
            kind => {
                let kind = kind.and_then(json::string).unwrap_or_default();
                out.unknown(format!("blocks of the unknown type '{kind}'"), source.line.place);
            }
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
/// that wrote it; a signed block from another API becomes reasoning if the model is the same. An unsigned block becomes
/// plain text. Empty blocks without a signature are dropped, and so is redacted thinking that no longer fits. For another model, thinking
/// becomes reasoning or, in old versions, plain text.
fn thinking(block: Value<'_>, replay: Replay, is_anthropic: bool) -> Thinking<'_> {
    let text = block.quoted("thinking").unwrap_or("\"\"");
    let reasoning = || Thinking::Reasoning(json::string(text).unwrap_or_default().into_owned());
    let signature = block.get("thinkingSignature").filter(|raw| !json::is_blank(raw));
    let is_kept = replay == Replay::SameModel && is_anthropic;
    match (signature, replay) {
        (Some(data), _) if block.is_true("redacted") && is_kept => {
            Thinking::Block(Block::RedactedThinking(data))
        }
        _ if block.is_true("redacted") => Thinking::None,
        (Some(signature), _) if is_kept => Thinking::Block(Block::Thinking(text, signature)),
        _ if json::is_blank(text) => Thinking::None,
        (Some(_), Replay::SameModel) | (_, Replay::OtherModel) => reasoning(),
        (None, Replay::SameModel) | (_, Replay::OtherModelAsText) => {
            Thinking::Block(Block::Text(text.into()))
        }
    }
}

/// Returns an id that the call of a record has in every copy of its session. The id of the record does not suffice,
/// because it has only 32 bits.
#[must_use]
pub fn call_id(record: Value<'_>) -> Option<String> {
    Some([&*record.string("id")?, "@", &*record.string("timestamp")?].concat())
}

/// Returns pi's token counts, or `None` if all are zero, because nothing was counted then.
fn usage(usage: Value<'_>) -> Option<Usage<'_>> {
    let counts = counts(usage);
    (counts != Counts::default()).then_some(Usage::Split(counts))
}

/// Returns the counts in a usage object of pi's.
#[must_use]
pub fn counts(usage: Value<'_>) -> Counts {
    let count = |name: &str| usage.number(name).unwrap_or(0);
    Counts {
        input: count("input"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        cache_write_1h: count("cacheWrite1h").min(count("cacheWrite")),
        output: count("output"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::outline::Outline;

    #[test]
    fn audit_40_what_the_cache_keeps_for_an_hour_is_counted() {
        let text = r#"{"input":3,"output":5,"cacheRead":7,"cacheWrite":11,"cacheWrite1h":9}"#;
        let read = |text: &str| {
            let mut outline = Outline::default();
            let counts = counts(outline.read(text, 64).unwrap());
            (counts.cache_write, counts.cache_write_1h, counts.prompt())
        };
        assert_eq!(read(text), (11, 9, 21));
        assert_eq!(read(&text.replace("\"cacheWrite\":11", "\"cacheWrite\":4")), (4, 4, 14));
    }
}
