//! Writes the conversations of a database one by one, so that a value that cannot be read costs only its own conversation.

use crate::values;
use clawutils::cli::Log;
use clawutils::input::Input;
use clawutils::input::spool::Spool;
use std::env::temp_dir;
use std::io::{self, Write};

/// The number of bytes that are copied at once.
const PART: u64 = 1024 * 1024;

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
        match write(&mut records) {
            Ok(()) => self.copy(&records.0.finish(&self.database)?),
            Err(error) => self.skip(Some(id), error),
        }
    }

    /// Leaves out a conversation, whose id may be what is wrong with it, if the error is about a value.
    ///
    /// # Errors
    /// Returns any other error.
    pub fn skip(&mut self, id: Option<&str>, error: anyhow::Error) -> anyhow::Result<()> {
        let Some(fault) = values::fault(&error) else { return Err(error) };
        let which = id.map_or("a conversation".to_owned(), |id| format!("conversation '{id}'"));
        self.log.note(&format!(
            "left out {which} of '{}': {fault}; correct the value with sqlite3, and import the database again",
            self.database
        ));
        self.skipped += 1;
        Ok(())
    }

    fn copy(&mut self, records: &Input) -> anyhow::Result<()> {
        let mut from = 0;
        while from < records.length {
            let to = (from + PART).min(records.length);
            self.out.write_all(&records.part(from, to)?)?;
            from = to;
        }
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
