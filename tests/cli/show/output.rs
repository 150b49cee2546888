//! `claw-show --output`: the file is written completely or not at all.

use predicates::str::contains;

use super::{reply, user};
use crate::common::{AssertExt, Sandbox};

fn conversation() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", user("a question") + &reply("an answer"));
    sandbox
}

#[test]
fn the_name_of_the_file_selects_the_format() {
    let sandbox = conversation();
    for (args, file, begin) in [
        (&["--output", "a b.md"][..], "a b.md", "## turn 1"),
        (&["--output", "a.MARKDOWN"], "a.MARKDOWN", "## turn 1"),
        (&["--output", "a.html"], "a.html", "<!doctype html>"),
        (&["--output", "a.txt", "--width", "40"], "a.txt", ""),
        (&["--output", "other", "--format", "html"], "other", "<!doctype html>"),
        (&["--output", "odd.md", "--format", "html"], "odd.md", "<!doctype html>"),
    ] {
        sandbox.cmd("claw-show").args(args).arg("s.jsonl").assert().success().stdout("").stderr("");
        let text = sandbox.read_text(file);
        assert!(
            text.to_lowercase().starts_with(begin) && text.contains("an answer"),
            "{file}: {text}"
        );
        let mode = sandbox.sh(&format!("stat -c %a '{file}'")).assert().success().stdout_text();
        assert_eq!(mode, "600\n", "{file}");
    }
    sandbox.cmd("claw-show").args(["--output", "s.pdf", "s.jsonl"]).assert().code(2).stderr("claw-show: cannot choose a format for 's.pdf'; end its name in .md, .html or .txt, or give --format\n");
    assert!(!sandbox.exists("s.pdf"));
    for other in ["--follow", "--markdown"] {
        sandbox.cmd("claw-show").args([other, "--output", "x.txt", "s.jsonl"]).assert().code(2);
    }
    sandbox.cmd("claw-show").args(["--replace", "s.jsonl"]).assert().code(2);
}

#[test]
fn a_file_is_replaced_only_on_request() {
    let sandbox = conversation();
    sandbox.write("a.md", "mine");
    sandbox.sh("ln -s nowhere link.md").assert().success();
    for file in ["a.md", "link.md"] {
        sandbox.cmd("claw-show").args(["--output", file, "s.jsonl"]).assert().code(2).stderr(
            format!(
                "claw-show: cannot write '{file}': file exists; give another name, or --replace\n"
            ),
        );
    }
    assert_eq!(sandbox.read_text("a.md"), "mine");
    sandbox.cmd("claw-show").args(["--replace", "--output", "a.md", "s.jsonl"]).assert().success();
    assert!(sandbox.read_text("a.md").contains("an answer"));
    sandbox.sh("stat -c %a a.md").assert().success().stdout("600\n");
    // A pipe is written to, not replaced.
    let script = "mkfifo p.md; cat p.md >got & claw-show --replace --output p.md s.jsonl; wait";
    sandbox.sh(&format!("{script}; test -p p.md && cmp got a.md")).assert().success();
}

#[test]
fn a_failed_run_leaves_no_file() {
    let sandbox = conversation();
    sandbox
        .cmd("claw-show")
        .args(["--output", "no/a.md", "s.jsonl"])
        .assert()
        .code(74)
        .stderr("claw-show: cannot write 'no/a.md': no such file or directory; check the path\n");
    let large = user(&"snow ".repeat(10_000));
    sandbox.write("large.jsonl", large);
    let script = "ulimit -f 8; exec claw-show --output a.md large.jsonl";
    sandbox.sh(script).assert().code(74).stderr(contains("claw-show: cannot write 'a.md': "));
    sandbox.cmd("claw-show").args(["--output", "a.md", "none.jsonl"]).assert().code(74);
    assert_eq!(sandbox.sh("ls -A | grep -c a.md").assert().stdout_text(), "0\n");
}
