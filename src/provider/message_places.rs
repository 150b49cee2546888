//! Maps the places that a refusal names, in the body that was sent, back to the messages that the caller has.
//!
//! Each protocol counts in its own way: chat completions have a message for the system prompt and one for each tool
//! result, and images of a result move to the message after it. A place that cannot be mapped is left out: then the place
//! is unknown.

use crate::fault::Fault;
use crate::provider::protocol::Protocol;
use crate::provider::reasoning::is_sent;
use crate::provider::refusal::Certainty;
use crate::provider::refusal::place::{Place, PlaceList, WirePlace};
use crate::provider::turns::Thoughts;
use crate::provider::turns::origin::{TurnOrigin, origins};
use crate::provider::{Failure, ModelRequest, gemini, responses};
use crate::record::content::BlockKind;

/// The number of characters of a tool call's id that every protocol keeps.
const ID_BEGIN: usize = 24;
/// The shortest id, in bytes, that is searched for in a message.
const SHORTEST_ID: usize = 5;
/// The maximum number of places.
const MAX_PLACES: usize = 64;

/// Returns a failure of `request` with the places in its messages at which it points: those that it names, else the tool
/// calls whose ids it names. If it names places and none can be mapped, it is only likely that a block is to blame.
#[must_use]
pub fn located(protocol: Protocol, request: &ModelRequest<'_, '_>, failure: Failure) -> Failure {
    if failure.fault != Fault::Block {
        return failure;
    }
    let wire = &failure.wire_places;
    let mut places = mapped(protocol, request, wire);
    let is_lost = places.is_empty() && !wire.is_empty();
    if places.is_empty() {
        places = named_calls(request, &failure.message);
    }
    let certainty = if is_lost { Certainty::Likely } else { failure.certainty };
    Failure { places: places.into(), certainty, ..failure }
}

/// Returns the places in the messages of those in the body that can be mapped, each once.
fn mapped(protocol: Protocol, request: &ModelRequest<'_, '_>, wire: &[WirePlace]) -> Vec<Place> {
    let origins = Origins::of(protocol, request);
    let mut places: Vec<Place> = Vec::new();
    for found in wire.iter().filter_map(|place| origins.find(request, place)) {
        if !places.contains(&found) {
            places.push(found);
        }
    }
    places
}

/// The origins of what a body consists of, in the messages of the caller.
enum Origins {
    /// The body has the caller's messages.
    Messages,
    /// Messages of chat completions.
    Turns(Vec<TurnOrigin>),
    /// Items of the Responses API, each with its parts.
    Items(Vec<(Place, Vec<Place>)>),
    /// The parts of each of Gemini's contents.
    Contents(Vec<Vec<Place>>),
}

impl Origins {
    fn of(protocol: Protocol, request: &ModelRequest<'_, '_>) -> Origins {
        let thoughts = request.author.map_or(Thoughts::None, Thoughts::Of);
        match protocol {
            Protocol::Anthropic | Protocol::AnthropicOnVertex | Protocol::AnthropicOnBedrock => {
                Origins::Messages
            }
            Protocol::Chat | Protocol::Ollama => Origins::Turns(origins(request.messages)),
            Protocol::Responses => Origins::Items(responses::origins(request.messages, thoughts)),
            Protocol::Gemini | Protocol::GeminiOnVertex => {
                Origins::Contents(gemini::origins(request.messages, thoughts))
            }
        }
    }

    /// Returns the place in the messages. A list of another protocol is counted as the caller's messages: gateways convert a
    /// request to the provider's form, which is theirs.
    fn find(&self, request: &ModelRequest<'_, '_>, place: &WirePlace) -> Option<Place> {
        match (self, place.list) {
            (Origins::Turns(turns), PlaceList::ChatMessages) => {
                let system = usize::from(request.system.is_some());
                of_turn(turns.get(place.item.checked_sub(system)?)?, place)
            }
            (Origins::Items(items), PlaceList::Input) => {
                let (whole, parts) = items.get(place.item)?;
                let part = place.part.and_then(|part| parts.get(part));
                Some(part.unwrap_or(whole).clone())
            }
            (Origins::Contents(contents), PlaceList::Contents) => {
                contents.get(place.item)?.get(place.part.unwrap_or_default()).cloned()
            }
            (_, PlaceList::Messages | PlaceList::ChatMessages | PlaceList::Contents) => {
                of_message(request, place)
            }
            (_, PlaceList::Input | PlaceList::Tools) => None,
        }
    }
}

/// Maps a place in a message of chat completions.
fn of_turn(turn: &TurnOrigin, place: &WirePlace) -> Option<Place> {
    match (turn, place.part) {
        (TurnOrigin::Result(origin), _) => Some(origin.clone()),
        (TurnOrigin::Assistant(_, calls), Some(part)) if place.is_call => calls.get(part).cloned(),
        (TurnOrigin::Assistant(origin, _), _) => Some(origin.clone()),
        (TurnOrigin::User(parts), Some(part)) => parts.get(part).cloned(),
        (TurnOrigin::User(parts), None) => match &parts[..] {
            [only] => Some(only.clone()),
            parts => Some(Place { message: parts.last()?.message, ..Place::default() }),
        },
    }
}

/// Maps a place whose index counts as the caller's messages do.
fn of_message(request: &ModelRequest<'_, '_>, place: &WirePlace) -> Option<Place> {
    let message = request.messages.get(place.item)?;
    let blocks = message.content.blocks();
    // A string as content is one block.
    let mut sent = (0..blocks.len().max(1)).filter(|at| blocks.get(*at).is_none_or(is_sent));
    let block = place.part.and_then(|part| sent.nth(part));
    let tool_use_id = block.and_then(|block| blocks.get(block)).and_then(|block| id(&block.kind));
    let part = block.and(place.inner);
    Some(Place { message: place.item, block, part, tool_use_id: tool_use_id.map(str::to_owned) })
}

/// Returns the calls and results whose ids a message names.
fn named_calls(request: &ModelRequest<'_, '_>, text: &str) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, message) in request.messages.iter().enumerate() {
        for (block, it) in message.content.blocks().iter().enumerate() {
            let Some(id) = id(&it.kind).filter(|id| id.len() >= SHORTEST_ID) else { continue };
            let begin: String = id.chars().take(ID_BEGIN).collect();
            if text.contains(&begin) && places.len() < MAX_PLACES {
                let tool_use_id = Some(id.to_owned());
                places.push(Place { message: number, block: Some(block), part: None, tool_use_id });
            }
        }
    }
    places
}

/// Returns the id of a tool call or of the call that a result answers.
fn id(kind: &BlockKind) -> Option<&str> {
    match kind {
        BlockKind::ToolUse { id, .. } => Some(id),
        BlockKind::ToolResult { id, .. } => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::provider::refusal::Rows;

    const LINES: &str = r#"{"role":"user","content":"go"}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"toolu_01","name":"f","input":{}},{"type":"tool_use","id":"toolu_02","name":"g","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"tool_result","tool_use_id":"toolu_02","content":"x"},{"type":"text","text":"see"},{"type":"image","source":{"type":"url","url":"http://x"}}]}
{"role":"assistant","content":"done"}
{"role":"user","content":[{"type":"text","text":"more"}]}"#;

    fn located(protocol: Protocol, system: Option<&str>, error: &str) -> Failure {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let request = ModelRequest { system, ..ModelRequest::plain(&messages, 9) };
        let body = format!(r#"{{"error":{error}}}"#);
        let failure = Failure::classify(400, &|_| None, body.as_bytes(), 0.0, &Rows::default());
        super::located(protocol, &request, failure)
    }

    /// Returns the places of a refusal of these messages, as `message.block.part`, with the id of a call.
    fn found(protocol: Protocol, system: Option<&str>, error: &str) -> Vec<String> {
        let number = |it: Option<usize>| it.map_or(String::new(), |it| format!(".{it}"));
        let show = |it: &Place| {
            let id = it.tool_use_id.as_ref().map_or(String::new(), |id| format!(" {id}"));
            format!("{}{}{}{id}", it.message, number(it.block), number(it.part))
        };
        located(protocol, system, error).places.iter().map(show).collect()
    }

    #[test]
    fn places_of_the_messages_api_count_as_our_messages_do() {
        for (text, expected) in [
            ("messages.1.content.0: `thinking` blocks cannot be modified", "1.0"),
            ("messages.2.content.0.tool_result.content.1.image: x", "2.0.1 toolu_01"),
            ("messages.2.content.0.content.1.image.source: x", "2.0.1 toolu_01"),
            ("messages.2.content.3: image exceeds 5 MB maximum", "2.3"),
            ("messages.0.content: x", "0"),
            ("messages.3.content.0.text: x", "3.0"),
            ("messages.2: `tool_use` ids were found", "2"),
        ] {
            let error = format!(r#"{{"message":"{text}"}}"#);
            assert_eq!(found(Protocol::Anthropic, None, &error), [expected], "{text}");
            assert_eq!(found(Protocol::Chat, Some("s"), &error), [expected], "{text}");
        }
        let details = r#"{"type":"invalid_request_error","message":"The image dimensions are too large","details":{"error_code":"image_dimensions_too_large","max_side_length_pixels":2000,"paths":["messages.2.content.3","messages.2.content.0.content.1"]}}"#;
        assert_eq!(found(Protocol::Anthropic, None, details), ["2.3", "2.0.1 toolu_01"]);
        let beyond = r#"{"message":"messages.9.content.0: x"}"#;
        assert_eq!(found(Protocol::Anthropic, None, beyond), [""; 0]);
        let of_tool = r#"{"message":"tools.0.custom.name: x"}"#;
        assert_eq!(found(Protocol::Anthropic, None, of_tool), [""; 0]);
    }

    #[test]
    fn places_of_chat_completions_are_mapped_back() {
        // The system prompt, "go", the calls, two results, and a user message with the image of the first result.
        for (text, expected) in [
            ("Invalid 'messages[1].content'", "0.0"),
            ("Invalid 'messages[2].tool_calls[1].function.name'", "1.2 toolu_02"),
            ("Invalid 'messages[2].content'", "1"),
            ("Invalid 'messages[4].content'", "2.1 toolu_02"),
            ("Invalid 'messages[5].content[0].image_url'", "2.0.1"),
            ("Invalid 'messages[5].content[2].image_url'", "2.3"),
            ("Invalid 'messages[6].content'", "3.0"),
            ("Invalid 'messages[7]'", "4.0"),
        ] {
            let error = format!(r#"{{"message":"{text}"}}"#);
            assert_eq!(found(Protocol::Chat, Some("s"), &error), [expected], "{text}");
            let error = r#"{"message":"no","param":"messages[0].content"}"#;
            assert_eq!(found(Protocol::Ollama, Some("s"), error), [""; 0]);
            assert_eq!(found(Protocol::Ollama, None, error), ["0.0"]);
        }
    }

    #[test]
    fn a_call_is_found_by_its_id() {
        let error = r#"{"message":"No tool output found for tool call toolu_02."}"#;
        assert_eq!(found(Protocol::Chat, None, error), ["1.2 toolu_02", "2.1 toolu_02"]);
        assert_eq!(found(Protocol::Chat, None, r#"{"message":"invalid tool call"}"#), [""; 0]);
    }

    #[test]
    fn a_place_that_cannot_be_mapped_makes_a_block_likely_and_calls_are_found_by_id() {
        use Certainty::{Certain, Likely};
        let image = "image exceeds 5 MB maximum";
        for (protocol, text, certainty, expected) in [
            (Protocol::Chat, "Invalid 'messages[0].content'", Certain, &["0.0"][..]),
            (Protocol::Chat, "Invalid 'messages[99].content'", Likely, &[]),
            (Protocol::Chat, "Invalid 'input[7].content'", Likely, &[]),
            (
                Protocol::Chat,
                "Invalid 'input[7].output' of toolu_02",
                Likely,
                &["1.2 toolu_02", "2.1 toolu_02"],
            ),
            (Protocol::Responses, "Invalid 'input[99].content'", Likely, &[]),
            (Protocol::Anthropic, "messages.9.content.0: x", Likely, &[]),
            (
                Protocol::Anthropic,
                "messages.9.content.0 and messages.3.content.0: x",
                Certain,
                &["3.0"],
            ),
            (Protocol::Gemini, "contents[99].parts[0]: x", Likely, &[]),
        ] {
            let error = format!(r#"{{"message":"{text}"}}"#);
            assert_eq!(located(protocol, None, &error).certainty, certainty, "{text}");
            assert_eq!(found(protocol, None, &error), expected, "{text}");
        }
        // A code alone names no place: what it says is certain.
        let code = format!(r#"{{"message":"{image}","code":"image_too_large"}}"#);
        assert_eq!(located(Protocol::Chat, None, &code).certainty, Certain);
        let lost =
            format!(r#"{{"message":"{image}","code":"image_too_large","param":"input[7]"}}"#);
        assert_eq!(located(Protocol::Chat, None, &lost).certainty, Likely);
    }
}
