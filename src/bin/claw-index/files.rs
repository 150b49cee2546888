//! The files to index: transcripts, and those in directories.

use anyhow::Context;
use clawutils::cli::walk_error;
use clawutils::session::probe::Stamp;
use std::fs;
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
            let own = workspace.join(".sessions");
            // OpenClaw's sessions are in the workspace itself.
            files.take(&if own.is_dir() { own } else { workspace.to_owned() });
        }
        paths.iter().for_each(|path| files.take(path));
        files.found.sort_by(|a, b| a.path.cmp(&b.path));
        files.found.dedup_by(|later, earlier| later.path == earlier.path);
        files
    }

    fn take(&mut self, path: &Path) {
        match located(path).with_context(|| format!("cannot read '{}'", path.display())) {
            Ok(FoundFile { path, stamp: Some(_), .. }) if path.is_dir() => self.walk(&path),
            Ok(file) => self.found.push(file),
            Err(error) => self.errors.push(error),
        }
    }

    fn walk(&mut self, directory: &Path) {
        self.directories.push(format!("{}/", directory.to_string_lossy().trim_end_matches('/')));
        for entry in WalkDir::new(directory) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.errors.push(walk_error(error, directory));
                    continue;
                }
            };
            let is_wanted = entry.path().extension().is_some_and(|suffix| suffix == SUFFIX);
            if !is_wanted || !entry.file_type().is_file() {
                continue;
            }
            // A file may be deleted in the meantime.
            let stamp = entry.metadata().ok().map(|meta| Stamp::of(&meta));
            self.found.push(FoundFile { path: entry.into_path(), stamp, is_given: false });
        }
    }
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
