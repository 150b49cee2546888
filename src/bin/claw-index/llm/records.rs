//! Writes the messages of a conversation of llm as records.

use super::{Attachment, Message, Part, Turn, micros};
use crate::values::{text, text_or_null};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clawutils::dialect::translation::IMPORTED;
use clawutils::json::Object;
use clawutils::json::write::Members;
use rusqlite::Row;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};

/// The most bytes of a file that are read because an attachment names it.
const MOST_FILE: u64 = 64 * 1024 * 1024;

impl Turn {
    /// Reads the first columns of a row.
    pub fn read(row: &Row<'_>) -> rusqlite::Result<Turn> {
        Ok(Turn {
            id: text(row, 0)?,
            model: text_or_null(row, 1)?,
            input: row.get(2)?,
            output: row.get(3)?,
            details: text_or_null(row, 4)?,
            time: text_or_null(row, 5)?,
        })
    }

    /// Adds the model and the counts to the record of a reply. If the provider names the cached part of the prompt, the number
    /// of tokens includes it.
    fn facts(&self, record: Members) -> Members {
        let record = record.optional(Members::string, "model", self.model.as_deref());
        let (Some(input), Some(output)) = (self.input, self.output) else { return record };
        let details = self.details.as_deref().filter(|it| Object::parse(it).is_ok());
        let is_whole = details.is_none_or(|it| it.contains("\"prompt_tokens_details\""));
        let names = if is_whole {
            ["prompt_tokens", "completion_tokens"]
        } else {
            ["input_tokens", "output_tokens"]
        };
        let usage = |it: Members| {
            let it = it.named(names[0], &input.to_string()).named(names[1], &output.to_string());
            details.map_or(it.clone(), |details| it.clone().spread(details))
        };
        record.object("usage", usage).string("request_id", &self.id)
    }
}

impl Message {
    fn record(&self, kind: &str, number: usize) -> Members {
        let id = if number > 1 { format!("{}.{number}", self.id) } else { self.id.clone() };
        let time = self.turn.as_ref().and_then(|turn| micros(turn.time.as_deref()?));
        let record = Members::of_type(kind).string("id", &id);
        let seconds = time.map(|time| time as f64 / 1e6);
        record.optional(Members::decimal, "ts", seconds)
    }

    /// Writes the records of the message.
    pub fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let records = match &*self.role {
            "user" => self.prompt(),
            "tool" => self.results(),
            "assistant" => self.reply(),
            _ => Vec::new(),
        };
        let ignored = || {
            let texts = self.parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("\n");
            self.record(IMPORTED, 1)
                .object("record", |it| it.string("role", &self.role).string("content", &texts))
        };
        let records = if records.is_empty() { vec![ignored()] } else { records };
        records.into_iter().try_for_each(|record| Ok(writeln!(out, "{}", record.into_json())?))
    }

    fn prompt(&self) -> Vec<Members> {
        let blocks: Vec<String> = self.parts.iter().filter_map(Part::block).collect();
        if blocks.is_empty() {
            return Vec::new();
        }
        vec![self.record("user", 1).list("content", blocks)]
    }

    fn results(&self) -> Vec<Members> {
        let result = |(number, part): (usize, &Part)| {
            let Part::Result(id, text, files, has_failed) = part else { return None };
            let record = self.record("tool_result", number + 1).string("tool_use_id", id);
            let blocks: Vec<String> = files.iter().filter_map(Attachment::block).collect();
            let record = match blocks.is_empty() {
                true => record.string("content", text),
                false => record.list("content", [text_block(text)].into_iter().chain(blocks)),
            };
            Some(record.flag("is_error", *has_failed))
        };
        self.parts.iter().enumerate().filter_map(result).collect()
    }

    /// Returns the records of a reply: its text, and its calls. The text may be stored after the calls, but is sent before them.
    fn reply(&self) -> Vec<Members> {
        let blocks: Vec<String> = self.parts.iter().filter_map(Part::block).collect();
        let reasoning = self.parts.iter().filter_map(|part| match part {
            Part::Reasoning(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let reasoning = reasoning.collect::<Vec<_>>().join("\n\n");
        let record = self.record("assistant", 1).list("content", blocks);
        let record = match &self.turn {
            Some(turn) => turn.facts(record),
            None => record,
        };
        let reasoning = Some(&*reasoning).filter(|text| !text.is_empty());
        let mut records = vec![record.optional(Members::string, "reasoning", reasoning)];
        for part in &self.parts {
            if let Part::Call(id, name, input) = part {
                let record = self.record("tool_use", records.len() + 1);
                let record = record.string("tool_use_id", id).string("name", name);
                records.push(record.raw("input", input));
            }
        }
        records
    }
}

impl Part {
    fn text(&self) -> Option<&str> {
        match self {
            Part::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the block of a text or an attachment.
    fn block(&self) -> Option<String> {
        match self {
            Part::Text(text) => Some(text_block(text)),
            Part::Attachment(attachment) => attachment.block(),
            _ => None,
        }
    }
}

fn text_block(text: &str) -> String {
    Members::of_type("text").string("text", text).into_json()
}

impl Attachment {
    /// Reads the columns of a row.
    pub fn read(row: &Row<'_>) -> rusqlite::Result<Attachment> {
        Ok(Attachment {
            id: text(row, 0)?,
            kind: text_or_null(row, 1)?.unwrap_or_default(),
            path: text_or_null(row, 2)?,
            url: text_or_null(row, 3)?,
            data: row.get(4)?,
        })
    }

    /// Returns the block of an image or a document; of anything else, or if its data is gone, a text that says so.
    fn block(&self) -> Option<String> {
        let kind = match &*self.kind {
            kind if kind.starts_with("image/") => "image",
            "application/pdf" => "document",
            kind => {
                return Some(text_block(&format!("[attachment of the type '{kind}', left out]")));
            }
        };
        if let Some(url) = &self.url {
            let source = |it: Members| it.string("type", "url").string("url", url);
            return Some(Members::of_type(kind).object("source", source).into_json());
        }
        let Some(data) = self.data.clone().or_else(|| self.file()) else {
            return Some(text_block(&format!("[{kind} that is no longer there]")));
        };
        let data = BASE64_STANDARD.encode(data);
        let source = |it: Members| {
            it.string("type", "base64").string("media_type", &self.kind).string("data", &data)
        };
        Some(Members::of_type(kind).object("source", source).into_json())
    }

    /// Returns the content of the file that was attached, if it still has the same content: the id is its hash. So a path in a
    /// database from elsewhere discloses nothing that the database did not have.
    fn file(&self) -> Option<Vec<u8>> {
        let path = self.path.as_deref()?;
        if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        let mut data = Vec::new();
        File::open(path).ok()?.take(MOST_FILE).read_to_end(&mut data).ok()?;
        let hash = Sha256::digest(&data);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        (hash == self.id).then_some(data)
    }
}
