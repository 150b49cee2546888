//! The frames of Amazon's event streams, in which Bedrock's `InvokeModelWithResponseStream` sends the events of a streaming
//! answer. The frames of its `ConverseStream` have other payloads; they are errors.
//!
//! A frame begins with its length and has headers and a payload. That of an event is `{"bytes": "..."}`, where the bytes are the
//! event in base64; that of an exception has a message (`InvokeModelWithResponseStream` in Amazon's reference, and
//! `lib/bedrock/_stream_decoder.py` of anthropic 2.14.0).

use super::StreamEvent;
use crate::json::Object;
use crate::json::write::Members;
use aws_smithy_eventstream::frame::read_message_from;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The length of the number at the beginning of a frame.
const LENGTH: usize = 4;

/// The event that may come before all others, and says nothing.
const INITIAL: &str = "initial-response";
/// The longest name of an event that is shown, in characters.
const LONGEST_NAME: usize = 40;

/// Removes the first frame from `bytes` and returns its event; `None` if the frame is not whole yet. A frame that is damaged
/// is an error event, and ends the stream.
pub(super) fn next(bytes: &mut Vec<u8>) -> Option<StreamEvent> {
    let length = u32::from_be_bytes(*bytes.first_chunk::<LENGTH>()?) as usize;
    let frame = bytes.get(..length)?;
    let event = event(frame).unwrap_or_else(|| StreamEvent {
        name: String::new(),
        data: "a frame that is damaged".to_owned(),
    });
    // A frame without a length would come again and again.
    bytes.drain(..length.max(LENGTH));
    Some(event)
}

fn event(mut frame: &[u8]) -> Option<StreamEvent> {
    let message = read_message_from(&mut frame).ok()?;
    let header = |name: &str| {
        let header = message.headers().iter().find(|header| header.name().as_str() == name)?;
        header.value().as_string().ok().map(|value| value.as_str().to_owned())
    };
    let payload = std::str::from_utf8(message.payload()).ok()?;
    if let Some(kind) = header(":exception-type").or_else(|| header(":error-code")) {
        let object = Object::parse(payload).ok();
        let own = object.as_ref().and_then(|it| it.string("message"));
        let text = own.map(Into::into).or_else(|| header(":error-message")).unwrap_or_default();
        let error = |it: Members| it.string("type", &kind).string("message", &text);
        let data = Members::of_type("error").object("error", error).into_json();
        return Some(StreamEvent { name: "error".to_owned(), data });
    }
    let kind = header(":event-type").unwrap_or_default();
    let data = match Object::parse(payload).ok()?.string("bytes") {
        Some(text) => String::from_utf8(STANDARD.decode(&*text).ok()?).ok()?,
        None if kind == INITIAL => String::new(),
        None => format!("a frame with the event '{}', which is unknown", bounded(&kind)),
    };
    Some(StreamEvent { name: String::new(), data })
}

/// Returns the beginning of the name of an event.
fn bounded(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_another_operation_is_an_error_that_names_it() {
        // Each has the header `:event-type`, and JSON.
        for (frame, expected) in [
            // chunk: {"bytes":"e30="}
            ("AAAANAAAABQrWRVSCzpldmVudC10eXBlBwAFY2h1bmt7ImJ5dGVzIjoiZTMwPSJ9V24+QQ==", "{}"),
            // initial-response: {}
            ("AAAAMQAAAB90a0OqCzpldmVudC10eXBlBwAQaW5pdGlhbC1yZXNwb25zZXt9XQPltQ==", ""),
            // contentBlockDelta: {"delta":{"text":"a"}}
            (
                "AAAARgAAACCJ/1JICzpldmVudC10eXBlBwARY29udGVudEJsb2NrRGVsdGF7ImRlbHRhIjp7InRleHQiOiJhIn19UZKL+g==",
                "a frame with the event 'contentBlockDelta', which is unknown",
            ),
        ] {
            let mut bytes = STANDARD.decode(frame).unwrap();
            assert_eq!(next(&mut bytes).map(|event| event.data).as_deref(), Some(expected));
            assert!(bytes.is_empty());
        }
    }
}
