//! The transcripts of subagents, which a page of the session has folded after the results of their calls.
//!
//! Claude Code writes them to files of their own: 2.0.76 to `agent-ID.jsonl` beside the session, and newer versions (as of
//! 2.1.330, 2026-11) to the directory `SESSION/subagents`. The names of these files are compared with the id in a result, so
//! that the text of a session never becomes a path. Older versions wrote them to the file of the session.

use super::chart::Chart;
use super::html::{Entries, Place, agent_link};
use super::walk::Reading;
use super::wording::phrase;
use super::words::html;
use super::{CallOutcome, Item, ShowNotes, ShowOptions, ShownPart, acts};
use crate::dialect::claude_code::sidechains;
use crate::dialect::looks::{self, Looks};
use crate::dialect::{self, Choice, Dialect};
use crate::input::Input;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The transcripts of the subagents of a session.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// Their files, by the ids of the subagents.
    files: BTreeMap<String, PathBuf>,
    /// The file of the session.
    session: PathBuf,
    /// The ids of the calls whose subagents are in that file, and of the last records of these.
    inside: Vec<(String, String)>,
    /// How the transcripts are read.
    choice: Choice,
}

impl Agents {
    /// Finds the files of the subagents of a session, given the path of its file.
    #[must_use]
    pub fn of(session: &Path, choice: Choice) -> Agents {
        // Also for a file in the current directory, whose path has no other part.
        let beside = session.with_file_name(".");
        let inside = session.with_extension("").join("subagents");
        let files = [beside, inside].into_iter().filter_map(|it| fs::read_dir(it).ok()).flatten();
        let id = |path: PathBuf| {
            let name = path.file_name()?.to_str()?;
            let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
            let is_other = path.file_name() != session.file_name();
            let is_file = || path.metadata().is_ok_and(|meta| meta.is_file());
            (is_other && is_file()).then_some((id, path))
        };
        let files = files.filter_map(|entry| id(entry.ok()?.path())).collect();
        let inside = inside_of(session).unwrap_or_default();
        Agents { files, session: session.to_owned(), inside, choice }
    }

    /// Returns a writer of the transcripts.
    pub(super) fn writer<'a>(&'a self, options: &'a ShowOptions) -> AgentTranscripts<'a> {
        let (shown, notes) = (RefCell::default(), RefCell::default());
        AgentTranscripts { agents: self, options, shown, notes }
    }

    /// Finds the subagent that gave a result.
    fn of_result(&self, result: &CallOutcome) -> Option<Agent<'_>> {
        let named = acts::agent_of(&result.text).and_then(|id| self.files.get_key_value(id));
        let of_file = |(id, path): (&String, &'_ PathBuf)| (id.clone(), path.clone());
        if let Some((id, path)) = named.map(of_file) {
            return Some(Agent { id, path, leaf: None });
        }
        let index = self.inside.iter().position(|(call, _)| *call == result.id)?;
        let leaf = Some(&*self.inside[index].1);
        Some(Agent { id: format!("in-session-{}", index + 1), path: self.session.clone(), leaf })
    }

    /// Opens the transcript of a subagent.
    fn open(&self, agent: &Agent<'_>) -> Option<Input> {
        let choice = Choice { leaf: agent.leaf.map(str::to_owned), ..self.choice.clone() };
        dialect::open(file(&agent.path)?, &choice).ok()
    }
}

/// A subagent.
struct Agent<'a> {
    /// Its id, or a name for one without an id.
    id: String,
    /// The file with its transcript.
    path: PathBuf,
    /// The last record, if the transcript is a branch of the file.
    leaf: Option<&'a str>,
}

fn file(path: &Path) -> Option<Input> {
    let name = path.file_name()?.to_string_lossy();
    File::open(path).and_then(|file| Input::file(&name, file)).ok()
}

/// Returns the ids of the calls whose subagents are in the file of the session, and of the last records of these.
fn inside_of(session: &Path) -> Option<Vec<(String, String)>> {
    let input = file(session)?;
    let is_claude_code = looks::of(&input).ok()? == Looks::Dialect(Dialect::ClaudeCode);
    is_claude_code.then(|| sidechains::of_calls(&input).ok()).flatten()
}

/// Writes the transcripts of subagents, each once. Those of their own subagents are in them.
pub(super) struct AgentTranscripts<'a> {
    agents: &'a Agents,
    options: &'a ShowOptions,
    shown: RefCell<HashSet<String>>,
    notes: RefCell<ShowNotes>,
}

impl AgentTranscripts<'_> {
    /// Writes the transcript of the subagent that gave a result, folded, or a link if it is on the page already.
    pub fn write(
        &self,
        result: &CallOutcome,
        language: &'static str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(agent) = self.agents.of_result(result) else { return Ok(()) };
        let id = &*agent.id;
        if self.shown.borrow().contains(id) {
            return agent_link(&format!("#agent-{id}"), self.options.language, out);
        }
        let Some(input) = self.agents.open(&agent) else { return Ok(()) };
        let (inputs, mut chart) = ([input], Chart::default());
        let Ok(reading) = Reading::new(&inputs, self.options, ShownPart::default()) else {
            return Ok(());
        };
        let read = reading.visit(&mut |entry| chart.take(entry));
        // A file with this name may be of something else.
        let is_own = |chart: &Chart| chart.session.as_ref()?.agent.as_deref().map(|own| own == id);
        if read.is_err() || agent.leaf.is_none() && is_own(&chart) != Some(true) {
            return Ok(());
        }
        self.shown.borrow_mut().insert(id.to_owned());
        let words = self.options.language.say(phrase::TRANSCRIPT).to_owned();
        let summary = [vec![words], chart.totals().facts(self.options)].concat().join(" · ");
        let open = if self.options.full { " open" } else { "" };
        writeln!(
            out,
            "<details class=\"agent\" id=\"agent-{id}\"{open}>\n<summary>{}</summary>",
            html(&summary)
        )?;
        let inner =
            |result: &CallOutcome, language, out: &mut dyn Write| self.write(result, language, out);
        let place = Place::Agent(id);
        let mut entries =
            Entries::begin(self.options, &chart, Some(&inner), place, language, &mut *out);
        let read = reading.read(&mut |entry| match entry.item {
            Item::Session(_) => Ok(()),
            _ => entries.show(entry),
        });
        let notes = read.map_err(|error| error.downcast().unwrap_or_else(io::Error::other))?;
        self.notes.borrow_mut().append(notes);
        entries.end()?;
        writeln!(out, "</details>")
    }

    /// Returns the diagnostics about the transcripts.
    pub fn notes(&self) -> ShowNotes {
        self.notes.take()
    }
}
