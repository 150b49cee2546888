//! A directory of tools: for each tool an executable, and next to it a file with its definition for the model.

use crate::exit::{Error, Exit, fail};
use crate::input::line;
use crate::json::write::{Members, list};
use crate::json::{self, Object};
use anyhow::Context;
use rustix::fs::Access;
use std::path::{Path, PathBuf};

/// The maximum length of a tool's name that providers accept.
const MAX_NAME: usize = 64;

/// A directory of tools.
#[derive(Debug)]
pub struct Directory {
    /// The directory's canonical path.
    path: PathBuf,
}

impl Directory {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// Status 74 or 77 if the directory cannot be read, 78 if it is not a directory.
    pub fn open(path: &Path) -> anyhow::Result<Directory> {
        let name = path.display();
        let real = path.canonicalize().with_context(|| format!("cannot read tools '{name}'"))?;
        if !real.is_dir() {
            return fail(
                Exit::Config,
                format!(
                    "cannot run tools from '{name}': not a directory; give the directory that holds the tools"
                ),
            );
        }
        Ok(Directory { path: real })
    }

    /// Returns the executable of the tool `name`: a file with that name in the directory. It may be a link to another
    /// file in the directory.
    ///
    /// # Errors
    /// Returns the reason why there is no such tool.
    pub fn find(&self, name: &str) -> Result<PathBuf, String> {
        if !is_name(name) {
            return Err(format!("invalid tool name '{name}'"));
        }
        let Ok(real) = self.path.join(name).canonicalize() else {
            return Err(format!("there is no tool '{name}'"));
        };
        let why = if real.parent() != Some(self.path.as_path()) {
            "its file is a link to a file outside the tools directory"
        } else if !real.is_file() {
            "not a regular file"
        } else if rustix::fs::access(&real, Access::EXEC_OK).is_err() {
            "its file is not executable"
        } else {
            return Ok(real);
        };
        Err(format!("tool '{name}' cannot be run: {why}"))
    }

    /// Returns the tool definitions for the API as a JSON array, sorted by name. A tool is defined by a file
    /// `NAME.json` with an executable `NAME` beside it.
    ///
    /// # Errors
    /// Status 74 or 77 if something cannot be read, 65 if a file is invalid, 78 if there are no tools.
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
                format!("cannot use tools '{path}': {none}; see claw-tool(7)"),
            );
        }
        files.sort();
        let tools = files.iter().map(|(name, path)| definition(name, path));
        Ok(list(tools.collect::<anyhow::Result<Vec<_>>>()?))
    }
}

/// Returns the definition of a tool: its name and the members of its file.
fn definition(name: &str, path: &Path) -> anyhow::Result<String> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read '{file}'"))?;
    let text = json::on_one_line(text.trim());
    let bad = |why: &str| Error::new(Exit::Data, format!("cannot use tool '{file}': {why}"));
    let object = Object::parse(&text).map_err(|_| bad("not a JSON object"))?;
    if object.get("name").is_some() && object.string("name").as_deref() != Some(name) {
        return Err(bad("'name' differs from the name of the file").into());
    }
    if !object.get("input_schema").is_some_and(|schema| schema.starts_with('{')) {
        return Err(bad("no 'input_schema' object; see claw-tool(7)").into());
    }
    let rest = object.members().filter(|member| member.name() != "name");
    Ok(rest.fold(Members::new().string("name", name), Members::member).into_json())
}

/// Returns true if `name` is a valid tool name. A valid name is always a single path component.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

/// Returns the reason why a list of tools is invalid, or `None` if it is valid.
#[must_use]
pub fn why_invalid(text: &str) -> Option<String> {
    if json::elements(text).is_none() {
        return Some("not a JSON array; give a list of tools, or a directory of them".to_owned());
    }
    let is_too_deep = json::is_deeper(text, line::MAX_DEPTH);
    is_too_deep.then(|| format!("nested more than {} levels deep", line::MAX_DEPTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_4_names_are_a_single_safe_path_component() {
        for name in ["read_file", "a", "A-1", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "/bin/sh", "a.json", "a b", "a\0", "é", &"x".repeat(65)]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
