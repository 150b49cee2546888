//! A session for `opencode import`: an object with the session, and its messages with their parts.
//!
//! The form is that of `opencode export`, seen in version 1.18.33. A call and its result are one part. A compaction is a request
//! of the user and a reply that is marked as its summary.

use super::{Exported, ExportedMessage};
use crate::json::write::{self, Members};
use crate::json::{self, Object, elements, quote};
use crate::record::content::{Block, BlockKind};
use crate::record::digest;
use std::borrow::Cow;
use std::collections::HashMap;

/// The version of opencode that the session names.
const VERSION: &str = "1.18.33";
/// The error of a call that has no result.
const NO_RESULT: &str = "\"[no result]\"";

/// Returns the text of the file.
pub fn text(exported: &Exported) -> String {
    let session = session_id(&exported.uuid(0));
    let mut file =
        File { exported, session, count: 0, prompt: String::new(), messages: Vec::new() };
    if let Some(summary) = exported.summary() {
        let id = file.user(exported.time, "unknown", "unknown");
        file.push(&id, vec![Members::of_type("compaction").bool("auto", false)]);
        let text = Members::of_type("text").string("text", summary);
        let id = file.id("msg");
        file.reply(
            &id,
            &Facts { time: exported.time, is_summary: true, ..Facts::default() },
            vec![text],
        );
    }
    let results = results(&exported.messages);
    for message in &exported.messages {
        let facts = Facts::of(message);
        if message.is_reply() {
            let id = file.id("msg");
            let context = Context { session: &file.session, message: &id, results: &results };
            let blocks = message.blocks();
            let parts = blocks.iter().map(|block| context.part(block, facts.time));
            let parts =
                std::iter::once(Some(Members::of_type("step-start"))).chain(parts).flatten();
            let parts = parts.collect();
            file.reply(&id, &facts, parts);
        } else {
            let (_, others) = message.parts();
            let parts: Vec<Members> =
                others.iter().filter_map(|block| prompt_part(&block.raw)).collect();
            if !parts.is_empty() {
                let id = file.user(facts.time, facts.provider, facts.model);
                file.push(&id, parts);
            }
        }
    }
    file.finish()
}

/// Returns the id of a session in opencode.
pub fn session_id(uuid: &str) -> String {
    format!("ses_{}", digest(uuid))
}

/// The facts of a reply.
#[derive(Default)]
struct Facts<'m> {
    time: i64,
    provider: &'m str,
    model: &'m str,
    counts: [u64; 4],
    is_summary: bool,
    has_calls: bool,
}

impl<'m> Facts<'m> {
    fn of(message: &'m ExportedMessage) -> Facts<'m> {
        let count = |name| message.count(name);
        Facts {
            time: message.time(),
            provider: message.facts.provider.as_deref().unwrap_or("anthropic"),
            model: message.model(),
            counts: [
                count("input_tokens"),
                count("output_tokens"),
                count("cache_read_input_tokens"),
                count("cache_creation_input_tokens"),
            ],
            is_summary: false,
            has_calls: message.has_calls(),
        }
    }
}

/// The messages written so far.
struct File<'e> {
    exported: &'e Exported,
    session: String,
    count: usize,
    /// The id of the newest prompt.
    prompt: String,
    /// The members of each message, and its parts.
    messages: Vec<String>,
}

impl File<'_> {
    /// Returns an id. opencode sorts by ids; its own begin with the time, and come later.
    fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        let own = digest(&self.exported.uuid(self.count));
        format!("{kind}_{:012x}{}", self.count, &own[..14])
    }

    /// Returns the members of a prompt.
    fn user(&mut self, time: i64, provider: &str, model: &str) -> Members {
        self.prompt = self.id("msg");
        let millis = time.div_euclid(1000);
        Members::new()
            .string("id", &self.prompt)
            .string("sessionID", &self.session)
            .string("role", "user")
            .object("time", |it| it.number("created", millis))
            .string("agent", "build")
            .object("model", |it| it.string("providerID", provider).string("modelID", model))
    }

    fn reply(&mut self, id: &str, facts: &Facts<'_>, parts: Vec<Members>) {
        let millis = facts.time.div_euclid(1000);
        let [input, output, read, written] = facts.counts;
        let agent = if facts.is_summary { "compaction" } else { "build" };
        let directory = &self.exported.directory;
        let info = Members::new()
            .string("id", id)
            .string("sessionID", &self.session)
            .string("role", "assistant")
            .string("parentID", &self.prompt)
            .string("mode", agent)
            .string("agent", agent)
            .object("path", |it| it.string("cwd", directory).string("root", "/"))
            .number("cost", 0)
            .object("tokens", |it| {
                let cache = |it: Members| it.number("read", read).number("write", written);
                it.number("input", input)
                    .number("output", output)
                    .number("reasoning", 0)
                    .object("cache", cache)
            })
            .string("providerID", facts.provider)
            .string("modelID", facts.model)
            .object("time", |it| it.number("created", millis).number("completed", millis))
            .flag("summary", facts.is_summary)
            .string("finish", if facts.has_calls { "tool-calls" } else { "stop" });
        self.push(&info, parts);
    }

    /// Adds a message. Its id is the first member of `info`.
    fn push(&mut self, info: &Members, parts: Vec<Members>) {
        let info = info.clone().into_json();
        let message = Object::parse(&info).ok().and_then(|it| Some(it.string("id")?.into_owned()));
        let message = message.unwrap_or_default();
        let own = |part: Members| {
            let id = self.id("prt");
            let part = part.string("id", &id).string("sessionID", &self.session);
            part.string("messageID", &message).into_json()
        };
        let parts: Vec<String> = parts.into_iter().map(own).collect();
        let message = Members::new().raw("info", &info).list("parts", &parts);
        self.messages.push(message.into_json());
    }

    fn finish(self) -> String {
        let File { exported, session, messages, .. } = self;
        let last = exported.messages.last().map_or(exported.time, ExportedMessage::time);
        let info = |it: Members| {
            it.string("id", &session)
                .string("slug", &session)
                .string("projectID", "global")
                .string("directory", &exported.directory)
                .string("title", exported.title.as_deref().unwrap_or("New session"))
                .string("version", VERSION)
                .object("time", |it| {
                    let (created, updated) =
                        (exported.time.div_euclid(1000), last.div_euclid(1000));
                    it.number("created", created).number("updated", updated)
                })
        };
        Members::new().object("info", info).list("messages", messages).into_line()
    }
}

/// Returns the results of a session by the ids of their calls.
fn results(messages: &[ExportedMessage]) -> HashMap<String, Block<'static>> {
    let blocks = messages.iter().flat_map(|message| message.parts().0);
    let result = |block: Block<'static>| match &block.kind {
        BlockKind::ToolResult { id } => Some((id.to_string(), block)),
        _ => None,
    };
    blocks.filter_map(result).collect()
}

/// The context of the parts of a reply.
struct Context<'c> {
    session: &'c str,
    message: &'c str,
    results: &'c HashMap<String, Block<'static>>,
}

impl Context<'_> {
    fn part(&self, block: &Block<'_>, time: i64) -> Option<Members> {
        let object = Object::parse(&block.raw).ok()?;
        let millis = time.div_euclid(1000);
        let span = |it: Members| it.number("start", millis).number("end", millis);
        match (object.string("type").as_deref(), &block.kind) {
            (_, BlockKind::ToolUse { id, .. }) => {
                let state = |it: Members| self.state(it, &object, id).object("time", span);
                let part = Members::of_type("tool").raw("tool", object.get("name")?);
                Some(part.string("callID", id).object("state", state))
            }
            (Some("thinking"), _) => {
                let own =
                    |it: Members| it.raw("signature", object.get("signature").unwrap_or("\"\""));
                let part = Members::of_type("reasoning").raw("text", object.get("thinking")?);
                Some(part.object("time", span).object("metadata", |it| it.object("anthropic", own)))
            }
            (Some("redacted_thinking"), _) => {
                let own =
                    |it: Members| it.raw("redactedData", object.get("data").unwrap_or("\"\""));
                let part = Members::of_type("reasoning").string("text", "");
                Some(part.object("time", span).object("metadata", |it| it.object("anthropic", own)))
            }
            _ => prompt_part(&block.raw),
        }
    }

    /// Adds the input of a call, and its result.
    fn state(&self, state: Members, call: &Object<'_>, id: &str) -> Members {
        let result = self.results.get(id).and_then(|block| Object::parse(&block.raw).ok());
        let content = result.as_ref().map(|result| result.get("content").unwrap_or("\"\""));
        let blocks = content.and_then(elements).unwrap_or_default();
        let texts = blocks
            .iter()
            .filter_map(|it| Some(Object::parse(it).ok()?.string("text")?.into_owned()));
        let texts: Vec<String> = texts.collect();
        let output = content.map(|content| match content.starts_with('"') {
            true => Cow::Borrowed(content),
            false => Cow::Owned(quote(&texts.join("\n"))),
        });
        let has_failed = result.as_ref().is_none_or(|result| result.is_true("is_error"));
        let input = call.get("input").unwrap_or("{}");
        if has_failed {
            let error = output.as_deref().unwrap_or(NO_RESULT);
            return state.string("status", "error").raw("input", input).raw("error", error);
        }
        let own = |(number, file): (usize, Members)| {
            let name = digest(&format!("{} {id} {number}", self.message));
            let file = file.string("id", &format!("prt_{:012x}{}", 0, &name[..14]));
            file.string("sessionID", self.session).string("messageID", self.message).into_json()
        };
        let files = blocks.iter().filter_map(|block| file(block)).enumerate().map(own);
        let files: Vec<String> = files.collect();
        let state = state.string("status", "completed").raw("input", input);
        let state = state.raw("output", output.as_deref().unwrap_or("\"\"")).string("title", "");
        let state = state.raw("metadata", "{}");
        if files.is_empty() { state } else { state.raw("attachments", &write::list(files)) }
    }
}

/// Returns a text or a file as a part, and any other block as text with its JSON.
fn prompt_part(block: &str) -> Option<Members> {
    let object = Object::parse(block).ok()?;
    let text = object.get("text").map_or_else(|| json::quote(block).into(), Cow::Borrowed);
    Some(file(block).unwrap_or_else(|| Members::of_type("text").raw("text", &text)))
}

fn file(block: &str) -> Option<Members> {
    let source = Object::parse(block).ok()?.object("source")?;
    let (media_type, data) = (source.string("media_type")?, source.string("data")?);
    let url = format!("data:{media_type};base64,{data}");
    Some(Members::of_type("file").string("mime", &media_type).string("url", &url))
}
