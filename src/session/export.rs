//! Writes the conversation of a transcript in the file format of another program.
//!
//! The messages are those that claw-rebuild writes: if a compaction is in effect, its summary takes the place of the
//! messages that it covers. If another program is to go on with the session, they are adapted to it; see [`Export::losses`].

mod adapt;
mod claude_code;
mod codex;
mod gemini_cli;
mod opencode;
mod pi;
pub mod place;
mod tools;

use crate::dialect::program::Program;
use crate::exit::{Exit, fail};
use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::messages::rebuild::{RebuildOptions, from_inputs};
use crate::messages::{Message, summary};
use crate::provider::target::{self, Target, Thinking};
use crate::record;
use crate::record::content::{Block, BlockKind, Content, Role};
use crate::session::time;
use adapt::{Adapter, Losses};
use std::borrow::Cow;
use std::collections::HashMap;

/// A program that can go on with a session, and where it keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportForm {
    /// Claude Code, in CLAUDE_CONFIG_DIR or ~/.claude
    ClaudeCode,
    /// Codex CLI, in CODEX_HOME or ~/.codex
    Codex,
    /// Gemini CLI, in .gemini in GEMINI_CLI_HOME or ~
    GeminiCli,
    /// opencode, which imports it from XDG_DATA_HOME or ~/.local/share
    Opencode,
    /// pi, in PI_CODING_AGENT_DIR or ~/.pi/agent
    Pi,
}

/// A session in the form of another program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The text of the file.
    pub text: String,
    /// The id that the session has in the other program, a UUID.
    pub id: String,
    /// The working directory that the file names.
    pub directory: String,
    /// The title of the session, if it has one.
    pub title: Option<String>,
    /// The time of the first record, in microseconds since 1970.
    pub time: i64,
    /// The parts of the session that the file does not have, or has only as text: a line each.
    pub losses: Vec<String>,
}

/// A conversation to export.
struct Exported {
    /// The id of the session, from which the ids in the file are made.
    id: String,
    /// The program that wrote it.
    program: Program,
    /// The directory that the session belongs to.
    directory: String,
    title: Option<String>,
    /// The time of the first record, in microseconds since 1970. The header and the summary get this time.
    time: i64,
    /// The message of the summary, if a compaction applies: a heading on the first line, and the summary.
    summary: Option<String>,
    messages: Vec<ExportedMessage>,
}

/// A message to export.
struct ExportedMessage {
    message: Message<'static>,
    /// The facts of the first record of the message.
    facts: RecordFacts,
    /// True if it is not part of the conversation as the user saw it, such as a description of calls.
    is_hidden: bool,
    /// The names of the tools whose results it has, by the ids of the calls.
    tools: HashMap<String, String>,
}

/// The members of a record that messages do not have.
#[derive(Clone, Debug, Default)]
struct RecordFacts {
    /// The time in microseconds since 1970.
    time: Option<i64>,
    model: Option<String>,
    provider: Option<String>,
    usage: Option<String>,
    has_reasoning: bool,
}

/// Converts a transcript to the text of a file of this program. `directory` is the working directory that the file names if
/// the session names none. The same transcript gives the same ids, unless `copy` differs, which is the number of the copy.
///
/// # Errors
/// If the transcript cannot be read; status 65 if it has no messages.
pub fn export(
    input: Input,
    form: ExportForm,
    directory: &str,
    copy: u32,
) -> anyhow::Result<Export> {
    let inputs = [input];
    let messages = from_inputs(&inputs, &RebuildOptions::default())?.messages;
    let (write, to): (fn(&Exported) -> String, Program) = match form {
        ExportForm::Pi => (pi::text, Program::Pi),
        ExportForm::ClaudeCode => (claude_code::text, Program::ClaudeCode),
        ExportForm::Codex => (codex::text, Program::Codex),
        ExportForm::GeminiCli => (gemini_cli::text, Program::GeminiCli),
        ExportForm::Opencode => (opencode::text, Program::Opencode),
    };
    let [input] = &inputs;
    if messages.is_empty() {
        return fail(Exit::Data, format!("cannot export '{}': it has no messages", input.name));
    }
    let mut exported = Exported::new(input, messages, directory)?;
    if copy > 0 {
        exported.id.push_str(&format!(" {copy}"));
    }
    let mut losses = Losses::default();
    if exported.summary.is_some() {
        losses.add("left out: the messages before the compaction, whose summary is carried");
    }
    if exported.program != to {
        let mut adapter = Adapter { from: exported.program, to, losses: &mut losses };
        exported.messages = adapter.messages(std::mem::take(&mut exported.messages));
    }
    exported.name_tools();
    let text = write(&exported);
    let id = exported.uuid(0);
    let Exported { directory, title, time, .. } = exported;
    Ok(Export { text, id, directory, title, time, losses: losses.lines() })
}

/// Converts a transcript to the body of a request to OpenAI's API, without a model.
///
/// # Errors
/// If the transcript cannot be read.
pub fn request(input: Input) -> anyhow::Result<String> {
    let messages = from_inputs(&[input], &RebuildOptions::default())?.messages;
    let messages = target::convert(messages, Target::Openai, Thinking::Auto);
    Ok(Members::new().list("messages", messages).into_line())
}

impl Exported {
    fn new(
        input: &Input,
        messages: Vec<Message<'static>>,
        directory: &str,
    ) -> anyhow::Result<Exported> {
        let (mut facts, mut first) = (HashMap::new(), None);
        let mut exported = Exported {
            id: record::digest(&input.name),
            program: Program::Clawutils,
            directory: directory.to_owned(),
            title: None,
            time: 0,
            summary: None,
            messages: Vec::new(),
        };
        let mut lines = Lines::of(input);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                let own = RecordFacts::of(&line.object, first);
                first = first.or(own.time);
                exported.take_names(&line.object);
                facts.insert(line.id().into_owned(), own);
            }
        }
        exported.time = first.unwrap_or(0);
        let (mut is_after_summary, mut model) = (false, None);
        for message in messages {
            let meta = message.meta.as_ref();
            if let Some(summary) = meta.and_then(|meta| meta.summary.as_ref()) {
                exported.summary = Some(summary.render());
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
            own.time = own.time.or(first);
            exported.messages.push(ExportedMessage {
                message,
                facts: own,
                is_hidden: false,
                tools: HashMap::new(),
            });
        }
        Ok(exported)
    }

    /// Returns the summary without the heading, which other programs write themselves.
    fn summary(&self) -> Option<&str> {
        let message = self.summary.as_deref()?;
        Some(message.split_once('\n').map_or("", |(_, summary)| summary))
    }

    /// Gives each message the names of the tools whose results it has.
    fn name_tools(&mut self) {
        let mut names = HashMap::new();
        for message in &mut self.messages {
            names.extend(message.calls());
            let results = message.message.results();
            let named = results.filter_map(|id| Some((id.to_owned(), names.get(id)?.clone())));
            message.tools = named.collect();
        }
    }

    /// Takes the id, the program, the directory and the title from a record that has them.
    fn take_names(&mut self, record: &Object<'_>) {
        match record.string("type").as_deref() {
            Some("session") => {
                self.title = record.string("label").map(Cow::into_owned);
                if let Some(id) = record.string("id") {
                    self.id = id.into_owned();
                }
                let source = record.object("source");
                let get = |name| source.as_ref().and_then(|it: &Object<'_>| it.string(name));
                if let Some(dialect) = get("dialect") {
                    self.program = Program::named(&dialect);
                }
                // The directory is part of a command for a shell and a terminal.
                let is_plain =
                    |cwd: &Cow<'_, str>| cwd.starts_with('/') && !cwd.contains(char::is_control);
                if let Some(cwd) = get("cwd").filter(is_plain) {
                    self.directory = cwd.into_owned();
                }
            }
            Some("label") => {
                let label = record.string("label").filter(|label| !label.is_empty());
                self.title = label.map(Cow::into_owned);
            }
            _ => {}
        }
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
    /// Returns the facts of a record. `first` is the time of an earlier record, which is used if this one has none.
    fn of(record: &Object<'_>, first: Option<i64>) -> RecordFacts {
        RecordFacts {
            time: record.get("ts").and_then(time::of_ts).or(first),
            model: record.string("model").map(Cow::into_owned),
            provider: record.string("provider").map(Cow::into_owned),
            usage: record.get("usage").map(str::to_owned),
            has_reasoning: record.get("reasoning").is_some(),
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

    /// Returns the name of the tool of a result in the message.
    fn tool_of(&self, id: &str) -> &str {
        self.tools.get(id).map_or("tool", String::as_str)
    }

    /// Returns the ids of the calls in the message, and the names of their tools.
    fn calls(&self) -> impl Iterator<Item = (String, String)> {
        self.message.blocks().filter_map(|block| match &block.kind {
            BlockKind::ToolUse { id, .. } => {
                let name = block.member("name").and_then(json::string)?;
                Some((id.to_string(), name.into_owned()))
            }
            _ => None,
        })
    }

    fn model(&self) -> &str {
        self.facts.model.as_deref().unwrap_or("unknown")
    }

    /// Returns the provider's token count `name`, or 0 if there is none.
    fn count(&self, name: &str) -> u64 {
        let usage = self.facts.usage.as_deref().and_then(|raw| Object::parse(raw).ok());
        usage.and_then(|usage| usage.number(name)).unwrap_or(0)
    }

    /// Returns the time of the message in microseconds since 1970.
    fn time(&self) -> i64 {
        self.facts.time.unwrap_or(0)
    }

    /// Returns the time of the message in the format of the other programs.
    fn timestamp(&self) -> String {
        timestamp(self.time())
    }
}

/// Returns a time in RFC 3339 with milliseconds.
fn timestamp(micros: i64) -> String {
    let text = time::to_text(micros);
    format!("{}Z", text.get(..23).unwrap_or(&text))
}
