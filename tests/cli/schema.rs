//! The JSON Schema of records: it accepts every record that a program writes and every example transcript, and
//! rejects what the readers reject.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use boon::{Compiler, SchemaIndex, Schemas};
use clawutils::json::Object;
use clawutils::record;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, log, stage};

const SCHEMA: &str = include_str!("../../schema/claw-record.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("a schema in JSON")
}

/// A compiled schema.
struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    /// Compiles the schema. Fails if it is invalid for its draft.
    #[track_caller]
    fn new(schema: Value) -> Validator {
        let (mut schemas, mut compiler, place) =
            (Schemas::new(), Compiler::new(), "file:///claw-record.schema.json");
        compiler.add_resource(place, schema).expect("a new place");
        let index =
            compiler.compile(place, &mut schemas).unwrap_or_else(|error| panic!("{error:#}"));
        Validator { schemas, index }
    }

    /// Checks a value. Fails with its errors and their places.
    fn validate(&self, value: &Value) -> Result<(), String> {
        self.schemas.validate(value, self.index).map_err(|error| error.to_string())
    }
}

/// Returns a validator for records that every reader must accept.
fn readable() -> Validator {
    Validator::new(schema())
}

/// Returns a validator for records that `claw-append` writes.
fn written() -> Validator {
    let mut schema = schema();
    schema["$ref"] = json!("#/$defs/written");
    Validator::new(schema)
}

/// Checks that these records are valid. Fails with the errors of all invalid records.
#[track_caller]
fn fits(validator: &Validator, records: &[Value], name: &str) {
    assert!(!records.is_empty(), "{name} holds no record");
    let mut wrong = Vec::new();
    for record in records {
        if let Err(error) = validator.validate(record) {
            wrong.push(format!("{name}: {error}\n  in {record}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Checks the records of a transcript that `claw-append` wrote, and returns their types.
#[track_caller]
fn fits_file(sandbox: &Sandbox, name: &str) -> BTreeSet<String> {
    let records = sandbox.read_json(name);
    fits(&written(), &records, name);
    records.iter().map(|record| record["type"].as_str().expect("a type").to_owned()).collect()
}

fn set(types: &[&str]) -> BTreeSet<String> {
    types.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the types that the schema defines.
fn types() -> BTreeSet<String> {
    let schema = schema();
    let cases = schema["allOf"].as_array().expect("a list of types").iter();
    let name = |case: &Value| case["if"]["properties"]["type"]["const"].as_str().map(str::to_owned);
    cases.map(|case| name(case).expect("a type")).collect()
}

// ---- the schema itself -----------------------------------------------------------------------

#[test]
fn the_schema_is_valid_and_has_a_version() {
    let schema = schema();
    Validator::new(schema.clone());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$id"], "urn:clawutils:claw-record:1");
}

#[test]
fn the_types_match_the_manual_page_and_the_reader() {
    let page = include_str!("../../man/claw-record.5");
    let section = page.split(".Ss ").find(|part| part.starts_with("Types\n"));
    let items = section.expect("a section on types").lines();
    let named: BTreeSet<String> =
        items.filter_map(|line| line.strip_prefix(".It Li ")).map(str::to_owned).collect();
    assert_eq!(types(), named);
    for name in types() {
        let text = json!({ "type": name }).to_string();
        let body = record::parse(&Object::parse(&text).expect("an object"));
        assert!(!matches!(body, Ok(record::Body::Other)), "the reader does not know '{name}'");
    }
}

#[test]
fn unknown_types_and_members_are_allowed() {
    let validator = written();
    for record in [
        json!({"id": "0123456789abcdef", "type": "progress", "ts": 1, "content": 5}),
        json!({"id": "0123456789abcdef", "type": "user", "ts": 1, "content": "x", "mood": []}),
        json!({"id": "0123456789abcdef", "type": "user", "ts": 1,
            "content": [{"type": "text", "text": "x", "cache_control": {}}, {"type": "new"}]}),
    ] {
        fits(&validator, &[record], "unknown");
    }
}

#[test]
fn records_with_wrong_members_are_invalid() {
    let validator = readable();
    let wrong = [
        json!([]),
        json!({"content": "no type"}),
        json!({"type": 5}),
        json!({"type": "user"}),
        json!({"type": "user", "content": 5}),
        json!({"type": "user", "content": [5]}),
        json!({"type": "user", "content": [{"text": "no type"}]}),
        json!({"type": "user", "content": [{"type": "text"}]}),
        json!({"type": "user", "content": "x", "pin": "yes"}),
        json!({"type": "user", "content": "x", "id": ""}),
        json!({"type": "user", "content": "x", "ts": true}),
        json!({"type": "user", "content": "x", "redacted": []}),
        json!({"type": "user", "content": "x", "redacted": ["a", "a"]}),
        json!({"type": "user", "content": "x", "redacted": "a"}),
        json!({"type": "assistant", "model": "m"}),
        json!({"type": "assistant", "content": "x", "usage": 5}),
        json!({"type": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]}),
        json!({"type": "tool_use", "tool_use_id": "", "name": "f", "input": {}}),
        json!({"type": "tool_use", "tool_use_id": "a", "name": "f", "input": []}),
        json!({"type": "tool_use", "tool_use_id": "a", "input": {}}),
        json!({"type": "tool_result", "content": "x"}),
        json!({"type": "tool_result", "tool_use_id": "a"}),
        json!({"type": "tool_result", "tool_use_id": "a", "content": {}}),
        json!({"type": "truncation", "tool_use_id": "a", "record_id": "b", "head": 1, "tail": 0,
            "bytes": 9, "sha256": "0123456789abcdef", "media": ["no hash"]}),
        json!({"type": "truncation", "tool_use_id": "a", "record_id": "b", "head": -1, "tail": 0,
            "bytes": 1, "sha256": "0123456789abcdef"}),
        json!({"type": "truncation", "tool_use_id": "a", "record_id": "b", "head": 1, "tail": 0,
            "bytes": 1, "sha256": "short"}),
        json!({"type": "omission", "record_id": "a", "kind": "image"}),
        json!({"type": "omission", "block": 0, "kind": "image"}),
        json!({"type": "omission", "record_id": "a", "block": -1, "kind": "image"}),
        json!({"type": "omission", "record_id": "a", "tool_use_id": "c", "part": 0}),
        json!({"type": "compaction", "summary": "x"}),
        json!({"type": "compaction", "first_kept_entry_id": "a", "summary": ["x"]}),
        json!({"type": "compaction", "first_kept_entry_id": "a", "summary": "x", "kept_user": [1]}),
        json!({"type": "compaction", "first_kept_entry_id": "a", "summary": "x", "strategy": "x"}),
        json!({"type": "checkpoint", "topics": "x"}),
        json!({"type": "retract"}),
        json!({"type": "error", "class": "overflow"}),
        json!({"type": "error", "class": "overflow", "message": "x", "limit": "5"}),
        json!({"type": "session", "id": "a", "key": "k", "created": "x", "version": 2}),
    ];
    for record in wrong {
        assert!(validator.validate(&record).is_err(), "{record}");
    }
    let validator = written();
    for record in [
        json!({"type": "user", "ts": 1, "content": "no id"}),
        json!({"type": "user", "id": "0123456789abcdef", "content": "no ts"}),
        json!({"type": "user", "id": "0123456789abcdef", "ts": "1", "content": "x"}),
        json!({"type": "user", "id": "ABC", "ts": 1, "content": "x"}),
    ] {
        assert!(validator.validate(&record).is_err(), "{record}");
    }
}

// ---- examples --------------------------------------------------------------------------------

#[test]
fn s_1_every_transcript_among_the_fixtures_is_valid() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let validator = readable();
    let mut count = 0;
    for entry in walkdir::WalkDir::new(&data).sort_by_file_name() {
        let path = entry.expect("a readable directory").into_path();
        let name = path.strip_prefix(&data).expect("a path in the directory").display().to_string();
        // golden/ holds messages, dialects/ transcripts of other programs, files named *.facts.jsonl are not transcripts, and hostile files are invalid on
        // purpose.
        let is_other = name.starts_with("golden")
            || name.starts_with("dialects")
            || name.ends_with(".facts.jsonl")
            || name.ends_with("hostile.jsonl");
        if !name.ends_with(".jsonl") || is_other {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a transcript");
        let records: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        fits(&validator, &records, &name);
        count += 1;
    }
    assert!(count >= 7, "only {count} transcripts");
}

// ---- records that programs write -------------------------------------------------------------

#[test]
fn records_that_append_makes_of_plain_text_are_valid() {
    let sandbox = Sandbox::new();
    for args in [
        &["--user"][..],
        &["--assistant"],
        &["--tool-result", "t1"],
        &["--tool-result", "t1", "--is-error"],
    ] {
        sandbox
            .cmd("claw-append")
            .args(args)
            .arg("s.jsonl")
            .write_stdin("some text")
            .assert()
            .success();
    }
    assert_eq!(fits_file(&sandbox, "s.jsonl"), set(&["assistant", "tool_result", "user"]));
}

#[test]
fn a_record_of_each_type_is_valid_and_can_be_appended() {
    let truncation = json!({"type": "truncation", "tool_use_id": "a", "record_id": "@0", "head": 1,
        "tail": 2, "bytes": 30, "sha256": "0123456789abcdef"});
    let omission = json!({"type": "omission", "record_id": "@0", "block": 0, "kind": "text",
        "reason": "it is refused"});
    let session = json!({"type": "session", "id": "81efc48888b7", "key": "main:cli:user",
        "label": "", "created": "2026-01-01T00:00:00+00:00", "version": 1});
    let checkpoint = json!({"type": "checkpoint", "summary": "s", "topics": ["t"],
        "key_decisions": [], "open_questions": [], "tokens_at_checkpoint": 5,
        "message_count_at_checkpoint": 2, "covers_up_to": "@0", "generated_by": "m"});
    let compaction = json!({"type": "compaction", "summary": "s", "first_kept_entry_id": "@0"});
    let conversation = Conversation::new()
        .record(session)
        .user("hi")
        .tool("result")
        .record(truncation)
        .record(omission)
        .record(compaction)
        .record(checkpoint)
        .record(json!({"type": "retract", "target": "@0"}))
        .record(json!({"type": "label", "label": "new"}))
        .record(json!({"type": "error", "class": "overflow", "message": "m", "status": null}));
    let sandbox = Sandbox::new();
    conversation.append(&sandbox, "s.jsonl");
    assert_eq!(fits_file(&sandbox, "s.jsonl"), types());
}

#[test]
fn records_of_claw_truncate_and_claw_compact_are_valid() {
    let sandbox = Sandbox::new();
    let conversation = (1..=6).fold(Conversation::new(), |conversation, n| {
        conversation.user(&format!("Build {n}.")).tool(log(150)).assistant("It fails.")
    });
    conversation.append(&sandbox, "s.jsonl");
    sandbox.write("summary", "All of it failed.");
    let compact = ["--window", "8000", "--summary", "summary"];
    for (program, args) in
        [("claw-truncate", &["--window", "8000"][..]), ("claw-compact", &compact)]
    {
        let run = stage(&sandbox, program, args, "s.jsonl").success();
        fits(&readable(), &run.json(), program);
        sandbox
            .cmd("claw-append")
            .arg("s.jsonl")
            .write_stdin(run.get_output().stdout.clone())
            .assert()
            .success();
    }
    let found = fits_file(&sandbox, "s.jsonl");
    assert!(found.contains("truncation") && found.contains("compaction"), "{found:?}");
}

#[cfg(feature = "http")]
mod calls {
    use super::*;
    use crate::common::provider::{FakeProvider, Step};
    use crate::conversations::append;

    const ASK: &str = r#"{"role":"user","content":"What is 2 + 2?"}"#;

    #[test]
    fn checkpoints_are_valid() {
        let sandbox = Sandbox::new();
        Conversation::plain(4, 20).append(&sandbox, "s.jsonl");
        let messages = crate::conversations::rebuild_meta(&sandbox, "s.jsonl");
        let cmd = sandbox.cmd("claw-checkpoint").args(["--provider", "offline"]);
        let run = cmd.write_stdin(messages).assert().success();
        fits(&readable(), &run.json(), "claw-checkpoint");
        append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
        assert!(fits_file(&sandbox, "s.jsonl").contains("checkpoint"));
    }

    #[test]
    fn records_of_a_call_are_valid() {
        let blocks = json!([
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "text", "text": "look"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": [1, null]}},
            {"type": "text", "text": "and"},
        ]);
        let reply = json!({"id": "m", "type": "message", "role": "assistant", "model": "m",
            "content": blocks, "stop_reason": "tool_use",
            "usage": {"input_tokens": 5, "output_tokens": 2}});
        let provider = FakeProvider::new();
        provider.script(Step::Reply(reply));
        provider.script(Step::text("four"));
        let sandbox = Sandbox::new();
        let call = || sandbox.cmd("claw-call").write_stdin(ASK);
        let runs = [
            call().envs(provider.env()).assert(),
            call().envs(provider.env()).assert(),
            call().args(["--provider", "offline", "--model", "m"]).assert(),
        ];
        for run in runs {
            let run = run.success();
            fits(&readable(), &run.json(), "claw-call");
            append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
        }
        assert_eq!(fits_file(&sandbox, "s.jsonl"), set(&["assistant", "tool_use"]));
    }

    #[test]
    fn error_records_are_valid() {
        let provider = FakeProvider::new();
        let sandbox = Sandbox::new();
        let steps = [
            Step::Overflow,
            Step::error(401, "authentication_error", "invalid x-api-key"),
            Step::error(529, "overloaded_error", "Overloaded"),
            Step::Drop,
        ];
        for step in steps {
            provider.script(step);
            let args = ["--failure", "failure", "--max-retries", "0"];
            let run =
                sandbox.cmd("claw-call").envs(provider.env()).args(args).write_stdin(ASK).assert();
            assert!(run.get_output().status.code() != Some(0), "the call must fail\n{run}");
            append(&sandbox, "s.jsonl", sandbox.read("failure"));
        }
        assert_eq!(fits_file(&sandbox, "s.jsonl"), set(&["error"]));
    }

    #[test]
    fn the_transcript_of_the_demo_is_valid() {
        let sandbox = Sandbox::new();
        sandbox.cmd("dev/demo").arg("demo").assert().success();
        let found = fits_file(&sandbox, "demo/session.jsonl");
        for kind in ["error", "truncation", "compaction", "tool_use", "tool_result"] {
            assert!(found.contains(kind), "no {kind}: {found:?}");
        }
    }
}
