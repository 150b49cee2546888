//! update --follow: watches transcripts, and indexes them when they change.

use crate::files::Files;
use crate::updater::Updater;
use anyhow::Context;
use clawutils::cli::{self, Output};
use clawutils::exit::{self, Exit};
use clawutils::printable::printable;
use clawutils::session::transcript_name::is_transcript;
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Changes are indexed when nothing else has changed for this long, so that a turn's records are indexed together.
const QUIET: Duration = Duration::from_millis(50);
/// Changes are indexed after this time even if more of them keep arriving.
const LONGEST: Duration = Duration::from_secs(1);

/// A watch on transcripts and directories.
pub struct Watch {
    events: Receiver<notify::Result<Event>>,
    /// Ends the watch when it is dropped.
    _watcher: RecommendedWatcher,
    /// The directories. Only files in them that are named like transcripts are indexed.
    directories: Vec<PathBuf>,
    /// The transcripts that were given by name.
    files: Vec<PathBuf>,
}

impl Watch {
    /// Begins to watch `paths` or, if there are none, the sessions of the workspace.
    ///
    /// # Errors
    /// If a path does not exist or cannot be watched.
    pub fn begin(paths: &[PathBuf], workspace: &Path) -> anyhow::Result<Watch> {
        let (sender, events) = mpsc::channel();
        let mut watcher = notify::recommended_watcher(move |event| {
            // The receiver is gone at the end of the program.
            let _ = sender.send(event);
        })
        .context("cannot watch directories")?;
        let sessions = [Files::sessions(workspace)];
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        for path in if paths.is_empty() { &sessions } else { paths } {
            let cannot = || format!("cannot watch '{}'", path.display());
            let full = path.canonicalize().with_context(cannot)?;
            let (place, mode) = match full.parent() {
                // A file may be replaced by another one of the same name, so its directory is watched.
                Some(parent) if !full.is_dir() => (parent, RecursiveMode::NonRecursive),
                _ => (full.as_path(), RecursiveMode::Recursive),
            };
            watcher.watch(place, mode).with_context(cannot)?;
            if full.is_dir() { &mut directories } else { &mut files }.push(full);
        }
        Ok(Watch { events, _watcher: watcher, directories, files })
    }

    /// Indexes changes, and prints a line for each, until a signal ends the program.
    ///
    /// # Errors
    /// If standard output cannot be written to, watching fails, or the database cannot be used. Errors about files are
    /// only reported. If another program keeps the database locked, that is reported too, and the same paths are tried
    /// again after the next change.
    pub fn follow(self, updater: &Updater) -> anyhow::Result<Exit> {
        let mut changed = BTreeSet::new();
        loop {
            let first = self.events.recv().context("cannot watch directories any longer")?;
            self.take(first, &mut changed)?;
            let begun = Instant::now();
            while begun.elapsed() < LONGEST
                && let Ok(event) = self.events.recv_timeout(QUIET)
            {
                self.take(event, &mut changed)?;
            }
            if !changed.is_empty() && index(updater, &changed)? {
                changed.clear();
            }
        }
    }

    /// Adds those paths of an event that may be transcripts or contain transcripts.
    fn take(
        &self,
        event: notify::Result<Event>,
        changed: &mut BTreeSet<PathBuf>,
    ) -> anyhow::Result<()> {
        let event = event.context("cannot watch directories any longer")?;
        if event.need_rescan() {
            changed.extend(self.directories.iter().chain(&self.files).cloned());
        }
        // Ignore access events: indexing itself causes them when it opens and reads files.
        if matches!(event.kind, EventKind::Access(_)) {
            return Ok(());
        }
        // A directory is added when it appears, moves or disappears: a new one may already contain files when its watch
        // begins, and there are no events for the files in a directory that is moved.
        let changes_names = match event.kind {
            EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_)),
            _ => true,
        };
        let is_directory = |path: &Path| changes_names && (path.is_dir() || !path.exists());
        let is_inside = |path: &Path| self.directories.iter().any(|own| path.starts_with(own));
        let is_relevant = |path: &PathBuf| {
            self.files.contains(path)
                || is_inside(path) && (is_transcript(path) || is_directory(path))
        };
        changed.extend(event.paths.iter().filter(|path| is_relevant(path)).cloned());
        Ok(())
    }
}

/// Indexes these paths. Returns false if another program kept the database locked; the caller then tries them again.
fn index(updater: &Updater, changed: &BTreeSet<PathBuf>) -> anyhow::Result<bool> {
    let files = Files::changed(changed.iter().cloned());
    let mut out = Output::open();
    let updated = updater.update(&files, &mut None, &mut |what, key| {
        writeln!(out, "{what} {}", printable(key)).context("cannot write '<stdout>'")
    });
    out.finish()?;
    match updated {
        Err(error) if error.is::<rusqlite::Error>() => {
            let error = updater.explain(error);
            match exit::status(&error) {
                Exit::TryLater => cli::diagnostics::report("claw-index", &error),
                _ => return Err(error),
            };
            Ok(false)
        }
        updated => updated.map(|_| true),
    }
}
