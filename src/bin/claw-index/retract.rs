//! Marks the rows of records that are retracted.

use crate::session::{Session, rows_of};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

/// Marks the rows of a record as retracted or not. If the record is itself a retraction, its target is marked the other
/// way.
pub fn mark(
    database: &Connection,
    session: &Session,
    id: &str,
    is_retracted: bool,
) -> rusqlite::Result<()> {
    let own: [&dyn ToSql; 3] = [&is_retracted, &session.key, &id];
    for table in ["compactions", "checkpoints"] {
        let set = format!("UPDATE {table} SET retracted = ? WHERE session_key = ? AND id = ?");
        if database.prepare(&set)?.execute(own)? > 0 {
            return Ok(());
        }
    }
    let set =
        "UPDATE retractions SET retracted = ? WHERE session_key = ? AND id = ? RETURNING target";
    let mut set = database.prepare(set)?;
    let target = set.query_row(own, |row| row.get::<_, String>(0)).optional()?;
    match target {
        Some(target) => mark(database, session, &target, !is_retracted),
        None => mark_messages(database, session, id, is_retracted),
    }
}

/// Marks the messages of a record. Searches the session from its end, because retracted messages are usually there.
fn mark_messages(
    database: &Connection,
    session: &Session,
    id: &str,
    value: bool,
) -> rusqlite::Result<()> {
    let [first, last] = rows_of(session.number);
    let mut found = None;
    let mut ids = database
        .prepare("SELECT row, id FROM messages WHERE row BETWEEN ? AND ? ORDER BY row DESC")?;
    let mut rows = ids.query([first, last])?;
    while let Some(row) = rows.next()? {
        let (number, is_own) = (row.get::<_, i64>(0)?, row.get_ref(1)?.as_str()? == id);
        match (&mut found, is_own) {
            (None, true) => found = Some((number, number)),
            (Some((from, _)), true) => *from = number,
            (Some(_), false) => break,
            (None, false) => {}
        }
    }
    let Some((from, to)) = found else { return Ok(()) };
    let set = "UPDATE messages SET retracted = ? WHERE row BETWEEN ? AND ?";
    database.execute(set, params![value, from, to])?;
    Ok(())
}
