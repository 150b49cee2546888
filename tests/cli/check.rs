//! claw-check: each fault is one finding with its place, and the rest of the transcript stays usable.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox, media};
use crate::conversations::{Conversation, append};

/// The name of the transcript.
const FILE: &str = "s.jsonl";

/// Seven records: a question, some text, a call, its result and the answer; another question and its answer.
fn conversation() -> Conversation {
    let conversation =
        Conversation::new().user("one").assistant("I look.").call("f", json!({})).result("found");
    conversation.assistant("two").user("three").assistant("four")
}

/// The lines of [`conversation`] as `claw-append` writes them.
fn lines() -> Vec<Vec<u8>> {
    let sandbox = Sandbox::new();
    conversation().append(&sandbox, FILE);
    let text = sandbox.read_text(FILE);
    text.lines().map(|line| line.as_bytes().to_vec()).collect()
}

/// A damaged transcript and its expected finding.
struct Damage {
    bytes: Vec<u8>,
    /// The records appended to the damaged transcript.
    more: Vec<Value>,
    rule: &'static str,
    /// The line number of the finding.
    line: usize,
    /// True if a complete record that follows a torn one on the same line is recovered, which is also a finding.
    recovered: bool,
    status: i32,
}

impl Damage {
    /// A transcript of these lines.
    fn of(lines: &[Vec<u8>], rule: &'static str, line: usize, status: i32) -> Damage {
        let bytes = [lines.join(&b'\n'), b"\n".to_vec()].concat();
        Damage { bytes, more: Vec::new(), rule, line, recovered: false, status }
    }

    /// [`conversation`] with one line changed.
    fn changed(at: usize, change: impl Fn(&str) -> String, rule: &'static str) -> Damage {
        let mut lines = lines();
        lines[at - 1] = change(&String::from_utf8_lossy(&lines[at - 1])).into_bytes();
        Damage::of(&lines, rule, at, 65)
    }

    /// [`conversation`] with a line inserted.
    fn inserted(at: usize, line: impl Into<Vec<u8>>, rule: &'static str) -> Damage {
        let mut lines = lines();
        lines.insert(at - 1, line.into());
        Damage::of(&lines, rule, at, 65)
    }

    /// [`conversation`] with the records `more` appended. The finding is about record number `line` of `more`.
    fn appended(more: &[Value], rule: &'static str, line: usize, status: i32) -> Damage {
        let damage = Damage::of(&lines(), rule, 7 + line, status);
        Damage { more: more.to_vec(), ..damage }
    }

    fn status(self, status: i32) -> Damage {
        Damage { status, ..self }
    }

    /// Removes the last line feed.
    fn without_final_line_feed(mut self) -> Damage {
        self.bytes.pop();
        self
    }

    fn recovered(self) -> Damage {
        Damage { recovered: true, ..self }
    }

    /// Writes the transcript into a new sandbox.
    fn write(&self) -> Sandbox {
        let sandbox = private();
        sandbox.write(FILE, &self.bytes);
        for record in &self.more {
            append(&sandbox, FILE, record.to_string());
        }
        sandbox
    }

    /// Checks that claw-check reports only this finding, and the recovered record if there is one.
    #[track_caller]
    fn assert_only_finding(&self, sandbox: &Sandbox) {
        let run = sandbox.cmd("claw-check").arg(FILE).assert();
        let mut findings = run.code(self.status).json();
        if self.recovered {
            findings.retain(|finding| finding["rule"] != "fused-line");
        }
        let [finding] = findings.as_slice() else { panic!("{}: {findings:#?}", self.rule) };
        let file = sandbox.read(FILE);
        let lines: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
        let offset: usize = lines[..self.line - 1].iter().map(|line| line.len() + 1).sum();
        let line = lines[self.line - 1];
        let (severity, repaired) = severity_and_repair(self.rule);
        let expected = json!({
            "rule": self.rule, "severity": severity, "input": FILE, "line": self.line,
            "offset": offset, "length": line.len(), "id": id(line, offset), "repaired": repaired,
            "message": finding["message"],
        });
        assert_eq!(*finding, expected);
    }
}

/// Returns a sandbox with an empty transcript of mode 0600.
fn private() -> Sandbox {
    let sandbox = Sandbox::new();
    append(&sandbox, FILE, json!({"type": "user", "content": "x"}).to_string());
    sandbox.write(FILE, "");
    sandbox
}

/// Returns the id of the record in a line, or null if the line has no record.
fn id(line: &[u8], offset: usize) -> Value {
    let is_deep = line.windows(100).any(|part| part.iter().all(|byte| *byte == b'['));
    let text = String::from_utf8_lossy(line).replace('\0', "").replace("\\ud83d", "");
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(_)) if is_deep => Value::Null,
        Ok(Value::Object(record)) => {
            record.get("id").cloned().unwrap_or_else(|| format!("@{offset}").into())
        }
        _ => Value::Null,
    }
}

/// Returns the severity of a rule's findings, and true if claw-rebuild repairs them.
fn severity_and_repair(name: &str) -> (&'static str, bool) {
    let rule = clawutils::finding::rules::ALL.iter().find(|rule| rule.name == name);
    let rule = rule.unwrap_or_else(|| panic!("no rule {name}"));
    (rule.severity.name(), rule.repaired)
}

fn user(text: &str) -> Value {
    json!({"type": "user", "content": text})
}

fn reply(text: &str) -> Value {
    json!({"type": "assistant", "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "a"})
}

/// Returns the id of the record on a line of [`conversation`].
fn id_of(line: usize) -> Value {
    id(&lines()[line - 1], 0)
}

/// Returns transcripts with damaged lines.
fn damaged_lines() -> Vec<Damage> {
    let whole = lines();
    let without = |at: usize| [&whole[..at - 1], &whole[at..]].concat();
    let cut = |at: usize| whole[at - 1][..60].to_vec();
    let joined = |first: &[u8], between: &[u8], second: &[u8]| {
        let line = [first, between, second].concat();
        [&whole[..4], &[line], &whole[6..]].concat()
    };
    let mut torn = whole.clone();
    torn[5] = cut(6);
    let mut torn_last = whole.clone();
    torn_last[6] = cut(7);
    let mut swapped = whole.clone();
    swapped.swap(4, 5);
    let mut odd = whole.clone();
    let last = odd[5].len() - 4;
    odd[5][last] = b'\xff';
    let deep = format!(
        r#"{{"type":"user","content":"odd","x":{}{}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let replaced = |from: &'static str, to: &'static str| move |line: &str| line.replace(from, to);
    vec![
        Damage::changed(6, replaced("three", "thrice"), "line-changed"),
        Damage::changed(1, replaced("user", "u\\u0073er"), "line-changed"),
        Damage::of(&without(1), "line-missing", 1, 65),
        Damage::of(&without(5), "line-missing", 5, 65),
        Damage::inserted(6, whole[0].clone(), "line-inserted"),
        Damage::inserted(7, whole[5].clone(), "line-inserted"),
        Damage::inserted(6, user("in between").to_string(), "line-inserted"),
        Damage::of(&swapped, "lines-swapped", 5, 65),
        Damage::of(&torn, "torn-line", 6, 65),
        Damage::of(&torn_last, "torn-line", 7, 65).without_final_line_feed(),
        Damage::of(&joined(&cut(5), b"", &whole[5]), "bad-json", 5, 65).recovered(),
        Damage::of(&joined(&whole[4], b"", &whole[5]), "fused-line", 5, 0),
        Damage::of(&joined(&whole[4], b"\0\0\0", &whole[5]), "nul-bytes", 5, 1),
        Damage::of(&odd, "invalid-utf8", 6, 65),
        Damage::changed(6, |line| format!("\0\0\0{line}"), "nul-bytes").status(1),
        Damage::changed(6, |line| format!("{line}\0"), "nul-bytes").status(1),
        Damage::inserted(6, "\0".repeat(500), "nul-bytes").status(1),
        Damage::changed(6, replaced(r#""content":"#, r#""content" "#), "bad-json"),
        Damage::changed(6, |line| line[..50].to_owned() + &"\0".repeat(20), "torn-line"),
        Damage::inserted(6, "[1,2]", "not-an-object"),
        Damage::inserted(6, deep, "too-deep"),
    ]
}

/// Returns transcripts to which other programs have appended lines.
fn lines_of_other_programs() -> Vec<Damage> {
    let written = |line: &str, rule, status| {
        let lines = [lines(), vec![line.as_bytes().to_vec()]].concat();
        Damage::of(&lines, rule, 8, status)
    };
    let answered = |call: &str, rule| {
        let call = format!(r#"{{"type":"tool_use","tool_use_id":"t",{call}}}"#);
        let lines =
            [lines(), vec![call.into_bytes(), result("t").to_string().into_bytes()]].concat();
        Damage::of(&lines, rule, 8, 0)
    };
    let same = |text: &str| format!(r#"{{"id":"a","type":"user","content":"{text}"}}"#);
    let same = ["one", "two"].map(|text| same(text).into_bytes());
    let twice = [lines(), same.to_vec()].concat();
    vec![
        written(r#"{"type":"user"}"#, "bad-record", 65),
        written(r#"{"content":"no type"}"#, "bad-record", 65),
        written(r#"{"id":"x","type":"retract","target":5}"#, "bad-record", 65),
        Damage::of(&twice, "duplicate-id", 9, 1),
        written(r#"{"type":"user","content":"a","content":"b"}"#, "duplicate-member", 0),
        written(r#"{"type":"user","content":"half \ud83d"}"#, "lone-surrogate", 0),
        written(
            r#"{"type":"assistant","content":"a","usage":{"input_tokens":9,"output_tokens":-1}}"#,
            "implausible-count",
            0,
        ),
        answered(r#""name":"f","input":"x""#, "call-input"),
        answered(r#""name":"a.b","input":{}"#, "call-name"),
        written(
            r#"{"type":"user","content":[{"type":"input_text","text":"and?"}]}"#,
            "foreign-block",
            0,
        ),
    ]
}

/// Returns transcripts of valid records that contradict each other or cannot be sent as they are.
fn contradictory_records() -> Vec<Damage> {
    let blocks = |kind: &str, block: Value| json!({"type": kind, "content": [block]});
    let other = json!({"type": "tool_use", "tool_use_id": "t", "name": "g", "input": {}});
    let image = |kind: &str| media::image(kind, &media::png(1, 1));
    let torn = media::image("image/png", &media::png(1, 1)[..50]);
    let thinking = json!({"type": "thinking", "thinking": "hm"});
    let cut_off = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    vec![
        Damage::appended(&[result("nobody")], "orphan-result", 1, 1),
        Damage::appended(&[call("t"), user("stop")], "open-call", 1, 1),
        Damage::appended(&[call("t"), result("t"), result("t")], "duplicate-result", 3, 1),
        Damage::appended(&[call("t"), user("and"), result("t")], "late-result", 3, 0),
        Damage::appended(&[call("t"), other, result("t")], "duplicate-call", 2, 1),
        Damage::appended(&[user(" \n")], "empty-message", 1, 0),
        Damage::appended(&[blocks("assistant", image("image/png"))], "misplaced-block", 1, 1),
        Damage::appended(&[blocks("assistant", thinking)], "unsigned-thinking", 1, 0),
        Damage::appended(&[blocks("assistant", cut_off)], "final-thinking", 1, 0),
        Damage::appended(&[blocks("user", image("image/gif"))], "media-corrected", 1, 0),
        Damage::appended(&[blocks("user", torn)], "media-left-out", 1, 1),
        Damage::appended(&[json!({"type": "retract", "target": "x"})], "unknown-target", 1, 65),
        Damage::appended(&[compaction("nowhere")], "unknown-first-kept", 1, 65),
    ]
}

fn compaction(first_kept: impl Into<Value>) -> Value {
    json!({"type": "compaction", "summary": "S", "first_kept_entry_id": first_kept.into()})
}

fn truncation(record: impl Into<Value>, bytes: u64) -> Value {
    json!({"type": "truncation", "tool_use_id": "call_1", "record_id": record.into(), "head": 1,
        "tail": 0, "bytes": bytes, "sha256": "0"})
}

/// A truncation that does not match its result is reported at the result, which is sent in full.
fn mismatched_truncation() -> Damage {
    Damage { line: 4, ..Damage::appended(&[truncation(id_of(4), 9)], "truncation-mismatch", 1, 1) }
}

fn damaged_transcripts() -> Vec<Damage> {
    let mut all = damaged_lines();
    all.extend(lines_of_other_programs());
    all.extend(contradictory_records());
    all.push(mismatched_truncation());
    all
}

// ---- one fault, one finding ------------------------------------------------------------------

#[test]
fn g9_each_fault_is_one_finding_with_its_place() {
    for damage in damaged_transcripts() {
        damage.assert_only_finding(&damage.write());
    }
}

/// A record after the damage does not change the finding, and claw-rebuild's output can be sent.
#[cfg(feature = "http")]
#[test]
fn g9_a_damaged_transcript_can_be_continued() {
    let provider = crate::common::provider::FakeProvider::new();
    for damage in damaged_transcripts() {
        let sandbox = damage.write();
        append(&sandbox, FILE, user("and now?").to_string());
        damage.assert_only_finding(&sandbox);
        sandbox
            .sh("claw-rebuild s.jsonl | claw-call")
            .envs(provider.env())
            .assert()
            .success()
            .stdout(contains(r#""type":"assistant""#));
        let requests = provider.requests();
        let request = requests.last().expect("a request");
        assert_eq!((request.status, request.last_user_text()), (200, "and now?"));
    }
    assert_eq!(provider.requests().len(), damaged_transcripts().len());
    provider.all_legal();
}

#[test]
fn every_rule_is_tested() {
    let tried: BTreeSet<&str> = damaged_transcripts().iter().map(|damage| damage.rule).collect();
    // The tests in src/dialect cover these.
    let of_dialects = [
        "missing-base",
        "missing-parent",
        "other-branch",
        "other-root",
        "parent-cycle",
        "system-prompt",
        "unknown-type",
        "unknown-version",
    ];
    // The first three have their own tests, and `refused` would be a bug in claw-rebuild.
    let others = ["more-findings", "open-at-end", "open-mode", "refused"];
    let others = others.into_iter().chain(of_dialects);
    let all = clawutils::finding::rules::ALL.iter().map(|rule| rule.name);
    let missing: Vec<&str> = all.filter(|name| !tried.contains(name)).collect();
    assert_eq!(BTreeSet::from_iter(missing), others.collect());
}

#[test]
fn an_undamaged_transcript_has_no_finding() {
    let sandbox = private();
    conversation().append(&sandbox, FILE);
    sandbox.cmd("claw-check").arg(FILE).assert().success().stdout("").stderr("");
    append(&sandbox, FILE, compaction(id_of(6)).to_string());
    append(&sandbox, FILE, user("and?").to_string());
    sandbox.cmd("claw-check").arg(FILE).assert().success().stdout("").stderr("");
}

#[test]
fn audit_25_the_id_of_a_session_record_is_not_a_hash_of_its_line() {
    let header = json!({"type": "session", "id": "81efc48888b71234", "created": "x", "key": "k"});
    let records = [header.to_string(), user("one").to_string()];
    // The same holds for a session record that comes after other records and does not begin with its type.
    let later = r#"{"id":"81efc48888b75678","created":"x","key":"k","type":"session"}"#;
    let sandbox = private();
    for text in [records.join("\n"), reply("two").to_string(), later.to_owned()] {
        append(&sandbox, FILE, text);
    }
    sandbox.cmd("claw-check").arg(FILE).assert().success().stdout("").stderr("");
    // The id of the next record still shows that the session record was changed.
    let text = sandbox.read_text(FILE).replacen("\"key\":\"k\"", "\"key\":\"q\"", 1);
    sandbox.write(FILE, text);
    let run = sandbox.cmd("claw-check").arg(FILE).assert();
    assert_eq!(run.code(65).stdout_text().matches("line-missing").count(), 1);
}

#[test]
fn several_faults_are_reported_in_the_order_of_the_file() {
    let mut lines = lines();
    lines.insert(0, b"5".to_vec());
    lines[4].truncate(70);
    lines.push(br#"{"type":"retract","target":"x"}"#.to_vec());
    let damage = Damage::of(&lines, "", 1, 65);
    let run = damage.write().cmd("claw-check").arg(FILE).assert();
    let found = run.code(65).json();
    let found: Vec<_> = found.iter().map(|it| (it["rule"].clone(), it["line"].clone())).collect();
    let expected = [
        ("not-an-object", 1),
        // The torn line held the result of this call.
        ("open-call", 4),
        ("torn-line", 5),
        ("unknown-target", 9),
    ];
    assert_eq!(found, expected.map(|(rule, line)| (json!(rule), json!(line))));
}

/// A compaction can be retracted, and then the records that it covers are sent again.
#[test]
fn records_covered_by_a_compaction_are_checked_too() {
    for damage in damaged_lines() {
        let sandbox = damage.write();
        append(&sandbox, FILE, [user("next").to_string(), reply("yes").to_string()].join("\n"));
        let file = sandbox.read(FILE);
        let lines: Vec<&[u8]> = file.split(|byte| *byte == b'\n').collect();
        let kept = id(lines[lines.len() - 3], 0);
        append(&sandbox, FILE, compaction(kept).to_string());
        damage.assert_only_finding(&sandbox);
    }
}

#[test]
fn findings_after_the_first_kept_record_of_a_compaction_have_the_right_line_numbers() {
    let kept = id_of(5);
    let more = [compaction(kept), result("nobody"), call("t"), user("stop")];
    let damage = Damage::appended(&more, "", 1, 1);
    let found = damage.write().cmd("claw-check").arg(FILE).assert().code(1).json();
    let place = |it: &Value| (it["rule"].clone(), it["line"].clone());
    let expected = [("orphan-result", 9), ("open-call", 10)];
    let expected = expected.map(|(rule, line)| (json!(rule), json!(line)));
    assert_eq!(found.iter().map(place).collect::<Vec<_>>(), expected);
}

#[test]
fn g3_an_open_call_at_the_end_is_noted_at_its_reply() {
    let sandbox = private();
    Conversation::of("uac", 3).append(&sandbox, FILE);
    let found = sandbox.cmd("claw-check").arg(FILE).assert().success().json_one();
    let last = sandbox.read_json(FILE)[1].clone();
    assert_eq!((&found["rule"], &found["severity"]), (&json!("open-at-end"), &json!("note")));
    assert_eq!((&found["line"], &found["id"]), (&json!(2), &last["id"]));
}

#[test]
fn t1_a_file_that_other_users_can_read_is_noted() {
    let sandbox = private();
    conversation().append(&sandbox, FILE);
    let run = sandbox.sh("chmod 640 s.jsonl; claw-check s.jsonl").assert().success();
    let found = run.json_one();
    assert_eq!((&found["rule"], &found["severity"]), (&json!("open-mode"), &json!("note")));
    run.stdout(contains("its mode is 0640; chmod 600 keeps it private"));
}

// ---- inputs ----------------------------------------------------------------------------

/// Checks a transcript given on standard input.
#[track_caller]
fn check(text: &str) -> Assert {
    Sandbox::new().cmd("claw-check").write_stdin(text).assert()
}

#[test]
fn files_are_checked_independently() {
    let sandbox = private();
    conversation().append(&sandbox, "good.jsonl");
    conversation().append(&sandbox, "bad.jsonl");
    append(&sandbox, "bad.jsonl", result("nobody").to_string());
    let inputs = |run: &Assert| -> Vec<String> {
        run.json().iter().map(|found| format!("{} {}", found["input"], found["line"])).collect()
    };
    let run = |files: &[&str], stdin: &str| {
        sandbox.cmd("claw-check").args(files).write_stdin(stdin).assert()
    };
    // Each file has its own chain of ids, line numbers and offsets.
    run(&["good.jsonl", "good.jsonl"], "").success().stdout("");
    let both = run(
        &["bad.jsonl", "good.jsonl", "-", "bad.jsonl"],
        "5\n{\"type\":\"label\",\"label\":\"x\"}\n",
    );
    let expected = ["\"bad.jsonl\" 8", "\"<stdin>\" 1", "\"bad.jsonl\" 8"];
    assert_eq!(inputs(&both.code(65)), expected);
    assert_eq!(inputs(&run(&["good.jsonl", "bad.jsonl"], "").code(1)), ["\"bad.jsonl\" 8"]);
    run(&["bad.jsonl", "nowhere"], "")
        .code(74)
        .stdout("")
        .stderr(contains("claw-check: cannot read 'nowhere': "));
    run(&[FILE], "").success().stdout("").stderr("");
    check("").success().stdout("").stderr("");
    check("\n \n").success().stdout("").stderr("");
    run(&["--nonsense"], "").code(2).stdout("");
}

#[test]
fn the_transcript_is_not_changed() {
    for damage in damaged_lines() {
        let sandbox = damage.write();
        let before = sandbox.read(FILE);
        sandbox.cmd("claw-check").arg(FILE).assert();
        assert!(sandbox.read(FILE) == before);
    }
}

/// Transcripts in both formats of claw0 have no finding, and damage to them is found.
#[test]
fn g6_both_formats_of_claw0_are_checked() {
    let mut count = 0;
    for source in ["claw0-first", "claw0-present"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(source);
        for entry in walkdir::WalkDir::new(directory) {
            let path = entry.expect("a readable corpus").into_path();
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            count += 1;
            let text = fs::read_to_string(&path).expect("a transcript");
            check(&text).success().stdout("").stderr("");
            let line = text.lines().count() + 1;
            let found =
                check(&format!("{text}{}\n{}\n", result("no"), user("x"))).code(1).json_one();
            let place = (&found["rule"], &found["line"], &found["offset"], &found["id"]);
            let id = format!("@{}", text.len());
            assert_eq!(
                place,
                (&json!("orphan-result"), &json!(line), &json!(text.len()), &json!(id))
            );
        }
    }
    assert_eq!(count, 7);
}

#[test]
fn a_session_tree_of_another_program_has_no_findings() {
    let tree = r#"{"type":"session","version":3,"id":"5f0c","timestamp":"2026-01-01T00:00:00Z"}"#;
    check(tree).code(0).stdout("").stderr("");
}

// ---- the rules -------------------------------------------------------------------------------

/// Returns the rules that claw-check(1) lists, each with its description.
fn items_of_page() -> Vec<(String, String)> {
    let page = include_str!("../../man/claw-check.1");
    let section = page.split("\n.Sh DIAGNOSTICS\n").nth(1).expect("the section");
    let section = section.split("\n.Sh ").next().expect("its text");
    let items = section.split("\n.It Li ").skip(1);
    items
        .map(|item| {
            let (name, rest) = item.split_once('\n').expect("a name");
            let text = rest.split("\n.").next().unwrap_or_default();
            (name.to_owned(), text.replace('\n', " "))
        })
        .collect()
}

#[test]
fn rules_prints_the_rules_of_the_page_each_with_a_description() {
    let listed = Sandbox::new().cmd("claw-check").arg("--rules").assert();
    let mut names = BTreeSet::new();
    for line in listed.success().stderr("").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, severity, repaired, meaning] = columns.as_slice() else { panic!("{line}") };
        assert!(["note", "warning", "error"].contains(severity), "{line}");
        assert!(["repaired", "-"].contains(repaired), "{line}");
        assert!(meaning.starts_with(char::is_uppercase) && meaning.ends_with('.'), "{line}");
        names.insert((*name).to_owned());
    }
    let page = items_of_page();
    assert_eq!(names, page.iter().map(|(name, _)| name.clone()).collect());
    for (name, text) in &page {
        assert!(text.starts_with(char::is_uppercase) && text.ends_with('.'), "{name}: {text}");
    }
    assert_eq!(names.len(), page.len(), "a rule is on the page twice");
}
