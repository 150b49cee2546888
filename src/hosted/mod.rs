//! The work of a provider's own tools, and the sources that it cites: read from the blocks that keep it, and written as text.
//!
//! Anthropic has blocks for it in the content of a message. The items of the Responses API, the parts of Gemini and the members of
//! their answers are in blocks of the type `reasoning`, which go back only to the model that wrote them. Another model gets
//! `text`. It depends on the block alone, so that a request begins like the one before it.
//!
//! The types are those of anthropic 2.14.0, openai 3.57.0 and google-genai 3.6.1 (27 November 2026). Their members have few
//! names, so an unknown tool is read like a known one; see `reading`.

mod anthropic;
mod gemini;
mod reading;
mod responses;

use crate::json::{self, Object, elements};
use std::borrow::Cow;

/// The members of a block of the type `reasoning` that are not reasoning, besides items and parts.
pub const CITATIONS: [&str; 4] =
    ["annotations", "groundingMetadata", "citationMetadata", "urlContextMetadata"];
/// The member of a block of the type `reasoning` with the container in which Anthropic runs code.
pub const CONTAINER: &str = "container";

/// The maximum length of the text of a block, in bytes.
const MAX_TEXT: usize = 16 << 10;
/// The maximum length of a title, an address or a quotation, in bytes.
const MAX_PART: usize = 600;
/// The maximum number of sources in the text of a block.
const MAX_SOURCES: usize = 40;

/// A call of a provider's own tool, its result, or both; or the sources that a text cites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostedAct {
    /// The tool in words, such as `web search`; `sources` for citations.
    pub tool: String,
    /// What the tool was asked: a query, an address, code, or arguments as JSON.
    pub input: Option<String>,
    /// The sources that it found, or that the text cites.
    pub sources: Vec<HostedSource>,
    /// What it answered, in lines.
    pub output: String,
    /// The error, if it failed.
    pub failure: Option<String>,
    /// True if this is a result, even if nothing is in it.
    pub is_result: bool,
}

/// A source. Its members are empty if they are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostedSource {
    /// The title, or the name of a file.
    pub title: String,
    /// The address.
    pub address: String,
    /// The quotation.
    pub quote: String,
}

/// Returns true if a block of the type `reasoning` keeps something other than reasoning.
#[must_use]
pub fn is_kept(block: &Object<'_>) -> bool {
    let object = |name: &str| block.get(name).and_then(|raw| Object::parse(raw).ok());
    let is_item =
        || object("item").is_some_and(|it| it.string("type").as_deref() != Some("reasoning"));
    let is_part = || object("part").is_some_and(|it| !it.is_true("thought"));
    let has = |name: &&str| block.get(name).is_some();
    is_item() || is_part() || CITATIONS.iter().any(has) || has(&CONTAINER)
}

/// Returns what a block says about a provider's own tools; `None` for any other block, and for what only its provider can read.
#[must_use]
pub fn act(block: &Object<'_>) -> Option<HostedAct> {
    let kind = block.string("type")?;
    if kind != "reasoning" {
        return anthropic::act(&kind, block);
    }
    let object = |name: &str| block.get(name).and_then(|raw| Object::parse(raw).ok());
    if let Some(item) = object("item") {
        return responses::act(&item);
    }
    match object("part") {
        Some(part) => gemini::act(&part),
        None => cited(block),
    }
}

/// Returns the type of a block, or of the item in it.
#[must_use]
pub fn kind(block: Option<&Object<'_>>) -> String {
    let Some(block) = block else { return String::new() };
    let item = block.get("item").and_then(|raw| Object::parse(raw).ok());
    let item = item.as_ref().and_then(|it| it.string("type"));
    let container = block.get(CONTAINER).map(|_| Cow::Borrowed(CONTAINER));
    item.or(container).or_else(|| block.string("type")).unwrap_or_default().into_owned()
}

/// Returns the sources that a text block cites.
#[must_use]
pub fn citations(text: &Object<'_>) -> Option<HostedAct> {
    reading::sources(text.get("citations")?)
}

/// Returns the sources in a block that keeps [`CITATIONS`].
fn cited(block: &Object<'_>) -> Option<HostedAct> {
    let find = |name: &&str| {
        let raw = block.get(name)?;
        if raw.starts_with('[') {
            reading::sources(raw)
        } else {
            gemini::sources(&Object::parse(raw).ok()?)
        }
    };
    CITATIONS.iter().find_map(find)
}

/// Returns the text that takes the place of a block for a model that does not get the block itself; `None` if there is nothing to
/// say. The readable summary in a block of the type `compaction` is whole; any other text is at most 16 KiB long.
#[must_use]
pub fn text(block: &Object<'_>) -> Option<String> {
    if block.string("type").as_deref() == Some("compaction") {
        return block.string("content").filter(|text| !text.trim().is_empty()).map(Cow::into_owned);
    }
    act(block).map(|act| act.to_text())
}

/// Returns the text of the sources that a text block cites.
#[must_use]
pub fn cited_text(text: &Object<'_>) -> Option<String> {
    citations(text).map(|act| act.to_text())
}

impl HostedAct {
    /// Returns a name in words: `web_search` is `web search`.
    fn of(name: &str) -> HostedAct {
        HostedAct { tool: name.replace('_', " "), ..HostedAct::default() }
    }

    /// Returns true if it says nothing about a result.
    #[must_use]
    pub fn is_call(&self) -> bool {
        !self.is_result
            && self.sources.is_empty()
            && self.output.is_empty()
            && self.failure.is_none()
    }

    /// Returns what was asked, what failed, the sources in a numbered list, and the answer, each after a line in brackets. Other
    /// lines are indented, so that none of them looks like one of these.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        match self.input.as_deref().map(str::trim).unwrap_or_default() {
            "" if self.is_call() => text.push_str(&format!("[{}]\n", self.tool)),
            "" => {}
            line if !line.contains('\n') => text.push_str(&format!("[{}: {line}]\n", self.tool)),
            lines => text.push_str(&format!("[{}]\n{}", self.tool, indented(lines))),
        }
        if !self.is_call() {
            text.push_str(&self.heading());
        }
        for (number, source) in self.sources.iter().take(MAX_SOURCES).enumerate() {
            text.push_str(&source.to_text(number + 1));
        }
        if self.sources.len() > MAX_SOURCES {
            text.push_str(&format!("({} more)\n", self.sources.len() - MAX_SOURCES));
        }
        text.push_str(&indented(&self.output));
        cut(text.trim_end(), MAX_TEXT).into_owned()
    }

    /// Returns the line before a result.
    fn heading(&self) -> String {
        let tool = &self.tool;
        match &self.failure {
            Some(why) => format!("[{tool} failed: {why}]\n"),
            None if !self.is_result && self.input.is_none() => format!("[{tool}]\n"),
            None if self.sources.is_empty() && self.output.trim().is_empty() => {
                format!("[result of {tool}: nothing]\n")
            }
            None => format!("[result of {tool}]\n"),
        }
    }
}

impl HostedSource {
    /// Returns the number, the title and the address on a line, and the quotation on the next.
    fn to_text(&self, number: usize) -> String {
        let part = |text: &str| cut(&one_line(text), MAX_PART).into_owned();
        let (title, address) = (part(&self.title), part(&self.address));
        let address = if address.is_empty() { address } else { format!("<{address}>") };
        let named: Vec<&str> =
            [title.as_str(), &address].into_iter().filter(|it| !it.is_empty()).collect();
        let quote = part(&self.quote);
        let quote = if quote.is_empty() { quote } else { format!("   \"{quote}\"\n") };
        format!("{number}. {}\n{quote}", named.join(" "))
    }
}

/// Indents the lines of a text.
fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("  {line}\n")).collect()
}

/// Joins the words of a text with spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text that is longer than `most` bytes, with the number of bytes that are left out.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned(format!("{}… [{} bytes left out]", &text[..end], text.len() - end))
}

/// Returns the strings in a JSON list.
fn strings(raw: &str) -> Vec<String> {
    let all = elements(raw).unwrap_or_default().into_iter();
    all.filter_map(|raw| json::string(raw).map(Cow::into_owned)).collect()
}

#[cfg(test)]
mod tests;
