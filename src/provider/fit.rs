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
use crate::rules::accepts::MISTRAL_MODELS;
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

/// Fits messages and tools to a protocol and a model. Rebuild has fitted the names in calls already.
#[must_use]
pub fn fit<'m, 'a>(
    protocol: Protocol,
    model: &str,
    messages: &'m [Message<'a>],
    tools: Option<&'m str>,
) -> Fitted<'m, 'a> {
    let mut names = HashMap::new();
    let tools = tools.map(|raw| fit_tools(raw, &mut names));
    let messages = match protocol {
        Protocol::Chat if is_mistral(model) => nine_characters(messages),
        Protocol::Chat | Protocol::Responses | Protocol::Ollama => Cow::Borrowed(messages),
        Protocol::Gemini | Protocol::GeminiOnVertex => Cow::Borrowed(messages),
        Protocol::Anthropic | Protocol::AnthropicOnVertex | Protocol::AnthropicOnBedrock => {
            Cow::Borrowed(messages)
        }
    };
    Fitted { messages, tools, names }
}

/// Returns true for the models of Mistral, judging by the name.
fn is_mistral(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    MISTRAL_MODELS.iter().any(|part| name.contains(part))
}

/// Fits the names in the definitions, and adds those that change to `own`.
fn fit_tools<'m>(raw: &'m str, own: &mut HashMap<String, String>) -> Cow<'m, str> {
    let Some(tools) = elements(raw) else { return Cow::Borrowed(raw) };
    let fitted = |tool| renamed(tool, own).map_or(Cow::Borrowed(tool), Cow::Owned);
    let fitted: Vec<Cow<'_, str>> = tools.into_iter().map(fitted).collect();
    match fitted.iter().all(|tool| matches!(tool, Cow::Borrowed(_))) {
        true => Cow::Borrowed(raw),
        false => Cow::Owned(write::list(fitted)),
    }
}

/// Returns a definition with another name if the target refuses its own. The name is a member of the definition, or of its
/// `function`.
fn renamed(tool: &str, own: &mut HashMap<String, String>) -> Option<String> {
    let object = Object::parse(tool).ok()?;
    if let Some(inner) = object.get("function").filter(|raw| raw.starts_with('{')) {
        return Some(object.with("function", &renamed(inner, own)?));
    }
    let name = object.string("name")?;
    let Cow::Owned(sent) = names::fit(&name) else { return None };
    let changed = object.with("name", &quote(&sent));
    own.insert(sent, name.into_owned());
    Some(changed)
}

/// Gives all calls and results ids of nine characters.
fn nine_characters<'m, 'a>(messages: &'m [Message<'a>]) -> Cow<'m, [Message<'a>]> {
    let mut ids = NineIds::of(messages);
    let mut fitted = Cow::Borrowed(messages);
    for (number, message) in messages.iter().enumerate() {
        for (index, block) in message.blocks().enumerate() {
            let Some(changed) = with_id(block, &mut ids) else { continue };
            fitted.to_mut()[number].content.blocks_mut()[index] = changed;
        }
    }
    fitted
}

/// Returns the block with its new id; `None` if its id stays.
fn with_id<'a>(block: &Block<'_>, ids: &mut NineIds) -> Option<Block<'a>> {
    let mut kind = block.kind.clone();
    let (member, id) = match &mut kind {
        BlockKind::ToolUse { id, .. } => ("id", id),
        BlockKind::ToolResult { id } => ("tool_use_id", id),
        _ => return None,
    };
    *id = ids.assign(id)?;
    let raw = Object::parse(&block.raw).ok()?.with(member, &quote(id));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    const LINES: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01","name":"mcp_server_tool_name_8d5ce0e1","input":{}},{"type":"tool_use","id":"abcdefgh1","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"r"},{"type":"tool_result","tool_use_id":"abcdefgh1","content":"s"}]}"#;

    #[test]
    fn definitions_calls_and_replies_agree_about_names() {
        let own = "mcp.server/tool name";
        let sent = names::fit(own);
        let tools = format!(
            r#"[{{"name":"{own}","input_schema":{{}}}},{{"type":"function","function":{{"name":"{own}"}}}},{{"name":"f"}}]"#
        );
        let fitted = fit(Protocol::Chat, "m", &[], Some(&tools));
        let tools = fitted.tools.clone().unwrap();
        assert_eq!(tools.matches(&format!(r#""name":"{sent}""#)).count(), 2, "{tools}");
        let block = format!(r#"{{"type":"tool_use","id":"b","name":"{sent}","input":{{}}}}"#);
        let mut replies = [Reply { blocks: vec![block], ..Reply::default() }];
        fitted.restore(&mut replies);
        assert!(replies[0].blocks[0].contains(own), "{:?}", replies[0].blocks);
    }

    #[test]
    fn what_fits_is_borrowed() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let tools = r#"[{"name":"f"}]"#;
        let fitted = fit(Protocol::Chat, "gpt-5", &messages, Some(tools));
        assert!(matches!(fitted.messages, Cow::Borrowed(_)));
        assert!(matches!(fitted.tools, Some(Cow::Borrowed(_))));
    }

    #[test]
    fn ids_for_mistral_have_nine_letters_or_digits_in_calls_and_results() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let fitted = fit(Protocol::Chat, "mistralai/Mistral-Large", &messages, None);
        let calls: Vec<&str> = fitted.messages[0].calls().collect();
        let results: Vec<&str> = fitted.messages[1].results().collect();
        assert_eq!(calls, results);
        assert_eq!(calls[1], "abcdefgh1");
        assert!(calls.iter().all(|id| NineIds::fits(id)), "{calls:?}");
        let raw = fitted.messages[1].to_json();
        assert!(raw.contains(calls[0]) && !raw.contains("toolu_01"), "{raw}");
    }
}
