//! The transcripts of a run: operands, the files in directories, and lists of paths.
//!
//! Paths are found one by one while transcripts are examined, so a list may be endless. Only a hash of each path is
//! kept, to leave out repeated ones.

use crate::line_file::LineFile;
use clawutils::cli::walk_error;
use clawutils::exit::{Error, Exit, fail};
use foldhash::fast::RandomState;
use glob::{MatchOptions, Pattern};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::hash::BuildHasher;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::vec;
use walkdir::{DirEntry, WalkDir};

/// The longest path in a list, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The option for the files in directories.
#[derive(Clone, Debug, clap::Args)]
pub struct GlobArgs {
    /// Pattern for the names of files in directories, or for their paths if it has a slash; may be repeated
    #[arg(long, value_name = "PATTERN", default_value = "*.jsonl", value_parser = pattern)]
    pub glob: Vec<Pattern>,
}

/// The options that select transcripts.
#[derive(Clone, Debug, clap::Args)]
pub struct PathArgs {
    /// Transcripts, and directories to search for transcripts
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The patterns for files in directories.
    #[command(flatten)]
    pub globs: GlobArgs,
    /// File with further paths, one per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// Paths in the file of --files-from end in a NUL byte instead of a line feed
    #[arg(short = '0', long, requires = "files_from")]
    pub null: bool,
    /// Divide the transcripts into N parts, and work only on part K
    #[arg(long, value_name = "K/N", value_parser = Shard::parse)]
    pub shard: Option<Shard>,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| format!("{}; quote special characters with [ ]", error.msg))
}

/// One of several parts of the transcripts. The part to which a transcript belongs depends only on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of the part, from 0.
    index: u64,
    /// The number of parts.
    count: u64,
}

impl Shard {
    fn parse(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            let (index, count): (u64, u64) = (index.parse().ok()?, count.parse().ok()?);
            (1..=count).contains(&index).then(|| Shard { index: index - 1, count })
        });
        numbers.ok_or_else(|| "not a part K/N with K from 1 to N; write 1/4".to_owned())
    }

    /// Returns true if a path is in this part.
    fn has(self, path: &Path) -> bool {
        let hash = Sha256::digest(path.as_os_str().as_bytes());
        let first = hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        first % self.count == self.index
    }
}

/// A path to work on, or a directory with an error.
#[derive(Debug)]
pub struct FoundPath {
    /// The path.
    pub path: PathBuf,
    /// The error, if it is a directory that cannot be read or has no transcripts.
    pub error: Option<anyhow::Error>,
}

/// The paths of a run, in order.
#[derive(Default)]
pub struct Paths {
    operands: vec::IntoIter<PathBuf>,
    list: Option<LineFile>,
    /// The byte that ends a path in the list.
    end: u8,
    walk: Option<Walk>,
    /// True if nothing was found yet in the directory of `walk`.
    is_walk_empty: bool,
    globs: Vec<Pattern>,
    /// Files and directories to skip if they are found in a directory: the state file, and what is beside it.
    except: Vec<PathBuf>,
    shard: Option<Shard>,
    known: HashSet<u64>,
    hasher: RandomState,
    /// True after the last path or an error.
    is_at_end: bool,
}

impl PathArgs {
    /// Opens the list of paths, if there is one. The files and directories `except` are skipped if they are found in a
    /// directory.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the list cannot be read, and with 2 if there are no paths.
    pub fn open(self, except: &[PathBuf]) -> anyhow::Result<Paths> {
        if self.paths.is_empty() && self.files_from.is_none() {
            return fail(
                Exit::Usage,
                "no transcripts given; give files or directories, or --files-from FILE",
            );
        }
        let end = if self.null { b'\0' } else { b'\n' };
        Ok(Paths {
            operands: self.paths.into_iter(),
            list: self.files_from.map(|path| LineFile::open(&path, end)).transpose()?,
            end,
            globs: self.globs.glob,
            except: except.iter().filter_map(|path| path.canonicalize().ok()).collect(),
            shard: self.shard,
            ..Paths::default()
        })
    }
}

impl Paths {
    /// Creates the paths of a run that examines these files.
    pub fn of(files: Vec<PathBuf>) -> Paths {
        Paths { operands: files.into_iter(), ..Paths::default() }
    }

    /// Returns the next path. If the list is a pipe, waits for it. Returns `None` at the end or after an error.
    ///
    /// # Errors
    /// Fails if the list cannot be read.
    pub fn next(&mut self) -> anyhow::Result<Option<FoundPath>> {
        if self.is_at_end {
            return Ok(None);
        }
        self.is_at_end = true;
        while let Some(found) = self.next_found()? {
            let path = found.path.strip_prefix(".").unwrap_or(&found.path);
            let is_here = self.shard.is_none_or(|shard| shard.has(path));
            if is_here && self.known.insert(self.hasher.hash_one(path)) {
                self.is_at_end = false;
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn next_found(&mut self) -> anyhow::Result<Option<FoundPath>> {
        loop {
            while let Some(found) = self.walk.as_mut().and_then(|walk| walk.next(&self.globs)) {
                if !self.is_excepted(&found.path) {
                    self.is_walk_empty = false;
                    return Ok(Some(found));
                }
            }
            if let Some(Walk { directory, .. }) = self.walk.take().filter(|_| self.is_walk_empty) {
                return Ok(Some(without_transcripts(directory)));
            }
            let Some(path) = self.next_given()? else { return Ok(None) };
            if !path.is_dir() {
                return Ok(Some(FoundPath { path, error: None }));
            }
            self.walk = Some(Walk::new(path));
            self.is_walk_empty = true;
        }
    }

    fn is_excepted(&self, path: &Path) -> bool {
        let is_at = |place: &Path| {
            let found = path.ancestors().find(|above| above.file_name() == place.file_name());
            found.is_some_and(|above| above.canonicalize().is_ok_and(|above| above == place))
        };
        self.except.iter().any(|place| is_at(place))
    }

    /// Returns the next operand or, after the last one, the next path of the list. Empty lines are skipped.
    fn next_given(&mut self) -> anyhow::Result<Option<PathBuf>> {
        if let Some(path) = self.operands.next() {
            return Ok(Some(path));
        }
        let Some(list) = &mut self.list else { return Ok(None) };
        loop {
            let mut line = list.next(MAX_BYTES)?;
            if line.is_empty() {
                return Ok(None);
            }
            if line.len() as u64 == MAX_BYTES {
                let why = format!("a path has {MAX_BYTES} bytes or more; give one path per line");
                return list.refuse(&why);
            }
            line.pop_if(|last| *last == self.end);
            if !line.is_empty() {
                return Ok(Some(PathBuf::from(OsString::from_vec(line))));
            }
        }
    }
}

/// The files in a directory and its subdirectories. Symbolic links are not followed.
struct Walk {
    directory: PathBuf,
    entries: walkdir::IntoIter,
}

impl Walk {
    fn new(directory: PathBuf) -> Walk {
        let walk = WalkDir::new(&directory).sort_by(compare);
        Walk { directory, entries: walk.into_iter() }
    }

    fn next(&mut self, globs: &[Pattern]) -> Option<FoundPath> {
        let Walk { directory, entries } = self;
        entries.find_map(|entry| match entry {
            Ok(entry) if entry.file_type().is_file() => {
                let is_wanted = globs.iter().any(|glob| fits(glob, directory, entry.path()));
                is_wanted.then(|| FoundPath { path: entry.into_path(), error: None })
            }
            Ok(_) => None,
            Err(error) => {
                let path = error.path().unwrap_or(directory).to_owned();
                Some(FoundPath { path, error: Some(walk_error(error, directory)) })
            }
        })
    }
}

/// Returns a directory with the error that it has no transcripts.
fn without_transcripts(path: PathBuf) -> FoundPath {
    let text = format!("no transcripts in '{}'; check the path and --glob", path.display());
    FoundPath { path, error: Some(Error::new(Exit::Failed, text).into()) }
}

/// Returns the files below `directory` that a pattern matches, as paths relative to it.
///
/// # Errors
/// Fails with 74 or 77 if a directory cannot be read.
pub fn below(directory: &Path, globs: &[Pattern]) -> anyhow::Result<BTreeSet<OsString>> {
    let mut walk = Walk::new(directory.to_owned());
    let found = std::iter::from_fn(|| walk.next(globs));
    let relative = |found: FoundPath| match found.error {
        None => Ok(found.path.strip_prefix(directory).unwrap_or(&found.path).into()),
        Some(error) => Err(error),
    };
    found.map(relative).collect()
}

/// Compares two entries of a directory, so that all paths are in the order of their bytes. A directory compares as if its
/// name ended in a slash.
fn compare(one: &DirEntry, other: &DirEntry) -> Ordering {
    fn name(entry: &DirEntry) -> impl Iterator<Item = &u8> {
        let slash = entry.file_type().is_dir().then_some(&b'/');
        entry.file_name().as_bytes().iter().chain(slash)
    }
    name(one).cmp(name(other))
}

/// Returns true if a pattern matches the name of a file, or its path below `directory` if the pattern has a slash.
fn fits(glob: &Pattern, directory: &Path, path: &Path) -> bool {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
    let inside = match glob.as_str().contains('/') {
        true => path.strip_prefix(directory).unwrap_or(path).as_os_str(),
        false => path.file_name().unwrap_or_default(),
    };
    glob.matches_with(&inside.to_string_lossy(), options)
}
