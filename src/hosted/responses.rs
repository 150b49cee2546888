//! Reads the items of the Responses API (`response_output_item.py` in openai 3.57.0).

use super::{HostedAct, HostedSource, reading, strings};
use crate::json::{self, Object, elements};
use std::borrow::Cow;

/// The names of the members with what a tool was asked, and with what it answered.
const INPUT: [&str; 9] = [
    "arguments",
    "input",
    "code",
    "queries",
    "revised_prompt",
    "operation",
    "action",
    "actions",
    "approval_request_id",
];
const OUTPUT: [&str; 5] = ["output", "outputs", "results", "tools", "reason"];

/// Returns what an item says; `None` for reasoning, a summary that only OpenAI can read, and a part of the conversation.
pub(super) fn act(item: &Object<'_>) -> Option<HostedAct> {
    let kind = item.string("type")?;
    let call = kind.strip_suffix("_call");
    let result = kind.strip_suffix("_call_output").or_else(|| kind.strip_suffix("_output"));
    let mut act = HostedAct::of(match &*kind {
        "reasoning" | "message" | "compaction" | "item_reference" => return None,
        "mcp_call" | "mcp_list_tools" | "mcp_approval_request" | "mcp_approval_response" => {
            &kind[4..]
        }
        kind => call.or(result).unwrap_or(kind),
    });
    act.is_result = result.is_some();
    let string = |name: &str| item.string(name).filter(|it| !it.is_empty());
    match (string("server_label"), string("name")) {
        (Some(server), Some(name)) => act.tool = format!("MCP {} {server}/{name}", act.tool),
        (Some(server), None) => act.tool = format!("MCP {} of {server}", act.tool),
        (None, Some(name)) => act.tool = format!("{} {name}", act.tool),
        (None, None) => {}
    }
    act.tool = act.tool.replace("MCP call ", "MCP tool ");
    match item.get("action").and_then(|raw| Object::parse(raw).ok()) {
        Some(action) if kind == "web_search_call" => search(&action, &mut act),
        Some(action) => act.input = command(&action).or_else(|| reading::input(action.text())),
        None => {
            let input = INPUT.iter().find_map(|name| item.get(name).and_then(asked));
            act.input = input;
        }
    }
    OUTPUT.iter().filter_map(|name| item.get(name)).for_each(|raw| act.answer(raw));
    if let Some(error) = item.get("error") {
        act.fail(error);
    }
    match (&*kind, item.get("result")) {
        // The bytes of an image are not text.
        ("image_generation_call", Some(raw)) if raw.starts_with('"') => act.say("[image]"),
        ("image_generation_call", _) | (_, None) => {}
        (_, Some(raw)) => act.answer(raw),
    }
    if item.string("status").as_deref() == Some("failed") && act.failure.is_none() {
        act.failure = Some("no reason given".to_owned());
    }
    Some(act)
}

/// Returns an input: strings of a list on lines of their own, else as [`reading::input`].
fn asked(raw: &str) -> Option<String> {
    let all = strings(raw);
    if all.is_empty() { reading::input(raw) } else { Some(all.join("\n")) }
}

/// Returns the command of a shell: a list of words, or a list of lines.
fn command(action: &Object<'_>) -> Option<String> {
    let words = action.get("command").map(strings).filter(|it| !it.is_empty());
    let lines = || action.get("commands").map(strings).filter(|it| !it.is_empty());
    words.map(|it| it.join(" ")).or_else(|| lines().map(|it| it.join("\n")))
}

/// Adds a search, or what was done with a page.
fn search(action: &Object<'_>, act: &mut HostedAct) {
    let string = |name: &str| action.string(name).map(Cow::into_owned);
    let queries = action.get("queries").map(strings).filter(|it| !it.is_empty());
    let asked = queries.map(|it| it.join("\n")).or_else(|| string("query"));
    let page = string("url");
    act.input = match (asked, string("pattern"), page) {
        (Some(asked), ..) => Some(asked),
        (None, Some(pattern), Some(page)) => Some(format!("'{pattern}' in {page}")),
        (None, pattern, page) => page.or(pattern),
    };
    for raw in action.get("sources").and_then(elements).unwrap_or_default() {
        match Object::parse(raw) {
            Ok(source) => act.cite(reading::source(&source)),
            Err(_) => act.cite(HostedSource {
                address: json::string(raw).unwrap_or_default().into_owned(),
                ..HostedSource::default()
            }),
        }
    }
}
