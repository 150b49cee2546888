//! The report of `scripts/dev/bench --markdown`, made from a few results without measuring anything.

use std::path::Path;

use crate::common::Sandbox;
use crate::man::has_tool;

/// A script that writes the report for three rows of results and the data of two plots.
const SCRIPT: &str = r#"
import sys
from pathlib import Path
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from bench_report import Plots, Row, write_report
rows = [Row(1, "fast / cat", "1 ms", "2 ms", "0.50x", "<= 1x", "<= 1x", "stretch", ["fast", "cat"]),
        Row("", "slow | x / cat", "3 ms", "2 ms", "1.50x", "<= 1x", "<= 1x", "MISSED", ["slow | x", "cat"]),
        Row(2, "fast / jaq", "", "", "", "", "", "skipped: jaq is not installed", [])]
plots = Plots()
plots.history([("claw-turn", [(1, 0.2), (256, 0.2)]), ("other", [(1, 0.1), (256, 20)])])
plots.rebuild("256 MiB", "claw-rebuild", 0.1)
plots.rebuild("256 MiB", "a <b> & c", 12)
write_report(Path("."), rows, plots, "scripts/dev/bench --markdown", "jq 1.6")
"#;

#[test]
fn the_report_begins_with_what_falls_short_and_has_two_plots() {
    if !has_tool("python3") {
        return;
    }
    let sandbox = Sandbox::new();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/dev");
    sandbox.write("results.py", SCRIPT);
    sandbox.sh(r#"python3 results.py "$1""#).arg("sh").arg(scripts).assert().success();
    let page = sandbox.read_text("BENCH.md");
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words:?} in\n{page}"));
    let slow = r"|  | slow \| x / cat | 3 ms | 2 ms | 1.50x | <= 1x | <= 1x | MISSED | `slow \| x`<br>`cat` |";
    assert!(at("## What falls short of its goal") < at(slow));
    assert!(at(slow) < at("## What meets its stretch goal"));
    assert!(at("| 1 | fast / cat |") < at("## Not measured"));
    assert!(at("skipped: jaq is not installed") > at("## Not measured"));
    at("by `scripts/dev/bench --markdown`");
    let picture = sandbox.read_text("docs/pictures/bench.svg");
    for words in ["Time of a turn", "Time of a rebuild of 256 MiB", "a &lt;b&gt; &amp; c: 12 s"] {
        assert!(picture.contains(words), "no {words:?} in\n{picture}");
    }
    if has_tool("xmllint") {
        sandbox.sh("xmllint --noout docs/pictures/bench.svg").assert().success();
    }
}
