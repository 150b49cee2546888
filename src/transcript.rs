//! The transcript file. Programs only ever append records to it.
//!
//! [`append`] guarantees:
//!
//! - A batch is appended completely or not at all. Existing bytes never change, even after a failure.
//! - A new file appears when its first batch is complete, if the file system supports files without names.
//! - Writers wait for the kernel's lock on the file. The kernel releases it when the process ends, so no stale lock
//!   file can remain. The file that a writer then appends to is the one that the path names.
//! - A torn last line is ended with a line feed first, so only that line is lost.
//! - New files have mode 0600 and new directories 0700, whatever the umask is.
//! - A file that is a symbolic link is refused. Symbolic links earlier in the path are followed.
//! - The cost depends on the length of the last line, not on the size of the file.
//!
//! `O_APPEND` and these locks are not reliable on NFS. There, let only one program write.

mod lock;
mod tail;

use crate::dialect;
use crate::dialect::looks::{self, Looks};
use crate::exit::{Error, Exit};
use crate::input::Input;
use crate::input::line::{self, without_mark};
use crate::json::Object;
use crate::new_file::directory_of;
use crate::record;
use crate::redact::Patterns;
use crate::system::{link_unnamed, unnamed_file};
use anyhow::Context;
pub(crate) use lock::locked;
use rustix::fs::OFlags;
use std::borrow::Cow;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tail::Tail;

/// The mode of a new file: only its owner can read it.
const MODE: u32 = 0o600;

/// Options for appending.
#[derive(Clone, Debug)]
pub struct AppendOptions {
    /// Append only if the file's last record has this id.
    pub expect_tail: Option<String>,
    /// The longest time to wait for another writer.
    pub lock_timeout: Duration,
    /// True while the program waits for another writer, for progress messages.
    pub is_waiting: Arc<AtomicBool>,
    /// Wait until the bytes are on the disk.
    pub sync: bool,
    /// The `ts` of records that have none: Unix seconds, as JSON.
    pub ts: String,
}

/// A batch of valid records to append.
#[derive(Debug)]
pub struct Batch<'a> {
    records: Vec<Cow<'a, str>>,
}

impl<'a> Batch<'a> {
    /// Reads records, one per line. Blank lines are ignored.
    ///
    /// # Errors
    /// Status 65 at the first line that is not a record, with `input`, the line number and the reason.
    pub fn read(input: &str, bytes: &'a [u8]) -> anyhow::Result<Batch<'a>> {
        Batch::read_from(input, 1, bytes)
    }

    /// Reads records from a part of an input. `first` is the line number at which the part begins.
    ///
    /// # Errors
    /// As [`Batch::read`].
    pub fn read_from(input: &str, first: usize, bytes: &'a [u8]) -> anyhow::Result<Batch<'a>> {
        let mut records = Vec::new();
        let lines = if first == 1 { without_mark(bytes) } else { bytes };
        for (index, line) in lines.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let record = check(line).map_err(|why| {
                let advice = looks::advice(looks::advice_for_records, bytes);
                let text = format!("cannot append '{input}' line {}: {why}{advice}", first + index);
                Error::new(Exit::Data, text)
            })?;
            records.push(Cow::Borrowed(record));
        }
        Ok(Batch { records })
    }

    /// Redacts the matches of `patterns` in every record.
    pub fn redact(&mut self, patterns: &Patterns) {
        for record in &mut self.records {
            if let Cow::Owned(redacted) = patterns.redact(record) {
                *record = Cow::Owned(redacted);
            }
        }
    }

    /// Returns true if there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

fn check(line: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
    let object = Object::parse(text).map_err(|error| format!("not a JSON object: {error}"))?;
    if object.is_deeper(line::MAX_DEPTH) {
        let most = line::MAX_DEPTH;
        return Err(format!(
            "nested more than {most} levels deep; store the inner part as a string"
        ));
    }
    if let Some(dialect) = dialect::foreign_tree(&object) {
        return Err(format!("a record of {dialect}, which claw-append cannot extend"));
    }
    record::parse(&object)?;
    Ok(text)
}

/// Appends a batch to the transcript at `path`, and returns the lines as written, without line feeds. Creates the file
/// and its directories if they do not exist. An empty batch changes nothing, but `expect_tail` is checked.
///
/// # Errors
/// Status 65 if the file is not a transcript, or is one of another program; 75 if another writer held the lock until
/// the timeout, or the last record is not the expected one; 74 or 77 if the file cannot be read or written. The file is
/// then unchanged, unless the message says that a torn line may remain or that only the directory of a new file cannot
/// be synced.
pub fn append(
    path: &Path,
    batch: &Batch<'_>,
    options: &AppendOptions,
) -> anyhow::Result<Vec<String>> {
    if batch.is_empty() && (options.expect_tail.is_none() || is_absent(path)) {
        // Do not create a file for an empty batch.
        return check_tail(path, "", options).map(|()| Vec::new());
    }
    if is_absent(path)
        && let Some(lines) = append_new(path, batch, options)?
    {
        return Ok(lines);
    }
    let mut is_new = false;
    options.is_waiting.store(true, Ordering::Relaxed);
    let mut file = locked(path, options.lock_timeout, || open(path, options, &mut is_new))?;
    options.is_waiting.store(false, Ordering::Relaxed);
    let added = add(&mut file, path, batch, options).and_then(|lines| {
        if !batch.is_empty() && !lock::is_named(&file, path) {
            let name = path.display();
            let text = "it was removed or replaced during the write; append the records again";
            let text = format!("cannot append to '{name}': {text}");
            return Err(Error::new(Exit::Io, text).into());
        }
        Ok(lines)
    });
    match &added {
        Ok(_) if options.sync && is_new => sync_directory(path)?,
        Err(_) if is_new => remove_empty(&file, path),
        _ => {}
    }
    added
}

fn is_absent(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Writes the batch to a new file, which appears when it is complete: if the process is killed, there is no file. Returns
/// `None` if there is a file now, or one cannot be made in this way.
fn append_new(
    path: &Path,
    batch: &Batch<'_>,
    options: &AppendOptions,
) -> anyhow::Result<Option<Vec<String>>> {
    check_tail(path, "", options)?;
    let directory = directory_of(path);
    make_directory(directory).with_context(|| format!("cannot open '{}'", path.display()))?;
    let Ok(mut file) = unnamed_file(directory, MODE) else { return Ok(None) };
    // The umask may have removed even the owner's bits.
    if file.set_permissions(Permissions::from_mode(MODE)).is_err() {
        return Ok(None);
    }
    let lines = add(&mut file, path, batch, options)?;
    if link_unnamed(&file, path).is_err() {
        return Ok(None);
    }
    if options.sync {
        sync_directory(path)?;
    }
    Ok(Some(lines))
}

/// Opens the file, or creates it and sets `is_new`.
fn open(path: &Path, options: &AppendOptions, is_new: &mut bool) -> anyhow::Result<File> {
    let name = path.display();
    let cannot_open = || format!("cannot open '{name}'");
    let opened = match open_existing(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            check_tail(path, "", options)?;
            create(path)
        }
        opened => opened.map(|file| (file, false)),
    };
    let (file, created) = opened.with_context(cannot_open)?;
    *is_new = created;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        let text = format!("cannot append to '{name}': not a regular file");
        return Err(Error::new(Exit::Io, text).into());
    }
    Ok(file)
}

/// Appends the batch to the file, which is locked.
fn add(
    file: &mut File,
    path: &Path,
    batch: &Batch<'_>,
    options: &AppendOptions,
) -> anyhow::Result<Vec<String>> {
    let name = path.display();
    let cannot_read = || format!("cannot read '{name}'");
    let size = file.metadata().with_context(cannot_read)?.len();
    require_transcript(file, path)?;
    let tail = Tail::read(file, size).with_context(cannot_read)?;
    check_tail(path, &tail.id(), options)?;
    if batch.is_empty() {
        return Ok(Vec::new());
    }
    let lines = seal(batch, &tail.line, &options.ts)?;
    let mut bytes = Vec::new();
    if !tail.is_ended {
        bytes.push(b'\n');
    }
    for line in &lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    if let Err(error) = write(file, &bytes, options.sync) {
        let undone = file.set_len(tail.size);
        let state = if undone.is_ok() { "the file is unchanged" } else { "a torn line may remain" };
        return Err(error).context(format!("cannot write '{name}' ({state})"));
    }
    Ok(lines)
}

/// Removes a file that this process created and locked, if it is empty.
fn remove_empty(file: &File, path: &Path) {
    let is_empty = file.metadata().is_ok_and(|meta| meta.len() == 0);
    if is_empty && lock::is_named(file, path) {
        let _ = std::fs::remove_file(path);
    }
}

/// Checks that the id of the last record, `found`, is the one that the caller expects.
fn check_tail(path: &Path, found: &str, options: &AppendOptions) -> anyhow::Result<()> {
    let Some(expected) = options.expect_tail.as_deref().filter(|expected| *expected != found)
    else {
        return Ok(());
    };
    let name = path.display();
    let text = format!("cannot append to '{name}': its last record is '{found}', not '{expected}'");
    Err(Error::new(Exit::TryLater, text).into())
}

fn open_options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(MODE).custom_flags(flags.bits().cast_signed());
    options
}

fn open_existing(path: &Path) -> std::io::Result<File> {
    open_options().open(path)
}

/// Creates the file and its directories, or opens the file if another program has created it meanwhile. The flag is
/// true if this process created the file.
fn create(path: &Path) -> std::io::Result<(File, bool)> {
    if let Some(directory) = path.parent() {
        make_directory(directory)?;
    }
    match open_options().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok((open_existing(path)?, false)),
        Ok(file) => {
            // The umask may have removed even the owner's bits.
            file.set_permissions(Permissions::from_mode(MODE))?;
            Ok((file, true))
        }
        Err(error) => Err(error),
    }
}

/// Creates a directory and its missing parents, which only their owner can use.
///
/// # Errors
/// When it cannot be created.
pub fn make_directory(directory: &Path) -> std::io::Result<()> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make_directory(above)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Ok(()) => std::fs::set_permissions(directory, Permissions::from_mode(0o700)),
        failed => failed,
    }
}

/// Appends a line to a file in the state directory. Directories, modes, locks and torn lines are handled as in
/// [`append`].
///
/// # Errors
/// When the file cannot be written.
pub fn append_state(path: &Path, line: &str) -> anyhow::Result<()> {
    let mut file = locked(path, Duration::from_secs(5), || match open_existing(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(create(path)?.0),
        opened => Ok(opened?),
    })?;
    let tail = Tail::read(&file, file.metadata()?.len())?;
    let end = if tail.is_ended { "" } else { "\n" };
    write(&mut file, format!("{end}{line}").as_bytes(), false)?;
    Ok(())
}

/// Refuses a file that is not a transcript, and a transcript of another program. Some of these programs link their
/// records into a tree, and would no longer find the newest entry after an append.
fn require_transcript(file: &File, path: &Path) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let input = file.try_clone().and_then(|file| Input::file(&name, file));
    let input = input.with_context(|| format!("cannot read '{name}'"))?;
    let looks = looks::of(&input)?;
    let Some(words) = looks.problem() else { return Ok(()) };
    let help = match looks {
        Looks::Dialect(_) => "convert it with claw-session import",
        _ => "append to a new file",
    };
    let text = format!("cannot append to '{name}': {words}; {help}");
    Err(Error::new(Exit::Data, text).into())
}

/// Returns the lines of a batch with their ids. `previous` is the line before the batch.
fn seal(batch: &Batch<'_>, previous: &[u8], ts: &str) -> anyhow::Result<Vec<String>> {
    let mut lines: Vec<String> = Vec::with_capacity(batch.records.len());
    for record in &batch.records {
        let previous = lines.last().map_or(previous, |line| line.as_bytes());
        let line = record::seal(record, previous, ts).map_err(|why| Error::new(Exit::Data, why))?;
        lines.push(line);
    }
    Ok(lines)
}

/// The maximum number of bytes passed to one write call. The kernel accepts no more than about 2 GiB.
const MAX_WRITE: usize = 1 << 30;

/// Writes all of `bytes` in one system call, or in several if there are more than [`MAX_WRITE`]. A short write is an
/// error, so that [`append`] removes the partial batch at once and other programs hardly ever see it.
fn write(file: &mut File, bytes: &[u8], sync: bool) -> std::io::Result<()> {
    for part in bytes.chunks(MAX_WRITE) {
        let written = loop {
            match file.write(part) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written < part.len() {
            let text = format!("only {written} of {} bytes were written", part.len());
            return Err(std::io::Error::new(std::io::ErrorKind::StorageFull, text));
        }
    }
    if sync { file.sync_data() } else { Ok(()) }
}

/// Syncs the directory of a new file, so that the file's name also reaches the disk.
fn sync_directory(path: &Path) -> anyhow::Result<()> {
    let synced = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
    synced.with_context(|| format!("cannot sync the directory of '{}'", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns options with a long wait for the lock, because a process that another test is just starting may keep that of
    /// an earlier append for a moment.
    fn options() -> AppendOptions {
        AppendOptions {
            expect_tail: None,
            lock_timeout: Duration::from_secs(60),
            is_waiting: Arc::default(),
            sync: false,
            ts: "1".to_owned(),
        }
    }

    fn add_text(path: &Path, text: &str) -> anyhow::Result<Vec<String>> {
        append(path, &Batch::read("t", text.as_bytes())?, &options())
    }

    const RECORD: &str = r#"{"type":"user","content":"hi"}"#;

    #[test]
    fn ids_do_not_depend_on_how_records_are_batched() {
        let directory = tempfile::tempdir().unwrap();
        let (one, many) = (directory.path().join("one"), directory.path().join("many"));
        add_text(&one, &[RECORD, RECORD, RECORD].join("\n")).unwrap();
        for _ in 0..3 {
            add_text(&many, RECORD).unwrap();
        }
        assert_eq!(std::fs::read(one).unwrap(), std::fs::read(many).unwrap());
    }

    #[test]
    fn a_new_file_appears_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        if unnamed_file(directory.path(), MODE).is_err() {
            return;
        }
        let text = [RECORD, "\n"].concat().repeat(1000);
        for number in 0..20 {
            let path = directory.path().join(number.to_string());
            std::thread::scope(|scope| {
                let lines = scope.spawn(|| add_text(&path, &text).unwrap());
                let first = loop {
                    if let Ok(read) = std::fs::read_to_string(&path) {
                        break read;
                    }
                };
                assert_eq!(first.lines().count(), 1000);
                assert!(first.lines().eq(lines.join().unwrap()));
            });
        }
    }

    #[test]
    fn waiting_for_a_lock_ends_at_the_timeout() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let holder = File::create(&path).unwrap();
        holder.lock().unwrap();
        let batch = Batch::read("t", RECORD.as_bytes()).unwrap();
        let options = AppendOptions { lock_timeout: Duration::from_millis(20), ..options() };
        let error = append(&path, &batch, &options).unwrap_err();
        assert_eq!(crate::exit::status(&error), Exit::TryLater);
        drop(holder);
        add_text(&path, RECORD).unwrap();
    }

    #[test]
    fn audit_07_after_the_wait_for_the_lock_records_go_to_the_file_that_the_path_names() {
        type Change = fn(&Path);
        let changes: [(&str, Change, usize); 4] = [
            ("nothing", |_| {}, 2),
            ("removed", |path| std::fs::remove_file(path).unwrap(), 1),
            ("moved", |path| std::fs::rename(path, path.with_extension("old")).unwrap(), 1),
            (
                "replaced",
                |path| {
                    let new = path.with_extension("new");
                    std::fs::write(&new, format!("{RECORD}\n{RECORD}\n")).unwrap();
                    std::fs::rename(new, path).unwrap();
                },
                3,
            ),
        ];
        for (what, change, count) in changes {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("f");
            add_text(&path, RECORD).unwrap();
            let holder = File::open(&path).unwrap();
            holder.lock().unwrap();
            let batch = Batch::read("t", RECORD.as_bytes()).unwrap();
            let options = options();
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| append(&path, &batch, &options));
                while !options.is_waiting.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(30));
                change(&path);
                drop(holder);
                let line = waiter.join().unwrap().unwrap().remove(0);
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(
                    (text.lines().count(), text.lines().last()),
                    (count, Some(&*line)),
                    "{what}"
                );
            });
        }
    }

    #[test]
    fn audit_07_only_an_empty_file_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let (file, _) = create(&path).unwrap();
        add_text(&path, RECORD).unwrap();
        remove_empty(&file, &path);
        assert!(path.exists(), "another program has written to it");
        file.set_len(0).unwrap();
        std::fs::rename(&path, path.with_extension("old")).unwrap();
        std::fs::write(&path, "").unwrap();
        remove_empty(&file, &path);
        assert!(path.exists(), "another program has created it");
        remove_empty(&File::open(&path).unwrap(), &path);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_cannot_be_opened_does_not_count_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        let batch = Batch::read("t", RECORD.as_bytes()).unwrap();
        let expecting = AppendOptions { expect_tail: Some("x".to_owned()), ..options() };
        let error = append(&path, &batch, &expecting).unwrap_err();
        assert_eq!(crate::exit::status(&error), Exit::Io);
    }

    #[test]
    fn a_directory_that_comes_to_exist_meanwhile_is_used() {
        let directory = tempfile::tempdir().unwrap();
        // Making `new` brings `new/..` into existence.
        make_directory(&directory.path().join("new/..")).unwrap();
        assert!(directory.path().join("new").is_dir());
        std::fs::write(directory.path().join("f"), "").unwrap();
        make_directory(&directory.path().join("f")).unwrap_err();
    }

    #[test]
    fn expect_tail_accepts_only_the_first_of_two_batches() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let id = |lines: Vec<String>| lines[0][7..23].to_owned();
        let first = id(add_text(&path, RECORD).unwrap());
        let batch = Batch::read("t", RECORD.as_bytes()).unwrap();
        let expecting = AppendOptions { expect_tail: Some(first), ..options() };
        append(&path, &batch, &expecting).unwrap();
        let error = append(&path, &batch, &expecting).unwrap_err();
        assert_eq!(crate::exit::status(&error), Exit::TryLater);
    }
}
