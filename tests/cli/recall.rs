//! scripts/dev/recall: how many of the facts that are planted in `tests/data/recall` survive compaction, without a
//! model and with recorded summaries of a model. `CLAW_BLESS=1` writes the measured rows into docs/recall.md.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::thread;

use assert_cmd::assert::Assert;

use crate::common::{AssertExt, Sandbox};

/// The measured rows. They are measured in parallel, because ten compactions take much longer than three.
struct Table {
    header: String,
    /// The rows of the `local` strategy for one, three and ten compactions.
    rows: Vec<String>,
    /// The rows of the `local` strategy for the held-out sessions. No phrase of the strategy was written for these
    /// sessions.
    held_out: Vec<String>,
    /// The rows of the `replay` strategy, whose summaries are replayed from recordings of a model.
    replay: Vec<String>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let run = |arguments: &'static str| thread::spawn(move || recall(arguments).success().lines());
    let replay = "--sessions 'en-1 ja-1 zh-1' --rounds '1 3' replay";
    let parts = ["--rounds 10 local", "--rounds '1 3' local", "--held-out local", replay].map(run);
    let [mut ten, few, held_out, replay] = parts.map(|part| part.join().expect("a table"));
    let header = ten.remove(0);
    let rows = few[2..].iter().chain(&ten[1..]).cloned().collect();
    Table { header, rows, held_out: held_out[2..].to_vec(), replay: replay[2..].to_vec() }
});

fn recall(arguments: &str) -> Assert {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/dev/recall");
    Sandbox::new().sh(&format!(r#"sh "$RECALL" {arguments}"#)).env("RECALL", script).assert()
}

/// Fails and lists the lost facts unless `row` shows that all facts of this kind survive ten compactions. `among` is
/// the option that selects the sessions; it is empty for the usual ones.
#[track_caller]
fn all_survive_ten_compactions(kind: &str, row: &'static str, among: &str) {
    let cells = |row: &'static str| row.split('|').map(str::trim).collect::<Vec<_>>();
    let column = cells(&TABLE.header).iter().position(|title| *title == format!("{kind}s"));
    let row = cells(row);
    assert_eq!(row[2], "10");
    if row[column.expect("a column")] != "100 %" {
        let lost = recall(&format!("--lost {among} --rounds 10 local")).stdout_text();
        let lost = lost.lines().filter(|line| line.contains(&format!("\t{kind}\t")));
        panic!("lost:\n{}", lost.collect::<Vec<_>>().join("\n"));
    }
}

/// The sessions are in English, Japanese and Chinese. Most rules are in the middle of a session, and some in the middle
/// of a long message.
#[test]
fn n3_rules_of_the_user_survive_ten_compactions() {
    all_survive_ten_compactions("rule", &TABLE.rows[2], "");
}

#[test]
fn n5_pinned_messages_survive_ten_compactions() {
    all_survive_ten_compactions("pin", &TABLE.rows[2], "");
    all_survive_ten_compactions("pin", &TABLE.held_out[2], "--held-out");
}

#[test]
fn the_documents_state_the_measured_numbers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (path, readme) = (root.join("docs/recall.md"), root.join("README.md"));
    let page = fs::read_to_string(&path).expect("docs/recall.md");
    let is_measured = |line: &&str| ["| local", "| replay"].iter().any(|row| line.starts_with(row));
    let rows = page.lines().filter(is_measured).collect::<Vec<_>>();
    let measured = [&TABLE.rows[..], &TABLE.held_out, &TABLE.replay].concat();
    if std::env::var_os("CLAW_BLESS").is_some() {
        let blessed = page.replace(&rows.join("\n"), &measured.join("\n"));
        fs::write(&path, blessed).expect("docs/recall.md can be written");
        return;
    }
    assert_eq!(rows, measured, "docs/recall.md differs; CLAW_BLESS=1 rewrites it");
    assert!(page.contains(&TABLE.header), "docs/recall.md lacks the header {}", TABLE.header);

    let kept = |row: &String| -> u32 {
        let share = row.split('|').nth(4).expect("a column").trim();
        share.trim_end_matches(" %").parse().expect("a percentage")
    };
    let shares = || TABLE.rows.iter().chain(&TABLE.held_out).map(kept);
    let range = format!("{} to {} %", shares().min().expect("rows"), shares().max().expect("rows"));
    let readme = fs::read_to_string(readme).expect("README.md");
    assert!(readme.contains(&range), "README.md does not say that {range} of the facts are kept");
}
