//! The output file of `claw-show`, which appears only when it is complete.

use anyhow::Context;
use clawutils::cli::survive_file_limits;
use clawutils::exit::{Exit, fail};
use clawutils::show::Format;
use std::fs::{File, OpenOptions, hard_link, remove_file, rename};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Returns the format that the suffix of a file name selects.
///
/// # Errors
/// 2 if it selects none.
pub fn format(path: &Path) -> anyhow::Result<Format> {
    let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match end.as_str() {
        "md" | "markdown" => Ok(Format::Markdown),
        "html" | "htm" => Ok(Format::Html),
        "txt" => Ok(Format::Text),
        _ => {
            let name = path.display();
            let help = "end its name in .md, .html or .txt, or give --format";
            fail(Exit::Usage, format!("cannot choose a format for '{name}'; {help}"))
        }
    }
}

/// Creates a file that only its owner can read, with the output of `write`.
///
/// # Errors
/// 2 if the file exists and must not be replaced; 74 or 77 if it cannot be written.
pub fn create<T>(
    path: &Path,
    may_replace: bool,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let exists = || {
        let text = format!("cannot write '{}': file exists", path.display());
        fail(Exit::Usage, format!("{text}; give another name, or --replace"))
    };
    if !may_replace && path.symlink_metadata().is_ok() {
        return exists();
    }
    survive_file_limits()?;
    let cannot = || format!("cannot write '{}'", path.display());
    let (new, file) = beside(path).with_context(cannot)?;
    let _removed = Removed(&new);
    let mut out = Out { file: BufWriter::new(file), result: Ok(()) };
    let written = write(&mut out)?;
    out.finish().with_context(cannot)?;
    match put(&new, path, may_replace) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => exists(),
        put => put.map(|()| written).with_context(cannot),
    }
}

/// Creates a temporary file in the same directory.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}", std::process::id()));
    // A killed process with the same id may have left one.
    let _ = remove_file(&new);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    Ok((new, file))
}

/// Moves the temporary file to its final name. On a file system without links, this replaces a file that appeared in
/// the meantime.
fn put(new: &Path, path: &Path, may_replace: bool) -> io::Result<()> {
    match may_replace {
        true => rename(new, path),
        false => match hard_link(new, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => rename(new, path),
            linked => linked,
        },
    }
}

/// A file that keeps its first error until the end, where the file's name can be reported.
struct Out {
    file: BufWriter<File>,
    result: io::Result<()>,
}

impl Out {
    fn finish(mut self) -> io::Result<()> {
        self.result?;
        self.file.flush()?;
        self.file.get_ref().sync_data()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.result.is_ok() {
            self.result = self.file.write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes a file on drop, if it still has this name.
struct Removed<'p>(&'p Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = remove_file(self.0);
    }
}
