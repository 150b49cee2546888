//! tests/CASES.md and the names of tests agree: each numbered requirement has a test, and each number in a name
//! `audit_NN_...` has a row.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the numbers of the rows in the table of CASES.md.
fn listed() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("tests/CASES.md")).expect("tests/CASES.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.map(|(number, _)| number.to_owned()).filter(|number| is_number(number)).collect()
}

/// Returns the numbers in the names of all test functions (`fn audit_NN_`).
fn tested() -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for directory in ["src", "tests"] {
        for entry in walkdir::WalkDir::new(root().join(directory)) {
            let entry = entry.expect("a readable directory");
            if entry.path().extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = fs::read_to_string(entry.path()).expect("a source file");
            let names = source.lines().filter_map(|line| line.trim().strip_prefix("fn audit_"));
            numbers.extend(names.filter_map(|name| name.get(..2)).map(str::to_owned));
        }
    }
    numbers
}

fn is_number(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn every_numbered_requirement_has_a_test_and_every_number_a_row() {
    let (listed, tested) = (listed(), tested());
    assert!(listed.len() > 30, "cannot read the table: {listed:?}");
    let untested: Vec<_> = listed.difference(&tested).collect();
    let unlisted: Vec<_> = tested.difference(&listed).collect();
    assert!(untested.is_empty(), "requirements without a test: {untested:?}");
    assert!(unlisted.is_empty(), "numbers without a row in tests/CASES.md: {unlisted:?}");
}
