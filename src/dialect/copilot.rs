//! Sessions of GitHub Copilot CLI: events, one on each line of `~/.copilot/session-state/ID/events.jsonl`.
//!
//! They are read as version 1.0.102 reads them, which was observed while it resumed sessions with events of each kind; the
//! kinds are in the JSON Schema that the program has with it (session-events.schema.json).
//!
//! - An event has a type, its data, an id, the id of the event before it, and `agentId` if it is of a subagent. A rewind
//!   removes events from the file, so that a file has no branches.
//! - A prompt is sent as `transformedContent`, with the images that its attachments name. The data of an image is in an
//!   event of its own, before it.
//! - A compaction keeps the prompts word for word, and nothing else. A context that was cleared begins anew.
//! - The counts of a call come before the reply, in an event of their own.

use crate::dialect::blocks::status;
use crate::dialect::source::SourceLine;
use crate::dialect::time::Time;
use crate::dialect::translation::{Chunk, IMPORTED, RecordSource, Translation};
use crate::dialect::writer::{Author, Block, Content, Reply, ReplyPart, Usage};
use crate::dialect::{Choice, text_beside};
use crate::finding::rules;
use crate::injected;
use crate::input::Input;
use crate::input::origin::SourcePlace;
use crate::json;
use crate::json::outline::Value;
use crate::json::write::Members;
use crate::usage::Counts;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// The most bytes of the file that has the name of the session.
const MOST_NAME: u64 = 64 * 1024;

/// Types of events that are not sent. A type that ends in a point stands for all that begin with it.
const NOT_SENT: [&str; 20] = [
    "session.",
    "assistant.",
    "model.",
    "tool.",
    "tool_search.",
    "permission.",
    "hook.",
    "mcp.",
    "external_tool.",
    "subagent.",
    "user_input.",
    "elicitation.",
    "command.",
    "capabilities.",
    "skill.invoked",
    "skill.invoked_ref",
    "system.message",
    "human_response.recorded",
    "workflow.",
    "abort",
];

/// Types of events that can change what is sent, which is not done here.
const SENT_OTHERWISE: [&str; 2] = ["skill.context_delivered_ref", "session.fusion_handoff"];

/// The conversation so far.
#[derive(Default)]
struct Session {
    entries: Vec<(SourcePlace, Chunk)>,
    has_header: bool,
    /// The places of the events that have the data of images, by their ids.
    assets: HashMap<String, SourcePlace>,
    /// The counts of calls whose replies have not come yet, by the ids of the responses.
    counts: HashMap<String, Counted>,
    /// The commands that the user ran, by the ids of the calls.
    commands: HashMap<String, String>,
    /// The prompts since the context was cleared.
    prompts: Vec<String>,
}

/// The counts of a call to the provider.
#[derive(Clone, Debug)]
pub struct Counted {
    /// An id that the call has in every copy of the session.
    pub id: String,
    /// The model.
    pub model: Option<String>,
    /// Its tokens.
    pub counts: Counts,
    /// The id of the response.
    response: String,
}

impl Counted {
    /// Reads the event with the counts of a call; `None` for any other event.
    #[must_use]
    pub fn of(event: Value<'_>) -> Option<Counted> {
        let is_own = event.get("type") == Some("\"session.usage_record\"");
        let usage = event.object("data").filter(|_| is_own)?.object("usage")?;
        let number = |name| usage.number(name).unwrap_or(0);
        let (read, written) = (number("cacheReadTokens"), number("cacheWriteTokens"));
        let input = number("inputTokens").saturating_sub(read.saturating_add(written));
        let text = |value: Value<'_>, name| value.string(name).map(Cow::into_owned);
        let response = text(usage, "apiCallId").unwrap_or_default();
        let origin = usage.object("accounting");
        let session = origin.and_then(|it| text(it, "sourceSessionId")).unwrap_or_default();
        let own = origin.and_then(|it| text(it, "usageId")).unwrap_or_else(|| response.clone());
        Some(Counted {
            id: [&*session, ":", &*own].concat(),
            model: text(usage, "model"),
            counts: Counts {
                input,
                cache_read: read,
                cache_write: written,
                output: number("outputTokens"),
                ..Counts::default()
            },
            response,
        })
    }
}

/// Translates a session.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if a leaf is chosen, because a file
/// has only one branch.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    choice.require_no_leaf(input)?;
    let mut out = Translation::new(input, choice);
    let (mut session, title) = (Session::default(), title(input));
    let mut done = Ok(());
    out.each_line(&mut |line, out| {
        let taken = session.take(line, title.as_deref(), out);
        done = std::mem::replace(&mut done, Ok(())).and(taken);
    })?;
    done?;
    for (place, chunk) in session.entries {
        out.add(place, chunk);
    }
    out.finish(&rules::UNKNOWN_TYPE)
}

/// Returns the name that the user gave the session, which is in a file beside the events.
fn title(input: &Input) -> Option<String> {
    let file = Path::new(&*input.name).parent()?.join("workspace.yaml");
    let text = text_beside(&file, MOST_NAME)?;
    let member = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::trim)
    };
    let name = member("name").filter(|_| member("user_named") == Some("true"))?;
    let quoted = name.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
    let quoted = quoted.map(|name| name.replace("''", "'"));
    let name = quoted.or_else(|| json::string(name).map(Cow::into_owned)).unwrap_or(name.into());
    (!name.is_empty() && !name.starts_with(['|', '>'])).then_some(name)
}

impl Session {
    fn take(
        &mut self,
        line: SourceLine<'_>,
        title: Option<&str>,
        out: &mut Translation<'_>,
    ) -> anyhow::Result<()> {
        let event = line.value;
        let (id, ts) = (event.string("id"), event.get("timestamp").map(Time::Text));
        let source = RecordSource { line, id, ts };
        out.keep(&source);
        let kind = event.string("type").unwrap_or_default();
        let Some(data) = event.object("data") else {
            out.unknown("events without data", line.place);
            return Ok(());
        };
        if event.get("agentId").is_some() || data.get("parentToolCallId").is_some() {
            return Ok(());
        }
        let before = out.records();
        let mut images = Vec::new();
        if kind == "user.message" {
            images = self.images(data, out)?;
        }
        let chunk = out.chunk(|out| match &*kind {
            "user.message" => self.prompt(&source, data, images, out),
            "assistant.message" => self.reply(&source, data, out),
            "tool.execution_complete" => self.result(&source, data, out),
            "system.notification" | "skill.context_delivered" | "session.mode_notice_delivered" => {
                note(&source, data.quoted("content"), &kind, out);
            }
            "abort" => {
                let reason = data.string("reason").unwrap_or_default();
                out.failure(&source, "interrupted", None, &reason);
            }
            "session.error" => {
                let class = data.string("errorType").unwrap_or("failed".into());
                let message = data.string("message").unwrap_or_default();
                out.failure(&source, &class, status(data.get("statusCode")), &message);
            }
            "session.handoff" => note(&source, data.quoted("context"), &kind, out),
            "session.compaction_complete" if data.is_true("success") => {
                self.compaction(&source, data, out);
            }
            "session.context_cleared" => {
                self.entries.clear();
                self.prompts.clear();
                note(&source, data.quoted("initialMessage"), &kind, out);
            }
            _ => {}
        });
        if out.records() > before {
            self.entries.push((line.place, chunk));
        }
        let text = |name| data.string(name).unwrap_or_default().into_owned();
        match &*kind {
            "session.start" if !std::mem::replace(&mut self.has_header, true) => {
                out.header(line.place, |out| header(&source, data, title, out));
            }
            "session.usage_record" => {
                let counted = Counted::of(event);
                self.counts.extend(counted.map(|counted| (counted.response.clone(), counted)));
            }
            "session.binary_asset" => {
                self.assets.insert(text("assetId"), line.place);
            }
            "tool.user_requested" => {
                let command = data.object("arguments").and_then(|it| it.string("command"));
                let command = command.unwrap_or_default().into_owned();
                self.commands.insert(text("toolCallId"), command);
            }
            kind if SENT_OTHERWISE.contains(&kind) => {
                out.unknown(
                    format!("events of the type '{kind}', which are not applied"),
                    line.place,
                );
            }
            kind if out.records() == before && !is_known(kind) => {
                out.unknown(format!("events of the unknown type '{kind}'"), line.place);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the blocks of the images that a prompt has.
    fn images(
        &self,
        data: Value<'_>,
        out: &Translation<'_>,
    ) -> anyhow::Result<Vec<Block<'static>>> {
        let mut blocks = Vec::new();
        let mut lines = out.reader();
        for own in data.list("attachments").filter(|it| it.is_object()) {
            let place = own.string("assetId").and_then(|id| self.assets.get(&*id));
            let asset = match place {
                Some(place) => lines.line(*place)?.and_then(|line| line.value.object("data")),
                None => Some(own).filter(|own| own.get("type") == Some("\"blob\"")),
            };
            let Some(asset) = asset else { continue };
            let (kind, image) = (asset.quoted("mimeType"), asset.quoted("data"));
            if let (Some(kind), Some(image)) = (kind, image)
                && kind.starts_with("\"image/")
            {
                let text = asset.quoted("description").map(str::to_owned);
                blocks.extend(text.map(|text| Block::Text(text.into())));
                blocks.push(Block::Image(kind.to_owned().into(), image.to_owned().into()));
            }
        }
        Ok(blocks)
    }

    fn prompt(
        &mut self,
        source: &RecordSource<'_>,
        data: Value<'_>,
        images: Vec<Block<'_>>,
        out: &mut Translation<'_>,
    ) {
        let typed = data.quoted("content");
        let text = data.quoted("transformedContent").or(typed).unwrap_or("\"\"");
        let origin = data.string("source").filter(|origin| origin != "user");
        let author = match origin {
            Some(origin) => Author::program(injected::name_of_kind(&origin)),
            None => Author::default(),
        };
        if author.injected.is_none() {
            self.prompts.extend(typed.and_then(json::string).map(Cow::into_owned));
        }
        let content = match images.is_empty() {
            true => Content::Json(text.into()),
            false => {
                Content::Blocks([Block::Text(text.into())].into_iter().chain(images).collect())
            }
        };
        out.record(source, 1, "user").author(&author).content("content", &content);
    }

    fn reply(&mut self, source: &RecordSource<'_>, data: Value<'_>, out: &mut Translation<'_>) {
        let blocks = data.object("reasoningBlocks");
        let is_own = |it: &Value<'_>| it.get("provider") == Some("\"anthropic-messages\"");
        let thinking = blocks.filter(is_own).into_iter().flat_map(|it| it.list("blocks"));
        let thinking = thinking.filter(|block| block.is_object());
        let thinking = thinking.map(|block| ReplyPart::Block(Block::Json(block.text())));
        let mut parts: Vec<ReplyPart<'_>> = thinking.collect();
        let text = data.string("reasoningText").filter(|it| parts.is_empty() && !it.is_empty());
        let reasoning = text.map(Cow::into_owned);
        let text = data.quoted("content").filter(|text| !json::is_blank(text));
        parts.extend(text.map(ReplyPart::text));
        parts.extend(data.list("toolRequests").filter(|it| it.is_object()).map(|call| {
            let text = call.quoted("arguments");
            let input = text.map(|text| Members::new().raw("input", text).into_json().into());
            let object = || call.object("arguments").map_or("{}", Value::text).into();
            ReplyPart::Call {
                id: call.quoted("toolCallId").unwrap_or("\"\"").into(),
                name: call.quoted("name").unwrap_or("\"\""),
                input: input.unwrap_or_else(object),
            }
        }));
        if parts.is_empty() && reasoning.is_none() {
            return;
        }
        let counted = data.string("apiCallId").and_then(|id| self.counts.remove(&*id));
        let (call, counts) = counted.map(|it| (it.id, it.counts)).unzip();
        let model = data.quoted("model");
        let (usage, call) = (counts.map(Usage::Split), call.map(Cow::Owned));
        out.reply(source, 1, &Reply { parts, model, usage, call, reasoning, ..Reply::default() });
    }

    fn result(&mut self, source: &RecordSource<'_>, data: Value<'_>, out: &mut Translation<'_>) {
        let id = data.quoted("toolCallId").unwrap_or("\"\"");
        let is_error = !data.is_true("success");
        let (own, name) = if is_error { ("error", "message") } else { ("result", "content") };
        let text = data.object(own).and_then(|it| it.quoted(name)).unwrap_or("\"\"");
        if let Some(command) = self.commands.remove(&*json::string(id).unwrap_or_default()) {
            let output = json::string(text).unwrap_or_default();
            let text = format!(
                "<user_shell_command_output>\nCommand:\n{command}\n\nOutput:\n{output}\n</user_shell_command_output>"
            );
            let content = Content::Json(json::quote(&text).into());
            out.record(source, 1, "user").content("content", &content);
            return;
        }
        out.record(source, 1, "tool_result")
            .raw("tool_use_id", id)
            .raw("content", text)
            .flag("is_error", is_error);
    }

    /// Writes a compaction: an ignored record as a mark, and the summary, which keeps everything from the mark on.
    fn compaction(
        &mut self,
        source: &RecordSource<'_>,
        data: Value<'_>,
        out: &mut Translation<'_>,
    ) {
        drop(out.record(source, 1, IMPORTED));
        let mut record = out.record(source, 2, "compaction");
        record.raw("summary", data.quoted("summaryContent").unwrap_or("\"\""));
        record.strings("kept_user", &self.prompts);
        record.string("first_kept_entry_id", &source.first_id());
        record.optional("tokens_before", data.get("preCompactionTokens"));
        record.optional("tokens_after", data.get("postCompactionTokens"));
    }
}

/// Returns true for a type of event that is not sent.
fn is_known(kind: &str) -> bool {
    let is_read = ["user.message", "assistant.message", "tool.execution_complete"];
    let is_own = |own: &&str| match own.strip_suffix('.') {
        Some(_) => kind.starts_with(*own),
        None => kind == *own,
    };
    NOT_SENT.iter().any(is_own) || is_read.contains(&kind)
}

/// Writes a text of the program as a message of the user.
fn note(source: &RecordSource<'_>, text: Option<&str>, kind: &str, out: &mut Translation<'_>) {
    let Some(text) = text else { return };
    let author = Author::program(injected::name_of_kind(kind));
    out.record(source, 1, "user").author(&author).content("content", &Content::Json(text.into()));
}

/// Writes the header of the session.
fn header(
    source: &RecordSource<'_>,
    data: Value<'_>,
    title: Option<&str>,
    out: &mut Translation<'_>,
) {
    let source = RecordSource { id: data.string("sessionId"), ..source.clone() };
    out.record(&source, 1, "session")
        .string("key", &source.first_id())
        .optional("label", title.map(json::quote).as_deref())
        .optional("created", data.get("startTime"))
        .object("source", |it| {
            it.string("dialect", "copilot")
                .optional("version", data.get("copilotVersion"))
                .optional("cwd", data.object("context").and_then(|it| it.get("cwd")));
        });
}

#[cfg(test)]
mod tests;
