//! Finds the place in the request at which a refusal points: `messages.7.content.52`, `messages[3].content[0]`,
//! `input[12]`, `contents[4].parts[1]`, `tools[2]`.
//!
//! A place counts as the provider counts, in the body that was sent. [`crate::provider::message_places`] maps it to the messages
//! that the caller has.

use crate::json::write::Members;
use regex::{Regex, RegexBuilder};
use std::fmt;
use std::sync::OnceLock;

/// The maximum number of places that are reported.
const MAX_PLACES: usize = 64;

/// The list of the request in which a place lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceList {
    /// `messages` of the Messages API, in its notation with points. Gateways that convert a request use it too.
    Messages,
    /// `messages` of chat completions, in the notation with brackets.
    ChatMessages,
    /// `input` of the Responses API.
    Input,
    /// `contents` of Gemini.
    Contents,
    /// `tools` of any protocol.
    Tools,
}

/// A place in the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WirePlace {
    /// The list.
    pub list: PlaceList,
    /// The index in the list.
    pub item: usize,
    /// The index in the item's `content`, `parts` or `tool_calls`.
    pub part: Option<usize>,
    /// True if `part` counts `tool_calls`.
    pub is_call: bool,
    /// The index in the content of that part.
    pub inner: Option<usize>,
    /// True if the refusal is about the id of the call or the result there. A block that is left out keeps it.
    pub is_call_id: bool,
}

/// A place in the messages that the caller has. All indices begin with 0. [`crate::estimate::RefusedPlace`] reads it from the
/// `error` record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The index of the message.
    pub message: usize,
    /// The index of the block in the message; `None` for the whole message.
    pub block: Option<usize>,
    /// The index in the content of a tool result; `None` for the whole block.
    pub part: Option<usize>,
    /// The id of the tool call, if the place is a call or its result.
    pub tool_use_id: Option<String>,
}

impl Place {
    /// Returns the place as an object of the member `places`.
    pub(super) fn to_json(&self) -> String {
        Members::new()
            .number("message", self.message)
            .optional(Members::number, "block", self.block)
            .optional(Members::number, "part", self.part)
            .optional(Members::string, "tool_use_id", self.tool_use_id.as_deref())
            .into_json()
    }
}

impl fmt::Display for Place {
    /// Writes the place as a person counts, from 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}", self.message + 1)?;
        let parts = [("block", self.block), ("part", self.part)];
        for (name, index) in parts.into_iter().filter_map(|(name, index)| Some((name, index?))) {
            write!(f, " {name} {}", index + 1)?;
        }
        Ok(())
    }
}

/// Returns true if one of the places is in a message, and something there can be left out.
pub(super) fn is_in_messages(places: &[WirePlace]) -> bool {
    places.iter().any(|place| place.list != PlaceList::Tools && !place.is_call_id)
}

/// A place in the text of an error. Points and brackets are accepted in each other's place.
const PLACE: &str = r"(?x)\b(messages|input|contents|tools)(?:\[([0-9]{1,6})\]|\.([0-9]{1,6})\b)
    (?:(?:\.(?:message|function_call_output|functionresponse))?\.(content|parts|tool_calls|output)(?:\[([0-9]{1,6})\]|\.([0-9]{1,6})\b)
        (?:(?:\.[a-z_]+)?\.content(?:\[([0-9]{1,6})\]|\.([0-9]{1,6})\b))?)?
    (?:(?:\.(?:tool_use|tool_result|function_?call(?:_output)?|function_?response))?\.(id|call_id|tool_call_id|tool_use_id)\b)?";

/// Returns the places in `text`, in its order and without duplicates.
pub(super) fn all(text: &str) -> Vec<WirePlace> {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    let build = || RegexBuilder::new(PLACE).case_insensitive(true).build().ok();
    let Some(regex) = REGEX.get_or_init(build) else { return Vec::new() };
    let mut places: Vec<WirePlace> = Vec::new();
    for found in regex.captures_iter(text) {
        let index = |brackets: usize, point: usize| -> Option<usize> {
            found.get(brackets).or_else(|| found.get(point))?.as_str().parse().ok()
        };
        let Some(item) = index(2, 3) else { continue };
        let list = match found[1].to_ascii_lowercase().as_str() {
            "messages" if found.get(2).is_some() => PlaceList::ChatMessages,
            "messages" => PlaceList::Messages,
            "input" => PlaceList::Input,
            "contents" => PlaceList::Contents,
            _ => PlaceList::Tools,
        };
        let is_call =
            found.get(4).is_some_and(|name| name.as_str().eq_ignore_ascii_case("tool_calls"));
        let part = index(5, 6);
        // The id of a whole item or message is not that of a call.
        let is_call_id = found
            .get(9)
            .is_some_and(|name| part.is_some() || !name.as_str().eq_ignore_ascii_case("id"));
        let place = WirePlace { list, item, part, is_call, inner: index(7, 8), is_call_id };
        if !places.contains(&place) && places.len() < MAX_PLACES {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let number = |it: Option<usize>| it.map_or(String::new(), |it| format!(" {it}"));
        let all = all(text);
        let show = |it: &WirePlace| {
            let call = if it.is_call { " call" } else { "" };
            let id = if it.is_call_id { " id" } else { "" };
            format!("{:?} {}{call}{}{}{id}", it.list, it.item, number(it.part), number(it.inner))
        };
        all.iter().map(show).collect()
    }

    #[test]
    fn places_of_every_protocol_are_found() {
        for (text, expected) in [
            ("messages.7.content.52: `thinking` blocks cannot be modified", "Messages 7 52"),
            (
                "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum",
                "Messages 3 0",
            ),
            ("messages.0.content.1.content.0", "Messages 0 1 0"),
            ("messages.2.content.1.tool_result.content.3.image: x", "Messages 2 1 3"),
            ("messages.125: `tool_use` ids were found", "Messages 125"),
            ("Invalid 'messages[3].content[0].image_url'", "ChatMessages 3 0"),
            ("messages[5].tool_calls[1].function.name", "ChatMessages 5 call 1"),
            ("Invalid 'input[12].content': x", "Input 12"),
            ("input[2].content[1].image_url", "Input 2 1"),
            ("GenerateContentRequest.contents[4].parts[1].inline_data: x", "Contents 4 1"),
            ("Invalid 'tools[2].function.name'", "Tools 2"),
            ("tools.0.custom.name: x", "Tools 0"),
            ("Invalid 'input[7].call_id': string too long", "Input 7 id"),
            ("Invalid 'messages[2].tool_calls[0].id'", "ChatMessages 2 call 0 id"),
            ("Invalid 'messages[3].tool_call_id'", "ChatMessages 3 id"),
            ("messages.1.content.2.tool_use.id: String should match", "Messages 1 2 id"),
            ("messages.2.content.0.tool_result.tool_use_id: x", "Messages 2 0 id"),
            ("contents[3].parts[0].function_response.id: x", "Contents 3 0 id"),
            // These ids go with their items and blocks.
            ("Invalid 'input[3].id'", "Input 3"),
            ("messages.1.content.2.server_tool_use.id: x", "Messages 1 2"),
            ("messages.0.content.1.source.file_id: x", "Messages 0 1"),
        ] {
            assert_eq!(shown(text), [expected], "{text}");
        }
        assert_eq!(shown("messages.1 and messages.2.content.0 and messages.1").len(), 2);
        assert_eq!(shown("context messages 7, messages.count, mymessages.3"), [""; 0]);
        let many: String = (0..100).map(|item| format!("messages.{item} ")).collect();
        assert_eq!(shown(&many).len(), MAX_PLACES);
    }
}
