//! The layers of the library: a module uses only what `src/lib.rs` lists above it.

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

/// Returns the code of a file without comments and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_module_uses_only_those_above_it() {
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
        let own = place(&names[0]).unwrap_or_else(|| panic!("lib.rs lists {names:?}"));
        for found in used.captures_iter(&code(path)) {
            let (_, [name]) = found.extract();
            if place(name).is_none_or(|used| used > own) {
                wrong.insert(format!("{} uses {name}", names.join("::")));
            }
        }
    }
    assert!(order.len() > 20 && modules.len() > 100, "{order:?}, {} files", modules.len());
    assert!(wrong.is_empty(), "a module uses one below it: {wrong:#?}");
}
