//! Simulates, without calling a model, how `claw-turn` would keep a transcript within a context window of a given size.
//!
//! The request for each reply consists of the messages before it, with the changes that earlier steps made. The steps
//! are those of `claw-turn`: when the request reaches the reserve, the old part is summarised; if that gains nothing,
//! or the request still does not fit, results are shortened; if it still does not fit, the old part is summarised
//! again. Each summary has the maximum length that claw-compact would accept.

use clawutils::cli::budget::Extras;
use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::pieces::{PieceLimits, Pieces};
use clawutils::compact::request::{PROMPT, SummaryPrompt};
use clawutils::compact::{CutPlan, KEEP_USER, Task};
use clawutils::estimate::{Budget, Gauge, Model, Request, Tally, Weight};
use clawutils::id::Id;
use clawutils::messages::{Message, Meta};
use clawutils::record::content::{Block, Role};
use clawutils::truncate::{MAX_FRACTION, TruncateOptions, truncate_counted};

/// The shortest summary, in tokens. If less room is left, a compaction counts as impossible.
const MIN_SUMMARY: u64 = 64;
/// The maximum number of pieces in which the messages that a compaction covers are summarised, as in `claw-compact`.
const MAX_PIECES: usize = 16;
/// The word that simulated summaries consist of.
const WORD: &str = "summary ";

/// A request before which the guard had to act. All sizes are in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The turn, from 1.
    pub turn: u64,
    /// The size of the request.
    pub tokens: u64,
    /// The number of tokens that shortening results would save as the only step.
    pub truncate: u64,
    /// The number of tokens that a compaction saves as the only step; 0 if it is impossible.
    pub compact: u64,
    /// The size of the request after all steps.
    pub after: u64,
}

/// A call to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedCall {
    /// The size of the prompt.
    pub input: u64,
    /// The size of the beginning of the prompt that repeats the previous call and its reply.
    pub repeated: u64,
    /// The size of the reply.
    pub output: u64,
    /// True for a summary.
    pub is_summary: bool,
}

/// The simulation of one window.
pub struct Simulation<'s> {
    /// The request without messages.
    beside: Request<'s, 's>,
    /// The limits.
    pub budget: Budget,
    gauge: Gauge,
    /// The count of the request without the messages.
    pub empty: Tally,
    messages: Vec<Message<'static>>,
    /// The weight of each message.
    weights: Vec<Weight>,
    /// The count of the whole request.
    tally: Tally,
    /// The number of tokens in a thousand [`WORD`]s.
    thousand: u64,
    /// The size of the last request with its reply; 0 if the next request does not begin with them.
    repeated: u64,
    /// The size of the largest request that was sent.
    pub largest: u64,
    /// The overflow after which the request does not fit, even with all steps. The simulation ends there.
    pub failed: Option<Overflow>,
}

/// A compaction that is possible.
struct Compaction {
    /// The number of messages that it covers.
    at: usize,
    /// The messages that replace them.
    opening: Vec<Message<'static>>,
    /// The calls for the summary.
    calls: Vec<SimulatedCall>,
}

/// The events that a message causes: what the guard did, and the calls that were made.
#[derive(Debug, Default)]
pub struct Events {
    /// The overflow, if the guard had to make the request smaller.
    pub overflow: Option<Overflow>,
    /// The calls, in order.
    pub calls: Vec<SimulatedCall>,
}

impl<'s> Simulation<'s> {
    /// Starts with an empty conversation.
    pub fn new(budget: Budget, beside: &'s Extras, model: Option<Model<'s>>) -> Simulation<'s> {
        let none = Request { model, ..Request::default() };
        let (system, tools) = (beside.system.as_deref(), beside.tools.as_deref());
        let beside = Request { system, tools, ..none };
        let gauge = Gauge::new(none, None);
        let empty = gauge.tally(beside);
        Simulation {
            beside,
            budget,
            gauge,
            empty,
            messages: Vec::new(),
            weights: Vec::new(),
            tally: empty,
            thousand: gauge.text(&WORD.repeat(1000)).max(1),
            repeated: 0,
            largest: 0,
            failed: None,
        }
    }

    /// Takes the next message of the transcript. If it is a reply, first simulates the call that led to it.
    pub fn take(&mut self, message: Message<'static>, weight: Weight, turn: u64) -> Events {
        let mut events = Events::default();
        if self.failed.is_some() {
            return events;
        }
        if message.role == Role::Assistant {
            self.send(turn, weight.tokens(), &mut events);
        }
        self.messages.push(message);
        self.weights.push(weight);
        self.tally.add(weight);
        if events.calls.last().is_some_and(|call| !call.is_summary) {
            self.repeated = self.tally.tokens();
        }
        events
    }

    /// Simulates the call for a prompt at the end that has no reply.
    pub fn finish(&mut self, turn: u64) -> Events {
        let mut events = Events::default();
        let is_open = self.messages.last().is_some_and(|last| last.role == Role::User);
        if is_open && self.failed.is_none() {
            self.send(turn, 0, &mut events);
        }
        events
    }

    fn send(&mut self, turn: u64, output: u64, events: &mut Events) {
        let tokens = self.tally.tokens();
        if tokens >= self.budget.trigger() || tokens > self.budget.prompt() {
            let overflow = self.guard(turn, events);
            events.overflow = Some(overflow);
            self.repeated = 0;
            if overflow.after > self.budget.prompt() {
                self.failed = Some(overflow);
                (self.messages, self.weights) = (Vec::new(), Vec::new());
                return;
            }
        }
        let input = self.tally.tokens();
        self.largest = self.largest.max(input);
        let repeated = self.repeated;
        events.calls.push(SimulatedCall { input, repeated, output, is_summary: false });
    }

    /// Makes the request smaller, with the steps of `claw-turn`.
    fn guard(&mut self, turn: u64, events: &mut Events) -> Overflow {
        let tokens = self.tally.tokens();
        let truncated = self.truncated();
        let after = truncated.as_ref().map_or(tokens, |(_, after)| *after);
        let compact = self.compact(events);
        if compact == 0 {
            self.adopt(truncated);
        } else if !self.fits() {
            self.adopt(self.truncated());
        }
        if !self.fits() {
            self.compact(events);
        }
        Overflow { turn, tokens, truncate: tokens - after, compact, after: self.tally.tokens() }
    }

    fn fits(&self) -> bool {
        self.tally.tokens() <= self.budget.prompt()
    }

    /// Counts the request with messages of these weights.
    fn count(&self, weights: &[Weight]) -> Tally {
        let mut tally = self.empty;
        weights.iter().for_each(|weight| tally.add(*weight));
        tally
    }

    /// Replaces the messages with `changed`, if it is not `None`. Weighs only those that differ.
    fn adopt(&mut self, changed: Option<(Vec<Message<'static>>, u64)>) {
        let Some((messages, _)) = changed else { return };
        for ((new, old), weight) in messages.iter().zip(&self.messages).zip(&mut self.weights) {
            if new.content != old.content {
                *weight = self.gauge.weigh(new);
            }
        }
        (self.messages, self.tally) = (messages, self.count(&self.weights));
    }

    /// Returns the messages with shortened results, and the size of the request with them; `None` if no result has to
    /// be shortened.
    fn truncated(&self) -> Option<(Vec<Message<'static>>, u64)> {
        let Budget { window, .. } = self.budget;
        let options = TruncateOptions::new(window, MAX_FRACTION, self.budget.prompt());
        let is_long = |block: &Block<'_>| block.is_result() && block.raw.len() > options.max_chars;
        if self.fits() && !self.messages.iter().flat_map(Message::blocks).any(is_long) {
            return None;
        }
        let mut messages = self.messages.clone();
        let outcome = truncate_counted(&mut messages, self.tally, self.gauge, options);
        Some((messages, outcome.after))
    }

    /// Replaces the old part with a summary, and returns the gain; 0 if that is impossible.
    fn compact(&mut self, events: &mut Events) -> u64 {
        let Some(Compaction { at, opening, calls }) = self.compaction() else { return 0 };
        let before = self.tally.tokens();
        self.weights.splice(..at, opening.iter().map(|message| self.gauge.weigh(message)));
        self.messages.splice(..at, opening);
        self.tally = self.count(&self.weights);
        events.calls.extend(calls);
        before - self.tally.tokens()
    }

    /// Returns the compaction; `None` if there is no room for a summary, or it gains nothing.
    fn compaction(&self) -> Option<Compaction> {
        let target = self.budget.target();
        let Request { system, tools, model, .. } = self.beside;
        let task = Task {
            messages: &self.messages,
            system,
            tools,
            model,
            gauge: self.gauge,
            target: Some(target),
            keep_user: KEEP_USER,
            rule: CutRule::default(),
            limits: CutLimits::default(),
        };
        let planned = task.plan_weighed(self.weights.clone())?;
        let size = |opening: &[Message<'_>]| {
            let mut tally = self.count(&self.weights[planned.at..]);
            opening.iter().for_each(|message| tally.add(self.gauge.weigh(message)));
            tally.tokens()
        };
        let room = target.checked_sub(size(&task.opening(&planned, "")))?;
        let most = task.most_tokens(&planned);
        let length = most.min(room);
        let text = self.words(length);
        let mut opening = task.opening(&planned, &text);
        let is_possible = length >= MIN_SUMMARY.min(most) && size(&opening) < self.tally.tokens();
        mark_summary(&mut opening, &planned, &text);
        let calls = is_possible.then(|| self.summary_calls(&task, &planned))?;
        Some(Compaction { at: planned.at, opening, calls })
    }

    /// Returns the calls for a summary: one for each piece of the covered messages; none if no piece fits, because
    /// `claw-compact` then makes the summary without a model.
    fn summary_calls(&self, task: &Task<'_, '_>, planned: &CutPlan) -> Vec<SimulatedCall> {
        let summary = task.summary_tokens();
        let room = self.budget.window.saturating_sub(summary + self.budget.margin);
        let limits =
            PieceLimits { gauge: self.gauge, room: Some(room), summary, calls: MAX_PIECES };
        let prompt = SummaryPrompt { text: PROMPT, focus: None };
        let covered = &task.messages[planned.from..planned.at];
        let pieces = Pieces::new(covered, prompt, planned.earlier.as_deref(), limits);
        let overhead = self.gauge.text(&prompt.request(planned.earlier.as_deref(), ""));
        let output = task.most_tokens(planned);
        let call = |text: &str| {
            let input = overhead + self.gauge.text(text);
            SimulatedCall { input, repeated: 0, output, is_summary: true }
        };
        pieces.map_or_else(Vec::new, |pieces| pieces.iter().map(|it| call(&it.text)).collect())
    }

    /// Returns words of nearly this many tokens, but not more.
    fn words(&self, tokens: u64) -> String {
        let count = usize::try_from(tokens * 1000 / self.thousand).unwrap_or(0);
        WORD.repeat(count).trim_end().to_owned()
    }
}

/// Marks the messages of a summary, as rebuild does.
fn mark_summary(opening: &mut [Message<'static>], planned: &CutPlan, text: &str) {
    let id = Id::from("summary");
    for (at, message) in opening.iter_mut().enumerate() {
        let summary = (at == 0).then(|| Box::new(planned.summary(text)));
        message.meta = Some(Box::new(Meta { id: id.clone(), summary, ..Meta::default() }));
    }
}
