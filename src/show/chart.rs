//! The size of the context over the turns: what was counted or estimated of each request, and what made it
//! smaller.

use super::language::Languages;
use super::walk::weigh;
use super::wrap::cut;
use super::{Compaction, Entry, Session, What};
use crate::messages::Message;
use crate::messages::summary;
use crate::printable::printable;
use crate::record::content::{Block, Content, Role};
use std::collections::HashMap;

/// The most columns of a prompt in the list of prompts.
const PROMPT: usize = 72;

/// What is known of the requests of a transcript.
#[derive(Debug, Default)]
pub struct Chart {
    /// The steps in order.
    pub points: Vec<Point>,
    /// The first header, and the newest label.
    pub session: Option<Session>,
    /// The number of the first turn; 0 before any.
    pub first_turn: u64,
    /// The number of the newest one.
    pub turn: u64,
    /// The window, as a refusal named it last.
    pub window: Option<u64>,
    /// The prompt of each turn.
    pub prompts: Vec<Prompt>,
    /// The languages of the texts.
    pub languages: Languages,
    /// The request's tokens at this place.
    now: u64,
    /// A provider's count covers what the model says here.
    is_counted: bool,
    /// What was saved by truncations that are still to come, by call.
    savings: HashMap<String, u64>,
    /// What compactions took away, by record.
    cuts: HashMap<String, u64>,
}

/// How a turn begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The turn.
    pub turn: u64,
    /// Its time, in microseconds since 1970.
    pub time: Option<i64>,
    /// The beginning of the prompt, on one line.
    pub text: String,
    /// It was taken back.
    pub taken_back: bool,
}

/// A step of the context's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The turn in which it is.
    pub turn: u64,
    /// The request's tokens.
    pub tokens: u64,
    /// What happened.
    pub kind: Kind,
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request, as the provider counted it.
    Counted,
    /// A request, as we estimate it.
    Estimated,
    /// A request that was refused.
    Refused,
    /// A summary took the place of so many tokens.
    Compacted(u64),
    /// Results were shortened; before it were so many tokens.
    Shortened(u64),
}

impl Chart {
    /// Takes the next entry.
    pub fn take(&mut self, entry: &Entry) {
        self.read(entry);
        match &entry.what {
            What::Session(session) => {
                self.session.get_or_insert_with(|| session.clone());
            }
            What::Label(label) => {
                let session = self.session.get_or_insert_default();
                session.label = Some(label.clone());
            }
            What::Turn(number) => {
                self.turn = *number;
                if self.first_turn == 0 {
                    self.first_turn = *number;
                }
            }
            What::Reply(reply) => {
                let tokens = reply.counts.map_or(self.now, |counts| counts.prompt());
                let kind = if reply.counts.is_some() { Kind::Counted } else { Kind::Estimated };
                self.step(tokens, kind);
                self.is_counted = reply.counts.is_some();
                self.now = reply.counts.map_or(tokens, |counts| counts.all());
            }
            What::Compaction(compaction) => self.compact(compaction, &entry.id),
            What::Truncation { call, .. } => {
                let before = self.now;
                self.now = before.saturating_sub(self.savings.remove(call).unwrap_or(0));
                match self.points.last_mut() {
                    Some(last @ Point { kind: Kind::Shortened(_), .. }) => last.tokens = self.now,
                    _ => self.step(self.now, Kind::Shortened(before)),
                }
            }
            What::Retract(target) => self.now += self.cuts.remove(target).unwrap_or(0),
            What::Error(refusal) => {
                self.window = refusal.limit.or(self.window);
                if let Some(actual) = refusal.actual {
                    self.now = actual;
                    self.step(actual, Kind::Refused);
                }
            }
            what => {
                if !entry.taken_back {
                    self.add(what);
                }
            }
        }
    }

    /// Reads what is said.
    fn read(&mut self, entry: &Entry) {
        match &entry.what {
            What::Turn(turn) => {
                let (time, taken_back) = (entry.time, entry.taken_back);
                self.prompts.push(Prompt { turn: *turn, time, text: String::new(), taken_back });
            }
            What::Said { role, text } => {
                self.languages.take(text);
                let newest = self.prompts.last_mut().filter(|_| *role == Role::User);
                if let Some(prompt) = newest.filter(|prompt| prompt.text.is_empty()) {
                    let line = text.lines().find(|line| !line.trim().is_empty());
                    prompt.text = cut(printable(line.unwrap_or_default()).trim(), PROMPT);
                }
            }
            _ => {}
        }
    }

    fn step(&mut self, tokens: u64, kind: Kind) {
        self.points.push(Point { turn: self.turn, tokens, kind });
    }

    fn compact(&mut self, it: &Compaction, id: &str) {
        let before = it.before.unwrap_or(self.now);
        let summary = || weigh(&summary::message(&it.summary));
        self.now = it.summary.tokens_after.unwrap_or_else(summary);
        self.cuts.insert(id.to_owned(), before.saturating_sub(self.now));
        self.step(self.now, Kind::Compacted(before));
    }

    /// Adds what is said to the request.
    fn add(&mut self, what: &What) {
        let by_model = matches!(
            what,
            What::Said { role: Role::Assistant, .. } | What::Thinking(_) | What::Call { .. }
        );
        if by_model && self.is_counted {
            return;
        }
        self.is_counted &= by_model;
        self.now += match what {
            What::Said { role, text } => weigh(&Message::say(*role, text)),
            What::Thinking(text) => weigh(&Message::say(Role::Assistant, text)),
            What::Call { name, input, .. } => {
                weigh(&Message::say(Role::Assistant, &format!("{name} {input}")))
            }
            What::Result(result) => {
                if result.saved > 0 {
                    self.savings.insert(result.id.clone(), result.saved);
                }
                let media = result.media.iter().map(|media| weigh_media(&media.raw));
                weigh(&Message::say(Role::User, &result.text)) + media.sum::<u64>()
            }
            What::Media { media, .. } => weigh_media(&media.raw),
            _ => 0,
        };
    }
}

fn weigh_media(raw: &str) -> u64 {
    let block = Block::parse(raw).ok();
    let message = |block| Message::new(Role::User, Content::Blocks(vec![block]));
    block.map_or(0, |block| weigh(&message(block)))
}
