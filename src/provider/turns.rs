//! Converts messages and tools to the form that chat completions and Ollama share. Messages for Gemini are made from
//! the same form.
//!
//! In both protocols, a message has one text and a separate list of tool calls, and each tool result is a message of
//! its own. [`turns`] converts messages to that form, and [`tools`] converts tool definitions. [`draft`] converts an
//! answer back to a reply. The exact JSON of a message differs and is written by each protocol's module.
//!
//! Text stays in raw JSON strings, so its bytes do not change.

pub(super) mod draft;
mod function;
pub(super) mod origin;
mod schema;

use crate::hosted;
use crate::json::write::Members;
use crate::json::{Object, elements, is_blank, quote};
use crate::messages::Message;
use crate::provider::ModelRequest;
use crate::provider::reasoning::{self, Author};
use crate::record::content::{Content, REASONING, Role, reasoning_text};
use crate::record::digest;
use std::borrow::Cow;
use std::collections::HashMap;

pub(super) use function::{Function, tools};

/// The prefix that marks the text of a failed tool result. These protocols have no `is_error` member.
pub(crate) const FAILED: &str = "ERROR: ";
/// The same for a result in parts, as a JSON string.
pub(super) const FAILED_TEXT: &str = "\"ERROR:\"";

/// A message in the form that the protocols share.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatTurn<'m> {
    /// A user message; never empty.
    User(Vec<UserPart<'m>>),
    /// An assistant message. It has at least one of thinking, text and calls.
    Assistant {
        /// The joined thinking, as a JSON string, if it was asked for.
        thinking: Option<String>,
        /// The members with reasoning that the server gets back: their names and values.
        own: Vec<(&'static str, Cow<'m, str>)>,
        /// The text of the message, as a JSON string.
        text: Option<String>,
        /// The tool calls, in order.
        calls: Vec<ChatCall<'m>>,
    },
    /// The result of one tool call.
    Result {
        /// The call's id.
        id: Cow<'m, str>,
        /// The tool's name, as a JSON string, if the call is among the messages.
        name: Option<&'m str>,
        /// The result, as a JSON string.
        text: String,
    },
}

/// A part of a user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserPart<'m> {
    /// Text, as a JSON string.
    Text(&'m str),
    /// An image. Both members are JSON strings.
    Image {
        /// The media type, such as `"image/png"`.
        media_type: &'m str,
        /// The bytes, in base64.
        data: &'m str,
    },
    /// The URL of an image, as a JSON string.
    Link(&'m str),
    /// A document. All members are JSON strings.
    File {
        /// The media type, such as `"application/pdf"`.
        media_type: &'m str,
        /// The bytes, in base64.
        data: &'m str,
        /// The title, if there is one.
        title: Option<&'m str>,
    },
    /// The URL of a document, as a JSON string.
    FileLink(&'m str),
}

impl<'m> UserPart<'m> {
    /// Returns the part, or a placeholder for a document, which chat completions and Ollama do not take.
    fn without_file(self) -> UserPart<'m> {
        match self {
            UserPart::File { .. } | UserPart::FileLink(_) => UserPart::Text("\"[document]\""),
            other => other,
        }
    }
}

/// A tool call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChatCall<'m> {
    /// The call's id.
    pub(super) id: Cow<'m, str>,
    /// The tool's name, as a JSON string.
    pub(super) name: &'m str,
    /// The input, as a JSON object.
    pub(super) input: &'m str,
    /// The member `extra_content`, which the server gets back.
    pub(super) extra: Option<&'m str>,
}

/// The thinking that messages keep.
#[derive(Clone, Copy, Debug)]
pub(super) enum Thoughts<'r> {
    /// None.
    None,
    /// The text of all of it.
    All,
    /// The reasoning of this author, as it was sent.
    Of(&'r Author),
}

/// Converts messages. The tool results of a message come first, one message each. A user message follows, with the
/// images of the results and then the user's own content. What a provider's own tools did becomes text. Redacted thinking and
/// unknown blocks are dropped, as are messages that become empty; if that makes two user messages adjacent, they are merged.
pub(super) fn turns<'m>(messages: &'m [Message<'_>], thoughts: Thoughts<'_>) -> Vec<ChatTurn<'m>> {
    let mut names = HashMap::new();
    let mut turns = Vec::new();
    for message in messages {
        let pieces = pieces(message, &mut names, thoughts);
        match message.role {
            Role::User => user(pieces, &mut turns),
            Role::Assistant => turns.extend(assistant(pieces)),
        }
    }
    turns
}

/// Returns the messages of a request as JSON: the system prompt, then each turn, converted by `to_json`.
pub(super) fn messages(
    request: &ModelRequest<'_, '_>,
    to_json: impl Fn(&ChatTurn<'_>) -> String,
) -> Vec<String> {
    let system = |text| Members::new().string("role", "system").string("content", text).into_json();
    let turns = turns(request.messages, request.author.map_or(Thoughts::None, Thoughts::Of));
    request.system.map(system).into_iter().chain(turns.iter().map(to_json)).collect()
}

/// Returns messages as JSON, each turn converted by `to_json`.
pub(super) fn convert(
    messages: &[Message<'_>],
    thoughts: Thoughts<'_>,
    to_json: impl Fn(&ChatTurn<'_>) -> String,
) -> Vec<String> {
    turns(messages, thoughts).iter().map(to_json).collect()
}

/// The names of the tools, as JSON strings, by the id of the call.
pub(super) type Names<'m> = HashMap<Cow<'m, str>, &'m str>;

/// A piece of a message, in the order of the message's blocks.
#[derive(Debug)]
pub(super) enum Piece<'m> {
    /// A part of the user's own content.
    Part(UserPart<'m>),
    /// The result of a tool call.
    Result(ToolResult<'m>),
    /// The model's text, as a JSON string; never blank.
    Text(Cow<'m, str>),
    /// Thinking, as a JSON string, if all of it was asked for.
    Thinking(Cow<'m, str>),
    /// A block of reasoning that its author gets back.
    Own(Object<'m>),
    /// A tool call.
    Call(ChatCall<'m>),
}

/// The result of a tool call.
#[derive(Debug)]
pub(super) struct ToolResult<'m> {
    /// The call's id.
    pub(super) id: Cow<'m, str>,
    /// The tool's name, as a JSON string, if the call is among the messages.
    pub(super) name: Option<&'m str>,
    /// The content.
    pub(super) parts: Vec<UserPart<'m>>,
    /// True if the tool failed.
    pub(super) is_error: bool,
}

/// Returns the pieces of a message, each with the index of its block. `names` gets the names of the calls in it. What a
/// provider's own tools did, and the sources of a text, are text. Redacted thinking and unknown blocks are dropped.
pub(super) fn pieces<'m>(
    message: &'m Message<'_>,
    names: &mut Names<'m>,
    thoughts: Thoughts<'_>,
) -> Vec<(usize, Piece<'m>)> {
    let mut pieces = Vec::new();
    if let Content::Text(raw) = &message.content {
        let text = not_blank(raw).map(|raw| match message.role {
            Role::User => Piece::Part(UserPart::Text(raw)),
            Role::Assistant => Piece::Text(raw.into()),
        });
        pieces.extend(text.map(|text| (0, text)));
    }
    for (block, object) in objects(&message.content) {
        let add = |piece: Piece<'m>| pieces.push((block, piece));
        match message.role {
            Role::User if object.string("type").as_deref() == Some("tool_result") => {
                result(&object, names).map(Piece::Result).map(add);
            }
            Role::User => parts(&object).into_iter().map(Piece::Part).for_each(add),
            Role::Assistant => {
                let sources = sources(&object);
                of_assistant(object, names, thoughts).into_iter().chain(sources).for_each(add);
            }
        }
    }
    pieces
}

fn of_assistant<'m>(
    object: Object<'m>,
    names: &mut Names<'m>,
    thoughts: Thoughts<'_>,
) -> Option<Piece<'m>> {
    match (object.string("type").as_deref()?, thoughts) {
        ("text", _) => object.get("text").and_then(not_blank).map(|raw| Piece::Text(raw.into())),
        ("thinking", Thoughts::All) => {
            object.get("thinking").and_then(not_blank).map(|raw| Piece::Thinking(raw.into()))
        }
        ("reasoning", Thoughts::Of(author)) if author.wrote(&object) => Some(Piece::Own(object)),
        ("tool_use", _) => call(&object).map(|call| {
            names.insert(call.id.clone(), call.name);
            Piece::Call(call)
        }),
        ("reasoning", Thoughts::All) if !hosted::is_kept(&object) => {
            reasoning_text(&object).filter(|text| !is_blank(text)).map(Piece::Thinking)
        }
        _ => hosted::text(&object).map(|text| Piece::Text(quote(&text).into())),
    }
}

/// Returns the sources that a text block cites, as text: other APIs do not take citations.
fn sources<'m>(block: &Object<'_>) -> Option<Piece<'m>> {
    let text = hosted::cited_text(block)?;
    let is_text = block.string("type").as_deref() == Some("text");
    is_text.then(|| Piece::Text(quote(&text).into()))
}

fn assistant<'m>(pieces: Vec<(usize, Piece<'m>)>) -> Option<ChatTurn<'m>> {
    let (mut texts, mut calls, mut thinking) = (Vec::new(), Vec::new(), Vec::new());
    let (mut own, mut extra) = (Vec::new(), None);
    for (_, piece) in pieces {
        match piece {
            Piece::Text(raw) => texts.push(raw),
            Piece::Thinking(raw) => thinking.push(raw),
            Piece::Own(block) => {
                add_own(&block, &mut own);
                extra = block.get(reasoning::CALL_MEMBER).or(extra);
            }
            Piece::Call(call) => calls.push(ChatCall { extra: extra.take(), ..call }),
            Piece::Part(_) | Piece::Result(_) => {}
        }
    }
    let texts: Vec<&str> = texts.iter().map(Cow::as_ref).collect();
    let text = (!texts.is_empty()).then(|| joined(&texts));
    let thinking: Vec<&str> = thinking.iter().map(Cow::as_ref).collect();
    let thinking = (!thinking.is_empty()).then(|| joined(&thinking));
    let is_empty = text.is_none() && thinking.is_none() && calls.is_empty();
    (!is_empty).then_some(ChatTurn::Assistant { thinking, own, text, calls })
}

/// Adds the members of a block of reasoning. Text of the same member is joined.
fn add_own<'m>(block: &Object<'m>, own: &mut Vec<(&'static str, Cow<'m, str>)>) {
    for name in REASONING {
        let Some(value) = block.get(name) else { continue };
        match own.iter_mut().find(|(known, _)| *known == name) {
            None => own.push((name, Cow::Borrowed(value))),
            Some((_, known)) if known.starts_with('"') && value.starts_with('"') => {
                *known = Cow::Owned(joined(&[known.as_ref(), value]));
            }
            Some(_) => {}
        }
    }
}

fn call<'m>(object: &Object<'m>) -> Option<ChatCall<'m>> {
    let (name, input) = (object.get("name")?, object.get("input")?);
    Some(ChatCall { id: object.string("id")?, name, input, extra: None })
}

fn user<'m>(pieces: Vec<(usize, Piece<'m>)>, turns: &mut Vec<ChatTurn<'m>>) {
    let (mut moved, mut own) = (Vec::new(), Vec::new());
    for (_, piece) in pieces {
        match piece {
            Piece::Result(result) => turns.push(text_result(result, &mut moved)),
            Piece::Part(part) => own.push(part.without_file()),
            _ => {}
        }
    }
    moved.append(&mut own);
    match turns.last_mut() {
        // The assistant message before this one was dropped. Chat templates require alternating roles, so the two user
        // messages are merged.
        Some(ChatTurn::User(before)) => before.append(&mut moved),
        _ if moved.is_empty() => {}
        _ => turns.push(ChatTurn::User(moved)),
    }
}

/// Converts a tool result to text. Its images go to `moved`, and `[image]` replaces each in the text.
fn text_result<'m>(result: ToolResult<'m>, moved: &mut Vec<UserPart<'m>>) -> ChatTurn<'m> {
    let ToolResult { id, name, parts, is_error } = result;
    let mut texts = Vec::new();
    for part in parts {
        match part.without_file() {
            UserPart::Text(text) => texts.push(text),
            image => {
                texts.push("\"[image]\"");
                moved.push(image);
            }
        }
    }
    ChatTurn::Result { id, name, text: failed_or(joined(&texts), is_error) }
}

/// Marks the text of a result, a JSON string, if the tool failed.
pub(super) fn failed_or(text: String, is_error: bool) -> String {
    match is_error {
        true => format!("\"{FAILED}{}\"", inner(&text)),
        false => text,
    }
}

fn result<'m>(object: &Object<'m>, names: &Names<'m>) -> Option<ToolResult<'m>> {
    let id = object.string("tool_use_id")?;
    let content = object.get("content").unwrap_or("\"\"");
    let mut all = Vec::new();
    if content.starts_with('"') {
        all.push(UserPart::Text(content));
    }
    for raw in elements(content).unwrap_or_default() {
        all.extend(Object::parse(raw).iter().flat_map(parts));
    }
    let is_error = object.is_true("is_error");
    Some(ToolResult { name: names.get(&id).copied(), id, parts: all, is_error })
}

/// Returns the parts of a block. Those of a search result are its title, its source and its text blocks.
fn parts<'m>(object: &Object<'m>) -> Vec<UserPart<'m>> {
    if object.string("type").as_deref() != Some("search_result") {
        return part(object).into_iter().collect();
    }
    let found = ["title", "source"].into_iter().filter_map(|name| object.get(name));
    let texts = elements(object.get("content").unwrap_or("[]")).unwrap_or_default();
    let texts = texts.into_iter().filter_map(|raw| Object::parse(raw).ok()?.get("text"));
    found.chain(texts).filter_map(not_blank).map(UserPart::Text).collect()
}

/// Converts a text, image or document block. If its content cannot be sent, a placeholder takes its place.
fn part<'m>(object: &Object<'m>) -> Option<UserPart<'m>> {
    let kind = object.string("type")?;
    if kind == "text" {
        return object.get("text").and_then(not_blank).map(UserPart::Text);
    }
    let placeholder = match kind.as_ref() {
        "image" => UserPart::Text("\"[image]\""),
        "document" => UserPart::Text("\"[document]\""),
        _ => return None,
    };
    let Some(Ok(source)) = object.get("source").map(Object::parse) else {
        return Some(placeholder);
    };
    let string = |name: &str| source.get(name).filter(|raw| raw.starts_with('"'));
    let sent = match (kind.as_ref(), source.string("type").as_deref()) {
        ("image", Some("base64")) => string("media_type")
            .zip(string("data"))
            .map(|(media_type, data)| UserPart::Image { media_type, data }),
        ("image", Some("url")) => string("url").map(UserPart::Link),
        ("document", Some("text")) => string("data").map(UserPart::Text),
        ("document", Some("base64")) => {
            string("media_type").zip(string("data")).map(|(media_type, data)| {
                let title = object.get("title").filter(|raw| raw.starts_with('"'));
                UserPart::File { media_type, data, title }
            })
        }
        ("document", Some("url")) => string("url").map(UserPart::FileLink),
        _ => None,
    };
    Some(sent.unwrap_or(placeholder))
}

/// Returns the text unless it is blank, because providers reject blank text.
fn not_blank(raw: &str) -> Option<&str> {
    (!is_blank(raw)).then_some(raw)
}

/// Returns the blocks that are objects, each with its index.
fn objects<'m>(content: &'m Content<'_>) -> impl Iterator<Item = (usize, Object<'m>)> {
    let blocks = content.blocks().iter().enumerate();
    blocks.filter_map(|(index, block)| Some((index, Object::parse(block.raw.as_ref()).ok()?)))
}

/// Joins JSON strings with line feeds, without changing their bytes.
pub(super) fn joined(texts: &[&str]) -> String {
    let inners: Vec<&str> = texts.iter().map(|text| inner(text)).collect();
    format!("\"{}\"", inners.join("\\n"))
}

/// Returns the text between the quotes of a JSON string.
pub(super) fn inner(raw: &str) -> &str {
    raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or_default()
}

/// Shortens a tool call's id to `length` characters, because other providers generate longer ids. A long id keeps its
/// beginning, followed by a digest of all of it, so that ids stay distinct.
pub(super) fn short_id(id: &str, length: usize) -> Cow<'_, str> {
    const DIGEST_LENGTH: usize = 16;
    if id.chars().count() <= length {
        return Cow::Borrowed(id);
    }
    let begin: String = id.chars().take(length - DIGEST_LENGTH).collect();
    Cow::Owned(begin + &digest(id))
}

/// Returns the URL of bytes in base64, as a JSON string. All are JSON strings.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!(r#""data:{};base64,{}""#, inner(media_type), inner(data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    /// Returns the debug output of each turn of these lines.
    fn printed(lines: &str) -> Vec<String> {
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        turns(&messages, Thoughts::None).iter().map(|turn| format!("{turn:?}")).collect()
    }

    #[test]
    fn results_come_first_then_their_images_then_the_users_text() {
        let lines = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1e2}},{"type":"tool_use","id":"b","name":"g","input":{}}]}
{"role":"user","content":[{"type":"text","text":"now \u00e9"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}},{"type":"text","text":"2"}]},{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"c"}]}"#;
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        let result = |id: &'static str, name, text: &str| ChatTurn::Result {
            id: Cow::Borrowed(id),
            name,
            text: text.to_owned(),
        };
        let image = UserPart::Image { media_type: "\"image/png\"", data: "\"eA==\"" };
        assert_eq!(
            turns(&messages, Thoughts::None)[1..],
            [
                result("a", Some("\"f\""), r#""1\n[image]\n2""#),
                result("b", Some("\"g\""), r#""ERROR: no""#),
                result("c", None, "\"\""),
                ChatTurn::User(vec![image, UserPart::Text(r#""now \u00e9""#)]),
            ]
        );
    }

    #[test]
    fn a_summary_by_the_server_is_text_for_other_providers() {
        let line = r#"{"role":"assistant","content":[{"type":"compaction","content":"so far","encrypted_content":"x"},{"type":"compaction","content":null}]}"#;
        let turns = printed(line);
        assert_eq!(turns.len(), 1);
        assert!(turns[0].contains("so far") && !turns[0].contains("encrypted"), "{turns:?}");
    }

    #[test]
    fn what_the_tools_of_a_provider_did_is_text_for_others() {
        let line = r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"text","text":"a\u00e9","citations":[{"type":"web_search_result_location","url":"https://x.example","title":"X","cited_text":"c"}]},{"type":"reasoning","container":{"id":"c"}},{"type":"reasoning","item":{"type":"program_output","result":"3"}}]}"#;
        let text = concat!(
            r#""[web search: q]\na\u00e9\n[sources]\n1. X <https://x.example>"#,
            r#"\n   \"c\"\n[result of program]\n  3""#
        );
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let text = Some(text.to_owned());
        let expected = [ChatTurn::Assistant { thinking: None, own: vec![], text, calls: vec![] }];
        for thoughts in [Thoughts::None, Thoughts::All, Thoughts::Of(&Author::default())] {
            assert_eq!(turns(&messages, thoughts), expected);
        }
    }

    #[test]
    fn texts_are_joined_without_changing_their_bytes() {
        let line = r#"{"role":"assistant","content":[{"type":"text","text":"a\u00e9\/"},{"type":"text","text":" "},{"type":"text","text":"\"b"}]}"#;
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let text = Some(r#""a\u00e9\/\n\"b""#.to_owned());
        assert_eq!(
            turns(&messages, Thoughts::None),
            [ChatTurn::Assistant { thinking: None, own: vec![], text, calls: vec![] }]
        );
    }

    #[test]
    fn a_message_that_becomes_empty_is_dropped() {
        for content in [
            r#"[{"type":"thinking","thinking":"hm","signature":"s"}]"#,
            r#"[{"type":"redacted_thinking","data":"x"},{"type":"new_kind"}]"#,
            r#"[{"type":"text","text":"\n"}]"#,
            r#""""#,
            "[]",
        ] {
            for role in ["user", "assistant"] {
                let line = format!(r#"{{"role":"{role}","content":{content}}}"#);
                assert_eq!(printed(&line), [""; 0], "{line}");
            }
        }
    }

    #[test]
    fn content_that_cannot_be_sent_leaves_a_placeholder() {
        let with = |source: &str| {
            let line = format!(r#"{{"role":"user","content":[{{"type":{source}}}]}}"#);
            let messages = messages::read("t", line.as_bytes()).unwrap();
            format!("{:?}", turns(&messages, Thoughts::None))
        };
        for (block, word) in [
            (r#""image","source":{"type":"file","file_id":"x"}"#, "[image]"),
            (r#""image","source":{"type":"base64","data":5}"#, "[image]"),
            (r#""image""#, "[image]"),
            (r#""image","source":{"type":"url","url":"http://x"}"#, "http://x"),
            (
                r#""document","source":{"type":"base64","media_type":"application/pdf","data":""}"#,
                "[document]",
            ),
            (r#""document","source":{"type":"text","data":"words"}"#, "words"),
            (
                r#""search_result","title":"T","source":"http://s","content":[{"type":"text","text":"found"}]"#,
                "found",
            ),
        ] {
            assert!(with(block).contains(word), "{block}");
        }
    }

    #[test]
    fn tools_become_functions_and_functions_stay_unchanged() {
        let ours = r#"[{"name":"f","description":"d \u00e9","input_schema":{"type": "object"},"cache_control":{}},{"type":"custom","name":"g","input_schema":{}}]"#;
        let theirs = r#"[{"type":"function","function":{"name":"f","description":"d \u00e9","parameters":{"type": "object","properties":{}}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]"#;
        assert_eq!(tools(ours).as_deref(), Some(theirs));
        assert_eq!(tools(theirs).as_deref(), Some(theirs));
        let other = r#"[{"type":"web_search_20250305","name":"web_search"}]"#;
        assert_eq!(tools(other).as_deref(), Some(other));
        assert_eq!(tools("[]"), None);
    }
}
