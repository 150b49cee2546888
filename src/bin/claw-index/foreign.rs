//! records: write the sessions in the database of another program as records.
//!
//! The database is only read. GoClaw and opencode keep their newest rows in the file of the write-ahead log. If that file is
//! missing or empty, the database is opened as immutable: otherwise SQLite would create files beside it.

use crate::conversations::Conversations;
use crate::database::require_file;
use crate::{goclaw, llm, openclaw, opencode};
use clap::Args;
use clawutils::cli::{Log, Output};
use clawutils::exit::{Error, Exit, fail};
use clawutils::provider::address::segment;
use clawutils::session::probe::Stamp;
use rusqlite::{Connection, OpenFlags};
use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest wait for another program to release the lock.
const PATIENCE: Duration = Duration::from_secs(30);

/// Write the sessions in the database of another program as records, for claw-session import
#[derive(Debug, Args)]
pub struct Records {
    /// Database of GoClaw, OpenClaw, opencode or llm, opened for reading only
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

impl Records {
    /// Writes the records of all sessions to standard output. Each session begins with a `session` record. Returns 65 if
    /// sessions had to be left out, and 1 if it is the database of another program.
    ///
    /// # Errors
    /// Fails with 65 if SQLite reports an error, with 74 or 77 if it cannot be read, and with 75 if it changed while it was
    /// read.
    pub fn run(&self, log: Log) -> anyhow::Result<Exit> {
        let name = self.file.display();
        let cannot = || format!("cannot read '{name}'");
        if self.file.exists() {
            require_file(&self.file)?;
        }
        let before = Stamp::of_file(&self.file)?;
        let mut out = Output::open();
        let mut sessions = Conversations::new(name.to_string(), log, &mut out);
        self.write(&mut sessions).map_err(|error| match error.downcast::<rusqlite::Error>() {
            Ok(error) => {
                let advice = "if it is damaged, recover it with the command .recover of sqlite3";
                Error::new(Exit::Data, format!("{}: {error}; {advice}", cannot())).into()
            }
            Err(error) => error,
        })?;
        let skipped = sessions.skipped;
        out.finish()?;
        if before != Stamp::of_file(&self.file)? {
            return fail(Exit::TryLater, format!("{}: it has changed; try again", cannot()));
        }
        Ok(if skipped > 0 { Exit::Data } else { Exit::Done })
    }

    fn write(&self, out: &mut Conversations<'_>) -> anyhow::Result<()> {
        let database = open(&self.file)?;
        let own: i32 = database.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables = tables(&database)?;
        let has = |names: &[&str]| own == 0 && names.iter().all(|name| tables.contains(*name));
        // All queries read the same state, even while the other program writes.
        let database = database.unchecked_transaction()?;
        match () {
            () if has(&goclaw::TABLES) => goclaw::write(&database, out),
            () if has(&opencode::TABLES) => opencode::write(&database, out),
            () if has(&llm::TABLES) => llm::write(&database, &tables, out),
            () if has(&openclaw::TABLES) => openclaw::write(&database, &tables, out),
            () => {
                let name = self.file.display();
                let text = format!(
                    "cannot read '{name}': not a database of GoClaw, OpenClaw, opencode or llm"
                );
                fail(Exit::Failed, text)
            }
        }
    }
}

fn tables(database: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut select = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    select.query_map([], |row| row.get(0))?.collect()
}

/// Opens a database without changing it.
fn open(path: &Path) -> anyhow::Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = fs::metadata(log).is_ok_and(|meta| meta.len() > 0);
    let mode = if has_log { "?mode=ro" } else { "?immutable=1" };
    let path = segment(std::path::absolute(path)?.as_os_str().as_bytes());
    let uri = format!("file:{path}{mode}");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let database = Connection::open_with_flags(uri, flags)?;
    database.busy_timeout(PATIENCE)?;
    Ok(database)
}
