//! The output file of `claw-show`.

use anyhow::Context;
use clawutils::cli::output_file;
use clawutils::cli::survive_file_limits;
use clawutils::exit::{Exit, fail};
use clawutils::new_file::PRIVATE;
use clawutils::show::Format;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Returns the format that the suffix of a file name selects.
///
/// # Errors
/// Fails with 2 if it selects none.
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
/// Fails with 2 if the file exists and must not be replaced, 65 if it is a transcript, and 74 or 77 if it cannot be
/// written.
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
    output_file::refuse_transcript(path)?;
    survive_file_limits()?;
    let cannot = || format!("cannot write '{}'", path.display());
    let mut file = output_file::create(path, PRIVATE).with_context(cannot)?;
    let written = write(&mut file)?;
    match file.finish(may_replace) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => exists(),
        finished => finished.map(|()| written).with_context(cannot),
    }
}
