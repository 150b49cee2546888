//! claw-call --classify: the failure table as the program applies it, and rows that the user adds.

use std::collections::BTreeSet;

use predicates::str::contains;
use serde_json::Value;

use crate::common::{AssertExt, Cmd, Sandbox};

/// 2026-01-01T00:00:00Z, the time to which dates in the rows are relative.
const NOW: &str = "1767225600";

/// Returns the rows of the test data, each an answer and its expected class.
fn rows() -> Vec<Value> {
    let text = include_str!("../data/failures.ndjson");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn classify(sandbox: &Sandbox, status: &str, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-call").env("SOURCE_DATE_EPOCH", NOW);
    cmd.args(["--classify", status]).args(args)
}

/// Returns each row that has a class, member or header that no earlier row has.
fn first_of_each_kind() -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut rows = rows();
    rows.retain(|row| {
        let class = row["class"].as_str().map(str::to_owned);
        let names = |value: &Value| {
            value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let kinds = class.into_iter().chain(names(row)).chain(names(&row["headers"]));
        kinds.filter(|kind| seen.insert(kind.clone())).count() > 0
    });
    rows
}

/// This test runs the program for a selection of the rows; the unit tests of the failure table cover all of them.
#[test]
fn k7_the_program_classifies_rows_of_the_table() {
    let (rows, sandbox) = (first_of_each_kind(), Sandbox::new());
    assert!(rows.len() > 12, "{}", rows.len());
    for row in &rows {
        let body = row["body"].as_str().unwrap();
        let mut cmd = classify(&sandbox, &row["status"].to_string(), &[]);
        for (name, value) in row["headers"].as_object().into_iter().flatten() {
            cmd = cmd.args(["--header", &format!("{name}: {}", value.as_str().unwrap())]);
        }
        let run = cmd.write_stdin(body).assert();
        let exit = row["exit"].as_i64().unwrap();
        let found = run.code(i32::try_from(exit).unwrap()).json_one();
        // Members that the row does not state must be null.
        for name in [
            "class",
            "rule",
            "status",
            "exit",
            "actual",
            "limit",
            "retry_after",
            "requested_output",
            "output_cap",
        ] {
            assert_eq!(found[name], row[name], "{name}: {body}");
        }
        assert_eq!(found["actual_is_floor"], row["actual_is_floor"] == true, "{body}");
        let retryable = row.get("retryable").cloned().unwrap_or((exit == 75 || exit == 69).into());
        assert_eq!(found["retryable"], retryable, "{body}");
    }
}

#[test]
fn user_rows_apply_unless_the_status_or_an_error_code_takes_precedence() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "rows",
        "# our gateway\n\noverflow  budget of (?<limit>[\\d,]+) used up by (?<actual>\\d+)\nrate-limit slow down\noutput-cap  at most (?<cap>\\d+) out of (?<output>\\d+)\n",
    );
    let body = |text: &str| format!(r#"{{"error":{{"message":"{text}"}}}}"#);
    let own = ["--failures", "rows"];
    let text = body("BUDGET of 8,000 used up by 9100");
    classify(&sandbox, "400", &[]).write_stdin(text.clone()).assert().code(76);
    for status in ["400", "404", "422", "500", "200"] {
        let found = classify(&sandbox, status, &own).write_stdin(text.clone()).assert();
        let found = found.code(3).json_one();
        assert_eq!(found["rule"], "rows:3");
        assert_eq!((&found["limit"], &found["actual"]), (&8000.into(), &9100.into()));
    }
    for (status, exit) in [("401", 77), ("402", 77), ("403", 77), ("429", 75)] {
        classify(&sandbox, status, &own).write_stdin(text.clone()).assert().code(exit);
    }
    let slow = classify(&sandbox, "400", &own).write_stdin(body("slow down")).assert();
    assert_eq!(slow.code(75).json_one()["rule"], "rows:4");
    let cap = classify(&sandbox, "400", &own).write_stdin(body("at most 64 out of 90")).assert();
    assert_eq!(cap.code(76).json_one()["output_cap"], 64);
    // Rules for quota and keys take precedence. CLAW_FAILURES applies without --failures.
    let quota = r#"{"error":{"code":"insufficient_quota","message":"slow down"}}"#;
    classify(&sandbox, "400", &own).write_stdin(quota).assert().code(77);
    let by_variable = classify(&sandbox, "400", &[]).env("CLAW_FAILURES", "rows");
    by_variable.write_stdin(body("slow down")).assert().code(75);
}

#[test]
fn an_invalid_row_is_reported_with_its_line_number() {
    let sandbox = Sandbox::new();
    for (text, why) in [
        ("overflow a\nflood b\n", "cannot use rows 'rows': line 2: unknown class 'flood'"),
        ("overflow\n", "line 1: no pattern after the class"),
        ("overflow (\n", "line 1: not a regular expression: error: unclosed group"),
    ] {
        sandbox.write("rows", text);
        classify(&sandbox, "400", &["--failures", "rows"])
            .write_stdin("")
            .assert()
            .code(78)
            .stderr(contains(why))
            .stdout("");
    }
    classify(&sandbox, "400", &["--failures", "none"]).write_stdin("").assert().code(74);
}

#[test]
fn a_successful_reply_is_not_classified() {
    let sandbox = Sandbox::new();
    for body in
        [r#"{"content":[]}"#, r#"{"choices":[{"message":{}}]}"#, r#"{"message":{"content":"x"}}"#]
    {
        classify(&sandbox, "200", &[])
            .write_stdin(body)
            .assert()
            .code(65)
            .stderr(contains("only failures can be classified"));
    }
    classify(&sandbox, "99", &[]).write_stdin("").assert().code(2);
    classify(&sandbox, "400", &["--header", "x"])
        .write_stdin("")
        .assert()
        .code(2)
        .stderr(contains("no colon"));
    sandbox.cmd("claw-call").args(["--header", "a: b"]).assert().code(2);
}

/// A provider's text cannot control the terminal or add a line to the diagnostics.
#[test]
fn the_text_of_a_provider_is_escaped() {
    let sandbox = Sandbox::new();
    let body = r#"{"error":{"message":"a\u001b[31m\nb"}}"#;
    let run = classify(&sandbox, "400", &[])
        .write_stdin(body)
        .assert()
        .code(76)
        .stdout(contains(r#""message":"a\u001b[31m\nb""#))
        .stderr(contains(r"a\u{1b}[31m"));
    assert_eq!(run.stderr_text().lines().count(), 1);
}
