//! Rules for the repository. In the source, a module uses only modules that `src/lib.rs` lists above it, the modules of a
//! program do not use each other in a circle, only `json` writes JSON, and only `cli` reads the environment and uses the
//! standard streams. Scripts are short, all unit tests are run, and SECURITY.md names tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use walkdir::WalkDir;

/// Returns all source files of the library, each with the path of its module.
fn modules() -> BTreeMap<Vec<String>, PathBuf> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules = BTreeMap::new();
    for file in WalkDir::new(&src).into_iter().map(|entry| entry.expect("an entry of src")) {
        let inside = file.path().strip_prefix(&src).expect("a path below src").with_extension("");
        let mut names: Vec<String> =
            inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let is_source = file.path().extension().is_some_and(|extension| extension == "rs");
        let is_test = names.last().is_some_and(|name| name == "tests");
        if !is_source || is_test || names.first().is_some_and(|name| name == "bin") {
            continue;
        }
        names.retain(|name| name != "mod" && name != "lib");
        modules.insert(names, file.path().to_owned());
    }
    modules
}

/// Returns the code of a file without comments and unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_module_uses_only_modules_listed_above_it() {
    let list =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).expect("lib.rs");
    let declared = Regex::new(r"(?m)^(?:pub )?mod (\w+);").expect("a pattern");
    let order: Vec<&str> =
        declared.captures_iter(&list).map(|found| found.get(1).expect("a name").as_str()).collect();
    let place = |name: &str| order.iter().position(|module| *module == name);
    let used = Regex::new(r"\bcrate::(\{|\w+)").expect("a pattern");
    let mut wrong = BTreeSet::new();
    let modules = modules();
    for (names, path) in modules.iter().filter(|(names, _)| !names.is_empty()) {
        let own = place(&names[0]).unwrap_or_else(|| panic!("lib.rs does not list {names:?}"));
        for found in used.captures_iter(&code(path)) {
            let (_, [name]) = found.extract();
            if place(name).is_none_or(|used| used > own) {
                wrong.insert(format!("{} uses {name}", names.join("::")));
            }
        }
    }
    assert!(order.len() > 20 && modules.len() > 100, "{order:?}, {} files", modules.len());
    assert!(wrong.is_empty(), "a module uses a module listed below it: {wrong:#?}");
}

/// Returns the programs that use each module of `cli`, directly or through another module.
fn users_in_cli() -> BTreeMap<String, BTreeSet<String>> {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
    // A name that `cli` re-exports belongs to the module that defines it.
    let reexport = Regex::new(r"pub use (\w+)::(\{[^}]*\}|\w+);").expect("a pattern");
    let page = code(&cli.join("mod.rs"));
    let home: BTreeMap<&str, &str> = reexport
        .captures_iter(&page)
        .flat_map(|found| {
            let (_, [module, names]) = found.extract();
            names.split(|c: char| !c.is_alphanumeric() && c != '_').map(move |name| (name, module))
        })
        .collect();
    let path = Regex::new(r"\bcli::(\{[^}]*\}|\w+)").expect("a pattern");
    let names = |code: &str| -> BTreeSet<String> {
        let words = path.captures_iter(code).flat_map(|found| {
            let list = found.get(1).expect("names").as_str().to_owned();
            let words = list.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned);
            words.collect::<Vec<_>>()
        });
        words
            .map(|word| home.get(word.as_str()).map_or(word.clone(), |of| (*of).to_owned()))
            .collect()
    };
    let inside: BTreeMap<String, BTreeSet<String>> = modules()
        .into_iter()
        .filter(|(module, _)| module.len() > 1 && module[0] == "cli")
        .fold(BTreeMap::new(), |mut inside, (module, path)| {
            inside
                .entry(module[1].clone())
                .or_insert_with(BTreeSet::new)
                .extend(names(&code(&path)));
            inside
        });
    let mut users: BTreeMap<String, BTreeSet<String>> =
        inside.keys().map(|module| (module.clone(), BTreeSet::new())).collect();
    for file in
        WalkDir::new(cli.with_file_name("bin")).into_iter().map(|file| file.expect("a file"))
    {
        if !file.file_type().is_file() {
            continue;
        }
        let program = file.path().parent().and_then(Path::file_name).expect("a directory");
        let mut open: Vec<String> = names(&code(file.path())).into_iter().collect();
        while let Some(name) = open.pop() {
            let Some(known) = users.get_mut(&name) else { continue };
            if known.insert(program.to_string_lossy().into_owned()) {
                open.extend(inside[&name].iter().cloned());
            }
        }
    }
    users
}

#[test]
fn a_module_in_cli_is_used_by_more_than_one_program() {
    let users = users_in_cli();
    let of_one: Vec<_> = users.iter().filter(|(_, programs)| programs.len() < 2).collect();
    assert!(users.len() > 10, "{users:?}");
    assert!(of_one.is_empty(), "in src/cli but used by fewer than two programs: {of_one:#?}");
}

#[test]
fn no_two_sibling_modules_use_each_other() {
    let modules = modules();
    let names: Vec<&Vec<String>> = modules.keys().filter(|names| names.len() > 1).collect();
    let uses = |own: &Vec<String>, other: &Vec<String>| {
        let code = code(&modules[own]);
        let (parent, name) = (other[..other.len() - 1].join("::"), &other[other.len() - 1]);
        let paths = [
            format!(r"\bcrate::{parent}::(\{{[^}}]*\b)?{name}\b"),
            format!(r"\bsuper::(\{{[^}}]*\b)?{name}\b"),
        ];
        paths.iter().any(|path| Regex::new(path).expect("a pattern").is_match(&code))
    };
    let mut wrong = BTreeSet::new();
    for (index, own) in names.iter().enumerate() {
        let is_sibling = |other: &&&Vec<String>| {
            other.len() == own.len() && other[..other.len() - 1] == own[..own.len() - 1]
        };
        for other in names[index + 1..].iter().filter(is_sibling) {
            if uses(own, other) && uses(other, own) {
                wrong.insert(format!("{} and {}", own.join("::"), other[other.len() - 1]));
            }
        }
    }
    assert!(wrong.is_empty(), "two modules use each other: {wrong:#?}");
}

/// Returns a module from which, over the modules that it uses, a path leads back to it.
fn cycle(uses: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let leads_back = |start: &&String| {
        let (mut open, mut seen) = (vec![*start], BTreeSet::new());
        while let Some(module) = open.pop() {
            for used in uses.get(module).into_iter().flatten() {
                if used == *start {
                    return true;
                }
                if seen.insert(used) {
                    open.push(used);
                }
            }
        }
        false
    };
    uses.keys().find(leads_back).cloned()
}

#[test]
fn the_modules_of_a_program_use_each_other_in_one_direction() {
    let used = Regex::new(r"\bcrate::(\{[^}]*\}|\w+)").expect("a pattern");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let (mut files, mut wrong) = (0, Vec::new());
    for program in fs::read_dir(&programs).expect("the programs") {
        let program = program.expect("a program").path();
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in WalkDir::new(&program).into_iter().map(|entry| entry.expect("an entry")) {
            if file.path().extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let inside = file.path().strip_prefix(&program).expect("a path in it");
            let first = inside.iter().next().expect("a name").to_string_lossy();
            let own = first.trim_end_matches(".rs").to_owned();
            let code = code(file.path());
            let names = used.captures_iter(&code).flat_map(|found| {
                let names = found.get(1).expect("names").as_str();
                names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty())
            });
            let others = names.filter(|name| *name != own).map(str::to_owned);
            uses.entry(own.clone()).or_default().extend(others);
            files += 1;
        }
        let cycle = cycle(&uses);
        wrong.extend(cycle.map(|module| format!("{}: {module}", program.display())));
    }
    assert!(files > 100, "{files} files");
    assert!(wrong.is_empty(), "modules that use each other in a circle: {wrong:#?}");
    let circle = [("a", "b"), ("b", "c"), ("c", "a")];
    let circle = circle.map(|(a, b)| (a.to_owned(), BTreeSet::from([b.to_owned()])));
    assert_eq!(cycle(&BTreeMap::from(circle)).as_deref(), Some("a"));
}

#[test]
fn all_json_is_written_by_the_writer() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // JSON in a literal: a name with its colon, a brace before a name, or escaped braces around a placeholder.
    // Texts that describe JSON have a space after the colon. Patterns to search for are removed first, because they
    // are not output.
    let written = Regex::new(r#"\\?"(\w+|\{\w*\})\\?":[^: ]|\{\{\\?"|\{\{\{|\}\}\}""#);
    let written = written.expect("a pattern");
    let searched = Regex::new(r##"\bb"(\\.|[^"\\])*"|\bbr#".*?"#|\bNeedles::\w+\(.*"##);
    let searched = searched.expect("a pattern");
    let (mut files, mut wrong) = (0, Vec::new());
    for file in WalkDir::new(&src).into_iter().map(|entry| entry.expect("an entry of src")) {
        let inside = file.path().strip_prefix(&src).expect("a path below src");
        let is_source = inside.extension().is_some_and(|extension| extension == "rs");
        let is_test = inside.file_name().is_some_and(|name| name == "tests.rs");
        if !is_source || is_test || inside.starts_with("json") {
            continue;
        }
        files += 1;
        for (index, line) in code(file.path()).lines().enumerate() {
            if written.is_match(&searched.replace_all(line, "")) {
                wrong.push(format!("{}:{}: {}", inside.display(), index + 1, line.trim()));
            }
        }
    }
    assert!(files > 200, "only {files} files");
    assert!(wrong.is_empty(), "use json::write: {wrong:#?}");
}

#[test]
fn only_cli_reads_the_environment_and_uses_the_standard_streams() {
    let used = Regex::new(r"\benv::(args|vars?)(_os)?\b|\bio::(stdin|stdout|stderr)\b");
    let used = used.expect("a pattern");
    // The HTTP client reads the proxy variables itself; `provider::http` only checks whether they are set.
    let allowed = ["cli", "provider::http"];
    let mut wrong = Vec::new();
    for (names, path) in modules() {
        let name = names.join("::");
        let is_allowed = |allowed: &&str| name == **allowed || names[0] == **allowed;
        if names.is_empty() || allowed.iter().any(is_allowed) {
            continue;
        }
        wrong.extend(used.find(&code(&path)).map(|found| format!("{name}: {}", found.as_str())));
    }
    assert!(wrong.is_empty(), "pass it in from src/cli: {wrong:#?}");
}

#[test]
fn scripts_are_short_enough_to_read() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    for (name, max_lines) in
        [("claw-turn", 150), ("claw-chat", 300), ("claw-retry", 60), ("claw-replay-parallel", 60)]
    {
        let text = fs::read_to_string(scripts.join(name)).expect("a script");
        assert!(text.lines().count() <= max_lines, "{name} has more than {max_lines} lines");
    }
}

/// Code that only one program uses belongs to that program, and code that has nothing to do with arguments and streams
/// belongs in a module below `cli`.
#[test]
fn the_shared_parts_of_command_lines_are_small() {
    let lines = sources_in("src/cli").lines().count();
    assert!(lines <= 2550, "src/cli has {lines} lines");
}

/// Returns the text of all Rust files in a directory.
fn sources_in(directory: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let files = WalkDir::new(root).into_iter().map(|entry| entry.expect("an entry"));
    let sources = files.filter(|file| file.path().extension().is_some_and(|it| it == "rs"));
    sources.map(|file| fs::read_to_string(file.path()).expect("a source file")).collect()
}

#[test]
fn the_unit_tests_of_programs_are_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let check = fs::read_to_string(root.join("scripts/dev/check")).expect("scripts/dev/check");
    let unit_tests =
        check.lines().filter(|line| line.contains("cargo test") && line.contains(" --lib"));
    let unit_tests: Vec<&str> = unit_tests.collect();
    assert_eq!(unit_tests.len(), 2, "one line compiles the tests, and one runs them");
    for program in fs::read_dir(root.join("src/bin")).expect("src/bin") {
        let program = program.expect("an entry").file_name().into_string().expect("a name");
        let has_tests = sources_in(&format!("src/bin/{program}")).contains("#[test]");
        let names = |line: &&str| line.split_whitespace().any(|word| word == program);
        let is_run = unit_tests.iter().all(names);
        assert_eq!(has_tests, is_run, "{program}: scripts/dev/check");
    }
}

#[test]
fn every_threat_has_tests_that_exist() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/SECURITY.md");
    let page = fs::read_to_string(page).expect("SECURITY.md");
    let sources = [sources_in("tests"), sources_in("src")].concat();
    let test = Regex::new(r"#\[test\]\n(?: *#\[.*\]\n)* *fn (\w+)\(").expect("a pattern");
    let known: BTreeSet<&str> =
        test.captures_iter(&sources).map(|test| test.extract::<1>().1[0]).collect();
    let name = Regex::new(r"`(\w+)`").expect("a pattern");
    let mut rows = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| threat")) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let mut names = name.captures_iter(cell).map(|name| name.extract::<1>().1[0]);
        assert!(name.is_match(cell), "no test: {row}");
        assert_eq!(names.find(|name| !known.contains(name)), None, "no such test: {row}");
        rows += 1;
    }
    assert!(rows > 20, "only {rows} threats");
}
