//! Translates items of the Responses API into records.

use crate::dialect::blocks::text;
use crate::dialect::translation::{
    IMPORTED, Reply, ReplyPart, SourceLine, ToolResult, Translation, image_url_block, text_block,
};
use crate::json::write::{self, Members};
use crate::json::{self, Object, elements};
use std::borrow::Cow;

/// The role of an item in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A user message.
    Prompt,
    /// A developer or system message.
    System,
    /// Text or reasoning from the model.
    Reply,
    /// A tool call.
    Call,
    /// The output of a tool call.
    Output,
    /// Another known item, such as a web search, that records cannot represent.
    Other,
    /// An unknown type.
    Unknown,
}

impl Kind {
    /// Returns the kind of an item.
    #[must_use]
    pub fn of(item: &Object<'_>) -> Kind {
        match (item.string("type").as_deref(), item.get("role")) {
            (Some("message"), Some("\"user\"")) => Kind::Prompt,
            (Some("message"), Some("\"assistant\"")) | (Some("reasoning"), _) => Kind::Reply,
            (Some("message"), _) => Kind::System,
            (Some("function_call" | "custom_tool_call" | "local_shell_call"), _) => Kind::Call,
            (Some("function_call_output" | "custom_tool_call_output"), _) => Kind::Output,
            (Some("web_search_call" | "ghost_snapshot" | "compaction" | "tool_search_call"), _) => {
                Kind::Other
            }
            _ => Kind::Unknown,
        }
    }
}

/// Writes an item as one record or several. `number` is the number of the item's first record among those made
/// from this line, counted from 1. `facts` are the model and the token counts, as JSON.
///
/// # Errors
/// Fails if the translation cannot be written.
pub fn write(
    item: &Object<'_>,
    line: &SourceLine<'_>,
    number: usize,
    facts: (Option<&str>, Option<String>),
    out: &mut Translation,
) -> anyhow::Result<()> {
    let kind = Kind::of(item);
    match kind {
        Kind::Prompt => {
            let content = content(item.get("content").unwrap_or("[]"));
            out.record(line, number, "user", |it| it.raw("content", &content))
        }
        Kind::Reply | Kind::Call => {
            let reply = Reply {
                parts: parts(item),
                model: facts.0,
                provider: Some("\"openai\""),
                usage: facts.1.map(Cow::Owned),
                reasoning: reasoning(item),
                ..Reply::default()
            };
            match &reply.usage {
                None if kind == Kind::Call => out.more_of_reply(line, number, &reply.parts),
                _ => out.reply_from(line, number, &reply),
            }
        }
        Kind::Output => {
            let call = item.get("call_id").filter(|id| id.starts_with('"')).unwrap_or("\"\"");
            let (content, is_error) = output(item.get("output").unwrap_or("\"\""));
            out.result(line, number, &ToolResult { call, content, is_error })
        }
        _ => {
            if kind == Kind::Unknown {
                let name = item.string("type").unwrap_or_default();
                out.unknown(format!("items of the unknown type '{name}'"), line.place);
            }
            out.record(line, number, IMPORTED, |it| it.raw("record", item.text()))
        }
    }
}

/// Returns the text of a prompt; `None` for other items, and for context that Codex added in the form of user
/// messages.
#[must_use]
pub fn prompt(item: &Object<'_>) -> Option<String> {
    if Kind::of(item) != Kind::Prompt {
        return None;
    }
    let text = text(item.get("content")?);
    let is_context = ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions"]
        .iter()
        .any(|begin| text.starts_with(begin));
    (!is_context).then_some(text)
}

/// Returns the content of a message, as JSON.
fn content(raw: &str) -> Cow<'_, str> {
    let Some(blocks) = elements(raw) else { return Cow::Borrowed(raw) };
    Cow::Owned(write::list(blocks.into_iter().map(block)))
}

fn block(raw: &str) -> Cow<'_, str> {
    let Ok(block) = Object::parse(raw) else { return Cow::Borrowed(raw) };
    match block.string("type").as_deref() {
        Some("input_text" | "output_text" | "text" | "refusal") => {
            let text = block.get("text").or_else(|| block.get("refusal")).unwrap_or("\"\"");
            Cow::Owned(text_block(text))
        }
        Some("input_image") => match block.string("image_url") {
            Some(url) => Cow::Owned(image_url_block(&url)),
            None => Cow::Borrowed(raw),
        },
        _ => Cow::Borrowed(raw),
    }
}

fn parts<'a>(item: &Object<'a>) -> Vec<ReplyPart<'a>> {
    let quoted = |name: &str| item.get(name).filter(|raw| raw.starts_with('"'));
    let call = |name: Cow<'a, str>, input: Cow<'a, str>| {
        let id = quoted("call_id").or_else(|| quoted("id")).unwrap_or("\"\"");
        vec![ReplyPart::Call(Cow::Borrowed(id), name, input)]
    };
    let name = Cow::Borrowed(quoted("name").unwrap_or("\"\""));
    match item.string("type").as_deref() {
        Some("message") => {
            let content = item.get("content").unwrap_or("[]");
            match elements(content) {
                Some(blocks) => {
                    blocks.into_iter().map(|raw| ReplyPart::Block(block(raw))).collect()
                }
                None => vec![ReplyPart::text(content)],
            }
        }
        Some("function_call") => {
            let arguments = item.string("arguments").unwrap_or_default();
            let is_object = Object::parse(&arguments).is_ok();
            let input = if is_object { json::on_one_line(&arguments) } else { input(&arguments) };
            call(name, Cow::Owned(input))
        }
        Some("custom_tool_call") => {
            call(name, Cow::Owned(input(&item.string("input").unwrap_or_default())))
        }
        Some("local_shell_call") => {
            let action = item.get("action").filter(|raw| raw.starts_with('{')).unwrap_or("{}");
            call(Cow::Borrowed("\"local_shell\""), Cow::Borrowed(action))
        }
        _ => Vec::new(),
    }
}

/// Returns plain text as the input of a call, which has to be an object.
fn input(text: &str) -> String {
    Members::new().string("input", text).into_json()
}

/// Returns the readable part of reasoning. Its encrypted part can be read only by the API that wrote it.
fn reasoning(item: &Object<'_>) -> Option<String> {
    let summary = item.get("summary").filter(|_| item.get("type") == Some("\"reasoning\""))?;
    Some(text(summary)).filter(|text| !text.is_empty())
}

/// Returns the content of an output, and true if the tool failed. Old versions wrote an object that holds both.
fn output(raw: &str) -> (Cow<'_, str>, bool) {
    if raw.starts_with('{')
        && let Ok(object) = Object::parse(raw)
    {
        let content = object.get("content").unwrap_or("\"\"");
        return (content_or_text(content), object.get("success") == Some("false"));
    }
    (content_or_text(raw), false)
}

fn content_or_text(raw: &str) -> Cow<'_, str> {
    match raw.as_bytes().first() {
        Some(b'"' | b'[') => content(raw),
        _ => Cow::Owned(json::quote(raw)),
    }
}
