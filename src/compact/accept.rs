//! Checks a summary before it replaces messages.

use crate::compact::{CutPlan, Strategy, Task, refusal};
use crate::exit::Exit;
use crate::json::Object;
use crate::messages::Message;
use crate::record::content::Content;
use std::fmt;

/// The number of messages, and of tokens, for each of which a summary needs a word.
const PER_WORD: (usize, u64) = (6, 1000);
/// The number of words that are enough for any conversation.
const ENOUGH: usize = 12;

/// A model's reply to a request for a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryReply {
    /// The text.
    pub text: String,
    /// The reason why the model stopped.
    pub stop_reason: Option<String>,
    /// True if the model called a tool.
    pub calls: bool,
    /// The model.
    pub model: Option<String>,
    /// The provider's usage as JSON.
    pub usage: Option<String>,
}

impl SummaryReply {
    /// Reads the records that `claw-call`, or the command used in its place, wrote.
    ///
    /// # Errors
    /// Returns the reason if a line is not a valid record.
    pub fn read(records: &str) -> Result<SummaryReply, String> {
        let mut reply = SummaryReply::default();
        for (index, line) in records.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
        {
            let bad = |why: &str| format!("line {}: {why}", index + 1);
            let object = Object::parse(line).map_err(|_| bad("not a record"))?;
            match object.string("type").as_deref() {
                Some("assistant") => reply.take(&object).map_err(|why| bad(&why))?,
                Some("tool_use") => reply.calls = true,
                _ => {}
            }
        }
        reply.text = refusal::without_thinking(&reply.text).to_owned();
        Ok(reply)
    }

    fn take(&mut self, object: &Object<'_>) -> Result<(), String> {
        let content = object.get("content").ok_or("assistant record without content")?;
        self.text.push_str(&Content::parse(content)?.text());
        let string = |name: &str| object.string(name).map(|text| text.into_owned());
        self.stop_reason = self.stop_reason.take().or(string("stop_reason"));
        self.model = self.model.take().or(string("model"));
        let usage = object.get("usage").filter(|usage| usage.starts_with('{'));
        self.usage = self.usage.take().or(usage.map(str::to_owned));
        Ok(())
    }

    /// Checks that the reply is complete, not blank, and contains no tool calls.
    ///
    /// # Errors
    /// Returns a description of the problem.
    pub fn check(&self) -> Result<(), String> {
        if self.calls {
            return Err("the model called a tool".to_owned());
        }
        match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "stop") if self.text.trim().is_empty() => {
                Err(Rejected::Blank.to_string())
            }
            Some("end_turn" | "stop_sequence" | "stop") => Ok(()),
            Some(other) => Err(format!("the reply is not complete: stop reason '{other}'")),
            None => Err("the reply has no stop reason".to_owned()),
        }
    }
}

/// The reason why a summary is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It is empty or white space.
    Blank,
    /// The model refuses to write one.
    Refusal,
    /// It has only a few words for many messages.
    TooShort {
        /// The number of messages that it would replace.
        messages: usize,
    },
    /// It repeats a message of the conversation word for word.
    Echo,
    /// It is too long for the messages that it replaces.
    TooLong {
        /// The number of tokens in the summary.
        own: u64,
        /// The most tokens that it may have.
        most: u64,
    },
    /// The request would not become smaller, or would still exceed its budget.
    NoGain {
        /// The number of tokens in the request before the compaction.
        before: u64,
        /// The number of tokens in the request with the summary.
        after: u64,
        /// The budget of the request, in tokens.
        target: Option<u64>,
    },
}

impl Rejected {
    /// Returns the exit status: 5 if the request would not become small enough. Otherwise 69 for a model's
    /// summary, 65 for the user's, and 5 for any other.
    #[must_use]
    pub fn exit(self, strategy: Strategy) -> Exit {
        match (self, strategy) {
            (Rejected::NoGain { .. }, _) => Exit::NoGain,
            (_, Strategy::Llm | Strategy::Provider) => Exit::Unavailable,
            (_, Strategy::File) => Exit::Data,
            (_, Strategy::Checkpoint | Strategy::Local | Strategy::Stub) => Exit::NoGain,
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejected::Blank => f.write_str("it is blank"),
            Rejected::Refusal => f.write_str("the model refuses to write one"),
            Rejected::TooShort { messages } => {
                write!(f, "it has only a few words for {messages} messages")
            }
            Rejected::Echo => f.write_str("it repeats a message of the conversation"),
            Rejected::TooLong { own, most } => {
                write!(
                    f,
                    "it has {own} tokens; at most {most} are allowed for the messages it replaces"
                )
            }
            Rejected::NoGain { before, after, target } => {
                write!(f, "the request would go from {before} to {after} tokens")?;
                target.map_or(Ok(()), |target| write!(f, "; its budget is {target}"))
            }
        }
    }
}

/// Checks that `text` may replace the covered messages, and returns the number of tokens in the request with it. A
/// summary from a model may have at most half the tokens of the messages that it replaces; any other summary only needs
/// to have fewer tokens than they have.
///
/// # Errors
/// Returns the reason if the summary is rejected.
pub fn accept(
    task: &Task<'_, '_>,
    planned: &CutPlan,
    text: &str,
    strategy: Strategy,
) -> Result<u64, Rejected> {
    if text.trim().is_empty() {
        return Err(Rejected::Blank);
    }
    let messages = planned.at - planned.from;
    if strategy.is_by_model() && refusal::is_refusal(text) {
        return Err(Rejected::Refusal);
    }
    if strategy.is_by_model() && refusal::words(text) < fewest_words(messages, planned) {
        return Err(Rejected::TooShort { messages });
    }
    if is_echo(task.messages, text) {
        return Err(Rejected::Echo);
    }
    let (own, covered) = (task.gauge.text(text), planned.covered_tokens);
    let most = if strategy.is_by_model() { covered / 2 } else { covered.saturating_sub(1) };
    if own > most {
        return Err(Rejected::TooLong { own, most });
    }
    let (before, target) = (planned.before, task.target);
    let after = task.tokens(&task.apply(planned, text));
    if after >= before || target.is_some_and(|target| after > target) {
        return Err(Rejected::NoGain { before, after, target });
    }
    Ok(after)
}

/// Checks that a summary that only the provider can read may replace the covered messages.
///
/// # Errors
/// Returns the reason if it is not smaller than they are.
pub fn accept_opaque(task: &Task<'_, '_>, planned: &CutPlan, own: &str) -> Result<(), Rejected> {
    let (own, covered) = (task.gauge.text(own), planned.covered_tokens);
    let most = covered.saturating_sub(1);
    if own > most { Err(Rejected::TooLong { own, most }) } else { Ok(()) }
}

/// Returns the fewest words that a summary from a model may have.
fn fewest_words(messages: usize, planned: &CutPlan) -> usize {
    let by_tokens = usize::try_from(planned.covered_tokens / PER_WORD.1).unwrap_or(ENOUGH);
    (messages / PER_WORD.0 + 1).max(by_tokens).min(ENOUGH)
}

/// Returns true if the text repeats a message word for word.
fn is_echo(messages: &[Message<'_>], text: &str) -> bool {
    messages.iter().filter(|message| !message.is_summary()).any(|message| {
        let said = message.content.text();
        !said.trim().is_empty() && said.trim() == text.trim()
    })
}
