//! The runner: works on transcripts with several threads, and passes the reports on in the order of the paths.
//!
//! Each thread takes the next path and makes its report. Then it passes on the reports that are next in order, unless
//! another thread is already doing so. That thread continues until the next report is missing, so no thread waits while
//! another writes. A thread waits before it takes a path that is too far ahead of the next report, so the number of reports
//! in memory is bounded.

use crate::paths::{FoundPath, PathArgs, Paths};
use crate::report::{Report, Status};
use crate::sinks::{Reporter, SinkArgs, Totals};
use crate::state::{self, Key, State};
use crate::transcript::{OpenFile, Transcript};
use clawutils::cli::{self, Log};
use clawutils::exit::{self, Error, Exit, fail};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// The number of reports per thread that may wait for an earlier report.
const AHEAD: u64 = 16;

/// A way to examine transcripts. All threads share it.
pub trait Mode: Send + Sync {
    /// Returns the name of the mode, which is that of its subcommand.
    fn name(&self) -> &'static str;

    /// Describes the options that reports depend on. A stored report is used again only if this text is the same. A
    /// state file can hold reports for different options.
    fn options(&self) -> String;

    /// Describes the other files that the report on the transcript at `path` depends on. This text must also be the
    /// same for a stored report to be used again.
    fn beside(&self, _path: &Path) -> String {
        String::new()
    }

    /// Returns the name that reports give to the transcript at `path`.
    fn name_of(&self, path: &Path) -> String {
        path.display().to_string()
    }

    /// Examines a transcript.
    ///
    /// # Errors
    /// Fails if the transcript cannot be read; its report is then [`Report::unreadable`]. An error with status 2 or 78
    /// is not about the transcript, and ends the run.
    fn run(&self, transcript: &Transcript) -> anyhow::Result<Report>;

    /// Returns true if the next pass over the transcripts only asks for what the reports need. Its reports are dropped.
    fn asks(&self) -> bool {
        false
    }

    /// Gets what the last pass has asked for.
    ///
    /// # Errors
    /// Fails if it cannot be got. This ends the run.
    fn get(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns the report on the file at `path`, which is not a transcript because of `error`.
    ///
    /// # Errors
    /// Returns `error` unless the mode can report on such a file.
    fn run_on_other(&self, _path: &Path, error: anyhow::Error) -> anyhow::Result<Report> {
        Err(error)
    }
}

/// The options of all modes that work on transcripts.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The transcripts.
    #[command(flatten)]
    pub paths: PathArgs,
    /// File that keeps the reports, so that the next run does not make them again for unchanged transcripts
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// The options for threads, failures and output.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// The options for threads, failures and output.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkArgs {
    /// Number of transcripts to work on at a time (default: the number of processors)
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Stop after the first transcript that fails or is unreadable
    #[arg(long)]
    pub fail_fast: bool,
    /// Exit with 65 if a file is not a transcript
    #[arg(long)]
    pub strict: bool,
    /// The output.
    #[command(flatten)]
    pub sinks: SinkArgs,
}

/// Examines all transcripts of `args` and returns the exit status.
///
/// # Errors
/// Fails if the list of paths cannot be read or is empty, if the state file cannot be used, and if a report cannot be
/// written.
pub fn run(mode: impl Mode + 'static, args: RunArgs, log: Log) -> anyhow::Result<Exit> {
    let RunArgs { paths, state, work } = args;
    if state.is_some() {
        cli::survive_file_limits()?;
    }
    let may_be_none = paths.shard.is_some();
    // Create the state file before the paths are opened, so that it is skipped if it is in a directory of transcripts.
    let kept = state.as_deref().map(State::open).transpose()?.map(Arc::new);
    let mode: Arc<dyn Mode> = Arc::new(mode);
    let except: Vec<_> =
        state.into_iter().flat_map(|path| [state::answers_beside(&path), path]).collect();
    while mode.asks() {
        let from = (paths.clone().open(&except)?, kept.clone());
        let asking = WorkArgs { fail_fast: false, ..work.clone() };
        run_on(mode.clone(), from, &asking, Reporter::silent(), log)?;
        mode.get()?;
    }
    let from = (paths.open(&except)?, kept);
    let totals = run_on(mode, from, &work, work.sinks.open(work.strict)?, log)?;
    if totals.all() == 0 && !may_be_none {
        return fail(Exit::Failed, "the list of paths is empty; check the program that wrote it");
    }
    Ok(end(totals, &work, log))
}

/// Examines the transcripts of `paths`, passes the reports to `reporter`, and returns the totals.
///
/// # Errors
/// Fails if the paths cannot be read or a report cannot be written.
pub fn run_on(
    mode: Arc<dyn Mode>,
    (paths, state): (Paths, Option<Arc<State>>),
    work: &WorkArgs,
    reporter: Reporter,
    log: Log,
) -> anyhow::Result<Totals> {
    let jobs = work.jobs.or_else(|| thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    let run = Arc::new(Run {
        options: [env!("CARGO_PKG_VERSION"), mode.name(), &mode.options()].join(" "),
        mode,
        state,
        fail_fast: work.fail_fast,
        strict: work.strict,
        ahead: AHEAD * jobs as u64,
        paths: Mutex::new((0, paths)),
        queue: Mutex::new(Queue { workers: jobs, ..Queue::default() }),
        output: Mutex::new(Some(reporter)),
        changed: Condvar::new(),
        ended: Condvar::new(),
        is_over: AtomicBool::new(false),
        done: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let _progress = (!work.sinks.quiet).then(|| log.progress(run.progress()));
    // The threads are not joined: one may be waiting for the next line of standard input.
    for _ in 0..jobs {
        let run = run.clone();
        thread::spawn(move || run.work_to_the_end());
    }
    run.wait()
}

/// Reports the totals on standard error, and returns the exit status of the run.
pub fn end(totals: Totals, work: &WorkArgs, log: Log) -> Exit {
    if !work.sinks.quiet {
        log.note(&totals.text());
    }
    totals.exit(work.strict)
}

/// The state that all threads share.
struct Run {
    mode: Arc<dyn Mode>,
    /// The version, the mode and its options, which are part of the key of a stored report.
    options: String,
    state: Option<Arc<State>>,
    fail_fast: bool,
    strict: bool,
    /// The number of reports that may wait.
    ahead: u64,
    /// The number of paths that were taken, and the source of further ones.
    paths: Mutex<(u64, Paths)>,
    queue: Mutex<Queue>,
    /// The output, locked by the thread that passes reports on. It is unlocked while `queue` is locked, so no report is
    /// left in the queue. Only after an error is it unlocked earlier, and then the next report is missing for good. `None`
    /// at the end of the run.
    output: Mutex<Option<Reporter>>,
    /// Signals to the threads that reports were passed on, or that the run is over.
    changed: Condvar,
    /// Signals to the main thread that the run is over. Waking it for each report takes as long as checking a small
    /// transcript.
    ended: Condvar,
    is_over: AtomicBool,
    /// The number of reports that were passed on.
    done: AtomicU64,
    failed: AtomicU64,
}

/// A report that is complete.
struct Made {
    report: Report,
    /// The report as one line of JSON.
    json: String,
    /// The key of the report, if it is to be stored in the state file.
    key: Option<Key>,
}

/// The reports that wait for an earlier one, and the state of the threads.
#[derive(Default)]
struct Queue {
    /// The complete reports that were not passed on, by number.
    waiting: BTreeMap<u64, Made>,
    /// True if a thread waits before it takes a path. Otherwise the system call that wakes threads is spared.
    has_waiter: bool,
    /// The number of threads that are still working.
    workers: usize,
    error: Option<anyhow::Error>,
}

impl Run {
    /// Works on paths until there are no more. If this thread panics, ends the run, which would otherwise never end.
    fn work_to_the_end(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.work())).is_err() {
            let text = "a thread failed; report this as a bug in claw-replay";
            self.end(&mut lock(&self.queue), Some(Error::new(Exit::Failed, text).into()));
        }
    }

    /// Works on paths until there are no more.
    fn work(&self) {
        // If the list of paths cannot be read further, the other threads finish their reports.
        let taken = loop {
            match self.take_path() {
                Ok(Some((number, found))) => self.work_on(number, found),
                ended => break ended,
            }
        };
        let mut queue = lock(&self.queue);
        if let Err(error) = taken {
            queue.error.get_or_insert(error);
        }
        queue.workers -= 1;
        if queue.workers == 0 {
            self.end(&mut queue, None);
        }
    }

    fn work_on(&self, number: u64, found: FoundPath) {
        let FoundPath { path, error } = found;
        let (made, key) = error.map_or_else(|| self.examine(&path), |error| (Err(error), None));
        let report = match made {
            Ok(report) => report,
            Err(error) if matches!(exit::status(&error), Exit::Usage | Exit::Config) => {
                return self.end(&mut lock(&self.queue), Some(error));
            }
            Err(error) => Report::unreadable(self.mode.name(), &self.mode.name_of(&path), &error),
        };
        let is_read = report.status != Status::Unreadable || report.is_not_a_transcript();
        let is_lasting = is_read && report.is_lasting;
        let made = Made { json: report.to_json(), report, key: key.filter(|_| is_lasting) };
        if let Err(error) = self.deliver(number, made) {
            self.end(&mut lock(&self.queue), Some(error));
        }
    }

    /// Waits until the next path is not too far ahead of the reports, and returns it and its number. Returns `None` at
    /// the end of the run.
    fn take_path(&self) -> anyhow::Result<Option<(u64, FoundPath)>> {
        let mut paths = lock(&self.paths);
        let (number, source) = &mut *paths;
        let is_far =
            || *number >= self.done.load(Ordering::Relaxed) + self.ahead && !self.is_over();
        if is_far() {
            let must_wait = |queue: &mut Queue| {
                queue.has_waiter = is_far();
                queue.has_waiter
            };
            drop(self.changed.wait_while(lock(&self.queue), must_wait));
        }
        if self.is_over() {
            return Ok(None);
        }
        let Some(found) = source.next()? else { return Ok(None) };
        *number += 1;
        Ok(Some((*number - 1, found)))
    }

    /// Returns the report on a transcript, and its key if it is not from the state file.
    fn examine(&self, path: &Path) -> (anyhow::Result<Report>, Option<Key>) {
        let file = match OpenFile::open(path) {
            Ok(file) => file,
            Err(error) => return (Err(error), None),
        };
        let options = || self.options.clone() + &self.mode.beside(path);
        let key = self.state.as_ref().map(|_| Key::new(&options(), path, &file.meta));
        let known = self.state.as_ref().zip(key.as_ref()).and_then(|(state, key)| state.get(key));
        match known {
            Some(report) => (Ok(report), None),
            None => (self.examine_file(path, file), key),
        }
    }

    fn examine_file(&self, path: &Path, file: OpenFile) -> anyhow::Result<Report> {
        match file.into_transcript() {
            Ok(transcript) => self.mode.run(&transcript),
            Err(error) if exit::status(&error) == Exit::Data => self.mode.run_on_other(path, error),
            Err(error) => Err(error),
        }
    }

    /// Adds a complete report. Passes on all reports that are next in order, unless another thread is already doing so.
    fn deliver(&self, number: u64, made: Made) -> anyhow::Result<()> {
        let mut queue = lock(&self.queue);
        queue.waiting.insert(number, made);
        let Ok(mut output) = self.output.try_lock() else { return Ok(()) };
        while let Some(reporter) = output.as_mut().filter(|_| !self.is_over()) {
            let mut ready = self.take_ready(&mut queue);
            if ready.is_empty() {
                break;
            }
            drop(queue);
            let must_stop = self.pass_on(reporter, &mut ready)?;
            queue = lock(&self.queue);
            self.count(&ready);
            if std::mem::take(&mut queue.has_waiter) {
                self.changed.notify_all();
            }
            if must_stop {
                self.end(&mut queue, None);
            }
        }
        drop(output);
        Ok(())
    }

    /// Takes the reports that are next in order.
    fn take_ready(&self, queue: &mut Queue) -> Vec<Made> {
        let numbers = self.done.load(Ordering::Relaxed)..;
        numbers.map_while(|number| queue.waiting.remove(&number)).collect()
    }

    /// Passes reports on. If the run must stop after one of them, drops those after it, and returns true.
    fn pass_on(&self, reporter: &mut Reporter, ready: &mut Vec<Made>) -> anyhow::Result<bool> {
        let (mut lines, mut last) = (String::new(), None);
        for (index, Made { report, json, key }) in ready.iter().enumerate() {
            reporter.take(report, json)?;
            lines.extend(key.as_ref().map(|key| state::line(key, json)));
            if reporter.stops(report, self.fail_fast) {
                last = Some(index);
                break;
            }
        }
        if let Some(last) = last {
            ready.truncate(last + 1);
        }
        if let Some(state) = self.state.as_ref().filter(|_| !lines.is_empty()) {
            state.append(&lines)?;
        }
        reporter.flush()?;
        Ok(last.is_some())
    }

    /// Counts reports that were passed on.
    fn count(&self, reports: &[Made]) {
        let failed = reports.iter().filter(|made| made.report.is_failure(self.strict)).count();
        self.failed.fetch_add(failed as u64, Ordering::Relaxed);
        self.done.fetch_add(reports.len() as u64, Ordering::Relaxed);
    }

    /// Ends the run. Of several errors, the first is kept.
    fn end(&self, queue: &mut Queue, error: Option<anyhow::Error>) {
        if let Some(error) = error {
            queue.error.get_or_insert(error);
        }
        self.is_over.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        self.ended.notify_all();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits for the end of the run, and completes the output.
    fn wait(&self) -> anyhow::Result<Totals> {
        let queue = self.ended.wait_while(lock(&self.queue), |_| !self.is_over());
        let error = queue.unwrap_or_else(PoisonError::into_inner).error.take();
        // A thread may still be passing on reports.
        let reporter = lock(&self.output).take();
        match (error, reporter) {
            (Some(error), _) => Err(error),
            (None, reporter) => reporter.map_or(Ok(Totals::default()), Reporter::finish),
        }
    }

    /// Returns a function that describes the progress.
    fn progress(self: &Arc<Self>) -> impl FnMut() -> Option<String> + Send + 'static {
        let (run, begun) = (self.clone(), Instant::now());
        move || {
            let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
            let (done, failed) = (count(&run.done), count(&run.failed));
            let rate = done as f64 / begun.elapsed().as_secs_f64().max(0.001);
            Some(format!("{done} transcripts, {rate:.0} per second, {failed} failed"))
        }
    }
}

/// Locks what threads share, also if one of them has panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use clawutils::cli::LogArgs;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        work: WorkArgs,
        #[command(flatten)]
        log: LogArgs,
    }

    struct Panicking;

    impl Mode for Panicking {
        fn name(&self) -> &'static str {
            "panicking"
        }

        fn options(&self) -> String {
            String::new()
        }

        fn run(&self, _: &Transcript) -> anyhow::Result<Report> {
            panic!("as intended")
        }
    }

    #[test]
    fn a_panic_ends_the_run() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for jobs in ["1", "3"] {
            let Args { work, log } = Args::parse_from(["test", "--quiet", "--jobs", jobs]);
            let paths = Paths::of(vec![file.path().to_owned()]);
            let error = run_on(
                Arc::new(Panicking),
                (paths, None),
                &work,
                Reporter::silent(),
                log.open("test"),
            )
            .unwrap_err();
            assert!(error.to_string().starts_with("a thread failed; "), "{error}");
        }
    }
}
