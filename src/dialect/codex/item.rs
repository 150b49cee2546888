//! Translates items of the Responses API into records.

use crate::dialect::blocks::{only_quoted, text};
use crate::dialect::codex::calls::Call;
use crate::dialect::translation::{IMPORTED, RecordSource, Translation};
use crate::dialect::writer::{Author, Block, Content, Reply, ReplyPart, Usage};
use crate::injected;
use crate::json::outline::Value;
use crate::json::write::Members;
use crate::json::{self, Object};
use std::borrow::Cow;

/// The role of an item in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A user message.
    Prompt,
    /// A message from another agent.
    AgentMessage,
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

/// The members of an item; texts are JSON.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    value: Value<'a>,
    /// Its role in a conversation.
    pub kind: Kind,
    own_type: Option<&'a str>,
    content: Option<Value<'a>>,
    name: Option<&'a str>,
    call_id: Option<&'a str>,
    arguments: Option<&'a str>,
    output: Option<Value<'a>>,
}

impl<'a> Item<'a> {
    /// Reads an item.
    #[must_use]
    pub fn of(value: Value<'a>) -> Item<'a> {
        let names = ["type", "role", "name", "call_id", "arguments"];
        let [own_type, role, name, call_id, arguments] = value.texts(names);
        let [content, output] = value.pick(["content", "output"]);
        let kind = Kind::of(own_type.and_then(json::string).as_deref(), role);
        Item { value, kind, own_type, content, name, call_id, arguments, output }
    }

    fn own_type(&self) -> Option<Cow<'a, str>> {
        self.own_type.and_then(json::string)
    }
}

impl Kind {
    fn of(own_type: Option<&str>, role: Option<&str>) -> Kind {
        match (own_type, role) {
            (Some("message"), Some("\"user\"")) => Kind::Prompt,
            (Some("message"), Some("\"assistant\"")) | (Some("reasoning"), _) => Kind::Reply,
            (Some("message"), _) => Kind::System,
            (Some("agent_message"), _) => Kind::AgentMessage,
            (Some("function_call" | "custom_tool_call" | "local_shell_call"), _) => Kind::Call,
            (Some("function_call_output" | "custom_tool_call_output"), _) => Kind::Output,
            (Some(known), _) if OTHERS.contains(&known) => Kind::Other,
            _ => Kind::Unknown,
        }
    }
}

/// The known types of items that records cannot represent.
const OTHERS: [&str; 11] = [
    "web_search_call",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
    "configuration_update",
    "ghost_snapshot",
    "compaction_trigger",
    "other",
    "compaction",
    "context_compaction",
];

/// Members of a reply that are not in its items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The model, as JSON.
    pub model: Option<&'a str>,
    /// The call that it answers.
    pub call: Option<&'a Call>,
}

/// Writes an item as one record or several. `number` is the number of the item's first record among those made
/// from this line, counted from 1.
pub fn write(
    item: &Item<'_>,
    source: &RecordSource<'_>,
    number: usize,
    facts: Facts<'_>,
    out: &mut Translation<'_>,
) {
    match item.kind {
        Kind::Prompt | Kind::AgentMessage => {
            let content = item.content.map_or(Content::Blocks(Vec::new()), content);
            out.record(source, number, "user").author(&author(item)).content("content", &content);
        }
        Kind::Call if facts.call.is_none() => out.more_of_reply(source, number, &parts(item)),
        Kind::Reply | Kind::Call => {
            let reply = Reply {
                parts: parts(item),
                model: facts.model,
                provider: Some("\"openai\""),
                usage: facts.call.map(|call| Usage::Whole(call.counts)),
                call: facts.call.map(|call| call.id.as_str().into()),
                reasoning: reasoning(item),
                ..Reply::default()
            };
            out.reply(source, number, &reply);
        }
        Kind::Output => {
            let (content, is_error) = output(item.output);
            out.record(source, number, "tool_result")
                .raw("tool_use_id", only_quoted(item.call_id).unwrap_or("\"\""))
                .content("content", &content)
                .flag("is_error", is_error);
        }
        _ => {
            let name = item.own_type().unwrap_or_default();
            if item.kind == Kind::Unknown {
                out.unknown(format!("items of the unknown type '{name}'"), source.line.place);
            } else if matches!(&*name, "compaction" | "context_compaction") {
                out.unknown("summaries that only OpenAI's API can read", source.line.place);
            }
            out.record(source, number, IMPORTED).raw("record", item.value.text());
        }
    }
}

/// Returns true for a text that Codex adds to a conversation in the form of a user message.
#[must_use]
pub fn is_context(text: &str) -> bool {
    ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions"]
        .iter()
        .any(|begin| text.starts_with(begin))
}

/// Returns the author of a message, which newer versions state for each part of it.
fn author<'a>(item: &Item<'a>) -> Author<'a> {
    if item.kind == Kind::AgentMessage {
        return Author::program("message from an agent");
    }
    let metadata = item.value.object("internal_chat_message_metadata_passthrough");
    let mut kinds = metadata.into_iter().flat_map(|it| it.list("content_item_kinds"));
    let mut kinds = kinds.by_ref().filter_map(|kind| json::string(kind.text())).peekable();
    let first = kinds.peek().map(|kind| injected::name_of_kind(kind));
    let is_program = kinds.all(|kind| !kind.starts_with("user."));
    Author { injected: first.filter(|_| is_program), typed: None }
}

/// Returns the text of a prompt; `None` for other items, and for context that Codex added in the form of user
/// messages.
#[must_use]
pub fn prompt(item: &Item<'_>) -> Option<String> {
    if item.kind != Kind::Prompt {
        return None;
    }
    let text = text(item.content?);
    (!is_context(&text)).then_some(text)
}

/// Returns the content of a message.
fn content(content: Value<'_>) -> Content<'_> {
    match content.elements() {
        Some(blocks) => Content::Blocks(blocks.map(block).collect()),
        None => Content::Json(content.text().into()),
    }
}

fn block(block: Value<'_>) -> Block<'_> {
    match block.string("type").as_deref() {
        Some("input_text" | "output_text" | "text" | "refusal") => {
            let text = block.get("text").or_else(|| block.get("refusal")).unwrap_or("\"\"");
            Block::Text(text.into())
        }
        Some("input_image") => match block.string("image_url") {
            Some(url) => Block::image(&url),
            None => Block::Json(block.text()),
        },
        _ => Block::Json(block.text()),
    }
}

fn parts<'a>(item: &Item<'a>) -> Vec<ReplyPart<'a>> {
    let call = |name, input| {
        let id = only_quoted(item.call_id).or_else(|| item.value.quoted("id"));
        vec![ReplyPart::Call { id: id.unwrap_or("\"\"").into(), name, input }]
    };
    let name = only_quoted(item.name).unwrap_or("\"\"");
    match item.own_type().as_deref() {
        Some("message") => match item.content.map(content) {
            Some(Content::Blocks(blocks)) => blocks.into_iter().map(ReplyPart::Block).collect(),
            Some(Content::Json(text)) => vec![ReplyPart::Block(Block::Text(text))],
            _ => Vec::new(),
        },
        Some("function_call") => {
            let arguments = item.arguments.and_then(json::string).unwrap_or_default();
            let is_object = Object::parse(&arguments).is_ok();
            let input = if is_object { json::on_one_line(&arguments) } else { input(&arguments) };
            call(name, Cow::Owned(input))
        }
        Some("custom_tool_call") => {
            call(name, Cow::Owned(input(&item.value.string("input").unwrap_or_default())))
        }
        Some("local_shell_call") => {
            let action = item.value.object("action").map_or("{}", Value::text);
            call("\"local_shell\"", Cow::Borrowed(action))
        }
        _ => Vec::new(),
    }
}

/// Wraps plain text in an object, because the input of a call must be an object.
fn input(text: &str) -> String {
    Members::new().string("input", text).into_json()
}

/// Returns the readable part of reasoning. Its encrypted part can be read only by the API that wrote it.
fn reasoning(item: &Item<'_>) -> Option<String> {
    let value = Some(item.value).filter(|_| item.own_type == Some("\"reasoning\""));
    value?.member("summary").map(text).filter(|text| !text.is_empty())
}

/// Returns the content of an output, and true if the tool failed. Old versions wrote an object that holds both.
fn output(output: Option<Value<'_>>) -> (Content<'_>, bool) {
    match output.filter(|output| output.is_object()) {
        Some(object) => {
            (content_or_text(object.member("content")), object.get("success") == Some("false"))
        }
        None => (content_or_text(output), false),
    }
}

fn content_or_text(value: Option<Value<'_>>) -> Content<'_> {
    let Some(value) = value else { return Content::Json("\"\"".into()) };
    match value.text().as_bytes().first() {
        Some(b'"' | b'[') => content(value),
        _ => Content::Json(json::quote(value.text()).into()),
    }
}
