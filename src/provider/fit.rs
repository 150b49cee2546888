//! Fits the names of tools and the ids of calls to a protocol and a model: in the messages, in the definitions of the tools,
//! and back in the reply.
//!
//! A name depends only on the tool's own name and an id only on the call's own id, so the definition, the calls and the results
//! agree in every request. The transcript and the programs that run tools keep their own names and ids.

use crate::id::Id;
use crate::json::write;
use crate::json::{Object, elements, quote};
use crate::messages::Message;
use crate::provider::Reply;
use crate::provider::protocol::Protocol;
use crate::record::content::{Block, BlockKind};
use crate::record::digest;
use crate::rules::accepts::{ANTHROPIC_NAME, MISTRAL_MODELS, NameLimit, OPENAI_NAME};
use crate::rules::names;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The messages and tools of a request, with names and ids that its target accepts.
#[derive(Debug, Default)]
pub struct Fitted<'m, 'a> {
    /// The messages.
    pub messages: Cow<'m, [Message<'a>]>,
    /// The tools, as a JSON array.
    pub tools: Option<Cow<'m, str>>,
    /// The tools' own names, by the names that are sent.
    names: HashMap<String, String>,
}

/// Fits messages and tools to a protocol and a model.
#[must_use]
pub fn fit<'m, 'a>(
    protocol: Protocol,
    model: &str,
    messages: &'m [Message<'a>],
    tools: Option<&'m str>,
) -> Fitted<'m, 'a> {
    let limit = match protocol {
        Protocol::Anthropic => ANTHROPIC_NAME,
        Protocol::OpenAi | Protocol::Ollama => OPENAI_NAME,
    };
    let needs_nine = protocol == Protocol::OpenAi && is_mistral(model);
    let mut names = HashMap::new();
    let tools = tools.map(|raw| fit_tools(raw, limit, &mut names));
    let messages = match protocol {
        // Rebuild has fitted the names, and the rules of order check them.
        Protocol::Anthropic => Cow::Borrowed(messages),
        _ => fit_calls(messages, limit, needs_nine),
    };
    Fitted { messages, tools, names }
}

/// Returns true for the models of Mistral, judging by the name.
fn is_mistral(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    MISTRAL_MODELS.iter().any(|part| name.contains(part))
}

/// Returns the name that is sent for a tool. Rebuild has already replaced the name in calls by one that Anthropic accepts.
fn sent_name(name: &str, limit: NameLimit) -> Cow<'_, str> {
    match names::fit(name, ANTHROPIC_NAME) {
        Cow::Borrowed(name) => names::fit(name, limit),
        Cow::Owned(name) => Cow::Owned(names::fit(&name, limit).into_owned()),
    }
}

/// Fits the names in the definitions, and adds those that change to `own`.
fn fit_tools<'m>(
    raw: &'m str,
    limit: NameLimit,
    own: &mut HashMap<String, String>,
) -> Cow<'m, str> {
    let Some(tools) = elements(raw) else { return Cow::Borrowed(raw) };
    let mut fitted: Vec<Cow<'_, str>> = Vec::with_capacity(tools.len());
    for tool in tools {
        let new = renamed(tool, limit, own).map_or(Cow::Borrowed(tool), Cow::Owned);
        fitted.push(new);
    }
    match fitted.iter().all(|tool| matches!(tool, Cow::Borrowed(_))) {
        true => Cow::Borrowed(raw),
        false => Cow::Owned(write::list(fitted)),
    }
}

/// Returns a definition with another name if the target refuses its own. The name is a member of the definition, or of its
/// `function`.
fn renamed(tool: &str, limit: NameLimit, own: &mut HashMap<String, String>) -> Option<String> {
    let object = Object::parse(tool).ok()?;
    if let Some(inner) = object.get("function").filter(|raw| raw.starts_with('{')) {
        return Some(object.with("function", &renamed(inner, limit, own)?));
    }
    let name = object.string("name")?;
    let Cow::Owned(sent) = sent_name(&name, limit) else { return None };
    let changed = object.with("name", &quote(&sent));
    own.insert(sent, name.into_owned());
    Some(changed)
}

/// Fits the names and ids in calls and results.
fn fit_calls<'m, 'a>(
    messages: &'m [Message<'a>],
    limit: NameLimit,
    needs_nine: bool,
) -> Cow<'m, [Message<'a>]> {
    let mut ids = needs_nine.then(|| NineIds::of(messages));
    let mut fitted = Cow::Borrowed(messages);
    for (number, message) in messages.iter().enumerate() {
        for (index, block) in message.blocks().enumerate() {
            let Some(changed) = fit_block(block, limit, ids.as_mut()) else { continue };
            fitted.to_mut()[number].content.blocks_mut()[index] = changed;
        }
    }
    fitted
}

fn fit_block<'a>(
    block: &Block<'_>,
    limit: NameLimit,
    ids: Option<&mut NineIds>,
) -> Option<Block<'a>> {
    let (member, id) = match &block.kind {
        BlockKind::ToolUse { id, .. } => ("id", id),
        BlockKind::ToolResult { id } => ("tool_use_id", id),
        _ => return None,
    };
    let new_id = ids.and_then(|ids| ids.assign(id));
    let object = Object::parse(&block.raw).ok()?;
    let name = object.string("name").filter(|_| member == "id");
    let new_name = name.as_deref().map(|name| sent_name(name, limit));
    let new_name = new_name.filter(|new| matches!(new, Cow::Owned(_)));
    if new_id.is_none() && new_name.is_none() {
        return None;
    }
    let mut raw = object.text().to_owned();
    for (member, value) in [(member, new_id.as_deref()), ("name", new_name.as_deref())] {
        if let (Some(value), Ok(object)) = (value, Object::parse(&raw)) {
            raw = object.with(member, &quote(value));
        }
    }
    let id = new_id.unwrap_or_else(|| id.clone());
    let kind = match &block.kind {
        BlockKind::ToolUse { is_valid, .. } => BlockKind::ToolUse { id, is_valid: *is_valid },
        _ => BlockKind::ToolResult { id },
    };
    Some(Block { raw: raw.into(), kind })
}

/// Ids of nine letters or digits, which Mistral demands (`Tool call id was call_... but must be a-z, A-Z, 0-9, with a length of
/// 9`; opencode issue 1680, langchain issue 24668). Ids that have this form stay.
struct NineIds {
    /// The new ids, by the old ones.
    new: HashMap<Id, Id>,
    used: HashSet<String>,
}

impl NineIds {
    const LENGTH: usize = 9;

    fn of(messages: &[Message<'_>]) -> NineIds {
        let calls = messages.iter().flat_map(Message::calls);
        let used = calls.filter(|id| Self::fits(id)).map(str::to_owned).collect();
        NineIds { new: HashMap::new(), used }
    }

    fn fits(id: &str) -> bool {
        id.len() == Self::LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }

    /// Returns the new id; `None` if the old one stays.
    fn assign(&mut self, id: &Id) -> Option<Id> {
        if Self::fits(id) {
            return None;
        }
        if let Some(new) = self.new.get(id) {
            return Some(new.clone());
        }
        let mut seed = id.to_string();
        let new = loop {
            seed = digest(&seed);
            let new = seed[..Self::LENGTH].to_owned();
            if self.used.insert(new.clone()) {
                break Id::from(new);
            }
        };
        self.new.insert(id.clone(), new.clone());
        Some(new)
    }
}

impl Fitted<'_, '_> {
    /// Gives the calls in replies the tools' own names.
    pub fn restore(&self, replies: &mut [Reply]) {
        if self.names.is_empty() {
            return;
        }
        for block in replies.iter_mut().flat_map(|reply| &mut reply.blocks) {
            let Ok(object) = Object::parse(block) else { continue };
            let is_call = object.string("type").as_deref() == Some("tool_use");
            let own = object.string("name").filter(|_| is_call);
            if let Some(own) = own.and_then(|name| self.names.get(name.as_ref())) {
                *block = object.with("name", &quote(own));
            }
        }
    }
}

/// Returns messages with names that fit into a limit, for another form of messages.
#[must_use]
pub fn messages_for<'m, 'a>(
    messages: &'m [Message<'a>],
    limit: NameLimit,
) -> Cow<'m, [Message<'a>]> {
    fit_calls(messages, limit, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    const LINES: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01","name":"mcp_server_tool_name_8d5ce0e1","input":{}},{"type":"tool_use","id":"abcdefgh1","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"r"},{"type":"tool_result","tool_use_id":"abcdefgh1","content":"s"}]}"#;

    #[test]
    fn definitions_calls_and_replies_agree_about_names() {
        let own = format!("mcp.server/{}", "tool".repeat(20));
        let first = names::fit(&own, ANTHROPIC_NAME).into_owned();
        let line = format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"{first}","input":{{}}}}]}}"#
        );
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let tools = format!(
            r#"[{{"name":"{own}","input_schema":{{}}}},{{"type":"function","function":{{"name":"{own}"}}}},{{"name":"f"}}]"#
        );
        for (protocol, most) in
            [(Protocol::Anthropic, 128), (Protocol::OpenAi, 64), (Protocol::Ollama, 64)]
        {
            let fitted = fit(protocol, "m", &messages, Some(&tools));
            let call = fitted.messages[0].content.blocks()[0].member("name").unwrap().to_owned();
            let sent = crate::json::string(&call).unwrap().into_owned();
            assert!(names::fits(&sent, NameLimit(most)), "{protocol:?} {sent}");
            let tools = fitted.tools.clone().unwrap();
            assert_eq!(tools.matches(&format!(r#""name":{call}"#)).count(), 2, "{tools}");
            let block = format!(r#"{{"type":"tool_use","id":"b","name":{call},"input":{{}}}}"#);
            let mut replies = [Reply { blocks: vec![block], ..Reply::default() }];
            fitted.restore(&mut replies);
            assert!(replies[0].blocks[0].contains(&own), "{:?}", replies[0].blocks);
        }
    }

    #[test]
    fn what_fits_is_borrowed() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let tools = r#"[{"name":"f"}]"#;
        let fitted = fit(Protocol::OpenAi, "gpt-5", &messages, Some(tools));
        assert!(matches!(fitted.messages, Cow::Borrowed(_)));
        assert!(matches!(fitted.tools, Some(Cow::Borrowed(_))));
    }

    #[test]
    fn ids_for_mistral_have_nine_letters_or_digits_in_calls_and_results() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let fitted = fit(Protocol::OpenAi, "mistralai/Mistral-Large", &messages, None);
        let calls: Vec<&str> = fitted.messages[0].calls().collect();
        let results: Vec<&str> = fitted.messages[1].results().collect();
        assert_eq!(calls, results);
        assert_eq!(calls[1], "abcdefgh1");
        assert!(calls.iter().all(|id| NineIds::fits(id)), "{calls:?}");
        let raw = fitted.messages[1].to_json();
        assert!(raw.contains(calls[0]) && !raw.contains("toolu_01"), "{raw}");
    }
}
