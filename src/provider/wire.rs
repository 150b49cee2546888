//! Maps the places that a refusal names, in the body that was sent, back to the messages that the caller has.
//!
//! Each protocol counts in its own way: chat completions have a message for the system prompt and one for each tool
//! result, and images of a result move to the message after it. A place that cannot be mapped is left out: then the place
//! is unknown.

use crate::provider::chat::origin::{TurnOrigin, origins};
use crate::provider::protocol::Protocol;
use crate::provider::refusal::Fault;
use crate::provider::refusal::place::{Place, PlaceList, WirePlace};
use crate::provider::{Failure, ModelRequest};
use crate::record::content::BlockKind;

/// The number of characters of a tool call's id that every protocol keeps.
const ID_BEGIN: usize = 24;
/// The shortest id, in bytes, that is searched for in a message.
const SHORTEST_ID: usize = 5;
/// The maximum number of places.
const MAX_PLACES: usize = 64;

/// Returns the places in the messages of `request` at which a refusal points: those that it names, else the tool calls
/// whose ids it names.
#[must_use]
pub fn places(protocol: Protocol, request: &ModelRequest<'_, '_>, failure: &Failure) -> Vec<Place> {
    if failure.fault != Fault::Block {
        return Vec::new();
    }
    let wire = &failure.wire_places;
    let mut places: Vec<Place> = Vec::new();
    let is_chat = |place: &WirePlace| place.list == PlaceList::ChatMessages;
    let turns = match protocol {
        Protocol::OpenAi | Protocol::Ollama if wire.iter().any(is_chat) => {
            origins(request.messages)
        }
        _ => Vec::new(),
    };
    let system = usize::from(request.system.is_some());
    for place in wire {
        let found = match (protocol, place.list) {
            (Protocol::OpenAi | Protocol::Ollama, PlaceList::ChatMessages) => {
                let turn = place.item.checked_sub(system).and_then(|at| turns.get(at));
                turn.and_then(|turn| of_turn(turn, place))
            }
            // Gateways convert a request to the provider's form, which is that of our messages.
            (_, PlaceList::Messages | PlaceList::ChatMessages | PlaceList::Contents) => {
                of_message(request, place)
            }
            (_, PlaceList::Input | PlaceList::Tools) => None,
        };
        places.extend(found.filter(|found| !places.contains(found)));
    }
    if wire.is_empty() {
        places = named_calls(request, &failure.message);
    }
    places
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
    let count = blocks.len().max(1);
    let block = place.part.filter(|part| *part < count);
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
fn id<'b>(kind: &'b BlockKind) -> Option<&'b str> {
    match kind {
        BlockKind::ToolUse { id, .. } => Some(id),
        BlockKind::ToolResult { id, .. } => Some(id),
        _ => None,
    }
}
