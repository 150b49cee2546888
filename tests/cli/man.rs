//! The manual pages agree with the programs: each program has a page, the pages name exactly the options, variables,
//! statuses and rules of the source, and the examples print what the pages show.
//!
//! Each check collects all differences before it fails. With `CLAW_BLESS=1`, the current output of the
//! examples is written into the pages; review the difference like code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clawutils::exit::Exit;
use predicates::str::contains;
use serde_json::Value;

use crate::common::{AssertExt, Sandbox};

/// The sections of a page in the order of mdoc(7).
const ORDER: [&str; 19] = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "CONTEXT",
    "IMPLEMENTATION NOTES",
    "RETURN VALUES",
    "ENVIRONMENT",
    "FILES",
    "EXIT STATUS",
    "EXAMPLES",
    "DIAGNOSTICS",
    "ERRORS",
    "SEE ALSO",
    "STANDARDS",
    "HISTORY",
    "AUTHORS",
    "CAVEATS",
    "BUGS",
    "SECURITY CONSIDERATIONS",
];

/// Variables that our source does not name because libraries read them.
const LIBRARY_VARIABLES: [&str; 7] =
    ["ALL_PROXY", "HTTPS_PROXY", "NO_COLOR", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ"];

/// Variables of the shell itself, most of them specific to bash.
const SHELL_VARIABLES: [&str; 6] =
    ["BASH_VERSINFO", "BASH_VERSION", "HISTFILE", "PIPESTATUS", "PPID", "READLINE_LINE"];

// ---- pages, programs and sources -----------------------------------------------------------

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()))
}

/// Returns the files of a directory of the repository, and of its subdirectories if `deep`.
fn files(directory: &str, deep: bool) -> Vec<PathBuf> {
    let depth = if deep { usize::MAX } else { 1 };
    let entries =
        walkdir::WalkDir::new(root().join(directory)).max_depth(depth).sort_by_file_name();
    let entries = entries.into_iter().map(|entry| entry.expect("a readable directory"));
    entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().and_then(|stem| stem.to_str()).expect("a plain file name").to_owned()
}

fn scripts() -> Vec<String> {
    files("scripts", false).iter().map(|path| stem(path)).collect()
}

/// Returns the names of all programs (a file or a directory each) and scripts.
pub fn programs() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("src/bin")).expect("src/bin");
    let programs = entries.map(|entry| stem(&entry.expect("an entry of src/bin").path()));
    programs.chain(scripts()).collect()
}

/// Returns the source of the library, the programs (without their unit tests) and the scripts. The paths
/// are relative to the repository, so the names of directories above it do not matter.
fn source() -> Vec<(PathBuf, String)> {
    let mut paths = files("src", true);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.extend(files("scripts", false));
    let code = |path: &PathBuf| {
        let text = read(path);
        text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
    };
    let inside =
        |path: &PathBuf| path.strip_prefix(root()).expect("a path in the repository").to_owned();
    paths.iter().map(|path| (inside(path), code(path))).collect()
}

struct Page {
    path: PathBuf,
    /// The file name, such as `claw-call.1`.
    file: String,
    /// The name of the page, such as `claw-call`.
    name: String,
    text: String,
}

impl Page {
    fn is_command(&self) -> bool {
        self.file.ends_with(".1")
    }

    /// Returns the titles of the sections.
    fn sections(&self) -> Vec<&str> {
        self.text.lines().filter_map(|line| line.strip_prefix(".Sh ")).collect()
    }

    /// Returns the lines of a section, or none if the page does not have it.
    fn section(&self, title: &str) -> Vec<&str> {
        let lines = self.text.lines().skip_while(|line| line.strip_prefix(".Sh ") != Some(title));
        lines.skip(1).take_while(|line| !line.starts_with(".Sh ")).collect()
    }

    /// Returns the words of each `.It` line of a section.
    fn items(&self, title: &str) -> Vec<Vec<&str>> {
        let items = self.section(title).into_iter().filter_map(|line| line.strip_prefix(".It "));
        items.map(|item| item.split_whitespace().collect()).collect()
    }

    /// Returns the variables in the table of settings.
    fn variables_of_settings(&self) -> BTreeSet<String> {
        let items = self.items("DESCRIPTION").into_iter().filter(|item| item[0] == "Li");
        items
            .flat_map(|item| {
                item.windows(2).find(|two| two[0] == "Ev").map(|two| two[1].to_owned())
            })
            .collect()
    }

    /// Returns the arguments of the items in a section that begin with the macro `name`, such as `Ev` in ENVIRONMENT.
    fn tagged(&self, title: &str, name: &str) -> BTreeSet<String> {
        let items = self.items(title).into_iter().filter(|item| item.first() == Some(&name));
        items.flat_map(|item| item[1..].to_vec()).filter(|w| *w != ",").map(Into::into).collect()
    }
}

fn pages() -> Vec<Page> {
    let page = |path: PathBuf| Page {
        file: path.file_name().expect("a name").to_string_lossy().into_owned(),
        name: stem(&path),
        text: read(&path),
        path,
    };
    files("man", false).into_iter().map(page).collect()
}

fn page(file: &str) -> Page {
    let found = pages().into_iter().find(|page| page.file == file);
    found.unwrap_or_else(|| panic!("no page man/{file}"))
}

// ---- comparisons ---------------------------------------------------------------------------

/// Fails and prints all complaints if there are any.
#[track_caller]
pub fn assert_no_complaints(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Returns a complaint for each name that only one of the sets has.
fn differences(
    (left, left_set): (&str, &BTreeSet<String>),
    (right, right_set): (&str, &BTreeSet<String>),
) -> Vec<String> {
    let only = |a: &str, own: &BTreeSet<String>, b: &str, other: &BTreeSet<String>| {
        let missing = own.difference(other).map(|name| format!("{b} lacks {name}, which {a} has"));
        missing.collect::<Vec<_>>()
    };
    [only(left, left_set, right, right_set), only(right, right_set, left, left_set)].concat()
}

/// Returns the string literals in `code` that consist of characters accepted by `fits` and contain `mark`.
fn literals(code: &str, fits: fn(char) -> bool, mark: char) -> BTreeSet<String> {
    let quotes = code.match_indices('"').map(|(at, _)| &code[at + 1..]);
    let words = quotes.filter_map(|rest| {
        let word = &rest[..rest.find(|c| !fits(c))?];
        (word.contains(mark) && rest[word.len()..].starts_with('"')).then_some(word)
    });
    words.map(str::to_owned).collect()
}

/// Returns the names of rules in `code`: its kebab-case string literals.
fn rules(code: &str) -> BTreeSet<String> {
    literals(code, |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-', '-')
}

// ---- the checks ----------------------------------------------------------------------------

#[test]
fn each_program_has_a_page_and_each_page_a_program() {
    let commands = pages().into_iter().filter(Page::is_command).map(|page| page.name).collect();
    assert_no_complaints(&differences(("man/", &commands), ("src/bin and scripts", &programs())));
}

#[test]
fn pages_document_the_options_of_help() {
    let mut wrong = Vec::new();
    let settings = options_of_settings();
    for page in pages().into_iter().filter(|page| page.is_command() && can_run(&page.name)) {
        let run = Sandbox::new().cmd(&page.name).arg("--help").assert();
        let text = run.success().stdout_text();
        let mut help = options_of_help(&text);
        for command in commands_of_help(&text) {
            let run = Sandbox::new().cmd(&page.name).args([command.as_str(), "--help"]).assert();
            help.extend(options_of_help(&run.success().stdout_text()));
        }
        if scripts().contains(&page.name) {
            // A script accepts every setting as an option, but its page documents only those that matter to the
            // script itself.
            let own = options_of_page(&page);
            help.retain(|option| own.contains(option) || !settings.contains(option));
        }
        let help_name = format!("{} --help", page.name);
        wrong.extend(differences((&help_name, &help), (&page.file, &options_of_page(&page))));
    }
    assert_no_complaints(&wrong);
}

/// Returns the names of the options for all settings, and of `--config` and `--profile`, without dashes.
fn options_of_settings() -> BTreeSet<String> {
    let run = Sandbox::new().cmd("claw-config").args(["list", "--json"]).assert();
    let flags =
        run.success().json().into_iter().filter_map(|setting| {
            Some(setting["flag"].as_str()?.trim_start_matches('-').to_owned())
        });
    flags.chain(["config", "profile"].map(str::to_owned)).collect()
}

/// Returns true if this build has the program and this machine has the tools that it needs.
pub fn can_run(program: &str) -> bool {
    match program {
        "claw-call" => cfg!(feature = "http"),
        "claw-index" => cfg!(feature = "index"),
        "claw-replay-parallel" => has_tool("parallel"),
        "claw-cookbook" => {
            cfg!(all(feature = "http", feature = "index"))
                && ["git", "jq", "make", "parallel", "tmux"].into_iter().all(has_tool)
        }
        _ => true,
    }
}

/// Returns true if a tool is installed. In CI, a missing tool is a failure.
#[allow(clippy::print_stderr, reason = "reports which test was skipped")]
pub fn has_tool(tool: &str) -> bool {
    let run = Sandbox::new().sh("command -v \"$1\"").arg("sh").arg(tool).assert();
    let is_there = run.get_output().status.success();
    assert!(is_there || std::env::var_os("CI").is_none(), "{tool} is not installed, and CI is set");
    if !is_there {
        eprintln!("skipped: no {tool}");
    }
    is_there
}

fn options_of_help(help: &str) -> BTreeSet<String> {
    let mut options = BTreeSet::new();
    for line in help.lines().map(str::trim).filter(|line| line.starts_with('-')) {
        let words = line.split([' ', ',']).filter(|word| !word.is_empty());
        let own = words.take_while(|word| word.starts_with('-'));
        let long = own.filter_map(|word| word.strip_prefix("--"));
        // An optional value stands in brackets directly after the name.
        options.extend(long.map(|word| word.split('[').next().unwrap_or(word).to_owned()));
    }
    options
}

#[test]
fn pages_describe_options_in_the_words_of_help() {
    let mut wrong = Vec::new();
    for page in pages().into_iter().filter(|page| page.is_command() && can_run(&page.name)) {
        let run = Sandbox::new().cmd(&page.name).arg("--help").assert();
        let page_words = descriptions_of_page(&page);
        for (option, help) in descriptions_of_help(&run.success().stdout_text()) {
            let Some(words) = page_words.get(&option) else { continue };
            if !words.starts_with(&letters(&help)) {
                wrong.push(format!("{}: --{option} does not begin with: {help}", page.file));
            }
        }
    }
    assert_no_complaints(&wrong);
}

/// Returns the descriptions of the options in a help text, without defaults.
fn descriptions_of_help(help: &str) -> BTreeMap<String, String> {
    let mut descriptions = BTreeMap::new();
    for paragraph in help.split("\n\n") {
        let mut lines = paragraph.lines().skip_while(|line| !line.trim_start().starts_with('-'));
        let Some(option) = lines.next().and_then(|line| line.split_once("--")) else { continue };
        let option = option.1.split([' ', '[']).next().unwrap_or_default().to_owned();
        let lines = lines.map(str::trim).take_while(|line| !line.is_empty());
        let text = lines.collect::<Vec<_>>().join(" ");
        let text = text.split(" (default: ").next().unwrap_or_default().to_owned();
        descriptions.insert(option, text);
    }
    descriptions.remove("help");
    descriptions
}

/// Returns the description of each option, reduced to letters and digits. Options that share a description are left
/// out.
fn descriptions_of_page(page: &Page) -> BTreeMap<String, String> {
    let mut descriptions: BTreeMap<String, String> = BTreeMap::new();
    let (mut option, mut has_text) = (None, true);
    for line in page.section("DESCRIPTION") {
        if let Some(item) = line.strip_prefix(".It ") {
            let long = item.strip_prefix("Fl Fl ").and_then(|rest| rest.split(' ').next());
            option = long.filter(|_| has_text);
            has_text = false;
        } else if line.starts_with(".El") {
            option = None;
        } else {
            has_text = true;
            if let Some(option) = option {
                let text = descriptions.entry(option.to_owned()).or_default();
                text.push_str(&letters(&words_of(line)));
            }
        }
    }
    descriptions
}

/// Returns the text of a line of a page, without macros.
fn words_of(line: &str) -> String {
    let Some(line) = line.strip_prefix('.') else { return plain(line) };
    // Leave out the section number of a page.
    if let Some(reference) = line.strip_prefix("Xr ") {
        return reference.split(' ').next().unwrap_or_default().to_owned();
    }
    let is_macro = |word: &&str| {
        word.len() == 2
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.ends_with(|c: char| c.is_ascii_lowercase())
    };
    line.split(' ').filter(|word| !is_macro(word)).map(plain).collect()
}

/// Returns the letters and digits of `text`, in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the commands of a program except `help`.
fn commands_of_help(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn options_of_page(page: &Page) -> BTreeSet<String> {
    let mut options = BTreeSet::new();
    for item in page.items("DESCRIPTION") {
        let long = item.windows(3).filter(|words| words[..2] == ["Fl", "Fl"]);
        options.extend(long.map(|words| words[2].to_owned()));
    }
    options
}

#[test]
fn sections_are_complete_and_in_order() {
    let mut wrong = Vec::new();
    for page in pages() {
        let sections = page.sections();
        let required: &[&str] = match page.file.rsplit('.').next() {
            Some("1") => &[
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "ENVIRONMENT",
                "EXIT STATUS",
                "EXAMPLES",
                "SEE ALSO",
            ],
            Some("7") => &["NAME", "DESCRIPTION", "ENVIRONMENT", "FILES", "EXIT STATUS"],
            _ => &["NAME", "DESCRIPTION", "EXAMPLES", "SEE ALSO"],
        };
        for section in required.iter().filter(|section| !sections.contains(section)) {
            wrong.push(format!("{}: no section {section}", page.file));
        }
        let in_order: Vec<&str> = ORDER.into_iter().filter(|own| sections.contains(own)).collect();
        if sections != in_order {
            wrong.push(format!("{}: sections {sections:?}, not {in_order:?}", page.file));
        }
        if page.is_command() && commands_in(&page.section("EXAMPLES")).len() < 3 {
            wrong.push(format!("{}: fewer than three examples", page.file));
        }
    }
    assert_no_complaints(&wrong);
}

#[test]
fn references_name_pages_that_exist() {
    let all: BTreeSet<String> = pages().into_iter().map(|page| page.file).collect();
    let mut wrong = Vec::new();
    for page in pages() {
        for line in page.text.lines() {
            let words: Vec<&str> = line.trim_start_matches('.').split_whitespace().collect();
            for reference in words.windows(3).filter(|words| words[0] == "Xr") {
                let file = format!("{}.{}", reference[1], reference[2]);
                if file.starts_with("claw") && !all.contains(&file) {
                    wrong.push(format!("{}: no page {file}", page.file));
                }
            }
        }
    }
    assert_no_complaints(&wrong);
}

/// mdoc puts one dash before each further word after `Fl`, so each long option needs its own `Fl Fl`.
#[test]
fn long_options_have_two_dashes() {
    let mut wrong = Vec::new();
    for page in pages() {
        for line in page.text.lines() {
            let words: Vec<&str> = line.trim_start_matches('.').split_whitespace().collect();
            let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase());
            let mut lists = words.windows(5).filter(|five| five[..2] == ["Fl", "Fl"]);
            if lists.any(|five| five[3] == "," && is_name(five[4])) {
                wrong.push(format!("{}: {line}", page.file));
            }
        }
    }
    assert_no_complaints(&wrong);
}

#[test]
fn audit_31_the_overview_refers_to_every_page() {
    let overview = page("claw.7");
    let lines = overview.section("SEE ALSO").into_iter();
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let refers = words.filter(|words| words.first() == Some(&".Xr"));
    let refers = refers.map(|words| format!("{}.{}", words[1], words[2])).collect();
    let others = pages().into_iter().map(|page| page.file).filter(|file| *file != "claw.7");
    assert_no_complaints(&differences(
        ("man/", &others.collect()),
        ("SEE ALSO of claw.7", &refers),
    ));
}

#[test]
fn audit_31_the_overview_and_the_context_command_report_the_same_size() {
    if !can_run("claw-call") {
        return;
    }
    let overview = page("claw.7");
    let examples = commands_in(&overview.section("EXAMPLES"));
    let at = examples.iter().position(|example| example.command.contains("--bar"));
    let at = at.expect("an example with --bar");
    let mut script: String =
        examples[..at].iter().map(|example| format!("{}\n", example.command)).collect();
    script.push_str(
        "p=$(claw-session path \"$(claw-session new --label x)\"); claw-append \"$p\" <s.jsonl\n\
         printf '/context\\n' | claw-chat --window 8000 x 2>&1",
    );
    Sandbox::new().sh(&script).assert().success().stdout(contains(&examples[at].prints[0]));
}

#[test]
fn documented_variables_are_those_that_the_source_reads() {
    let mut variables: BTreeSet<String> = LIBRARY_VARIABLES.map(str::to_owned).into();
    for (path, code) in source() {
        let is_script = path.extension().is_none();
        variables.extend(if is_script { shell_variables(&code) } else { rust_variables(&code) });
    }
    let overview = page("claw.7");
    let mut documented = overview.tagged("ENVIRONMENT", "Ev");
    documented.extend(overview.variables_of_settings());
    let mut wrong = differences(("the source", &variables), ("claw.7", &documented));
    for page in pages().into_iter().filter(Page::is_command) {
        for name in page.tagged("ENVIRONMENT", "Ev").difference(&variables) {
            wrong.push(format!("{}: nothing reads {name}", page.file));
        }
        // The page of a script must list the script's own variables.
        if let Some((_, code)) = source().iter().find(|(path, _)| path.ends_with(&page.name)) {
            let documented = page.tagged("ENVIRONMENT", "Ev");
            let own = shell_variables(code);
            let missing = own.difference(&documented);
            wrong.extend(missing.map(|name| format!("{} lacks {name}", page.file)));
        }
    }
    assert_no_complaints(&wrong);
}

/// Returns the environment variables that Rust code names: the string literals of capitals that contain an
/// underscore, and `COLUMNS`, `HOME` and `TERM` if they are read. Variables that cargo sets at build time are left out.
fn rust_variables(code: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let mut names = literals(code, is_name, '_');
    names.retain(|name| !name.starts_with("CARGO_") && !name.ends_with('_'));
    let is_read = |name: &&str| code.contains(&format!("variable(\"{name}\")"));
    names.extend(["COLUMNS", "HOME", "TERM"].into_iter().filter(is_read).map(str::to_owned));
    names
}

/// Returns the variables in capitals that a script expands, except the shell's own.
fn shell_variables(code: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let uses = code.split('$').skip(1).map(|rest| rest.strip_prefix('{').unwrap_or(rest));
    let names = uses.map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]);
    let names = names.filter(|name| name.len() > 1 && !SHELL_VARIABLES.contains(name));
    names.map(str::to_owned).collect()
}

/// The lines around the table of settings.
const TABLE: [&str; 2] = [
    ".\\\" A test compares this table with the definitions; CLAW_BLESS=1 rewrites it.\n.Bl -tag -width Ds\n",
    ".\\\" End of the table.\n",
];

#[test]
fn the_table_of_settings_matches_the_definitions() {
    let page = page("claw.7");
    let (before, rest) = page.text.split_once(TABLE[0]).expect("the beginning of the table");
    let (table, after) = rest.split_once(TABLE[1]).expect("the end of the table");
    let run = Sandbox::new().cmd("claw-config").args(["list", "--json"]).assert();
    let defined: String = run.success().json().iter().map(item_of).collect();
    if std::env::var_os("CLAW_BLESS").is_some() {
        let text = [before, TABLE[0], &defined, TABLE[1], after].concat();
        fs::write(&page.path, text).expect("a writable page");
        return;
    }
    assert_eq!(table, defined, "the table differs; CLAW_BLESS=1 rewrites it");
}

/// Returns the table's item for a setting that `claw-config list --json` has printed.
fn item_of(setting: &Value) -> String {
    let text = |name: &str| setting[name].as_str().unwrap_or_default().to_owned();
    let (key, variable, flag) = (text("key"), text("variable"), text("flag"));
    let flag = flag.strip_prefix("--").expect("an option");
    let argument = match setting["argument"].as_str() {
        Some(name) => format!(" Ar {}", name.to_lowercase()),
        None => String::new(),
    };
    let default = match &setting["default"] {
        Value::Null | Value::Bool(_) => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let default = match default.as_str() {
        "" => String::new(),
        text => format!("The default is\n.Li {text} .\n"),
    };
    let help = escaped(&text("help"));
    format!(".It Li {key} , Fl Fl {flag}{argument} , Ev {variable}\n{help}.\n{default}")
}

#[test]
fn exit_statuses_match_the_table() {
    let table: BTreeSet<String> = Exit::ALL.iter().map(|exit| exit.code().to_string()).collect();
    let numbers = |page: &Page| -> BTreeSet<String> {
        page.items("EXIT STATUS").iter().map(|item| item.join(" ")).collect()
    };
    let mut wrong = differences(("Exit", &table), ("claw.7", &numbers(&page("claw.7"))));
    for page in pages().into_iter().filter(Page::is_command) {
        for number in numbers(&page).difference(&table) {
            wrong.push(format!("{}: no status {number} in the table", page.file));
        }
        if !numbers(&page).contains("0") {
            wrong.push(format!("{}: no status 0", page.file));
        }
    }
    assert_no_complaints(&wrong);
}

#[test]
fn documented_rules_are_those_of_the_source() {
    let all = clawutils::finding::rules::ALL.iter();
    let every: BTreeSet<String> = all.map(|rule| rule.name.to_owned()).collect();
    // A rule that is used outside the linter is one that claw-rebuild reports.
    let is_linter = |path: &Path| {
        ["/lint/", "/claw-check/", "/claw-replay/"]
            .iter()
            .any(|part| path.to_string_lossy().contains(part))
    };
    let code: String =
        source().into_iter().filter(|(path, _)| !is_linter(path)).map(|(_, code)| code).collect();
    let of_rebuild = every.iter().filter(|name| code.contains(&constant(name))).cloned().collect();
    let checks = source().into_iter().find(|(path, _)| path.ends_with("src/rules/order.rs"));
    let of_messages = rules(&checks.expect("src/rules/order.rs").1);
    let documented = |file: &str| page(file).tagged("DIAGNOSTICS", "Li");
    let mut wrong = Vec::new();
    for (source, names, file) in [
        ("the source of rebuild", of_rebuild, "claw-rebuild.1"),
        ("src/finding/rules.rs", every, "claw-check.1"),
        ("src/rules/order.rs", of_messages, "claw-call.1"),
    ] {
        wrong.extend(differences((source, &names), (file, &documented(file))));
    }
    assert_no_complaints(&wrong);
}

/// Returns the name of a rule in the source, such as `rules::TORN_LINE`.
fn constant(name: &str) -> String {
    format!("rules::{}", name.replace('-', "_").to_uppercase())
}

#[test]
fn documented_files_are_those_that_the_source_uses() {
    let code: String = source().into_iter().map(|(_, code)| code).collect();
    let mut wrong = Vec::new();
    for page in pages() {
        for path in page.tagged("FILES", "Pa") {
            let name = path.rsplit('/').next().unwrap_or_default();
            if !code.contains(name) {
                wrong.push(format!("{}: nothing uses {path}", page.file));
            }
        }
    }
    let documented = page("claw.7").tagged("FILES", "Pa");
    for name in code.split(".join(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let is_documented = documented.iter().any(|path| path.rsplit('/').next() == Some(name));
        if name.ends_with(".jsonl") && !is_documented {
            wrong.push(format!("claw.7: FILES lacks {name}"));
        }
    }
    assert_no_complaints(&wrong);
}

/// Some systems format manual pages with mandoc; man-db uses groff.
#[test]
fn mandoc_and_groff_report_no_warnings() {
    let checks = [
        ("mandoc", r#"mandoc -T lint -W warning "$@""#),
        ("groff", r#"for page; do groff -k -ww -mandoc -T utf8 -z <"$page" 2>&1; done"#),
    ];
    for (_, check) in checks.into_iter().filter(|(tool, _)| has_tool(tool)) {
        let paths = pages().into_iter().map(|page| page.path);
        Sandbox::new().sh(check).arg("sh").args(paths).assert().success().stdout("");
    }
}

#[test]
fn links_between_html_pages_lead_somewhere() {
    if !has_tool("mandoc") {
        return;
    }
    let sandbox = Sandbox::new();
    let run = sandbox.sh(r#"sh "$1" html"#).arg("sh").arg(root().join("scripts/dev/html"));
    run.assert().success();
    let index = sandbox.read_text("html/index.html");
    let mut wrong: Vec<String> = pages().iter().map(|page| format!("{}.html", page.file)).collect();
    wrong.retain(|page| !index.contains(&format!("\"{page}\"")));
    for page in pages() {
        let text = sandbox.read_text(&format!("html/{}.html", page.file));
        let targets = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let own = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
        let broken = own.filter(|own| !sandbox.exists(&format!("html/{own}")));
        wrong.extend(broken.map(|target| format!("{}: {target}", page.file)));
    }
    assert_no_complaints(&wrong);
}

// ---- the examples --------------------------------------------------------------------------

#[test]
fn examples_print_what_the_page_says() {
    let mut wrong = Vec::new();
    for page in pages() {
        let examples = commands_in(&page.section("EXAMPLES"));
        let calls = ["claw-call", "offline"]
            .iter()
            .any(|word| examples.iter().any(|example| example.command.contains(word)));
        let needs_jq = examples.iter().any(|example| example.command.contains("jq "));
        if can_run(&page.name) && (!calls || can_run("claw-call")) && (!needs_jq || has_tool("jq"))
        {
            wrong.extend(try_examples(&page, &examples));
        }
    }
    assert_no_complaints(&wrong);
}

/// A command of a page, and the lines that it prints according to the page.
#[derive(Debug, Default)]
pub struct Example {
    pub command: String,
    pub prints: Vec<String>,
}

/// Returns the commands in the examples of a page.
#[cfg(feature = "http")]
pub fn commands_of(file: &str) -> Vec<Example> {
    let page = pages().into_iter().find(|page| page.file == file).expect("a page with this name");
    commands_in(&page.section("EXAMPLES"))
}

/// Returns the commands in the literal displays of a section.
fn commands_in(section: &[&str]) -> Vec<Example> {
    let mut lines = Vec::new();
    let mut in_display = false;
    for line in section {
        match *line {
            line if line.starts_with(".Bd -literal") => in_display = true,
            ".Ed" => in_display = false,
            line if in_display => lines.push(plain(line)),
            _ => {}
        }
    }
    examples(lines)
}

/// Returns the commands in a terminal session with the lines that each prints. A command begins with `$`, and its
/// further lines with `>`.
pub fn examples(lines: Vec<String>) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), line.strip_prefix("> "), examples.last_mut()) {
            (Some(command), ..) => {
                examples.push(Example { command: command.to_owned(), prints: Vec::new() });
            }
            (_, Some(more), Some(last)) if last.prints.is_empty() => {
                last.command.push_str(&format!("\n{more}"));
            }
            (.., Some(last)) => last.prints.push(line),
            (.., None) => panic!("no command before {line:?}"),
        }
    }
    examples
}

/// Replaces roff's escapes in a line of a page with the characters that they stand for.
fn plain(line: &str) -> String {
    line.replace(r"\(aq", "'").replace(r"\&", "").replace(r"\e", r"\")
}

/// Escapes the characters of a line that roff interprets; the inverse of [`plain`].
fn escaped(line: &str) -> String {
    let line = line.replace('\\', r"\e").replace('\'', r"\(aq");
    if line.starts_with('.') { format!(r"\&{line}") } else { line }
}

/// Runs the examples of a page and returns a complaint for each whose output differs. With `CLAW_BLESS=1`, writes the
/// output into the page instead.
fn try_examples(page: &Page, examples: &[Example]) -> Vec<String> {
    let parts = printed_by(examples);
    if std::env::var_os("CLAW_BLESS").is_some() {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        bless(page, &parts);
        return Vec::new();
    }
    wrong_examples(&page.file, examples, &parts)
}

/// A script in place of a program that calls a model. It prints its name, its arguments and the last line of the
/// prompt.
const MODEL: &str = r#"echo "${0##*/} $* answers: $(tail -n 1)""#;

/// Scripts that the examples run instead of programs that need an account or another machine.
const STAND_INS: [(&str, &str); 5] = [
    ("aichat", MODEL),
    ("claude", MODEL),
    ("codex", MODEL),
    ("llm", MODEL),
    ("ssh", r#"shift; exec sh -c "$*""#),
];

/// Runs examples in one shell, as a reader on a terminal would, and returns the output of each.
pub fn printed_by(examples: &[Example]) -> Vec<String> {
    // After each command, print a byte that no program prints, and keep the status for `echo $?`.
    let mark = "s=$?; printf '\\001'; (exit $s)";
    let commands = examples.iter().map(|example| format!("{}\n{mark}\n", example.command));
    let script = format!("exec 2>&1\n{}", commands.collect::<String>());
    // The page itself creates everything that its examples need, except programs that need an account or a server.
    let sandbox = Sandbox::new();
    for (name, stand_in) in STAND_INS.iter().filter(|(name, _)| script.contains(name)) {
        sandbox.program(name, stand_in);
    }
    let run = sandbox.sh(&script).env("TMUX_TMPDIR", sandbox.dir());
    let printed = run.env_remove("SOURCE_DATE_EPOCH").assert().stdout_text();
    printed.split('\u{1}').map(str::to_owned).collect()
}

/// Returns a complaint for each example whose output differs from what the file shows.
pub fn wrong_examples(file: &str, examples: &[Example], printed: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (index, Example { command, prints }) in examples.iter().enumerate() {
        let lines: Vec<&str> =
            printed.get(index).map_or("(not run)", String::as_str).lines().collect();
        let prints: Vec<&str> = prints.iter().map(String::as_str).collect();
        if !matches(&prints, &lines) {
            let (documented, printed) = (prints.join("\n"), lines.join("\n"));
            wrong.push(format!(
                "{file}: $ {command}\n--- the page says\n{documented}\n--- it prints\n{printed}"
            ));
        }
    }
    wrong
}

/// Returns true if the lines match the documented ones, where `...` matches any number of lines.
fn matches(documented: &[&str], lines: &[&str]) -> bool {
    match documented.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|at| matches(rest, &lines[at..])),
        Some((first, rest)) => lines.first() == Some(first) && matches(rest, &lines[1..]),
    }
}

/// Writes the current output of the commands into the page. Documented output that still matches is not changed, so
/// that a `...` in it is kept.
fn bless(page: &Page, parts: &[&str]) {
    let mut parts = parts.iter();
    let (mut out, mut documented) = (Vec::new(), Vec::new());
    let (mut in_examples, mut in_display, mut printed) = (false, false, None);
    for line in page.text.lines() {
        in_examples = if line.starts_with(".Sh ") { line == ".Sh EXAMPLES" } else { in_examples };
        in_display = in_examples && (in_display || line.starts_with(".Bd -literal"));
        let ends = line == ".Ed" || line.starts_with("$ ");
        if in_display
            && ends
            && let Some(part) = printed.take()
        {
            let part: &str = part;
            let lines: Vec<&str> = part.lines().collect();
            let keep: Vec<String> = documented.iter().map(|line: &String| plain(line)).collect();
            let keep: Vec<&str> = keep.iter().map(String::as_str).collect();
            let new = if matches(&keep, &lines) { keep } else { lines };
            out.extend(new.into_iter().map(escaped));
            documented.clear();
        }
        in_display = in_display && line != ".Ed";
        if in_display && line.starts_with("$ ") {
            printed = parts.next().copied();
            out.push(line.to_owned());
        } else if in_display
            && printed.is_some()
            && !(documented.is_empty() && line.starts_with("> "))
        {
            documented.push(line.to_owned());
        } else {
            out.push(line.to_owned());
        }
    }
    fs::write(&page.path, out.join("\n") + "\n").expect("a writable page");
}
