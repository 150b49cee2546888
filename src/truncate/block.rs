//! The blocks that a refusal blames.
//!
//! If the refusal names a place, that block is to blame; for thinking, all thinking of its message. If that does not help, the
//! rest of the message is suspected, and thinking elsewhere if the words blame it. If the words name media, and there are none
//! at the place, the provider counts its messages differently, and the media near the place come first. Without a place, the
//! words of the refusal decide whether thinking or images are suspected.
//!
//! Suspects are tried in groups, and each refusal leads to the next group that is not left out yet: the oldest images if there
//! are too many; then what is new since the last reply, because the provider accepted the request before it, and media first.
//! Old results are suspected only if it is certain that a block is to blame. Nothing is suspected if the provider says that calls
//! and results do not fit together, because the line in place of a result still answers the call.

use super::TruncateOutcome;
use super::body::{SizedPart, media, parts, whole};
use super::leave_out::{BlockPlace, Omissions};
use crate::estimate::{Gauge, Refused, RefusedPlace, Request};
use crate::json::Object;
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Content, Role};

/// Words for thinking, in lower case.
const THINKING: [&str; 4] = ["thinking", "signature", "reasoning", "thought"];

/// Words for images and documents of which there can be too many, in lower case.
const MEDIA: [&str; 4] = ["images", "pages", "documents", "media"];
/// Words for too many, in lower case.
const TOO_MANY: [&str; 6] =
    ["too many", "maximum of", "at most", "up to ", "more than", "number of"];

/// Words for a single medium, in lower case.
const MEDIUM: [&str; 6] = ["image", "picture", "photo", "document", "pdf", "base64"];
/// The words of refusals of calls and results that do not fit together, in lower case: Anthropic's (public reports of 2025 and
/// 2026), OpenAI's for chat completions and for Responses, Gemini's (two) and Mistral's.
const PAIRS: [&str; 10] = [
    "without `tool_result` blocks",
    "unexpected `tool_use_id`",
    "must have a corresponding `tool_",
    "must be followed by tool messages",
    "must be a response to a prece",
    "no tool output found for",
    "no tool call found for",
    "number of function response parts",
    "function call turn comes immediately after",
    "number of function calls and responses",
];

/// Leaves out the first group of suspects that changes the request. `beside` is the rest of the request.
pub fn leave_out(
    messages: &mut [Message<'_>],
    beside: Request<'_, '_>,
    gauge: Gauge,
    refused: &Refused,
) -> TruncateOutcome {
    let mut tally = gauge.tally(Request { messages, ..beside });
    let (before, mut omissions) = (tally.tokens(), Omissions::default());
    let reason = match refused.message.trim() {
        "" => "the provider refused it".to_owned(),
        message => format!("the provider refused it: {message}"),
    };
    for group in groups(messages, refused) {
        omissions.leave_out(messages, &group, &reason, &mut tally);
        if omissions.count() > 0 {
            break;
        }
    }
    let (after, records) = (tally.tokens(), omissions.to_records(tally.scale()));
    TruncateOutcome { before, after, omissions, records, ..TruncateOutcome::default() }
}

/// Returns the groups of suspects, in the order in which they are tried.
fn groups(messages: &[Message<'_>], refused: &Refused) -> Vec<Vec<BlockPlace>> {
    let named: Vec<BlockPlace> =
        refused.places.iter().flat_map(|place| named(messages, *place)).collect();
    let called = refused.tool_use_id.as_deref().map(|id| of_call(messages, id));
    // The provider has accepted everything before the last reply.
    let new = messages.iter().rposition(|it| it.role == Role::Assistant).unwrap_or(0);
    let words = refused.message.to_lowercase();
    let thinking = [all(messages, new, thinking), all(messages, 0, thinking)];
    let media = [all(messages, new, media), all(messages, 0, media)];
    let blames_thinking = THINKING.iter().any(|word| words.contains(word));
    let suspected = match blames_thinking {
        true => thinking.into_iter().chain(media),
        false => media.into_iter().chain(thinking),
    };
    if PAIRS.iter().any(|pair| words.contains(pair)) {
        return Vec::new();
    }
    let mut groups = vec![too_many(messages, &words)];
    if MEDIUM.iter().any(|medium| words.contains(medium)) && !has_media(messages, &named) {
        groups.extend(media_near(messages, &refused.places));
    }
    groups.extend([named, called.unwrap_or_default()]);
    if !refused.places.is_empty() {
        // The rest of the messages that were named, and nothing else unless the words blame thinking.
        let around = |place: &RefusedPlace| named_message(messages, place.message);
        groups.push(refused.places.iter().flat_map(around).collect());
        groups.extend(suspected.filter(|_| blames_thinking));
        return groups;
    }
    groups.extend(suspected);
    groups.push(all(messages, 0, others));
    groups.push(all(messages, new, results));
    if !refused.is_likely {
        groups.push(all(messages, 0, results));
    }
    groups
}

/// Returns the oldest images and documents if a refusal says that there are too many: a quarter more than its limit demands, so
/// that the next turns are not refused. The number of pages of a document is not known here, so half of the documents go.
fn too_many(messages: &[Message<'_>], words: &str) -> Vec<BlockPlace> {
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    if !has(&MEDIA) || !has(&TOO_MANY) {
        return Vec::new();
    }
    let is_of_pages = words.contains("pages");
    let mut all = all(messages, 0, if is_of_pages { documents } else { media });
    let numbers = words.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    let limit = numbers.filter(|number| (1..all.len()).contains(number)).max();
    let kept = match limit {
        Some(limit) if !is_of_pages => limit * 3 / 4,
        _ => all.len() / 2,
    };
    all.truncate(all.len() - kept);
    all
}

/// Returns the blocks at a place that a refusal names. The text of the last prompt is never one of them, because without it
/// there is nothing to answer.
fn named(messages: &[Message<'_>], place: RefusedPlace) -> Vec<BlockPlace> {
    let Some(message) = messages.get(place.message) else { return Vec::new() };
    let at = |block, part| BlockPlace { message: place.message, block, part };
    let is_prompt = messages.iter().rposition(Message::is_from_user) == Some(place.message);
    match (place.block, &message.content) {
        (_, Content::Text(_)) if is_prompt => Vec::new(),
        (_, Content::Text(_)) => vec![at(0, None)],
        (Some(index), Content::Blocks(blocks)) => match blocks.get(index).map(|it| &it.kind) {
            None => Vec::new(),
            Some(BlockKind::Text) if is_prompt => Vec::new(),
            Some(BlockKind::Thinking { .. }) => in_message(message, place.message, thinking),
            Some(_) => vec![at(index, place.part)],
        },
        (None, Content::Blocks(_)) => named_message(messages, place.message),
    }
}

/// Returns true if one of the places is a medium or has one in it.
fn has_media(messages: &[Message<'_>], places: &[BlockPlace]) -> bool {
    let all = all(messages, 0, media);
    let is_in = |place: &BlockPlace, medium: &BlockPlace| {
        (place.message, place.block) == (medium.message, medium.block)
            && place.part.is_none_or(|part| medium.part == Some(part))
    };
    places.iter().any(|place| all.iter().any(|medium| is_in(place, medium)))
}

/// Returns the media of the messages at the places and beside them, then all media. Providers count messages of their own, which
/// may have been merged or split.
fn media_near(messages: &[Message<'_>], places: &[RefusedPlace]) -> Vec<Vec<BlockPlace>> {
    if places.is_empty() {
        return Vec::new();
    }
    let mut all = all(messages, 0, media);
    let is_near = |medium: &BlockPlace| {
        places.iter().any(|place| place.message.abs_diff(medium.message) <= 1)
    };
    let near = all.extract_if(.., |medium| is_near(medium)).collect();
    vec![near, all]
}

/// Returns the blocks to blame if a refusal names a whole message: its images and documents, or else its thinking, its results or
/// its calls.
fn named_message(messages: &[Message<'_>], number: usize) -> Vec<BlockPlace> {
    let Some(message) = messages.get(number) else { return Vec::new() };
    let finds: [Find; 5] = [media, thinking, others, results, calls];
    let groups = finds.map(|find| in_message(message, number, find));
    groups.into_iter().find(|group| !group.is_empty()).unwrap_or_default()
}

/// Returns the images in the result of a call; if there are none, the result; if there is none, the call.
fn of_call(messages: &[Message<'_>], id: &str) -> Vec<BlockPlace> {
    let (mut call, mut result) = (Vec::new(), Vec::new());
    for (number, message) in messages.iter().enumerate() {
        for (index, block) in message.blocks().enumerate() {
            let place = BlockPlace { message: number, block: index, part: None };
            match &block.kind {
                BlockKind::ToolUse { id: own, .. } if **own == *id => call = vec![place],
                BlockKind::ToolResult { id: own } if **own == *id => {
                    let parts =
                        media(block).into_iter().map(|(part, _)| BlockPlace { part, ..place });
                    result = parts.collect();
                    if result.is_empty() {
                        result.push(place);
                    }
                }
                _ => {}
            }
        }
    }
    if result.is_empty() { call } else { result }
}

/// Finds what is suspected in a block.
type Find = fn(&Block<'_>) -> Vec<SizedPart>;

fn all(messages: &[Message<'_>], from: usize, find: Find) -> Vec<BlockPlace> {
    let messages = messages.iter().enumerate().skip(from);
    messages.flat_map(|(number, message)| in_message(message, number, find)).collect()
}

fn in_message(message: &Message<'_>, number: usize, find: Find) -> Vec<BlockPlace> {
    let blocks = message.blocks().enumerate();
    let place = |index, part| BlockPlace { message: number, block: index, part };
    blocks.flat_map(|(at, it)| find(it).into_iter().map(move |(part, _)| place(at, part))).collect()
}

fn thinking(block: &Block<'_>) -> Vec<SizedPart> {
    whole(block, block.is_thinking())
}

fn documents(block: &Block<'_>) -> Vec<SizedPart> {
    let is_document = |it: &Block<'_>| {
        Object::parse(&it.raw).is_ok_and(|it| it.string("type").as_deref() == Some("document"))
    };
    parts(block, |it| it.kind == BlockKind::Media && is_document(it))
}

/// Finds blocks and items of a type that is not known here.
fn others(block: &Block<'_>) -> Vec<SizedPart> {
    parts(block, |it| it.kind == BlockKind::Other)
}

fn results(block: &Block<'_>) -> Vec<SizedPart> {
    whole(block, block.is_result())
}

fn calls(block: &Block<'_>) -> Vec<SizedPart> {
    whole(block, matches!(block.kind, BlockKind::ToolUse { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;
    use crate::messages;

    const IMAGE: &str = r#"{"type":"image","source":{"type":"url","url":"x"}}"#;
    const THOUGHT: &str = r#"{"type":"thinking","thinking":"a","signature":"b"}"#;

    fn conversation() -> String {
        [
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"Begin."}},{IMAGE}]}}"#),
            format!(r#"{{"role":"assistant","content":[{THOUGHT},{{"type":"tool_use","id":"c","name":"f","input":{{"a":1}}}}]}}"#),
            format!(r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":[{{"type":"text","text":"see"}},{IMAGE}]}}]}}"#),
            format!(r#"{{"role":"assistant","content":[{THOUGHT},{{"type":"text","text":"I see."}}]}}"#),
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"Next."}},{IMAGE}]}}"#),
        ]
        .join("\n")
    }

    /// Returns what the refusal leaves out, until nothing is left: the messages that changed, for each attempt.
    fn attempts(record: &str) -> Vec<Vec<usize>> {
        let (text, mut done) = (conversation(), Vec::new());
        let mut messages = messages::read("t", text.as_bytes()).unwrap();
        let refused = Refused::of(&Object::parse(record).unwrap());
        let gauge = Gauge::new(Request { messages: &messages, ..Request::default() }, None);
        loop {
            let before = messages.clone();
            let outcome = leave_out(&mut messages, Request::default(), gauge, &refused);
            let changed = (0..before.len()).filter(|at| before[*at] != messages[*at]).collect();
            if outcome.is_unchanged() {
                assert_eq!(before, messages);
                return done;
            }
            done.push(changed);
        }
    }

    #[test]
    fn a_named_block_is_left_out_first() {
        for (places, changed) in [
            (r#"[{"message":0,"block":1}]"#, vec![0]),
            (r#"[{"message":2,"block":0,"part":1}]"#, vec![2]),
            (r#"[{"message":2}]"#, vec![2]),
            (r#"[{"message":1,"block":0}]"#, vec![1]),
            (r#"[{"message":1,"block":1}]"#, vec![1]),
            (r#"[{"message":0,"block":1},{"message":4,"block":1}]"#, vec![0, 4]),
            // The text of the prompt is not left out: the image beside it is suspected instead.
            (r#"[{"message":4,"block":0}]"#, vec![4]),
        ] {
            let record = format!(r#"{{"class":"bad-request","fault":"block","places":{places}}}"#);
            assert_eq!(attempts(&record)[0], changed, "{places}");
        }
    }

    #[test]
    fn words_for_media_blame_media_if_there_are_none_at_the_place() {
        let record = |message: &str| {
            format!(
                r#"{{"fault":"block","message":"{message}","places":[{{"message":1,"block":1}}]}}"#
            )
        };
        // Those of the messages beside it, all others, and then the named block.
        let attempts_of = attempts(&record("messages.1.content.1: image exceeds 5 MB maximum"));
        assert_eq!(attempts_of[..3], [vec![0, 2], vec![4], vec![1]]);
        let attempts_of = attempts(&record("messages.1.content.1: input is invalid"));
        assert_eq!(attempts_of[0], vec![1]);
    }

    #[test]
    fn nothing_is_suspected_if_calls_and_results_do_not_fit_together() {
        for message in [
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: c",
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: c",
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            "No tool output found for function call c.",
            "No tool call found for function call output with call_id c.",
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            "Not the same number of function calls and responses",
        ] {
            let record = format!(r#"{{"fault":"block","tool_use_id":"c","message":"{message}"}}"#);
            assert_eq!(attempts(&record), [[0; 0]; 0], "{message}");
        }
    }

    #[test]
    fn without_a_place_new_media_come_first_then_all_then_thinking_then_results() {
        let expected = [vec![4], vec![0, 2], vec![3], vec![1], vec![2]];
        assert_eq!(
            attempts(r#"{"fault":"block","message":"Could not process the request"}"#),
            expected
        );
    }

    #[test]
    fn words_for_thinking_blame_thinking() {
        let attempts =
            attempts(r#"{"fault":"block","message":"Invalid `signature` in `thinking` block"}"#);
        assert_eq!(attempts[..2], [vec![3], vec![1]]);
    }

    #[test]
    fn a_named_call_blames_the_images_in_its_result() {
        let attempts = attempts(r#"{"fault":"block","tool_use_id":"c"}"#);
        assert_eq!(attempts[..2], [vec![2], vec![2]], "the image, then the rest of the result");
    }

    #[test]
    fn of_too_many_images_the_oldest_go_until_a_quarter_is_free() {
        let line = format!(r#"{{"role":"user","content":[{}]}}"#, [IMAGE; 12].join(","));
        let messages = messages::read("t", line.as_bytes()).unwrap();
        for (message, gone) in [
            ("Too many images: at most 8 are allowed", 6),
            ("Request has 12 images, more than 10", 5),
            ("too many images", 6),
            ("image exceeds 5 MB maximum", 0),
            ("images: 8 are fine", 0),
        ] {
            let places = too_many(&messages, &message.to_lowercase());
            let blocks: Vec<usize> = places.iter().map(|place| place.block).collect();
            assert_eq!(blocks, (0..gone).collect::<Vec<_>>(), "{message}");
        }
    }
}
