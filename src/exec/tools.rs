//! A folder of tools: an executable each, and beside it what the model is told of it.

use crate::exit::{Error, Exit, fail};
use crate::json::write::{Members, list};
use crate::json::{self, Object};
use anyhow::Context;
use rustix::fs::Access;
use std::path::{Path, PathBuf};

/// The longest name that a provider takes.
const MOST_NAME: usize = 64;

/// A folder of tools.
#[derive(Debug)]
pub struct Folder {
    /// Its path, without links in it.
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`.
    ///
    /// # Errors
    /// 74 or 77 when it cannot be read, 78 when it is no folder.
    pub fn open(path: &Path) -> anyhow::Result<Folder> {
        let name = path.display();
        let real = path.canonicalize().with_context(|| format!("cannot read tools '{name}'"))?;
        if !real.is_dir() {
            return fail(
                Exit::Config,
                format!(
                    "cannot run tools from '{name}': not a folder; name the one with the tools"
                ),
            );
        }
        Ok(Folder { path: real })
    }

    /// The executable of tool `name`: a file of that name in the folder, or what a link there leads to, if
    /// that is in the folder too.
    ///
    /// # Errors
    /// Says why it is none.
    pub fn find(&self, name: &str) -> Result<PathBuf, String> {
        if !is_name(name) {
            return Err(format!("'{name}' is no name of a tool"));
        }
        let Ok(real) = self.path.join(name).canonicalize() else {
            return Err(format!("there is no tool '{name}'"));
        };
        let why = if real.parent() != Some(self.path.as_path()) {
            "its file is a link out of the folder of tools"
        } else if !real.is_file() {
            "it is no file"
        } else if rustix::fs::access(&real, Access::EXEC_OK).is_err() {
            "its file is not executable"
        } else {
            return Ok(real);
        };
        Err(format!("tool '{name}' cannot be run: {why}"))
    }

    /// What a model is told of the tools: a JSON array as the API takes it, sorted by name. It is what the
    /// files `NAME.json` say for which there is an executable `NAME`.
    ///
    /// # Errors
    /// 74 or 77 when something cannot be read, 65 when a file is not what it has to be, 78 when there is no
    /// tool at all.
    pub fn definitions(&self) -> anyhow::Result<String> {
        let cannot = || format!("cannot read tools '{}'", self.path.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if path.extension().is_some_and(|end| end == "json") && self.find(stem).is_ok() {
                files.push((stem.to_owned(), path));
            }
        }
        if files.is_empty() {
            let (path, none) =
                (self.path.display(), "no NAME.json with an executable NAME beside it");
            return fail(
                Exit::Config,
                format!(
                    "there is no tool in '{path}': {none}; claw-tool(7) says what a folder holds"
                ),
            );
        }
        files.sort();
        let tools = files.iter().map(|(name, path)| definition(name, path));
        Ok(list(tools.collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// What a model is told of a tool: what its file says, and the name.
fn definition(name: &str, path: &Path) -> anyhow::Result<String> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read '{file}'"))?;
    let text = json::on_one_line(text.trim());
    let bad = |why: &str| Error::new(Exit::Data, format!("cannot use tool '{file}': {why}"));
    let object = Object::parse(&text).map_err(|_| bad("not a JSON object"))?;
    if object.get("name").is_some() && object.string("name").as_deref() != Some(name) {
        return Err(bad("it says another 'name' than the file's").into());
    }
    if !object.get("input_schema").is_some_and(|schema| schema.starts_with('{')) {
        return Err(bad("no 'input_schema' object; claw-tool(7) says what it holds").into());
    }
    let rest = object.members().filter(|member| member.name() != "name");
    Ok(rest.fold(Members::new().string("name", name), Members::member).into_json())
}

/// Whether a name can be one of a tool: one component of a path, and no other thing.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=MOST_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_4_names_are_one_safe_component_of_a_path() {
        for name in ["read_file", "a", "A-1", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "/bin/sh", "a.json", "a b", "a\0", "é", &"x".repeat(65)]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
