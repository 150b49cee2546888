//! repair: make a session of another program usable again, where it lies.

use crate::paths::print_line;
use crate::place::SessionPlace;
use anyhow::Context;
use clawutils::cli::{Output, diagnostics, survive_file_limits};
use clawutils::exit::{Exit, fail, status};
use clawutils::input::Input;
use clawutils::new_file::NewFile;
use clawutils::process::{holders, quoted};
use clawutils::repair::{self, Options, Repaired};
use clawutils::session::probe::Stamp;
use std::fs::{Metadata, canonicalize, hard_link};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most bytes of a session, because it is read into memory.
const MOST_BYTES: u64 = 1 << 30;

/// Repair sessions of other programs, so that those programs can go on with them.
#[derive(Clone, Debug, clap::Args)]
pub struct Repair {
    /// Sessions to repair
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Only print what would be changed, one line each; exit with status 1 if there is anything
    #[arg(long)]
    pub dry_run: bool,
    /// Replace FILE, and keep the original as FILE.damaged
    #[arg(long, conflicts_with = "dry_run")]
    pub in_place: bool,
    /// Also write the beginning of the session before its damage, as FILE.last-good
    #[arg(long)]
    pub last_good: bool,
    /// Also leave out all thinking, which only its provider can judge
    #[arg(long)]
    pub without_thinking: bool,
}

/// The outcome for a file that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A session without damage.
    Nothing,
    /// A session of clawutils, which is never changed.
    Own,
    /// A session with damage, which was repaired unless this is a dry run.
    Damage,
}

/// The numbers of files in which nothing was changed.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    healthy: usize,
    own: usize,
    passed_over: usize,
}

impl Counts {
    /// Writes why files were not changed: one line for each reason, because there can be hundreds of files.
    fn note(self, place: &SessionPlace, files: &[PathBuf]) {
        let name = |count: usize| match files {
            [file] => format!("'{}'", file.display()),
            _ => format!("{count} of {} files", files.len()),
        };
        let (are, them) = match self.own {
            1 => ("is a session", "it"),
            _ => ("are sessions", "them"),
        };
        for (count, before, after) in [
            (self.healthy, "nothing to repair in ", String::new()),
            (
                self.own,
                "",
                format!(" {are} of clawutils: claw-rebuild repairs {them} while reading"),
            ),
            (self.passed_over, "passed over ", ", which a repair wrote".to_owned()),
        ] {
            if count > 0 {
                place.log.note(&format!("{before}{}{after}", name(count)));
            }
        }
    }
}

impl Repair {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        survive_file_limits()?;
        let mut out = Output::open();
        let mut exit = Exit::Done;
        let mut counts = Counts::default();
        for file in &self.files {
            if self.files.len() > 1 && is_of_repair(file) {
                counts.passed_over += 1;
                continue;
            }
            let own = match self.one(place, file, &mut out) {
                Ok(Found::Damage) if self.dry_run => Exit::Failed,
                Ok(found) => {
                    counts.healthy += usize::from(found == Found::Nothing);
                    counts.own += usize::from(found == Found::Own);
                    Exit::Done
                }
                Err(error) if status(&error) == Exit::ReaderGone => return Err(error),
                Err(error) => diagnostics::report("claw-session", &error),
            };
            exit = if own.code() > exit.code() { own } else { exit };
        }
        out.finish()?;
        counts.note(place, &self.files);
        Ok(exit)
    }

    /// Repairs a file.
    fn one(&self, place: &SessionPlace, file: &Path, out: &mut Output) -> anyhow::Result<Found> {
        let name = file.display().to_string();
        let kind = meta(file)?.file_type();
        if kind.is_dir() {
            let files = files_in(file);
            let text = format!("cannot repair '{name}': is a directory; name its files: {files}");
            return fail(Exit::Data, text);
        }
        if !kind.is_file() {
            return fail(Exit::Data, format!("cannot repair '{name}': not a regular file"));
        }
        // The file that a link names is the one to replace.
        let path = match file.is_symlink() {
            true => canonicalize(file).with_context(|| format!("cannot read '{name}'"))?,
            false => file.to_owned(),
        };
        if self.in_place && is_of_repair(&path) {
            let text = format!("cannot repair '{name}' in place: a repair wrote it; copy it first");
            return fail(Exit::Data, text);
        }
        let (input, before) = (Input::open(&path)?, meta(&path)?);
        if input.length > MOST_BYTES {
            return fail(Exit::TooLarge, format!("cannot repair '{name}': it has more than 1 GiB"));
        }
        let _progress = place.log.wait_for(format!("repairing {name}"));
        let options = Options { drops_thinking: self.without_thinking };
        let repaired = repair::repair(&input, options)?;
        for edit in repaired.edits.iter().filter(|_| self.dry_run) {
            let rest = format!(":{}: {}: {}", edit.line, edit.change.name(), edit.why);
            print_line(out, file.as_os_str(), &rest)?;
        }
        if repaired.edits.is_empty() {
            return Ok(if repaired.is_own { Found::Own } else { Found::Nothing });
        }
        if self.last_good {
            self.cut(place, &input, &repaired, &path, out)?;
        }
        if self.dry_run {
            return Ok(Found::Damage);
        }
        let new = if self.in_place { path.clone() } else { beside(&path, "repaired") };
        if self.in_place {
            refuse_use(&path, &name)?;
        }
        if Stamp::of(&before) != Stamp::of_file(&path)? {
            let text = format!("'{name}' changed meanwhile; end the program that uses it first");
            return fail(Exit::TryLater, text);
        }
        if self.in_place {
            let kept =
                keep(&path).with_context(|| format!("cannot keep '{name}' as '{name}.damaged'"))?;
            place.log.note(&format!("kept the original as '{}'", kept.display()));
        }
        write(&new, &repaired.text, &before, self.in_place)?;
        place.log.note(&format!("repaired {} in '{name}'", lines(repaired.edits.len())));
        print_line(out, new.as_os_str(), "")?;
        Ok(Found::Damage)
    }

    /// Writes the beginning before the damage or, in a dry run, says how long it is.
    fn cut(
        &self,
        place: &SessionPlace,
        input: &Input,
        repaired: &Repaired,
        path: &Path,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let name = &input.name;
        let Some(length) = repair::last_good(input, repaired)? else {
            place.log.note(&format!("no beginning of '{name}' is without damage"));
            return Ok(());
        };
        let bytes = input.part(0, length as u64)?;
        let count = lines(memchr::memchr_iter(b'\n', &bytes).count());
        if self.dry_run {
            print_line(out, path.as_os_str(), &format!(": last good: the first {count}"))?;
            return Ok(());
        }
        let new = beside(path, "last-good");
        write(&new, &bytes, &meta(path)?, false)?;
        place.log.note(&format!("the first {count} of '{name}' are without damage"));
        print_line(out, new.as_os_str(), "")?;
        Ok(())
    }
}

fn lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

fn meta(path: &Path) -> anyhow::Result<Metadata> {
    path.metadata().with_context(|| format!("cannot read '{}'", path.display()))
}

/// Returns the words for the shell that name the sessions in a directory.
fn files_in(directory: &Path) -> String {
    // Without slashes at the end.
    let path = directory.components().as_path();
    format!("{}/*.jsonl", quoted(path.as_os_str()).display())
}

/// Returns the path with another ending after its own: no program lists a file whose name does not end in `.jsonl`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Returns true for the name of a file that a repair wrote beside a session, or of an original that it kept.
fn is_of_repair(path: &Path) -> bool {
    let ending = |path: &Path| path.extension().map(|it| it.as_encoded_bytes().to_owned());
    match ending(path).as_deref() {
        Some(b"damaged" | b"repaired" | b"last-good") => true,
        Some(number) if number.iter().all(u8::is_ascii_digit) => {
            ending(&path.with_extension("")).is_some_and(|ending| ending == b"damaged")
        }
        _ => false,
    }
}

/// Gives a file a second name, `FILE.damaged` or with a number, and returns it. A repair that was killed may have done that
/// already.
fn keep(path: &Path) -> io::Result<PathBuf> {
    let own = path.metadata()?;
    let numbered = (2_u32..).map(|number| beside(path, &format!("damaged.{number}")));
    for kept in std::iter::once(beside(path, "damaged")).chain(numbered) {
        match hard_link(path, &kept) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let found = kept.symlink_metadata();
                if found.is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino())) {
                    return Ok(kept);
                }
            }
            linked => return linked.map(|()| kept),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Fails if a process has the file open, or a lock file of a living process is beside it.
fn refuse_use(path: &Path, name: &str) -> anyhow::Result<()> {
    let locked = std::fs::read_to_string(beside(path, "lock")).ok().and_then(|text| {
        let digits = text.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
        digits?.parse().ok().filter(|process| clawutils::process::is_alive(*process))
    });
    match holders(path).into_iter().chain(locked).next() {
        Some(process) => fail(
            Exit::TryLater,
            format!("cannot replace '{name}': process {process} uses it; end it first"),
        ),
        None => Ok(()),
    }
}

/// Writes a file with the permissions and the time of the original: programs resume the session whose file is the newest.
fn write(new: &Path, bytes: &[u8], original: &Metadata, may_replace: bool) -> anyhow::Result<()> {
    let name = new.display();
    if !may_replace && new.symlink_metadata().is_ok() {
        return fail(
            Exit::Io,
            format!("cannot write '{name}': it exists; move or remove it first"),
        );
    }
    let written = || -> io::Result<()> {
        let mut file = NewFile::create(new, original.permissions().mode() & 0o777)?;
        file.write_all(bytes)?;
        file.set_modified(original.modified()?)?;
        file.finish(may_replace)
    };
    written().with_context(|| format!("cannot write '{name}'"))
}
