//! Compact: a summary for the old part of a conversation.
//!
//! Plan ([`cut`]: where; [`plan`]: what the model is asked), get a text (by running `claw-call`, from
//! the user, or [`local`]), check it ([`accept`]), apply it. Nothing here runs a program or writes a file, so
//! planning and applying can be two steps with anything in between. History is never dropped for want
//! of a summary: what cannot be accepted changes nothing.

pub mod accept;
pub mod cut;
pub mod details;
pub mod kept;
pub mod local;
pub mod plan;
pub mod rules;

use crate::estimate::{Gauge, Request};
use crate::json::quote;
use crate::messages::summary::{self, Summary};
use crate::messages::{Message, Role};
use details::Details;

/// The user's words that are kept word for word by default, in tokens.
pub const KEEP_USER: u64 = 20_000;
/// The most tokens that a summary is asked to have.
pub const SUMMARY_TOKENS: u64 = 2048;

/// What to compact, and how far.
#[derive(Clone, Copy, Debug)]
pub struct Task<'r, 'a> {
    /// The conversation.
    pub messages: &'r [Message<'a>],
    /// The system prompt that goes with it.
    pub system: Option<&'r str>,
    /// The tools that go with it.
    pub tools: Option<&'r str>,
    /// Counts tokens.
    pub gauge: Gauge,
    /// What the result has to get within (tokens), if a window is known.
    pub target: Option<u64>,
    /// How much of the user's words in the covered part is kept (tokens).
    pub keep_user: u64,
}

/// A compaction that only lacks its summary.
#[derive(Clone, Debug)]
pub struct Planned {
    /// How many messages from the first are covered.
    pub at: usize,
    /// The request's tokens now.
    pub before: u64,
    /// The tokens of the covered messages.
    pub covered: u64,
    /// The user's words that are kept, oldest first.
    pub kept_user: Vec<String>,
    /// What is pinned, oldest first.
    pub pinned: Vec<String>,
    /// Files that the covered calls touched.
    pub details: Details,
}

impl<'a> Task<'_, 'a> {
    /// Finds the cut. `None` when there is nothing to gain: no legal cut, or none that could bring the
    /// request within the target however short the summary.
    #[must_use]
    pub fn plan(&self) -> Option<Planned> {
        let before = self.tokens(self.messages);
        let legal = cut::legal(self.messages);
        let preferred = cut::classic(self.messages.len());
        let is_over = self.target.is_some_and(|target| before > target);
        if preferred == 0 && !is_over {
            return None;
        }
        let Task { messages, system, tools, .. } = *self;
        let rests = self.gauge.rests(Request { messages, system, tools });
        let fits = |at: usize, is_sure: bool| {
            // What would stay is too much even without a summary: told without trying.
            if self.target.is_some_and(|target| rests[at] > target) {
                return false;
            }
            let planned = self.planned(at, before);
            // A summary takes what it is allowed, or half of what it covers.
            let summary = self.summary_tokens().min(planned.covered / 2);
            let size = self.tokens(&self.apply(&planned, "")) + if is_sure { summary } else { 0 };
            size < before && self.target.is_none_or(|target| size <= target)
        };
        if !is_over {
            // Only a target moves the cut into what is to stay, unless that is the first legal place.
            let first = legal.iter().copied().find(|at| *at >= preferred);
            let most = self.messages.len().saturating_sub(cut::keep(self.messages.len()));
            let may_cut = |at: usize| at <= most || Some(at) == first;
            let at = cut::choose(&legal, preferred, |at| may_cut(at) && fits(at, false))?;
            return Some(self.planned(at, before));
        }
        // Where the least that can stay hardly fits, only a very short summary helps.
        let at = cut::choose(&legal, preferred, |at| fits(at, true))
            .or_else(|| legal.last().copied().filter(|at| fits(*at, false)))?;
        Some(self.planned(at, before))
    }

    /// How long a summary may be (tokens): an eighth of the target, at most [`SUMMARY_TOKENS`].
    #[must_use]
    pub fn summary_tokens(&self) -> u64 {
        self.target.map_or(SUMMARY_TOKENS, |target| (target / 8).clamp(64, SUMMARY_TOKENS))
    }

    fn planned(&self, at: usize, before: u64) -> Planned {
        let covered = &self.messages[..at];
        let earlier = covered.iter().find_map(|m| m.meta.as_ref()?.summary.as_ref());
        let mut pinned = earlier.map(|summary| summary.pinned.clone()).unwrap_or_default();
        let is_pinned = |message: &Message<'_>| message.meta.as_ref().is_some_and(|meta| meta.pin);
        pinned.extend(covered.iter().filter(|m| is_pinned(m)).map(pinned_text));
        let mut details = earlier.map(|summary| summary.details.clone()).unwrap_or_default();
        details.add(covered);
        Planned {
            at,
            before,
            covered: covered.iter().map(|message| self.gauge.message(message)).sum(),
            kept_user: self.kept_user(covered, earlier),
            pinned,
            details,
        }
    }

    /// The user's words in the covered part, as far as they stay.
    fn kept_user(&self, covered: &[Message<'_>], earlier: Option<&Summary>) -> Vec<String> {
        let is_covered = |message: &&Message<'_>| {
            message.is_said_by_user()
                && !message.is_summary()
                && !message.meta.as_ref().is_some_and(|meta| meta.pin)
        };
        let mut said = earlier.map(|summary| summary.kept_user.clone()).unwrap_or_default();
        said.extend(covered.iter().filter(is_covered).map(|message| message.content.says()));
        let is_pending = !self.messages[covered.len()..].iter().any(Message::is_said_by_user);
        let budget = self.target.map_or(self.keep_user, |target| self.keep_user.min(target / 4));
        kept::choose(self.gauge, &said, is_pending, budget)
    }

    /// The messages with the covered ones replaced by a summary that says `text`.
    #[must_use]
    pub fn apply(&self, planned: &Planned, text: &str) -> Vec<Message<'a>> {
        let mut messages = vec![planned.summary(text).message()];
        let rest = &self.messages[planned.at..];
        if rest.first().is_some_and(|next| next.role == Role::User) {
            messages.push(summary::acknowledgement());
        }
        let first = messages.len();
        messages.extend(rest.iter().cloned());
        // What the provider counted was the request with the covered messages.
        for meta in messages[first..].iter_mut().filter_map(|message| message.meta.as_mut()) {
            meta.usage = None;
        }
        messages
    }

    /// Tokens of the whole request with these messages.
    #[must_use]
    pub fn tokens(&self, messages: &[Message<'_>]) -> u64 {
        let Task { system, tools, .. } = *self;
        self.gauge.tokens(Request { messages, system, tools })
    }

    /// The first record that is kept, and where it begins; `None` when the messages came without
    /// `_meta`.
    #[must_use]
    pub fn first_kept(&self, planned: &Planned) -> Option<(String, u64)> {
        let kept = self.messages[planned.at..].iter().map(|message| message.meta.as_ref());
        let known = kept.flatten().filter(|meta| !meta.id.is_empty());
        known.min_by_key(|meta| meta.offset).map(|meta| (meta.id.to_string(), meta.offset))
    }
}

/// What a pinned message says, results included.
fn pinned_text(message: &Message<'_>) -> String {
    let mut said = message.content.says();
    for block in message.blocks().filter(|block| block.is_result()) {
        let content = block.member("content").map(crate::messages::Content::parse);
        if let Some(Ok(content)) = content {
            said.push_str(&content.says());
        }
    }
    said
}

impl Planned {
    /// The summary with everything that is kept beside it.
    #[must_use]
    pub fn summary(&self, text: &str) -> Summary {
        Summary {
            text: text.trim().to_owned(),
            kept_user: self.kept_user.clone(),
            pinned: self.pinned.clone(),
            details: self.details.clone(),
        }
    }

    /// The compaction record, without id and time.
    #[must_use]
    pub fn record(&self, source: &Source<'_>, first_kept: &(String, u64), after: u64) -> String {
        let optional = |name: &str, value: Option<String>| {
            value.map_or(String::new(), |value| format!(r#","{name}":{value}"#))
        };
        let (id, offset) = first_kept;
        format!(
            r#"{{"type":"compaction",{},"first_kept_entry_id":{},"first_kept_offset":{offset},"tokens_before":{},"tokens_after":{after},"strategy":{}{}{},"needs_summary_retry":false}}"#,
            self.summary(source.text).members(),
            quote(id),
            self.before,
            quote(source.strategy),
            optional("model", source.model.map(quote)),
            optional("usage", source.usage.map(str::to_owned)),
        )
    }
}

/// Where a summary comes from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    /// The summary.
    pub text: &'s str,
    /// How it was made: `llm`, `file` or `local`.
    pub strategy: &'s str,
    /// The model that wrote it.
    pub model: Option<&'s str>,
    /// What the provider counted for it, as it was sent.
    pub usage: Option<&'s str>,
}
