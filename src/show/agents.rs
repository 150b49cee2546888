//! The transcripts of subagents, which a page of the session has folded after the results of their calls.
//!
//! Claude Code writes them to files of their own: 2.0.76 to `agent-ID.jsonl` beside the session, and newer versions (as of
//! 2.1.330, 2026-11) to the directory `SESSION/subagents`. The names of these files are compared with the id in a result, so
//! that the text of a session never becomes a path.

use super::chart::Chart;
use super::html::{Entries, Place, agent_link};
use super::walk::TranscriptWalk;
use super::wording::phrase;
use super::words::html;
use super::{Item, ShowNotes, ShowOptions};
use crate::dialect::{self, Choice};
use crate::input::Input;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The files of subagents, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    files: BTreeMap<String, PathBuf>,
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
        Agents { files, choice }
    }

    /// Returns a writer of the transcripts.
    pub(super) fn writer<'a>(&'a self, options: &'a ShowOptions) -> AgentTranscripts<'a> {
        let (shown, notes) = (RefCell::default(), RefCell::default());
        AgentTranscripts { agents: self, options, shown, notes }
    }

    /// Opens the transcript of a subagent, if there is one.
    fn open(&self, id: &str) -> Option<Input> {
        let path = self.files.get(id)?;
        let name = path.file_name()?.to_string_lossy();
        let input = File::open(path).and_then(|file| Input::file(&name, file)).ok()?;
        dialect::open(input, &self.choice).ok()
    }
}

/// Writes the transcripts of subagents, each once. Those of their own subagents are in them.
pub(super) struct AgentTranscripts<'a> {
    agents: &'a Agents,
    options: &'a ShowOptions,
    shown: RefCell<HashSet<String>>,
    notes: RefCell<ShowNotes>,
}

impl AgentTranscripts<'_> {
    /// Writes the transcript of a subagent, folded, or a link if it is on the page already.
    pub fn write(&self, id: &str, language: &'static str, out: &mut dyn Write) -> io::Result<()> {
        if self.shown.borrow().contains(id) {
            return agent_link(&format!("#agent-{id}"), self.options.language, out);
        }
        let Some(input) = self.agents.open(id) else { return Ok(()) };
        let (inputs, mut chart) = ([input], Chart::default());
        let read = TranscriptWalk::whole(&inputs, self.options, &mut |entry| {
            chart.take(entry);
            Ok(())
        });
        // A file with this name may be of something else.
        let is_own = |chart: &Chart| chart.session.as_ref()?.agent.as_deref().map(|own| own == id);
        if read.is_err() || is_own(&chart) != Some(true) {
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
        let inner = |id: &str, language, out: &mut dyn Write| self.write(id, language, out);
        let place = Place::Agent(id);
        let mut entries =
            Entries::begin(self.options, &chart, Some(&inner), place, language, &mut *out);
        let read = TranscriptWalk::whole(&inputs, self.options, &mut |entry| match entry.item {
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
