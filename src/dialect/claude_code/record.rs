//! Translates Claude Code's records into records of clawutils.

use crate::dialect::blocks::{parts, text, user};
use crate::dialect::source::SourceLine;
use crate::dialect::time::Time;
use crate::dialect::translation::{RecordSource, Translation};
use crate::dialect::writer::{Block, Content, Reply, Usage};
use crate::json::outline::Value;
use std::borrow::Cow;

/// Returns the source of the records of a line.
#[must_use]
pub fn source(line: SourceLine<'_>) -> RecordSource<'_> {
    let id = line.value.string("uuid");
    RecordSource { line, id, ts: line.value.get("timestamp").map(Time::Text) }
}

/// Writes the header of the session, from the first record that names it.
pub fn header(line: SourceLine<'_>, out: &mut Translation<'_>) {
    let own = line.value;
    let ts = own.get("timestamp").map(Time::Text);
    let id = Some(own.string("sessionId").unwrap_or_default());
    let source = RecordSource { line, id, ts };
    out.record(&source, 1, "session")
        .string("key", &source.first_id())
        .optional("created", own.get("timestamp"))
        .object("source", |it| {
            it.string("dialect", "claude-code")
                .optional("version", own.get("version"))
                .optional("cwd", own.get("cwd"));
        });
}

/// Writes a record that is not part of a reply.
pub fn record(source: &RecordSource<'_>, out: &mut Translation<'_>) {
    let own = source.line.value;
    let content = content(own);
    match own.get("type") {
        Some("\"user\"") if content.is_some() => user(source, content, out),
        Some("\"attachment\"") => match attachment(own) {
            Some(blocks) => {
                out.record(source, 1, "user").content("content", &Content::Blocks(blocks));
            }
            None => out.imported(source),
        },
        _ => out.imported(source),
    }
}

/// Writes a record of a reply. Only the first record of a reply gets `facts`, which are those of the last record: the
/// model, the final usage and the reason why the reply ended.
pub fn reply(source: &RecordSource<'_>, facts: Option<&Facts<'_>>, out: &mut Translation<'_>) {
    let parts = content(source.line.value).map(parts).unwrap_or_default();
    match facts {
        Some(facts) => out.reply(source, 1, &Reply { parts, ..facts.reply() }),
        None => out.more_of_reply(source, 1, &parts),
    }
}

/// Writes a compaction that keeps only what follows the boundary.
pub fn summary(source: &RecordSource<'_>, boundary: &Boundary, out: &mut Translation<'_>) {
    let summary = content(source.line.value).map(text).unwrap_or_default();
    let mut record = out.record(source, 1, "compaction");
    record.string("summary", &summary).string("first_kept_entry_id", &boundary.id);
    record.optional("tokens_before", boundary.tokens_before.as_deref());
    record.optional("tokens_after", boundary.tokens_after.as_deref());
}

/// Returns the content of the message in a record.
fn content(record: Value<'_>) -> Option<Value<'_>> {
    record.object("message")?.member("content")
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
        let ids = ids.filter_map(|id| crate::json::string(id.text()));
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
}

impl<'a> Facts<'a> {
    /// Reads the facts in a record.
    #[must_use]
    pub fn of(record: Value<'a>) -> Facts<'a> {
        let Some(message) = record.object("message") else { return Facts::default() };
        Facts {
            model: message.quoted("model").map(Cow::Borrowed),
            stop_reason: message.string("stop_reason"),
            usage: message.object("usage").map(|usage| usage.text().into()),
        }
    }

    /// Returns the facts with owned data.
    #[must_use]
    pub fn into_owned(self) -> Facts<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        let Facts { model, stop_reason, usage } = self;
        Facts { model: owned(model), stop_reason: owned(stop_reason), usage: owned(usage) }
    }

    fn reply(&self) -> Reply<'_> {
        Reply {
            model: self.model.as_deref(),
            provider: Some("\"anthropic\""),
            stop_reason: self.stop_reason.as_deref().map(Cow::Borrowed),
            usage: self.usage.as_deref().map(Usage::Json),
            ..Reply::default()
        }
    }
}

/// Returns the text blocks that are sent for an attachment, or `None` if it is not sent.
fn attachment(record: Value<'_>) -> Option<Vec<Block<'_>>> {
    let parts = record.member("rendered")?.elements()?;
    let blocks: Vec<Block<'_>> =
        parts.filter_map(|part| Some(Block::Text(part.quoted("content")?.into()))).collect();
    (!blocks.is_empty()).then_some(blocks)
}
