//! Limits on what a request may cost: its time, and the memory that SQLite uses for it.

use rusqlite::limits::Limit;
use rusqlite::{Connection, Error, ErrorCode, Result};
use std::time::{Duration, Instant};

/// The longest time that a request may take.
pub const MAX_TIME: Duration = Duration::from_secs(30);
/// The memory that SQLite may use, in bytes. Sorting and temporary tables are in memory, too.
const MAX_MEMORY: i64 = 256 << 20;
/// The longest text, BLOB or row, in bytes.
const MAX_LENGTH: i32 = 64 << 20;
/// The number of instructions of SQLite's virtual machine between two checks of the time, which take about a microsecond each.
const INSTRUCTIONS: i32 = 1000;

/// Limits what queries on a connection may cost, from now on. They also end as soon as `is_cancelled` returns true.
///
/// # Errors
/// If SQLite does not accept the limits.
pub fn limit(
    database: &mut Connection,
    is_cancelled: impl Fn() -> bool + Send + 'static,
) -> Result<()> {
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_LENGTH)?;
    database.pragma_update(None, "temp_store", "memory")?;
    database.pragma_update(None, "hard_heap_limit", MAX_MEMORY)?;
    let end = Instant::now() + MAX_TIME;
    let is_due = move || is_cancelled() || Instant::now() >= end;
    database.progress_handler(INSTRUCTIONS, Some(is_due))
}

/// Returns true if a query ended at the limit on its time, or was cancelled.
pub fn is_stopped(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref().and_then(Error::sqlite_error_code);
    error == Some(ErrorCode::OperationInterrupted)
}
