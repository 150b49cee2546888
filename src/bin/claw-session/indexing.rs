//! Keeps the index of the sessions up to date if the setting `store` is `sqlite`. After a command that may change
//! sessions, claw-index runs in the background, so that neither a turn nor its caller waits for the database.

use crate::database::MAGIC;
use crate::place::SessionPlace;
use clawutils::cli::options::StoreKind;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts claw-index in the background, without the descriptors that the caller of this program may wait for.
const SCRIPT: &str = r#"command -v claw-index >/dev/null || exit 127
claw-index "$@" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &"#;

/// The application id of an index. SQLite stores it in bytes 68 to 71 of the database.
const APPLICATION: &[u8] = b"claw";
/// The bytes of the header that hold the size of the database in pages.
const PAGES: Range<usize> = 28..32;
const ONE_PAGE: [u8; 4] = 1_u32.to_be_bytes();

/// Begins to bring the index up to date with the sessions of the workspace, and with `transcript`, which may be
/// elsewhere. Reports an error only if it is found before claw-index starts; other errors appear when the user runs
/// claw-index.
pub fn begin(place: &SessionPlace, transcript: Option<&Path>) {
    let sessions = place.workspace.join(".sessions");
    let paths = [sessions.is_dir().then_some(sessions.as_path()), transcript];
    let mut paths = paths.into_iter().flatten().peekable();
    if place.index.store != StoreKind::Sqlite || paths.peek().is_none() {
        return;
    }
    let given = place.index.database.store_path.clone();
    let database = given.unwrap_or_else(|| sessions.join("index.db"));
    let cannot = |why| {
        let name = database.display();
        place.log.note(&format!("cannot keep the index in '{name}': {why}"));
    };
    if is_foreign(&database).unwrap_or(false) {
        return cannot("it is a database of another program; set store-path to another file");
    }
    if std::path::absolute(&database).is_ok_and(|path| !path.parent().is_some_and(Path::is_dir)) {
        return cannot("no such directory; make it, or set store-path to another file");
    }
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "claw-session"]).arg("--db").arg(&database);
    shell.args(["update", "--quiet", "--"]).args(paths);
    // The command line has all settings that claw-index needs.
    shell.env("CLAW_CONFIG", "/dev/null").env_remove("CLAW_PROFILE");
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    if !shell.status().is_ok_and(|status| status.success()) {
        cannot("claw-index cannot be run; install it, or set store to jsonl");
    }
}

/// Returns true if a file is a SQLite database with tables, but not an index. A database of one page has no tables:
/// claw-index may be creating it.
fn is_foreign(database: &Path) -> io::Result<bool> {
    let mut header = [0; 72];
    File::open(database)?.read_exact(&mut header)?;
    let has_tables = header[PAGES] != ONE_PAGE;
    Ok(header.starts_with(MAGIC) && has_tables && !header.ends_with(APPLICATION))
}
