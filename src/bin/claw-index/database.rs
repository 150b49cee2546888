//! Creates, opens and migrates the database, and explains errors of SQLite.

use anyhow::Context;
use clawutils::exit::{Error, Exit, fail};
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// For each version of the schema, the statements that create it from the version before.
const MIGRATIONS: [&str; 3] =
    [include_str!("schema.sql"), include_str!("prices.sql"), include_str!("cache_hour.sql")];
/// The views. They hold no data, so every migration creates them anew.
const VIEWS: &str = include_str!("views.sql");
/// Marks the file as an index: "claw" in ASCII.
const APPLICATION: i32 = 0x636c_6177;
/// The longest wait for another program that writes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The cache of a connection, in KiB.
const CACHE: i32 = 16 * 1024;

/// Opens the index at `path` for writing. Creates it, or brings it up to the current version of the schema.
///
/// # Errors
/// Fails with 65 if it is another program's database or was made by a newer version. Errors of SQLite are returned
/// unchanged; [`explain`] gives them a status.
pub fn open(path: &Path) -> anyhow::Result<Connection> {
    // With the usual umask, SQLite would create a database that other users can read.
    let created = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    created.with_context(|| format!("cannot open '{}'", path.display()))?;
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare(&connection)?;
    // This check comes first, because another program's database must not be changed.
    version(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    migrate(&mut connection, path)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Opens the index at `path` for queries only.
///
/// # Errors
/// Fails with 1 if there is no index, and with 65 if it is not a regular file, is another program's database, or was
/// made by another version. Errors of SQLite are returned unchanged; [`explain`] gives them a status.
pub fn open_for_queries(path: &Path) -> anyhow::Result<Connection> {
    let name = path.display();
    let none = || fail(Exit::Failed, format!("no index '{name}'; make it with claw-index update"));
    if !path.exists() {
        return none();
    }
    require_file(path)?;
    let open = |flags| {
        let connection = Connection::open_with_flags(path, flags)?;
        prepare(&connection)?;
        connection.pragma_update(None, "query_only", true)?;
        let version = version(&connection, path)?;
        anyhow::Ok((connection, version))
    };
    let (connection, version) = match open(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        // A program was killed while it wrote to the database. To recover the database, SQLite has to open it for
        // writing.
        Err(error) if is_read_only(&error) => {
            open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            open(OpenFlags::SQLITE_OPEN_READ_ONLY)?
        }
        opened => opened?,
    };
    match version {
        0 => none(),
        version if version < MIGRATIONS.len() => {
            let text = format!(
                "cannot use '{name}': an older version of claw-index made it; run claw-index update"
            );
            fail(Exit::Data, text)
        }
        _ => Ok(connection),
    }
}

/// Checks that a path names a regular file, not a directory, a device or a pipe.
///
/// # Errors
/// Fails with 65 if it does not.
pub fn require_file(path: &Path) -> anyhow::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    let name = path.display();
    fail(Exit::Data, format!("cannot read '{name}': not a regular file; give another one"))
}

fn is_read_only(error: &anyhow::Error) -> bool {
    let own = error.downcast_ref::<rusqlite::Error>().and_then(|own| own.sqlite_error_code());
    own == Some(ErrorCode::ReadOnly)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "cache_size", -CACHE)?;
    connection.pragma_update(None, "trusted_schema", false)
}

/// Returns the version of the schema; 0 for an empty database.
fn version(connection: &Connection, path: &Path) -> anyhow::Result<usize> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let name = path.display();
    if tables == 0 {
        return Ok(0);
    }
    if application != APPLICATION {
        let why = "it is a database of another program; give another file with --db";
        return fail(Exit::Data, format!("cannot use '{name}': {why}"));
    }
    let version = usize::try_from(version).unwrap_or(usize::MAX);
    if version > MIGRATIONS.len() {
        let why = "a newer version of claw-index made it; delete it, or use that version";
        return fail(Exit::Data, format!("cannot use '{name}': {why}"));
    }
    Ok(version)
}

/// Brings the schema to the current version, in one transaction.
fn migrate(connection: &mut Connection, path: &Path) -> anyhow::Result<()> {
    if version(connection, path)? == MIGRATIONS.len() {
        return Ok(());
    }
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another program may have migrated it in the meantime.
    let from = version(&change, path)?;
    for script in &MIGRATIONS[from..] {
        change.execute_batch(script)?;
    }
    if from < MIGRATIONS.len() {
        let views = change
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'view'")?
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        for view in views {
            change.execute(&format!("DROP VIEW {view}"), [])?;
        }
        change.execute_batch(VIEWS)?;
        change.pragma_update(None, "application_id", APPLICATION)?;
        change.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    }
    Ok(change.commit()?)
}

/// Adds an exit status and advice to an error of SQLite. Returns other errors unchanged.
pub fn explain(error: anyhow::Error, path: &Path) -> anyhow::Error {
    let Some(own) = error.downcast_ref::<rusqlite::Error>() else { return error };
    let (exit, advice) = match own.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (Exit::TryLater, "; another program is writing to it, so try again later")
        }
        Some(ErrorCode::DatabaseCorrupt) => (Exit::Data, "; delete it, and run claw-index update"),
        Some(ErrorCode::NotADatabase) => (Exit::Data, "; give another file with --db"),
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            (Exit::Permission, "")
        }
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => (Exit::Io, ""),
        _ => (Exit::Failed, ""),
    };
    Error::new(exit, format!("cannot use '{}': {own}{advice}", path.display())).into()
}
