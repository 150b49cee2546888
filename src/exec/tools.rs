//! A folder of tools: an executable each, and beside it what the model is told of it.

use crate::exit::{Exit, fail};
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
            return fail(Exit::Config, format!("cannot run tools from '{name}': not a folder"));
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
