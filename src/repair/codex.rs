//! Rollout files of Codex; see [`crate::dialect::codex`]. Results need not follow their calls at once.

use super::blocks::{judge_base64, judge_call, judge_images};
use super::program::{Context, Mended, Part, PartKind, Program, Said, text_block, with};
use super::salvage;
use super::sheet::Sheet;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::record::content::Role;

/// Codex.
pub(super) struct Codex;

impl Program for Codex {
    fn needs_results_next(&self) -> bool {
        false
    }

    /// Codex opens a file only if it begins with the facts of the session.
    fn begin(&self, sheet: &mut Sheet<'_>, name: &str) -> Result<(), String> {
        let Some((first, record)) = sheet.records().next() else { return Ok(()) };
        if record.string("type").as_deref() == Some("session_meta") {
            return Ok(());
        }
        let torn = salvage::torn(sheet, first);
        let Some(id) = salvage::string(&torn, "id").or_else(|| salvage::uuid(name)) else {
            let why = "it has no session_meta, and its name does not end in the id of the session";
            return Err(format!("{why}; rename it to rollout-TIME-ID.jsonl, where ID is a UUID"));
        };
        let context = sheet.records().find_map(|(_, record)| {
            let is_it = record.string("type").as_deref() == Some("turn_context");
            Object::parse(record.get("payload").filter(|_| is_it)?)
                .ok()?
                .string("cwd")
                .map(Into::into)
        });
        let cwd = salvage::string(&torn, "cwd").or(context).unwrap_or_else(|| ".".to_owned());
        let known = |name: &str, default: &str| {
            salvage::string(&torn, name).unwrap_or_else(|| default.to_owned())
        };
        let time = record.get("timestamp").unwrap_or("\"1970-01-01T00:00:00.000Z\"");
        let header = Members::new()
            .raw("timestamp", time)
            .optional(
                Members::number,
                "ordinal",
                record.number("ordinal").map(|it| it.saturating_sub(1)),
            )
            .string("type", "session_meta")
            .object("payload", |it| {
                it.string("session_id", &id)
                    .string("id", &id)
                    .raw("timestamp", time)
                    .string("cwd", &cwd)
                    .string("originator", &known("originator", "codex_cli_rs"))
                    .string("cli_version", &known("cli_version", "0.0.0"))
                    .string("source", &known("source", "cli"))
                    .optional(
                        Members::string,
                        "model_provider",
                        salvage::string(&torn, "model_provider").as_deref(),
                    )
            })
            .into_json();
        sheet.insert(first, header, "the facts of the session are missing");
        Ok(())
    }

    /// A compaction replaces the history before it.
    fn sent(&self, sheet: &Sheet<'_>, _path: &[usize]) -> Vec<usize> {
        let kind = |record: &Object<'_>| record.string("type").unwrap_or_default().into_owned();
        let items = sheet.records().map(|(row, record)| (row, kind(&record)));
        let items: Vec<(usize, String)> = items.collect();
        let begin = items.iter().rposition(|(_, kind)| kind == "compacted").map_or(0, |at| at + 1);
        let is_item = |(_, kind): &&(usize, String)| kind == "response_item";
        items[begin..].iter().filter(is_item).map(|(row, _)| *row).collect()
    }

    fn said<'a>(&self, text: &'a str) -> Option<Said<'a>> {
        let record = Object::parse(text).ok()?;
        let raw = record.get("payload")?;
        let item = Object::parse(raw).ok()?;
        let id = || item.string("call_id").or_else(|| item.string("id")).unwrap_or_default();
        let only = |role, kind| {
            Some(Said { role, reply: None, model: None, parts: vec![Part { raw, kind }] })
        };
        match item.string("type").as_deref()? {
            "message" => {
                let is_reply = item.string("role").as_deref() == Some("assistant");
                let role = if is_reply { Role::Assistant } else { Role::User };
                let part = |raw| Part { raw, kind: PartKind::Other };
                let blocks = item.get("content").and_then(json::elements).unwrap_or_default();
                // A message without content is a part that cannot be sent.
                let parts = match blocks.is_empty() {
                    true => vec![part(raw)],
                    false => blocks.into_iter().map(part).collect(),
                };
                Some(Said { role, reply: None, model: None, parts })
            }
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                only(Role::Assistant, PartKind::Call(id()))
            }
            "function_call_output" | "custom_tool_call_output" => {
                only(Role::User, PartKind::Result(id()))
            }
            "reasoning" => only(Role::Assistant, PartKind::Thinking),
            _ => None,
        }
    }

    fn judge(&self, part: &Part<'_>, context: Context<'_>) -> Mended {
        let Ok(block) = Object::parse(part.raw) else { return Mended::Fine };
        match block.string("type").as_deref() {
            Some("message") => Mended::Without("a message has no content; left out".to_owned()),
            Some("input_image") if context.role == Role::Assistant => Mended::Without(
                "a message of the assistant cannot contain an image; left out".to_owned(),
            ),
            Some("input_image") => judge_image(part.raw, &block),
            Some("function_call" | "custom_tool_call") => judge_call(part.raw, "name", ""),
            Some("function_call_output" | "custom_tool_call_output") => {
                judge_images(part.raw, &block, "output", judge_image)
            }
            Some("reasoning") if context.drops_thinking => {
                Mended::Without("its reasoning is left out, as asked".to_owned())
            }
            Some("reasoning") => judge_reasoning(&block),
            _ => Mended::Fine,
        }
    }

    fn with_parts(&self, text: &str, parts: &[String]) -> String {
        let is_message = || {
            let record = Object::parse(text).ok()?;
            let item = Object::parse(record.get("payload")?).ok()?;
            Some(
                item.get("content").is_some_and(|it| it.starts_with('['))
                    && item.get("role").is_some(),
            )
        };
        match parts {
            [only] if is_message() != Some(true) => with(text, &["payload"], only),
            _ => with(text, &["payload", "content"], &json::write::list(parts)),
        }
    }

    fn silent(&self, _text: &str) -> Option<String> {
        None
    }

    fn with_call_id(&self, part: &Part<'_>, id: &str) -> String {
        with(part.raw, &["call_id"], &json::quote(id))
    }

    /// The output is the one that Codex itself sends for a call that was interrupted.
    fn no_result(&self, call: &Part<'_>, id: &str) -> String {
        let is_custom = Object::parse(call.raw)
            .is_ok_and(|call| call.string("type").as_deref() == Some("custom_tool_call"));
        let name = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
        Members::of_type(name).string("call_id", id).string("output", "aborted").into_json()
    }

    fn record_of(&self, near: &str, result: &str, _id: &str, _parent: &str) -> String {
        let near = Object::parse(near).ok();
        let own = |name| near.as_ref().and_then(|near: &Object<'_>| near.get(name));
        Members::new()
            .optional(Members::raw, "timestamp", own("timestamp"))
            .optional(Members::raw, "ordinal", own("ordinal"))
            .string("type", "response_item")
            .raw("payload", result)
            .into_json()
    }
}

/// Judges reasoning by its encrypted part, which is base64 for addresses.
fn judge_reasoning(item: &Object<'_>) -> Mended {
    let seal = item.get("encrypted_content").filter(|seal| *seal != "null");
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte);
    match seal.and_then(json::string) {
        Some(seal) if seal.is_empty() || !seal.bytes().all(is_allowed) => {
            Mended::Without("the encrypted part of reasoning is not base64; left out".to_owned())
        }
        _ => Mended::Fine,
    }
}

/// Judges an image by its form in Anthropic's API. Its file is in the address.
fn judge_image(raw: &str, block: &Object<'_>) -> Mended {
    let url = block.string("image_url").filter(|_| block.get("type") == Some("\"input_image\""));
    let Some(url) = url else { return Mended::Fine };
    let Some((media_type, data)) = url.strip_prefix("data:").and_then(|url| url.split_once(','))
    else {
        return match url.trim().is_empty() {
            true => Mended::By(
                text_block("input_text", "[image left out: it has no URL]"),
                "media: it has no URL; left out".to_owned(),
            ),
            false => Mended::Fine,
        };
    };
    let media_type = media_type.split(';').next().unwrap_or_default();
    let [media_type, data] = [media_type, data].map(json::quote);
    judge_base64(&media_type, &data, "input_text", |media_type, data| {
        let [media_type, data] = [media_type, data].map(|it| json::string(it).unwrap_or_default());
        with(raw, &["image_url"], &json::quote(&format!("data:{media_type};base64,{data}")))
    })
}
