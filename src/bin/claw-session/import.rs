//! import: copy transcripts of other programs into sessions.

use crate::commands::{SessionPlace, clock};
use crate::goclaw;
use crate::make::{append, checked, unused};
use anyhow::Context;
use clawutils::cli::{DialectArgs, Output, open_file, read_file, report, walk_error};
use clawutils::dialect::looks::{self, Looks};
use clawutils::dialect::{self, Choice};
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::json::write::Members;
use clawutils::session::import::{self, SourceFacts, Update};
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
        let agent = place.agent_for(None)?;
        let mut outcomes = Outcomes::default();
        let mut out = Output::open();
        for file in &files {
            let sources = self.sources(&agent, file)?;
            outcomes.skipped += usize::from(sources.is_empty());
            for source in sources {
                if let Some(id) = self.session(place, &agent, &source, &mut outcomes)? {
                    writeln!(out, "{id}")?;
                }
            }
        }
        out.finish()?;
        if self.all.is_some() {
            outcomes.report(place);
        }
        Ok(Exit::Done)
    }

    /// Returns the sessions in a file: that of a transcript, or all of a database.
    fn sources(&self, agent: &str, file: &Path) -> anyhow::Result<Vec<Source>> {
        let path = std::fs::canonicalize(file)
            .with_context(|| format!("cannot read '{}'", file.display()))?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let key = format!("{agent}:import:{stem}");
        if self.all.is_some() || !goclaw::is_database(file)? {
            let source = |input| Source { input, path, session: None, key };
            return Ok(self.open(file)?.map(source).into_iter().collect());
        }
        if self.label.is_some() || self.dialect.leaf.is_some() {
            let name = file.display();
            let text = format!(
                "cannot use --label or --leaf with '{name}': a database has many sessions; leave them out"
            );
            return fail(Exit::Usage, text);
        }
        let sources = goclaw::sessions(file)?.into_iter().map(|session| {
            let own = format!("{agent}:goclaw:{}", session.key);
            let key = if name::key(&own).is_ok() { own } else { key.clone() };
            let path = path.clone();
            Source { input: session.input, path, session: Some(session.key), key }
        });
        Ok(sources.collect())
    }

    /// Imports a session. Returns its id; with `--all`, only if the session is new or has grown.
    fn session(
        &self,
        place: &SessionPlace,
        agent: &str,
        source: &Source,
        outcomes: &mut Outcomes,
    ) -> anyhow::Result<Option<String>> {
        let Source { input, path, session: name, key } = source;
        let _lock = place.lock(agent)?;
        let entries = place.list(Some(agent), false)?;
        let known = entries.iter().filter(|entry| entry.key.starts_with(key));
        for entry in known {
            let session = String::from_utf8_lossy(&read_file(&entry.path)?).into_owned();
            let header = session.lines().next().unwrap_or_default();
            if !import::is_from(header, path, name.as_deref()) {
                continue;
            }
            match import::update(input, &session)? {
                Update::None => {
                    outcomes.unchanged += 1;
                    return Ok(self.all.is_none().then(|| entry.id.clone()));
                }
                Update::Append(more) => {
                    append(place, &entry.path, &more)?;
                    outcomes.updated += 1;
                    return Ok(Some(entry.id.clone()));
                }
                Update::Another => {}
            }
        }
        outcomes.imported += 1;
        let findings = input.origin().map(|origin| origin.findings(&input.name));
        report(place.log, &findings.unwrap_or_default(), false)?;
        self.new_session(place, agent, &entries, source).map(Some)
    }

    /// Opens a file. With `--all`, returns `None` for one that is not a transcript of another program.
    fn open(&self, file: &Path) -> anyhow::Result<Option<Input>> {
        let raw = open_file(file)?;
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
        place: &SessionPlace,
        agent: &str,
        entries: &[SessionEntry],
        Source { input, path, key, .. }: &Source,
    ) -> anyhow::Result<String> {
        let (now, ts) = clock()?;
        let SourceFacts { label, source } = SourceFacts::read(input, path)?;
        let is_free = |label: &String| {
            name::label(label).is_ok() && entries.iter().all(|entry| entry.label != *label)
        };
        let label = self.label.clone().or(label.filter(is_free));
        let mut new = checked(agent.to_owned(), unused(entries, key.clone()), label)?;
        new.source = source;
        let header = place.store.header(&new, now)?;
        let imported = import::import(input, &header.line, &ts)?;
        place.store.write(&header.path, &imported.text, &ts)?;
        Ok(header.id)
    }
}

impl Outcomes {
    fn report(self, place: &SessionPlace) {
        let Outcomes { imported, updated, unchanged, skipped } = self;
        let text = format!(
            "{imported} imported, {updated} updated, {unchanged} unchanged, {skipped} skipped"
        );
        let members = Members::new()
            .number("imported", imported)
            .number("updated", updated)
            .number("unchanged", unchanged)
            .number("skipped", skipped);
        place.log.outcome(&text, &members);
    }
}

/// Returns the `.jsonl` and `.json` files in a directory and below it, sorted. Symbolic links are not followed.
fn find(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    // WalkDir would also accept a file, and return it.
    std::fs::read_dir(directory)
        .with_context(|| format!("cannot read '{}'", directory.display()))?;
    let mut files = Vec::new();
    for entry in WalkDir::new(directory) {
        let entry = entry.map_err(|error| walk_error(error, directory))?;
        let is_json = entry.path().extension().is_some_and(|it| it == "jsonl" || it == "json");
        if is_json && entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    files.sort();
    Ok(files)
}
