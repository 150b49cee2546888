//! Makes calls with `claw-call`, which is found in `PATH` and gets the settings of this run.

use crate::call::reply::NewReply;
use clawutils::exit::{Exit, fail};
use clawutils::json::Object;
use clawutils::messages::{self, Message};
use clawutils::printable::printable;
use clawutils::process::{self, EndedCommand};
use clawutils::settings::{Origin, Setting, SettingValue};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program that calls the model.
const PROGRAM: &str = "claw-call";
/// Variables that are set to the empty string for `claw-call`: claw-replay itself applies the limits, to all calls of
/// a run together, and earlier calls of a session do not count towards them.
const CLEARED: [&str; 4] = ["CLAW_PRICES", "CLAW_MAX_TOTAL", "CLAW_MAX_COST", "CLAW_SESSION"];

/// Runs `claw-call` with the settings of this run.
#[derive(Clone, Debug)]
pub struct Client {
    /// Environment variables for `claw-call`, one for each setting given on the command line. `claw-call` reads the
    /// other settings from the environment and the configuration file itself.
    variables: Vec<(String, OsString)>,
    arguments: Vec<String>,
}

/// The outcome of a call.
#[derive(Debug)]
pub enum CallOutcome {
    /// The model replied.
    Reply(NewReply),
    /// There is no further recording of the request.
    NotRecorded(String),
    /// The provider refused the request or failed.
    Refused(String),
    /// The call failed without a usable answer, for this reason.
    Failed(String),
}

/// The place from which the answer to a call comes.
#[derive(Clone, Copy, Debug)]
pub enum AnswersFrom<'d> {
    /// The provider or, in a replay, the recordings of the request from this number on.
    Recording(u64),
    /// A directory of answers that came in batches.
    Batch(&'d Path),
}

impl Client {
    fn program(&self) -> Command {
        let mut program = Command::new(PROGRAM);
        program.envs(self.variables.iter().cloned());
        program
    }

    /// Sends the requests that are queued in the directories `names` of `dir` as batches, and waits for the answers. The limits
    /// on tokens and cost apply before anything is sent. Messages go to standard error.
    ///
    /// # Errors
    /// Fails with 78 if the program cannot be run.
    pub fn batch(&self, dir: &Path, options: &[String], names: String) -> anyhow::Result<Exit> {
        let mut program = self.program();
        program.arg("--batch").arg(dir).args(options).env("CLAW_SESSION", "");
        let ended = run(&mut program, names.into_bytes())?;
        Ok(ended.exit().unwrap_or(Exit::Failed))
    }

    /// Creates a client with the settings of a command line, and further arguments.
    pub fn new(settings: &[(Setting, SettingValue)], arguments: Vec<String>) -> Client {
        let given = settings.iter().filter(|(_, value)| value.origin == Origin::Flag);
        let variable = |(setting, value): &(Setting, SettingValue)| {
            (setting.variable.clone(), setting.join(&value.texts))
        };
        Client { variables: given.map(variable).collect(), arguments }
    }

    /// Sends messages, or looks up their answer.
    ///
    /// # Errors
    /// Fails with 78 if the program cannot be run or reports an error in the settings.
    pub fn call(
        &self,
        messages: &[Message<'_>],
        from: AnswersFrom<'_>,
    ) -> anyhow::Result<CallOutcome> {
        let mut input = Vec::new();
        messages::write(messages, &mut input)?;
        let mut program = self.program();
        program.args(["--log", "json"]).args(&self.arguments);
        match from {
            AnswersFrom::Recording(number) => program.arg(format!("--recording={number}")),
            AnswersFrom::Batch(dir) => program.arg("--queue").arg(dir),
        };
        program.envs(CLEARED.map(|name| (name, ""))).stderr(Stdio::piped());
        let ended = run(&mut program, input)?;
        let (message, is_answer) = last_diagnostic(&ended.stderr);
        match ended.exit() {
            Some(Exit::Done | Exit::CutOff) => {
                let reply = NewReply::read(ended.stdout);
                let none = || CallOutcome::Failed(format!("'{PROGRAM}' wrote no reply"));
                Ok(reply.map_or_else(none, CallOutcome::Reply))
            }
            Some(Exit::Usage | Exit::Config) => fail(Exit::Config, message),
            Some(Exit::NotRecorded) => Ok(CallOutcome::NotRecorded(message)),
            _ if message.is_empty() => {
                let error = ended.failure(PROGRAM, "cannot call the model");
                Ok(CallOutcome::Failed(error.to_string()))
            }
            _ if is_answer => Ok(CallOutcome::Refused(message)),
            _ => Ok(CallOutcome::Failed(message)),
        }
    }
}

/// Runs `claw-call`.
fn run(program: &mut Command, input: Vec<u8>) -> anyhow::Result<EndedCommand> {
    match process::run_program(program, PROGRAM, input, None) {
        Err(error) if is_missing(&error) => {
            let text = format!("cannot run '{PROGRAM}': no such program; check PATH");
            fail(Exit::Config, text)
        }
        ended => ended,
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Returns the message of the last diagnostic, on one line, and true if it is about a provider's answer.
fn last_diagnostic(stderr: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(stderr);
    let read = |line: &str| {
        let object = Object::parse(line).ok()?;
        let is_answer = object.string("rule").is_some_and(|rule| rule != "preflight");
        Some((printable(&object.string("message")?).into_owned(), is_answer))
    };
    text.lines().rev().find_map(read).unwrap_or_default()
}
