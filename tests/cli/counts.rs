//! Token counts from providers: a count is used only while it is valid, and all programs report the same size for a
//! session.

use std::fs;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, append, log, rebuild_meta, stage, words};

const FILE: &str = "s.jsonl";
/// The provider's count for the prompt of [`anchor`], which is close to our estimate.
const COUNT: u64 = 4200;

/// The records before the count, with the numbers 0 to 3: a prompt, some text, a call, and its long result.
fn before() -> Conversation {
    Conversation::new().user(&words(1000)).tool(log(250))
}

/// A reply with a token count.
fn anchor() -> Value {
    counted("Found.", COUNT)
}

fn counted(text: &str, count: u64) -> Value {
    let usage = json!({"input_tokens": count, "output_tokens": 3});
    json!({"type": "assistant", "content": text, "model": "m", "usage": usage})
}

/// The records after the count, with the numbers 5 to 10.
fn after() -> Conversation {
    Conversation::new()
        .user("And there?")
        .assistant("I look.")
        .record(json!({"type": "tool_use", "tool_use_id": "x", "name": "f", "input": {}}))
        .record(json!({"type": "tool_result", "tool_use_id": "x", "content": log(120)}))
        .assistant("There, too.")
        .user("What now?")
}

/// Returns the id of record number `record`, counted from 0.
fn id(sandbox: &Sandbox, record: usize) -> String {
    sandbox.read_json(FILE)[record]["id"].as_str().expect("an id").to_owned()
}

fn estimate(sandbox: &Sandbox, args: &[&str], rebuild: &[&str]) -> Assert {
    let run = sandbox.cmd("claw-rebuild").args(["--meta", FILE]).args(rebuild).assert();
    sandbox
        .cmd("claw-estimate")
        .arg("--json")
        .args(args)
        .write_stdin(run.get_output().stdout.clone())
        .assert()
}

/// Returns the part of claw-estimate's result that comes from the provider's count.
fn measured(sandbox: &Sandbox, rebuild: &[&str]) -> u64 {
    let found = estimate(sandbox, &[], rebuild).success().json_one();
    found["measured"].as_u64().expect("a number")
}

/// Retracts record number `target`.
fn retract(sandbox: &Sandbox, target: usize) {
    append(sandbox, FILE, json!({"type": "retract", "target": id(sandbox, target)}).to_string());
}

/// Shortens the result in record number `target` with a record that has no scale.
fn shorten(sandbox: &Sandbox, target: usize) {
    let run = stage(sandbox, "claw-truncate", &["--window", "1000"], FILE);
    let target = id(sandbox, target);
    let mut record = run.json().into_iter().find(|it| it["record_id"] == target).expect("a record");
    for member in ["scale", "scale_basis"] {
        record.as_object_mut().expect("an object").remove(member);
    }
    append(sandbox, FILE, record.to_string());
}

/// Appends a compaction that keeps the records from number `kept` on.
fn compact(sandbox: &Sandbox, kept: usize) {
    let kept = id(sandbox, kept);
    let record = json!({"type": "compaction", "summary": "So far.", "first_kept_entry_id": kept});
    append(sandbox, FILE, record.to_string());
}

/// Appends a better summary of what the compaction in record number `replaced` summarises.
fn summarise_again(sandbox: &Sandbox, replaced: usize) {
    let replaced = id(sandbox, replaced);
    let record = json!({"type": "compaction", "summary": "So far, in short.",
        "first_kept_entry_id": id(sandbox, 0), "retry_of": replaced});
    append(sandbox, FILE, record.to_string());
}

fn undo(sandbox: &Sandbox, what: &str) {
    let run = sandbox.cmd("claw-rebuild").args(["--undo", what, FILE]).assert();
    append(sandbox, FILE, run.success().get_output().stdout.clone());
}

type Step = fn(&Sandbox);

/// View records (retractions, truncations and compactions) appended after the count: what they change, how to append
/// them, and whether the count is still valid. Records 0 to 3 are before the count, 4 has the count, 5 to 10 are after
/// it, and view records begin at 11.
const AFTER_THE_COUNT: [(&str, &[Step], bool); 24] = [
    ("nothing", &[], true),
    ("a prompt before the count", &[|s| retract(s, 0)], false),
    ("a prompt after it", &[|s| retract(s, 10)], true),
    ("the next prompt, which joins two replies", &[|s| retract(s, 5)], false),
    ("the last turn", &[|s| undo(s, "turn")], true),
    ("both turns after the count", &[|s| undo(s, "turn"), |s| undo(s, "turn")], true),
    ("a call before the count", &[|s| retract(s, 2)], false),
    ("a result before the count", &[|s| retract(s, 3)], false),
    ("a result after it", &[|s| retract(s, 8)], true),
    ("a missing record", &[|s| append(s, FILE, r#"{"type":"retract","target":"x"}"#)], true),
    ("a prompt before the count, restored", &[|s| retract(s, 0), |s| retract(s, 11)], true),
    ("a prompt after it, restored", &[|s| retract(s, 10), |s| retract(s, 11)], true),
    (
        "a prompt retracted, restored and retracted",
        &[|s| retract(s, 0), |s| retract(s, 11), |s| retract(s, 12)],
        false,
    ),
    ("a long result before the count", &[|s| shorten(s, 3)], false),
    ("a long result after it", &[|s| shorten(s, 8)], true),
    ("both long results", &[|s| shorten(s, 8), |s| shorten(s, 3)], false),
    ("a long result before the count, undone", &[|s| shorten(s, 3), |s| undo(s, "cut")], true),
    ("a long result after it, undone", &[|s| shorten(s, 8), |s| undo(s, "cut")], true),
    ("a summary of all records before the count", &[|s| compact(s, 5)], false),
    ("a summary of nothing", &[|s| compact(s, 0)], false),
    ("a summary, undone", &[|s| compact(s, 0), |s| undo(s, "cut")], true),
    ("a summary that is not applied", &[|s| append(s, FILE, NOT_APPLIED)], true),
    ("a better summary", &[|s| compact(s, 0), |s| summarise_again(s, 11)], false),
    ("a label", &[|s| append(s, FILE, r#"{"type":"label","label":"x"}"#)], true),
];

const NOT_APPLIED: &str = r#"{"type":"compaction","summary":"x","first_kept_entry_id":"nowhere"}"#;

#[test]
fn audit_14_a_count_is_valid_while_the_records_it_covers_do_not_change() {
    for (what, steps, is_valid) in AFTER_THE_COUNT {
        let sandbox = Sandbox::new();
        before().record(anchor()).append(&sandbox, FILE);
        after().append(&sandbox, FILE);
        steps.iter().for_each(|step| step(&sandbox));
        let expected = if is_valid { COUNT + 3 } else { 0 };
        assert_eq!(measured(&sandbox, &[]), expected, "{what}");
    }
}

/// View records appended before the count, view records appended after it, and whether the count is then valid.
const AROUND_THE_COUNT: [(&str, &[Step], &[Step], bool); 7] = [
    ("a retracted reply", &[|s| retract(s, 1)], &[], true),
    ("a long result", &[|s| shorten(s, 3)], &[], true),
    ("a summary", &[|s| compact(s, 0)], &[], true),
    ("a long result, restored", &[|s| shorten(s, 3)], &[|s| retract(s, 4)], false),
    ("a summary, undone", &[|s| compact(s, 0)], &[|s| retract(s, 4)], false),
    ("a retracted reply, restored", &[|s| retract(s, 1)], &[|s| retract(s, 4)], false),
    ("a better summary", &[|s| compact(s, 0)], &[|s| summarise_again(s, 4)], false),
];

#[test]
fn audit_14_a_count_is_valid_only_while_the_view_before_it_is_the_same() {
    for (what, earlier, later, is_valid) in AROUND_THE_COUNT {
        let sandbox = Sandbox::new();
        before().append(&sandbox, FILE);
        earlier.iter().for_each(|step| step(&sandbox));
        append(&sandbox, FILE, anchor().to_string());
        later.iter().for_each(|step| step(&sandbox));
        after().append(&sandbox, FILE);
        let has_count = rebuild_meta(&sandbox, FILE).contains(r#""usage":{"#);
        assert_eq!(has_count, is_valid, "{what}");
    }
}

#[test]
fn audit_14_an_earlier_count_is_used_if_a_later_one_is_invalid() {
    let sandbox = Sandbox::new();
    let conversation = before().record(anchor()).user("And there?").record(counted("Yes.", 4300));
    conversation.user("And?").append(&sandbox, FILE);
    assert_eq!(measured(&sandbox, &[]), 4303);
    retract(&sandbox, 5);
    // The two replies are one message now, so neither count is valid.
    assert_eq!(measured(&sandbox, &[]), 0);
    retract(&sandbox, 8);
    assert_eq!(measured(&sandbox, &[]), 4303, "the retraction was retracted");
}

#[test]
fn audit_14_a_count_is_not_valid_for_another_part_of_the_session() {
    let sandbox = Sandbox::new();
    let conversation = before().record(anchor()).user("And there?");
    conversation.record(counted("Yes.", 4300)).user("So?").append(&sandbox, FILE);
    for (options, expected) in [
        (&["--limit-turns", "2"][..], 0),
        (&["--limit-turns", "3"], 4303),
        (&["--to-turn", "1"], COUNT + 3),
        (&["--ignore-compactions"], 4303),
    ] {
        assert_eq!(measured(&sandbox, options), expected, "{options:?}");
    }
    compact(&sandbox, 5);
    append(&sandbox, FILE, counted("Well.", 80).to_string());
    assert_eq!(measured(&sandbox, &[]), 83);
    assert_eq!(measured(&sandbox, &["--ignore-compactions"]), 4303, "the count before the summary");
}

#[test]
fn audit_14_a_late_result_invalidates_the_counts_after_its_call() {
    let sandbox = Sandbox::new();
    let conversation = before().record(anchor()).assistant("I look.").call("f", json!({}));
    let conversation = conversation.user("Well?").record(counted("It hangs.", 4300)).user("Wait.");
    conversation.append(&sandbox, FILE);
    assert_eq!(measured(&sandbox, &[]), 4303);
    conversation.result(log(200)).append(&sandbox, "late.jsonl");
    let run = sandbox.cmd("claw-rebuild").args(["--meta", "late.jsonl"]).assert();
    let found = sandbox
        .cmd("claw-estimate")
        .arg("--json")
        .write_stdin(run.get_output().stdout.clone())
        .assert()
        .json_one();
    assert_eq!(found["measured"], 4203);
}

#[test]
fn audit_14_an_implausible_count_is_ignored_and_reported() {
    let sandbox = Sandbox::new();
    let with_count = |count: u64, model: &str| {
        sandbox.write(FILE, "");
        let record = json!({"type": "assistant", "content": "Found.", "model": model,
            "usage": {"input_tokens": count, "output_tokens": 3}});
        before().record(record).user("So?").append(&sandbox, FILE);
        estimate(&sandbox, &["--model", "claude-opus-5"], &[])
    };
    let plain = with_count(0, "").success().stderr("").json_one()["tokens"].clone();
    for (count, model, why) in [
        (5, "claude-opus-5", "implausible"),
        (900_000, "claude-opus-5", "implausible"),
        (COUNT, "gpt-5-mini", "other-family"),
    ] {
        let run = with_count(count, model).success().stderr(contains(format!(
            "claw-estimate: the provider's count of {count} tokens is not used: "
        )));
        let found = run.json_one();
        assert_eq!((&found["measured"], &found["tokens"]), (&json!(0), &plain), "{count}");
        assert_eq!((&found["unused"], &found["unused_why"]), (&json!(count), &json!(why)));
        for (program, args) in
            [("claw-truncate", &[][..]), ("claw-compact", &["--show"]), ("claw-estimate", &[])]
        {
            let run = sandbox.cmd(program).args(["--model", "claude-opus-5", "--log", "json"]);
            run.args(args)
                .write_stdin(rebuild_meta(&sandbox, FILE))
                .assert()
                .stderr(contains(format!(r#""unused":{count},"unused_why":"{why}""#)));
        }
    }
    let found = with_count(COUNT, "my-deployment");
    assert_eq!(found.success().stderr("").json_one()["measured"], COUNT + 3);
}

/// Returns the last number that a program reports as `member` with `--log json`.
fn reported(run: &Assert, member: &str) -> u64 {
    let lines =
        run.stderr_text().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = lines.filter_map(|line| line[member].as_u64()).next_back();
    found.unwrap_or_else(|| panic!("{member}: {}", run.stderr_text()))
}

/// Returns the size that claw-estimate reports for these messages, and checks that the other programs report the
/// same.
fn size_by_stages(sandbox: &Sandbox, messages: &str, what: &str) -> u64 {
    sandbox.write("summary", "They looked into two logs.");
    let run = sandbox.cmd("claw-estimate").write_stdin(messages).assert().success();
    let size: u64 = run.stdout_text().trim().parse().expect("a size");
    for (program, args) in [("claw-truncate", &[][..]), ("claw-compact", &["--summary", "summary"])]
    {
        let run = sandbox.cmd(program).args(["--window", "3000", "--log", "json"]).args(args);
        assert_eq!(
            reported(&run.write_stdin(messages).assert(), "before"),
            size,
            "{what}: {program}"
        );
    }
    size
}

#[test]
fn audit_14_all_programs_report_the_same_size_of_real_transcripts() {
    let sandbox = Sandbox::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    for directory in ["own", "claw0-present/agents/claw0/sessions", "show"] {
        for entry in fs::read_dir(format!("{data}/{directory}")).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|name| name != "jsonl") {
                continue;
            }
            let run = sandbox.cmd("claw-rebuild").arg("--meta").arg(&path).assert().success();
            let size = size_by_stages(&sandbox, &run.stdout_text(), &path.display().to_string());
            assert!(size > 0 || run.get_output().stdout.is_empty(), "{}", path.display());
            let whole = sandbox.cmd("claw-estimate").arg(&path).assert().success();
            whole.stdout(format!("{size}\n"));
        }
    }
}

/// A session for which all programs must report the same size.
struct Sizes<'s> {
    sandbox: &'s Sandbox,
    path: String,
}

impl Sizes<'_> {
    fn run(&self, program: &str, args: &[&str]) -> Assert {
        let run = self.sandbox.cmd("claw-rebuild").args(["--meta", &self.path]).assert();
        self.sandbox
            .cmd(program)
            .args(args)
            .write_stdin(run.success().get_output().stdout.clone())
            .assert()
    }

    /// Returns the size that all programs report after `step`.
    fn common_size(&self, step: &str) -> u64 {
        let run = self.sandbox.cmd("claw-rebuild").args(["--meta", &self.path]).assert();
        let size = size_by_stages(self.sandbox, &run.success().stdout_text(), step);
        let chat = self.sandbox.cmd("claw-chat").env("CLAW_PROVIDER", "offline");
        let shown = chat.write_stdin("/context\n").assert().success().stdout_text();
        let shown = shown.split('~').nth(1).and_then(|text| text.split(' ').next());
        let shown = shown.map(|text| text.replace(',', ""));
        assert_eq!(shown, Some(size.to_string()), "{step}: claw-chat");
        size
    }

    fn append(&self, records: impl Into<Vec<u8>>) {
        append(self.sandbox, &self.path, records);
    }

    /// Runs a program, appends its records, and checks that the new size is the one that the program reported. The
    /// messages that the program prints without `--record` must have the same size.
    fn stage(&self, program: &str, args: &[&str]) -> u64 {
        let run = self.run(program, &[&["--record", "--log", "json"], args].concat());
        assert!(!run.get_output().stdout.is_empty(), "{program}: {}", run.stderr_text());
        let piped: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--record").collect();
        let messages = self.run(program, &piped).get_output().stdout.clone();
        let piped = self
            .sandbox
            .cmd("claw-estimate")
            .write_stdin(messages)
            .assert()
            .success()
            .stdout_text();
        self.append(run.get_output().stdout.clone());
        let size = self.common_size(program);
        assert_eq!(size, reported(&run, "after"), "{program} {args:?}");
        assert_eq!(piped.trim(), size.to_string(), "{program} {args:?} on a pipe");
        size
    }

    fn undo(&self, what: &str) -> u64 {
        let run = self.sandbox.cmd("claw-rebuild").args(["--undo", what, &self.path]).assert();
        self.append(run.success().get_output().stdout.clone());
        self.common_size(what)
    }
}

#[test]
fn audit_14_all_programs_report_the_same_size_after_each_step() {
    // Providers that count a third less than our estimate, the same, and a third more.
    for percent in [67, 100, 133] {
        let sandbox = Sandbox::new();
        let path = sandbox.sh("claw-session new --label talk >id; claw-session path talk").assert();
        let sizes =
            Sizes { sandbox: &sandbox, path: path.success().stdout_text().trim().to_owned() };
        sizes.append(before().lines());
        let count = sizes.common_size("before any count") * percent / 100;
        sizes.append(counted("Found.", count).to_string());
        assert_eq!(sizes.common_size("counted"), count + 3);
        sizes.append(after().lines());
        let whole = sizes.common_size("after the count");
        let cut = sizes.stage("claw-truncate", &["--window", "4000"]);
        assert_eq!(sizes.undo("cut"), whole);
        let short = sizes.stage("claw-compact", &["--window", "4000", "--summary", "summary"]);
        assert!(short < cut && cut < whole, "{percent}: {whole} -> {cut}, {short}");
        sizes.append(after().lines());
        sizes.common_size("messages after the summary");
        let count = sizes.stage("claw-truncate", &["--window", "1500"]) * 9 / 10;
        sizes.append(counted("Once more.", count).to_string());
        assert_eq!(sizes.common_size("counted again"), count + 3);
        sizes.undo("cut");
        sizes.undo("turn");
    }
}

#[test]
fn audit_14_a_turn_ignores_a_count_that_is_far_too_small() {
    let sandbox = Sandbox::new();
    let conversation = Conversation::plain(12, 2000).user("So?").record(counted("So.", 5));
    conversation.append(&sandbox, FILE);
    let run = sandbox.cmd("claw-turn").args(["--provider", "offline", "--window", "4000"]);
    run.args(["-m", "What now?", "./s.jsonl"])
        .assert()
        .success()
        .stderr(contains("the provider's count of 5 tokens is not used: "))
        .stderr(contains("claw-turn: summarising the old part ahead of an overflow"))
        .stderr(contains("claw-turn: overflow").not());
}

#[test]
fn audit_14_the_number_in_a_refusal_is_used_until_the_next_count() {
    let sandbox = Sandbox::new();
    before().append(&sandbox, FILE);
    let ours = estimate(&sandbox, &[], &[]).json_one()["tokens"].as_u64().expect("a number");
    let refused = json!({"type": "error", "class": "overflow", "message": "x", "actual": ours * 2});
    sandbox.write("refused", refused.to_string());
    let args = ["--window", "4000", "--failure", "refused", "--log", "json"];
    let run = stage(&sandbox, "claw-truncate", &args, FILE);
    let (size_before, after) = (reported(&run, "before"), reported(&run, "after"));
    assert_eq!(size_before, ours * 2);
    append(&sandbox, FILE, run.get_output().stdout.clone());
    let found = estimate(&sandbox, &[], &[]).json_one();
    assert_eq!((&found["tokens"], &found["scale"]), (&json!(after), &json!(2)));
    append(&sandbox, FILE, counted("Done.", after).to_string());
    assert_eq!(measured(&sandbox, &[]), after + 3);
}

#[test]
fn a_scale_lowers_only_the_estimates_that_it_was_measured_for() {
    let sandbox = Sandbox::new();
    before().append(&sandbox, FILE);
    let claude: &[&str] = &["--model", "claude-opus-4-5"];
    let plain = |args: &[&str]| estimate(&sandbox, args, &[]).json_one()["tokens"].clone();
    let (ours, other) = (plain(claude), plain(&["--model", "gpt-4o"]));
    let tokens = ours.as_u64().expect("a number");
    let refused =
        json!({"type": "error", "class": "overflow", "message": "x", "actual": tokens * 4 / 5});
    sandbox.write("refused", refused.to_string());
    let args = ["--window", "1500", "--failure", "refused", "--model", "claude-opus-4-5"];
    let run = stage(&sandbox, "claw-truncate", &args, FILE);
    let record = run.json().pop().expect("a record");
    let scale = record["scale"].as_f64().expect("a number");
    assert!((scale - 0.8).abs() < 0.001, "{scale}");

    // The scale is added to messages that are not shortened, so that only the scale has an effect.
    let with = |basis: Option<&str>, args: &[&str]| {
        let messages = rebuild_meta(&sandbox, FILE);
        let basis = basis.map_or(String::new(), |it| format!(r#","scale_basis":"{it}""#));
        let scaled = messages.replacen(r#""end":"#, &format!(r#""scale":0.8{basis},"end":"#), 1);
        assert_ne!(messages, scaled);
        let run = sandbox.cmd("claw-estimate").arg("--json").args(args).write_stdin(scaled);
        run.assert().success().json_one()["tokens"].clone()
    };
    let basis = record["scale_basis"].as_str();
    assert_eq!(with(basis, claude), json!((tokens * 8 + 5) / 10));
    for old in [None, Some("claude/1"), Some("newer-claude/2"), Some("claude/2 ")] {
        assert_eq!(with(old, claude), ours, "{old:?}");
    }
    assert_eq!(with(basis, &["--model", "gpt-4o"]), other);
}

#[test]
fn a_count_of_an_older_tokenizer_is_not_used_for_a_newer_model() {
    let sandbox = Sandbox::new();
    before().append(&sandbox, FILE);
    let mut reply = anchor();
    reply["model"] = json!("claude-sonnet-4-5-20250929");
    append(&sandbox, FILE, reply.to_string());
    for (model, measured, why) in [
        ("claude-opus-4-5", json!(COUNT + 3), Value::Null),
        ("anthropic/claude-opus-4.8", json!(0), json!("other-family")),
        ("claude-sonnet-5", json!(0), json!("other-family")),
        ("my-deployment", json!(COUNT + 3), Value::Null),
    ] {
        let found = estimate(&sandbox, &["--model", model], &[]).json_one();
        assert_eq!((&found["measured"], &found["unused_why"]), (&measured, &why), "{model}");
    }
}

#[test]
fn a_calibrated_model_is_estimated_as_its_provider_counts() {
    let sandbox = Sandbox::new();
    append(&sandbox, FILE, json!({"type": "user", "content": "Hi."}).to_string());
    let model = "claude-opus-4-5";
    let reply = |count: u64| {
        let usage = json!({"input_tokens": count, "output_tokens": 3});
        json!({"type": "assistant", "content": "Yes.", "model": model, "usage": usage}).to_string()
    };
    let calibrate = || sandbox.cmd("claw-estimate").args(["--calibrate", FILE]).assert();
    append(&sandbox, FILE, reply(5010));
    calibrate().failure().code(5).stderr(contains("cannot calibrate: no model has counts"));
    append(&sandbox, FILE, json!({"type": "user", "content": words(4000)}).to_string());
    let ours = |args: &[&str]| {
        let messages = sandbox.cmd("claw-rebuild").arg(FILE).assert().success();
        let messages = messages.get_output().stdout.clone();
        let run = sandbox.cmd("claw-estimate").args(["--model", model, "--json"]).args(args);
        run.write_stdin(messages).assert().success().json_one()
    };
    let plain = ours(&[]);
    let tokens = plain["tokens"].as_u64().expect("a number");
    // The provider adds 5000 tokens to each prompt, and counts a tenth more.
    append(&sandbox, FILE, reply(5010 + tokens * 11 / 10));
    let row = calibrate().success();
    let row = String::from_utf8_lossy(&row.get_output().stdout).into_owned();
    let factor = row.split_whitespace().find_map(|it| it.strip_prefix("factor="));
    let factor: f64 = factor.expect("a factor").parse().expect("a number");
    assert!((1.08..1.12).contains(&factor), "{row}");
    sandbox.write("models", row);
    let calibrated = ours(&["--models", "models"]);
    let ratio = calibrated["tokens"].as_f64().expect("a number") / tokens as f64;
    assert!((ratio - factor).abs() < 0.01, "{ratio} {factor}");
    assert_eq!(calibrated["factor"], json!(factor));
    assert_eq!((&plain["factor"], &plain["family"]), (&Value::Null, &json!("claude")));
    let found = estimate(&sandbox, &["--model", "my-model"], &[]).json_one();
    assert_eq!((&found["model"], &found["family"]), (&json!("my-model"), &json!("unknown")));
}

#[test]
fn calls_for_summaries_are_counted_and_priced_everywhere() {
    let sandbox = Sandbox::new();
    sandbox.write("prices", "m 3 0.3 3.75 15\n");
    let usage = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output});
    let records = [
        json!({"type": "user", "id": "u1", "content": "q"}),
        json!({"type": "assistant", "content": "a", "model": "m", "usage": usage(1000, 10)}),
        json!({"type": "checkpoint", "summary": "s", "generated_by": "m", "usage": usage(500, 20)}),
        json!({"type": "compaction", "summary": "s", "first_kept_entry_id": "u1", "model": "m",
            "usage": usage(300, 30)}),
    ];
    sandbox.write(FILE, records.map(|record| record.to_string() + "\n").concat());
    let new = "claw-session new --label one && cat s.jsonl >>\"$(claw-session path one)\"";
    sandbox.sh(new).assert().success();
    let index = "claw-index --db i.db update --quiet s.jsonl && claw-index --db i.db stats";
    let cost = "claw-index --db i.db query --format csv 'SELECT count(*), sum(cost) FROM calls'";
    for (command, counted, price) in [
        ("claw-show --cost s.jsonl", "1800 tokens in, 0 from cache, 0 to cache, 60 out", "0.0063"),
        ("claw-session status one", "1800 tokens in, 0 from cache, 0 to cache, 60 out", "0.0063"),
        (index, "calls: 3, 1800 tokens in, 0 from cache, 0 to cache, 60 out", "cost 0.01,"),
        (cost, "3,0.0063", ""),
        ("claw-show --width 120 s.jsonl", "── 1,800 in · 60 out · 0.0063", "m, 500 in, 20 out"),
        ("claw-show --format html s.jsonl", "1,800 in · 60 out · 0.0063", "m, 300 in, 30 out"),
        ("claw-show --output site/ s.jsonl && cat site/index.html", "1,800 in · 60 out", "0.0063"),
        ("cat site/statistics.html", "1,800 in · 0 from cache · 60 out · 0.0063", ""),
    ] {
        let run = sandbox.sh(&format!("export CLAW_PRICES=prices; {command}")).assert().success();
        run.stdout(contains(counted).and(contains(price)));
    }
}
