//! All programs: `--help` ends with two examples that work, and is the same after another option.

use serde_json::json;
use std::path::Path;

use crate::common::{AssertExt, Sandbox};
use crate::man::{can_run, programs};

/// The maximum width of an example in columns. On a terminal of this width, clap would wrap longer lines.
const WIDEST: usize = 80;

/// Returns the examples at the end of a help text: descriptions, each with the lines of its command.
fn examples_of(help: &str) -> Vec<(&str, String)> {
    let mut examples: Vec<(&str, String)> = Vec::new();
    let text = help.split_once("\nExamples:\n").map_or("", |(_, examples)| examples);
    for line in text.lines().filter(|line| !line.is_empty()) {
        match (line.starts_with("      "), examples.last_mut()) {
            (true, Some((_, command))) => *command += &format!("{line}\n"),
            _ => examples.push((line, String::new())),
        }
    }
    examples
}

/// Returns an error message for each example in the wrong form, and one more unless there are exactly two examples.
fn form_errors(program: &str, examples: &[(&str, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    if examples.len() != 2 {
        wrong.push(format!("{program} --help: {} examples", examples.len()));
    }
    for (description, command) in examples {
        let is_description = description.starts_with("  ") && description.ends_with(':');
        let is_wide = command.lines().any(|line| line.len() > WIDEST);
        if !is_description || !command.contains(program) || is_wide {
            wrong.push(format!("{program} --help: {description}\n{command}"));
        }
    }
    wrong
}

/// Returns a transcript that ends with a prompt, is long enough to compact, and has a long tool result.
fn transcript() -> Vec<u8> {
    let words = "one two three ".repeat(100);
    let prompt = |n: u32| json!({"type": "user", "content": format!("Question {n}")});
    let reply = || json!({"type": "assistant", "content": words});
    let call = json!({"type": "tool_use", "tool_use_id": "c1", "name": "read_file", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": words.repeat(20)});
    let turns = (1..=4).flat_map(|n| [prompt(n), reply()]);
    let records = turns.chain([prompt(5), reply(), call, result, reply(), prompt(6)]);
    let records: String = records.map(|record| format!("{record}\n")).collect();
    let sandbox = Sandbox::new();
    sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(records).assert().success();
    sandbox.read("s.jsonl")
}

/// Returns a sandbox with the files that the examples name: a transcript, a text file, a workspace with sessions, and
/// tools.
fn sandbox_for(command: &str, transcript: &[u8]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", transcript);
    sandbox.write("docs/a.txt", "text\n");
    std::fs::create_dir(sandbox.path("workspace")).expect("a workspace");
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");
    std::os::unix::fs::symlink(tools, sandbox.path("tools")).expect("a link to the tools");
    for label in ["work", "home"].iter().filter(|label| command.contains(**label)) {
        sandbox.cmd("claw-session").args(["new", "--label", label]).assert().success();
    }
    sandbox
}

#[test]
fn help_ends_with_two_examples_that_work() {
    let transcript = transcript();
    let mut wrong = Vec::new();
    for program in programs().iter().filter(|program| can_run(program)) {
        let run = Sandbox::new().cmd(program).arg("--help").assert();
        let help = run.success().stdout_text();
        let examples = examples_of(&help);
        wrong.extend(form_errors(program, &examples));
        for (_, command) in examples {
            // Many examples call a model, for which they need claw-call.
            if !can_run("claw-call") {
                continue;
            }
            let run =
                sandbox_for(&command, &transcript).sh(r#"bash -o pipefail -c "$1""#).arg("sh");
            let run = run.arg(&command).env("CLAW_PROVIDER", "offline").assert();
            if !run.get_output().status.success() {
                wrong.push(format!("{program} --help: {command}: {}", run.stderr_text()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn help_is_the_same_after_another_option() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let is_compiled = |program: &&String| sources.join(program).is_dir() && can_run(program);
    for program in programs().iter().filter(is_compiled) {
        for asked in ["--help", "--version"] {
            let text = |options: &[&str]| {
                Sandbox::new().cmd(program).args(options).assert().success().stdout_text()
            };
            assert_eq!(text(&[asked]), text(&["--log=text", asked]), "{program} {asked}");
        }
    }
}
