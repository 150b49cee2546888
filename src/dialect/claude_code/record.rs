//! Translates Claude Code's records into records of clawutils.

use crate::dialect::blocks::{parts, text, user};
use crate::dialect::source::SourceReader;
use crate::dialect::time;
use crate::dialect::translation::{Reply, ReplyPart, SourceLine, Translation, text_block};
use crate::id;
use crate::input::origin::SourcePlace;
use crate::json::write::{self, Members};
use crate::json::{Object, elements};
use std::borrow::Cow;

/// A writer of translated records.
pub struct Writer<'i, 'o> {
    source: SourceReader<'i>,
    /// The translation.
    pub out: &'o mut Translation,
}

impl<'i, 'o> Writer<'i, 'o> {
    /// Creates a writer.
    pub fn new(source: SourceReader<'i>, out: &'o mut Translation) -> Writer<'i, 'o> {
        Writer { source, out }
    }

    /// Writes the header of the session, from the first record that names it.
    ///
    /// # Errors
    /// Fails if the source cannot be read or the translation cannot be written.
    pub fn header(&mut self, place: SourcePlace) -> anyhow::Result<()> {
        let Some(line) = self.source.object(place)? else { return Ok(()) };
        let object = &line.object;
        let id = object.string("sessionId").unwrap_or_default();
        let ts = object.get("timestamp").and_then(time::of_text);
        let line = SourceLine { place, id: id.clone(), ts };
        self.out.record(&line, 1, "session", |it| {
            it.string("key", &id).optional(Members::raw, "created", object.get("timestamp")).object(
                "source",
                |it| {
                    it.string("dialect", "claude-code")
                        .optional(Members::raw, "version", object.get("version"))
                        .optional(Members::raw, "cwd", object.get("cwd"))
                },
            )
        })
    }

    /// Writes a record that is not part of a reply.
    ///
    /// # Errors
    /// As [`Writer::header`].
    pub fn record(&mut self, place: SourcePlace) -> anyhow::Result<()> {
        let Some(line) = self.source.object(place)? else { return Ok(()) };
        let (own, line) = (&line.object, source_line(&line.object, place));
        let message = own.get("message").and_then(|raw| Object::parse(raw).ok());
        let content = message.as_ref().and_then(|it| it.get("content"));
        match (own.get("type"), content) {
            (Some("\"user\""), Some(content)) => user(&line, content, self.out),
            (Some("\"attachment\""), _) => match attachment(own) {
                Some(content) => self.out.user(&line, &content),
                None => self.out.imported(&line, own.text()),
            },
            _ => self.out.imported(&line, own.text()),
        }
    }

    /// Writes the records of one reply. The last one has the final usage and the reason why the reply ended.
    ///
    /// # Errors
    /// As [`Writer::header`].
    pub fn reply(&mut self, places: &[SourcePlace]) -> anyhow::Result<()> {
        let mut facts = None;
        if let Some(last) = places.last()
            && let Some(line) = self.source.object(*last)?
        {
            facts = Facts::of(&line.object);
        }
        for (index, place) in places.iter().enumerate() {
            let Some(line) = self.source.object(*place)? else { continue };
            let (own, line) = (&line.object, source_line(&line.object, *place));
            let message = own.get("message").and_then(|raw| Object::parse(raw).ok());
            let content = message.as_ref().and_then(|it| it.get("content")).unwrap_or("[]");
            let parts = parts(content);
            match facts.as_ref().filter(|_| index == 0) {
                Some(facts) => self.out.reply(&line, &facts.reply(parts))?,
                None => self.out.more_of_reply(&line, 1, &parts)?,
            }
        }
        Ok(())
    }

    /// Writes a compaction that keeps only what follows the boundary.
    ///
    /// # Errors
    /// As [`Writer::header`].
    pub fn summary(&mut self, boundary: SourcePlace, place: SourcePlace) -> anyhow::Result<()> {
        let Some(line) = self.source.object(boundary)? else { return Ok(()) };
        let kept = source_line(&line.object, boundary).id.into_owned();
        let metadata = line.object.get("compactMetadata").and_then(|raw| Object::parse(raw).ok());
        let number = |name: &str| metadata.as_ref().and_then(|it| it.number(name));
        let (before, after) = (number("preTokens"), number("postTokens"));
        let Some(line) = self.source.object(place)? else { return Ok(()) };
        let (own, line) = (&line.object, source_line(&line.object, place));
        let message = own.get("message").and_then(|raw| Object::parse(raw).ok());
        let content = message.as_ref().and_then(|it| it.get("content")).unwrap_or("\"\"");
        let summary = text(content);
        self.out.record(&line, 1, "compaction", |it| {
            it.string("summary", &summary)
                .string("first_kept_entry_id", &kept)
                .optional(Members::number, "tokens_before", before)
                .optional(Members::number, "tokens_after", after)
        })
    }
}

/// The members of a reply that are taken from its last record.
struct Facts {
    model: Option<String>,
    stop_reason: Option<String>,
    usage: Option<String>,
}

impl Facts {
    fn of(record: &Object<'_>) -> Option<Facts> {
        let message = Object::parse(record.get("message")?).ok()?;
        let usage = message.get("usage").filter(|raw| raw.starts_with('{'));
        Some(Facts {
            model: message.get("model").filter(|raw| raw.starts_with('"')).map(str::to_owned),
            stop_reason: message.string("stop_reason").map(Cow::into_owned),
            usage: usage.map(str::to_owned),
        })
    }

    fn reply<'a>(&'a self, parts: Vec<ReplyPart<'a>>) -> Reply<'a> {
        Reply {
            parts,
            model: self.model.as_deref(),
            provider: Some("\"anthropic\""),
            stop_reason: self.stop_reason.as_deref(),
            usage: self.usage.as_deref().map(Cow::Borrowed),
            ..Reply::default()
        }
    }
}

fn source_line<'a>(record: &Object<'a>, place: SourcePlace) -> SourceLine<'a> {
    let id = record.string("uuid").unwrap_or_else(|| Cow::Owned(id::address(place.offset)));
    SourceLine { place, id, ts: record.get("timestamp").and_then(time::of_text) }
}

/// Returns the text blocks that are sent for an attachment, or `None` if it is not sent.
fn attachment(record: &Object<'_>) -> Option<String> {
    let parts = elements(record.get("rendered")?)?;
    let text = |raw: &str| {
        let content = Object::parse(raw).ok()?.get("content").filter(|raw| raw.starts_with('"'))?;
        Some(text_block(content))
    };
    let blocks: Vec<String> = parts.into_iter().filter_map(text).collect();
    (!blocks.is_empty()).then(|| write::list(blocks))
}
