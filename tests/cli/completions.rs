//! The completions of bash, zsh and fish: they have the options, values and commands that `--help` shows, and complete the
//! names of sessions and the ids of records. `make completions` writes most of the completions.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::{AssertExt, Sandbox};
use crate::man::{can_run, programs};

/// The only script with options of its own and with completions that are written by hand.
const BY_HAND: &str = "claw-replay-parallel";

fn completions(shell: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions").join(shell).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of the options in a help text, with their dashes, and its commands.
fn options_and_commands(help: &str) -> (BTreeSet<String>, Vec<String>) {
    let row = Regex::new(r"(?m)^ +(?:(-\w)(?:, |[ \n]))?(--[\w-]+)?.*$").expect("a pattern");
    let alias = Regex::new(r"\[alias(?:es)?: (--[\w-]+)\]").expect("a pattern");
    let command = Regex::new(r"(?m)^  ([\w-]+) {2,}\S").expect("a pattern");
    let part = |title: &str| {
        let part = help.split_once(&format!("\n{title}:\n")).map_or("", |(_, part)| part);
        let lines = part.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let (options, commands) = (part("Options"), part("Commands"));
    let rows = row.captures_iter(&options).flat_map(|row| [row.get(1), row.get(2)]);
    let aliases = alias.captures_iter(&options).map(|alias| alias.get(1));
    let names = rows.chain(aliases).flatten().map(|name| name.as_str().to_owned()).collect();
    let commands = command.captures_iter(&commands).map(|name| name[1].to_owned());
    (names, commands.filter(|name| name != "help").collect())
}

/// Returns the values of each option whose values a help text lists, separated by spaces.
fn values(help: &str) -> BTreeMap<String, String> {
    let option = Regex::new(r"^ {2,6}(?:-\w, )?(--[\w-]+)").expect("a pattern");
    let value = Regex::new(r"^ +- ([\w-]+)(?::|$)").expect("a pattern");
    let list = Regex::new(r"\[possible values: ([^\]]+)\]").expect("a pattern");
    let (mut all, mut name) = (BTreeMap::<String, Vec<String>>::new(), String::new());
    for line in help.lines() {
        if let Some(found) = option.captures(line) {
            name = found[1].to_owned();
        }
        let listed = list.captures(line).map(|found| found[1].replace(", ", " "));
        let listed = listed.or_else(|| value.captures(line).map(|found| found[1].to_owned()));
        listed.into_iter().for_each(|word| all.entry(name.clone()).or_default().push(word));
    }
    // Operands come first, and have no name here.
    all.remove("");
    all.into_iter().map(|(name, words)| (name, words.join(" "))).collect()
}

/// Returns the first group of each match of `pattern` in `text`.
fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

#[test]
fn completions_have_the_options_and_commands_of_help() {
    let (mut checked, mut compared) = (0, 0);
    for program in programs().iter().filter(|program| can_run(program) && *program != BY_HAND) {
        let help = |words: &[&str]| {
            let run = Sandbox::new().cmd(program).args(words).arg("--help").assert();
            run.success().stdout_text()
        };
        let others = [
            completions("zsh", &format!("_{program}")),
            completions("fish", &format!("{program}.fish")),
        ];
        let bash = completions("bash", program);
        let (mut all, commands) = options_and_commands(&help(&[]));
        let names = [""].into_iter().chain(commands.iter().map(String::as_str));
        for name in names.clone() {
            let help = help(&if name.is_empty() { vec![] } else { vec![name] });
            let (options, _) = options_and_commands(&help);
            let case = bash.split_once(&format!("\t\t'{name}')\n")).map_or("", |(_, case)| case);
            let case = case.split("\t\t\t;;\n").next().unwrap_or_default();
            let completed = found(r"options='([^']*)'", case);
            let completed = completed.iter().flat_map(|line| line.split(' ').map(str::to_owned));
            let completed: BTreeSet<_> = completed.collect();
            assert_eq!(completed, options, "{program} {name}, bash: run make completions");
            for (option, values) in values(&help) {
                let row = format!(r"{option}(?: \| [^)]*)?\) kind='words ([^']*)'");
                let completed: Vec<_> = found(&row, case).into_iter().collect();
                assert_eq!(
                    completed,
                    [&*values],
                    "{program} {name} {option}: run make completions"
                );
                for (value, text) in
                    values.split(' ').flat_map(|it| others.iter().map(move |text| (it, text)))
                {
                    let is_there =
                        !found(&format!(r#"["( (\n\t]({value})(?:[\\\t ")]|$)"#), text).is_empty();
                    assert!(is_there, "{program} {name} {option} {value}: run make completions");
                }
                compared += 1;
            }
            all.extend(options);
            checked += 1;
        }
        if !commands.is_empty() {
            let listed = format!("kind='words {}'", commands.join(" "));
            assert!(bash.contains(&listed), "{program} {commands:?}, bash");
        }
        let long: BTreeSet<_> = all.iter().filter_map(|name| name.strip_prefix("--")).collect();
        let zsh = found(r"--([\w-]+)[+=]*\[", &completions("zsh", &format!("_{program}")));
        assert_eq!(
            zsh.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            long,
            "{program}, zsh: run make completions"
        );
        let fish = completions("fish", &format!("{program}.fish"));
        let fish = fish.lines().filter(|line| line.starts_with("complete "));
        let fish = found(r" -l ([\w-]+)", &fish.collect::<Vec<_>>().join("\n"));
        assert_eq!(
            fish.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            long,
            "{program}, fish: run make completions"
        );
        for command in &commands {
            let zsh = completions("zsh", &format!("_{program}"));
            let fish = completions("fish", &format!("{program}.fish"));
            assert!(zsh.contains(&format!("'{command}:")), "{program} {command}, zsh");
            assert!(fish.contains(&format!("-a \"{command}\"")), "{program} {command}, fish");
        }
    }
    assert!(checked > 20 && compared > 30, "{checked} helps, {compared} lists of values");
}

/// Loads the completions in bash, and prints the replies for each line on standard input. A line ends at the word to
/// complete; a last word `_` stands for an empty one.
const COMPLETE: &str = r#"
for file in "$COMPLETIONS"/bash/*; do . "$file"; done
while read -r -a COMP_WORDS; do
	test "${COMP_WORDS[${#COMP_WORDS[@]}-1]}" != _ || COMP_WORDS[${#COMP_WORDS[@]}-1]=
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	"_${COMP_WORDS[0]//-/_}"
	printf '%s\n' "${COMPREPLY[*]}"
done
"#;

/// Returns bash's replies for each command line.
fn complete(sandbox: &Sandbox, lines: &[&str]) -> Vec<String> {
    let bash = std::env::var_os("CLAW_TEST_BASH").unwrap_or_else(|| "bash".into());
    let run = sandbox.sh(r#""$@""#).arg("sh").arg(bash).args(["-c", COMPLETE]);
    let run = run.env("COMPLETIONS", concat!(env!("CARGO_MANIFEST_DIR"), "/completions"));
    let run = run.write_stdin(lines.join("\n") + "\n").assert().success();
    run.stdout_text().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_options_values_sessions_and_records() {
    let sandbox = Sandbox::new();
    for (label, workspace) in [("work", "workspace"), ("a home", "workspace"), ("other", "w")] {
        let new = sandbox.cmd("claw-session").args(["--workspace", workspace, "new", "--label"]);
        new.arg(label).assert().success();
    }
    let records = "{\"type\":\"user\",\"content\":\"a\"}\n".repeat(2);
    sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(records).assert().success();
    let ids: Vec<String> = sandbox
        .read_json("s.jsonl")
        .iter()
        .map(|record| record["id"].as_str().expect("an id").to_owned())
        .collect();
    let of_work = sandbox.cmd("claw-session").args(["history", "--ids", "work"]).assert();
    let of_work = of_work.success().stdout_text();
    let (all, of_work) = (ids.join(" "), of_work.trim());
    let table = [
        ("claw-estimate --pa", "--parts"),
        ("claw-chat --pl", "--plain"),
        ("claw-rebuild --to a", "anthropic"),
        ("claw-rebuild --to = a", "anthropic"),
        ("claw-rebuild --to = _", "anthropic openai responses ollama gemini"),
        ("claw-session sw", "switch"),
        ("claw-session --log json path --cr", "--create"),
        ("claw-session path wo", "work"),
        ("claw-session path a", r"a\ home"),
        ("claw-session --workspace w path o", "other"),
        ("claw-session --workspace = w path o", "other"),
        ("claw-session path o", ""),
        ("claw-turn --again wo", "work"),
        ("claw-turn -m wo", ""),
        ("claw-chat wo", "work"),
        ("claw-retry work wo", "work"),
        ("claw-index search --session wo", "work"),
        ("claw-rebuild s.jsonl --at _", &all),
        ("claw-rebuild s.jsonl --record = _", &all),
        ("claw-rebuild s.jsonl --meta", "--meta"),
        ("claw-append s.jsonl --expect-tail _", &all),
        ("claw-session fork work --at _", of_work),
        ("claw-rebuild _", ""),
        ("claw-replay-parallel --h", "--help"),
        ("claw-replay-parallel -j 4 -- che", "check"),
        ("claw-replay-parallel -- check --jun", "--junit"),
    ];
    let replies = complete(&sandbox, &table.map(|(line, _)| line));
    for ((line, expected), reply) in table.iter().zip(&replies) {
        assert_eq!(reply, expected, "{line}");
    }
    assert_eq!(replies.len(), table.len());
}
