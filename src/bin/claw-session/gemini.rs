//! The directories in which Gemini CLI keeps the chats of projects.
//!
//! A directory in `tmp` has the name of the project, and a number if several have it. The file `.project_root` in it holds the
//! path of the project. Gemini CLI 0.61.0 finds a directory that is not in its list by this file.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// The file with the path of the project.
const MARKER: &str = ".project_root";

/// Returns the directory of a project: the one that it has, or else a new one, which is not created.
///
/// # Errors
/// Fails if the directories cannot be read.
pub fn project(home: &Path, directory: &str) -> anyhow::Result<PathBuf> {
    let root = home.join("tmp");
    let owner = |path: &Path| fs::read_to_string(path.join(MARKER)).ok();
    let is_own = |path: &PathBuf| owner(path).is_some_and(|owner| owner.trim_end() == directory);
    if root.is_dir() {
        let entries =
            fs::read_dir(&root).with_context(|| format!("cannot read '{}'", root.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        if let Some(own) = paths.filter(is_own).min() {
            return Ok(own);
        }
    }
    let slug = slug(directory.rsplit('/').next().unwrap_or_default());
    let numbered = (1_u32..).map(|number| root.join(format!("{slug}-{number}")));
    let mut paths = std::iter::once(root.join(&slug)).chain(numbered);
    Ok(paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_default())
}

/// Returns the name of a project's directory: small letters and digits, with a dash in the place of anything else.
fn slug(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "project".to_owned() } else { words.join("-") }
}

/// Writes the path of the project beside the directory of a chat, unless it is there.
///
/// # Errors
/// Fails if it cannot be written.
pub fn own(chat: &Path, directory: &str) -> anyhow::Result<()> {
    let marker = chat.ancestors().nth(2).unwrap_or(Path::new(".")).join(MARKER);
    if marker.exists() {
        return Ok(());
    }
    fs::write(&marker, directory).with_context(|| format!("cannot write '{}'", marker.display()))
}
