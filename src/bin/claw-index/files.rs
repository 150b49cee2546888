//! The files to index: transcripts, and those in directories.

use anyhow::Context;
use clawutils::cli::walk_error;
use clawutils::session::probe::Stamp;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The suffix of transcripts in directories.
const SUFFIX: &str = "jsonl";

/// A file that may be a transcript.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its path without symbolic links.
    pub path: PathBuf,
    /// Its state; `None` if it does not exist.
    pub stamp: Option<Stamp>,
    /// True if it is an operand, and not from a directory.
    pub is_given: bool,
}

impl FoundFile {
    /// Returns the key of its session.
    pub fn key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// The files of a run.
#[derive(Debug, Default)]
pub struct Files {
    /// The files, in order.
    pub found: Vec<FoundFile>,
    /// The directories that were searched, each with a slash at the end.
    pub directories: Vec<String>,
    /// What could not be read.
    pub errors: Vec<anyhow::Error>,
}

impl Files {
    /// Finds the files of `paths`; without any, the sessions of the workspace.
    pub fn find(paths: &[PathBuf], workspace: &Path) -> Files {
        let mut files = Files::default();
        if paths.is_empty() {
            files.take(&Files::sessions(workspace));
        }
        paths.iter().for_each(|path| files.take(path));
        files.found.sort_by(|a, b| a.path.cmp(&b.path));
        files.found.dedup_by(|later, earlier| later.path == earlier.path);
        files
    }

    /// Finds files again that were changed, created or removed, and the files in directories among them.
    pub fn changed(paths: impl IntoIterator<Item = PathBuf>) -> Files {
        let mut files = Files::default();
        for path in paths {
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => files.walk(&path),
                Err(_) if !is_wanted(&path) => files.directories.push(with_slash(&path)),
                meta => {
                    let stamp = meta.ok().filter(Metadata::is_file).map(|meta| Stamp::of(&meta));
                    files.found.push(FoundFile { path, stamp, is_given: false });
                }
            }
        }
        files
    }

    /// Returns the directory that has the sessions of a workspace. OpenClaw's sessions are in the workspace itself.
    pub fn sessions(workspace: &Path) -> PathBuf {
        let own = workspace.join(".sessions");
        if own.is_dir() { own } else { workspace.to_owned() }
    }

    fn take(&mut self, path: &Path) {
        match located(path).with_context(|| format!("cannot read '{}'", path.display())) {
            Ok(FoundFile { path, stamp: Some(_), .. }) if path.is_dir() => self.walk(&path),
            Ok(file) => self.found.push(file),
            Err(error) => self.errors.push(error),
        }
    }

    fn walk(&mut self, directory: &Path) {
        self.directories.push(with_slash(directory));
        for entry in WalkDir::new(directory) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.errors.push(walk_error(error, directory));
                    continue;
                }
            };
            if !is_wanted(entry.path()) || !entry.file_type().is_file() {
                continue;
            }
            // A file may be deleted in the meantime.
            let stamp = entry.metadata().ok().map(|meta| Stamp::of(&meta));
            self.found.push(FoundFile { path: entry.into_path(), stamp, is_given: false });
        }
    }
}

/// Returns the path of a directory with a slash at its end.
fn with_slash(directory: &Path) -> String {
    format!("{}/", directory.to_string_lossy().trim_end_matches('/'))
}

/// Returns true for the name of a file that is read if it is in a directory.
pub fn is_wanted(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == SUFFIX)
}

/// Returns the place of an operand without symbolic links. The file itself may be missing.
fn located(path: &Path) -> io::Result<FoundFile> {
    let is_given = true;
    match path.canonicalize() {
        Ok(path) => {
            let stamp = Some(Stamp::of(&fs::metadata(&path)?));
            Ok(FoundFile { path, stamp, is_given })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new(".")).canonicalize()?;
            Ok(FoundFile { path: parent.join(name), stamp: None, is_given })
        }
        Err(error) => Err(error),
    }
}
