//! tests/CASES.md and the names of tests agree: each numbered case has a test, and each number in a
//! test name is explained.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the numbers of the rows in the table of CASES.md.
fn explained() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("tests/CASES.md")).expect("tests/CASES.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.map(|(number, _)| number.to_owned()).filter(|number| is_number(number)).collect()
}

/// Returns the numbers in the names of test functions, `fn audit_NN_`, of the whole project.
fn tested() -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for folder in ["src", "tests"] {
        for entry in walkdir::WalkDir::new(root().join(folder)) {
            let entry = entry.expect("a readable folder");
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
fn every_numbered_case_has_a_test_and_every_number_an_explanation() {
    let (explained, tested) = (explained(), tested());
    assert!(explained.len() > 30, "the table was not read: {explained:?}");
    let untested: Vec<_> = explained.difference(&tested).collect();
    let unexplained: Vec<_> = tested.difference(&explained).collect();
    assert!(untested.is_empty(), "cases without a test: {untested:?}");
    assert!(
        unexplained.is_empty(),
        "numbers that tests/CASES.md does not explain: {unexplained:?}"
    );
}
