//! Where the messages of chat completions come from: for each message that [`super::turns`] makes, the message and the
//! blocks of which it is made. A refusal names places in the body, and this maps them back.

use super::{not_blank, objects, parts};
use crate::hosted;
use crate::json::{Object, elements};
use crate::messages::Message;
use crate::provider::refusal::place::Place;
use crate::record::content::{Content, Role};

/// The origin of a message of chat completions.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::provider) enum TurnOrigin {
    /// A user message: the origin of each part.
    User(Vec<Place>),
    /// An assistant message: its place, and the place of each call.
    Assistant(Place, Vec<Place>),
    /// The result of one call.
    Result(Place),
}

/// Returns the origin of each message that [`super::turns`] makes of `messages`, in the same order.
pub(in crate::provider) fn origins(messages: &[Message<'_>]) -> Vec<TurnOrigin> {
    let mut all = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        match message.role {
            Role::User => user(number, &message.content, &mut all),
            Role::Assistant => all.extend(assistant(number, &message.content)),
        }
    }
    all
}

fn at(message: usize, block: usize) -> Place {
    Place { message, block: Some(block), ..Place::default() }
}

fn user(message: usize, content: &Content<'_>, all: &mut Vec<TurnOrigin>) {
    let (mut moved, mut own) = (Vec::new(), Vec::new());
    if let Content::Text(raw) = content {
        own.extend(not_blank(raw).map(|_| at(message, 0)));
    }
    for (block, object) in objects(content) {
        let place = at(message, block);
        match object.string("tool_use_id") {
            Some(id) if object.string("type").as_deref() == Some("tool_result") => {
                moved.extend(moved_parts(&object, &place));
                all.push(TurnOrigin::Result(Place { tool_use_id: Some(id.into_owned()), ..place }));
            }
            _ => own.extend(parts(&object).iter().map(|_| place.clone())),
        }
    }
    moved.append(&mut own);
    match all.last_mut() {
        Some(TurnOrigin::User(before)) => before.append(&mut moved),
        _ if moved.is_empty() => {}
        _ => all.push(TurnOrigin::User(moved)),
    }
}

/// Returns the places of the images of a tool result, which become parts of the user message after it.
fn moved_parts(result: &Object<'_>, place: &Place) -> Vec<Place> {
    let content = elements(result.get("content").unwrap_or("[]")).unwrap_or_default();
    let objects = content.into_iter().enumerate().filter_map(|(part, raw)| {
        let object = Object::parse(raw).ok()?;
        let is_moved = |part: &super::UserPart<'_>| !matches!(part, super::UserPart::Text(_));
        parts(&object).iter().any(is_moved).then(|| Place { part: Some(part), ..place.clone() })
    });
    objects.collect()
}

fn assistant(message: usize, content: &Content<'_>) -> Option<TurnOrigin> {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    if let Content::Text(raw) = content {
        texts.extend(not_blank(raw).map(|_| 0));
    }
    for (block, object) in objects(content) {
        match object.string("type").as_deref() {
            Some("text") if object.get("text").and_then(not_blank).is_some() => texts.push(block),
            Some("tool_use") => calls.extend(super::call(&object).map(|call| Place {
                tool_use_id: Some(call.id.into_owned()),
                ..at(message, block)
            })),
            _ => texts.extend(hosted::text(&object).map(|_| block)),
        }
    }
    let block = match texts[..] {
        [only] => Some(only),
        _ => None,
    };
    let whole = Place { message, block, ..Place::default() };
    (!texts.is_empty() || !calls.is_empty()).then_some(TurnOrigin::Assistant(whole, calls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use crate::provider::turns::{ChatTurn, Thoughts, turns};

    const LINES: &str = r#"{"role":"user","content":"go"}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":" "},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"text","text":"t"},{"type":"tool_use","id":"b","name":"g","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},{"type":"tool_result","tool_use_id":"b","content":"x"},{"type":"text","text":"\n"},{"type":"search_result","title":"T","source":"S","content":[]},{"type":"image","source":{"type":"url","url":"http://x"}}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}
{"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"}}]}
{"role":"assistant","content":[{"type":"compaction","content":"so far"}]}
{"role":"assistant","content":"done"}"#;

    #[test]
    fn each_message_has_an_origin_with_as_many_parts() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let (turns, origins) = (turns(&messages, Thoughts::None), origins(&messages));
        assert_eq!(turns.len(), origins.len());
        for (turn, origin) in turns.iter().zip(&origins) {
            match (turn, origin) {
                (ChatTurn::User(parts), TurnOrigin::User(places)) => {
                    assert_eq!(parts.len(), places.len(), "{turn:?}");
                }
                (ChatTurn::Assistant { calls, .. }, TurnOrigin::Assistant(_, places)) => {
                    assert_eq!(calls.len(), places.len(), "{turn:?}");
                }
                (ChatTurn::Result { id, .. }, TurnOrigin::Result(place)) => {
                    assert_eq!(Some(id.as_ref()), place.tool_use_id.as_deref());
                }
                _ => panic!("{turn:?} {origin:?}"),
            }
        }
    }
}
