//! Turns sessions into examples for fine-tuning, one for each session.
//!
//! An example has the accepted turns of its session: those that ended with a complete reply and in which each call has its
//! result. A turn that was interrupted, failed or withdrawn is left out, and so is what programs put into messages of the
//! user: the model is to learn how to answer the person. Records that compactions cover are included, and results are
//! complete, because a summary is no reply of the model.

mod openai;
mod sharegpt;
mod tools;

use crate::injected::without_reminders;
use crate::input::Input;
use crate::provider::FAILED;
use crate::record::content::Role;
use crate::show::outcome::Outcome;
use crate::show::walk::Reading;
use crate::show::{CallOutcome, Item, ShowNotes, ShowOptions, ShownEntry, ShownPart};
use std::collections::{BTreeMap, HashMap};

/// The form of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The messages of chat completions, as OpenAI's fine-tuning takes them.
    Openai,
    /// ShareGPT's conversations, with the roles for calls and results that LLaMA-Factory reads.
    ShareGpt,
}

/// The example of a session.
#[derive(Debug, Default)]
pub struct Example {
    /// The example as a line of JSON; empty if no turn is accepted.
    pub line: String,
    /// The number of turns in it.
    pub turns: usize,
    /// What was left out, with the number of its occurrences.
    pub left_out: LeftOut,
}

/// What examples do not have, by its name, with the number of its occurrences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<&'static str, u64>);

impl LeftOut {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds what other examples do not have.
    pub fn append(&mut self, other: &LeftOut) {
        other.0.iter().for_each(|(what, count)| *self.0.entry(what).or_default() += count);
    }

    /// Returns a line for each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.iter().map(|(what, count)| format!("left out: {what} ({count})")).collect()
    }
}

/// An accepted turn.
#[derive(Clone, Debug, Default)]
struct Turn {
    prompt: Vec<Part>,
    replies: Vec<Reply>,
}

/// A part of a prompt.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    /// A block with an image, as JSON.
    Image(String),
}

/// A reply: text, and then the calls that the model made. The last reply of a turn has no calls.
#[derive(Clone, Debug, Default)]
struct Reply {
    text: String,
    calls: Vec<Call>,
}

/// A tool call and its result.
#[derive(Clone, Debug)]
struct Call {
    /// The id in the session.
    id: String,
    /// The name, which has only characters that all forms permit.
    name: String,
    /// The input, a JSON object.
    input: String,
    /// The text of the result; `None` only while the turn is read.
    result: Option<String>,
}

/// Makes the example of a session.
///
/// # Errors
/// If an input cannot be read.
pub fn example(
    inputs: &[Input],
    form: Form,
    options: &ShowOptions,
) -> anyhow::Result<(Example, ShowNotes)> {
    let mut reader = Reader::default();
    let reading = Reading::new(inputs, options, ShownPart::default())?;
    let notes = reading.visit(&mut |entry| reader.take(entry))?;
    reader.end_turn();
    let Reader { turns, mut left_out, .. } = reader;
    let line = match form {
        _ if turns.is_empty() => String::new(),
        Form::Openai => openai::line(&turns),
        Form::ShareGpt => sharegpt::line(&turns, &mut left_out),
    };
    Ok((Example { line, turns: turns.len(), left_out }, notes))
}

/// Collects the turns of a session.
#[derive(Default)]
struct Reader {
    /// The accepted turns.
    turns: Vec<Turn>,
    left_out: LeftOut,
    current: Option<OpenTurn>,
}

/// The turn that is being read.
#[derive(Default)]
struct OpenTurn {
    turn: Turn,
    outcome: Outcome,
    is_withdrawn: bool,
    /// True in a reply that broke off, which is left out.
    is_interrupted: bool,
    /// Results that came before their calls, as in claw0's first format, by the ids of the calls.
    early: HashMap<String, String>,
    left_out: LeftOut,
}

impl Reader {
    fn take(&mut self, entry: &ShownEntry) {
        let is_anew = || self.current.as_ref().is_some_and(OpenTurn::has_broken_off);
        let begins = match &entry.item {
            Item::Turn(_) => true,
            // The person wrote something else after the reply had broken off.
            Item::Text { role: Role::User, .. } => !entry.retracted && is_anew(),
            _ => false,
        };
        if begins {
            self.end_turn();
            self.current = Some(OpenTurn { is_withdrawn: entry.retracted, ..OpenTurn::default() });
        }
        if let Some(current) = &mut self.current {
            current.take(entry);
        }
    }

    /// Adds the current turn to the others if it is accepted.
    fn end_turn(&mut self) {
        let Some(current) = self.current.take() else { return };
        match current.refusal() {
            Some(why) => self.left_out.add(why),
            None => {
                self.left_out.append(&current.left_out);
                self.turns.push(current.turn);
            }
        }
    }
}

impl OpenTurn {
    fn take(&mut self, entry: &ShownEntry) {
        if entry.retracted {
            return;
        }
        self.outcome.take(entry);
        if let Item::Reply(facts) = &entry.item {
            self.is_interrupted = facts.interrupted;
        }
        match &entry.item {
            Item::Text { role: Role::Assistant, .. } | Item::Call { .. } if self.is_interrupted => {
            }
            Item::Text { role: Role::User, text } => {
                self.turn.prompt.push(Part::Text(text.clone()));
            }
            Item::Text { role: Role::Assistant, text } => {
                let own = &mut self.reply().text;
                own.push_str(if own.is_empty() { "" } else { "\n\n" });
                own.push_str(text.trim_matches('\n'));
            }
            Item::Call { id, name, input, .. } => {
                let (name, input) = (tools::name(name), tools::input(input));
                let result = self.early.remove(id);
                self.reply().calls.push(Call { id: id.clone(), name, input, result });
            }
            Item::Result(result) => self.result(result),
            Item::Media { role: Role::User, media }
                if media.data.is_some()
                    && media.kind == "image"
                    && self.turn.replies.is_empty() =>
            {
                self.turn.prompt.push(Part::Image(media.raw.clone()));
            }
            Item::Media { .. } => self.left_out.add("files, and images outside prompts"),
            Item::Hosted(_) => self.left_out.add("what tools of the provider did"),
            Item::Other { .. } => self.left_out.add("blocks of unknown types"),
            _ => {}
        }
    }

    /// Returns true if the reply was interrupted or failed.
    fn has_broken_off(&self) -> bool {
        matches!(self.outcome, Outcome::Interrupted | Outcome::Failed)
    }

    /// Returns the current reply. One whose calls have results has ended.
    fn reply(&mut self) -> &mut Reply {
        let replies = &mut self.turn.replies;
        let has_results = |reply: &Reply| reply.calls.iter().any(|call| call.result.is_some());
        if replies.last().is_none_or(has_results) {
            replies.push(Reply::default());
        }
        let last = replies.len() - 1;
        &mut replies[last]
    }

    /// Gives a call its result. A second result is left out, and so is one whose call is not in the turn.
    fn result(&mut self, result: &CallOutcome) {
        let text = without_reminders(&result.text).unwrap_or_else(|| result.text.clone());
        let text = if result.is_error { format!("{FAILED}{text}") } else { text };
        result.media.iter().for_each(|_| self.left_out.add("files, and images outside prompts"));
        let mut calls = self.turn.replies.iter_mut().rev().flat_map(|reply| &mut reply.calls);
        match calls.find(|call| call.id == result.id) {
            Some(call) if call.result.is_none() => call.result = Some(text),
            Some(_) => {}
            None => {
                self.early.insert(result.id.clone(), text);
            }
        }
    }

    /// Returns what the turn is counted as if it is not accepted.
    fn refusal(&self) -> Option<&'static str> {
        let Turn { prompt, replies } = &self.turn;
        let mut calls = replies.iter().flat_map(|reply| &reply.calls);
        let is_open = calls.any(|call| call.result.is_none());
        let is_answer = |reply: &Reply| reply.calls.is_empty() && !reply.text.trim().is_empty();
        match self.outcome {
            _ if self.is_withdrawn => Some("withdrawn turns"),
            Outcome::Interrupted => Some("interrupted turns"),
            Outcome::Failed => Some("failed turns"),
            Outcome::CutOff => Some("turns with a reply that is cut off"),
            Outcome::OpenCall | Outcome::Completed if is_open => {
                Some("turns with a call that has no result")
            }
            Outcome::NoReply | Outcome::OpenCall => Some("turns without a reply"),
            Outcome::Completed if !replies.last().is_some_and(is_answer) => {
                Some("turns without a reply")
            }
            Outcome::Completed if prompt.is_empty() => Some("turns without a prompt"),
            Outcome::Completed => None,
        }
    }
}
