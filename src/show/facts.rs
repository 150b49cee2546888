//! Extracts the displayed data of sessions, replies, tool inputs and media from records.

use super::{Media, ReplyFacts, Session, Spent};
use crate::cost::PriceList;
use crate::json::{self, Object};
use crate::record::content::Block;
use crate::session::time;
use crate::usage::Call;
use std::borrow::Cow;

/// Formats the input of a tool call, one member per line. A value of several lines is indented below its
/// name.
pub fn members(input: &str) -> String {
    let Ok(object) = Object::parse(input) else { return input.to_owned() };
    object.members().map(|own| member(&own.name(), own.value)).collect()
}

/// Formats a member of an input.
pub fn member(name: &str, value: &str) -> String {
    let value = json::string(value).unwrap_or(Cow::Borrowed(value));
    if !value.contains('\n') {
        return format!("{name}: {value}\n");
    }
    let lines: String = value.lines().map(|line| format!("  {line}\n")).collect();
    format!("{name}:\n{lines}")
}

/// Returns true if a member of an input is the command or code that a tool runs.
pub fn is_command(name: &str) -> bool {
    ["command", "cmd", "script", "code"].contains(&name)
}

/// Returns the data of an image or document.
pub fn media(block: &Block<'_>) -> Media {
    let string = |object: &Object<'_>, name: &str| object.string(name).map(Cow::into_owned);
    let Ok(object) = Object::parse(&block.raw) else { return Media::default() };
    let source = object.get("source").and_then(|raw| Object::parse(raw).ok());
    let of_source = |name: &str| source.as_ref().and_then(|source| string(source, name));
    let is_base64 = of_source("type").as_deref() == Some("base64");
    let data = of_source("data");
    let bytes = data.as_ref().map(|data| match is_base64 {
        true => {
            data.trim_end_matches('=').len() / 4 * 3 + data.trim_end_matches('=').len() % 4 * 3 / 4
        }
        false => data.len(),
    });
    Media {
        kind: string(&object, "type").unwrap_or_default(),
        media_type: of_source("media_type"),
        bytes,
        data: data.filter(|_| is_base64),
        raw: block.raw.to_string(),
    }
}

/// Returns the data of a session header.
pub fn session(object: &Object<'_>) -> Session {
    let string = |name: &str| object.string(name).map(Cow::into_owned).filter(|it| !it.is_empty());
    let parent = object.get("parent").and_then(|raw| Object::parse(raw).ok());
    let source = object.get("source").and_then(|raw| Object::parse(raw).ok());
    let of_source = |name: &str| source.as_ref()?.string(name).map(Cow::into_owned);
    Session {
        id: string("id").unwrap_or_default(),
        key: string("key"),
        label: string("label"),
        created: string("created").and_then(|text| time::of_text(&text)),
        parent: parent.and_then(|it| it.string("session").map(Cow::into_owned)),
        dialect: of_source("dialect"),
        directory: of_source("cwd"),
        agent: of_source("agent"),
    }
}

/// Returns what the call to the provider that produced a record used.
pub fn spent(object: &Object<'_>, prices: &PriceList) -> Option<Spent> {
    let Call { model, counts } = Call::of(object)?;
    Some(Spent { counts, cost: model.and_then(|model| prices.cost(&model, &counts)) })
}

/// Returns the data of a reply.
pub fn reply(object: &Object<'_>, prices: &PriceList) -> ReplyFacts {
    let string = |name: &str| object.string(name).map(Cow::into_owned);
    let spent = spent(object, prices);
    ReplyFacts {
        model: string("model"),
        counts: spent.map(|spent| spent.counts),
        cost: spent.and_then(|spent| spent.cost),
        provider: string("provider"),
        stop_reason: string("stop_reason"),
        interrupted: object.is_true("interrupted"),
    }
}
