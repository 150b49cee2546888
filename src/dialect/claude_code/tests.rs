//! Tests with small project files. In the tables, a record is `id parent content`: `u:` is a prompt, `a/M:` text and
//! `c/M:` a call of reply M, and `r:` a result. For other words, see [`record`].

use crate::dialect::tests::rebuild;
use crate::dialect::{Choice, open};
use crate::input::Input;

/// Returns the record of a line of a table.
fn record(line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (id, parent, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
    let (kind, text) = rest.split_once(':').unwrap();
    let (kind, reply) = kind.split_once('/').unwrap_or((kind, "m"));
    let user = |content: &str, more: &str| {
        format!(r#""type":"user",{more}"message":{{"role":"user","content":{content}}}"#)
    };
    let assistant = |block: &str, more: &str| {
        format!(
            r#""type":"assistant",{more}"message":{{"id":"{reply}","role":"assistant","model":"x","content":[{block}],"usage":{{"input_tokens":5,"output_tokens":2}}}}"#
        )
    };
    let quoted = format!("\"{text}\"");
    let members = match kind {
        "u" => user(&quoted, ""),
        "summary" => user(&quoted, r#""isCompactSummary":true,"#),
        "side" => user(&quoted, r#""isSidechain":true,"#),
        "a" => assistant(&format!(r#"{{"type":"text","text":"{text}"}}"#), ""),
        "error" => assistant(
            &format!(r#"{{"type":"text","text":"{text}"}}"#),
            r#""isApiErrorMessage":true,"#,
        ),
        "c" => assistant(
            &format!(r#"{{"type":"tool_use","id":"{text}","name":"t","input":{{}}}}"#),
            "",
        ),
        "r" => user(
            &format!(r#"[{{"type":"tool_result","tool_use_id":"{text}","content":"r {text}"}}]"#),
            "",
        ),
        "attachment" => format!(r#""type":"attachment","rendered":[{{"content":"{text}"}}]"#),
        // The text names the record before the boundary, and then the records that the boundary preserves.
        "boundary" => {
            let (before, kept) = text.split_once(' ').unwrap();
            let kept: Vec<_> = kept.split_whitespace().map(|id| format!("\"{id}\"")).collect();
            format!(
                r#""type":"system","subtype":"compact_boundary","logicalParentUuid":"{before}","compactMetadata":{{"preservedMessages":{{"uuids":[{}]}}}}"#,
                kept.join(",")
            )
        }
        kind => format!(r#""type":"{kind}""#),
    };
    let side = if kind == "side" { "" } else { r#","isSidechain":false"# };
    format!(
        r#"{{"parentUuid":{parent},"uuid":"{id}","timestamp":"2026-01-01T00:00:01Z"{side},{members}}}"#
    )
}

fn file(lines: &str) -> String {
    let records = lines.lines().map(str::trim_start).filter(|line| !line.is_empty()).map(record);
    records.collect::<Vec<_>>().join("\n")
}

/// Checks the messages and findings of a file.
#[track_caller]
fn check(lines: &str, leaf: Option<&str>, messages: &str, findings: &[&str]) {
    let (words, found) = rebuild(&file(lines), leaf);
    assert_eq!(
        (words.as_str(), found),
        (messages, findings.iter().map(|it| (*it).to_owned()).collect())
    );
}

const PARALLEL: &str = "u1 - u:go
    a1 u1 a/m:look
    a2 a1 c/m:c1
    a3 a2 c/m:c2
    r2 a3 r:c2
    r1 a2 r:c1
    a4 r1 a/n:done";

#[test]
fn parallel_calls_that_are_not_on_the_chain_are_kept() {
    check(PARALLEL, None, "U|go|A|look|call c1|call c2|U|[r c1]|[r c2]|A|done", &[]);
    // A result that was written before the next call of the same reply.
    let mixed = "u1 - u:go\na1 u1 c/m:c1\nr1 a1 r:c1\na2 a1 c/m:c2\nr2 a2 r:c2\na3 r2 a/n:done";
    check(mixed, None, "U|go|A|call c1|call c2|U|[r c1]|[r c2]|A|done", &[]);
}

#[test]
fn usage_is_counted_once_for_each_reply() {
    let input = Input::memory("t", file(PARALLEL).into_bytes());
    let input = open(input, &Choice::default()).unwrap();
    let text = String::from_utf8(input.bytes().unwrap().into_owned()).unwrap();
    assert_eq!(text.matches(r#""usage":"#).count(), 2, "{text}");
}

#[test]
fn a_reply_has_the_usage_of_its_last_record() {
    let interleaved = "u1 - u:go\na1 u1 a/m:look\nb1 a1 a/n:other\na3 b1 a/m:more";
    for lines in [PARALLEL, interleaved] {
        for changed in ["a1", "a2", "a3"] {
            let change = |line: &str| match line.contains(&format!(r#""uuid":"{changed}""#)) {
                true => line.replace(r#""output_tokens":2"#, r#""output_tokens":7"#),
                false => line.to_owned(),
            };
            let text = file(lines).lines().map(change).collect::<Vec<_>>().join("\n");
            let input = Input::memory("t", text.into_bytes());
            let input = open(input, &Choice::default()).unwrap();
            let text = String::from_utf8(input.bytes().unwrap().into_owned()).unwrap();
            let counts: Vec<_> = text.matches(r#""output_tokens":7"#).collect();
            assert_eq!(counts.len(), usize::from(changed == "a3"), "{changed}: {text}");
            let first = text.lines().find(|line| line.contains(r#""usage""#)).unwrap();
            let expected = if changed == "a3" { "7" } else { "2" };
            assert!(first.contains(&format!(r#""output_tokens":{expected}"#)), "{first}");
        }
    }
}

#[test]
fn preserved_messages_come_after_the_summary_of_a_compaction() {
    let summary = "U|[Previous conversation summary]\nsum";
    let start = "u1 - u:one\na1 u1 a/m:two\nu2 a1 u:three\na2 u2 a/n:four\n";
    let new =
        |boundary: &str| format!("{start}b1 - boundary:{boundary}\ns1 b1 summary:sum\nu3 s1 u:new");
    check(
        &new("a2 "),
        None,
        &format!("{summary}|A|Agreed. Let me build on this summary.|U|new"),
        &[],
    );
    check(&new("a2 a2"), None, &format!("{summary}|A|four|U|new"), &[]);
    check(&new("a2 a1 a2"), None, &format!("{summary}|A|two|four|U|new"), &[]);
    check(
        &new("a2 zz"),
        None,
        &format!("{summary}|A|Agreed. Let me build on this summary.|U|new"),
        &["unknown-first-kept 5 -"],
    );
    // A boundary whose earlier record does not exist still has its summary.
    check(
        &new("zz "),
        None,
        &format!("{summary}|A|Agreed. Let me build on this summary.|U|new"),
        &["other-root 4 a2"],
    );
}

#[test]
fn records_that_are_not_sent_are_left_out() {
    check("u1 - u:one\ne1 u1 error:API Error\nu2 e1 u:two", None, "U|one|two", &[]);
    check(
        "u1 - u:one\na1 u1 a/m:two\np1 a1 system:\nu2 p1 u:three",
        None,
        "U|one|A|two|U|three",
        &[],
    );
    check("u1 - u:one\nz1 u1 novelty:\nu2 z1 u:two", None, "U|one|two", &["unknown-type 2 -"]);
    // Attachments are sent before their prompt.
    check("u1 - u:one\nt1 u1 attachment:note\na1 t1 a/m:two", None, "U|note|one|A|two", &[]);
}

#[test]
fn sidechains_are_left_out_unless_chosen() {
    let lines = "u1 - u:one\na1 u1 a/m:two\ns1 - side:task";
    check(lines, None, "U|one|A|two", &[]);
    check(lines, Some("s1"), "U|task", &[]);
    check("s1 - side:task", None, "U|task", &[]);
}

#[test]
fn branches_and_damaged_chains_are_reported() {
    let rewound = "u1 - u:one\na1 u1 a/m:two\nu2 a1 u:old\na2 u2 a/n:answer\nu3 a1 u:new";
    check(rewound, None, "U|one|A|two|U|new", &["other-branch 4 a2"]);
    check(rewound, Some("a2"), "U|one|A|two|U|old|A|answer", &["other-branch 5 u3"]);
    check("u1 - u:one\nu2 zz u:two", None, "U|two", &["missing-parent 2 u2", "other-root 1 u1"]);
    check("u1 u2 u:one\nu2 u1 u:two", None, "U|one|two", &["parent-cycle 1 u1"]);
    check("u1 - u:one\nu2 - u:two", None, "U|two", &["other-root 1 u1"]);
    check("u1 - u:one\nu1 - u:two", None, "U|two", &["duplicate-id 2 u1", "other-root 1 @0"]);
    let (error, _) = rebuild(&file("u1 - u:one"), Some("zz"));
    assert_eq!(error, "cannot find leaf 'zz' in 't'; claw-check lists branches");
}

#[test]
fn dialects_5_the_types_of_the_newest_version_are_known() {
    // The types of records in Claude Code 2.1.332 without those of the chain.
    let types = "agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-resumed \
        api-request-shape artifact-autoreact-ledger artifact-comment-monitor atis-latch attribution-snapshot \
        bridge-session continued-in cost-state custom-title data-flow-incomplete data-flow-records derived-from \
        dev-mods ended-by-model file-history-delta file-history-snapshot frame-link host-row hybrid-organization \
        history-suppression isolation-latch last-prompt memory-mode mode observer-ref permission-mode pr-link queue-operation relocated \
        repl-mode resume-head-vouch session-owner summary tag tools-used worktree-state";
    let state = |kind: &str| format!(r#"{{"type":"{kind}","sessionId":"s"}}"#);
    let known: Vec<String> = types.split_whitespace().map(state).collect();
    let text = format!("{}\n{}", record("u1 - u:one"), known.join("\n"));
    assert_eq!(rebuild(&text, None), ("U|one".to_owned(), vec![]));
    let text = format!("{}\n{}", record("u1 - u:one"), state("novelty"));
    assert_eq!(rebuild(&text, None).1, ["unknown-type 2 -"]);
}

#[test]
fn audit_41_results_that_are_replaced_are_sent_in_their_last_form() {
    let replaced = |list: &[(&str, &str)]| {
        let item = |(call, text): &(&str, &str)| {
            format!(r#"{{"kind":"tool-result","toolUseId":"{call}","replacement":"{text}"}}"#)
        };
        let list: Vec<String> = list.iter().map(item).collect();
        format!(
            r#"{{"type":"content-replacement","sessionId":"s","replacements":[{}]}}"#,
            list.join(",")
        )
    };
    let both = |content: &str| {
        let result = |call: &str, content: &str| {
            format!(r#"{{"type":"tool_result","tool_use_id":"{call}","content":{content}}}"#)
        };
        let results = [result("c1", content), result("c2", "\"short\"")].join(",");
        let calls = file("u1 - u:go\na2 u1 c/m:c1\na3 a2 c/m:c2");
        format!(
            r#"{calls}
{{"type":"user","uuid":"r1","parentUuid":"a3","message":{{"role":"user","content":[{results}]}}}}"#
        )
    };
    let end = file("a4 r1 a/n:done");
    for (content, first) in [
        ("\"long\"", "[new]"),
        (r#"[{"type":"text","text":"long"}]"#, "[new]"),
        (r#"[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]"#, "[image]"),
        ("\"<persisted-output>\\nlong\"", "[<persisted-output>\nlong]"),
        ("\"\"", "[(no output)]"),
    ] {
        let later = replaced(&[("c1", "new"), ("zz", "lost")]);
        let lines = [both(content), replaced(&[("c2", "own"), ("c1", "old")]), end.clone(), later];
        let (words, findings) = rebuild(&lines.join("\n"), None);
        let second = "[own]";
        assert_eq!(
            (words, findings),
            (format!("U|go|A|call c1|call c2|U|{first}|{second}|A|done"), vec![]),
            "{content}"
        );
    }
}

#[test]
fn the_title_that_the_user_gave_becomes_the_label_and_the_first_directory_that_of_the_session() {
    let title = |kind: &str, name: &str, text: &str| {
        format!(r#"{{"type":"{kind}","{name}":"{text}","sessionId":"s","uuid":"t"}}"#)
    };
    let lines = [
        r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s"}"#.to_owned(),
        r#"{"parentUuid":null,"uuid":"a","type":"user","sessionId":"s","cwd":"/w","message":{"role":"user","content":"one"}}"#.to_owned(),
        title("custom-title", "customTitle", "first"),
        title("custom-title", "customTitle", "mine"),
        title("ai-title", "aiTitle", "its own"),
    ]
    .join("\n");
    assert_eq!(rebuild(&lines, None), ("U|one".to_owned(), Vec::new()));
    let input = Input::memory("t", lines.into_bytes());
    let text = open(input, &Choice::default()).unwrap().bytes().unwrap().into_owned();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with(
            r#"{"type":"session","id":"s","key":"s","label":"mine","source":{"dialect":"claude-code","cwd":"/w"}}"#
        ),
        "{text}"
    );
    assert_eq!(text.matches("label").count(), 1, "{text}");
}
