//! Finds the files to index: the given transcripts, and those in the given directories.

use crate::database::require_file;
use anyhow::Context;
use clawutils::cli::walk_error;
use clawutils::new_file::directory_of;
use clawutils::session::probe::Stamp;
use clawutils::session::transcript_name::{is_old_copy, is_transcript};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// A file that may be a transcript.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its path without symbolic links.
    pub path: PathBuf,
    /// Its state; `None` if it does not exist, or is an old copy of another file in a directory.
    pub stamp: Option<Stamp>,
    /// True if the update was given its name; false if it was found in a directory, or if a watch saw it change.
    pub is_given: bool,
}

impl FoundFile {
    /// Returns the key of its session.
    pub fn key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// The files that an update looks at.
#[derive(Debug, Default)]
pub struct Files {
    /// The files, in order.
    pub found: Vec<FoundFile>,
    /// The directories that were searched or no longer exist, each with a slash at the end.
    pub directories: Vec<String>,
    /// The errors about files and directories that could not be read.
    pub errors: Vec<anyhow::Error>,
}

impl Files {
    /// Finds the given files, and those in the given directories. If `paths` is empty, finds the workspace's sessions.
    pub fn find(paths: &[PathBuf], workspace: &Path) -> Files {
        let mut files = Files::default();
        if paths.is_empty() {
            files.take(&Files::sessions(workspace));
        }
        paths.iter().for_each(|path| files.take(path));
        let is_old = |file: &FoundFile| file.stamp.is_none();
        files.found.sort_by(|a, b| a.path.cmp(&b.path).then(is_old(a).cmp(&is_old(b))));
        files.found.dedup_by(|later, earlier| later.path == earlier.path);
        files
    }

    /// Looks up paths that were changed, created or removed, and the transcripts in those that are directories.
    pub fn changed(paths: impl IntoIterator<Item = PathBuf>) -> Files {
        let mut files = Files::default();
        for path in paths {
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => files.walk(&path),
                Err(error) if !is_gone(&error) => {
                    let cannot = format!("cannot read '{}'", path.display());
                    files.errors.push(anyhow::Error::from(error).context(cannot));
                }
                Err(_) if !is_transcript(&path) => files.directories.push(with_slash(&path)),
                meta => {
                    let meta = meta.ok().filter(|meta| meta.is_file() && !is_old_copy(&path));
                    let stamp = meta.map(|meta| Stamp::of(&meta));
                    files.found.push(FoundFile { path, stamp, is_given: false });
                }
            }
        }
        files
    }

    /// Returns the directory of the sessions of a workspace. OpenClaw's sessions are in the workspace itself.
    pub fn sessions(workspace: &Path) -> PathBuf {
        let own = workspace.join(".sessions");
        if own.is_dir() { own } else { workspace.to_owned() }
    }

    fn take(&mut self, path: &Path) {
        match located(path).with_context(|| format!("cannot read '{}'", path.display())) {
            Ok(FoundFile { path, stamp: Some(_), .. }) if path.is_dir() => self.walk(&path),
            Ok(file) => match file.stamp.map_or(Ok(()), |_| require_file(&file.path)) {
                Ok(()) => self.found.push(file),
                Err(error) => self.errors.push(error),
            },
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
            if !is_transcript(entry.path()) || !entry.file_type().is_file() {
                continue;
            }
            let stamp = match entry.metadata() {
                // Its session is removed.
                Ok(_) if is_old_copy(entry.path()) => None,
                Ok(meta) => Some(Stamp::of(&meta)),
                // It was deleted in the meantime.
                Err(error) if error.io_error().is_some_and(is_gone) => None,
                Err(error) => {
                    self.errors.push(walk_error(error, directory));
                    continue;
                }
            };
            self.found.push(FoundFile { path: entry.into_path(), stamp, is_given: false });
        }
    }
}

/// Returns the path of a directory with a slash at its end.
fn with_slash(directory: &Path) -> String {
    format!("{}/", directory.to_string_lossy().trim_end_matches('/'))
}

/// Returns true if there is no such file. After other errors, such as a directory without search permission, the file
/// may exist.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns true if it is certain that no file has this path.
pub fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| is_gone(&error))
}

/// Resolves the symbolic links in a path from the command line. The file itself may be missing.
fn located(path: &Path) -> io::Result<FoundFile> {
    let is_given = true;
    match path.canonicalize() {
        Ok(path) => {
            let stamp = Some(Stamp::of(&fs::metadata(&path)?));
            Ok(FoundFile { path, stamp, is_given })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let path = directory_of(path).canonicalize()?.join(name);
            Ok(FoundFile { path, stamp: None, is_given })
        }
        Err(error) => Err(error),
    }
}
