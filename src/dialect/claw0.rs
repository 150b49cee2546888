//! claw0's two transcript formats, and tests for reading them.
//!
//! The formats need no conversion: both use the record types and names of clawutils, so `record::parse` reads them
//! directly, and the same rules turn them into messages. The differences:
//!
//! - The current format writes each tool call twice: in the assistant record, and again as a `tool_use`
//!   record before its result. The second copy is skipped, because the reply already has it.
//! - The first format calls the content of a result `output`, writes times as ISO 8601 strings, starts with a
//!   `session` header, writes one assistant record per text block, and writes the results of a turn *before*
//!   its user and call records. Results are assigned to calls by id, and text after a reply whose results all
//!   came early begins another reply.
//! - Neither has ids: a record is identified by its byte offset, `@1234`.

#[cfg(test)]
mod tests {
    use crate::input::Input;
    use crate::messages::rebuild::from_inputs;

    /// Rebuilds `text`. Returns the messages as lines, and the rules of the findings.
    fn messages(text: &str) -> (Vec<String>, Vec<&'static str>) {
        let inputs = [Input::memory("t", text.as_bytes().to_vec())];
        let rebuilt = from_inputs(&inputs, &Default::default()).unwrap();
        assert_eq!(broken(&rebuilt.messages), Vec::<String>::new());
        let lines = rebuilt.messages.iter().map(|message| message.to_json()).collect();
        (lines, rebuilt.findings.iter().map(|finding| finding.rule.name).collect())
    }

    fn broken(messages: &[crate::messages::Message<'_>]) -> Vec<String> {
        let broken = crate::rules::violations(messages);
        broken.iter().filter(|broken| !broken.unfinished).map(ToString::to_string).collect()
    }

    const CALL: &str = r#"{"type":"tool_use","id":"c1","name":"f","input":{}}"#;
    const CALL_2: &str = r#"{"type":"tool_use","id":"c2","name":"f","input":{}}"#;
    const USE: &str = r#"{"type":"tool_use","tool_use_id":"c1","name":"f","input":{},"ts":1.5}"#;
    const USE_2: &str = r#"{"type":"tool_use","tool_use_id":"c2","name":"f","input":{},"ts":1.5}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"c1","content":"r1"}"#;
    const RESULT_2: &str = r#"{"type":"tool_result","tool_use_id":"c2","content":"r2"}"#;
    const ASK: &str = r#"{"type":"user","content":"q"}"#;
    const END: &str = r#"{"type":"assistant","content":[{"type":"text","text":"end"}]}"#;

    const USER: &str = r#"{"role":"user","content":"q"}"#;
    const LAST: &str = r#"{"role":"assistant","content":[{"type":"text","text":"end"}]}"#;

    fn reply(blocks: &str) -> String {
        format!(r#"{{"type":"assistant","content":[{blocks}]}}"#)
    }

    fn answer(blocks: &str) -> String {
        format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
    }

    fn results(ids: &[(&str, &str)]) -> String {
        let blocks: Vec<String> = ids
            .iter()
            .map(|(id, text)| {
                format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}"#)
            })
            .collect();
        format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","))
    }

    const TEXT: &str = r#"{"type":"text","text":"look"}"#;

    #[test]
    fn v11_a_call_written_twice_becomes_one_call() {
        let reply = reply(&format!("{TEXT},{CALL}"));
        let (lines, rules) = messages(&[ASK, &reply, USE, RESULT, END].join("\n"));
        let reply = answer(&format!("{TEXT},{CALL}"));
        assert_eq!(lines, [USER, &reply, &results(&[("c1", "r1")]), LAST]);
        assert!(rules.is_empty());
    }

    #[test]
    fn v12_parallel_calls_stay_together() {
        let reply = reply(&format!("{CALL},{CALL_2}"));
        let (lines, _) = messages(&[ASK, &reply, USE, RESULT, USE_2, RESULT_2, END].join("\n"));
        let both = results(&[("c1", "r1"), ("c2", "r2")]);
        assert_eq!(lines, [USER, &answer(&format!("{CALL},{CALL_2}")), &both, LAST]);
    }

    #[test]
    fn v13_calls_that_are_only_records_join_their_reply() {
        let text = r#"{"type":"assistant","content":"look"}"#;
        let (lines, _) = messages(&[ASK, text, USE, USE_2, RESULT, RESULT_2, END].join("\n"));
        let both = results(&[("c1", "r1"), ("c2", "r2")]);
        assert_eq!(lines, [USER, &answer(&format!("{TEXT},{CALL},{CALL_2}")), &both, LAST]);
    }

    #[test]
    fn v14_a_call_at_the_start_of_the_file_becomes_a_reply() {
        let (lines, _) = messages(&[USE, RESULT, END].join("\n"));
        assert_eq!(lines[1..], [answer(CALL), results(&[("c1", "r1")]), LAST.to_owned()]);
        assert!(lines[0].contains("begins with the assistant"));
    }

    #[test]
    fn v15_both_calls_with_the_same_id_keep_their_results() {
        let turn = [ASK, &reply(CALL), RESULT, END].join("\n");
        let second = turn.replace("r1", "r2");
        let (lines, rules) = messages(&[turn, second].join("\n"));
        assert_eq!(lines[2], results(&[("c1", "r1")]));
        assert_eq!(lines[6], results(&[("c1_2", "r2")]));
        assert!(lines[5].contains(r#""id":"c1_2""#) && rules.is_empty());
    }

    #[test]
    fn v16_a_call_without_a_result_gets_one_unless_it_is_at_the_end() {
        let (lines, rules) = messages(&[ASK, &reply(CALL), ASK].join("\n"));
        assert!(lines[2].contains(r#""is_error":true"#) && lines[2].contains("interrupted"));
        assert!(lines[2].ends_with(r#"{"type":"text","text":"q"}]}"#));
        assert_eq!(rules, ["open-call"]);
        let (lines, rules) =
            messages(&[ASK, &reply(&format!("{CALL},{CALL_2}")), RESULT].join("\n"));
        assert_eq!(lines[2], results(&[("c1", "r1")]));
        assert!(rules.is_empty());
    }

    #[test]
    fn v17_results_without_a_call_are_left_out_and_late_ones_moved() {
        let reply = reply(CALL);
        let other = RESULT.replace("r1", "other");
        for (records, result, found) in [
            (vec![ASK, RESULT_2, &reply, RESULT, END], "r1", vec!["orphan-result"]),
            (vec![ASK, &reply, RESULT, RESULT, END], "r1", vec!["duplicate-result"]),
            (vec![ASK, &reply, RESULT, &other, END], "r1", vec!["duplicate-result"]),
            (vec![RESULT, ASK, &reply, END], "r1", vec![]),
        ] {
            let (lines, rules) = messages(&records.join("\n"));
            assert_eq!(lines, [USER, &answer(CALL), &results(&[("c1", result)]), LAST]);
            assert_eq!(rules, found);
        }
        let (lines, rules) = messages(&[ASK, &reply, ASK, END, ASK, RESULT].join("\n"));
        assert!(lines[2].starts_with(r#"{"role":"user","content":[{"type":"tool_result""#));
        assert!(lines[2].contains("r1") && lines.len() == 5);
        assert_eq!(rules, ["late-result"]);
    }

    #[test]
    fn v18_neighbours_of_one_role_are_merged_and_nothing_is_lost() {
        let list = r#"{"type":"user","content":[{"type":"text","text":"list"}]}"#;
        let (lines, _) = messages(&[ASK, list, END, END].join("\n"));
        assert_eq!(
            lines,
            [
                r#"{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"list"}]}"#,
                r#"{"role":"assistant","content":[{"type":"text","text":"end"},{"type":"text","text":"end"}]}"#
            ]
        );
    }

    #[test]
    fn v19_records_without_content_are_left_out() {
        for nothing in [
            r#"{"type":"assistant","content":[]}"#,
            r#"{"type":"assistant","content":null}"#,
            r#"{"type":"assistant","content":"  \n"}"#,
            r#"{"type":"assistant","content":[{"type":"text","text":" "}]}"#,
            r#"{"type":"user","content":""}"#,
            r#"{"type":"user","content":[{"type":"text","text":""}]}"#,
        ] {
            assert_eq!(messages(&[ASK, nothing, END].join("\n")).0, [USER, LAST], "{nothing}");
        }
        let empty = RESULT.replace("r1", "");
        let (lines, _) = messages(&[ASK, &reply(CALL), &empty, END].join("\n"));
        assert_eq!(lines[2], results(&[("c1", "(no output)")]));
    }

    #[test]
    fn v20_an_invalid_record_is_skipped_and_all_others_are_kept() {
        for (odd, rule) in [
            (r#"{"type":"user"}"#, Some("bad-record")),
            (r#"{"type":"tool_use","name":"f"}"#, Some("bad-record")),
            (r#"{"content":"no type"}"#, Some("bad-record")),
            ("[1,2]", Some("not-an-object")),
            ("5", Some("not-an-object")),
            (r#""text""#, Some("not-an-object")),
            (r#"{"type":"progress","content":5}"#, None),
        ] {
            let (lines, rules) = messages(&[ASK, odd, END].join("\n"));
            assert_eq!(lines, [USER, LAST], "{odd}");
            assert_eq!(rules.first().copied(), rule, "{odd}");
        }
    }

    #[test]
    fn v21_blocks_that_need_no_change_keep_their_bytes() {
        let odd =
            r#"{"signature":"s=","type":"thinking","thinking":"t","n":12345678901234567890123}"#;
        let server =
            r#"{"type":"server_tool_use","id":"s:1","name":"x","input":{"b":1e2,"a":-0.0}}"#;
        let text = r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#;
        let redacted = r#"{"type":"redacted_thinking","data":"abc"}"#;
        let blocks = [odd, redacted, server, text].join(",");
        let list = r#"[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}]"#;
        let result = format!(
            r#"{{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":{list}}}"#
        );
        let (lines, _) = messages(&[ASK, &reply(&format!("{blocks},{CALL}")), &result].join("\n"));
        assert_eq!(lines[1], answer(&format!("{blocks},{CALL}")));
        assert!(lines[2].contains(&format!(r#""content":{list},"is_error":true"#)));
    }

    #[test]
    fn v22_a_bad_byte_makes_only_its_line_invalid() {
        let mut bytes = ASK.as_bytes().to_vec();
        bytes.extend(b"\n{\"type\":\"user\",\"content\":\"\xff\"}\n");
        bytes.extend(END.as_bytes());
        let inputs = [Input::memory("t", bytes)];
        let rebuilt = from_inputs(&inputs, &Default::default()).unwrap();
        assert_eq!(rebuilt.messages.len(), 2);
        assert_eq!(rebuilt.findings[0].place.line, Some(2));
    }

    #[test]
    fn v23_results_before_their_turn_go_to_their_calls() {
        let first = r#"{"type":"tool_result","tool_use_id":"c1","output":"r1","ts":"2026-01-01T00:00:00+00:00"}"#;
        let second = first.replace("c1", "c2").replace("r1", "r2");
        let text = r#"{"type":"assistant","content":"look"}"#;
        let lines_in = [
            first,
            &second,
            ASK,
            text,
            USE,
            text,
            USE_2,
            r#"{"type":"assistant","content":"end"}"#,
        ];
        let (lines, rules) = messages(&lines_in.join("\n"));
        assert_eq!(
            lines,
            [
                USER,
                &answer(&format!("{TEXT},{CALL}")),
                &results(&[("c1", "r1")]),
                &answer(&format!("{TEXT},{CALL_2}")),
                &results(&[("c2", "r2")]),
                r#"{"role":"assistant","content":"end"}"#
            ]
        );
        assert!(rules.is_empty());
    }

    #[test]
    fn v24_a_header_is_not_a_message_and_text_records_form_one_reply() {
        let header = r#"{"type":"session","id":"81efc48888b7","key":"main:cli:user","created":"2026-01-01T00:00:00+00:00"}"#;
        let text = r#"{"type":"assistant","content":"a"}"#;
        let (lines, rules) =
            messages(&[header, ASK, text, &text.replace("\"a\"", "\"b\"")].join("\n"));
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], answer(r#"{"type":"text","text":"a"},{"type":"text","text":"b"}"#));
        assert!(rules.is_empty());
    }

    #[test]
    fn v25_results_of_an_incomplete_turn_without_their_calls_are_left_out() {
        let (lines, rules) = messages(&[RESULT, RESULT_2, ASK, END].join("\n"));
        assert_eq!(lines, [USER, LAST]);
        assert_eq!(rules, ["orphan-result", "orphan-result"]);
    }
}
