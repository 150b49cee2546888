//! README.md: what its examples print, and commands that a reader copies. Nothing here needs a network or an account.

use std::fs;
use std::path::Path;

use predicates::str::contains;

use crate::common::Sandbox;
use crate::man::{assert_no_complaints, examples, printed_by, programs, wrong_examples};

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    fs::read_to_string(path).expect("README.md")
}

/// Returns the lines of each code block in a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("```") {
            let block = lines.by_ref().take_while(|line| *line != "```").collect();
            if name == language {
                blocks.push(block);
            }
        }
    }
    blocks
}

#[test]
fn examples_print_what_the_readme_says() {
    let readme = readme();
    let lines: Vec<String> =
        blocks(&readme, "console").concat().into_iter().map(str::to_owned).collect();
    let examples = examples(lines);
    assert!(examples.len() > 8, "{examples:?}");
    assert_no_complaints(&wrong_examples("README.md", &examples, &printed_by(&examples)));
}

/// Starting a chat needs an account or a server, so the test only checks the settings and prepares a first turn with
/// --dry-run.
#[test]
fn each_provider_can_be_configured() {
    let readme = readme();
    let mut configured = 0;
    for block in blocks(&readme, "sh") {
        Sandbox::new().sh("sh -n").write_stdin(block.join("\n")).assert().success();
        if block.last() == Some(&"claw-chat") {
            configured += 1;
            let is_setting = |line: &&&str| {
                ["claw-config ", "export ", "unset "].iter().any(|word| line.starts_with(word))
            };
            let settings: Vec<&str> = block.iter().filter(is_setting).copied().collect();
            let prepare = "claw-config check\nclaw-turn --dry-run -m hi s.jsonl";
            let script = format!("set -eu\n{}\n{prepare}", settings.join("\n"));
            Sandbox::new().sh(&script).assert().success();
        }
    }
    assert_eq!(configured, 4, "the number of blocks that start claw-chat");
}

/// Runs the commands in the text of the section "Coming from …", in a directory with the files that they name.
#[test]
fn the_commands_for_users_of_other_programs_work() {
    let readme = readme();
    let section =
        readme.split("\n## ").find(|part| part.starts_with("Coming from")).expect("the section");
    let section = section.replace("\n  ", " ");
    let spans = section.split('`').skip(1).step_by(2);
    let is_command = |span: &&str| span.contains(' ') && !span.starts_with("agent:");
    let commands: Vec<&str> = spans.filter(is_command).collect();
    assert!(commands.len() >= 5, "{commands:?}");
    let sandbox = Sandbox::new();
    let has_jq = sandbox.sh("command -v jq").assert().get_output().status.success();
    sandbox.write("goclaw.json", r#"{"session":{"compaction":{"reserveTokens":4000}},"llm":{}}"#);
    sandbox.write(
        "messages.json",
        r#"[{"role":"user","content":"Hi."},{"role":"assistant","content":[{"type":"text","text":"Hello."}]}]"#,
    );
    let directory = "workspace/.sessions/agents/claw0/sessions";
    let record = r#"{"type":"user","content":"Hi.","ts":1767225600.5}"#;
    sandbox.write(&format!("{directory}/0123456789ab.jsonl"), format!("{record}\n"));
    sandbox.write(
        ".claude/projects/x/s.jsonl",
        r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":"Hi."}}"#,
    );
    for command in commands.into_iter().filter(|command| has_jq || !needs_jq(command)) {
        sandbox.sh(command).assert().success();
    }
    if has_jq {
        sandbox.sh("claw-rebuild s.jsonl | wc -l").assert().success().stdout("2\n");
    }
    sandbox.sh("claw-session list").assert().success().stdout(contains("0123456789ab"));
}

/// Returns true if a command runs jq, or reads the file that jq writes.
fn needs_jq(command: &str) -> bool {
    command.starts_with("jq") || command.contains("config.json")
}

#[test]
fn the_table_names_every_program() {
    let readme = readme();
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with('|')).collect();
    let is_named = |name: &String| rows.iter().any(|row| row.contains(&format!("`{name}`")));
    let missing = programs().into_iter().filter(|name| !is_named(name));
    assert_no_complaints(
        &missing.map(|name| format!("README.md: no row for {name}")).collect::<Vec<_>>(),
    );
}
