//! The container in which Anthropic's servers run code. It keeps files from one request to the next, if the next one names it.
//!
//! A reply states its id and when it expires (`container.py` in anthropic 2.14.0). A record keeps both in a block of the type
//! `reasoning`, before the content of the reply.

use crate::hosted::CONTAINER;
use crate::json::write::Members;
use crate::json::{Object, on_one_line};
use crate::messages::Message;
use crate::provider::reasoning::Author;
use jiff::Timestamp;

/// The time before it expires, in seconds, in which a container is not used any more: the request takes a while to arrive.
const MARGIN: f64 = 10.0;

/// Returns the container in an answer or an event, as JSON.
pub(super) fn of_answer(answer: &Object<'_>) -> Option<String> {
    answer.get(CONTAINER).filter(|raw| raw.starts_with('{')).map(on_one_line)
}

/// Returns the block that keeps a container.
pub(super) fn block(container: &str) -> String {
    Members::of_type("reasoning").raw(CONTAINER, container).into_json()
}

/// Returns the id of a container, a JSON string.
pub(super) fn id(container: &str) -> Option<String> {
    let object = Object::parse(container).ok()?;
    object.get("id").filter(|raw| raw.starts_with('"')).map(str::to_owned)
}

/// Returns the id, a JSON string, of the newest container that the author's server named; `None` if it expires before `now`, a
/// time in Unix seconds.
#[must_use]
pub fn newest(messages: &[Message<'_>], author: &Author, now: f64) -> Option<String> {
    let blocks = messages.iter().rev().flat_map(|message| message.content.blocks().iter().rev());
    let mut containers = blocks.filter(|block| block.is_of_author()).filter_map(|block| {
        let object = Object::parse(&block.raw).ok()?;
        object.get(CONTAINER).filter(|_| author.is_at_server(&object)).map(str::to_owned)
    });
    containers.next().filter(|container| is_usable(container, now)).and_then(|it| id(&it))
}

/// Returns true if a container does not expire before `now`, or does not say when.
fn is_usable(container: &str, now: f64) -> bool {
    let end = Object::parse(container).ok().and_then(|it| it.string("expires_at")?.parse().ok());
    end.is_none_or(|end: Timestamp| end.as_second() as f64 > now + MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn the_newest_container_of_the_server_is_used_until_it_expires() {
        let author = |url, model| Author::new("anthropic", url, model);
        let own = author("https://a.example", "m");
        let line = |author: &Author, id: &str, minute: u32| {
            let json = format!(r#"{{"id":"{id}","expires_at":"2026-11-28T10:{minute}:00Z"}}"#);
            let block = author.sign(block(&json));
            format!(r#"{{"role":"assistant","content":[{block},{{"type":"text","text":"a"}}]}}"#)
        };
        let lines = [
            line(&own, "c_1", 50),
            line(&own, "c_2", 30),
            line(&author("https://b.example", "m"), "c_3", 59),
        ]
        .join("\n");
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        let time = |text: &str| text.parse::<Timestamp>().unwrap().as_second() as f64;
        let other_model = author("https://a.example", "n");
        for (author, now, expected) in [
            (&own, "2026-11-28T10:29:00Z", Some("\"c_2\"")),
            (&other_model, "2026-11-28T10:29:00Z", Some("\"c_2\"")),
            (&own, "2026-11-28T10:29:55Z", None),
            (&own, "2026-11-28T10:31:00Z", None),
            (&author("https://c.example", "m"), "2026-11-28T10:29:00Z", None),
        ] {
            assert_eq!(newest(&messages, author, time(now)).as_deref(), expected, "{now}");
        }
    }
}
