//! Finds the files that a rollout file continues, and joins them into one text.
//!
//! `history_base` in the first record names a rollout by the id of its thread or, after a rewind, of its segment. The
//! id is at the end of the file's name: `rollout-TIME-THREAD.jsonl` or `rollout-TIME-THREAD_SEGMENT.jsonl`. The file may
//! be in the directory of another day. Only the beginning of that file is continued: its first `end_byte_offset` bytes
//! or, if this member is missing or 0, the records before the first one whose `ordinal` is at least
//! `end_ordinal_exclusive`.

use crate::dialect::joined::Joined;
use crate::finding::rules;
use crate::input::Input;
use crate::input::lines::Lines;
use crate::input::origin::{Remark, SourcePlace};
use crate::new_file::directory_of;
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of files that are read for one conversation.
const MAX_FILES: usize = 1000;

/// The text of a conversation.
pub struct History {
    /// The text, with that of the files that the input continues.
    pub text: Joined,
    /// A remark, if the conversation begins in an earlier file that is not found or is too short.
    pub missing: Option<Remark>,
}

/// The part of another file that a file continues.
struct Base {
    /// The id of a thread or segment.
    id: String,
    /// The length of the part in bytes, if it is known.
    length: Option<u64>,
    /// The ordinal of the first record after the part.
    ordinal: Option<u64>,
    /// The place of the record that names it.
    place: SourcePlace,
}

impl History {
    /// Finds the files that `input` continues, and joins them with it.
    ///
    /// # Errors
    /// Fails if one of the files cannot be read.
    pub fn of(input: &Input) -> anyhow::Result<History> {
        let (mut parts, mut missing) = (vec![input.clone()], None);
        while let Some(base) = Base::of(&parts[parts.len() - 1])? {
            let found = find(Path::new(&*parts[parts.len() - 1].name), &base.id);
            let is_new = |path: &PathBuf| parts.iter().all(|part| Path::new(&*part.name) != path);
            let Some(path) = found.filter(is_new).filter(|_| parts.len() < MAX_FILES) else {
                missing = Some(base.remark("cannot be found"));
                break;
            };
            let file = Input::open(&path)?;
            match base.end_in(&file)? {
                Some(end) if end <= file.length => parts.push(file.prefix(end)),
                _ => {
                    missing = Some(base.remark("ends before the part that it continues"));
                    break;
                }
            }
        }
        parts.reverse();
        Ok(History { text: Joined::of(&input.name, parts)?, missing })
    }
}

impl Base {
    /// Reads the base that the first record of a file names.
    fn of(input: &Input) -> anyhow::Result<Option<Base>> {
        let mut lines = Lines::of(input);
        let Some(mut batch) = lines.batch()? else { return Ok(None) };
        let Some(Ok(line)) = batch.next() else { return Ok(None) };
        let base = || {
            let base = line.object.object("payload")?.object("history_base")?;
            let id = base.string("thread_id").map_or_else(String::new, Cow::into_owned);
            let (length, ordinal) =
                (base.number("end_byte_offset"), base.number("end_ordinal_exclusive"));
            let (length, place) =
                (length.filter(|length| *length > 0), SourcePlace::of(&line.place));
            Some(Base { id, length, ordinal, place })
        };
        Ok(base())
    }

    /// Returns the end of the part in its file, or `None` if neither its length nor the ordinal after it is known.
    fn end_in(&self, file: &Input) -> anyhow::Result<Option<u64>> {
        if self.length.is_some() {
            return Ok(self.length);
        }
        let Some(end) = self.ordinal else { return Ok(None) };
        let mut lines = Lines::of(file);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                if line.object.number("ordinal").is_some_and(|ordinal| ordinal >= end) {
                    return Ok(Some(line.place.offset));
                }
            }
        }
        Ok(Some(file.length))
    }

    fn remark(&self, why: &str) -> Remark {
        let id = &self.id;
        let message =
            format!("it continues the file of thread '{id}', which {why}; reading begins here");
        Remark { rule: &rules::MISSING_BASE, place: self.place, id: None, message }
    }
}

/// Finds the rollout file of a thread or segment in the directory of `file`, or in the directories of other days.
fn find(file: &Path, id: &str) -> Option<PathBuf> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if id.is_empty() || !id.bytes().all(is_id) {
        return None;
    }
    let directory = directory_of(file);
    search(directory, 0, id).or_else(|| {
        // sessions/YEAR/MONTH/DAY
        let is_number = |path: &&Path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let levels = directory.ancestors().take(3).take_while(is_number).count();
        (levels == 3).then(|| search(directory.ancestors().nth(3)?, 3, id)).flatten()
    })
}

/// Finds a file in directories that are `levels` levels below `directory`.
fn search(directory: &Path, levels: usize, id: &str) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let rest = name.strip_suffix(".jsonl").and_then(|stem| stem.strip_suffix(id));
        rest.is_some_and(|rest| rest.starts_with("rollout-") && rest.ends_with(['-', '_']))
    };
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    match levels {
        0 => paths.into_iter().find(is_it),
        _ => paths.iter().rev().find_map(|path| search(path, levels - 1, id)),
    }
}
