//! `--html`: a directory with an index of the failures and, for each transcript that failed, a page like claw-show's.
//!
//! The pages contain no scripts, and load nothing from elsewhere. The index is written last, so that its links always
//! work; pages of an earlier report are removed after that.

use super::results::{TestResult, abridged};
use super::{ReportFile, Sink, Totals};
use crate::report::{Report, counted};
use crate::transcript::OpenFile;
use anyhow::Context;
use clawutils::exit::{Exit, fail};
use clawutils::printable::{printable, printable_lines};
use clawutils::record::digest;
use clawutils::show::agents::Agents;
use clawutils::show::html::head;
use clawutils::show::{self, Format, ShowOptions};
use quick_xml::escape::escape;
use std::collections::{BTreeSet, HashSet};
use std::fs::{DirBuilder, File, TryLockError, read_dir, remove_file};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The maximum number of failures in the index.
const MAX_FAILURES: usize = 1000;
/// The largest transcript that gets a page, in bytes.
const MAX_TRANSCRIPT: u64 = 16 * 1024 * 1024;
/// The maximum length of a detail in bytes.
const MAX_DETAIL: usize = 16 * 1024;
/// The directory of the pages.
const PAGES: &str = "transcripts";

/// A report for a browser.
pub struct Html {
    directory: PathBuf,
    index: ReportFile,
    /// The modes of the reports.
    modes: BTreeSet<String>,
    groups: Vec<Group>,
    /// The number of failures in the index.
    listed: usize,
    /// The number of failures that are only counted.
    omitted: u64,
    /// The names of the pages.
    pages: HashSet<String>,
    /// The directory, locked, because the pages of another run would be removed.
    _lock: Option<File>,
}

/// The failures of one kind of case.
struct Group {
    name: String,
    count: u64,
    html: String,
}

impl Html {
    /// Creates the directory and the index. If the directory is new, only its owner can read it, because the pages
    /// contain whole transcripts.
    ///
    /// # Errors
    /// Fails if they cannot be created, and with 75 if another run writes a report there.
    pub fn create(directory: &Path) -> anyhow::Result<Html> {
        let pages = directory.join(PAGES);
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&pages);
        created.with_context(|| format!("cannot create '{}'", pages.display()))?;
        let lock = lock(directory)?;
        Ok(Html {
            directory: directory.to_owned(),
            index: ReportFile::create(&directory.join("index.html"))?,
            modes: BTreeSet::new(),
            groups: Vec::new(),
            listed: 0,
            omitted: 0,
            pages: HashSet::new(),
            _lock: lock,
        })
    }

    /// Writes the page of a transcript and returns its name. Returns `None` if the transcript is too large or cannot be
    /// shown.
    fn page(&self, path: &str) -> anyhow::Result<Option<String>> {
        let opened = OpenFile::open(Path::new(path)).ok();
        let transcript = opened.filter(|file| file.meta.len() <= MAX_TRANSCRIPT);
        let Some(Ok(transcript)) = transcript.map(OpenFile::into_transcript) else {
            return Ok(None);
        };
        let name = page_name(path);
        let mut file = ReportFile::create(&self.directory.join(PAGES).join(&name))?;
        let title = path.rsplit('/').next().unwrap_or(path);
        let (inputs, options) = ([transcript.input], ShowOptions::default());
        if show::show(&inputs, title, &Agents::default(), Format::Html, &options, &mut file)
            .is_err()
        {
            return Ok(None);
        }
        file.finish().map(|()| Some(name))
    }

    /// Returns the group of a failure.
    fn group(&mut self, failure: &TestResult<'_>) -> &mut Group {
        let name = failure.case.name.split(' ').next().filter(|word| !word.is_empty());
        let name = name.unwrap_or("unreadable");
        let at = self.groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            self.groups.push(Group { name: name.to_owned(), count: 0, html: String::new() });
            self.groups.len() - 1
        });
        &mut self.groups[at]
    }

    /// Returns the text of the index.
    fn text(&self, totals: &Totals) -> String {
        let modes: Vec<&str> = self.modes.iter().map(String::as_str).collect();
        let title = text(["claw-replay ", &modes.join(", ")].concat().trim_end());
        let mut out = head("en", &title, "");
        out.push_str(&format!(
            "<body>\n<header>\n<h1>{title}</h1>\n<p class=\"facts\">{}</p>\n</header>\n<main>\n",
            text(&totals.text())
        ));
        for (index, Group { name, count, html }) in self.groups.iter().enumerate() {
            let (id, name, failures) = (index + 1, text(name), counted(*count, "failure"));
            out.push_str(&format!(
                "<section id=\"group-{id}\">\n<h2><a href=\"#group-{id}\">{name}</a> {failures}</h2>\n{html}</section>\n"
            ));
        }
        if self.omitted > 0 {
            let more = counted(self.omitted, "more failure");
            out.push_str(&format!("<p class=\"facts\">{more}: see the reports.</p>\n"));
        }
        out + "</main>\n</body>\n</html>\n"
    }
}

impl Sink for Html {
    fn take(&mut self, report: &Report, results: &[TestResult<'_>], _: &str) -> anyhow::Result<()> {
        if !self.modes.contains(&report.mode) {
            self.modes.insert(report.mode.clone());
        }
        let failures: Vec<_> = results.iter().filter(|result| result.is_failure()).collect();
        failures.iter().for_each(|failure| self.group(failure).count += 1);
        let room = failures.len().min(MAX_FAILURES - self.listed);
        self.omitted += (failures.len() - room) as u64;
        if room > 0 {
            let page = self.page(&report.path)?;
            for failure in &failures[..room] {
                let article = article(failure, &report.path, page.as_deref());
                self.group(failure).html.push_str(&article);
            }
            self.listed += room;
            self.pages.extend(page);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, totals: &Totals) -> anyhow::Result<()> {
        let text = self.text(totals);
        self.index.write_all(text.as_bytes())?;
        let Html { directory, index, pages, _lock: lock, .. } = *self;
        index.finish()?;
        remove_old_pages(&directory.join(PAGES), &pages);
        drop(lock);
        Ok(())
    }
}

/// Locks a directory. Returns `None` where there are no locks.
///
/// # Errors
/// 75 if another run writes a report into it.
fn lock(directory: &Path) -> anyhow::Result<Option<File>> {
    let Ok(lock) = File::open(directory) else { return Ok(None) };
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => {
            let shown = directory.display();
            let text = format!("cannot write '{shown}': another run writes a report there");
            fail(Exit::TryLater, text + "; give another directory, or wait until it ends")
        }
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Removes the pages of earlier reports.
fn remove_old_pages(directory: &Path, pages: &HashSet<String>) {
    for entry in read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_page_name(&name) && !pages.contains(&name) {
            // A page that cannot be removed does no harm.
            let _ = remove_file(entry.path());
        }
    }
}

/// Returns the name of the page of a transcript, the same in each run.
fn page_name(path: &str) -> String {
    digest(path) + ".html"
}

fn is_page_name(name: &str) -> bool {
    let digits = name.strip_suffix(".html").unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn article(failure: &TestResult<'_>, path: &str, page: Option<&str>) -> String {
    let name = text(path);
    let name = match page {
        Some(page) => format!("<a href=\"{PAGES}/{page}\">{name}</a>"),
        None => name,
    };
    let line = failure.case.line.map(|line| format!(" · line {line}")).unwrap_or_default();
    let (case, message) = (text(&failure.case.name), text(&failure.case.message));
    let detail = failure.case.detail.as_ref().filter(|detail| !detail.is_empty()).map(|detail| {
        let detail = printable_lines(&abridged(detail, MAX_DETAIL)).into_owned();
        let detail = escape(detail.trim_end_matches('\n'));
        format!("<details>\n<summary>detail</summary>\n<pre tabindex=\"0\">\n{detail}</pre>\n</details>\n")
    });
    format!(
        "<article>\n<h3>{name} <small>{case}{line}</small></h3>\n<div class=\"plain\">{message}</div>\n{}</article>\n",
        detail.unwrap_or_default()
    )
}

/// Escapes one line of text.
fn text(text: &str) -> String {
    escape(printable(text)).into_owned()
}
