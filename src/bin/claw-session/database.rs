//! Reads the sessions in the database of GoClaw, opencode or llm. It runs claw-index for this, so that claw-session needs no SQLite.

use clawutils::cli::open_file;
use clawutils::exit::Exit;
use clawutils::input::Input;
use clawutils::json::Object;
use clawutils::process::{self, ChildLimits};
use std::path::Path;

/// The beginning of a SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A session in a database.
pub struct DatabaseSession {
    /// The other program.
    pub program: String,
    /// Its name of the session.
    pub key: String,
    /// Its records.
    pub input: Input,
}

/// The program and the name of a session, and its records.
type DatabaseText = (String, String, String);

/// Returns true if a file is a SQLite database.
///
/// # Errors
/// Fails if it cannot be read.
pub fn is_database(file: &Path) -> anyhow::Result<bool> {
    let mut begin = [0; MAGIC.len()];
    let count = open_file(file)?.read_at(0, &mut begin)?;
    Ok(&begin[..count] == MAGIC)
}

/// Returns the sessions in a database.
///
/// # Errors
/// Fails with 65 if it is not a database of GoClaw, opencode or llm, and with 78 if claw-index is not installed.
pub fn sessions(file: &Path) -> anyhow::Result<Vec<DatabaseSession>> {
    let name = file.display().to_string();
    let arguments = ["records".to_owned(), "--".to_owned(), name.clone()];
    let ended = process::run("claw-index", &arguments, Vec::new(), ChildLimits::default())?;
    if ended.exit() != Some(Exit::Done) {
        return Err(ended.failure("claw-index", &format!("cannot import '{name}'")));
    }
    let text = String::from_utf8_lossy(&ended.stdout);
    let mut sessions: Vec<DatabaseText> = Vec::new();
    for line in text.split_inclusive('\n') {
        let object = Object::parse(line.trim_end()).ok();
        if let Some(header) = object.filter(|it| it.get("type") == Some("\"session\"")) {
            let key = header.string("id").unwrap_or_default().into_owned();
            let source = header.get("source").and_then(|source| Object::parse(source).ok());
            let program = source.and_then(|source| Some(source.string("dialect")?.into_owned()));
            sessions.push((program.unwrap_or_default(), key, String::new()));
        }
        if let Some((.., records)) = sessions.last_mut() {
            records.push_str(line);
        }
    }
    let input = |(program, key, records): DatabaseText| {
        let input = Input::memory(&format!("{name} {key}"), records.into_bytes());
        DatabaseSession { program, key, input }
    };
    Ok(sessions.into_iter().map(input).collect())
}
