//! Writes the conversation of a transcript in the file format of another program.
//!
//! The messages are those that claw-rebuild writes: if a compaction is in effect, its summary takes the place of the
//! messages that it covers. The other program reads the same messages from the file.

mod claude_code;
mod pi;

use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::messages::rebuild::{RebuildOptions, from_inputs};
use crate::messages::{Message, summary};
use crate::provider::form::{self, Target, Thinking};
use crate::record;
use crate::record::content::{Block, BlockKind, Content, Role};
use crate::session::time;
use std::borrow::Cow;
use std::collections::HashMap;

/// The form to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportForm {
    /// A session of pi, OpenClaw or GoClaw, in version 3
    Pi,
    /// A project file of Claude Code
    ClaudeCode,
    /// The body of a request to OpenAI's API, without a model
    Openai,
}

/// A conversation to export.
struct Exported {
    /// The id of the session.
    id: String,
    /// The directory that the session belongs to.
    directory: String,
    /// The time of the first record, in microseconds since 1970. The header and the summary get this time.
    time: i64,
    /// The summary, if a compaction applies.
    summary: Option<String>,
    messages: Vec<ExportedMessage>,
}

/// A message to export.
struct ExportedMessage {
    message: Message<'static>,
    /// The facts of the first record of the message.
    facts: RecordFacts,
}

/// The members of a record that messages do not have.
#[derive(Clone, Debug, Default)]
struct RecordFacts {
    time: i64,
    model: Option<String>,
    usage: Option<String>,
}

/// Converts a transcript to the text of a file in this form. `directory` is the working directory that the file names.
///
/// # Errors
/// If the transcript cannot be read.
pub fn export(input: Input, form: ExportForm, directory: &str) -> anyhow::Result<String> {
    let inputs = [input];
    let messages = from_inputs(&inputs, &RebuildOptions::default())?.messages;
    if form == ExportForm::Openai {
        let messages = form::convert(messages, Target::Openai, Thinking::Auto);
        return Ok(Members::new().list("messages", messages).into_line());
    }
    let [input] = &inputs;
    let exported = Exported::new(input, messages, directory)?;
    Ok(match form {
        ExportForm::Pi => pi::text(&exported),
        _ => claude_code::text(&exported),
    })
}

impl Exported {
    fn new(
        input: &Input,
        messages: Vec<Message<'static>>,
        directory: &str,
    ) -> anyhow::Result<Exported> {
        let (mut facts, mut id, mut first) = (HashMap::new(), None, None);
        let mut lines = Lines::of(input);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                let own = RecordFacts::of(&line.object, first);
                first.get_or_insert(own.time);
                if line.object.get("type") == Some("\"session\"") {
                    id = line.object.string("id").map(Cow::into_owned);
                }
                facts.insert(line.id().into_owned(), own);
            }
        }
        let mut exported = Exported {
            id: id.unwrap_or_else(|| record::digest(&input.name)),
            directory: directory.to_owned(),
            time: first.unwrap_or(0),
            summary: None,
            messages: Vec::new(),
        };
        let (mut is_after_summary, mut model) = (false, None);
        for message in messages {
            let meta = message.meta.as_ref();
            if let Some(summary) = meta.and_then(|meta| meta.summary.as_ref()) {
                let text = summary.render();
                let text = text.split_once('\n').map_or("", |(_, text)| text);
                exported.summary = Some(text.to_owned());
                is_after_summary = true;
                continue;
            }
            // Rebuild inserts a reply to the summary, and would insert it again when it reads the exported file.
            if std::mem::take(&mut is_after_summary)
                && message.content == summary::acknowledgement().content
            {
                continue;
            }
            let id = meta.map(|meta| meta.id.to_string()).unwrap_or_default();
            let mut own = facts.remove(&id).unwrap_or_default();
            // A reply without a model gets the model of the reply before it.
            model = own.model.take().or(model);
            own.model.clone_from(&model);
            exported.messages.push(ExportedMessage { message, facts: own });
        }
        Ok(exported)
    }

    /// Returns an id for record `number`, as a UUID that depends only on the session and the number.
    fn uuid(&self, number: usize) -> String {
        let digest = |part: &str| record::digest(&format!("{} {number} {part}", self.id));
        let (one, two) = (digest("a"), digest("b"));
        [
            &one[..8],
            &one[8..12],
            &format!("4{}", &one[13..16]),
            &format!("8{}", &two[1..4]),
            &two[4..16],
        ]
        .join("-")
    }
}

impl RecordFacts {
    /// Returns the facts of a record. `first` is the time of the first record, which is used if this record has no
    /// time.
    fn of(record: &Object<'_>, first: Option<i64>) -> RecordFacts {
        RecordFacts {
            time: record.get("ts").and_then(time::of_ts).or(first).unwrap_or(0),
            model: record.string("model").map(Cow::into_owned),
            usage: record.get("usage").map(str::to_owned),
        }
    }
}

impl ExportedMessage {
    /// Returns the blocks of the message; plain text is one block.
    fn blocks(&self) -> Vec<Block<'static>> {
        match &self.message.content {
            Content::Text(raw) => {
                let text = json::string(raw).unwrap_or_default();
                vec![Block::from_text(&text)]
            }
            Content::Blocks(blocks) => blocks.clone(),
        }
    }

    /// Returns the results in the message, and its other blocks.
    fn parts(&self) -> (Vec<Block<'static>>, Vec<Block<'static>>) {
        self.blocks().into_iter().partition(Block::is_result)
    }

    fn is_reply(&self) -> bool {
        self.message.role == Role::Assistant
    }

    fn has_calls(&self) -> bool {
        self.message.blocks().any(|block| matches!(block.kind, BlockKind::ToolUse { .. }))
    }

    fn model(&self) -> &str {
        self.facts.model.as_deref().unwrap_or("unknown")
    }

    /// Returns the provider's token count `name`, or 0 if there is none.
    fn count(&self, name: &str) -> u64 {
        let usage = self.facts.usage.as_deref().and_then(|raw| Object::parse(raw).ok());
        usage.and_then(|usage| usage.number(name)).unwrap_or(0)
    }

    /// Returns the time of the message in the format of the other programs.
    fn timestamp(&self) -> String {
        timestamp(self.facts.time)
    }
}

/// Returns a time in RFC 3339 with milliseconds.
fn timestamp(micros: i64) -> String {
    let text = time::to_text(micros);
    format!("{}Z", text.get(..23).unwrap_or(&text))
}
