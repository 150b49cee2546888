//! claw-replay's reports for CI systems: each is valid in its format, whatever text a transcript contains.

use predicates::str::contains;
use serde_json::json;

use super::{Reports, check, transcript};
use crate::common::{AssertExt, Sandbox};
use crate::man::has_tool;
use crate::show::browser::seen;

/// Text in a transcript that each report format has to escape.
const HOSTILE: &str =
    "</failure>]]>&\"'\u{1b}[31m\u{fffe}\u{202e}\r\n::error::a%0A|`<b>`|*_# SKIP \\x";

/// Creates a transcript that passes, one that fails with hostile text in its message, and a file that is not a
/// transcript.
fn three() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("d/a.jsonl", transcript(1));
    let lost = json!({"type": "tool_result", "tool_use_id": HOSTILE, "content": "lost"});
    sandbox.write("d/b # <c>, d.jsonl", format!("{}{lost}\n", transcript(1)));
    sandbox.write("d/text.jsonl", "plain text\n");
    sandbox
}

/// Checks that no character in `text` controls a terminal.
fn assert_printable(text: &str) {
    let is_hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
    assert!(!text.contains(is_hidden), "{text:?}");
}

#[test]
fn junit_results_are_valid_whatever_transcripts_contain() {
    let sandbox = three();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/junit/results.xsd");
    let args = ["--junit", "r.xml", "--window", "4000", "d"];
    let reports = check(&sandbox, &args).code(1);
    assert_eq!(reports.reports().len(), 3);
    let xml = sandbox.read_text("r.xml");
    assert_printable(&xml);
    assert!(!xml.contains('\u{fffe}'), "{xml}");
    for part in [
        r#" <testsuite id="0" package="claw-replay.check" name="d/a.jsonl" timestamp="2026-01-01T00:00:00" hostname="localhost" tests="3" failures="0" errors="0" skipped="0" time="0">"#,
        r#"  <testcase classname="claw-replay.check" name="d/a.jsonl: sound" time="0"/>"#,
        r#"name="d/b # &lt;c&gt;, d.jsonl: sound""#,
        "&lt;/failure&gt;]]&gt;&amp;",
        "\nline 4</failure>",
        "<skipped message=\"cannot read &apos;d/text.jsonl&apos;",
    ] {
        assert!(xml.contains(part), "no {part} in\n{xml}");
    }
    check(&sandbox, &["--strict", "--junit", "strict.xml", "d"]).code(65);
    assert!(sandbox.read_text("strict.xml").contains("type=\"unreadable\">"));
    let none = ["--junit", "none.xml", "--shard", "1/9999", "d/a.jsonl"];
    assert_eq!(check(&sandbox, &none).success().reports().len(), 0);
    sandbox.sh("stat -c %a r.xml; umask").assert().success().stdout("644\n0022\n");
    if has_tool("xmllint") {
        let files = ["r.xml", "strict.xml", "none.xml"];
        let run = sandbox.sh("xmllint --nonet --noout --schema \"$@\"").arg("sh").arg(schema);
        run.args(files).assert().success();
        // The schema rejects an invalid report.
        sandbox.write("wrong.xml", xml.replace("errors=", "mistakes="));
        let run = sandbox.sh("xmllint --nonet --noout --schema \"$@\"").arg("sh").arg(schema);
        run.arg("wrong.xml").assert().code(3);
    }
}

#[test]
fn annotations_do_not_change_the_reports() {
    let sandbox = three();
    let plain = check(&sandbox, &["d"]).code(1).stdout_text();
    let run = check(&sandbox, &["--github", "d"]).code(1).stdout(plain);
    let text = run.stderr_text();
    assert_printable(text);
    let begin = "::error file=d/b # <c>%2C d.jsonl,line=4,title=claw-replay check::d/b # <c>, d.jsonl: sound: ";
    assert!(text.starts_with(begin) && text.lines().count() == 1, "{text}");
    assert!(text.contains("a%250A"), "{text}");
    let run = check(&sandbox, &["--github", "--strict", "d/text.jsonl"]).code(65);
    assert!(run.stderr_text().starts_with("::error file=d/text.jsonl,title=claw-replay check::"));
}

#[test]
fn details_and_skipped_cases_are_in_each_format() {
    let sandbox = Sandbox::new();
    let detail = "- a```</pre>\n+ b\u{1b}]]>\n";
    let failed = json!({"name": "turn 1", "status": "failed", "message": "differs", "line": 2, "detail": detail});
    let skipped = json!({"name": "turn 2", "status": "skipped", "message": "no reply"});
    let report = json!({"path": "a.jsonl", "mode": "call", "status": "failed",
        "message": "turn 1: differs", "cases": [failed, skipped], "numbers": {}});
    let end =
        json!({"end": "complete", "passed": 0, "failed": 1, "unreadable": 0, "not_transcripts": 0});
    sandbox.write("reports", format!("{report}\n{end}\n"));
    let args = ["--quiet", "--junit", "r.xml", "--markdown", "r.md", "--html", "r"];
    sandbox.cmd("claw-replay").arg("merge").args(args).arg("reports").assert().code(1);
    for (file, part) in [
        ("r.xml", "differs\nline 2\n\n- a```&lt;/pre&gt;\n+ b\\u{1b}]]&gt;</failure>"),
        ("r.xml", "<skipped message=\"no reply\">no reply</skipped>"),
        ("r.md", "</summary>\n\n````diff\n- a```</pre>\n+ b\\u{1b}]]>\n````\n\n</details>\n"),
        ("r/index.html", "\n- a```&lt;/pre&gt;\n+ b\\u{1b}]]&gt;</pre>\n</details>\n"),
    ] {
        let text = sandbox.read_text(file);
        assert!(text.contains(part), "no {part} in {file}:\n{text}");
    }
}

#[test]
fn a_report_appears_only_when_it_is_complete() {
    let sandbox = three();
    sandbox.write("old.xml", "old");
    let args = ["check", "--junit", "old.xml", "--html", "report", "--files-from", "-"];
    let mut child = sandbox.cmd("claw-replay").args(args).spawn();
    let exists = "until test -d report/transcripts; do sleep 0.01; done; sleep 0.05";
    sandbox.sh(exists).assert().success();
    child.kill().expect("a process");
    child.wait().expect("an exit status");
    assert_eq!(sandbox.read_text("old.xml"), "old");
    // No temporary file is left beside the old report. (On a file system without O_TMPFILE, one would be.)
    let left = "find . -name '.old.xml.*' -o -name '.index.html.*'";
    sandbox.sh(left).assert().success().stdout("");
    // A run that ends with an error leaves no file.
    let args = ["--junit", "no.xml", "--files-from", "none"];
    check(&sandbox, &args).code(74);
    check(&sandbox, &["--junit", "no/r.xml", "d"]).code(74).stdout("");
    sandbox.sh("ls -A | grep no").assert().code(1);
    // A full disk, and two reports that would be written to the same file.
    let full = check(&sandbox, &["--junit", "/dev/full", "d"]).code(74);
    full.stderr(contains("claw-replay: cannot write '/dev/full': no space left on device"));
    let same = ["--junit", "r/index.html", "--html", "r", "d"];
    check(&sandbox, &same).code(2).stdout("").stderr(contains("give each its own name"));
    // A pipe is not replaced.
    let script = "mkfifo p; cat p >got & claw-replay check --quiet --junit p d; wait; test -p p; head -c 5 got";
    sandbox.sh(script).assert().success().stdout(contains("\n<?xml"));
}

#[test]
fn two_runs_do_not_write_one_html_report() {
    let sandbox = three();
    check(&sandbox, &["--html", "report", "d"]).code(1);
    let index = sandbox.read_text("report/index.html");
    let other = std::fs::File::open(sandbox.path("report")).expect("a directory");
    other.lock().expect("a lock");
    check(&sandbox, &["--html", "report", "d"])
        .code(75)
        .stderr(contains("cannot write 'report': another run writes a report there"));
    assert_eq!(sandbox.read_text("report/index.html"), index);
    drop(other);
    check(&sandbox, &["--html", "report", "d"]).code(1);
}

#[test]
fn a_summary_is_markdown_of_at_most_a_mebibyte() {
    let sandbox = three();
    check(&sandbox, &["--markdown", "s.md", "d"]).code(1);
    let text = sandbox.read_text("s.md");
    assert_printable(&text);
    let begin = "## claw-replay\n\n3 files: 1 passed, 1 failed, 1 not a transcript\n\n\
                 | transcript | case | line | message |\n|---|---|---|---|\n| d/b \\# \\<c\\>, d.jsonl | sound | 4 | ";
    assert!(text.starts_with(begin), "{text}");
    // A Markdown parser finds one table with two rows of four cells, and nothing but text in them.
    let options = pulldown_cmark::Options::all();
    let mut tags = Vec::new();
    for event in pulldown_cmark::Parser::new_ext(&text, options) {
        match event {
            pulldown_cmark::Event::Start(tag) => tags.push(format!("{:?}", tag.to_end())),
            pulldown_cmark::Event::Text(_) | pulldown_cmark::Event::End(_) => {}
            other => panic!("{other:?} in\n{text}"),
        }
    }
    assert_eq!(tags.iter().filter(|tag| *tag == "TableCell").count(), 8, "{tags:?}");
    assert_eq!(tags.len(), 2 + 1 + 2 + 8, "{tags:?}");
    // Of many failures, only as many as fit are listed.
    let list: String = (0..2500).map(|n| format!("missing/{n}/{}\n", "x".repeat(230))).collect();
    let args = ["--markdown", "s.md", "--files-from", "list"];
    sandbox.write("list", list);
    check(&sandbox, &args).code(1);
    let text = sandbox.read_text("s.md");
    let rows = text.lines().filter(|line| line.starts_with("| missing/")).count();
    assert!((900_000..1 << 20).contains(&text.len()), "{} bytes", text.len());
    assert!(text.ends_with(&format!("\n{} more failures: see the reports.\n", 2500 - rows)));
    // The index of an HTML report lists at most 1000 failures, and states how many there are in total.
    check(&sandbox, &["--html", "report", "--files-from", "list"]).code(1);
    let text = sandbox.read_text("report/index.html");
    assert_eq!(text.matches("<article>").count(), 1000);
    assert!(
        text.contains("2500 failures</h2>")
            && text.contains(">1500 more failures: see the reports.<")
    );
}

#[test]
fn a_browser_shows_the_report_and_its_pages() {
    let sandbox = three();
    check(&sandbox, &["--html", "out/report", "d", "missing.jsonl"]).code(1);
    sandbox.sh("stat -c %a out/report").assert().success().stdout("700\n");
    let text = sandbox.read_text("out/report/index.html");
    assert_printable(&text);
    let old = sandbox.sh("ls out/report/transcripts").assert().success().stdout_text();
    assert!(old.ends_with(".html\n") && old.lines().count() == 1, "{old}");
    let pages = json!([
        ["index", "out/report/index.html", 360],
        ["page", format!("out/report/transcripts/{}", old.trim_end()), 360]
    ]);
    // A new report removes the pages of an earlier one, and keeps other files.
    sandbox.write("out/report/transcripts/0123456789abcdef.html", "old");
    sandbox.write("out/report/transcripts/mine.html", "mine");
    check(&sandbox, &["--html", "out/report", "d", "missing.jsonl"]).code(1);
    let left = sandbox.sh("ls out/report/transcripts").assert().success().stdout_text();
    assert_eq!(left, format!("{old}mine.html\n"));
    assert_eq!(sandbox.read_text("out/report/index.html"), text);
    let Some(seen) = seen(&sandbox, &pages) else { return };
    for name in ["index", "page"] {
        let page = &seen[name];
        assert_eq!((&page["overflow"], &page["active"]), (&json!(0), &json!(0)), "{name}: {page}");
        assert_eq!((&page["handlers"], &page["wide"]), (&json!(0), &json!([])), "{name}");
    }
    assert_eq!(seen["index"]["turns"], json!(["group-1", "group-2"]));
    let link = format!("transcripts/{}", old.trim_end());
    assert_eq!(seen["index"]["addresses"], json!(["#group-1", link, "#group-2"]));
    assert_eq!(seen["page"]["turns"], json!(["turn-1", "turn-2"]));
}
