//! Records exchanges in a directory. An exchange is written completely or not at all, and is refused if a secret is
//! found in it.

use super::files::{self, check_pieces};
use super::secrets::Secrets;
use super::{Exchange, key};
use crate::exit::{Error, Exit};
use crate::new_file::is_named;
use crate::transcript;
use anyhow::Context;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of the directories that the recorder creates.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of the files that the recorder creates.
const FILE_MODE: u32 = 0o600;

/// Writes exchanges into a cassette. Several processes may write into the same cassette at the same time.
#[derive(Debug)]
pub struct Recorder {
    pub(super) dir: PathBuf,
    secrets: Secrets,
}

impl Recorder {
    /// Returns a recorder for the directory `dir`, which is created when needed. `keys` are the API keys in use;
    /// nothing that contains one is written. Short keys and ordinary words are not treated as secrets, see
    /// [`secret::is_secret`](crate::provider::secret::is_secret).
    #[must_use]
    pub fn new(dir: &Path, keys: Vec<String>) -> Recorder {
        Recorder { dir: dir.to_owned(), secrets: Secrets::new(keys) }
    }

    /// Checks that a request's body may be recorded. Call it before the request is sent and paid for.
    ///
    /// # Errors
    /// Returns a message that names what looks like a secret.
    pub fn check(&self, body: &str) -> Result<(), String> {
        self.check_place("the request body", body)
    }

    /// Writes an exchange and returns its directory. The directory's name is the request's key, or `KEY.2`, `KEY.3` and
    /// so on for further exchanges with the same request. Of the headers, only
    /// [`REQUEST_HEADERS`](super::REQUEST_HEADERS) and [`RESPONSE_HEADERS`](super::RESPONSE_HEADERS) are written.
    ///
    /// # Errors
    /// Status 65 if something looks like a secret; nothing is written, and the message says what it is and where.
    /// Status 1 if the pieces do not add up to the answer. Otherwise the status of the write error.
    pub fn write(&self, exchange: &Exchange) -> anyhow::Result<PathBuf> {
        let exchange = exchange.kept();
        let refuse = |why: &str| format!("cannot record into '{}': {why}", self.dir.display());
        self.check_all(&exchange).map_err(|why| Error::new(Exit::Data, refuse(&why)))?;
        let length = exchange.answer.len();
        let pieces = check_pieces(&exchange.pieces, length);
        pieces.map_err(|why| Error::new(Exit::Failed, refuse(&why)))?;
        let written = self.write_directory(&exchange);
        written.with_context(|| format!("cannot record into '{}'", self.dir.display()))
    }

    /// Checks that an exchange may be recorded.
    ///
    /// # Errors
    /// Returns a message that names what looks like a secret, and where it is.
    pub(super) fn check_all(&self, exchange: &Exchange) -> Result<(), String> {
        self.check_place("the request's path", &exchange.path)?;
        for (name, value) in &exchange.request_headers {
            self.check_place(&format!("the request's header '{name}'"), value)?;
        }
        self.check(&exchange.body)?;
        for (name, value) in &exchange.headers {
            self.check_place(&format!("the answer's header '{name}'"), value)?;
        }
        self.check_place("the answer", &String::from_utf8_lossy(&exchange.answer))?;
        self.check_place("the error message", exchange.ended.as_deref().unwrap_or_default())
    }

    fn check_place(&self, place: &str, text: &str) -> Result<(), String> {
        match self.secrets.find(text) {
            None => Ok(()),
            Some(what) => Err(format!("{place} contains {what}; remove it to record the exchange")),
        }
    }

    /// Writes the files into a hidden directory, then renames it into place.
    fn write_directory(&self, exchange: &Exchange) -> io::Result<PathBuf> {
        transcript::make_directory(&self.dir)?;
        let (directory, _lock) = self.make_hidden()?;
        let placed = write_files(&directory, exchange)
            .and_then(|()| self.place(&directory, &key(&exchange.path, &exchange.body)));
        if placed.is_err() {
            // If this fails, a hidden directory is left behind, which readers ignore and another process removes.
            let _ = fs::remove_dir_all(&directory);
        }
        placed
    }

    /// Creates a directory whose name begins with a dot, and locks it. The next process that finds the directory of one that
    /// was killed, without a lock, makes it anew.
    pub(super) fn make_hidden(&self) -> io::Result<(PathBuf, File)> {
        let mut number = 1_u64;
        loop {
            let directory = self.dir.join(format!(".recording-{number}"));
            match DirBuilder::new().mode(DIRECTORY_MODE).create(&directory) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    // The name is free afterwards, unless another process takes it.
                    number += u64::from(!remove_abandoned(&directory));
                }
                Err(error) => return Err(error),
                Ok(()) => match set_mode(&directory).and_then(|()| File::open(&directory)) {
                    Ok(lock) if owns(&lock, &directory) => return Ok((directory, lock)),
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    // Another process took it for an abandoned one.
                    _ => number += 1,
                },
            }
        }
    }

    /// Renames a written directory to the first free name for its key. rename(2) does not replace a directory that has
    /// files in it, so two processes cannot take the same name.
    fn place(&self, directory: &Path, key: &str) -> io::Result<PathBuf> {
        let mut number = 1_u64;
        loop {
            let name = if number == 1 { key.to_owned() } else { format!("{key}.{number}") };
            let place = self.dir.join(name);
            match fs::rename(directory, &place) {
                Ok(()) => return Ok(place),
                Err(_) if fs::symlink_metadata(&place).is_ok() => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Locks a hidden directory. Returns false if another process uses it, or has removed it.
fn owns(lock: &File, directory: &Path) -> bool {
    // Not all file systems have locks.
    !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) && is_named(lock, directory)
}

/// Removes a hidden directory that a killed process left. Returns false if a process still uses it.
fn remove_abandoned(directory: &Path) -> bool {
    let Ok(lock) = File::open(directory) else { return false };
    let is_abandoned = lock.try_lock().is_ok() && is_named(&lock, directory);
    is_abandoned && fs::remove_dir_all(directory).is_ok()
}

/// Gives a directory a mode that does not depend on the umask.
fn set_mode(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))
}

fn write_files(directory: &Path, exchange: &Exchange) -> io::Result<()> {
    write_file(&directory.join(files::REQUEST), files::request_json(exchange).as_bytes())?;
    write_file(&directory.join(files::RESPONSE), files::response_json(exchange).as_bytes())?;
    write_file(&directory.join(files::BODY), &exchange.answer)
}

/// Creates a file with a mode that does not depend on the umask.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    const KEY: &str = "the/very-key";

    fn recorder(dir: &Path) -> Recorder {
        Recorder::new(dir, vec![KEY.to_owned()])
    }

    fn exchange() -> Exchange {
        Exchange {
            path: "/v1/messages".into(),
            body: r#"{"a":1}"#.into(),
            status: Some(200),
            answer: b"{}".to_vec(),
            pieces: vec![1, 1],
            ..Exchange::default()
        }
    }

    fn names(dir: &Path) -> BTreeSet<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        fs::read_dir(dir).unwrap().map(|entry| name(entry).unwrap()).collect()
    }

    #[test]
    fn exchanges_are_read_back_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let first = key("/v1/messages", r#"{"a":1}"#);
        let id = format!("{}_{first}", files::REQUEST_ID);
        let cut = Exchange {
            request_headers: vec![header("anthropic-version", "2023-06-01")],
            headers: vec![header("content-type", "x"), header("request-id", &id)],
            answer: b"\xff\0\r\n".to_vec(),
            pieces: vec![0, 3, 1],
            ended: Some("reset \"by\" peer".into()),
            ..exchange()
        };
        let none = Exchange { status: None, answer: vec![], pieces: vec![], ..cut.clone() };
        for exchange in [exchange(), cut, none] {
            let directory = recorder(dir.path()).write(&exchange).unwrap();
            assert_eq!(files::read(&directory).unwrap(), exchange);
        }
        let expected = [first.clone(), format!("{first}.2"), format!("{first}.3")];
        assert_eq!(names(dir.path()), BTreeSet::from(expected), "there are no other files");
    }

    #[test]
    fn a_secret_anywhere_is_refused_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("cassette");
        let header = |name: &str| vec![(name.to_owned(), format!("x {KEY}"))];
        let cases = [
            (Exchange { path: format!("/{KEY}"), ..exchange() }, "the request's path"),
            (Exchange { body: format!("{{\"{KEY}\":1}}"), ..exchange() }, "the request body"),
            (Exchange { answer: KEY.into(), pieces: vec![12], ..exchange() }, "the answer"),
            (
                Exchange { request_headers: header("anthropic-beta"), ..exchange() },
                "the request's header 'anthropic-beta'",
            ),
            (
                Exchange { headers: header("Content-Type"), ..exchange() },
                "the answer's header 'content-type'",
            ),
            (Exchange { ended: Some(KEY.into()), ..exchange() }, "the error message"),
        ];
        for (exchange, place) in cases {
            let error = recorder(&dir).write(&exchange).unwrap_err();
            assert_eq!(crate::exit::status(&error), Exit::Data);
            let says =
                format!("': {place} contains the key in use; remove it to record the exchange");
            assert!(error.to_string().ends_with(&says), "{error}");
            assert!(!dir.exists(), "{place}");
        }
        let key = format!("sk-ant-{}", "x".repeat(40));
        let says = "the request body contains what looks like an Anthropic key ('sk-ant…'); remove it to record the exchange";
        assert_eq!(recorder(&dir).check(&key), Err(says.to_owned()));
        assert_eq!(recorder(&dir).check("{}"), Ok(()));
        // Headers that are not recorded may contain anything.
        let unrecorded = Exchange { request_headers: header("x-api-key"), ..exchange() };
        let directory = recorder(&dir).write(&unrecorded).unwrap();
        assert!(!fs::read_to_string(directory.join(files::REQUEST)).unwrap().contains(KEY));
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let short = Exchange { pieces: vec![1], ..exchange() };
        let error = recorder(dir.path()).write(&short).unwrap_err().to_string();
        assert!(error.ends_with("'pieces' add up to 1 bytes, but 'body' has 2"), "{error}");
        assert_eq!(names(dir.path()), BTreeSet::new());
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(recorder(&file).write(&exchange()).is_err());
        assert!(recorder(&file.join("below")).write(&exchange()).is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let recorder = recorder(dir.path());
        let left = dir.path().join(".recording-1");
        fs::create_dir(&left).unwrap();
        write_file(&left.join(files::REQUEST), b"{}").unwrap();
        recorder.write(&exchange()).unwrap();
        assert!(!left.exists());
        // That of a process that lives stays.
        let (hidden, lock) = recorder.make_hidden().unwrap();
        let second = recorder.write(&exchange()).unwrap();
        assert!(hidden == left && left.exists() && second.exists());
        drop(lock);
        recorder.write(&exchange()).unwrap();
        assert_eq!(names(dir.path()).iter().filter(|name| name.starts_with('.')).count(), 0);
    }

    #[test]
    fn names_of_existing_files_and_links_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let first = key("/v1/messages", r#"{"a":1}"#);
        fs::write(dir.path().join(&first), "").unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join(format!("{first}.2"))).unwrap();
        let directory = recorder(dir.path()).write(&exchange()).unwrap();
        assert_eq!(directory, dir.path().join(format!("{first}.3")));
    }

    #[test]
    fn several_recorders_may_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let recorder = recorder(dir.path());
                    (0..50).for_each(|_| assert!(recorder.write(&exchange()).is_ok()));
                });
            }
        });
        let first = key("/v1/messages", r#"{"a":1}"#);
        let mut expected = BTreeSet::from([first.clone()]);
        expected.extend((2..=100).map(|number| format!("{first}.{number}")));
        assert_eq!(names(dir.path()), expected);
        for name in expected {
            assert_eq!(files::read(&dir.path().join(name)).unwrap(), exchange());
        }
    }

    /// If this environment variable is set, the test below only records an exchange into the directory that the
    /// variable names, and then returns.
    const RECORD_INTO: &str = "CLAW_TEST_RECORD_INTO";

    #[test]
    fn modes_are_the_same_under_every_umask() {
        if let Some(dir) = std::env::var_os(RECORD_INTO) {
            recorder(Path::new(&dir)).write(&exchange()).unwrap();
            return;
        }
        let test = "provider::cassette::recorder::tests::modes_are_the_same_under_every_umask";
        for umask in ["0", "077", "0277"] {
            let dir = tempfile::tempdir().unwrap();
            let cassette = dir.path().join("cassette");
            let status = Command::new("sh")
                .args(["-c", &format!("umask {umask}; exec \"$0\" --exact {test}")])
                .arg(std::env::current_exe().unwrap())
                .env(RECORD_INTO, &cassette)
                .output();
            assert!(status.unwrap().status.success(), "{umask}");
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
            let directory = cassette.join(names(&cassette).pop_first().unwrap());
            assert_eq!((mode(&cassette), mode(&directory)), (0o700, 0o700), "{umask}");
            for file in [files::REQUEST, files::RESPONSE, files::BODY] {
                assert_eq!(mode(&directory.join(file)), 0o600, "{umask} {file}");
            }
        }
    }
}
