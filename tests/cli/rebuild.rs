//! claw-rebuild: transcripts of other programs become messages that a provider accepts. No content is lost, and bytes
//! change only where they must. Options, findings, and records that change what is sent (compactions, truncations and
//! retractions, called view records) are also tested here.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use clawutils::input::Input;
use clawutils::messages::Message;
use clawutils::messages::rebuild::{RebuildOptions, from_inputs};
use clawutils::rules::violations;

use crate::common::{AssertExt, Sandbox, rules};
use crate::conversations::Conversation;

/// Rebuilds the transcript `text`, given on standard input.
#[track_caller]
fn rebuild(text: &str, args: &[&str]) -> Assert {
    Sandbox::new().cmd("claw-rebuild").args(args).write_stdin(text).assert()
}

/// Returns the messages of the transcript `text`, as lines. Rebuilding must report no finding.
#[track_caller]
fn messages(text: &str, args: &[&str]) -> Vec<String> {
    rebuild(text, args).success().stderr("").lines()
}

// ---- short records and messages --------------------------------------------------------------

fn user(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"user","content":"{text}"}}"#)
}

fn reply(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn call(id: &str, of: &str) -> String {
    format!(r#"{{"id":"{id}","type":"tool_use","tool_use_id":"{of}","name":"f","input":{{}}}}"#)
}

fn result(id: &str, of: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","type":"tool_result","tool_use_id":"{of}","content":"{text}"}}"#)
}

fn compaction(id: &str, summary: &str, first_kept: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"compaction","summary":"{summary}","first_kept_entry_id":"{first_kept}"}}"#
    )
}

fn retract(id: &str, target: &str) -> String {
    format!(r#"{{"id":"{id}","type":"retract","target":"{target}"}}"#)
}

fn user_message(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

fn assistant_message(text: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

fn summary_message(text: &str) -> String {
    user_message(&format!(r"[Previous conversation summary]\n{text}"))
}

/// Returns three turns: q1, a1; q2, a call with its result, a2; q3, a3.
fn three_turns() -> Vec<String> {
    vec![
        user("u1", "q1"),
        reply("r1", "a1"),
        user("u2", "q2"),
        reply("r2", "look"),
        call("c2", "t2"),
        result("o2", "t2", "out"),
        reply("e2", "a2"),
        user("u3", "q3"),
        reply("r3", "a3"),
    ]
}

/// Returns the messages of [`three_turns`].
fn messages_of_turns() -> Vec<String> {
    let look =
        r#"{"type":"text","text":"look"},{"type":"tool_use","id":"t2","name":"f","input":{}}"#;
    let out = r#"{"type":"tool_result","tool_use_id":"t2","content":"out"}"#;
    vec![
        user_message("q1"),
        assistant_message("a1"),
        user_message("q2"),
        format!(r#"{{"role":"assistant","content":[{look}]}}"#),
        format!(r#"{{"role":"user","content":[{out}]}}"#),
        assistant_message("a2"),
        user_message("q3"),
        assistant_message("a3"),
    ]
}

/// Returns [`three_turns`] followed by further records.
fn three_turns_and(more: &[String]) -> String {
    [three_turns().as_slice(), more].concat().join("\n")
}

// ---- transcripts of other programs -----------------------------------------------------------

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Returns every transcript of claw0: its name and its text.
fn corpus() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for source in ["claw0-first", "claw0-present"] {
        for entry in walkdir::WalkDir::new(data().join(source)).sort_by_file_name() {
            let path = entry.expect("a readable corpus").into_path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let stem = path.file_stem().expect("a name").display();
                let text = fs::read_to_string(&path).expect("a transcript");
                all.push((format!("{source}-{stem}"), text));
            }
        }
    }
    assert_eq!(all.len(), 7);
    all
}

/// Returns every transcript in the test data that these tests rebuild, whichever program wrote it.
fn fixtures() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in walkdir::WalkDir::new(data()).sort_by_file_name() {
        let path = entry.expect("a readable directory").into_path();
        let name =
            path.strip_prefix(data()).expect("a path in the directory").display().to_string();
        // golden/ has messages, dialects/ has sessions of other programs, recall/ has long conversations without anything
        // unusual, and compactions cover most of show/.
        let is_other =
            ["golden", "dialects", "recall", "show"].iter().any(|other| name.starts_with(other));
        if name.ends_with(".jsonl") && !is_other {
            all.push((name, fs::read_to_string(&path).expect("a transcript")));
        }
    }
    assert!(all.len() > corpus().len());
    all
}

fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns the blocks of a content; a string is one text block.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        other => panic!("content: {other}"),
    }
}

/// Returns the blocks of all these messages or records, each of which must have content.
fn all_blocks(values: &[Value]) -> Vec<Value> {
    values.iter().flat_map(|value| blocks(&value["content"])).collect()
}

/// Returns the member `name` of each block of a type, sorted.
fn members(blocks: &[Value], kind: &str, name: &str) -> Vec<String> {
    let of_kind = blocks.iter().filter(|block| block["type"] == kind);
    let mut found: Vec<String> =
        of_kind.map(|block| block[name].as_str().expect("a string").to_owned()).collect();
    found.sort();
    found
}

#[test]
fn transcripts_of_claw0_match_their_golden_files() {
    for (name, text) in corpus() {
        let run = rebuild(&text, &[]).success().stderr("");
        let golden = data().join("golden").join(format!("{name}.jsonl"));
        if env::var_os("CLAW_BLESS").is_some() {
            fs::create_dir_all(golden.parent().expect("a directory")).expect("a directory");
            fs::write(&golden, &run.get_output().stdout).expect("a golden file");
        }
        let expected = fs::read(&golden).expect("a golden file; CLAW_BLESS=1 writes it");
        assert!(run.get_output().stdout == expected, "expected: {}\n{run}", golden.display());
        assert!(
            run.get_output().stdout == rebuild(&text, &[]).get_output().stdout,
            "{name}: a second run printed something else"
        );
    }
}

#[test]
fn no_text_of_claw0_transcripts_is_lost() {
    for (name, text) in corpus() {
        let records = values(&text);
        let of = |kind: &str| -> Vec<Value> {
            records.iter().filter(|record| record["type"] == kind).cloned().collect()
        };
        let messages = rebuild(&text, &[]).json();
        let (written, shown) = ([of("user"), of("assistant")].concat(), all_blocks(&messages));
        let texts = members(&all_blocks(&written), "text", "text");
        assert_eq!(members(&shown, "text", "text"), texts, "{name}");

        let mut calls: Vec<_> = of("tool_use").iter().map(|r| r["tool_use_id"].clone()).collect();
        calls.sort_by_key(Value::to_string);
        assert_eq!(json!(members(&shown, "tool_use", "id")), json!(calls), "{name}");
        assert_eq!(json!(members(&shown, "tool_result", "tool_use_id")), json!(calls), "{name}");

        let output = |record: &Value| match &record["content"] {
            Value::Null => (record["tool_use_id"].clone(), record["output"].clone()),
            content => (record["tool_use_id"].clone(), content.clone()),
        };
        let outputs: Vec<_> = of("tool_result").iter().map(output).collect();
        let results = shown.iter().filter(|block| block["type"] == "tool_result").map(output);
        assert_eq!(results.collect::<Vec<_>>(), outputs, "{name}");
    }
}

/// When the programs that wrote these files load them again, the provider refuses their requests: one format has
/// every call twice, the other has results before their calls.
#[cfg(feature = "http")]
#[test]
fn a_provider_accepts_transcripts_that_it_refuses_from_claw0() {
    for (name, text) in corpus() {
        let (sandbox, provider) = (Sandbox::new(), crate::common::provider::FakeProvider::new());
        sandbox.write("s.jsonl", &text);
        let script = "claw-append --user s.jsonl && claw-rebuild s.jsonl | claw-call";
        sandbox
            .sh(script)
            .envs(provider.env())
            .write_stdin("and now?")
            .assert()
            .success()
            .stderr("")
            .stdout(contains(r#""type":"assistant""#));
        let request = provider.single_request();
        assert_eq!(request.status, 200, "{name}");
        provider.all_legal();

        let sent = all_blocks(request.messages());
        let mut calls = members(&sent, "tool_use", "id");
        let results = members(&sent, "tool_result", "tool_use_id");
        assert_eq!(calls, results, "{name}: calls and results do not match");
        calls.dedup();
        assert_eq!(calls.len(), results.len(), "{name}: a call was sent twice");
        assert_eq!(
            calls.len(),
            text.matches(r#""type": "tool_use", "tool_use_id""#).count()
                + text.matches(r#""type": "tool_use", "name""#).count(),
            "{name}: a call was not sent"
        );
    }
}

// ---- appended records extend only the end ---------------------------------------------------

/// Returns transcripts whose prefixes are difficult to rebuild. None of them has late results or view records.
fn difficult() -> Vec<(String, String)> {
    let thinking =
        r#"{"type":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}"#;
    let both = r#"{"type":"assistant","content":[{"type":"text","text":"both"}]}"#;
    let own = [
        r#"{"id":"81efc48888b7","type":"session","key":"a:b:c","label":"","created":"x","version":1}"#,
        &reply("a0", "the assistant begins"),
        &user("u1", "q1"),
        &user("u2", " "),
        &user("u3", "more of q1"),
        thinking,
        both,
        &call("c1", "t1"),
        &call("c2", "t2"),
        &result("o1", "t1", "one"),
        &result("o2", "t2", ""),
        r#"{"id":"e1","type":"error","class":"overloaded","status":529,"message":"busy"}"#,
        &reply("r3", "a1"),
        &reply("r4", ""),
        r#"{"id":"k1","type":"checkpoint","summary":"so far"}"#,
        &user("u4", "q2"),
        // A call without a result, and an id that is used twice.
        &call("c3", "t1"),
        &user("u5", "stop"),
        &reply("r5", "a2"),
        &call("c4", "t1"),
        &result("o4", "t1", "again"),
        r#"{"id":"x1","type":"progress","percent":5}"#,
        "[1]",
        r#"{"type":"user","content":"torn"#,
        // A result before its call, and a result without a call.
        &result("o5", "t5", "early"),
        &result("o6", "nobody", "orphan"),
        &user("u6", "q3"),
        &call("c5", "t5"),
        &reply("r6", "a3"),
    ];
    vec![
        ("own".to_owned(), own.join("\n") + "\n"),
        ("three turns".to_owned(), three_turns_and(&[]) + "\n"),
    ]
}

/// The messages of the first lines of a transcript, and the number of late results among those lines.
struct Prefix {
    lines: Vec<String>,
    late_results: usize,
}

impl Prefix {
    fn of(text: &str) -> Prefix {
        let run = rebuild(text, &[]).success();
        let lines = run.lines();
        Prefix { lines, late_results: run.stderr_text().matches("late-result:").count() }
    }
}

/// Returns true if the message `grown` extends `last`. Results precede all other blocks, in the order of their calls,
/// so a new result may stand between old results. Other new blocks must be at the end.
fn holds_all_of(grown: &Value, last: &Value) -> bool {
    let mut rest = blocks(&last["content"]).into_iter().peekable();
    let mut new = Vec::new();
    for block in blocks(&grown["content"]) {
        if rest.next_if_eq(&block).is_none() {
            new.push((block["type"] == "tool_result", rest.peek().is_some()));
        }
    }
    let is_in_place = new.iter().all(|(is_result, is_between)| *is_result || !is_between);
    last["role"] == grown["role"] && rest.peek().is_none() && is_in_place
}

#[test]
fn o1_appended_records_only_extend_the_last_message() {
    for (name, text) in fixtures().into_iter().chain(difficult()) {
        let mut before = Prefix::of("");
        let mut prefix = String::new();
        for line in text.split_inclusive('\n') {
            prefix.push_str(line);
            let now = Prefix::of(&prefix);
            let is_view = ["compaction", "truncation", "retract"]
                .iter()
                .any(|kind| line.contains(&format!(r#""type":"{kind}""#)));
            if let Some((last, settled)) = before.lines.split_last()
                && !is_view
                && now.late_results == before.late_results
            {
                assert_eq!(now.lines[..settled.len()], *settled, "{name}, after: {line}");
                let (last, grown) = (&values(last)[0], &values(&now.lines[settled.len()])[0]);
                assert!(holds_all_of(grown, last), "{name}, after: {line}{last}\n{grown}");
            }
            before = now;
        }
        assert!(before.lines.len() > 1, "{name}");
    }
}

/// Returns the bytes of the thinking blocks in a line's content.
fn thinking(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let members: HashMap<String, Box<RawValue>> = serde_json::from_str(line).expect("an object");
    let content = members.get("content").map(|content| content.get()).unwrap_or_default();
    for raw in serde_json::from_str::<Vec<Box<RawValue>>>(content).unwrap_or_default() {
        let block: Value = serde_json::from_str(raw.get()).expect("a block");
        if block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking")) {
            found.push(raw.get().to_owned());
        }
    }
    found
}

/// Providers verify the signature of a thinking block against its bytes.
#[test]
fn h2_thinking_is_replayed_byte_for_byte() {
    let mut count = 0;
    for (name, text) in fixtures() {
        let stored: Vec<String> = text.lines().flat_map(thinking).collect();
        count += stored.len();
        let messages = rebuild(&text, &[]).success().stdout_text();
        let sent = |messages: &str| messages.lines().flat_map(thinking).collect::<Vec<_>>();
        assert_eq!(sent(&messages), stored, "{name}");

        // The blocks are also unchanged after claw-append, after claw-truncate, and in the body of a request.
        let sandbox = Sandbox::new();
        sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(text.clone()).assert().success();
        let run = sandbox.cmd("claw-rebuild").args(["--meta", "s.jsonl"]).assert().success();
        assert_eq!(sent(&run.stdout_text()), stored, "{name}");
        let cut = ["--max-fraction", "0.01", "--window", "99000"];
        let cut = sandbox
            .cmd("claw-truncate")
            .args(cut)
            .write_stdin(run.get_output().stdout.clone())
            .assert();
        assert_eq!(sent(&cut.success().stdout_text()), stored, "{name}");
        if cfg!(feature = "http") && !stored.is_empty() {
            let options = ["--dry-run", "--provider", "offline", "--model", "m"];
            let body = sandbox
                .cmd("claw-call")
                .args(options)
                .write_stdin(run.get_output().stdout.clone())
                .assert();
            let body = body.success().stdout_text();
            stored.iter().for_each(|block| assert!(body.contains(block), "{name}: {block}"));
        }
    }
    assert!(count > 3, "only {count} blocks");
}

// ---- any file --------------------------------------------------------------------------------

/// Members of records. `ID` is one of a few call ids, `REC` the id of this record or an earlier one.
const PIECES: &[&str] = &[
    r#""type":"user","content":"ask""#,
    r#""type":"user","content":" ""#,
    r#""type":"user","content":[{"type":"text","text":""},{"type":"text","text":"list"}]"#,
    r#""type":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"ID","content":"r"}]"#,
    r#""type":"assistant","content":"text""#,
    r#""type":"assistant","content":[]"#,
    r#""type":"assistant","content":[{"type":"text","text":"\n"}]"#,
    r#""type":"assistant","content":[{"type":"thinking","thinking":"no signature"}]"#,
    r#""type":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"a"}]"#,
    r#""type":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"ID","name":"f","input":{}}]"#,
    r#""type":"tool_use","tool_use_id":"ID","name":"f","input":{}"#,
    r#""type":"tool_use","tool_use_id":"ID","name":"f","input":{"other":1}"#,
    r#""type":"tool_result","tool_use_id":"ID","content":"r""#,
    r#""type":"tool_result","tool_use_id":"ID","content":[],"is_error":true"#,
    r#""type":"tool_result","tool_use_id":"ID","output":"first format""#,
    r#""type":"tool_result","tool_use_id":"ID","content":[{"type":"text","text":" "},{"type":"text","text":"r"}]"#,
    r#""type":"compaction","summary":"S","first_kept_entry_id":"REC""#,
    r#""type":"retract","target":"REC""#,
    r#""type":"truncation","tool_use_id":"ID","record_id":"REC","head":1,"tail":0,"bytes":9,"sha256":"0""#,
    r#""type":"session","created":"x""#,
    r#""type":"user""#,
];

/// Rebuilds the transcript `text` in this process. Fails if [`violations`] finds a reason not to
/// send the messages.
#[track_caller]
fn rebuild_here(text: &str) -> Vec<Value> {
    let input = Input::memory("t", text.as_bytes().to_vec());
    let rebuilt = from_inputs(&[input], &RebuildOptions::default()).expect("messages");
    let broken = violations(&rebuilt.messages);
    assert!(broken.is_empty(), "{}\n{text}", broken[0]);
    let lines = rebuilt.messages.iter().map(Message::to_json);
    lines.map(|line| serde_json::from_str(&line).expect("JSON")).collect()
}

#[test]
fn a_provider_accepts_the_messages_of_any_file() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |count: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % count
    };
    for round in 0..300 {
        let mut lines = Vec::new();
        for n in 0..3 + below(15) {
            let id = ["t1", "t2", "t:3", "t.3"][below(4)];
            let piece = PIECES[below(PIECES.len())].replace("ID", id);
            let piece = piece.replace("REC", &format!("r{}", below(n + 1)));
            lines.push(format!(r#"{{"id":"r{n}",{piece}}}"#));
        }
        lines.push(user("last", "go on"));
        let text = lines.join("\n");
        let messages = rebuild_here(&text);
        if round < 10 {
            assert_eq!(rebuild(&text, &["--ready"]).success().json(), messages, "{text}");
        }
        let body = json!({"model": "m", "max_tokens": 1, "messages": messages});
        if let Err(violation) = rules::check(&body, b"") {
            panic!("{violation:#?}\n{body:#}\n{text}");
        }
    }
}

// ---- output: options ------------------------------------------------------------------------

#[test]
fn an_array_holds_the_same_messages() {
    let text = three_turns_and(&[]);
    rebuild(&text, &["--array"])
        .success()
        .stdout(format!("[{}]\n", messages_of_turns().join(",\n")));
    assert_eq!(rebuild(&text, &["--array"]).json_one(), json!(rebuild(&text, &[]).json()));
    rebuild("", &["--array"]).success().stdout("[]\n");
    rebuild("", &[]).success().stdout("").stderr("");
}

#[test]
fn meta_lists_the_records_of_a_message() {
    let usage = r#"{"input_tokens":5,"output_tokens":7}"#;
    let text = three_turns_and(&[]).replacen(
        r#""text":"a1"}]}"#,
        &format!(r#""text":"a1"}}],"usage":{usage}}}"#),
        1,
    );
    let at = |line: usize| -> (usize, usize) {
        let starts: usize = text.lines().take(line).map(|line| line.len() + 1).sum();
        (starts, starts + text.lines().nth(line).expect("a line").len())
    };
    let metas: Vec<Value> = rebuild(&text, &["--meta"])
        .success()
        .json()
        .into_iter()
        .map(|message| message["_meta"].clone())
        .collect();
    let (ask, answer, look, called, out) = (at(0), at(1), at(3), at(4), at(5));
    assert_eq!(metas[0], json!({"id": "u1", "offset": ask.0, "end": ask.1}));
    let usage: Value = serde_json::from_str(usage).expect("JSON");
    assert_eq!(metas[1], json!({"id": "r1", "offset": answer.0, "end": answer.1, "usage": usage}));
    let sources = json!([{"at": 1, "record": "c2"}]);
    assert_eq!(
        metas[3],
        json!({"id": "r2", "offset": look.0, "end": called.1, "sources": sources})
    );
    let results = json!([{"tool_use_id": "t2", "record": "o2"}]);
    assert_eq!(metas[4], json!({"id": "o2", "offset": out.0, "end": out.1, "results": results}));
    let plain = rebuild(&text, &[]);
    assert!(!plain.stdout_text().contains("_meta"));
    assert_eq!(plain.lines(), messages_of_turns());
}

#[test]
fn every_cut_and_turn_can_be_undone() {
    let sandbox = Sandbox::new();
    let turn =
        |n: usize| [user(&format!("u{n}"), "hi"), reply(&format!("a{n}"), "yes")].join("\n") + "\n";
    let cut = |first: &str| compaction(&format!("k{first}"), "S", first) + "\n";
    let steps = [turn(1), turn(2), cut("u2"), turn(3), cut("u3"), turn(4)];
    sandbox.write("s.jsonl", steps[..4].concat());
    let messages = |text: &str| rebuild(text, &[]).success().stdout_text();
    let undo = |what: &str| {
        let undo = "claw-rebuild --undo \"$WHAT\" s.jsonl >undo && claw-append s.jsonl <undo";
        sandbox.sh(undo).env("WHAT", what).assert()
    };
    let shown = || messages(&sandbox.read_text("s.jsonl"));
    undo("turn").success();
    assert_eq!(shown(), messages(&steps[..3].concat()));
    undo("cut").success();
    assert_eq!(shown(), messages(&steps[..2].concat()));
    let before = sandbox.read("s.jsonl");
    undo("cut").code(5).stderr("claw-rebuild: nothing to undo: no cut is in effect\n");
    assert_eq!(sandbox.read("s.jsonl"), before);

    sandbox.write("s.jsonl", steps.concat());
    for left in [5, 4] {
        undo(if left == 5 { "turn" } else { "cut" }).success();
        assert_eq!(shown(), messages(&steps[..left].concat()), "{left}");
    }
    undo("half").code(2);
    rebuild("", &["--undo", "cut", "--meta"]).code(2);
}

/// Without a hint (`first_kept_offset`), the first kept record of a compaction is the nearest record before it whose
/// line has the id without escapes. The result must not depend on whether ids are searched for or looked up in an
/// index. The index is built when a second id is not found, so the test appends 0 to 3 compactions whose first kept
/// record does not exist.
#[test]
fn audit_24_an_id_with_escapes_is_found_only_by_a_hint() {
    let escaped = r#"{"id":"caf\u00e9","type":"user","content":"escaped"}"#;
    let lost = r#"{"type":"compaction","summary":"lost","first_kept_entry_id":"none"}"#;
    let rebuilt = |body: &str, misses: usize| {
        let text = format!("{body}\n{}", format!("{lost}\n").repeat(misses));
        rebuild(&text, &[]).success().lines().concat()
    };
    let plain = [user("x", "first"), user("caf\u{e9}", "plain"), escaped.to_owned()].join("\n");
    let kept = r#"{"type":"compaction","summary":"kept","first_kept_entry_id":"caf\u00e9""#;
    let hint = plain.len() - escaped.len();
    let by_id = format!("{plain}\n{kept}}}");
    let by_hint = format!("{plain}\n{kept},\"first_kept_offset\":{hint}}}");
    let escaped_only = format!("{}\n{escaped}\n{kept}}}", user("x", "first"));
    for misses in 0..4 {
        let shows = |body: &str, expected: [bool; 3]| {
            let text = rebuilt(body, misses);
            let found = ["first", "plain", "escaped"].map(|word| text.contains(word));
            assert_eq!(found, expected, "after {misses} misses: {text}");
        };
        shows(&by_id, [false, true, true]);
        shows(&by_hint, [false, false, true]);
        shows(&escaped_only, [true, false, true]);
    }
}

#[test]
fn cuts_that_did_not_help_against_a_refused_block_are_undone_together() {
    let refusal = |fault: &str| format!(r#"{{"type":"error","fault":"{fault}"}}"#);
    let [block, tokens] = ["block", "tokens"].map(refusal);
    let cut =
        |id: &str, kept: &str| format!(r#"{{"id":"{id}",{}"#, &compaction("", "S", kept)[9..]);
    let [c1, c2, c3] = [cut("c1", "u2"), cut("c2", "u2"), cut("c3", "u2")];
    let retract = r#"{"type":"retract","target":"c1","undo":"refused"}"#.to_owned();
    for (end, undone) in [
        (vec![&c1, &block, &c2, &block, &c3, &block], vec!["c3", "c2"]),
        (vec![&block, &c1, &c2], vec!["c2", "c1"]),
        // Those against an overflow helped, or at least do no harm.
        (vec![&block, &c1, &tokens, &c2, &block, &c3], vec!["c3"]),
        // Earlier ones were undone already.
        (vec![&block, &c1, &block, &retract, &c2, &block, &c3, &block], vec!["c3"]),
        (vec![&c1, &block], vec![]),
        (vec![&c1], vec![]),
        (vec![], vec![]),
    ] {
        let end: Vec<String> = end.into_iter().cloned().collect();
        let run = rebuild(&three_turns_and(&end), &["--undo", "refused"]);
        let expected: Vec<Value> = undone
            .iter()
            .enumerate()
            .map(|(n, id)| match n {
                0 => json!({"type": "retract", "target": id, "undo": "refused"}),
                _ => json!({"type": "retract", "target": id}),
            })
            .collect();
        if expected.is_empty() {
            run.code(5).stderr(contains("no cut follows a refusal of a block"));
        } else {
            assert_eq!(run.success().json(), expected, "{end:?}");
        }
    }
}

#[test]
fn audit_04_redo_reverses_each_undo_until_a_message_is_added() {
    let sandbox = Sandbox::new();
    let turn =
        |n: usize| [user(&format!("u{n}"), "hi"), reply(&format!("a{n}"), "yes")].join("\n") + "\n";
    let cut = compaction("ku2", "S", "u2") + "\n";
    sandbox.write("s.jsonl", [turn(1), turn(2), turn(3), cut].concat());
    let run = |options: &str| {
        let append = "claw-rebuild $OPTIONS s.jsonl >records && claw-append s.jsonl <records";
        sandbox.sh(append).env("OPTIONS", options).assert()
    };
    let shown = || sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().stdout_text();
    let nothing =
        "claw-rebuild: nothing to redo: nothing was undone since the last message or cut\n";
    run("--redo").code(5).stderr(nothing);
    let mut before = Vec::new();
    let undos = ["--undo turn", "--undo cut", "--undo turn", "--undo turn"];
    for undo in undos {
        before.push(shown());
        run(undo).success();
    }
    assert_eq!(shown(), "");
    for before in before.iter().rev() {
        run("--redo").success();
        assert_eq!(&shown(), before);
    }
    run("--redo").code(5).stderr(nothing);
    // A turn that was redone can be undone again.
    run("--undo turn").success();
    assert_eq!(shown(), before[1]);
    run("--redo").success();
    run("--undo turn").success();
    sandbox.sh("claw-append --user s.jsonl").write_stdin("new").assert().success();
    run("--redo").code(5).stderr(nothing);
    rebuild("", &["--redo", "--undo", "cut"]).code(2);
}

#[test]
fn record_prints_one_original_in_full() {
    let long = "x".repeat(100_000);
    let truncation = r#"{"id":"v1","type":"truncation","tool_use_id":"t1","record_id":"o1","head":5,"tail":5,"bytes":100000,"sha256":"0"}"#;
    let [a, b] = [r#"{"type":"text","text":"a\n"}"#, r#"{"type":"text","text":"b"}"#];
    let list = format!(r#"{{"id":"l1","type":"user","content":[{a},{b}]}}"#);
    let seen = format!(r#"[{a},{{"type":"image","source":{{}}}},{b}]"#);
    let text = [
        user("u1", r"two\nlines"),
        call("c1", "t1"),
        result("o1", "t1", &long),
        truncation.to_owned(),
        list,
        format!(r#"{{"id":"i1","type":"user","content":{seen}}}"#),
        r#"{"type":"user","content":"no id"}"#.to_owned(),
    ]
    .join("\n");
    let record = |id: &str| rebuild(&text, &["--record", id]);
    record("u1").success().stdout("two\nlines\n").stderr("");
    record("o1").success().stdout(format!("{long}\n"));
    record("l1").success().stdout("a\nb\n");
    // Content with an image is printed as JSON, because its text alone would be incomplete.
    record("i1").success().stdout(format!("{seen}\n"));
    record("c1").success().stdout(format!("{}\n", call("c1", "t1")));
    let offset = text.find(r#"{"type":"user","content":"no id""#).expect("the last line");
    record(&format!("@{offset}")).success().stdout("no id\n");
    record("o9").code(65).stdout("").stderr("claw-rebuild: cannot find record 'o9'\n");
    record("@1").code(65).stdout("");
}

#[test]
fn record_finds_the_results_of_claw0_by_offset() {
    for (name, text) in corpus() {
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let record: Value = serde_json::from_str(line).expect("JSON");
            if record["type"] == "tool_result" {
                let whole = record["content"].as_str().or(record["output"].as_str());
                let mut whole = whole.expect("a string").to_owned();
                if !whole.ends_with('\n') {
                    whole.push('\n');
                }
                let run = rebuild(&text, &["--record", &format!("@{offset}")]).success();
                assert!(run.get_output().stdout == whole.as_bytes(), "{name}: {whole}\n{run}");
            }
            offset += line.len();
        }
    }
}

#[test]
fn at_reads_up_to_a_record() {
    let text = three_turns_and(&[compaction("v1", "S", "u3")]);
    assert_eq!(messages(&text, &["--at", "r1"]), messages_of_turns()[..2]);
    assert_eq!(messages(&text, &["--at", "c2"]), messages_of_turns()[..4]);
    assert_eq!(messages(&text, &["--at", "r3"]), messages_of_turns());
    let shown = messages(&text, &["--at", "v1"]);
    assert_eq!(shown[0], summary_message("S"));
    rebuild(&text, &["--at", "zz"]).code(65).stdout("").stderr(contains("cannot find record 'zz'"));
    let offset = format!("@{}", three_turns()[0].len() - r#""id":"u1","#.len() + 1);
    let text = text.replace(r#""id":"u1","#, "").replace(r#""id":"r1","#, "");
    assert_eq!(messages(&text, &["--at", &offset]), messages_of_turns()[..2]);
}

#[test]
fn to_turn_reads_up_to_the_end_of_a_turn() {
    for (turn, end) in [("0", 0), ("1", 2), ("2", 6), ("3", 8), ("9", 8)] {
        assert_eq!(
            messages(&three_turns_and(&[]), &["--to-turn", turn]),
            messages_of_turns()[..end],
            "{turn}"
        );
    }
}

#[test]
fn limit_turns_keeps_only_the_last_turns() {
    for (turns, start) in [("0", 8), ("1", 6), ("2", 2), ("3", 0), ("9", 0)] {
        assert_eq!(
            messages(&three_turns_and(&[]), &["--limit-turns", turns]),
            messages_of_turns()[start..],
            "{turns}"
        );
    }
}

#[test]
fn d52_open_calls_are_those_without_a_result() {
    let sandbox = Sandbox::new();
    let open = |conversation: &Conversation| {
        let run =
            sandbox.cmd("claw-rebuild").arg("--open").write_stdin(conversation.lines()).assert();
        let ids = |call: &Value| call["tool_use_id"].as_str().map(str::to_owned);
        run.success().json().iter().filter_map(ids).collect::<Vec<_>>()
    };
    let both = Conversation::of("ucruC", 1);
    assert_eq!(open(&both), ["call_2", "call_3"]);
    assert_eq!(open(&both.clone().answer(0, "x")), ["call_2"]);
    assert_eq!(open(&both.clone().answer(0, "x").answer(1, "x")), [""; 0]);
    // The user continued, so the calls count as interrupted.
    assert_eq!(open(&both.clone().answer(0, "x").user("Stop.")), [""; 0]);
    assert_eq!(open(&Conversation::new()), [""; 0]);
    let error = json!({"type": "error", "class": "busy", "message": "x", "model": "m"});
    assert_eq!(open(&both.record(error)), ["call_2", "call_3"]);
    // A call that is recorded twice is printed once, and a reused id is printed as it is stored.
    let call = r#"{"type":"tool_use","tool_use_id":"a","name":"f","input":{"n": 1e2}}"#;
    let result = r#"{"type":"tool_result","tool_use_id":"a","content":"x"}"#;
    let prompt = r#"{"type":"user","content":"x"}"#;
    let records =
        [prompt, call, result, r#"{"type":"assistant","content":"y"}"#, prompt, call, call];
    sandbox
        .cmd("claw-rebuild")
        .arg("--open")
        .write_stdin(records.join("\n"))
        .assert()
        .success()
        .stdout(format!("{call}\n"));
}

#[test]
fn ready_succeeds_only_if_the_messages_can_be_sent() {
    let lacks_answer =
        [user("u1", "q"), call("c1", "t1"), call("c2", "t2"), result("o1", "t1", "r")];
    for (text, why) in [
        (three_turns_and(&[]), "the last message is the assistant's"),
        (three_turns()[..5].join("\n"), "call 't2' has no result"),
        (lacks_answer.join("\n"), "call 't2' has no result"),
        (String::new(), "there is nothing to send"),
    ] {
        rebuild(&text, &["--ready"])
            .code(7)
            .stdout("")
            .stderr(contains("not ready to send"))
            .stderr(contains(why));
        rebuild(&text, &[]).success();
    }
    assert_eq!(messages(&three_turns()[..3].join("\n"), &["--ready"]), messages_of_turns()[..3]);
    assert_eq!(messages(&three_turns()[..6].join("\n"), &["--ready"]), messages_of_turns()[..5]);
}

// ---- input ----------------------------------------------------------------------------------

#[test]
fn several_files_are_read_as_one() {
    let sandbox = Sandbox::new();
    let text = three_turns_and(&[compaction("v1", "S", "u2")]) + "\n";
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    sandbox.write("a", lines[..3].concat());
    sandbox.write("b", lines[3..5].concat());
    sandbox.write("c", lines[5..].concat());
    let whole = rebuild(&text, &["--meta"]).stdout_text();
    let run = |operands: &[&str], stdin: String| {
        sandbox.cmd("claw-rebuild").arg("--meta").args(operands).write_stdin(stdin).assert()
    };
    run(&["a", "b", "c"], String::new()).success().stdout(whole.clone());
    run(&["a", "-", "c"], lines[3..5].concat()).success().stdout(whole.clone());
    run(&["-"], text.clone()).success().stdout(whole.clone());
    run(&[], text.clone()).success().stdout(whole.clone());
    run(&["a", "nowhere"], String::new()).code(74).stdout("").stderr(contains("'nowhere'"));
}

#[test]
fn records_that_are_not_yet_appended_can_follow_a_transcript() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", three_turns_and(&[]) + "\n");
    sandbox.write("ops.jsonl", compaction("v1", "S", "u3"));
    let run = sandbox.sh("cat s.jsonl ops.jsonl | claw-rebuild").assert().success();
    assert_eq!(run.lines()[0], summary_message("S"));
    sandbox.cmd("claw-rebuild").args(["s.jsonl", "ops.jsonl"]).assert().stdout(run.stdout_text());
}

#[test]
fn the_header_of_a_session_tree_after_records_is_refused() {
    let tree = r#"{"type":"session","version":3,"id":"5f0c","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}"#;
    rebuild(&format!("{}\n{tree}", r#"{"type":"user","content":"hi"}"#), &[])
        .code(65)
        .stderr(contains("'<stdin>'"))
        .stderr(contains("pi, OpenClaw or GoClaw"));
}

// ---- findings -------------------------------------------------------------------------------

/// Returns [`three_turns`] with a torn line after the first turn.
fn torn() -> String {
    let mut lines = three_turns();
    lines.insert(2, r#"{"id":"z","type":"user","content":"日"#.to_owned());
    lines.join("\n")
}

#[test]
fn a_finding_names_input_line_byte_length_and_reason() {
    let offset = three_turns()[0].len() + three_turns()[1].len() + 2;
    let run = rebuild(&torn(), &[]).success();
    assert_eq!(run.lines(), messages_of_turns());
    let place = format!("'<stdin>' line 3, byte {offset}, 38 bytes");
    let run = run.stderr(contains(format!("claw-rebuild: torn-line: {place}: torn after byte ")));
    assert_eq!(
        run.stderr_text().lines().count(),
        2,
        "expected one line for the finding and one for the count"
    );

    let run = rebuild(&torn(), &["--log", "json"]);
    let findings = values(run.success().stderr_text());
    let place = json!({"program": "claw-rebuild", "rule": "torn-line", "severity": "error",
        "input": "<stdin>", "line": 3, "offset": offset, "length": 38, "id": null, "repaired": false,
        "message": findings[0]["message"]});
    assert_eq!(findings[0], place);
    assert_eq!(findings.len(), 2);

    let sandbox = Sandbox::new();
    sandbox.write("a b.jsonl", torn());
    sandbox
        .cmd("claw-rebuild")
        .arg("a b.jsonl")
        .assert()
        .success()
        .stderr(contains("torn-line: 'a b.jsonl' line 3, "));
}

#[test]
fn v20_strict_makes_any_finding_an_error() {
    let odd = r#"{"id":"z","type":"user"}"#;
    let late = three_turns_and(&[user("u4", "q4"), result("o9", "t9", "orphan")]);
    for text in
        [torn(), three_turns_and(&[odd.to_owned()]), late, three_turns_and(&["\0".to_owned()])]
    {
        rebuild(&text, &[]).success();
        rebuild(&text, &["--strict"])
            .code(65)
            .stdout("")
            .stderr(contains("claw-rebuild: 1 finding"));
    }
    assert_eq!(messages(&three_turns_and(&[]), &["--strict"]), messages_of_turns());
}

#[test]
fn v17_a_late_result_is_moved_to_its_call_and_reported() {
    let calls = [user("u1", "q"), call("c1", "t1"), call("c2", "t2"), result("o2", "t2", "two")];
    for between in [reply("r1", "a"), user("u2", "go on"), call("c3", "t3")] {
        let text = [calls.as_slice(), &[between, result("o1", "t1", "one")]].concat().join("\n");
        let run = rebuild(&text, &[])
            .success()
            .stderr(contains("late-result: '<stdin>' line 6, "))
            .stderr(contains("'t1'"))
            .stderr(contains("open-call").not());
        let results = run.json()[2]["content"].clone();
        assert_eq!(
            (&results[0]["content"], &results[1]["content"]),
            (&json!("one"), &json!("two"))
        );
    }
    // Results in another order than their calls are not late.
    let text = [calls.as_slice(), &[result("o1", "t1", "one")]].concat().join("\n");
    rebuild(&text, &[]).success().stderr("");
}

#[test]
fn v4_both_records_of_a_fused_line_are_recovered() {
    let text = three_turns_and(&[]);
    let fused = text.replacen("}]}\n", "}]}", 1);
    let run = rebuild(&fused, &[]).success();
    assert_eq!(run.lines(), messages_of_turns());
    run.stderr(contains("line 2, ")).stderr(contains("line 3, ").not());
}

// ---- view records ---------------------------------------------------------------------------

const UNDERSTOOD: &str =
    r#"{"role":"assistant","content":"Agreed. Let me build on this summary."}"#;

/// Returns the messages of [`three_turns`] after a compaction that keeps only the last turn.
fn last_turn_under(summary: &str) -> Vec<String> {
    vec![
        summary_message(summary),
        UNDERSTOOD.to_owned(),
        user_message("q3"),
        assistant_message("a3"),
    ]
}

#[test]
fn a_compaction_replaces_what_precedes_its_first_kept_record() {
    let text = three_turns_and(&[compaction("v1", "S", "u3")]);
    assert_eq!(messages(&text, &[]), last_turn_under("S"));
    assert_eq!(messages(&text, &["--ignore-compactions"]), messages_of_turns());

    // If the assistant's message is next, the summary, which is a user message, needs no acknowledgement.
    let text = three_turns_and(&[compaction("v1", "S", "e2")]);
    let rest = [assistant_message("a2"), user_message("q3"), assistant_message("a3")];
    assert_eq!(messages(&text, &[]), [&[summary_message("S")], rest.as_slice()].concat());

    // With kept prompts and a pinned text.
    let kept = r#"{"id":"v1","type":"compaction","summary":"S","first_kept_entry_id":"u3","kept_user":["q1","q2"],"pinned":["p"]}"#;
    let first = rebuild(&three_turns_and(&[kept.to_owned()]), &[]).json()[0]["content"].clone();
    assert_eq!(
        first,
        "[Previous conversation summary]\nS\n\n[Words of the user, kept as they were]\nq1\n\nq2\n\n[Pinned, kept as it was]\np"
    );
}

#[test]
fn messages_after_a_compaction_follow_the_kept_messages() {
    let text = three_turns_and(&[compaction("v1", "S", "u3"), user("u4", "q4")]);
    assert_eq!(messages(&text, &[]), [last_turn_under("S"), vec![user_message("q4")]].concat());
}

#[test]
fn v30_only_the_newest_of_two_compactions_applies() {
    let text = three_turns_and(&[compaction("v1", "old", "u2"), compaction("v2", "new", "u3")]);
    assert_eq!(messages(&text, &[]), last_turn_under("new"));
    // This also applies if the newer compaction keeps more records.
    let text = three_turns_and(&[compaction("v1", "old", "u3"), compaction("v2", "new", "u2")]);
    let shown = messages(&text, &[]);
    assert_eq!(shown[0], summary_message("new"));
    assert_eq!(shown[2..], messages_of_turns()[2..]);
}

#[test]
fn v30_a_missing_first_kept_record_drops_nothing() {
    let text = three_turns_and(&[compaction("v1", "S", "nowhere")]);
    let run = rebuild(&text, &[]).success();
    assert_eq!(run.lines(), messages_of_turns());
    run.stderr(contains("unknown-first-kept: '<stdin>' line 10, ")).stderr(contains("'nowhere'"));
    // An older compaction applies, as if the newer one did not exist.
    let text = three_turns_and(&[compaction("v1", "S", "u3"), compaction("v2", "T", "nowhere")]);
    assert_eq!(rebuild(&text, &[]).success().lines(), last_turn_under("S"));
    // A compaction cannot keep a record that follows it.
    let text = three_turns_and(&[compaction("v1", "S", "u4"), user("u4", "q4")]);
    rebuild(&text, &[]).success().stderr(contains("unknown-first-kept"));
    rebuild(&text, &["--strict"]).code(65).stdout("");
}

#[test]
fn a_compaction_resolves_a_duplicate_id_by_hint_or_to_the_nearest_record() {
    let view = |hint: &str| compaction("v1", "S", "u1").replace('}', &format!("{hint}}}"));
    for between in ["", "\n"] {
        let records = [user("u1", "far"), user("u1", "near")].join(between);
        let shown =
            |hint: &str| rebuild(&format!("{records}\n{}", view(hint)), &[]).success().lines();
        let near = [summary_message("S"), UNDERSTOOD.to_owned(), user_message("near")];
        assert_eq!(shown(""), near);
        // A hint is used only if it is right.
        assert_eq!(shown(r#","first_kept_offset":3"#), near);
        assert!(shown(r#","first_kept_offset":0"#)[2].contains("far"));
    }
}

#[test]
fn a_retraction_reverses_a_compaction() {
    let one = compaction("v1", "S", "u3");
    assert_eq!(
        messages(&three_turns_and(&[one.clone(), retract("w1", "v1")]), &[]),
        messages_of_turns()
    );
    // If the newer of two compactions is retracted, the older one applies.
    let two = compaction("v2", "T", "u3");
    let text = three_turns_and(&[one.clone(), two, retract("w1", "v2")]);
    assert_eq!(messages(&text, &[]), last_turn_under("S"));
    // Retracting the retraction restores the compaction, and a third retraction removes it again.
    let back = [one, retract("w1", "v1"), retract("w2", "w1")];
    assert_eq!(messages(&three_turns_and(&back), &[]), last_turn_under("S"));
    let gone = [back.as_slice(), &[retract("w3", "w2")]].concat();
    assert_eq!(messages(&three_turns_and(&gone), &[]), messages_of_turns());
}

#[test]
fn a_retraction_removes_a_message() {
    let text = three_turns_and(&[user("u4", "oops"), user("u5", "q4"), retract("w1", "u4")]);
    assert_eq!(messages(&text, &[]), [messages_of_turns(), vec![user_message("q4")]].concat());
    assert_eq!(messages(&text, &["--at", "u4"]).last(), Some(&user_message("oops")));
    rebuild(&text, &["--record", "u4"]).success().stdout("oops\n");
    // The first record that a compaction kept can be retracted; the kept part still begins at its position.
    let text = three_turns_and(&[compaction("v1", "S", "u3"), retract("w1", "u3")]);
    assert_eq!(messages(&text, &[]), [summary_message("S"), assistant_message("a3")]);
}

#[test]
fn a_retraction_of_a_missing_record_is_a_finding() {
    let run = rebuild(&three_turns_and(&[retract("w1", "nowhere")]), &[]).success();
    assert_eq!(run.lines(), messages_of_turns());
    run.stderr(contains("unknown-target: '<stdin>' line 10, ")).stderr(contains("'nowhere'"));
}

#[test]
fn a_line_without_an_id_is_addressed_by_its_offset() {
    let (_, text) = corpus().pop().expect("a transcript");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let offset: usize = lines[..2].iter().map(|line| line.len()).sum();
    let view = compaction("v1", "S", &format!("@{offset}"));
    let shown = rebuild(&format!("{text}{view}\n"), &[]).success().stderr("").lines();
    assert_eq!(shown[0], summary_message("S"));
    assert_eq!(shown[2..], messages(&lines[2..].concat(), &[]));
    let view = retract("w1", &format!("@{offset}"));
    let rest = [lines[..2].concat(), lines[3..].concat()].concat();
    assert_eq!(messages(&format!("{text}{view}\n"), &[]), messages(&rest, &[]));
}

// ---- bytes ----------------------------------------------------------------------------------

#[test]
fn lone_surrogates_are_replaced_on_output_and_pairs_are_kept() {
    for (stored, sent) in [
        (r"a\ud83d", r"a\ufffd"),
        (r"\ude00b", r"\ufffdb"),
        (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
        (r"\uD83D\uDE00 \uDE00", r"\uD83D\uDE00 \ufffd"),
        (r"\ud83d\\ude00", r"\ufffd\\ude00"),
        (r"\\ud83d", r"\\ud83d"),
        (r"\ud83d\ude00", r"\ud83d\ude00"),
    ] {
        let input = format!(
            r#"{{"type":"tool_use","tool_use_id":"t","name":"f","input":{{"{stored}":["{stored}"]}}}}"#
        );
        let text =
            [user("u", stored), reply("r", stored), input, result("o", "t", stored)].join("\n");
        let out = rebuild(&text, &[]).success().lines().join("\n");
        assert_eq!(out.matches(&format!("\"{sent}\"")).count(), 5, "{stored}: {out}");
        // The file keeps the original bytes.
        let sandbox = Sandbox::new();
        sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(text).assert().success();
        assert_eq!(sandbox.read_text("s.jsonl").matches(&format!("\"{stored}\"")).count(), 5);
    }
}

/// A note reports that the request differs from the transcript. Lone surrogates are not damage, so `--strict` accepts
/// them.
#[test]
fn b_3_the_number_of_replaced_surrogates_is_reported() {
    let sent =
        [user("u1", r"a\ud83d b\udc00"), user("u2", r"\ud83d\ude00 \ude00"), reply("r", "ok")];
    for args in [&[][..], &["--meta"], &["--array"], &["--strict"]] {
        rebuild(&sent.join("\n"), args)
            .success()
            .stderr("claw-rebuild: replaced 3 lone surrogates with U+FFFD\n");
    }
    rebuild(&user("u", r"\ud83d"), &["--ready"])
        .success()
        .stderr("claw-rebuild: replaced 1 lone surrogate with U+FFFD\n");
    let run = rebuild(&sent.join("\n"), &["--log", "json"]);
    assert_eq!(values(run.success().stderr_text())[0]["replaced"], 3);
    // Nothing is replaced in content that is not sent.
    let covered = [sent.as_slice(), &[compaction("v", "S", "r")]].concat().join("\n");
    rebuild(&covered, &[]).success().stderr("");
    rebuild(&user("u", r"\ud83d\ude00 \\ud83d"), &[]).success().stderr("");
}

#[test]
fn v8_bytes_that_need_no_change_are_not_changed() {
    let text_block = r#"{ "text" : "\u00e9\/\t日" ,"type":"text", "n":1e2,"m":-0.0,"x":1e400 }"#;
    let thinking = r#"{"signature":"s=","thinking":"\u2028","type":"thinking"}"#;
    let called = r#"{"type":"tool_use","id":"t1","name":"f","input":{"b":12345678901234567890123,"a":9007199254740993,"b":1}}"#;
    let list =
        r#"[{"type":"text","text":"\u0041"}, {"type":"image","source":{"type":"url","url":"x"}}]"#;
    let content = format!("[{text_block},\t{thinking} , {called}]");
    let records = [
        format!(r#"{{"type":"user","content":[{text_block}]}}"#),
        format!(r#"{{"type":"assistant","content":{content}}}"#),
        format!(r#"{{"type":"tool_result","tool_use_id":"t1","content":{list}}}"#),
    ]
    .join("\n");
    let expected = [
        format!(r#"{{"role":"user","content":[{text_block}]}}"#),
        format!(r#"{{"role":"assistant","content":[{text_block},{thinking},{called}]}}"#),
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":{list}}}]}}"#
        ),
    ];
    assert_eq!(messages(&records, &[]), expected);
    // The bytes are also unchanged after claw-append.
    let sandbox = Sandbox::new();
    let run =
        sandbox.sh("claw-append s.jsonl && claw-rebuild s.jsonl").write_stdin(records).assert();
    assert_eq!(run.success().lines(), expected);
}

#[test]
fn v8_separators_inside_strings_split_nothing() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\\u000be\\u000cf";
    assert_eq!(messages(&user("u", text), &[]).len(), 1);
    assert_eq!(messages(&user("u", text), &[])[0].matches("\\u000be").count(), 1);
}

#[test]
fn v8_deep_and_large_records_are_read() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"type":"user","content":"deep","x":{deep}}}"#);
    let long = user("u2", &"x".repeat(4 << 20));
    let run = rebuild(&[deep, long, reply("r", "end")].join("\n"), &[]);
    let shown = run.success().json();
    assert_eq!(shown.last().expect("a message")["content"][0]["text"], "end");
    let blocks = all_blocks(&shown[..1]);
    assert_eq!(members(&blocks, "text", "text").last().map(String::len), Some(4 << 20));
}

#[test]
fn repeated_text_stays_two_messages() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let text = [user("u1", "go"), reply("r1", "ok"), user("u2", "go"), reply("r2", "ok")];
    for message in messages(&text.join("\n"), &[]) {
        *counts.entry(message).or_default() += 1;
    }
    assert_eq!(counts, HashMap::from([(user_message("go"), 2), (assistant_message("ok"), 2)]));
}

// ---- where reading begins --------------------------------------------------------------------

/// Writes a file that begins with a hole of 8 GiB. A program that read the hole would report NUL bytes.
fn behind_a_hole(sandbox: &Sandbox, records: &[String]) {
    use std::io::Write;
    let path = sandbox.write("s.jsonl", "");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("the file");
    file.set_len(8 << 30).expect("a hole");
    file.write_all(format!("\n{}\n", records.join("\n")).as_bytes()).expect("the records");
}

#[test]
fn d3_records_before_the_first_kept_record_are_never_read() {
    let first_kept = (8_u64 << 30) + 1;
    for hint in ["", r#","first_kept_offset":8589934593"#, r#","first_kept_offset":7"#] {
        let sandbox = Sandbox::new();
        let view = compaction("v1", "S", "u3").replace("}", &format!("{hint}}}"));
        let records = [user("u3", "q3"), reply("r3", "a3"), view, user("u4", "q4")];
        behind_a_hole(&sandbox, &records);
        let run = sandbox.cmd("claw-rebuild").args(["--meta", "s.jsonl"]).assert();
        let lines = run.success().stderr("").json();
        assert_eq!(lines.len(), 5, "{hint}");
        assert_eq!(lines[2]["_meta"]["offset"], json!(first_kept));
    }
}

#[test]
fn a_finding_in_the_kept_part_states_its_byte_offset_but_no_line_number() {
    let sandbox = Sandbox::new();
    let torn = r#"{"type":"user","content":"torn"#.to_owned();
    let records = [user("u3", "q3"), torn, reply("r3", "a3"), compaction("v1", "S", "u3")];
    behind_a_hole(&sandbox, &records);
    let run = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert();
    let byte = (8_u64 << 30) + 1 + records[0].len() as u64 + 1;
    run.success().stderr(contains(format!(
        "torn-line: 's.jsonl' byte {byte}, 30 bytes: torn after byte 30"
    )));
}

/// A number beyond the range of a double is no time, and must not reach a program that reads JSON.
#[test]
fn a_time_that_is_no_number_of_seconds_is_left_out() {
    let sandbox = Sandbox::new();
    let reply = r#"{"type":"assistant","content":"b","ts":1e999}"#;
    sandbox.write("s.jsonl", format!("{{\"type\":\"user\",\"content\":\"a\"}}\n{reply}\n"));
    let cmd = sandbox.cmd("claw-turn").env("CLAW_PROVIDER", "offline");
    cmd.args(["-m", "go on", "s.jsonl"]).assert().success();
}
