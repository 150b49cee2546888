//! The size of the context over the turns: the tokens of each request, counted or estimated, and the compactions
//! and truncations that reduced the size.

use super::language::Languages;
use super::totals::Totals;
use super::walk::weigh;
use super::wrap::cut;
use super::{Item, Session, ShownCompaction, ShownEntry};
use crate::injected::is_command;
use crate::messages::Message;
use crate::messages::summary;
use crate::printable::printable;
use crate::record::content::{Block, Content, Role};
use std::collections::HashMap;

/// The width limit of a prompt in the list of prompts, in columns.
const PROMPT: usize = 72;

/// The data of the chart, collected from the entries of a transcript.
#[derive(Debug, Default)]
pub struct Chart {
    /// The changes in the context's size, in order.
    pub points: Vec<Point>,
    /// The first header, and the newest label.
    pub session: Option<Session>,
    /// The number of the first turn; 0 before the first turn.
    pub first_turn: u64,
    /// The number of the newest turn.
    pub turn: u64,
    /// The window that the newest refusal named.
    pub window: Option<u64>,
    /// The prompt of each turn.
    pub prompts: Vec<Prompt>,
    /// The totals of what comes before the first turn.
    before: Totals,
    /// The languages of the messages.
    pub languages: Languages,
    /// The tokens of the request at the current entry.
    now: u64,
    /// True if the provider's count of the current reply already includes the model's output.
    is_counted: bool,
    /// The tokens that later truncations save, by the id of the tool call.
    savings: HashMap<String, u64>,
    /// The tokens that each compaction saved, by the id of its record.
    cuts: HashMap<String, u64>,
}

/// The start of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// The number of the turn.
    pub turn: u64,
    /// The time of the prompt, in microseconds since 1970.
    pub time: Option<i64>,
    /// The first line of the prompt, shortened.
    pub text: String,
    /// True if the prompt was retracted.
    pub retracted: bool,
    /// The totals of the turn.
    pub totals: Totals,
}

/// A change in the context's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The turn of the change.
    pub turn: u64,
    /// The tokens of the request.
    pub tokens: u64,
    /// The cause.
    pub kind: StepKind,
}

/// The cause of a change in the context's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A request with the provider's count.
    Counted,
    /// A request with our estimate.
    Estimated,
    /// A request that the provider refused.
    Refused,
    /// A compaction, with the tokens of the context before it.
    Compacted(u64),
    /// Truncations of tool results, with the tokens of the context before them.
    Shortened(u64),
}

impl Chart {
    /// Adds the next entry.
    pub fn take(&mut self, entry: &ShownEntry) {
        self.read(entry);
        match &entry.item {
            Item::Session(session) => {
                self.session.get_or_insert_with(|| session.clone());
            }
            Item::Label(label) => {
                let session = self.session.get_or_insert_default();
                session.label = Some(label.clone());
            }
            Item::Turn(number) => {
                self.turn = *number;
                if self.first_turn == 0 {
                    self.first_turn = *number;
                }
            }
            Item::Reply(reply) => {
                let tokens = reply.counts.map_or(self.now, |counts| counts.prompt());
                let kind =
                    if reply.counts.is_some() { StepKind::Counted } else { StepKind::Estimated };
                self.step(tokens, kind);
                self.is_counted = reply.counts.is_some();
                self.now = reply.counts.map_or(tokens, |counts| counts.all());
            }
            Item::Compaction(compaction) => self.compact(compaction, &entry.id),
            Item::Truncation { call, .. } => {
                let before = self.now;
                self.now = before.saturating_sub(self.savings.remove(call).unwrap_or(0));
                match self.points.last_mut() {
                    Some(last @ Point { kind: StepKind::Shortened(_), .. }) => {
                        last.tokens = self.now
                    }
                    _ => self.step(self.now, StepKind::Shortened(before)),
                }
            }
            Item::Retract(target) => self.now += self.cuts.remove(target).unwrap_or(0),
            Item::Error(refusal) => {
                self.window = refusal.limit.or(self.window);
                if let Some(actual) = refusal.actual {
                    self.now = actual;
                    self.step(actual, StepKind::Refused);
                }
            }
            item => {
                if !entry.retracted {
                    self.add(item);
                }
            }
        }
    }

    /// Collects prompts and languages.
    fn read(&mut self, entry: &ShownEntry) {
        match &entry.item {
            Item::Turn(turn) => {
                let (time, retracted) = (entry.time, entry.retracted);
                let text = String::new();
                let totals = Totals::default();
                self.prompts.push(Prompt { turn: *turn, time, text, retracted, totals });
            }
            Item::Text { role, text } => {
                self.languages.take(text);
                let newest = self.prompts.last_mut().filter(|_| *role == Role::User);
                if let Some(prompt) = newest.filter(|prompt| prompt.text.is_empty()) {
                    let line = text.lines().find(|line| !line.trim().is_empty());
                    prompt.text = cut(printable(line.unwrap_or_default()).trim(), PROMPT);
                }
            }
            _ => {}
        }
        match self.prompts.last_mut() {
            Some(prompt) => prompt.totals.take(entry),
            None => self.before.take(entry),
        }
    }

    /// Returns the requests, also those that the provider refused.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &Point> {
        let is_request = |kind: StepKind| {
            matches!(kind, StepKind::Counted | StepKind::Estimated | StepKind::Refused)
        };
        self.points.iter().filter(move |point| is_request(point.kind))
    }

    /// Returns the tokens of the context at the current entry.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.now
    }

    /// Returns the totals of all turns.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut all = self.before;
        self.prompts.iter().for_each(|prompt| all.add(&prompt.totals));
        all
    }

    /// Returns the totals of a turn.
    #[must_use]
    pub fn turn_totals(&self, turn: u64) -> Totals {
        let index = usize::try_from(turn.saturating_sub(self.first_turn)).unwrap_or(usize::MAX);
        self.prompts.get(index).map(|prompt| prompt.totals).unwrap_or_default()
    }

    /// Returns the title: what the session or its program calls it, or else the first prompt, or else its key or id.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        let session = self.session.as_ref();
        let label = session.and_then(|it| it.label.as_deref());
        let texts = || self.prompts.iter().map(|it| it.text.as_str()).filter(|it| !it.is_empty());
        let prompt = || texts().find(|text| !is_command(text)).or_else(|| texts().next());
        let key = || session.and_then(|it| it.key.as_deref());
        let id = || session.map(|it| it.id.as_str()).filter(|id| !id.is_empty());
        label.or_else(prompt).or_else(key).or_else(id)
    }

    fn step(&mut self, tokens: u64, kind: StepKind) {
        self.points.push(Point { turn: self.turn, tokens, kind });
    }

    fn compact(&mut self, it: &ShownCompaction, id: &str) {
        let before = it.before.unwrap_or(self.now);
        let summary = || weigh(&summary::message(&it.summary));
        self.now = it.summary.tokens_after.unwrap_or_else(summary);
        self.cuts.insert(id.to_owned(), before.saturating_sub(self.now));
        self.step(self.now, StepKind::Compacted(before));
    }

    /// Adds the tokens of an entry to the request.
    fn add(&mut self, item: &Item) {
        let by_model = matches!(
            item,
            Item::Text { role: Role::Assistant, .. } | Item::Thinking(_) | Item::Call { .. }
        );
        if by_model && self.is_counted {
            return;
        }
        self.is_counted &= by_model;
        self.now += match item {
            Item::Text { role, text } => weigh(&Message::text(*role, text)),
            Item::Injected { text, .. } => weigh(&Message::text(Role::User, text)),
            Item::Thinking(text) => weigh(&Message::text(Role::Assistant, text)),
            Item::Call { name, input, .. } => {
                weigh(&Message::text(Role::Assistant, &format!("{name} {input}")))
            }
            Item::Result(result) => {
                if result.saved > 0 {
                    self.savings.insert(result.id.clone(), result.saved);
                }
                let media = result.media.iter().map(|media| weigh_media(&media.raw));
                weigh(&Message::text(Role::User, &result.text)) + media.sum::<u64>()
            }
            Item::Media { media, .. } => weigh_media(&media.raw),
            _ => 0,
        };
    }
}

fn weigh_media(raw: &str) -> u64 {
    let block = Block::parse(raw).ok();
    let message = |block| Message::new(Role::User, Content::Blocks(vec![block]));
    block.map_or(0, |block| weigh(&message(block)))
}
