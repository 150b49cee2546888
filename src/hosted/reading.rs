//! Reads the results of tools by the names of their members, whatever the tool.

use super::{HostedAct, HostedSource};
use crate::json::{self, Object, elements};
use std::borrow::Cow;

/// The names of the members with a source's title, its address, and a quotation from it.
const TITLE: [&str; 6] =
    ["title", "document_title", "filename", "displayName", "documentName", "file_id"];
const ADDRESS: [&str; 7] =
    ["url", "uri", "source", "retrieved_url", "retrievedUrl", "sourceUri", "imageUri"];
const QUOTE: [&str; 2] = ["cited_text", "text"];
/// The names of the members with text.
const TEXT: [&str; 19] = [
    "text",
    "stdout",
    "stderr",
    "logs",
    "output",
    "outputs",
    "result",
    "results",
    "response",
    "content",
    "lines",
    "diff",
    "data",
    "tools",
    "tool_references",
    "tool_name",
    "name",
    "queries",
    "reason",
];
/// How deep results are read.
const MAX_DEPTH: usize = 6;

/// Returns what a tool was asked, as people write it: the only member if that is a string, else the JSON.
pub(super) fn input(raw: &str) -> Option<String> {
    if let Some(text) = json::string(raw) {
        return Some(text.into_owned()).filter(|text| !text.trim().is_empty());
    }
    let Ok(object) = Object::parse(raw) else {
        return Some(raw.to_owned()).filter(|raw| !matches!(raw.as_str(), "null" | "[]"));
    };
    let mut members = object.members();
    match (members.next(), members.next()) {
        (None, _) => None,
        (Some(only), None) if only.value.starts_with('"') => input(only.value),
        _ => Some(json::on_one_line(raw)),
    }
}

/// Returns the sources in a list of citations; `None` if there are none.
pub(super) fn sources(raw: &str) -> Option<HostedAct> {
    let mut act = HostedAct { tool: "sources".to_owned(), ..HostedAct::default() };
    for raw in elements(raw)? {
        let Ok(own) = Object::parse(raw) else { continue };
        let inner = own.get("url_citation").and_then(|raw| Object::parse(raw).ok());
        act.cite(source(&inner.unwrap_or(own)));
    }
    (!act.sources.is_empty()).then_some(act)
}

/// Returns the source that an object describes.
pub(super) fn source(object: &Object<'_>) -> HostedSource {
    let first = |names: &[&str]| {
        let found =
            names.iter().find_map(|name| object.string(name).filter(|text| !text.is_empty()));
        found.map_or(String::new(), Cow::into_owned)
    };
    HostedSource { title: first(&TITLE), address: first(&ADDRESS), quote: first(&QUOTE) }
}

impl HostedAct {
    /// Adds a source. One that is there already is not added again.
    pub(super) fn cite(&mut self, source: HostedSource) {
        if source != HostedSource::default() && !self.sources.contains(&source) {
            self.sources.push(source);
        }
    }

    /// Adds lines to what the tool answered.
    pub(super) fn say(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if !self.output.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        self.output.push_str(text);
    }

    /// Adds an error: a string, or an object with a code and a message.
    pub(super) fn fail(&mut self, raw: &str) {
        let object = Object::parse(raw).ok();
        let member = |name: &str| object.as_ref()?.string(name).map(Cow::into_owned);
        let text = json::string(raw).map(Cow::into_owned);
        let said = ["error_code", "code", "type"].into_iter().find_map(member);
        let more = ["error_message", "message"].into_iter().find_map(member);
        let all: Vec<String> = text.into_iter().chain(said).chain(more).collect();
        match (all.is_empty(), raw) {
            (true, "null" | "false") => {}
            (true, _) => self.failure = Some(json::on_one_line(raw)),
            (false, _) => self.failure = Some(super::one_line(&all.join(": "))),
        }
    }

    /// Adds a result: text, a list, or an object whose members have known names.
    pub(super) fn answer(&mut self, raw: &str) {
        self.read(raw, MAX_DEPTH);
    }

    fn read(&mut self, raw: &str, depth: usize) {
        if depth == 0 {
            return;
        }
        if let Some(text) = json::string(raw) {
            return self.say(&text);
        }
        if let Some(all) = elements(raw) {
            return all.into_iter().for_each(|raw| self.read(raw, depth - 1));
        }
        if let Ok(object) = Object::parse(raw) {
            self.object(&object, depth - 1);
        }
    }

    fn object(&mut self, object: &Object<'_>, depth: usize) {
        let kind = object.string("type").unwrap_or_default();
        if object.get("error_code").is_some() {
            return self.fail(object.text());
        }
        if kind.contains("image") || kind.contains("screenshot") {
            return self.say("[image]");
        }
        let found = source(object);
        let is_file = object.get("filename").is_some() && object.get("text").is_some();
        if !found.address.is_empty() || is_file {
            // The text of a page that was fetched is the answer; that of a search is a quotation.
            let page = object.get("content").and_then(|raw| Object::parse(raw).ok());
            let title = page.as_ref().and_then(|page| page.string("title"));
            let title = title.map_or(found.title.clone(), Cow::into_owned);
            self.cite(HostedSource { title, ..found });
            return page.iter().for_each(|page| self.object(page, depth));
        }
        let inner = object.get("source").filter(|raw| raw.starts_with('{'));
        let own = TEXT.iter().filter_map(|name| object.get(name));
        match kind.as_ref() {
            // Bytes are not text.
            "document" | "base64" if !inner.or(Some(object.text())).is_some_and(is_text) => {
                self.say("[document]");
            }
            _ => inner.into_iter().chain(own).for_each(|raw| self.read(raw, depth)),
        }
        if let Some(code) = object.get("return_code").filter(|code| *code != "0") {
            self.say(&format!("[exit status {code}]"));
        }
        if let Some(file) = object.string("file_id") {
            self.say(&format!("[file {file}]"));
        }
    }
}

/// Returns true for the source of a document if it is text.
fn is_text(source: &str) -> bool {
    let object = Object::parse(source).ok();
    object.is_some_and(|it| matches!(it.string("type").as_deref(), Some("text" | "content")))
}
