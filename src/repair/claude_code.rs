//! Project files of Claude Code; see [`crate::dialect::claude_code`].

use super::blocks::{judge_call, judge_list, judge_media, judge_thinking};
use super::program::{
    Context, Links, Mended, NO_RESULT, Part, PartKind, Program, Said, with, without,
};
use super::sheet::Sheet;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::record::content::Role;
use crate::record::digest;
use crate::rules::parts::own_form;
use std::collections::{HashMap, HashSet};

/// Claude Code.
pub(super) struct ClaudeCode;

/// The members of a record that a new record gets from the one that it belongs to.
const ENVELOPE: [&str; 11] = [
    "isSidechain",
    "agentId",
    "timestamp",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "slug",
    "promptId",
];
/// The members that only records of messages have.
const OF_MESSAGES: [&str; 6] = [
    "message",
    "toolUseResult",
    "requestId",
    "sourceToolAssistantUUID",
    "isCompactSummary",
    "isMeta",
];

const CONTENT: [&str; 2] = ["message", "content"];

impl Program for ClaudeCode {
    fn links(&self) -> Option<Links> {
        Some(Links { id: "uuid", parent: "parentUuid" })
    }

    fn is_leaf(&self, record: &Object<'_>, is_aside: bool) -> bool {
        let kind = record.string("type");
        let is_message = matches!(kind.as_deref(), Some("user" | "assistant" | "attachment"));
        is_message && !is_error(record) && (is_aside || !record.is_true("isSidechain"))
    }

    /// The walk misses records of parallel calls: all records of a reply on the path are sent, and the results that are
    /// their children. After a compaction, the boundary names earlier records that are sent, too.
    fn sent(&self, sheet: &Sheet<'_>, path: &[usize]) -> Vec<usize> {
        let mut on_path: HashSet<usize> = path.iter().copied().collect();
        let mut replies: HashMap<String, String> = HashMap::new();
        let mut sent: Vec<usize> = path.to_vec();
        for row in path {
            let Some(record) = sheet.record(*row) else { continue };
            if let (Some(id), Some(reply)) = (record.string("uuid"), reply_of(&record)) {
                replies.insert(id.into_owned(), reply);
            }
        }
        for (row, record) in sheet.records() {
            let parent = record.string("parentUuid").and_then(|it| replies.get(&*it).cloned());
            let Some(parent) = parent.filter(|_| !on_path.contains(&row)) else { continue };
            let reply = reply_of(&record);
            let is_result = record.string("type").as_deref() == Some("user")
                && self.said(sheet.text(row)).is_some_and(|said| said.parts.iter().any(is_result));
            if is_result || reply.as_ref() == Some(&parent) {
                on_path.insert(row);
                sent.push(row);
                if let (Some(id), Some(reply)) = (record.string("uuid"), reply) {
                    replies.insert(id.into_owned(), reply);
                }
            }
        }
        let kept = preserved(sheet, path);
        sent.retain(|row| !kept.contains(row));
        sent.sort_unstable();
        let summary = sent.iter().position(|row| {
            sheet.record(*row).is_some_and(|record| record.is_true("isCompactSummary"))
        });
        let after = summary.map_or(0, |summary| summary + 1);
        sent.splice(after..after, kept);
        sent
    }

    fn said<'a>(&self, text: &'a str) -> Option<Said<'a>> {
        let record = Object::parse(text).ok()?;
        let role = match record.string("type").as_deref() {
            Some("user") => Role::User,
            Some("assistant") if !is_error(&record) => Role::Assistant,
            _ => return None,
        };
        let message = Object::parse(record.get("message")?).ok()?;
        let content = message.get("content").unwrap_or("\"\"");
        let parts = match json::elements(content).filter(|blocks| !blocks.is_empty()) {
            Some(blocks) => blocks.into_iter().map(part).collect(),
            None => vec![Part { raw: content, kind: PartKind::Other }],
        };
        let (reply, model) = (message.string("id"), message.string("model"));
        Some(Said { role, reply, model, parts })
    }

    fn judge(&self, part: &Part<'_>, context: Context<'_>) -> Mended {
        judge(part.raw, context)
    }

    fn with_parts(&self, text: &str, parts: &[String]) -> String {
        with(text, &CONTENT, &json::write::list(parts))
    }

    /// A `system` record is a link of the chain that is not sent.
    fn silent(&self, text: &str) -> Option<String> {
        let text = without(text, &OF_MESSAGES);
        let text = with(&text, &["type"], "\"system\"");
        let text = with(&text, &["subtype"], "\"informational\"");
        let text = with(&text, &["content"], "\"A record that could not be sent was left out.\"");
        Some(with(&text, &["level"], "\"info\""))
    }

    fn with_call_id(&self, part: &Part<'_>, id: &str) -> String {
        let name = if matches!(part.kind, PartKind::Call(_)) { "id" } else { "tool_use_id" };
        with(part.raw, &[name], &json::quote(id))
    }

    fn no_result(&self, _call: &Part<'_>, id: &str) -> String {
        Members::of_type("tool_result")
            .string("tool_use_id", id)
            .string("content", NO_RESULT)
            .bool("is_error", true)
            .into_json()
    }

    fn record_of(&self, near: &str, result: &str, id: &str, parent: &str) -> String {
        let near = Object::parse(near).ok();
        let own = |name| near.as_ref().and_then(|near| near.get(name));
        let record = Members::new().raw("parentUuid", parent).string("type", "user");
        let record =
            record.object("message", |it| it.string("role", "user").list("content", [result]));
        let record = record.string("uuid", id);
        let add = |record: Members, name| record.optional(Members::raw, name, own(name));
        let record = ENVELOPE.into_iter().fold(record, add);
        record.optional(Members::raw, "sourceToolAssistantUUID", own("uuid")).into_json()
    }

    fn new_id(&self, seed: &str) -> String {
        let hex = [digest(seed), digest(&[seed, "2"].concat())].concat();
        let part = |from: usize, to: usize| &hex[from..to];
        format!(
            "{}-{}-4{}-8{}-{}",
            part(0, 8),
            part(8, 12),
            part(13, 16),
            part(17, 20),
            part(20, 32)
        )
    }
}

fn is_error(record: &Object<'_>) -> bool {
    record.is_true("isApiErrorMessage")
}

fn is_result(part: &Part<'_>) -> bool {
    matches!(part.kind, PartKind::Result(_))
}

/// Returns the reply that a record is part of.
fn reply_of(record: &Object<'_>) -> Option<String> {
    if record.string("type").as_deref() != Some("assistant") || is_error(record) {
        return None;
    }
    let message = Object::parse(record.get("message")?).ok()?;
    message.string("id").map(std::borrow::Cow::into_owned)
}

/// Returns the lines of the records that the compaction on the path keeps, in the order in which they are sent.
fn preserved(sheet: &Sheet<'_>, path: &[usize]) -> Vec<usize> {
    let names = || {
        let boundary = sheet.record(*path.first()?)?;
        let details = Object::parse(boundary.get("compactMetadata")?).ok()?;
        let kept = Object::parse(details.get("preservedMessages")?).ok()?;
        let names = json::elements(kept.get("uuids")?)?;
        Some(names.into_iter().filter_map(json::string).map(|it| it.into_owned()).collect())
    };
    let names: Vec<String> = names().unwrap_or_default();
    if names.is_empty() {
        return Vec::new();
    }
    let rows = sheet.records().filter_map(|(row, it)| Some((it.string("uuid")?.into_owned(), row)));
    let rows: HashMap<String, usize> = rows.collect();
    names.iter().filter_map(|name| rows.get(name).copied()).collect()
}

fn part(raw: &str) -> Part<'_> {
    let block = Object::parse(raw).ok();
    let string = |name| block.as_ref().and_then(|block: &Object<'_>| block.get(name));
    let id = |name| string(name).and_then(json::string).unwrap_or_default();
    let kind = match string("type") {
        Some("\"tool_use\"") => PartKind::Call(id("id")),
        Some("\"tool_result\"") => PartKind::Result(id("tool_use_id")),
        Some("\"thinking\"" | "\"redacted_thinking\"") => PartKind::Thinking,
        _ => PartKind::Other,
    };
    Part { raw, kind }
}

/// Judges a block in the form of Anthropic's API.
pub(super) fn judge(raw: &str, context: Context<'_>) -> Mended {
    let is_reply = context.role == Role::Assistant;
    let misplaced =
        |whose, what| Mended::Without(format!("a message {whose} cannot contain {what}; left out"));
    let Ok(block) = Object::parse(raw) else {
        return match json::is_blank(raw) {
            true => Mended::Without("it has no text; left out".to_owned()),
            false => Mended::Fine,
        };
    };
    match block.string("type").as_deref() {
        Some("text") if block.get("text").is_none_or(json::is_blank) => {
            Mended::Without("a text is empty; left out".to_owned())
        }
        Some("image" | "document") if is_reply => {
            misplaced("of the assistant", "an image or a document")
        }
        Some("image" | "document") => judge_media(raw, "text"),
        Some("tool_use") if !is_reply => misplaced("of the user", "a call"),
        Some("tool_use") => judge_call(raw, "name", "input"),
        Some("tool_result") if is_reply => misplaced("of the assistant", "a result"),
        Some("tool_result") => judge_result(raw, &block, context),
        Some("thinking") => judge_thinking(block.get("signature"), context),
        Some("redacted_thinking") => judge_thinking(block.get("data"), context),
        _ => match own_form(raw) {
            Some(own) => {
                Mended::By(own, "a block is in the form of another API; rewritten".to_owned())
            }
            None => Mended::Fine,
        },
    }
}

/// Judges the blocks in a result.
fn judge_result(raw: &str, result: &Object<'_>, context: Context<'_>) -> Mended {
    let list = result.get("content").and_then(|it| judge_list(it, |block| judge(block, context)));
    let Some((blocks, why)) = list else { return Mended::Fine };
    let content = if blocks.is_empty() { "\"\"".to_owned() } else { json::write::list(blocks) };
    Mended::By(with(raw, &["content"], &content), why)
}
