//! Reads the sessions in the database of GoClaw, OpenClaw, opencode or llm. It runs claw-index for this, so that claw-session needs no
//! SQLite. The records of all sessions go to a temporary file, so that a large database needs no memory.

use anyhow::Context;
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::input::rope::Rope;
use clawutils::input::spool;
use clawutils::process;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The beginning of a SQLite database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// A session in a database.
pub struct DatabaseSession {
    /// The other program.
    pub program: String,
    /// Its name of the session.
    pub key: String,
    /// Its records.
    pub input: Input,
}

/// Returns true if a file is a SQLite database.
///
/// # Errors
/// Fails if it cannot be read.
pub fn is_database(file: &Path) -> anyhow::Result<bool> {
    let mut begin = [0; MAGIC.len()];
    let count = Input::open(file)?.read_at(0, &mut begin)?;
    Ok(&begin[..count] == MAGIC)
}

/// Returns true if there are changes to a database in the file of its write-ahead log.
#[must_use]
pub fn has_log(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|meta| meta.len() > 0)
}

/// The sessions in a database.
#[derive(Default)]
pub struct DatabaseSessions {
    /// Those that can be read.
    pub sessions: Vec<DatabaseSession>,
    /// The status of claw-index if it could not read all. Its diagnostics say why.
    pub failure: Option<Exit>,
}

/// Returns the sessions in a database. With `is_optional`, there are none in the database of another program, and a database
/// that cannot be read is no error.
///
/// # Errors
/// Fails with 65 if it is not a database of a program that is known, and with 78 if claw-index is not installed.
pub fn sessions(file: &Path, is_optional: bool) -> anyhow::Result<DatabaseSessions> {
    let name = file.display().to_string();
    let records =
        spool::unnamed(&std::env::temp_dir()).context("cannot create a temporary file")?;
    let output = records.try_clone().context("cannot open the temporary file")?;
    // The shell reports a program that is not installed.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec claw-index records -- \"$1\"", "sh"]).arg(file);
    let ended = process::run_to(&mut shell, "claw-index", output)?;
    // The database of another program.
    let is_other = ended.exit() == Some(Exit::Failed);
    if is_optional && is_other {
        return Ok(DatabaseSessions::default());
    }
    let what = format!("cannot import '{name}'");
    if is_other {
        let why = "not a database of GoClaw, OpenClaw, opencode or llm";
        return fail(Exit::Data, format!("{what}: {why}"));
    }
    std::io::stderr().write_all(&ended.stderr)?;
    let failure = ended.exit().filter(|exit| *exit != Exit::Done);
    let input = Input::file(&name, records).context("cannot read the temporary file")?;
    let headers = headers(&input)?;
    let is_useless = headers.is_empty() && !is_optional || failure.is_none_or(is_of_system);
    if ended.exit() != Some(Exit::Done) && is_useless {
        return Err(ended.failure("claw-index", &what));
    }
    let ends = headers.iter().skip(1).map(|(.., begin)| *begin).chain([input.length]);
    let ends: Vec<u64> = ends.collect();
    let session = |((program, key, begin), end): (Header, u64)| {
        let mut records = Rope::new(vec![input.clone()]);
        records.push(0, begin, end - begin);
        let input = Input::rope(&format!("{name} {key}"), records);
        DatabaseSession { program, key, input }
    };
    let sessions = headers.into_iter().zip(ends).map(session).collect();
    Ok(DatabaseSessions { sessions, failure })
}

/// Returns true for a failure that has nothing to do with the database.
fn is_of_system(exit: Exit) -> bool {
    matches!(exit, Exit::Usage | Exit::Config | Exit::Unavailable)
}

/// The program and the name of a session, and the offset of its header.
type Header = (String, String, u64);

fn headers(input: &Input) -> anyhow::Result<Vec<Header>> {
    let mut headers = Vec::new();
    let mut lines = Lines::of(input);
    while let Some(batch) = lines.batch()? {
        for line in batch.flatten() {
            let object = &line.object;
            if object.get("type") == Some("\"session\"") {
                let key = object.string("id").unwrap_or_default().into_owned();
                let program = object.object("source").and_then(|it| it.string("dialect"));
                let program = program.unwrap_or_default().into_owned();
                headers.push((program, key, line.place.offset));
            }
        }
    }
    Ok(headers)
}
