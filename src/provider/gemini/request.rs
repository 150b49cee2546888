//! Writes the body of a request, and messages as contents.
//!
//! Roles must alternate, so tool results and the user's text after them become parts of one message. The member names are those
//! of `types.py` in google-genai 3.6.1.

use crate::json::write::{self, Members};
use crate::json::{Object, elements};
use crate::messages::Message;
use crate::provider::ModelRequest;
use crate::provider::effort::Effort;
use crate::provider::refusal::place::Place;
use crate::provider::turns::{
    self, ChatCall, Function, Names, Piece, Thoughts, ToolResult, UserPart,
};
use crate::record::content::Role;

/// The signature for a call that another model made, in place of one by Gemini
/// (ai.google.dev/gemini-api/docs/thought-signatures, questions and answers, read in November 2026).
const NO_SIGNATURE: &str = "\"skip_thought_signature_validator\"";

/// Returns the body of a request. The same request always gives the same bytes. The model and streaming are in the URL.
pub(super) fn body(request: &ModelRequest<'_, '_>) -> String {
    let tools = request.tools.and_then(tools);
    let thoughts = request.author.map_or(Thoughts::None, Thoughts::Of);
    let body = match request.system {
        Some(text) => Members::new().object("systemInstruction", |it| {
            it.list("parts", [Members::new().string("text", text).into_json()])
        }),
        None => Members::new(),
    };
    let config = |it: Members| {
        let config = it.number("maxOutputTokens", request.max_tokens).optional(
            Members::decimal,
            "temperature",
            request.temperature,
        );
        match (request.budget(), request.level(true)) {
            (None, None) => config,
            (budget, effort) => {
                config.object("thinkingConfig", |it| thinking(it, budget, effort, request.model))
            }
        }
    };
    let is_signed = has_signatures(request.model);
    body.optional(Members::raw, "tools", tools.as_deref())
        .object("generationConfig", config)
        .list(
            "contents",
            all_contents(request.messages, thoughts, is_signed).iter().map(Entry::json),
        )
        .into_json()
}

/// Returns true for models that refuse a call without a signature: from Gemini 3 on.
fn has_signatures(model: &str) -> bool {
    generation(model).is_some_and(|number| number >= 3)
}

/// Returns the first number in the name of a Gemini model.
fn generation(model: &str) -> Option<u32> {
    let name = model.rsplit('/').next()?.to_ascii_lowercase();
    let rest = name.strip_prefix("gemini-")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Adds how much the model thinks: a budget in tokens, or else a level from Gemini 3 on and the level's budget before that.
/// Gemini 3 takes a budget too, but not both (ai.google.dev/gemini-api/docs/thinking, read in November 2026).
fn thinking(config: Members, budget: Option<u64>, effort: Option<Effort>, model: &str) -> Members {
    let has_levels = generation(model).is_none_or(|number| number >= 3);
    match (budget, effort) {
        (None, Some(effort)) if has_levels => config.string("thinkingLevel", level(effort)),
        // Gemini 2.5 Pro cannot do without thinking: its smallest budget is 128.
        _ => {
            let least = if model.contains("pro") { 128 } else { 0 };
            let tokens = budget.or(effort.map(Effort::budget)).unwrap_or_default();
            config.number("thinkingBudget", tokens.max(least))
        }
    }
}

/// Returns the level of Gemini that has the effect of an effort.
fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal => "MINIMAL",
        Effort::Low => "LOW",
        Effort::Medium => "MEDIUM",
        Effort::High | Effort::Xhigh | Effort::Max => "HIGH",
    }
}

/// A message of a request.
struct Entry {
    role: &'static str,
    parts: Vec<String>,
    /// The place of each part in the messages.
    places: Vec<Place>,
}

impl Entry {
    fn json(&self) -> String {
        Members::new().string("role", self.role).list("parts", &self.parts).into_json()
    }
}

/// Returns messages as contents, one JSON object each.
pub(in crate::provider) fn contents(
    messages: &[Message<'_>],
    thoughts: Thoughts<'_>,
) -> Vec<String> {
    all_contents(messages, thoughts, false).iter().map(Entry::json).collect()
}

/// Returns the places in the messages of the parts of each of the contents.
pub(in crate::provider) fn origins(
    messages: &[Message<'_>],
    thoughts: Thoughts<'_>,
) -> Vec<Vec<Place>> {
    all_contents(messages, thoughts, false).into_iter().map(|entry| entry.places).collect()
}

fn all_contents(messages: &[Message<'_>], thoughts: Thoughts<'_>, is_signed: bool) -> Vec<Entry> {
    let (mut names, mut entries) = (Names::new(), Vec::<Entry>::new());
    for (number, message) in messages.iter().enumerate() {
        let pieces = turns::pieces(message, &mut names, thoughts);
        let (role, parts) = match message.role {
            Role::User => ("user", user(pieces)),
            Role::Assistant => ("model", model(pieces, is_signed)),
        };
        if parts.is_empty() {
            continue;
        }
        if entries.last().is_none_or(|last| last.role != role) {
            entries.push(Entry { role, parts: Vec::new(), places: Vec::new() });
        }
        if let Some(entry) = entries.last_mut() {
            for (block, id, part) in parts {
                let place =
                    Place { message: number, block: Some(block), part: None, tool_use_id: id };
                entry.places.push(place);
                entry.parts.push(part);
            }
        }
    }
    entries
}

/// A part with the index of its block and the id of its call.
type Part = (usize, Option<String>, String);

/// Returns the parts of a user message: the results, their images, then the user's own.
fn user(pieces: Vec<(usize, Piece<'_>)>) -> Vec<Part> {
    let (mut results, mut moved, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (block, piece) in pieces {
        match piece {
            Piece::Result(result) => {
                let id = Some(result.id.to_string());
                let media = result.parts.iter().filter(|part| !matches!(part, UserPart::Text(_)));
                moved.extend(media.map(|media| (block, id.clone(), part(media))));
                results.push((block, id, response(&result)));
            }
            Piece::Part(own_part) => own.push((block, None, part(&own_part))),
            _ => {}
        }
    }
    results.into_iter().chain(moved).chain(own).collect()
}

/// Returns the parts of an assistant message. A signature belongs to the part that it stands before. The first call of a
/// message needs one.
fn model(pieces: Vec<(usize, Piece<'_>)>, is_signed: bool) -> Vec<Part> {
    let (mut parts, mut signature) = (Vec::new(), None);
    let (mut is_first, mut is_thought) = (true, true);
    for (block, piece) in pieces {
        let (id, part) = match piece {
            Piece::Own(own) => match own.get("part") {
                Some(whole) => {
                    is_thought &= Object::parse(whole).is_ok_and(|it| it.is_true("thought"));
                    parts.push((block, None, whole.to_owned()));
                    continue;
                }
                None => {
                    signature = own.get("thoughtSignature").map(str::to_owned).or(signature);
                    continue;
                }
            },
            Piece::Thinking(text) => {
                (None, Members::new().raw("text", &text).bool("thought", true).into_json())
            }
            Piece::Text(text) => (None, signed(text_part(&text), signature.take())),
            Piece::Call(call) => {
                let missing = (is_signed && is_first).then(|| NO_SIGNATURE.to_owned());
                is_first = false;
                let part = signed(function_call(&call), signature.take().or(missing));
                (Some(call.id.to_string()), part)
            }
            Piece::Part(_) | Piece::Result(_) => continue,
        };
        parts.push((block, id, part));
        is_thought = false;
    }
    // Gemini's own thoughts alone are no message.
    if is_thought { Vec::new() } else { parts }
}

fn signed(part: String, signature: Option<String>) -> String {
    match (signature, Object::parse(&part)) {
        (Some(signature), Ok(object)) => object.with("thoughtSignature", &signature),
        _ => part,
    }
}

fn text_part(text: &str) -> String {
    Members::new().raw("text", text).into_json()
}

fn function_call(call: &ChatCall<'_>) -> String {
    let inner =
        |it: Members| it.string("id", &call.id).raw("name", call.name).raw("args", call.input);
    Members::new().object("functionCall", inner).into_json()
}

fn part(part: &UserPart<'_>) -> String {
    match part {
        UserPart::Text(text) => text_part(text),
        UserPart::Image { media_type, data } | UserPart::File { media_type, data, .. } => {
            Members::new()
                .object("inlineData", |it| it.raw("mimeType", media_type).raw("data", data))
                .into_json()
        }
        UserPart::Link(url) | UserPart::FileLink(url) => {
            Members::new().object("fileData", |it| it.raw("fileUri", url)).into_json()
        }
    }
}

/// Returns the response to a call: its text as `output`, or as `error`. A name in brackets stands for an image or a document,
/// which becomes a part of its own.
fn response(result: &ToolResult<'_>) -> String {
    let texts = result.parts.iter().map(|part| match part {
        UserPart::Text(raw) => raw,
        UserPart::Image { .. } | UserPart::Link(_) => "\"[image]\"",
        UserPart::File { .. } | UserPart::FileLink(_) => "\"[document]\"",
    });
    let texts: Vec<&str> = texts.collect();
    let member = if result.is_error { "error" } else { "output" };
    let inner = |it: Members| {
        it.string("id", &result.id)
            .raw("name", result.name.unwrap_or("\"unknown\""))
            .object("response", |it| it.named(member, &turns::joined(&texts)))
    };
    Members::new().object("functionResponse", inner).into_json()
}

/// Converts a list of tools, a JSON array. Tools of another form, such as Google's own, stay unchanged. Returns `None` for an
/// empty list.
fn tools(raw: &str) -> Option<String> {
    let Some(all) = elements(raw) else { return Some(raw.to_owned()) };
    let (mut functions, mut tools) = (Vec::new(), Vec::new());
    for tool in all {
        match Function::of_any(tool) {
            Some(Function { name, description, parameters, .. }) => functions.push(
                Members::new()
                    .raw("name", name)
                    .optional(Members::raw, "description", description)
                    .optional(Members::raw, "parametersJsonSchema", parameters.as_deref())
                    .into_json(),
            ),
            None => tools.push(tool.to_owned()),
        }
    }
    if !functions.is_empty() {
        tools.push(Members::new().list("functionDeclarations", functions).into_json());
    }
    (!tools.is_empty()).then(|| write::list(tools))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::provider::reasoning::Author;

    const LINES: &str = r#"{"role":"user","content":"look \u00e9"}
{"role":"assistant","content":[{"type":"reasoning","api":"gemini","server":"S","model":"gemini-3-x","part":{"text":"hm","thought":true}},{"type":"text","text":"I look"},{"type":"reasoning","api":"gemini","server":"S","model":"gemini-3-x","thoughtSignature":"c2ln"},{"type":"tool_use","id":"a","name":"f","input":{"x": 1e2}},{"type":"tool_use","id":"b","name":"g","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"tool_result","tool_use_id":"b","content":"no","is_error":true},{"type":"text","text":"and?"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"eA=="}}]}"#;

    fn sent(model: &str, change: impl FnOnce(&mut ModelRequest<'_, '_>)) -> String {
        let author = Author::new("gemini", "https://x", model);
        let block = author.sign(r#"{"type":"reasoning","thoughtSignature":"s"}"#.to_owned());
        let block = Object::parse(&block).unwrap();
        let lines = LINES.replace("\"S\"", block.get("server").unwrap());
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        let mut request =
            ModelRequest { model, author: Some(&author), ..ModelRequest::plain(&messages, 9) };
        change(&mut request);
        body(&request)
    }

    #[test]
    fn a_request_has_contents_tools_and_limits() {
        let body = sent("gemini-3-x", |request| {
            request.system = Some("be brief");
            request.tools = Some(
                r#"[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"function","function":{"name":"g"}},{"googleSearch":{}}]"#,
            );
            request.effort = Some(Effort::High);
            request.temperature = Some(0.5);
        });
        let expected = concat!(
            r#"{"systemInstruction":{"parts":[{"text":"be brief"}]},"tools":[{"googleSearch":{}},{"functionDeclarations":["#,
            r#"{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{}}},{"name":"g"}]}],"#,
            r#""generationConfig":{"maxOutputTokens":9,"temperature":0.5,"thinkingConfig":{"thinkingLevel":"HIGH"}},"contents":["#,
            r#"{"role":"user","parts":[{"text":"look \u00e9"}]},"#,
            r#"{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look"},{"functionCall":{"id":"a","name":"f","args":{"x": 1e2}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"b","name":"g","args":{}}}]},"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1\n[image]"}}},{"functionResponse":{"id":"b","name":"g","response":{"error":"no"}}},{"inlineData":{"mimeType":"image/png","data":"eA=="}},{"text":"and?"},{"inlineData":{"mimeType":"application/pdf","data":"eA=="}}]}]}"#
        );
        assert_eq!(body, expected);
    }

    #[test]
    fn the_first_call_of_another_model_gets_googles_placeholder_where_signatures_are_needed() {
        let placeholder = format!("\"thoughtSignature\":{NO_SIGNATURE}");
        for (model, count) in [("gemini-4-pro", 1), ("google/gemini-3-y", 1), ("gemini-2.5-pro", 0)]
        {
            let body = sent(model, |request| {
                // Another model wrote the reasoning.
                request.author = None;
            });
            assert_eq!(body.matches(&placeholder).count(), count, "{model}");
            assert!(!body.contains("hm") && !body.contains("c2ln"), "{body}");
        }
        assert!(!sent("gemini-3-x", |_| {}).contains(&placeholder));
    }

    #[test]
    fn the_effort_is_a_level_or_a_budget() {
        for (model, effort, expected) in [
            ("gemini-3.5-flash", Effort::None, r#""thinkingLevel":"MINIMAL""#),
            ("gemini-2.5-flash", Effort::None, r#""thinkingBudget":0"#),
            ("gemini-2.5-pro", Effort::None, r#""thinkingBudget":128"#),
            ("gemini-2.5-pro", Effort::Max, r#""thinkingBudget":24576"#),
            ("learnlm", Effort::Low, r#""thinkingLevel":"LOW""#),
        ] {
            let body = sent(model, |request| request.effort = Some(effort));
            assert!(body.contains(expected), "{model}: {body}");
        }
        for (model, budget) in [("gemini-2.5-flash", 2000), ("gemini-3-pro", 128)] {
            let body = sent(model, |request| {
                request.effort = Some(Effort::Low);
                request.thinking_budget = Some(budget);
            });
            let expected = format!(r#""thinkingConfig":{{"thinkingBudget":{budget}}}"#);
            assert!(body.contains(&expected), "{model}: {body}");
        }
    }

    #[test]
    fn each_part_has_a_place() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let origins = origins(&messages, Thoughts::None);
        let shown = |place: &Place| (place.message, place.block.unwrap());
        let shown: Vec<Vec<_>> = origins.iter().map(|it| it.iter().map(shown).collect()).collect();
        assert_eq!(
            shown,
            [
                vec![(0, 0)],
                vec![(1, 1), (1, 3), (1, 4)],
                vec![(2, 0), (2, 1), (2, 0), (2, 2), (2, 3)]
            ]
        );
    }
}
