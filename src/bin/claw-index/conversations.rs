//! Writes the conversations of a database one by one, so that a value that cannot be read costs only its own conversation.

use crate::values;
use clawutils::cli::Log;
use clawutils::input::spool::Spool;
use rusqlite::{Connection, Row};
use std::env::temp_dir;
use std::io::{self, Write};

/// The conversations that are being written.
pub struct Conversations<'o> {
    out: &'o mut dyn Write,
    /// The path of the database, for diagnostics.
    pub database: String,
    /// The log for diagnostics.
    pub log: Log,
    /// The number of conversations that were left out.
    pub skipped: usize,
}

impl<'o> Conversations<'o> {
    /// Writes conversations of the database at the path `database` to `out`.
    pub fn new(database: String, log: Log, out: &'o mut dyn Write) -> Conversations<'o> {
        Conversations { out, database, log, skipped: 0 }
    }

    /// Adds a conversation for each row of a query, with the id in the first column and the records that `write` writes.
    ///
    /// # Errors
    /// As [`Conversations::add`].
    pub fn each(
        &mut self,
        database: &Connection,
        sql: &str,
        mut write: impl FnMut(&str, &Row<'_>, &mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut select = database.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            match values::text(row, 0) {
                Ok(id) => self.add(&id, |out| write(&id, row, out))?,
                Err(error) => self.skip(None, error.into())?,
            }
        }
        Ok(())
    }

    /// Adds the conversation `id`, with the records that `write` writes. Leaves it out, with a diagnostic, if a value of it
    /// cannot be read.
    ///
    /// # Errors
    /// Fails if the records cannot be written, or the database cannot be read.
    pub fn add(
        &mut self,
        id: &str,
        write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut records = Records(Spool::new(temp_dir()));
        if let Err(error) = write(&mut records) {
            return self.skip(Some(id), error);
        }
        let records = records.0.finish(&self.database)?;
        records.parts().try_for_each(|part| Ok(self.out.write_all(&part?)?))
    }

    /// Leaves out a conversation, whose id may be what is wrong with it, if the error is about a value. Returns any other
    /// error.
    fn skip(&mut self, id: Option<&str>, error: anyhow::Error) -> anyhow::Result<()> {
        let Some(problem) = values::problem(&error) else { return Err(error) };
        let which = id.map_or("a conversation".to_owned(), |id| format!("conversation '{id}'"));
        self.log.note(&format!(
            "left out {which} of '{}': {problem}; correct the value with sqlite3, and import the database again",
            self.database
        ));
        self.skipped += 1;
        Ok(())
    }
}

/// The records of a conversation.
struct Records(Spool);

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.end().push_str(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        self.0.settle();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
