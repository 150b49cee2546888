//! Whether a text may stand for what it summarises.

use crate::compact::{CutPlan, Strategy, Task};
use crate::exit::Exit;
use crate::json::Object;
use crate::messages::Message;
use crate::record::content::Content;
use std::fmt;

/// A reply of the model that was asked for a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryReply {
    /// What it said.
    pub text: String,
    /// Why it stopped.
    pub stop_reason: Option<String>,
    /// Whether it called a tool instead.
    pub calls: bool,
    /// The model.
    pub model: Option<String>,
    /// What the provider counted, as it was sent.
    pub usage: Option<String>,
}

impl SummaryReply {
    /// Reads the records that `claw-call` (or what stands in for it) wrote.
    ///
    /// # Errors
    /// Says why when a line is no record.
    pub fn read(records: &str) -> Result<SummaryReply, String> {
        let mut reply = SummaryReply::default();
        for (index, line) in records.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
        {
            let bad = |why: &str| format!("line {}: {why}", index + 1);
            let object = Object::parse(line).map_err(|_| bad("no record"))?;
            match object.string("type").as_deref() {
                Some("assistant") => reply.take(&object).map_err(|why| bad(&why))?,
                Some("tool_use") => reply.calls = true,
                _ => {}
            }
        }
        Ok(reply)
    }

    fn take(&mut self, object: &Object<'_>) -> Result<(), String> {
        let content = object.get("content").ok_or("an assistant record without content")?;
        self.text.push_str(&Content::parse(content)?.says());
        let string = |name: &str| object.string(name).map(|text| text.into_owned());
        self.stop_reason = self.stop_reason.take().or(string("stop_reason"));
        self.model = self.model.take().or(string("model"));
        let usage = object.get("usage").filter(|usage| usage.starts_with('{'));
        self.usage = self.usage.take().or(usage.map(str::to_owned));
        Ok(())
    }

    /// Whether the reply is a text that came to its own end.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if self.calls {
            return Err("the model called a tool instead".to_owned());
        }
        match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "stop") if self.text.trim().is_empty() => {
                Err(Rejected::Blank.to_string())
            }
            Some("end_turn" | "stop_sequence" | "stop") => Ok(()),
            Some(other) => Err(format!("the model did not end it: stop reason '{other}'")),
            None => Err("the model did not say how it ended".to_owned()),
        }
    }
}

/// Why a text may not stand for what it summarises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// It says nothing.
    Blank,
    /// It is, word for word, something that was said.
    Echo,
    /// It is not short enough for what it stands for.
    TooLong {
        /// The text's tokens.
        own: u64,
        /// The most that it may have.
        most: u64,
    },
    /// The request would not get smaller, or not get within its budget.
    NoGain {
        /// The request's tokens now.
        before: u64,
        /// The request's tokens with the summary.
        after: u64,
        /// What it has to get within.
        target: Option<u64>,
    },
}

impl Rejected {
    /// The status for it: a model that writes no summary is broken, a text of the user's is bad input,
    /// and what we put together ourselves only gains nothing.
    #[must_use]
    pub fn exit(self, strategy: Strategy) -> Exit {
        match (self, strategy) {
            (Rejected::NoGain { .. }, _) => Exit::NoGain,
            (_, Strategy::Llm) => Exit::Unavailable,
            (_, Strategy::File) => Exit::Data,
            (_, Strategy::Checkpoint | Strategy::Local | Strategy::Stub) => Exit::NoGain,
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejected::Blank => f.write_str("it is blank"),
            Rejected::Echo => f.write_str("it repeats a message of the conversation"),
            Rejected::TooLong { own, most } => {
                write!(f, "it has {own} tokens, and may have {most} for what it stands for")
            }
            Rejected::NoGain { before, after, target } => {
                write!(f, "the request would go from {before} to {after} tokens")?;
                target.map_or(Ok(()), |target| write!(f, ", its budget is {target}"))
            }
        }
    }
}

/// Whether `text` may stand for the covered messages; gives the request's tokens with it. Of what a model
/// wrote more is asked: it has to be at most half as long as what it stands for.
///
/// # Errors
/// Says why not.
pub fn accept(
    task: &Task<'_, '_>,
    planned: &CutPlan,
    text: &str,
    strategy: Strategy,
) -> Result<u64, Rejected> {
    if text.trim().is_empty() {
        return Err(Rejected::Blank);
    }
    if is_echo(task.messages, text) {
        return Err(Rejected::Echo);
    }
    let (own, covered) = (task.gauge.text(text), planned.covered);
    let most = if strategy == Strategy::Llm { covered / 2 } else { covered.saturating_sub(1) };
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

/// Whether the text is, word for word, something that was said.
fn is_echo(messages: &[Message<'_>], text: &str) -> bool {
    messages.iter().filter(|message| !message.is_summary()).any(|message| {
        let said = message.content.says();
        !said.trim().is_empty() && said.trim() == text.trim()
    })
}
