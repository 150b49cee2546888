//! Collects a streaming answer.

use super::reply::{MessageDraft, calls, choice, function, inner, named};
use crate::json::Object;
use crate::provider::Reply;
use crate::provider::collect::{Collect, Remaining, Unfinished, bounded};
use crate::provider::turns::draft::CallDraft;

/// A streaming reply: deltas of the message, the last with the stop reason, then an event with the usage and no
/// choices.
#[derive(Default)]
pub struct ChatStream {
    message: MessageDraft,
    /// True if `[DONE]` has arrived.
    is_done: bool,
}

impl Collect for ChatStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        let choice = choice(data);
        self.message.take_metadata(data, choice.as_ref());
        if let Some(delta) = choice.and_then(|choice| self.delta(&choice)) {
            self.message.take_message(&delta, show)?;
            for call in calls(&delta) {
                let at = self.find_or_add(&call);
                self.message.add_delta(at, &call);
                bounded(self.message.draft.calls.len())?;
            }
            self.message.legacy_call(&delta);
        }
        Ok(())
    }

    fn done(&mut self) {
        self.is_done = true;
    }

    fn remaining(&self) -> Remaining {
        match (self.is_done, &self.message.draft.stop_reason) {
            (true, _) => Remaining::None,
            // The usage may follow.
            (false, Some(_)) => Remaining::Optional,
            (false, None) => Remaining::Required,
        }
    }

    fn shown(self: Box<Self>) -> Reply {
        self.message.draft.shown()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Unfinished> {
        if self.remaining() == Remaining::Required {
            return Err(Unfinished::cut(self.shown()));
        }
        self.message.reply()
    }
}

impl ChatStream {
    /// Returns the delta in a choice. Some servers send the complete message, either in place of the deltas or
    /// once more after them; it is used only if nothing has arrived before it.
    fn delta<'a>(&self, choice: &Object<'a>) -> Option<Object<'a>> {
        let delta = inner(choice, "delta").filter(|delta| delta.members().next().is_some());
        let is_new = self.message.draft.is_empty();
        delta.or_else(|| inner(choice, "message").filter(|_| is_new))
    }

    /// Returns the position of the call to which a delta belongs, and adds a call if it is new. Calls are matched by
    /// index, else by id; a delta with neither belongs to the last call.
    ///
    /// Some servers give every call the index 0, other servers give every delta a new id, and some continue a call under
    /// another index. Therefore, a delta that matches a call with a name starts another call only if the delta also has a
    /// name, and an id that differs from the call's, and the call's input is not in the middle of an object. For a delta
    /// with neither id nor index, a name is enough. A delta with a new index continues the call with its id, or without
    /// an id and a name the last call.
    fn find_or_add(&mut self, piece: &Object<'_>) -> usize {
        let calls = &mut self.message.draft.calls;
        let (index, id) = (piece.number("index"), piece.string("id").unwrap_or_default());
        let has_name = function(piece).is_some_and(|function| named(&function).is_some());
        let with_id = || calls.iter().rposition(|call| !id.is_empty() && call.id == id);
        let last = calls.len().checked_sub(1);
        let found = match index {
            Some(_) => {
                let own = calls.iter().rposition(|call| call.index == index).or_else(with_id);
                own.or(last.filter(|_| id.is_empty() && !has_name))
            }
            None if !id.is_empty() => with_id().or(last.filter(|_| !has_name)),
            None => last,
        };
        let begins_another = |call: &CallDraft| {
            let has_other_id = match id.is_empty() {
                true => index.is_none(),
                false => !call.id.is_empty() && call.id != id,
            };
            has_name && !call.name.is_empty() && has_other_id && !call.is_in_object()
        };
        found.filter(|at| !begins_another(&calls[*at])).unwrap_or_else(|| {
            calls.push(CallDraft::numbered(index));
            calls.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::provider::chat::reply::read;
    use crate::provider::protocol::Protocol;
    use crate::provider::recorded;

    fn whole(body: &str) -> Result<Reply, String> {
        read(&Object::parse(body).unwrap())
    }

    /// Reads a complete answer with this message and stop reason.
    fn answer(message: &str, reason: &str) -> Result<Reply, String> {
        whole(&format!(
            r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"{reason}"}}],"model":"m","usage":{{"prompt_tokens":1e0}}}}"#
        ))
    }

    /// Returns a stream of these deltas, with this stop reason at its end.
    fn stream(deltas: &[&str], reason: &str) -> String {
        let chunk = |delta: &str, reason: &str| {
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{reason}}}],\"model\":\"m\",\"usage\":null}}\n\n"
            )
        };
        let mut text = ": waiting\n\n".to_owned();
        deltas.iter().for_each(|delta| text += &chunk(delta, "null"));
        text += &chunk("{}", &format!("\"{reason}\""));
        text += "data: {\"choices\":[],\"model\":\"m\",\"usage\":{\"prompt_tokens\":1e0}}\n\n";
        text + "data: [DONE]\n\n"
    }

    fn streamed(text: &str, size: usize) -> (Result<Reply, crate::provider::Failure>, String) {
        recorded::read(Protocol::Chat, "text/event-stream", text.as_bytes(), size)
    }

    const MESSAGE: &str = r#"{"role":"assistant","content":"日本 \ud83d\ude00 \/","reasoning":"hm \u00e9","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1e2,\"y\":\"\\u00e9\ud83d\ude00\"}"}},{"id":"","type":"function","function":{"name":"g","arguments":""}}]}"#;
    const DELTAS: [&str; 9] = [
        r#"{"role":"assistant","content":"","reasoning":"hm","reasoning_text":"hm"}"#,
        r#"{"reasoning":" \u00e9","content":null}"#,
        r#"{"content":"日本 \ud83d"}"#,
        r#"{"content":"\ude00 \/","refusal":null}"#,
        r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\": 1e"}}]}"#,
        r#"{"tool_calls":[{"index":1,"function":{"name":"g"}},{"index":0,"function":{"arguments":"2,\"y\":\"\\u00e9\ud83d"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":"\ude00\""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#,
    ];

    #[test]
    fn an_answer_becomes_blocks_with_unchanged_bytes() {
        let reply = answer(MESSAGE, "tool_calls").unwrap();
        let expected = [
            r#"{"type":"reasoning","reasoning":"hm \u00e9"}"#,
            r#"{"type":"text","text":"日本 \ud83d\ude00 \/"}"#,
            r#"{"type":"tool_use","id":"a","name":"f","input":{"x": 1e2,"y":"\u00e9😀"}}"#,
            r#"{"type":"tool_use","id":"call_1","name":"g","input":{}}"#,
        ];
        assert_eq!(reply.blocks, expected);
        assert_eq!(reply.reasoning, None);
        assert_eq!(reply.model.as_deref(), Some("m"));
        assert_eq!(reply.usage.as_deref(), Some(r#"{"prompt_tokens":1e0}"#));
        assert_eq!(reply.stop_reason.as_deref(), Some("tool_use"));
    }

    #[test]
    fn a_stream_split_anywhere_gives_the_same_reply_as_a_complete_answer() {
        let expected = answer(MESSAGE, "tool_calls").unwrap();
        let text = stream(&DELTAS, "tool_calls");
        for size in 1..=text.len() {
            let (reply, shown) = streamed(&text, size);
            assert_eq!(reply.unwrap(), expected, "{size}");
            // Each half of a surrogate pair is shown as a replacement character.
            assert_eq!(shown, "日本 \u{fffd}\u{fffd} /", "{size}");
        }
    }

    #[test]
    fn a_stream_without_its_end_is_a_retryable_failure() {
        let text = stream(&DELTAS, "tool_calls");
        let end = text.find(r#""finish_reason":"tool_calls""#).unwrap();
        for at in (0..end).filter(|at| text.is_char_boundary(*at)) {
            let failure = streamed(&text[..at], 7).0.unwrap_err();
            assert_eq!((failure.exit(), failure.retryable), (Exit::Unavailable, true), "{at}");
        }
        // Everything after the stop reason is optional.
        let without_end = &text[..text.find("data: [DONE]").unwrap()];
        assert!(streamed(without_end, 7).0.is_ok());
    }

    #[test]
    fn calls_are_matched_whatever_ids_and_indexes_the_server_sends() {
        let full = |index: &str, id: &str, name: &str| {
            format!(
                r#"{{"tool_calls":[{{{index}"id":"{id}","function":{{"name":"{name}","arguments":"{{}}"}}}}]}}"#
            )
        };
        let blocks = |deltas: &[&str]| {
            let reply = streamed(&stream(deltas, "tool_calls"), 99).0.unwrap();
            reply.blocks.into_iter().map(|block| block[19..].to_owned()).collect::<Vec<_>>()
        };
        let call = |id: &str, name: &str, input: &str| {
            format!(r#""id":"{id}","name":"{name}","input":{input}}}"#)
        };
        let two = [call("a", "f", "{}"), call("b", "f", "{}")];
        // Every call has the index 0, or no index.
        for index in [r#""index":0,"#, ""] {
            assert_eq!(blocks(&[&full(index, "a", "f"), &full(index, "b", "f")]), two, "{index}");
        }
        let nameless = [call("call_1", "f", "{}"), call("call_2", "g", "{}")];
        assert_eq!(blocks(&[&full("", "", "f"), &full("", "", "g")]), nameless);
        // Every delta has a new id, repeats the name, or both.
        let begin =
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}"#;
        for (id, name) in [("z", "null"), ("a", r#""f""#), ("", r#""f""#), ("z", r#""f""#)] {
            let more = format!(
                r#"{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":{name},"arguments":"\"x\":1}}"}}}}]}}"#
            );
            assert_eq!(blocks(&[begin, &more]), [call("a", "f", r#"{"x":1}"#)], "{id}");
        }
    }

    #[test]
    fn the_pieces_of_a_call_are_put_together_whatever_their_index_and_however_often_they_come() {
        let piece = |head: &str, arguments: &str| {
            let arguments = serde_json::Value::from(arguments);
            format!(r#"{{"tool_calls":[{{{head}"function":{{"arguments":{arguments}}}}}]}}"#)
        };
        let begin = |id: &str, arguments: &str| {
            let arguments = serde_json::Value::from(arguments);
            format!(
                r#"{{"tool_calls":[{{"index":0,"id":"{id}","function":{{"name":"f","arguments":{arguments}}}}}]}}"#
            )
        };
        let whole = r#"{"x":1}"#;
        for (id, pieces) in [
            // A continuation under another index, with or without the id.
            ("a", vec![begin("a", "{\"x\""), piece(r#""index":1,"#, ":1}")]),
            ("a", vec![begin("a", "{\"x\""), piece(r#""index":1,"id":"a","#, ":1}")]),
            ("a", vec![begin("a", "{\"x\""), piece(r#""id":"b","#, ":1}")]),
            ("a", vec![begin("a", "{\"x\""), piece(r#""index":1,"id":"","#, ":1}")]),
            ("call_1", vec![begin("", "{\"x\""), piece(r#""index":0,"id":"","#, ":1}")]),
            // The whole input again, each time all of it so far, or an empty object before it.
            ("a", vec![begin("a", whole), begin("a", whole)]),
            (
                "a",
                vec![
                    begin("a", ""),
                    piece(r#""index":0,"#, "{\"x\":"),
                    piece(r#""index":0,"#, "1}"),
                    begin("a", whole),
                ],
            ),
            ("a", vec![begin("a", "{\"x\""), begin("a", "{\"x\":1"), begin("a", whole)]),
            ("a", vec![begin("a", "{}"), begin("a", whole)]),
        ] {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let reply = streamed(&stream(&pieces, "tool_calls"), 99).0.unwrap();
            let expected =
                format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{whole}}}"#);
            assert_eq!(reply.blocks, [expected], "{pieces:?}");
        }
        // Two different inputs are not one.
        let two = [begin("a", whole), begin("a", r#"{"x":2}"#)];
        assert!(streamed(&stream(&[&two[0], &two[1]], "tool_calls"), 99).0.is_err());
    }

    #[test]
    fn v66_an_incomplete_call_is_dropped() {
        let half = r#"{"content":"a","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#;
        let expected = answer(half, "length").unwrap();
        let records = expected.to_records("p");
        assert_eq!((records.lines.len(), records.cut_call.as_deref()), (1, Some("f")));
        assert_eq!(streamed(&stream(&[half], "length"), 9).0.unwrap(), expected);
        assert!(answer(half, "tool_calls").unwrap_err().contains("not a JSON object"));
        assert!(streamed(&stream(&[half], "stop"), 9).0.is_err());
    }

    #[test]
    fn empty_content_gives_no_block_and_a_refusal_gives_text() {
        for content in [r#""""#, "null"] {
            let reply = answer(&format!(r#"{{"content":{content}}}"#), "stop").unwrap();
            assert_eq!((reply.blocks.len(), reply.stop_reason.as_deref()), (0, Some("end_turn")));
        }
        let refused = r#"{"content":null,"refusal":"no \u00e9"}"#;
        let expected = answer(refused, "stop").unwrap();
        assert_eq!(expected.blocks, [r#"{"type":"text","text":"no \u00e9"}"#]);
        let (reply, shown) = streamed(&stream(&[refused], "stop"), 9);
        assert_eq!((reply.unwrap(), shown.as_str()), (expected, "no é"));
        let parts = r#"{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}]}"#;
        assert_eq!(answer(parts, "sideways").unwrap().blocks.len(), 1);
        assert_eq!(answer(parts, "sideways").unwrap().stop_reason.as_deref(), Some("sideways"));
    }

    #[test]
    fn an_unusable_answer_is_an_error() {
        for body in ["{}", r#"{"choices":[]}"#, r#"{"choices":[{"index":0}]}"#] {
            assert!(whole(body).is_err(), "{body}");
        }
    }

    #[test]
    fn usage_may_be_in_the_choice() {
        let body = r#"{"choices":[{"message":{},"usage":{"prompt_tokens":5}}],"usage":null}"#;
        assert_eq!(whole(body).unwrap().usage.as_deref(), Some(r#"{"prompt_tokens":5}"#));
    }
}
