//! Runs tool calls. Each call runs one executable and produces one result record; several calls run in parallel.
//!
//! A call that fails in any way still has a result, with `is_error` and an explanation for the model. Only a call that
//! was interrupted has no result, so that it can be run again.

pub mod child;
pub mod confined;
pub mod environment;
pub mod output;
pub mod running;
pub mod tools;

use crate::exit::{Error, Exit};
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::record::{self, Body};
use child::{EndedTool, Groups};
use output::ToolOutput;
pub use running::Running;
use std::collections::HashSet;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum number of bytes of a failed tool's standard error that go into the result.
const MAX_STDERR: usize = 4000;

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input, as JSON.
    pub input: String,
}

/// Reads the tool calls from records, one per line, in order. Duplicate calls and calls with a result are dropped.
///
/// # Errors
/// Status 65 if a line is not a record.
pub fn calls(input: &str, bytes: &[u8]) -> anyhow::Result<Vec<ToolCall>> {
    let (mut calls, mut seen, mut done) = (Vec::new(), HashSet::new(), HashSet::new());
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let bad = |why: String| {
            Error::new(
                Exit::Data,
                format!(
                    "cannot run calls of '{input}': line {}: {why}; the input must be the output of claw-rebuild --open",
                    index + 1
                ),
            )
        };
        let text = std::str::from_utf8(line).map_err(|error| bad(error.to_string()))?;
        let object = Object::parse(text).map_err(|_| bad("not a JSON object".to_owned()))?;
        match record::parse(&object).map_err(bad)? {
            Body::ToolUse { id, name, input } if seen.insert(id.to_string()) => {
                let name = json::string(&name).unwrap_or_default().into_owned();
                calls.push(ToolCall { id: id.into_owned(), name, input: input.into_owned() });
            }
            Body::ToolResult { id, .. } => drop(done.insert(id.into_owned())),
            _ => {}
        }
    }
    calls.retain(|call| !done.contains(&call.id));
    Ok(calls)
}

/// A tool call and the executable to run for it.
#[derive(Debug)]
pub struct Job {
    /// The call.
    pub call: ToolCall,
    /// The executable, or the reason why the call is not run.
    pub tool: Result<PathBuf, String>,
}

/// Settings for running tools.
#[derive(Debug)]
pub struct ExecSettings {
    /// The maximum number of tools that run at the same time.
    pub jobs: NonZeroUsize,
    /// The time limit for each tool.
    pub timeout: Duration,
    /// The maximum amount of a tool's output in the result, in bytes.
    pub max_output: usize,
    /// The directory for files with the outputs that exceed `max_output`.
    pub keep: Option<PathBuf>,
    /// The working directory of the tools.
    pub workspace: PathBuf,
    /// The complete environment of the tools.
    pub environment: Vec<(OsString, OsString)>,
    /// Tracks the calls that are running.
    pub running: Running,
}

/// An event while tools run.
#[derive(Debug)]
pub enum JobEvent {
    /// The call with this number has ended. The record is its result, or `None` if it was interrupted.
    Ended(usize, Option<String>),
    /// A signal arrived, and all tools must be ended.
    Signal(i32),
}

/// Runs all jobs and passes the results to `write` in the order of the calls, each as soon as possible. Returns the
/// signal that stopped the jobs, if there was one. The results of calls that ended before the signal are written
/// as well.
///
/// # Errors
/// Returns the error of `write`, after all running tools have been ended.
pub fn run(
    jobs: &[Job],
    settings: &ExecSettings,
    (sender, events): (&Sender<JobEvent>, &Receiver<JobEvent>),
    mut write: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Option<i32>> {
    let (groups, next) = (Groups::default(), AtomicUsize::new(0));
    let mut results = Results { records: vec![None; jobs.len()], written: 0 };
    thread::scope(|scope| {
        for _ in 0..settings.jobs.get().min(jobs.len()) {
            let (sender, next, groups) = (sender.clone(), &next, &groups);
            scope.spawn(move || work(jobs, next, groups, settings, &sender));
        }
        let (mut unfinished, mut signal, mut outcome) = (jobs.len(), None, Ok(()));
        while unfinished > 0
            && let Ok(event) = events.recv()
        {
            match event {
                JobEvent::Signal(number) => {
                    groups.end_all();
                    signal = Some(number);
                }
                JobEvent::Ended(number, record) => {
                    results.records[number] = record;
                    unfinished -= 1;
                }
            }
            outcome = outcome.and_then(|()| results.write_next(&mut write));
            if outcome.is_err() {
                groups.end_all();
            }
        }
        outcome?;
        // `write_next` stops at an interrupted job, which has no record; also write the records after it.
        results.records.iter().flatten().try_for_each(|record| write(record))?;
        Ok(signal)
    })
}

/// The records of ended jobs, by number.
struct Results {
    records: Vec<Option<String>>,
    /// The number of records written.
    written: usize,
}

impl Results {
    /// Writes the next records in order, up to the first job that has not ended.
    fn write_next(
        &mut self,
        write: &mut impl FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while let Some(record) = self.records.get_mut(self.written).and_then(Option::take) {
            self.written += 1;
            write(&record)?;
        }
        Ok(())
    }
}

/// Runs jobs that no other thread has started, until none is left.
fn work(
    jobs: &[Job],
    next: &AtomicUsize,
    groups: &Groups,
    settings: &ExecSettings,
    sender: &Sender<JobEvent>,
) {
    while let number = next.fetch_add(1, Ordering::Relaxed)
        && let Some(job) = jobs.get(number)
    {
        settings.running.begin(number, &job.call.name);
        let record = job.perform(number, groups, settings);
        settings.running.end(number);
        // This cannot fail: the receiver lives until all jobs have ended.
        let _ = sender.send(JobEvent::Ended(number, record));
    }
}

impl Job {
    /// Runs the tool, if it may run, and returns the result record, or `None` if it was interrupted.
    fn perform(&self, number: usize, groups: &Groups, settings: &ExecSettings) -> Option<String> {
        let ToolCall { name, input, .. } = &self.call;
        let path = match &self.tool {
            Ok(path) => path,
            Err(why) => return Some(self.failed(why)),
        };
        let mut command = Command::new(path);
        command.current_dir(&settings.workspace).env_clear();
        command.envs(settings.environment.iter().map(|(name, value)| (name, value)));
        let keep = settings.keep.as_ref().map(|directory| directory.join(file_name(name, number)));
        let outputs = [ToolOutput::new(settings.max_output, keep), ToolOutput::end(MAX_STDERR)];
        match child::run(groups, command, input.clone(), settings.timeout, outputs) {
            Ok(ended) => ended.map(|ended| self.result(&ended, settings)),
            Err(error) => Some(self.failed(&format!("tool '{name}' cannot be run: {error}"))),
        }
    }

    /// Returns the result record of a tool that has ended.
    fn result(&self, ended: &EndedTool, settings: &ExecSettings) -> String {
        let stdout = EndedTool::text(&ended.stdout);
        let how = match (ended.status.code(), ended.status.signal()) {
            _ if ended.is_late => {
                format!("did not end in {} s and was killed", settings.timeout.as_secs_f64())
            }
            _ if ended.is_endless() => {
                format!("wrote more than {} bytes and was stopped", output::MAX_OUTPUT)
            }
            (Some(0), _) => return self.record(&stdout, false),
            (Some(status), _) => format!("failed with status {status}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
        };
        let mut text = format!("tool '{}' {how}", self.call.name);
        for (title, output) in
            [("standard error", EndedTool::text(&ended.stderr)), ("standard output", stdout)]
        {
            let output = output.trim_end();
            if !output.is_empty() {
                text.push_str(&format!("\n{title}:\n{output}"));
            }
        }
        self.failed(&text)
    }

    fn failed(&self, why: &str) -> String {
        self.record(why, true)
    }

    fn record(&self, content: &str, is_error: bool) -> String {
        Members::of_type("tool_result")
            .string("tool_use_id", &self.call.id)
            .string("content", content)
            .flag("is_error", is_error)
            .into_json()
    }
}

/// Returns a name for the file with a long output, unique for each call of each process.
fn file_name(tool: &str, number: usize) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{tool}-{}-{}-{number}", since.as_micros(), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d52_duplicate_calls_and_calls_with_results_are_not_run() {
        let call = |id: &str| {
            format!(r#"{{"type":"tool_use","tool_use_id":"{id}","name":"f","input":{{"a":1e2}}}}"#)
        };
        let done = r#"{"type":"tool_result","tool_use_id":"b","content":""}"#;
        let records =
            [r#"{"type":"user","content":"x"}"#, "", &call("a"), &call("b"), &call("a"), done]
                .join("\n");
        let expected = ToolCall { id: "a".into(), name: "f".into(), input: r#"{"a":1e2}"#.into() };
        assert_eq!(calls("x", records.as_bytes()).unwrap(), [expected]);
    }

    #[test]
    fn an_invalid_record_is_an_error_with_its_line() {
        for bad in ["x", "{}", "[1]", r#"{"type":"tool_use"}"#] {
            let error = calls("in", format!("\n{bad}\n").as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with("cannot run calls of 'in': line 2: "), "{error}");
        }
    }
}
