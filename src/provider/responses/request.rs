//! Writes the body of a request, and messages as items.
//!
//! A message becomes one or several items, in the order of its blocks: tool results and calls are items of their own.
//! The member names are those of `types/responses/response_create_params.py` and `response_input_item_param.py` in openai
//! 3.57.0.

use crate::json::write::{self, Members};
use crate::json::{Object, elements, quote};
use crate::messages::Message;
use crate::provider::ModelRequest;
use crate::provider::protocol::Protocol;
use crate::provider::refusal::place::Place;
use crate::provider::responses::reply::{CUSTOM, CUSTOM_INPUT};
use crate::provider::turns::{
    self, ChatCall, Function, Names, Piece, Thoughts, ToolResult, UserPart,
};
use crate::record::content::Role;
use std::borrow::Cow;
use std::collections::HashMap;

/// The smallest output limit that OpenAI takes: `Invalid 'max_output_tokens': integer below minimum value. Expected a value
/// >= 16` (public reports, 2025).
const MIN_OUTPUT: u64 = 16;
/// The maximum length of a tool call's id, in characters (`call_id` in `response_input_item_param.py`, where
/// `FunctionCallOutput` names 64 as the limit of the id).
const ID_LENGTH: usize = 64;

/// Returns the body of a request. The same request always gives the same bytes. `store` is false, so that the server keeps
/// nothing, and `truncation` is disabled, so that it drops nothing.
pub(super) fn body(request: &ModelRequest<'_, '_>) -> String {
    let tools = request.tools.and_then(tools);
    let thoughts = request.author.map_or(Thoughts::None, Thoughts::Of);
    let mut body = Members::new()
        .string("model", request.model)
        .number("max_output_tokens", request.max_tokens.max(MIN_OUTPUT))
        .flag("stream", request.stream)
        .bool("store", false)
        .string("truncation", "disabled");
    if let Some(cache) = request.wanted_cache() {
        body = cache.add_to(body, request.model, Protocol::Responses);
    }
    if reasons(request.model) {
        body = body.list("include", [quote("reasoning.encrypted_content")]);
    }
    if let Some(effort) = request.level(false) {
        body = body.object("reasoning", |it| it.string("effort", effort.name()));
    }
    body.optional(Members::decimal, "temperature", request.temperature)
        .optional(Members::string, "instructions", request.system)
        .optional(Members::raw, "tools", tools.as_deref())
        .list("input", items(request.messages, thoughts))
        .into_json()
}

/// Returns true for the models of OpenAI that reason, judging by the name. The others refuse to be asked for encrypted
/// reasoning: `Encrypted content is not supported with this model` (public reports, 2025).
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.trim_start_matches("ft:");
    let version = |line: &str| -> Option<u32> {
        let rest = name.strip_prefix(line)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let is_recent = version("o").is_some() || version("gpt-").is_some_and(|n| (5..30).contains(&n));
    is_recent && !name.contains("-chat")
}

/// The calls whose results differ from those of others, by their ids.
type SpecialCalls = HashMap<String, SpecialCall>;

/// What the result of a call repeats.
#[derive(Default)]
struct SpecialCall {
    /// The caller, as JSON.
    caller: Option<String>,
    /// True for a call of a custom tool.
    is_custom: bool,
}

/// An item, and the places of what it is made of.
struct Item {
    json: String,
    place: Place,
    parts: Vec<Place>,
}

/// Returns messages as items, one JSON object each.
pub(in crate::provider) fn items(messages: &[Message<'_>], thoughts: Thoughts<'_>) -> Vec<String> {
    all_items(messages, thoughts).into_iter().map(|item| item.json).collect()
}

/// Returns the place of each item, and of each part of its content, in the messages.
pub(in crate::provider) fn origins(
    messages: &[Message<'_>],
    thoughts: Thoughts<'_>,
) -> Vec<(Place, Vec<Place>)> {
    let items = all_items(messages, thoughts).into_iter();
    items.map(|item| (item.place, item.parts)).collect()
}

fn all_items(messages: &[Message<'_>], thoughts: Thoughts<'_>) -> Vec<Item> {
    let (mut names, mut calls, mut items) = (Names::new(), SpecialCalls::new(), Vec::new());
    for (number, message) in messages.iter().enumerate() {
        let pieces = turns::pieces(message, &mut names, thoughts);
        match message.role {
            Role::User => user(number, pieces, &calls, &mut items),
            Role::Assistant => assistant(number, pieces, &mut calls, &mut items),
        }
    }
    items
}

fn at(message: usize, block: usize) -> Place {
    Place { message, block: Some(block), ..Place::default() }
}

/// Adds the results of a user message, and a message with the rest.
fn user(
    message: usize,
    pieces: Vec<(usize, Piece<'_>)>,
    calls: &SpecialCalls,
    items: &mut Vec<Item>,
) {
    let (mut parts, mut places) = (Vec::new(), Vec::new());
    for (block, piece) in pieces {
        match piece {
            Piece::Result(result) => {
                let place =
                    Place { tool_use_id: Some(result.id.to_string()), ..at(message, block) };
                let parts =
                    (0..result.parts.len()).map(|part| Place { part: Some(part), ..place.clone() });
                let parts = parts.collect();
                let call = calls.get(&*result.id);
                items.push(Item { json: output(result, call), place, parts });
            }
            Piece::Part(part) => {
                parts.push(part);
                places.push(at(message, block));
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        return;
    }
    let json = Members::of_type("message").string("role", "user").raw("content", &content(&parts));
    let block = if let [only] = &places[..] { only.block } else { None };
    let place = Place { message, block, ..Place::default() };
    items.push(Item { json: json.into_json(), place, parts: places });
}

/// Adds the items of an assistant message. Reasoning without an item after it is left out, because OpenAI refuses it:
/// `Item 'rs_...' of type 'reasoning' was provided without its required following item` (public reports, 2025 and 2026).
fn assistant(
    message: usize,
    pieces: Vec<(usize, Piece<'_>)>,
    calls: &mut SpecialCalls,
    items: &mut Vec<Item>,
) {
    let (mut reasoning, mut phase, mut members) = (Vec::new(), None, None);
    // The last text, with its block and its item.
    let mut said: Option<(usize, usize, Said<'_>)> = None;
    for (block, piece) in pieces {
        let item = |json: String| Item { json, place: at(message, block), parts: Vec::new() };
        match piece {
            Piece::Own(own) => {
                let sent = own.get("item").and_then(|raw| Object::parse(raw).ok());
                let kind = sent.as_ref().and_then(|sent| sent.string("type"));
                match (sent, kind.as_deref()) {
                    (Some(sent), Some("reasoning")) => reasoning.push(item(sent.text().to_owned())),
                    (Some(sent), Some(_)) => {
                        items.append(&mut reasoning);
                        items.push(item(sent.text().to_owned()));
                    }
                    (None, _) if own.get("annotations").is_some() => {
                        let last = said.take().filter(|(at, ..)| at + 1 == block);
                        if let Some((_, at, said)) = last {
                            items[at].json = said.with_annotations(&own);
                        }
                    }
                    _ => {
                        phase = own.get("phase").or(phase);
                        members = own.get("call").and_then(|raw| Object::parse(raw).ok());
                    }
                }
            }
            Piece::Text(text) => {
                items.append(&mut reasoning);
                let own = Said { text, phase: phase.take() };
                items.push(item(own.json(&own.text, Members::of_type("message"))));
                said = Some((block, items.len() - 1, own));
            }
            Piece::Call(call) => {
                items.append(&mut reasoning);
                let id = Some(call.id.to_string());
                let own = members.take();
                if let Some(own) = &own {
                    let caller = own.get("caller").map(str::to_owned);
                    calls.insert(
                        call.id.to_string(),
                        SpecialCall { caller, is_custom: is_custom(own) },
                    );
                }
                let sent = item(function_call(&call, own.as_ref()));
                items.push(Item { place: Place { tool_use_id: id, ..sent.place }, ..sent });
            }
            Piece::Thinking(_) | Piece::Part(_) | Piece::Result(_) => {}
        }
    }
}

/// A text of the model, as a JSON string, with the phase of the answer.
struct Said<'m> {
    text: Cow<'m, str>,
    phase: Option<&'m str>,
}

impl Said<'_> {
    fn json(&self, content: &str, message: Members) -> String {
        message
            .string("role", "assistant")
            .raw("content", content)
            .optional(Members::raw, "phase", self.phase)
            .into_json()
    }

    /// Returns the message in the form of the answer, which has an id and can have the annotations in `own`.
    fn with_annotations(&self, own: &Object<'_>) -> String {
        let (Some(annotations), Some(id)) = (own.get("annotations"), own.get("id")) else {
            return self.json(&self.text, Members::of_type("message"));
        };
        let part = Members::of_type("output_text").raw("text", &self.text);
        let content = write::list([part.raw("annotations", annotations).into_json()]);
        self.json(&content, Members::of_type("message").raw("id", id).string("status", "completed"))
    }
}

/// Returns true for the members of a call of a custom tool.
fn is_custom(own: &Object<'_>) -> bool {
    own.string("type").as_deref() == Some(CUSTOM)
}

/// Returns a call with the members of `own`.
fn function_call(call: &ChatCall<'_>, own: Option<&Object<'_>>) -> String {
    let input = Object::parse(call.input).ok();
    let text = input.as_ref().and_then(|input| input.get(CUSTOM_INPUT));
    let text = text.filter(|raw| raw.starts_with('"') && own.is_some_and(is_custom));
    let json = Members::of_type(text.map_or("function_call", |_| CUSTOM))
        .string("call_id", &turns::short_id(&call.id, ID_LENGTH))
        .raw("name", call.name);
    let json = match text {
        Some(text) => json.raw("input", text),
        None => json.string("arguments", call.input),
    };
    let members = own.into_iter().flat_map(Object::members).filter(|it| it.name() != "type");
    members.fold(json, Members::member).into_json()
}

/// Returns the result of a call. A result of text alone is a string.
fn output(result: ToolResult<'_>, call: Option<&SpecialCall>) -> String {
    let ToolResult { id, parts, is_error, .. } = result;
    let output = match texts(&parts) {
        Some(text) => turns::failed_or(text, is_error),
        None => {
            let failed = is_error.then(|| part(&UserPart::Text(turns::FAILED_TEXT)));
            write::list(failed.into_iter().chain(parts.iter().map(part)))
        }
    };
    let is_custom = call.is_some_and(|call| call.is_custom);
    let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
    Members::of_type(kind)
        .string("call_id", &turns::short_id(&id, ID_LENGTH))
        .raw("output", &output)
        .optional(Members::raw, "caller", call.and_then(|call| call.caller.as_deref()))
        .into_json()
}

/// Returns the content of a user message: a string if there is only text.
fn content(parts: &[UserPart<'_>]) -> String {
    texts(parts).unwrap_or_else(|| write::list(parts.iter().map(part)))
}

/// Returns parts that are all text, joined.
fn texts(parts: &[UserPart<'_>]) -> Option<String> {
    let texts = parts.iter().map(|part| match part {
        UserPart::Text(raw) => Some(*raw),
        _ => None,
    });
    texts.collect::<Option<Vec<&str>>>().map(|texts| turns::joined(&texts))
}

fn part(part: &UserPart<'_>) -> String {
    let image = |url: &str| {
        Members::of_type("input_image").string("detail", "auto").raw("image_url", url).into_json()
    };
    match part {
        UserPart::Text(raw) => Members::of_type("input_text").raw("text", raw).into_json(),
        UserPart::Link(url) => image(url),
        UserPart::Image { media_type, data } => image(&turns::data_url(media_type, data)),
        UserPart::FileLink(url) => Members::of_type("input_file").raw("file_url", url).into_json(),
        UserPart::File { media_type, data, title } => Members::of_type("input_file")
            .raw("filename", title.unwrap_or("\"document.pdf\""))
            .raw("file_data", &turns::data_url(media_type, data))
            .into_json(),
    }
}

/// Converts a list of tools, a JSON array. Returns `None` for an empty list. Tools of another type, such as the server's own,
/// and custom tools stay unchanged. `strict` is false: without it, OpenAI demands schemas of a special form.
fn tools(raw: &str) -> Option<String> {
    let Some(tools) = elements(raw) else { return Some(raw.to_owned()) };
    let tool = |raw: &str| match Function::of_any(raw).filter(|function| !function.is_custom) {
        Some(function) => {
            let tool = function.add_to(Members::of_type("function"));
            let tool = match function.parameters {
                Some(_) => tool,
                None => tool
                    .object("parameters", |it| it.string("type", "object").raw("properties", "{}")),
            };
            tool.bool("strict", false).into_json()
        }
        None => raw.to_owned(),
    };
    let tools: Vec<String> = tools.into_iter().map(tool).collect();
    (!tools.is_empty()).then(|| write::list(tools))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::provider::effort::Effort;
    use crate::provider::reasoning::Author;
    use crate::provider::responses::reply;

    const LINES: &str = r#"{"role":"user","content":"look \u00e9"}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"reasoning","item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}},{"type":"reasoning","phase":"commentary"},{"type":"text","text":"I look"},{"type":"tool_use","id":"a","name":"f","input":{"x": 1e2}},{"type":"reasoning","item":{"type":"web_search_call","id":"ws_1","status":"completed"}},{"type":"tool_use","id":"b","name":"g","input":{}},{"type":"reasoning","item":{"type":"reasoning","id":"rs_2","summary":[]}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true},{"type":"text","text":"and?"},{"type":"document","title":"t","source":{"type":"base64","media_type":"application/pdf","data":"eA=="}}]}"#;

    fn sent(model: &str, change: impl FnOnce(&mut ModelRequest<'_, '_>)) -> String {
        let author = Author::new("responses", "https://x", model);
        let signed = author.sign(r#"{"type":"reasoning"}"#.to_owned());
        let begin = signed.strip_suffix('}').unwrap();
        let lines = LINES.replace(r#"{"type":"reasoning","item""#, &format!(r#"{begin},"item""#));
        let lines = lines.replace(r#"{"type":"reasoning","phase""#, &format!(r#"{begin},"phase""#));
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        let mut request =
            ModelRequest { model, author: Some(&author), ..ModelRequest::plain(&messages, 99) };
        change(&mut request);
        body(&request)
    }

    #[test]
    fn a_request_has_items_in_the_order_of_the_blocks() {
        let body = sent("gpt-6", |request| {
            request.system = Some("be brief");
            request.stream = true;
            request.effort = Some(Effort::High);
            request.tools = Some(
                r#"[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"function","function":{"name":"g"}},{"type":"web_search"}]"#,
            );
        });
        let expected = concat!(
            r#"{"model":"gpt-6","max_output_tokens":99,"stream":true,"store":false,"truncation":"disabled","#,
            r#""include":["reasoning.encrypted_content"],"reasoning":{"effort":"high"},"instructions":"be brief","tools":["#,
            r#"{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{}},"strict":false},"#,
            r#"{"type":"function","name":"g","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],"input":["#,
            r#"{"type":"message","role":"user","content":"look \u00e9"},"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},"#,
            r#"{"type":"message","role":"assistant","content":"I look","phase":"commentary"},"#,
            r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\": 1e2}"},"#,
            r#"{"type":"web_search_call","id":"ws_1","status":"completed"},"#,
            r#"{"type":"function_call","call_id":"b","name":"g","arguments":"{}"},"#,
            r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"1"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,eA=="}]},"#,
            r#"{"type":"function_call_output","call_id":"b","output":"ERROR: no"},"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"},{"type":"input_file","filename":"t","file_data":"data:application/pdf;base64,eA=="}]}]}"#
        );
        assert_eq!(body, expected);
    }

    #[test]
    fn a_call_goes_back_with_its_namespace_and_its_result_with_its_caller() {
        let lines = r#"{"role":"assistant","content":[{"type":"reasoning","api":"responses","server":"S","model":"m","call":{"namespace":"crm","caller":{"type":"direct"}}},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]}"#;
        let author = Author::new("responses", "https://x", "m");
        let signed = author.sign(r#"{"type":"reasoning"}"#.to_owned());
        let signed = Object::parse(&signed).unwrap();
        let lines = lines.replace("\"S\"", signed.get("server").unwrap());
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        assert_eq!(
            items(&messages, Thoughts::Of(&author)),
            [
                r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}","namespace":"crm","caller":{"type":"direct"}}"#,
                r#"{"type":"function_call","call_id":"b","name":"g","arguments":"{}"}"#,
                r#"{"type":"function_call_output","call_id":"a","output":"1","caller":{"type":"direct"}}"#,
                r#"{"type":"function_call_output","call_id":"b","output":"2"}"#,
            ]
        );
        let others = items(&messages, Thoughts::None).concat();
        assert!(!others.contains("crm") && !others.contains("direct"), "{others}");
    }

    #[test]
    fn items_of_a_server_go_to_no_other() {
        let body = sent("gpt-6", |request| request.author = None);
        assert!(!body.contains("rs_1") && !body.contains("ws_1"), "{body}");
        assert!(!body.contains("commentary"), "{body}");
    }

    #[test]
    fn only_models_that_reason_are_asked_for_encrypted_reasoning() {
        for (model, expected) in [
            ("gpt-5.4", true),
            ("openai/o4-mini", true),
            ("gpt-6-astra", true),
            ("gpt-5-chat-latest", false),
            ("gpt-4.1", false),
            ("gpt-oss-120b", false),
            ("qwen3", false),
        ] {
            assert_eq!(sent(model, |_| {}).contains("encrypted_content\"]"), expected, "{model}");
        }
        assert!(sent("m", |request| request.max_tokens = 1).contains("\"max_output_tokens\":16,"));
    }

    #[test]
    fn what_a_text_cites_goes_back_with_it() {
        let message = r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"So.","annotations":[{"type":"url_citation","title":"A","url":"https://a.example","start_index":0,"end_index":2}]}]}"#;
        let response = format!(r#"{{"status":"completed","output":[{message}]}}"#);
        let reply = reply::read(&Object::parse(&response).unwrap()).unwrap();
        let author = Author::new("responses", "https://x", "m");
        let blocks: Vec<String> = reply.blocks.into_iter().map(|it| author.sign(it)).collect();
        let line = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
        let messages = messages::read("t", line.as_bytes()).unwrap();
        assert_eq!(items(&messages, Thoughts::Of(&author)), [message]);
        let [text, sources] = &items(&messages, Thoughts::None)[..] else { panic!("two items") };
        assert!(text.contains(r#""content":"So.""#), "{text}");
        assert!(sources.contains(r"[sources]\n1. A <https://a.example>"), "{sources}");
    }

    #[test]
    fn a_custom_tool_gets_its_calls_and_results_back_in_their_own_form() {
        let author = Author::new("responses", "https://x", "m");
        let own = r#"{"type":"reasoning","call":{"type":"custom_tool_call","namespace":"db"}}"#;
        let lines = format!(
            "{}\n{}",
            format_args!(
                r#"{{"role":"assistant","content":[{},{{"type":"tool_use","id":"a","name":"sql","input":{{"input":"select \u00e9"}}}}]}}"#,
                author.sign(own.to_owned())
            ),
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}"#
        );
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        let own = [
            r#"{"type":"custom_tool_call","call_id":"a","name":"sql","input":"select \u00e9","namespace":"db"}"#,
            r#"{"type":"custom_tool_call_output","call_id":"a","output":"1"}"#,
        ];
        assert_eq!(items(&messages, Thoughts::Of(&author)), own);
        let others = [
            r#"{"type":"function_call","call_id":"a","name":"sql","arguments":"{\"input\":\"select \\u00e9\"}"}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"1"}"#,
        ];
        assert_eq!(items(&messages, Thoughts::None), others);
        let tool = r#"[{"type":"custom","name":"sql","format":{"type":"text"}}]"#;
        assert_eq!(tools(tool).as_deref(), Some(tool));
        let function = r#"[{"type":"function","function":{"name":"sql","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}]"#;
        assert_eq!(turns::tools(tool).as_deref(), Some(function));
    }

    #[test]
    fn each_item_has_a_place() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let shown = |place: &Place| (place.message, place.block, place.part);
        let origins = origins(&messages, Thoughts::None);
        let whole: Vec<_> = origins.iter().map(|(place, _)| shown(place)).collect();
        assert_eq!(
            whole,
            [
                (0, Some(0), None),
                (1, Some(3), None),
                (1, Some(4), None),
                (1, Some(5), None),
                (1, Some(6), None),
                (2, Some(0), None),
                (2, Some(1), None),
                (2, None, None)
            ]
        );
        let ids: Vec<_> = origins.iter().map(|(place, _)| place.tool_use_id.as_deref()).collect();
        let (a, b) = (Some("a"), Some("b"));
        assert_eq!(ids, [None, None, a, None, b, a, b, None]);
        assert_eq!(shown(&origins[5].1[1]), (2, Some(0), Some(1)));
        assert_eq!(shown(&origins[7].1[1]), (2, Some(3), None));
    }
}
