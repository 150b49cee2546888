//! tests/CASES.md and the names of tests agree: each numbered requirement has a test, and each number in a name
//! `audit_NN_...` or `case_NN_...` has a row.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the numbers of the rows in a table of CASES.md, the first one for `audit` and the second for `case`.
fn listed(kind: &str) -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("tests/CASES.md")).expect("tests/CASES.md");
    let (audits, cases) = page.split_once("`case_NN`").expect("two tables");
    let rows = if kind == "case" { cases } else { audits }
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.map(|(number, _)| number.to_owned()).filter(|number| is_number(number)).collect()
}

/// Returns the numbers in the names of all test functions (`fn audit_NN_`, `fn case_NN_`).
fn tested(kind: &str) -> BTreeSet<String> {
    let opening = format!("fn {kind}_");
    let mut numbers = BTreeSet::new();
    for directory in ["src", "tests"] {
        for entry in walkdir::WalkDir::new(root().join(directory)) {
            let entry = entry.expect("a readable directory");
            if entry.path().extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = fs::read_to_string(entry.path()).expect("a source file");
            let names = source.lines().filter_map(|line| line.trim().strip_prefix(&*opening));
            let numbered = names.filter_map(|name| name.get(..2)).filter(|text| is_number(text));
            numbers.extend(numbered.map(str::to_owned));
        }
    }
    numbers
}

fn is_number(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn every_numbered_requirement_has_a_test_and_every_number_a_row() {
    for (kind, least) in [("audit", 30), ("case", 5)] {
        let (listed, tested) = (listed(kind), tested(kind));
        assert!(listed.len() >= least, "cannot read the table: {listed:?}");
        let untested: Vec<_> = listed.difference(&tested).collect();
        let unlisted: Vec<_> = tested.difference(&listed).collect();
        assert!(untested.is_empty(), "requirements without a test: {untested:?}");
        assert!(unlisted.is_empty(), "numbers without a row in tests/CASES.md: {unlisted:?}");
    }
}
