//! Translates Claude Code's records into records of clawutils.

use crate::dialect::blocks::{only_quoted, parts, status, text, user};
use crate::dialect::source::SourceLine;
use crate::dialect::time::Time;
use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Author, Block, Content, Reply, Usage};
use crate::injected;
use crate::json;
use crate::json::outline::Value;
use std::borrow::Cow;

/// The members of a record; texts are JSON.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    line: SourceLine<'a>,
    /// Its type.
    pub kind: Option<&'a str>,
    uuid: Option<&'a str>,
    /// The id of its parent.
    pub parent: Option<&'a str>,
    timestamp: Option<&'a str>,
    request: Option<&'a str>,
    /// Its message.
    pub message: Option<Message<'a>>,
    /// True if it names the session.
    pub has_session: bool,
    /// True if it is in a sidechain.
    pub is_sidechain: bool,
    /// True if it is the summary of a compaction.
    pub is_summary: bool,
    /// True if it reports an error of the API.
    pub is_error: bool,
}

/// The members of a message; texts are JSON.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its id.
    pub id: Option<&'a str>,
    /// The model that wrote it.
    pub model: Option<&'a str>,
    /// Its content.
    pub content: Option<Value<'a>>,
    stop_reason: Option<&'a str>,
    usage: Option<Value<'a>>,
}

impl<'a> Record<'a> {
    /// Reads a record.
    #[must_use]
    pub fn of(line: SourceLine<'a>) -> Record<'a> {
        let value = line.value;
        let names = ["type", "uuid", "parentUuid", "timestamp", "requestId", "sessionId"];
        let [kind, uuid, parent, timestamp, request, session] = value.texts(names);
        let names = ["message", "isSidechain", "isCompactSummary", "isApiErrorMessage"];
        let [message, sidechain, summary, error] = value.pick(names);
        let is_true = |member: Option<Value<'_>>| member.is_some_and(|it| it.text() == "true");
        Record {
            line,
            kind,
            uuid,
            parent,
            timestamp,
            request,
            message: message.filter(|message| message.is_object()).map(Message::of),
            has_session: session.is_some(),
            is_sidechain: is_true(sidechain),
            is_summary: is_true(summary),
            is_error: is_true(error),
        }
    }

    /// Returns the source of the records that it becomes.
    #[must_use]
    pub fn source(&self) -> RecordSource<'a> {
        let id = self.uuid.and_then(json::string);
        RecordSource { line: self.line, id, ts: self.timestamp.map(Time::Text) }
    }

    fn content(&self) -> Option<Value<'a>> {
        self.message?.content
    }

    /// Returns the results in its message, which become its first records.
    pub fn results(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let blocks = self.content().and_then(Value::elements).into_iter().flatten();
        blocks.filter(|block| block.get("type") == Some("\"tool_result\""))
    }
}

impl<'a> Message<'a> {
    fn of(value: Value<'a>) -> Message<'a> {
        let [id, model, stop_reason] = value.texts(["id", "model", "stop_reason"]);
        let [content, usage] = value.pick(["content", "usage"]);
        Message { id, model, content, stop_reason, usage }
    }
}

/// Writes the header of the session, from the first record that names it. `title` is what the program calls the session.
pub fn header(line: SourceLine<'_>, title: Option<&str>, out: &mut Translation<'_>) {
    let own = line.value;
    let ts = own.get("timestamp").map(Time::Text);
    let id = Some(own.string("sessionId").unwrap_or_default());
    let source = RecordSource { line, id, ts };
    out.record(&source, 1, "session")
        .string("key", &source.first_id())
        .optional("label", title.map(json::quote).as_deref())
        .optional("created", own.get("timestamp"))
        .object("source", |it| {
            it.string("dialect", "claude-code")
                .optional("version", own.get("version"))
                .optional("cwd", own.get("cwd"))
                .optional("agent", own.get("agentId").filter(|_| own.is_true("isSidechain")));
        });
}

/// Writes a record that is not part of a reply.
pub fn write(record: &Record<'_>, source: &RecordSource<'_>, out: &mut Translation<'_>) {
    match (record.kind, record.content()) {
        (Some("\"assistant\""), Some(content)) if record.is_error => {
            let own = record.line.value;
            let class = own.string("error").unwrap_or("failed".into());
            out.failure(source, &class, status(own.get("apiErrorStatus")), &text(content));
        }
        (Some("\"user\""), Some(content)) => user(source, Some(content), &author(record), out),
        (Some("\"attachment\""), _) => match attachment(record.line.value) {
            Some(blocks) => {
                let author = author_of_attachment(record.line.value);
                let content = Content::Blocks(blocks);
                out.record(source, 1, "user").author(&author).content("content", &content);
            }
            None => out.imported(source),
        },
        _ => out.imported(source),
    }
}

/// Writes a record of a reply. Only the first record of a reply gets `facts`, which are those of the last record: the
/// model, the final usage and the reason why the reply ended.
pub fn reply(
    record: &Record<'_>,
    source: &RecordSource<'_>,
    facts: Option<&Facts<'_>>,
    out: &mut Translation<'_>,
) {
    let parts = record.content().map(parts).unwrap_or_default();
    match facts {
        Some(facts) => out.reply(source, 1, &Reply { parts, ..facts.reply() }),
        None => out.more_of_reply(source, 1, &parts),
    }
}

/// Writes a compaction that keeps only what follows the boundary.
pub fn summary(line: SourceLine<'_>, boundary: &Boundary, out: &mut Translation<'_>) {
    let record = Record::of(line);
    let summary = record.content().map(text).unwrap_or_default();
    let source = record.source();
    let mut record = out.record(&source, 1, "compaction");
    record.string("summary", &summary).string("first_kept_entry_id", &boundary.id);
    record.optional("tokens_before", boundary.tokens_before.as_deref());
    record.optional("tokens_after", boundary.tokens_after.as_deref());
}

/// The boundary of a compaction.
#[derive(Clone, Debug, Default)]
pub struct Boundary {
    /// Its id.
    pub id: String,
    /// The id of the record before it.
    pub before: Option<String>,
    /// The ids of the records that it preserves.
    pub preserved: Vec<String>,
    /// The token counts before and after the compaction, as JSON.
    tokens_before: Option<String>,
    tokens_after: Option<String>,
}

impl Boundary {
    /// Reads a boundary.
    #[must_use]
    pub fn of(record: Value<'_>) -> Boundary {
        let metadata = record.object("compactMetadata");
        let preserved = metadata.and_then(|it| it.object("preservedMessages"));
        let ids = preserved.into_iter().flat_map(|it| it.list("uuids"));
        let ids = ids.filter_map(|id| json::string(id.text()));
        let number = |name| metadata.and_then(|it| it.number(name)).map(|it| it.to_string());
        Boundary {
            id: record.string("uuid").unwrap_or_default().into_owned(),
            before: record.string("logicalParentUuid").map(Cow::into_owned),
            preserved: ids.map(Cow::into_owned).collect(),
            tokens_before: number("preTokens"),
            tokens_after: number("postTokens"),
        }
    }
}

/// The members of a reply that are taken from its last record.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    model: Option<Cow<'a, str>>,
    stop_reason: Option<Cow<'a, str>>,
    usage: Option<Cow<'a, str>>,
    /// The ids of the message and the request, which every copy of the session has.
    call: Option<String>,
}

impl<'a> Facts<'a> {
    /// Reads the facts in a record.
    #[must_use]
    pub fn of(record: &Record<'a>) -> Facts<'a> {
        let Some(message) = record.message else { return Facts::default() };
        let usage = message.usage.filter(|usage| usage.is_object());
        Facts {
            model: only_quoted(message.model).map(Cow::Borrowed),
            stop_reason: message.stop_reason.and_then(json::string),
            usage: usage.map(|usage| usage.text().into()),
            call: usage.and_then(|_| call_id(message.id, record.request)),
        }
    }

    /// Returns the facts with owned data.
    #[must_use]
    pub fn into_owned(self) -> Facts<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        let Facts { model, stop_reason, usage, call } = self;
        Facts { model: owned(model), stop_reason: owned(stop_reason), usage: owned(usage), call }
    }

    fn reply(&self) -> Reply<'_> {
        Reply {
            model: self.model.as_deref(),
            provider: Some("\"anthropic\""),
            stop_reason: self.stop_reason.as_deref().map(Cow::Borrowed),
            usage: self.usage.as_deref().map(Usage::Json),
            call: self.call.as_deref().map(Cow::Borrowed),
            ..Reply::default()
        }
    }
}

/// Returns true for a text that Claude Code adds to a conversation in the form of a user message.
#[must_use]
pub fn is_reminder(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
}

/// Returns an id that a call has in every copy of its session, from the JSON of the ids of its message and its request.
#[must_use]
pub fn call_id(message: Option<&str>, request: Option<&str>) -> Option<String> {
    let message = message.and_then(json::string)?;
    Some(match request.and_then(json::string) {
        Some(request) => [&*message, ":", &*request].concat(),
        None => message.into_owned(),
    })
}

/// Returns the author of a message: the program if it says so, or if it hides the message.
fn author<'a>(record: &Record<'a>) -> Author<'a> {
    let value = record.line.value;
    let origin = value.object("origin").and_then(|origin| origin.string("kind"));
    if let Some(kind) = origin.filter(|kind| kind != "human") {
        return Author::program(injected::name_of_kind(&kind));
    }
    if !value.is_true("isMeta") {
        return Author::default();
    }
    let text = record.content().map(text).unwrap_or_default();
    let name = injected::parts(&text).into_iter().find_map(|part| match part {
        injected::Part::Program { name, .. } => Some(name),
        injected::Part::Typed(_) => None,
    });
    Author::program(name.unwrap_or("note"))
}

/// Returns the author of an attachment. A message that was typed while a turn was running is one, too.
fn author_of_attachment<'a>(record: Value<'a>) -> Author<'a> {
    let own = record.object("attachment");
    let string = |name| own.and_then(|own| own.string(name));
    let kind = string("type").unwrap_or_default();
    let is_prompt =
        kind == "queued_command" && string("commandMode").is_none_or(|it| it == "prompt");
    let prompt = own.and_then(|own| own.member("prompt")).filter(|_| is_prompt);
    let typed = prompt.map(|prompt| injected::typed(&text(prompt)).into_owned());
    let typed = typed.filter(|it| !it.trim().is_empty() && !injected::is_all(it)).map(Cow::Owned);
    Author { injected: Some(injected::name_of_kind(&kind)), typed }
}

/// Returns the text blocks that are sent for an attachment, or `None` if it is not sent.
fn attachment(record: Value<'_>) -> Option<Vec<Block<'_>>> {
    let parts = record.member("rendered")?.elements()?;
    let blocks: Vec<Block<'_>> =
        parts.filter_map(|part| Some(Block::Text(part.quoted("content")?.into()))).collect();
    (!blocks.is_empty()).then_some(blocks)
}
