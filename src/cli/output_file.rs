//! Output files that the user names: a new file, or an open file, a device or a pipe, which is written directly.

use crate::cli::closed;
use crate::dialect::looks::{self, Looks};
use crate::exit::{Exit, fail};
use crate::input::Input;
use crate::new_file::NewFile;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Opens an output. The program must call [`crate::cli::survive_file_limits`] first.
///
/// # Errors
/// Fails if it cannot be created or opened.
pub fn create(path: &Path, mode: u32) -> io::Result<NewFile> {
    match is_direct(path) {
        true => open_direct(path).map(NewFile::direct),
        false => NewFile::create(path, mode),
    }
}

/// Refuses an output that would replace a transcript. In `--junit *.jsonl`, the name of the output was forgotten, and the
/// first transcript would be lost.
///
/// # Errors
/// Fails with 65 if there is a transcript at `path`.
pub fn refuse_transcript(path: &Path) -> anyhow::Result<()> {
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    let looks = is_file.then(|| Input::open(path).and_then(|input| looks::of(&input)));
    if let Some(Ok(Looks::Records | Looks::Dialect(_))) = looks {
        let text = format!("cannot write '{}': it is a transcript", path.display());
        return fail(Exit::Data, text + "; give the output another name");
    }
    Ok(())
}

/// Opens a file that is written directly. Nothing in it is overwritten, because it may be a log: standard output and
/// standard error continue at their current position, and any other file is appended to.
fn open_direct(path: &Path) -> io::Result<File> {
    let is_name_of = |number: &str, name: &str| {
        [name, &["/dev/fd/", number].concat(), &["/proc/self/fd/", number].concat()]
            .iter()
            .any(|name| path == Path::new(name))
    };
    if is_name_of("1", "/dev/stdout") {
        closed::check()?;
        return Ok(io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    if is_name_of("2", "/dev/stderr") {
        return Ok(io::stderr().as_fd().try_clone_to_owned()?.into());
    }
    OpenOptions::new().append(true).open(path)
}

/// Returns true if a path is a device, a pipe, or the name of an open file, such as `/dev/stdout`.
fn is_direct(path: &Path) -> bool {
    let of_process = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    let is_other = |meta: std::fs::Metadata| !meta.is_file() && !meta.is_dir();
    of_process.iter().any(|name| path.starts_with(name)) || path.metadata().is_ok_and(is_other)
}
