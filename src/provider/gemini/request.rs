//! Messages in the form of Gemini's API.
//!
//! Roles must alternate, so tool results and the user's text after them become parts of one message. A
//! `functionResponse` has the id of its call, and the text of the result as `output`.

use crate::json::write::Members;
use crate::provider::turns::{ChatTurn, UserPart};

/// Converts turns to the `contents` of a request, one JSON object per message.
#[must_use]
pub(in crate::provider) fn contents(turns: &[ChatTurn<'_>]) -> Vec<String> {
    let mut contents: Vec<(&str, Vec<String>)> = Vec::new();
    for turn in turns {
        let (role, parts) = match turn {
            ChatTurn::User(parts) => ("user", parts.iter().map(part).collect()),
            ChatTurn::Result { id, name, text } => ("user", vec![response(id, *name, text)]),
            ChatTurn::Assistant { thinking, text, calls, .. } => {
                let thought = |text: &String| {
                    Members::new().raw("text", text).bool("thought", true).into_json()
                };
                let calls = calls.iter().map(|call| {
                    let inner = |it: Members| {
                        it.string("id", &call.id).raw("name", call.name).raw("args", call.input)
                    };
                    Members::new().object("functionCall", inner).into_json()
                });
                let texts = text.iter().map(|text| text_part(text));
                ("model", thinking.iter().map(thought).chain(texts).chain(calls).collect())
            }
        };
        match contents.last_mut().filter(|(last, _)| *last == role) {
            Some((_, last)) => last.extend(parts),
            None => contents.push((role, parts)),
        }
    }
    let message = |(role, parts): (&str, Vec<String>)| {
        Members::new().string("role", role).list("parts", parts).into_json()
    };
    contents.into_iter().map(message).collect()
}

fn text_part(text: &str) -> String {
    Members::new().raw("text", text).into_json()
}

fn part(part: &UserPart<'_>) -> String {
    match part {
        UserPart::Text(text) => text_part(text),
        UserPart::Image { media_type, data } => Members::new()
            .object("inlineData", |it| it.raw("mimeType", media_type).raw("data", data))
            .into_json(),
        UserPart::Link(url) => {
            Members::new().object("fileData", |it| it.raw("fileUri", url)).into_json()
        }
    }
}

fn response(id: &str, name: Option<&str>, text: &str) -> String {
    let inner = |it: Members| {
        it.string("id", id)
            .raw("name", name.unwrap_or("\"unknown\""))
            .object("response", |it| it.raw("output", text))
    };
    Members::new().object("functionResponse", inner).into_json()
}
