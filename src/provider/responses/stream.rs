//! Collects a streaming response.
//!
//! The last event has the whole response, and each item comes whole when it is done. The pieces before that are shown, and
//! used only for items whose end is missing.

use super::reply::{CUSTOM, read_items, text_block};
use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::provider::Reply;
use crate::provider::collect::{Collect, RawString, Remaining, Unfinished, bounded};
use std::collections::BTreeMap;

/// A streaming response.
#[derive(Default)]
pub struct ResponsesStream {
    model: Option<String>,
    /// The items, by their index in the output.
    items: BTreeMap<u64, ItemDraft>,
    /// The response as the last event has it.
    response: Option<String>,
}

/// An item that is still arriving.
#[derive(Default)]
struct ItemDraft {
    /// The item as it was announced, or as it is when it is done.
    item: Option<String>,
    is_done: bool,
    /// The text of a message.
    text: RawString,
    /// The input of a call.
    input: RawString,
}

impl Collect for ResponsesStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        match data.string("type").unwrap_or_default().as_ref() {
            "response.output_item.added" => {
                self.item(data)?.item = data.get("item").map(Into::into)
            }
            "response.output_item.done" => {
                let draft = self.item(data)?;
                (draft.item, draft.is_done) = (data.get("item").map(Into::into), true);
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                show(&self.item(data)?.text.add(data.get("delta")));
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.item(data)?.input.keep(data.get("delta"));
            }
            "response.completed" | "response.incomplete" => {
                self.response = data.get("response").map(Into::into);
            }
            _ => {
                let response = data.get("response").and_then(|raw| Object::parse(raw).ok());
                let model = response.and_then(|it| it.string("model").map(Into::into));
                self.model = self.model.take().or(model);
            }
        }
        Ok(())
    }

    fn remaining(&self) -> Remaining {
        if self.response.is_some() { Remaining::None } else { Remaining::Required }
    }

    fn shown(self: Box<Self>) -> Reply {
        let texts = self.items.into_values().map(|draft| draft.text);
        let blocks = texts.filter(|text| !text.is_empty()).map(text_block).collect();
        Reply { blocks, model: self.model, ..Reply::default() }
    }

    fn finish(mut self: Box<Self>) -> Result<Reply, Unfinished> {
        let Some(response) = self.response.take() else {
            return Err(Unfinished::cut(self.shown()));
        };
        let read = Object::parse(&response).map_err(|_| "has no response".to_owned());
        let reply = read.and_then(|response| {
            let whole = response.get("output").and_then(elements).unwrap_or_default();
            // Some servers leave the items out of the last event.
            match whole.len() >= self.items.len() {
                true => read_items(&response, &whole),
                false => {
                    let items: Vec<String> = self.items.values().map(ItemDraft::whole).collect();
                    read_items(&response, &items)
                }
            }
        });
        reply.map_err(|why| Unfinished { why, shown: self.shown() })
    }
}

impl ResponsesStream {
    /// Returns the item that an event is about.
    fn item(&mut self, data: &Object<'_>) -> Result<&mut ItemDraft, String> {
        bounded(self.items.len())?;
        let last = self.items.keys().last().copied().unwrap_or_default();
        let index = data.number("output_index").unwrap_or(last);
        Ok(self.items.entry(index).or_default())
    }
}

impl ItemDraft {
    /// Returns the item as it is when it is done, made of its pieces if its end is missing.
    fn whole(&self) -> String {
        let begun = self.item.as_deref().unwrap_or_default();
        let Ok(item) = Object::parse(begun) else {
            return self.message();
        };
        match item.string("type").as_deref() {
            _ if self.is_done => begun.to_owned(),
            Some("function_call") => item.with("arguments", &self.input.quoted()),
            Some(CUSTOM) => item.with("input", &self.input.quoted()),
            Some("message") => self.message(),
            _ => begun.to_owned(),
        }
    }

    fn message(&self) -> String {
        let part = Members::of_type("output_text").raw("text", &self.text.quoted()).into_json();
        Members::of_type("message").list("content", [part]).into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::provider::Failure;
    use crate::provider::protocol::Protocol;
    use crate::provider::recorded;
    use crate::provider::responses::reply::read;

    const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}"#;
    const MESSAGE: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","annotations":[],"text":"日本 \ud83d\ude00"}]}"#;
    const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"x\": 1e2}","call_id":"a","name":"f"}"#;
    const USAGE: &str =
        r#"{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5}"#;

    fn response(items: &[&str], status: &str, more: &str) -> String {
        format!(
            r#"{{"id":"resp_1","object":"response","status":"{status}","error":null,"model":"m","output":[{}],"usage":{USAGE}{more}}}"#,
            items.join(",")
        )
    }

    fn event(kind: &str, members: &str) -> String {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{members}}}\n\n")
    }

    /// Returns a stream whose last event has these items.
    fn stream(last: &[&str]) -> String {
        let mut text = event(
            "response.created",
            &format!(r#""response":{}"#, response(&[], "in_progress", "")),
        );
        for (index, item) in [REASONING, MESSAGE, CALL].iter().enumerate() {
            text += &event(
                "response.output_item.added",
                &format!(r#""output_index":{index},"item":{item}"#),
            );
            let delta = |kind: &str, piece: &str| {
                event(kind, &format!(r#""output_index":{index},"delta":"{piece}""#))
            };
            text += &match index {
                1 => ["日本 ", r"\ud83d", r"\ude00"]
                    .map(|piece| delta("response.output_text.delta", piece))
                    .concat(),
                2 => [r#"{\"x\""#, ": 1e2}"]
                    .map(|piece| delta("response.function_call_arguments.delta", piece))
                    .concat(),
                _ => delta("response.reasoning_summary_text.delta", "hm"),
            };
            text += &event(
                "response.output_item.done",
                &format!(r#""output_index":{index},"item":{item}"#),
            );
        }
        text + &event(
            "response.completed",
            &format!(r#""response":{}"#, response(last, "completed", "")),
        )
    }

    fn streamed(text: &str, size: usize) -> (Result<Reply, Failure>, String) {
        recorded::read(Protocol::Responses, "text/event-stream", text.as_bytes(), size)
    }

    fn whole(text: &str) -> Result<Reply, String> {
        read(&Object::parse(text).unwrap())
    }

    #[test]
    fn a_stream_split_anywhere_gives_the_same_reply_as_a_complete_answer() {
        let all = [REASONING, MESSAGE, CALL];
        let expected = whole(&response(&all, "completed", "")).unwrap();
        let blocks = [
            &format!(r#"{{"type":"reasoning","item":{REASONING}}}"#),
            r#"{"type":"reasoning","phase":"commentary"}"#,
            r#"{"type":"text","text":"日本 \ud83d\ude00"}"#,
            r#"{"type":"tool_use","id":"a","name":"f","input":{"x": 1e2}}"#,
        ];
        assert_eq!(expected.blocks, blocks);
        assert_eq!(
            (expected.stop_reason.as_deref(), expected.usage.as_deref()),
            (Some("tool_use"), Some(USAGE))
        );
        for text in [stream(&all), stream(&[])] {
            for size in 1..=text.len() {
                let (reply, shown) = streamed(&text, size);
                assert_eq!(reply.unwrap(), expected, "{size}");
                assert!(shown.starts_with("日本 "), "{shown}");
            }
        }
    }

    #[test]
    fn a_stream_cut_anywhere_is_a_failure_and_shows_the_beginning_of_the_text() {
        let whole = stream(&[REASONING, MESSAGE, CALL]);
        let search = r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"\u65e5"}}"#;
        let incomplete = whole.replace("response.completed", "response.incomplete").replace(
            r#""status":"completed","error""#,
            r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error""#,
        );
        let nameless: String = whole
            .lines()
            .filter(|it| !it.starts_with("event:"))
            .fold(String::new(), |text, line| text + line + "\n");
        for text in [
            whole.clone(),
            stream(&[]),
            whole.replace('\n', "\r\n"),
            whole.replace('\n', "\r"),
            whole.replace("\n\n", "\n\n: keep-alive\n\n"),
            nameless,
            whole.replace("data: ", "data:"),
            whole.replace("日本", r"\u65e5\u672c"),
            whole.replace("output_text", "refusal").replace("\"text\"", "\"refusal\""),
            whole.replace(REASONING, search),
            whole.replace("response.output_item.done", "response.something.else"),
            incomplete,
            whole.clone() + "data: [DONE]\n\n",
        ] {
            let last = text.rfind("\"status\":\"completed\",\"error\"");
            let last = last.or_else(|| text.rfind("\"status\":\"incomplete\"")).unwrap();
            recorded::check_cuts(Protocol::Responses, text.as_bytes(), last);
        }
    }

    #[test]
    fn what_belongs_to_a_call_is_kept_before_it() {
        let own = r#""namespace":"crm","caller":{"type":"program","caller_id":"g"}"#;
        let call = CALL.replace(r#""name":"f""#, &format!(r#""name":"f","async":null,{own}"#));
        let reply = whole(&response(&[&call], "completed", "")).unwrap();
        assert_eq!(reply.blocks[0], format!(r#"{{"type":"reasoning","call":{{{own}}}}}"#));
        assert_eq!((reply.blocks.len(), reply.stop_reason.as_deref()), (2, Some("tool_use")));
    }

    #[test]
    fn a_call_of_a_custom_tool_is_a_call_with_text_as_input() {
        let call = r#"{"type":"custom_tool_call","id":"ctc_1","call_id":"a","name":"sql","input":"select \"\u00e9\""}"#;
        let reply = whole(&response(&[call], "completed", "")).unwrap();
        let blocks = [
            r#"{"type":"reasoning","call":{"type":"custom_tool_call"}}"#,
            r#"{"type":"tool_use","id":"a","name":"sql","input":{"input":"select \"é\""}}"#,
        ];
        assert_eq!(
            (reply.blocks, reply.stop_reason.as_deref()),
            (blocks.map(str::to_owned).to_vec(), Some("tool_use"))
        );
        let begun = call.replace(r#"select \"\u00e9\""#, "");
        let text = [
            event("response.output_item.added", &format!(r#""output_index":0,"item":{begun}"#)),
            event(
                "response.custom_tool_call_input.delta",
                r#""output_index":0,"delta":"select 1""#,
            ),
            event(
                "response.completed",
                &format!(r#""response":{}"#, response(&[], "completed", "")),
            ),
        ]
        .concat();
        let reply = streamed(&text, 9).0.unwrap();
        assert!(reply.blocks[1].contains(r#"{"input":"select 1"}"#), "{:?}", reply.blocks);
    }

    #[test]
    fn a_second_call_with_the_same_id_gets_another() {
        let reply = whole(&response(&[CALL, CALL], "completed", "")).unwrap();
        assert!(reply.blocks[1].contains(r#""id":"call_2","name":"f""#), "{:?}", reply.blocks);
    }

    #[test]
    fn items_whose_end_is_missing_are_made_of_their_pieces() {
        let text = stream(&[]).replace("response.output_item.done", "response.something.else");
        // As servers begin them.
        let text = text.replace(r#""arguments":"{\"x\": 1e2}""#, r#""arguments":"""#);
        let content = r#"{"type":"output_text","annotations":[],"text":"日本 \ud83d\ude00"}"#;
        let text = text.replace(&format!("[{content}]"), "[]");
        let reply = streamed(&text, 9).0.unwrap();
        assert_eq!(reply.texts().collect::<String>(), "日本 😀");
        assert!(reply.blocks.last().unwrap().contains(r#""input":{"x": 1e2}"#));
    }

    #[test]
    fn every_status_and_reason_has_a_meaning() {
        let details = |reason: &str| format!(r#","incomplete_details":{{"reason":"{reason}"}}"#);
        let refusal = r#"{"type":"message","content":[{"type":"refusal","refusal":"no"}]}"#;
        let cut = CALL.replace(r#"{\"x\": 1e2}"#, r#"{\"x\": 1"#);
        for (items, status, more, expected) in [
            (&[MESSAGE][..], "completed", "", Some("end_turn")),
            (&[MESSAGE], "completed", r#","incomplete_details":null"#, Some("end_turn")),
            (&[CALL], "completed", "", Some("tool_use")),
            (&[refusal], "completed", "", Some("refusal")),
            (&[MESSAGE, &cut], "incomplete", &details("max_output_tokens"), Some("max_tokens")),
            (&[], "incomplete", &details("content_filter"), Some("refusal")),
            (&[], "incomplete", &details("steered"), Some("steered")),
            (&[], "queued", "", None),
            (&[&cut], "completed", "", None),
        ] {
            let reply = whole(&response(items, status, more));
            let word = reply.as_ref().ok().and_then(|reply| reply.stop_reason.as_deref());
            assert_eq!(word, expected, "{status} {more} {reply:?}");
        }
        assert!(whole("{}").is_err());
    }

    #[test]
    fn both_forms_of_an_error_are_refusals() {
        let failed = response(&[], "failed", "").replace(
            r#""error":null"#,
            r#""error":{"code":"rate_limit_exceeded","message":"Slow down."}"#,
        );
        let in_stream = event("response.failed", &format!(r#""response":{failed}"#));
        let error =
            event("error", r#""code":"rate_limit_exceeded","message":"Slow down.","param":null"#);
        for text in [in_stream, error] {
            let failure = streamed(&text, 7).0.unwrap_err();
            assert!(failure.retryable && failure.message.contains("Slow down"), "{failure}");
            assert_eq!(failure.exit(), Exit::TryLater);
        }
        let failure = recorded::read(Protocol::Responses, "application/json", failed.as_bytes(), 7);
        assert!(failure.0.unwrap_err().message.contains("Slow down"));
    }
}
