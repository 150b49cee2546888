//! Compaction: replaces the old part of a conversation, the *covered* messages, with a summary.
//!
//! A compaction has four steps:
//!
//! 1. Plan it: [`cut`] chooses the place, [`verbatim`] the user's messages that are kept word for word.
//! 2. Get a summary: from a model ([`request`] builds the prompt, [`pieces`] divides it into calls), from the
//!    user, or from [`local`], which needs no model.
//! 3. Check it ([`accept`], [`identifiers`]).
//! 4. Apply it.
//!
//! This module runs no programs and writes no files (except the log of [`attempts`]), so the caller decides
//! how to get the summary. A summary that is not accepted changes nothing.

pub mod attempts;
pub mod call_budget;
pub mod accept;
mod choice;
pub mod cut;
pub mod details;
pub mod identifiers;
pub mod last_resort;
pub mod verbatim;
pub mod local;
pub mod own;
pub mod pending;
pub mod pieces;
pub mod reads_like;
pub mod refusal;
pub mod request;
pub mod rules;
pub mod stub;
pub mod phrases;

use crate::estimate::{Gauge, Model, Request, Weight, bytes};
use crate::json::write::Members;
use crate::messages::checkpoint::LatestCheckpoint;
use crate::messages::summary;
use crate::messages::{Message, Meta};
use crate::record::compaction::Summary;
use crate::record::content::Role;
use crate::record::details::Details;
use crate::record::scale::Scale;
use choice::CutChoice;
use cut::{CutLimits, CutRule};

/// The default budget for user messages that are kept word for word, in tokens.
pub const KEEP_USER: u64 = 20_000;
/// The most bytes that a token of ordinary text takes in a request.
pub const BYTES_PER_TOKEN: u64 = 8;
/// The longest summary to ask for, in tokens.
pub const SUMMARY_TOKENS: u64 = 2048;

/// Returns the most tokens that a summary may have: an eighth of `target`, the budget of the whole request, but
/// at least 64 and at most [`SUMMARY_TOKENS`].
#[must_use]
pub fn summary_tokens(target: Option<u64>) -> u64 {
    target.map_or(SUMMARY_TOKENS, |target| (target / 8).clamp(64, SUMMARY_TOKENS))
}

/// A conversation to compact, with the limits that apply.
#[derive(Clone, Copy, Debug)]
pub struct Task<'r, 'a> {
    /// The conversation.
    pub messages: &'r [Message<'a>],
    /// The system prompt of the request.
    pub system: Option<&'r str>,
    /// The tools of the request.
    pub tools: Option<&'r str>,
    /// The model that the request is for.
    pub model: Option<Model<'r>>,
    /// Counts tokens.
    pub gauge: Gauge,
    /// The most tokens that the compacted request may have, if the context window is known.
    pub target: Option<u64>,
    /// The budget for covered user messages that are kept word for word, in tokens.
    pub keep_user: u64,
    /// The rule that chooses the place of the cut.
    pub rule: CutRule,
    /// Further limits on the cut.
    pub limits: CutLimits,
}

/// A planned compaction, complete except for the summary.
#[derive(Clone, Debug)]
pub struct CutPlan {
    /// The number of messages, from the first, that the compaction covers.
    pub at: usize,
    /// The number of covered messages that stand for an earlier compaction; see [`cut::leading_summary`].
    pub from: usize,
    /// The text of the earlier summary.
    pub earlier: Option<String>,
    /// True if the earlier summary is a placeholder or continues one.
    pub needs_retry: bool,
    /// The number of tokens in the request before the compaction.
    pub before: u64,
    /// The number of tokens in the covered messages.
    pub covered_tokens: u64,
    /// The user messages that are kept word for word, oldest first.
    pub kept_user: Vec<String>,
    /// The pinned messages, oldest first.
    pub pinned: Vec<String>,
    /// The files that the covered tool calls read or changed.
    pub details: Details,
    /// The number of turns that this compaction covers but no checkpoint does.
    pub turns: u64,
    /// The provider's own summary of the covered part, if it made one; see [`Summary::own`].
    pub own: Option<Box<str>>,
}

impl<'a> Task<'_, 'a> {
    /// Plans the compaction. Returns `None` if the rule covers no message and the request is within the target, or if
    /// no legal cut makes the request smaller and brings it within the target, even with an empty summary.
    /// [`CutRule::Classic`] ignores both the size and the target.
    #[must_use]
    pub fn plan(&self) -> Option<CutPlan> {
        self.plan_weighed(self.weights())
    }

    /// Returns the weights of the messages.
    fn weights(&self) -> Vec<Weight> {
        self.messages.iter().map(|message| self.gauge.weigh(message)).collect()
    }

    /// Like [`Task::plan`], but takes the weights of the messages, which are already known.
    #[must_use]
    pub fn plan_weighed(&self, weights: Vec<Weight>) -> Option<CutPlan> {
        let choice = CutChoice::new(self, weights);
        // The rule counts messages only, without the system prompt and the tools.
        let base = self.tokens(&[]);
        let rests = choice.rests.iter().map(|rest| rest.tokens().saturating_sub(base));
        let preferred = self.rule.preferred(&rests.collect::<Vec<u64>>());
        let mut legal = cut::legal(self.messages);
        legal.retain(|at| self.limits.covers.is_none_or(|covered| *at > covered));
        let is_over = self.target.is_some_and(|target| choice.before > target)
            || self.limits.bytes.is_some_and(|most| self.bytes(self.messages) > most);
        let must_shrink = is_over && self.rule != CutRule::Classic;
        if preferred == 0 && !must_shrink {
            return None;
        }
        let at = match self.rule {
            CutRule::Classic => cut::choose(&legal, preferred, self.messages.len(), |_| true),
            _ if !is_over => choice.choose_within_target(&legal, preferred),
            _ => choice.choose_over_target(&legal, preferred),
        };
        Some(choice.chosen(at?))
    }

    /// Plans the compaction that keeps record `id` and everything after it. Returns `None` if no cut is legal
    /// there.
    #[must_use]
    pub fn plan_from(&self, id: &str) -> Option<CutPlan> {
        let is_it = |at: &usize| self.first_record(*at).is_some_and(|(first, _)| first == id);
        let at = cut::legal(self.messages).into_iter().find(is_it)?;
        Some(CutChoice::of(self).planned(at))
    }

    /// Plans a compaction with the newest checkpoint as its summary, and returns the plan and the summary.
    ///
    /// The cut is never after the last message that the checkpoint covers, so that no message is lost. It keeps the
    /// newest messages as any other cut does. The checkpoint must stand for at least half of the request's tokens
    /// (an integer division: 5 of 11 is enough), and the compacted request must be smaller and within the target.
    #[must_use]
    pub fn by_checkpoint(&self) -> Option<(CutPlan, String)> {
        let known = LatestCheckpoint::among(self.messages)?;
        let end = known.place(self.messages)? + 1;
        let choice = CutChoice::of(self);
        let before = choice.before;
        if !known.checkpoint.is_usable() || known.checkpoint.tokens < before / 2 {
            return None;
        }
        let text = known.checkpoint.render();
        let fits = |planned: &CutPlan| {
            let after = self.tokens(&self.apply(planned, &text));
            after < before && self.target.is_none_or(|target| after <= target)
        };
        let covered: Vec<usize> =
            cut::legal(self.messages).into_iter().filter(|at| *at <= end).collect();
        let latest = self.rule.latest(self.messages.len());
        let is_over = self.target.is_some_and(|target| before > target);
        let beyond = covered.iter().filter(|at| is_over && **at > latest);
        let cuts = covered.iter().rev().filter(|at| **at <= latest).chain(beyond);
        let planned = cuts.map(|at| choice.planned(*at)).find(fits)?;
        Some((planned, text))
    }

    /// Returns the most tokens that a summary of the covered part may have: [`Task::summary_tokens`], but at most
    /// half of what it replaces.
    #[must_use]
    pub fn most_tokens(&self, planned: &CutPlan) -> u64 {
        self.summary_tokens().min(planned.covered_tokens / 2)
    }

    /// Returns the most tokens that any summary may have; see [`summary_tokens`].
    #[must_use]
    pub fn summary_tokens(&self) -> u64 {
        summary_tokens(self.target)
    }

    /// Returns the covered user messages that are kept word for word.
    fn kept_user(&self, covered: &[Message<'_>], earlier: Option<&Summary>) -> Vec<String> {
        let may_keep = |message: &&Message<'_>| {
            message.is_from_user()
                && !message.is_summary()
                && !message.meta.as_ref().is_some_and(|meta| meta.pin)
        };
        let mut said = earlier.map(|summary| summary.kept_user.clone()).unwrap_or_default();
        said.extend(covered.iter().filter(may_keep).map(|message| message.content.text()));
        let is_pending = !self.messages[covered.len()..].iter().any(Message::is_from_user);
        let budget = self.target.map_or(self.keep_user, |target| self.keep_user.min(target / 4));
        verbatim::choose(self.gauge, &said, is_pending, budget)
    }

    /// Returns the messages with the covered ones replaced by the summary `text`.
    #[must_use]
    pub fn apply(&self, planned: &CutPlan, text: &str) -> Vec<Message<'a>> {
        let mut messages: Vec<Message<'a>> = self.opening(planned, text);
        let first = messages.len();
        messages.extend(self.messages[planned.at..].iter().cloned());
        // The provider's counts no longer apply, because they include the covered messages.
        for meta in messages[first..].iter_mut().filter_map(|message| message.meta.as_mut()) {
            meta.drop_count();
        }
        if let Some(scale) = self.gauge.scale().filter(|_| self.has_meta()) {
            messages[0].meta = Some(Box::new(Meta { scale: Some(scale), ..Meta::default() }));
        }
        messages
    }

    /// Returns the messages that replace the covered ones: the summary `text`, and a reply to it if one is needed.
    #[must_use]
    pub fn opening(&self, planned: &CutPlan, text: &str) -> Vec<Message<'static>> {
        let mut messages = vec![summary::message(&planned.summary(text))];
        let next = self.messages.get(planned.at);
        if next.is_some_and(|next| next.role == Role::User) {
            messages.push(summary::acknowledgement());
        }
        messages
    }

    fn has_meta(&self) -> bool {
        self.messages.iter().any(|message| message.meta.is_some())
    }

    /// Returns the number of tokens in the whole request with these messages.
    #[must_use]
    pub fn tokens(&self, messages: &[Message<'_>]) -> u64 {
        let Task { system, tools, model, .. } = *self;
        self.gauge.tokens(Request { messages, system, tools, model })
    }

    /// Returns the size of the whole request with these messages, in bytes.
    #[must_use]
    pub fn bytes(&self, messages: &[Message<'_>]) -> u64 {
        let Task { system, tools, model, .. } = *self;
        bytes::of(Request { messages, system, tools, model })
    }

    /// Returns the smallest request that any cut can leave, in tokens: the system prompt, the tools and the messages that must be
    /// kept.
    #[must_use]
    pub fn smallest(&self) -> SmallestRequest {
        let Task { tools, model, gauge, .. } = *self;
        let kept = cut::legal(self.messages).last().copied().unwrap_or(0);
        let base = self.tokens(&[]);
        let tools = gauge.tokens(Request { messages: &[], system: None, tools, model });
        let none = gauge.tokens(Request { messages: &[], system: None, tools: None, model });
        let (tools, system) = (tools.saturating_sub(none), base.saturating_sub(tools));
        let kept = gauge.rests(Request { messages: self.messages, ..Request::default() })[kept..]
            .first()
            .map_or(0, |rest| rest.saturating_sub(none));
        SmallestRequest { system, tools, kept }
    }

    /// Returns the id and the offset of the first record that is kept. `None` if the messages have no `_meta`.
    #[must_use]
    pub fn first_kept(&self, planned: &CutPlan) -> Option<(String, u64)> {
        self.first_record(planned.at)
    }

    /// Returns the id and the offset of the first record, in file order, of the messages from `at` on.
    fn first_record(&self, at: usize) -> Option<(String, u64)> {
        let kept = self.messages[at..].iter().map(|message| message.meta.as_ref());
        let known = kept.flatten().filter(|meta| !meta.id.is_empty());
        known.min_by_key(|meta| meta.offset).map(|meta| (meta.id.to_string(), meta.offset))
    }
}

/// The parts of the smallest request that any cut can leave, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallestRequest {
    /// The system prompt.
    pub system: u64,
    /// The definitions of the tools.
    pub tools: u64,
    /// The newest messages, which no cut covers.
    pub kept: u64,
}

impl CutPlan {
    /// Returns the summary `text`, together with the messages and file names that are kept verbatim.
    #[must_use]
    pub fn summary(&self, text: &str) -> Summary {
        Summary {
            text: text.trim().to_owned(),
            kept_user: self.kept_user.clone(),
            pinned: self.pinned.clone(),
            details: self.details.clone(),
            needs_retry: self.needs_retry,
            turns: self.turns,
            tokens_after: None,
            own: self.own.clone(),
        }
    }

    /// Returns the compaction record, without id and time.
    #[must_use]
    pub fn record(
        &self,
        source: &MadeSummary<'_>,
        first_kept: &(String, u64),
        after: u64,
    ) -> String {
        let (id, offset) = first_kept;
        let mut summary = self.summary(source.text);
        summary.needs_retry |= source.strategy == Strategy::Stub;
        let record = summary
            .add_to(Members::of_type("compaction"))
            .string("first_kept_entry_id", id)
            .number("first_kept_offset", *offset)
            .number("tokens_before", self.before)
            .number("tokens_after", after)
            .string("strategy", source.strategy.name())
            .optional(Members::string, "model", source.model)
            .optional(Members::raw, "usage", source.usage)
            .optional(Members::string, "retry_of", source.retry_of);
        Scale::add_to(source.scale, record).into_json()
    }
}

/// The source of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// A model wrote it.
    Llm,
    /// The server of the conversation's model made it.
    Provider,
    /// It is a checkpoint that was made earlier.
    Checkpoint,
    /// It was extracted from the messages, without a model.
    Local,
    /// The user wrote it.
    File,
    /// It is a placeholder: it says only that messages are left out.
    Stub,
}

impl Strategy {
    /// Returns its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Llm => "llm",
            Strategy::Provider => "provider",
            Strategy::Checkpoint => "checkpoint",
            Strategy::Local => "local",
            Strategy::File => "file",
            Strategy::Stub => "stub",
        }
    }

    /// Returns true if a model wrote the summary.
    #[must_use]
    pub fn is_by_model(self) -> bool {
        matches!(self, Strategy::Llm | Strategy::Provider)
    }
}

/// A summary and its source.
#[derive(Clone, Copy, Debug)]
pub struct MadeSummary<'s> {
    /// The summary.
    pub text: &'s str,
    /// The source of the summary.
    pub strategy: Strategy,
    /// The model that wrote it.
    pub model: Option<&'s str>,
    /// The provider's usage as JSON, added up over several calls.
    pub usage: Option<&'s str>,
    /// The id of the compaction record that it replaces, if it is made later for a placeholder.
    pub retry_of: Option<&'s str>,
    /// The scale of the estimate, derived from the provider's counts that the compaction makes invalid.
    pub scale: Option<Scale>,
}
