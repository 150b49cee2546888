//! import: copy transcripts of other programs into sessions.

use crate::database::{self, DatabaseSessions};
use crate::imported::Imported;
use crate::make::{append, checked, entry_of};
use crate::place::{SessionPlace, clock};
use anyhow::Context;
use clawutils::cli::{DialectArgs, Output, read_file, report, walk_error};
use clawutils::dialect::looks::{self, Looks};
use clawutils::dialect::{self, Choice};
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::json::write::Members;
use clawutils::session::import::{self, SourceFacts, Update};
use clawutils::session::probe::Stamp;
use clawutils::session::seen::{Seen, SeenFile};
use clawutils::session::transcript_name::is_old_copy;
use clawutils::session::{SessionEntry, name};
use std::io::Write;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Import transcripts of other programs.
#[derive(Clone, Debug, clap::Args)]
pub struct Import {
    /// Transcripts to import
    #[arg(value_name = "FILE", required_unless_present = "all")]
    pub files: Vec<PathBuf>,
    /// Import all new or grown transcripts of other programs from DIR and its subdirectories
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "label", "leaf"])]
    pub all: Option<PathBuf>,
    /// The options for transcripts of other programs.
    #[command(flatten)]
    pub dialect: DialectArgs,
    /// Label of the new session (default: the name that the other program gave it)
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

/// A session to import.
struct Source {
    /// Its records.
    input: Input,
    /// The full path of the file.
    path: PathBuf,
    /// The name of the session in the file, if the file can have several.
    session: Option<String>,
    /// The key of the new session, unless another session has it.
    key: String,
}

/// The outcomes of an import of several files.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    imported: usize,
    updated: usize,
    unchanged: usize,
    skipped: usize,
    /// Databases of which not all could be read.
    damaged: usize,
}

/// An import that is running.
struct Run<'p> {
    place: &'p SessionPlace,
    agent: String,
    /// The sessions that are there; `None` before the first one is looked for.
    known: Option<Imported<'p>>,
    outcomes: Outcomes,
    /// The status of the first database of which not all could be read.
    failure: Option<Exit>,
}

impl Import {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        if self.label.is_some() && self.files.len() > 1 {
            return fail(
                Exit::Usage,
                "--label can only be used with one FILE; import the files one at a time",
            );
        }
        let files = match &self.all {
            Some(directory) => find(directory)?,
            None => self.files.clone(),
        };
        let mut run = Run {
            place,
            agent: place.agent_for(None)?,
            known: None,
            outcomes: Outcomes::default(),
            failure: None,
        };
        let mut seen = self.seen(place, &run.agent);
        let mut out = Output::open();
        let done: anyhow::Result<()> = files.iter().try_for_each(|file| {
            run.give_way()?;
            let ids = self.file(&mut run, seen.as_mut(), file)?;
            ids.iter().try_for_each(|id| Ok(writeln!(out, "{id}")?))
        });
        if self.all.is_some() && run.outcomes.imported > 0 {
            place.store.sync(&run.agent)?;
        }
        seen.iter().for_each(Seen::write);
        done?;
        out.finish()?;
        if self.all.is_some() {
            run.outcomes.report(place);
        }
        let failure = run.failure;
        if run.outcomes.imported + run.outcomes.updated > 1 {
            // The next listing would have to read all new sessions.
            drop(run.known);
            place.list(Some(&run.agent), false)?;
        }
        Ok(failure.unwrap_or(Exit::Done))
    }

    /// Returns the files that earlier runs have seen. They count only for the usual way to read files.
    fn seen(&self, place: &SessionPlace, agent: &str) -> Option<Seen> {
        let is_usual = self.all.is_some() && self.dialect.from.is_none();
        is_usual.then(|| Seen::read(&place.store.directory(agent)))
    }

    /// Imports the sessions in a file. Returns the ids to print.
    fn file(
        &self,
        run: &mut Run<'_>,
        seen: Option<&mut Seen>,
        file: &Path,
    ) -> anyhow::Result<Vec<String>> {
        let Some(seen) = seen else {
            let sources = self.sources(run, file)?;
            let ids = sources.into_iter().map(|source| self.session(run, &source));
            return ids.filter_map(|made| made.map(|(_, id)| id).transpose()).collect();
        };
        let path = full_path(file)?;
        let stamp = Stamp::of_file(&path)?;
        // The newest rows of a database are in another file.
        let mut is_whole = !database::has_log(&path);
        if let Some(seen) = seen.find(&path, stamp).filter(|_| is_whole) {
            let known = run.known()?;
            let is_same = |(id, session): &(String, Stamp)| {
                known.find(id).is_some_and(|entry| entry.stamp == Some(*session))
            };
            if seen.sessions.iter().all(is_same) {
                run.outcomes.skipped += usize::from(seen.sessions.is_empty());
                run.outcomes.unchanged += seen.sessions.len();
                return Ok(Vec::new());
            }
        }
        let damaged = run.outcomes.damaged;
        let sources = self.sources(run, file)?;
        is_whole &= run.outcomes.damaged == damaged;
        let (mut sessions, mut ids) = (Vec::new(), Vec::new());
        for source in sources {
            run.give_way()?;
            let (entry, printed) = self.session(run, &source)?;
            sessions.push((entry.id, Stamp::of_file(&entry.path)?));
            ids.extend(printed);
        }
        if is_whole {
            seen.add(&path, SeenFile { file: stamp, sessions });
        }
        Ok(ids)
    }

    /// Returns the sessions in a file: that of a transcript, or those of a database that can be read. Counts a file without
    /// sessions, and a database of which not all can be read.
    fn sources(&self, run: &mut Run<'_>, file: &Path) -> anyhow::Result<Vec<Source>> {
        let path = full_path(file)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let agent = &run.agent;
        let key = format!("{agent}:import:{stem}");
        // With --all, only files whose names say so can be databases.
        if self.all.is_some() && !has_name_of_database(file) || !database::is_database(file)? {
            let source = |input| Source { input, path, session: None, key };
            let sources: Vec<Source> = self.open(file)?.map(source).into_iter().collect();
            run.outcomes.skipped += usize::from(sources.is_empty());
            return Ok(sources);
        }
        if self.label.is_some() || self.dialect.leaf.is_some() {
            let name = file.display();
            let text = format!(
                "cannot use --label or --leaf with '{name}': a database has many sessions; leave them out"
            );
            return fail(Exit::Usage, text);
        }
        let DatabaseSessions { sessions, failure } = database::sessions(file, self.all.is_some())?;
        let sources = sessions.into_iter().map(|session| {
            let own = format!("{agent}:{}:{}", session.program, session.key);
            let key = if name::key(&own).is_ok() { own } else { key.clone() };
            let path = path.clone();
            Source { input: session.input, path, session: Some(session.key), key }
        });
        let sources: Vec<Source> = sources.collect();
        run.failure = run.failure.or(failure);
        run.outcomes.damaged += usize::from(failure.is_some());
        run.outcomes.skipped += usize::from(failure.is_none() && sources.is_empty());
        Ok(sources)
    }

    /// Imports a session. Returns it, and the id to print; with `--all`, only if the session is new or has grown.
    fn session(
        &self,
        run: &mut Run<'_>,
        source: &Source,
    ) -> anyhow::Result<(SessionEntry, Option<String>)> {
        let Source { input, path, session: name, .. } = source;
        let place = run.place;
        for entry in run.known()?.of_file(path, name.as_deref()) {
            let session = String::from_utf8_lossy(&read_file(&entry.path)?).into_owned();
            let id = Some(entry.id.clone());
            match import::update(input, &session)? {
                Update::None => {
                    run.outcomes.unchanged += 1;
                    return Ok((entry, id.filter(|_| self.all.is_none())));
                }
                Update::Append(more) => {
                    append(place, &entry.path, &more)?;
                    run.outcomes.updated += 1;
                    return Ok((entry, id));
                }
                Update::Another => {}
            }
        }
        run.outcomes.imported += 1;
        let findings = input.origin().map(|origin| origin.findings(&input.name));
        report(place.log, &findings.unwrap_or_default(), false)?;
        let entry = self.new_session(run, source)?;
        let id = Some(entry.id.clone());
        Ok((entry, id))
    }

    /// Opens a file. With `--all`, returns `None` for one that is not a transcript of another program.
    fn open(&self, file: &Path) -> anyhow::Result<Option<Input>> {
        let raw = Input::open(file)?;
        if self.all.is_some() {
            let is_dialect =
                self.dialect.from.is_some() || matches!(looks::of(&raw)?, Looks::Dialect(_));
            if !is_dialect {
                return Ok(None);
            }
        }
        let choice = Choice { keeps_all: true, ..self.dialect.choice() };
        dialect::open(raw, &choice).map(Some)
    }

    fn new_session(
        &self,
        run: &mut Run<'_>,
        Source { input, path, session, key }: &Source,
    ) -> anyhow::Result<SessionEntry> {
        let (now, ts) = clock()?;
        let SourceFacts { label, source } = SourceFacts::read(input, path)?;
        let (place, agent) = (run.place, run.agent.clone());
        let known = run.known()?;
        let label = self.label.clone().or(label.filter(|label| known.is_free(label)));
        let mut new = checked(agent, known.unused(key), label)?;
        new.source = source;
        let header = place.store.header(&new, now)?;
        let imported = import::import(input, &header.line, &ts)?;
        place.store.write(&header.path, &imported.text, &ts, self.all.is_none())?;
        let entry = entry_of(new, header, now);
        known.add(entry.clone(), path, session.as_deref());
        Ok(entry)
    }
}

impl<'p> Run<'p> {
    /// Lets other programs use the sessions between two files.
    fn give_way(&mut self) -> anyhow::Result<()> {
        self.known.as_mut().map_or(Ok(()), Imported::give_way)
    }

    /// Returns the sessions that are there, with the lock of the agent held.
    fn known(&mut self) -> anyhow::Result<&mut Imported<'p>> {
        let known = match self.known.take() {
            Some(known) => known,
            None => Imported::open(self.place, &self.agent)?,
        };
        Ok(self.known.insert(known))
    }
}

fn full_path(file: &Path) -> anyhow::Result<PathBuf> {
    std::fs::canonicalize(file).with_context(|| format!("cannot read '{}'", file.display()))
}

impl Outcomes {
    fn report(self, place: &SessionPlace) {
        let Outcomes { imported, updated, unchanged, skipped, damaged } = self;
        let mut text = format!(
            "{imported} imported, {updated} updated, {unchanged} unchanged, {skipped} skipped"
        );
        if damaged > 0 {
            text.push_str(&format!(", {damaged} damaged"));
        }
        let members = Members::new()
            .number("imported", imported)
            .number("updated", updated)
            .number("unchanged", unchanged)
            .number("skipped", skipped)
            .number("damaged", damaged);
        place.log.outcome(&text, &members);
    }
}

/// The ends of the names of databases.
const DATABASES: [&str; 3] = ["db", "sqlite", "sqlite3"];

fn has_name_of_database(file: &Path) -> bool {
    file.extension().is_some_and(|it| DATABASES.iter().any(|own| it == *own))
}

/// Returns the `.jsonl` and `.json` files and the databases in a directory and below it, sorted, without old copies of other
/// files. Symbolic links are not followed.
fn find(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    // WalkDir would also accept a file, and return it.
    std::fs::read_dir(directory)
        .with_context(|| format!("cannot read '{}'", directory.display()))?;
    let mut files = Vec::new();
    for entry in WalkDir::new(directory) {
        let entry = entry.map_err(|error| walk_error(error, directory))?;
        let is_json = entry.path().extension().is_some_and(|it| it == "jsonl" || it == "json");
        let is_named = is_json || has_name_of_database(entry.path());
        if is_named && entry.file_type().is_file() && !is_old_copy(entry.path()) {
            files.push(entry.into_path());
        }
    }
    files.sort();
    Ok(files)
}
