//! The directories in which Gemini CLI keeps the chats of projects.
//!
//! A directory in `tmp` has the name of the project, and a number if several have it. The file `.project_root` in it holds the
//! path of the project. Gemini CLI 0.61.0 finds a directory that is not in its list by this file.

use anyhow::Context;
use clawutils::new_file::SHARED;
use clawutils::session::export::place;
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
    // A process that was killed may have left an empty directory.
    let is_empty =
        |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err() || is_empty(path);
    Ok(paths.find(is_free).unwrap_or_default())
}

/// Returns the name of a project's directory: small letters and digits, with a dash in the place of anything else.
fn slug(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "project".to_owned() } else { words.join("-") }
}

/// Makes the directory of a project, and writes the path of the project into it, unless it is there. `chat` is the path of a
/// chat in it. The path of the project comes before everything else in the directory, so a process that is killed leaves
/// no chats without it.
///
/// # Errors
/// Fails if it cannot be written.
pub fn own(chat: &Path, directory: &str) -> anyhow::Result<()> {
    let project = chat.ancestors().nth(2).unwrap_or(Path::new("."));
    let marker = project.join(MARKER);
    if marker.exists() {
        return Ok(());
    }
    place::write(&marker, directory, SHARED)
}
