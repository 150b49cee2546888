//! call: requests each reply again, with the conversation before it, and compares the new reply with the recorded one.
//!
//! Each call runs `claw-call`, so that only one program uses the network, and its options and recordings also work
//! here. Starting it takes about two milliseconds.

mod batch;
mod client;
mod compare;
mod expected;
mod limits;
mod numbers;
mod options;
mod reply;
mod turns;

use crate::call::batch::Batch;
use crate::call::client::{AnswersFrom, CallOutcome, Client};
use crate::call::compare::{CaseName, Comparison, Difference};
use crate::call::expected::Expected;
use crate::call::limits::RunLimits;
use crate::call::numbers::CallNumbers;
pub use crate::call::options::CallArgs;
use crate::call::options::TurnChoice;
use crate::call::reply::{NewReply, Reply};
use crate::call::turns::{RecordedReply, Turn};
use crate::report::{Case, Outcome, Report};
use crate::run::Mode;
use crate::transcript::Transcript;
use clawutils::cli::budget::Extras;
use clawutils::cli::model::ModelArgs;
use clawutils::estimate::{Estimate, Method, Request};
use clawutils::exit::{self, Exit};
use clawutils::messages::Message;
use clawutils::messages::rebuild::{self, RebuildOptions};
use std::path::Path;

/// The mode of `claw-replay call`.
pub struct Call {
    options: String,
    turns: TurnChoice,
    comparison: Comparison,
    repeat: u64,
    /// The number of repetitions that must pass.
    required: u64,
    update: bool,
    /// The maximum number of calls for one repetition: in a replay the number of recordings, else 1.
    recordings: u64,
    rebuild: RebuildOptions,
    extras: Extras,
    /// The model that is called, and the file of models.
    model: ModelArgs,
    limits: RunLimits,
    client: Client,
    /// The batches that the answers come in, if they do.
    batch: Option<Batch>,
}

/// The outcome of one repetition.
enum Attempt {
    Same,
    Different(Difference, Reply),
    Failed(String),
}

/// The state of a run on one transcript.
struct TranscriptRun<'r> {
    mode: &'r Call,
    transcript: &'r Transcript,
    expected: Expected,
    numbers: CallNumbers,
    cases: Vec<Case>,
    /// True if a call failed.
    has_failed: bool,
}

impl Mode for Call {
    fn name(&self) -> &'static str {
        "call"
    }

    fn options(&self) -> String {
        self.options.clone()
    }

    fn beside(&self, path: &Path) -> String {
        let expected = std::fs::read(expected::path_for(path)).unwrap_or_default();
        String::from_utf8_lossy(&expected).into_owned()
    }

    fn asks(&self) -> bool {
        self.batch.as_ref().is_some_and(Batch::asks)
    }

    fn get(&self) -> anyhow::Result<()> {
        self.batch.as_ref().map_or(Ok(()), |batch| batch.get(&self.client))
    }

    fn run(&self, transcript: &Transcript) -> anyhow::Result<Report> {
        let turns = turns::read(&transcript.input)?;
        if turns.is_empty() {
            transcript.require_record()?;
        }
        let mut run = TranscriptRun {
            mode: self,
            transcript,
            expected: Expected::read(&transcript.path)?,
            numbers: CallNumbers::default(),
            cases: Vec::new(),
            has_failed: false,
        };
        let chosen = self.turns.choose(&turns);
        // A transcript without any of the chosen turns would otherwise pass, although nothing was compared.
        let missing = match chosen.iter().any(Result::is_ok) {
            true => Outcome::Skipped,
            false => Outcome::Failed,
        };
        for chosen in chosen {
            match chosen {
                Ok(turn) => run.turn(turn)?,
                Err(number) => {
                    let why = "the transcript has no such turn";
                    run.cases.push(Case::new(format!("turn {number}"), missing, why));
                }
            }
        }
        let ids = turns.iter().flat_map(|turn| &turn.replies).map(|reply| reply.id.as_str());
        if !self.asks() {
            run.expected.write(ids)?;
        }
        let numbers = run.numbers.to_members(turns.len(), self.repeat);
        let report = Report::new(self.name(), &transcript.name, run.cases, numbers);
        let is_lasting = !run.has_failed && !run.expected.is_changed();
        Ok(Report { is_lasting, ..report })
    }
}

impl TranscriptRun<'_> {
    /// Requests all replies of a turn again.
    fn turn(&mut self, turn: &Turn) -> anyhow::Result<()> {
        if turn.replies.is_empty() {
            let name = format!("turn {}", turn.number);
            self.cases.push(Case::new(name, Outcome::Skipped, "no reply is recorded"));
        }
        for (index, recorded) in turn.replies.iter().enumerate() {
            let case = self.case(&turn.name(index), recorded)?;
            self.cases.push(Case { line: recorded.line, ..case });
        }
        Ok(())
    }

    /// Requests a reply again as often as `--repeat` says, and returns its case.
    fn case(&mut self, name: &str, recorded: &RecordedReply) -> anyhow::Result<Case> {
        let before = [self.transcript.input.prefix(recorded.offset)];
        let messages = rebuild::from_inputs(&before, &self.mode.rebuild)?.messages;
        let wanted = self.expected.get(&recorded.id).unwrap_or(&recorded.reply).clone();
        let (mut passed, mut first) = (0, None);
        for number in 1..=self.mode.repeat {
            match self.attempt(name, (&recorded.id, number), &messages, &wanted)? {
                Attempt::Same => passed += 1,
                Attempt::Different(difference, new) if self.mode.update => {
                    self.update(name, recorded, &new)?;
                    let case = Case::new(name, Outcome::Passed, "the expected reply was updated");
                    return Ok(Case { detail: difference.detail, ..case });
                }
                Attempt::Different(difference, _) => {
                    first.get_or_insert(difference);
                }
                Attempt::Failed(message) => {
                    self.has_failed = true;
                    first.get_or_insert(Difference { message, detail: None });
                }
            }
        }
        self.numbers.note(name, passed);
        Ok(self.mode.case(name, passed, first))
    }

    /// Requests a reply once and compares it. If the request was recorded several times, it is enough that one
    /// recording has the wanted reply: the others may come from other attempts, or from sessions with the same
    /// beginning. `attempt` is the id of the recorded reply, and the number of the attempt.
    fn attempt(
        &mut self,
        name: &str,
        attempt: (&str, u64),
        messages: &[Message<'_>],
        wanted: &Reply,
    ) -> anyhow::Result<Attempt> {
        let mut first = None;
        for recording in 1..=self.mode.recordings {
            let attempt = match self.call(attempt, messages, recording)? {
                CallOutcome::Reply(new) => self.compare(name, wanted, new)?,
                CallOutcome::Refused(message) => Attempt::Failed(message),
                CallOutcome::NotRecorded(message) | CallOutcome::Failed(message) => {
                    return Ok(first.unwrap_or(Attempt::Failed(message)));
                }
            };
            match (&attempt, &first) {
                (Attempt::Same, _) => return Ok(attempt),
                (Attempt::Different(..), Some(Attempt::Failed(_))) | (_, None) => {
                    first = Some(attempt);
                }
                _ => {}
            }
        }
        Ok(first.unwrap_or_else(|| Attempt::Failed("there are no recordings".to_owned())))
    }

    /// Sends messages, or looks for the answer that came in a batch.
    fn call(
        &self,
        (id, number): (&str, u64),
        messages: &[Message<'_>],
        recording: u64,
    ) -> anyhow::Result<CallOutcome> {
        let Some(batch) = &self.mode.batch else {
            return self.mode.call(messages, recording);
        };
        let answers = batch.answers(&self.transcript.path, id, number)?;
        let outcome = self.mode.client.call(messages, AnswersFrom::Batch(&answers))?;
        if let CallOutcome::NotRecorded(_) = &outcome {
            batch.miss();
        }
        Ok(outcome)
    }

    fn compare(&mut self, name: &str, wanted: &Reply, new: NewReply) -> anyhow::Result<Attempt> {
        self.numbers.add(&new, &self.mode.limits);
        let case = CaseName { transcript: &self.transcript.name, case: name };
        match self.mode.comparison.compare(case, wanted, &new.reply) {
            Ok(None) => Ok(Attempt::Same),
            Ok(Some(difference)) => Ok(Attempt::Different(difference, new.reply)),
            Err(error) if exit::status(&error) == Exit::Config => Err(error),
            Err(error) => Ok(Attempt::Failed(exit::text(&error))),
        }
    }

    /// Stores the new reply as the expected one. If it is the same as the recorded reply, removes the stored
    /// expectation instead.
    fn update(&mut self, name: &str, recorded: &RecordedReply, new: &Reply) -> anyhow::Result<()> {
        let case = CaseName { transcript: &self.transcript.name, case: name };
        let is_recorded = self.mode.comparison.compare(case, &recorded.reply, new)?.is_none();
        self.expected.set(&recorded.id, name, (!is_recorded).then_some(new));
        Ok(())
    }
}

impl Call {
    /// Sends messages, within the limits.
    fn call(&self, messages: &[Message<'_>], recording: u64) -> anyhow::Result<CallOutcome> {
        let from = AnswersFrom::Recording(recording);
        if !self.limits.is_limited() {
            return self.client.call(messages, from);
        }
        let Extras { system, tools } = &self.extras;
        let (system, tools) = (system.as_deref(), tools.as_deref());
        let name = self.model.model();
        let model = name.as_deref().map(|name| self.model.known(name)).transpose()?;
        let request = Request { messages, system, tools, model };
        let prompt = Estimate::of(request, Method::Script).tokens;
        let reserved = match self.limits.reserve(prompt) {
            Ok(reserved) => reserved,
            Err(why) => return Ok(CallOutcome::Failed(why)),
        };
        let outcome = self.client.call(messages, from)?;
        match &outcome {
            CallOutcome::Reply(NewReply { model, counts, .. }) => {
                self.limits.settle(reserved, model.as_deref(), *counts);
            }
            CallOutcome::NotRecorded(_) => self.limits.release(reserved),
            // The call may have cost something, so the estimate remains reserved.
            CallOutcome::Refused(_) | CallOutcome::Failed(_) => {}
        }
        Ok(outcome)
    }

    /// Returns the case for a reply that passed in `passed` repetitions. `first` is the first difference or failure.
    fn case(&self, name: &str, passed: u64, first: Option<Difference>) -> Case {
        let outcome = if passed >= self.required { Outcome::Passed } else { Outcome::Failed };
        let (message, detail) = match first {
            Some(Difference { message, detail }) => (message, detail),
            None => ("the reply is the same".to_owned(), None),
        };
        let message = match self.repeat {
            1 => message,
            repeat => format!("{passed} of {repeat} passed, {} required: {message}", self.required),
        };
        Case { detail, ..Case::new(name, outcome, message) }
    }
}
