//! Makes and updates a site.

use super::source::{SiteOptions, Source, open};
use super::state::{self, Row, State};
use super::summary::{Collector, Summary};
use super::{index, name, pages, statistics};
use crate::exit::{Error, Exit, fail, status};
use crate::new_file::{NewFile, PRIVATE};
use crate::record;
use crate::show::ShownPart;
use crate::show::walk::Reading;
use crate::system;
use anyhow::Context;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::num::NonZero;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The maximum number of threads.
const MAX_THREADS: usize = 8;

/// The result of an update.
#[derive(Debug, Default)]
pub struct SiteReport {
    /// The number of sessions on the site.
    pub sessions: usize,
    /// The number of files that were written.
    pub written: usize,
    /// The number of files that were removed.
    pub removed: usize,
    /// The number of findings in the transcripts that were read.
    pub findings: u64,
    /// The sources that could not be read. They keep their pages.
    pub errors: Vec<anyhow::Error>,
}

/// The directory of a site, locked.
#[derive(Debug)]
pub struct Site {
    directory: PathBuf,
    state: State,
    _lock: File,
}

/// A source with the row that it gets.
struct Work<'s> {
    source: &'s Source,
    key: String,
    row: Row,
    /// True if the source has changed, or its pages are made anew.
    is_new: bool,
    /// True if its pages are written.
    is_due: bool,
}

impl Site {
    /// Opens the site in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// 2 if there is something else in the directory; 75 if another process updates the site; 74 or 77 if it cannot be
    /// read or created.
    pub fn open(directory: &Path) -> anyhow::Result<Site> {
        let shown = directory.display();
        let cannot = || format!("cannot write '{shown}'");
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(cannot);
            }
            _ => {}
        }
        let lock = File::open(directory).with_context(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = format!("cannot write '{shown}': another process writes it; try again");
                return Err(Error::new(Exit::TryLater, why).into());
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        let state = State::read(directory).with_context(cannot)?;
        let is_empty = || fs::read_dir(directory).map(|mut entries| entries.next().is_none());
        let state = match state {
            Some(state) => state,
            None if is_empty().with_context(cannot)? => State::default(),
            None => {
                let why = "it holds other files; give a new or empty directory";
                return fail(Exit::Usage, format!("cannot write '{shown}': {why}"));
            }
        };
        Ok(Site { directory: directory.to_owned(), state, _lock: lock })
    }

    /// Returns true if the state of the site was damaged, so that all pages will be made again.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.state.is_damaged
    }

    /// Makes the site of these sources. Reads only those that have changed, and writes only the files that differ.
    ///
    /// # Errors
    /// If a file of the site cannot be written; 2 if another file has the name of a page.
    pub fn update(
        &mut self,
        sources: &[Source],
        options: &SiteOptions,
    ) -> anyhow::Result<SiteReport> {
        let mut report = SiteReport::default();
        let is_same = self.state.digest == options.digest;
        let mut work: Vec<Work<'_>> = sources.iter().map(|it| self.work(it, is_same)).collect();
        if !is_same {
            // Pages of sources that are not there now are made anew when they are.
            self.state.rows.values_mut().for_each(|row| row.stamp = None);
        }
        self.summarise(&mut work, options, &mut report);
        let kept = self.kept(&work, options);
        self.name(&mut work, &kept)?;
        link(&mut work, &kept);
        let due = work.iter().filter(|own| own.is_due).count();
        if due > 0 || !is_same {
            // If this process is killed, the next one knows which files are this site's.
            self.claim(&work, &options.digest)?;
            self.write_sessions(&mut work, options, &mut report)?;
        }
        self.write_lists(&work, &kept, options, &mut report)?;
        self.finish(work, options, &mut report)?;
        Ok(report)
    }

    /// Returns a source with its row, if it has one.
    fn work<'s>(&self, source: &'s Source, is_same: bool) -> Work<'s> {
        let key = record::digest(&source.path.to_string_lossy());
        let row = self.state.rows.get(&key).cloned().unwrap_or_default();
        let is_new = !is_same || row.stamp != Some(source.stamp);
        Work { source, key, row, is_new, is_due: is_new }
    }

    /// Reads the facts about the sources that have changed.
    fn summarise(&self, work: &mut [Work<'_>], options: &SiteOptions, report: &mut SiteReport) {
        let due: Vec<&Source> = work.iter().filter(|it| it.is_new).map(|it| it.source).collect();
        let mut read = in_parallel(due.len(), |at| summary(due[at], options)).into_iter();
        for own in work.iter_mut().filter(|own| own.is_new) {
            match read.next() {
                Some(Ok((summary, findings))) => {
                    own.row.parts = summary.parts;
                    own.row.summary = summary;
                    report.findings += findings;
                }
                Some(Err(error)) => {
                    own.is_due = false;
                    let is_other = status(&error) == Exit::Data && !own.source.is_given;
                    if is_other {
                        // It is not read again until it changes.
                        own.row = Row { stamp: Some(own.source.stamp), ..Row::default() };
                    } else {
                        // It keeps its pages, and is read again next time, also if only the options differ.
                        own.row.stamp = None;
                        report.errors.push(error);
                    }
                }
                None => {}
            }
        }
    }

    /// Returns the rows of the sessions that were not found, if something could not be read, in which they may be. They keep
    /// their pages, and stay in the lists.
    fn kept(&self, work: &[Work<'_>], options: &SiteOptions) -> Vec<Row> {
        if options.is_whole {
            return Vec::new();
        }
        let found: HashSet<&str> = work.iter().map(|own| own.key.as_str()).collect();
        // Without facts, which a damaged state lacks, nothing can be listed.
        let is_known = |row: &Row| !row.name.is_empty() && !row.summary.id.is_empty();
        let rows = self.state.rows.iter();
        let kept = rows.filter(|(key, row)| !found.contains(key.as_str()) && is_known(row));
        let mut kept: Vec<Row> = kept.map(|(_, row)| row.clone()).collect();
        kept.sort_by(|a, b| a.name.cmp(&b.name));
        kept
    }

    /// Gives the sessions without a name one that no other file in the directory has.
    fn name(&self, work: &mut [Work<'_>], kept: &[Row]) -> anyhow::Result<()> {
        let cannot = || format!("cannot read '{}'", self.directory.display());
        let own: HashSet<String> = self.state.rows.values().flat_map(Row::files).collect();
        let mut taken: HashSet<String> =
            kept.iter().map(|row| row.name.to_ascii_lowercase()).collect();
        for entry in fs::read_dir(&self.directory).with_context(cannot)? {
            let file = entry.with_context(cannot)?.file_name().to_string_lossy().into_owned();
            if !own.contains(&file) {
                taken.extend(file.split('.').next().map(str::to_ascii_lowercase));
            }
        }
        // A name that is in use stays, unless it is that of a session that is kept.
        for own in work.iter_mut().filter(|own| !own.row.name.is_empty()) {
            if !taken.insert(own.row.name.to_ascii_lowercase()) {
                own.row.name.clear();
                own.is_due = own.is_new || own.row.stamp.is_some();
            }
        }
        for own in work.iter_mut().filter(|own| own.is_due && own.row.name.is_empty()) {
            let Summary { id, agent, .. } = &own.row.summary;
            own.row.name = name::unused(&name::of(id, agent.as_deref()), &mut taken);
        }
        Ok(())
    }

    /// Writes the state with all names that are or will be in use, but no stamps of the sessions that are due.
    fn claim(&mut self, work: &[Work<'_>], digest: &str) -> anyhow::Result<()> {
        self.state.digest = digest.to_owned();
        for own in work {
            let stamp = own.row.stamp.filter(|_| !own.is_due);
            let before = self.state.rows.get(&own.key).map_or(0, |row| row.parts);
            let parts = own.row.parts.max(before);
            self.state.rows.insert(own.key.clone(), Row { stamp, parts, ..own.row.clone() });
        }
        self.write_state()
    }

    fn write_state(&self) -> anyhow::Result<()> {
        self.write(state::FILE, &self.state.to_text())
    }

    /// Writes the pages of the sessions that are due.
    fn write_sessions(
        &self,
        work: &mut [Work<'_>],
        options: &SiteOptions,
        report: &mut SiteReport,
    ) -> anyhow::Result<()> {
        let due: Vec<&Work<'_>> = work.iter().filter(|own| own.is_due).collect();
        let agents: HashMap<&str, &Work<'_>> =
            work.iter().filter_map(|own| Some((own.row.summary.agent.as_deref()?, own))).collect();
        let agent = |id: &str| agents.get(id).map(|own| name::file(&own.row.name, 1));
        let written = in_parallel(due.len(), |at| {
            let Work { source, row, .. } = due[at];
            let inputs = [open(source, options)?];
            let read = Reading::new(&inputs, &options.show, ShownPart::default())?;
            let create = |file: &str| NewFile::create(&self.directory.join(file), PRIVATE);
            pages::write(row, &read, &options.show, &agent, &create)
        });
        for (own, parts) in work.iter_mut().filter(|own| own.is_due).zip(written) {
            // The transcript may have grown in the meantime.
            own.row.parts = parts?;
            report.written += own.row.parts;
        }
        Ok(())
    }

    /// Writes the index and the statistics, if they differ.
    fn write_lists(
        &self,
        work: &[Work<'_>],
        kept: &[Row],
        options: &SiteOptions,
        report: &mut SiteReport,
    ) -> anyhow::Result<()> {
        let rows: Vec<&Row> = named(work).chain(kept).collect();
        report.sessions = rows.len();
        let lists = [
            ("index.html", index::page(&rows, &options.show)),
            ("statistics.html", statistics::page(&rows, &options.show)),
        ];
        for (file, text) in lists {
            let path = self.directory.join(file);
            let is_same = path.symlink_metadata().is_ok_and(|meta| {
                meta.is_file()
                    && meta.len() == text.len() as u64
                    && fs::read(&path).is_ok_and(|old| old == text.as_bytes())
            });
            if !is_same {
                self.write(file, &text)?;
                report.written += 1;
            }
        }
        Ok(())
    }

    /// Removes the pages that are no longer needed, and writes the state.
    fn finish(
        &mut self,
        work: Vec<Work<'_>>,
        options: &SiteOptions,
        report: &mut SiteReport,
    ) -> anyhow::Result<()> {
        let old: HashSet<String> = self.state.rows.values().flat_map(Row::files).collect();
        let mut rows = match options.is_whole {
            true => HashMap::new(),
            false => std::mem::take(&mut self.state.rows),
        };
        for Work { source, key, row, is_due, .. } in work {
            let stamp = if is_due { Some(source.stamp) } else { row.stamp };
            rows.insert(key, Row { stamp, ..row });
        }
        let needed: HashSet<String> = rows.values().flat_map(Row::files).collect();
        for file in old.difference(&needed) {
            let removed = fs::remove_file(self.directory.join(file));
            report.removed += usize::from(removed.is_ok());
        }
        let is_changed = rows != self.state.rows || report.written + report.removed > 0;
        self.state = State { digest: options.digest.clone(), rows, is_damaged: false };
        if !is_changed {
            return Ok(());
        }
        let directory = File::open(&self.directory);
        let synced = directory.and_then(|file| system::sync_file_system(&file));
        synced.with_context(|| format!("cannot write '{}'", self.directory.display()))?;
        self.write_state()
    }

    /// Writes a file of the site, which appears when it is complete.
    fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        let path = self.directory.join(file);
        let write = || {
            let mut out = NewFile::create(&path, PRIVATE)?;
            out.write_all(text.as_bytes())?;
            out.finish_unsynced()
        };
        write().with_context(|| format!("cannot write '{}'", path.display()))
    }
}

/// Returns the facts about a source, and the number of findings in it.
fn summary(source: &Source, options: &SiteOptions) -> anyhow::Result<(Summary, u64)> {
    let inputs = [open(source, options)?];
    let reading = Reading::new(&inputs, &options.show, ShownPart::default())?;
    let (collector, notes) = Collector::of(&reading)?;
    let stem = source.path.file_stem().unwrap_or_default().to_string_lossy();
    Ok((collector.summary(&stem, record::digest), notes.findings.count(|_| true)))
}

/// Returns the rows of the sources that are sessions.
fn named<'w>(work: &'w [Work<'_>]) -> impl Iterator<Item = &'w Row> {
    work.iter().map(|own| &own.row).filter(|row| !row.name.is_empty())
}

/// Sets the links between the sessions. A session whose links have changed is written again.
/// Those that are kept are not written again, but the others link to them.
fn link(work: &mut [Work<'_>], kept: &[Row]) {
    let rows: Vec<&Row> = named(work).chain(kept).collect();
    let links = index::links(&rows);
    for own in work.iter_mut().filter(|own| !own.row.name.is_empty()) {
        let own_links = links.get(&own.row.name).cloned().unwrap_or_default();
        own.is_due |= own.row.links != own_links;
        own.row.links = own_links;
    }
}

/// Calls `each` with the numbers below `count` on several threads, and returns the results in order.
fn in_parallel<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    if count < 2 || threads < 2 {
        return (0..count).map(each).collect();
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let result = each(at);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
