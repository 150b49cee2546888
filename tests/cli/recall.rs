//! scripts/dev/recall: what survives compaction, without a model, of the facts that are planted in
//! `tests/data/recall`. `CLAW_BLESS=1` writes the measured rows into the README.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::common::{Run, Sandbox};

/// The table of the `local` strategy: a header, a line, and rows for one, three and ten compactions.
static TABLE: LazyLock<Vec<String>> = LazyLock::new(|| recall("local").ok().lines());

fn recall(arguments: &str) -> Run {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/dev/recall");
    Sandbox::new().sh(&format!(r#"sh "$RECALL" {arguments}"#)).env("RECALL", script).run()
}

/// Fails with all that is lost unless a column says that nothing is, after ten compactions.
#[track_caller]
fn all_survive_ten_compactions(kind: &str) {
    let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
    let column = cells(&TABLE[0]).iter().position(|title| *title == format!("{kind}s"));
    let row = cells(&TABLE[4]);
    assert_eq!(row[1..3], ["local", "10"]);
    if row[column.expect("a column")] != "100 %" {
        let lost = recall("--lost --rounds 10 local").stdout_text();
        let lost = lost.lines().filter(|line| line.contains(&format!("\t{kind}\t")));
        panic!("lost:\n{}", lost.collect::<Vec<_>>().join("\n"));
    }
}

/// In English, Japanese and Chinese; most rules are said in the middle of a session, and some in the middle
/// of a long message.
#[test]
fn n3_rules_of_the_user_survive_ten_compactions() {
    all_survive_ten_compactions("rule");
}

#[test]
fn n5_what_is_pinned_survives_ten_compactions() {
    all_survive_ten_compactions("pin");
}

#[test]
fn the_readme_tells_what_is_measured() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).expect("the README");
    let rows = readme.lines().filter(|line| line.starts_with("| local |")).collect::<Vec<_>>();
    if std::env::var_os("CLAW_BLESS").is_some() {
        let blessed = readme.replace(&rows.join("\n"), &TABLE[2..].join("\n"));
        fs::write(&path, blessed).expect("the README is written");
        return;
    }
    assert_eq!(rows, TABLE[2..], "the README's rows; CLAW_BLESS=1 writes what is measured");
    assert!(readme.contains(&TABLE[0]), "the README lacks the header {}", TABLE[0]);
}
