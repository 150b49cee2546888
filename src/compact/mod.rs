//! Compact: a summary for the old part of a conversation.
//!
//! Plan ([`cut`]: where; [`verbatim`]: what stays word for word), get a text (from a model: [`request`] is what
//! it is asked, [`pieces`] in how many calls; from the user; or [`local`]), check it ([`accept`],
//! [`identifiers`]), apply it. Nothing here runs a program or writes a file, so planning and applying can be
//! two steps with anything in between. History is never dropped for want of a summary: what cannot be
//! accepted changes nothing.

pub mod attempts;
pub mod call_budget;
pub mod accept;
pub mod cut;
pub mod details;
pub mod identifiers;
pub mod verbatim;
pub mod local;
pub mod pending;
pub mod pieces;
pub mod reads_like;
pub mod request;
pub mod rules;
pub mod stub;
pub mod phrases;

use crate::estimate::{Gauge, Request};
use crate::json::write::Members;
use crate::messages::checkpoint::{LatestCheckpoint, open_turns};
use crate::messages::summary;
use crate::messages::{Message, Meta};
use crate::record::compaction::Summary;
use crate::record::content::Role;
use crate::record::details::Details;
use crate::record::scale::Scale;
use cut::CutRule;

/// The user's words that are kept word for word by default, in tokens.
pub const KEEP_USER: u64 = 20_000;
/// The most tokens that a summary is asked to have.
pub const SUMMARY_TOKENS: u64 = 2048;

/// How long a summary may be (tokens): an eighth of `target`, which the request has to get within, at most
/// [`SUMMARY_TOKENS`].
#[must_use]
pub fn summary_tokens(target: Option<u64>) -> u64 {
    target.map_or(SUMMARY_TOKENS, |target| (target / 8).clamp(64, SUMMARY_TOKENS))
}

/// What to compact, and how far.
#[derive(Clone, Copy, Debug)]
pub struct Task<'r, 'a> {
    /// The conversation.
    pub messages: &'r [Message<'a>],
    /// The system prompt that goes with it.
    pub system: Option<&'r str>,
    /// The tools that go with it.
    pub tools: Option<&'r str>,
    /// The model that is asked.
    pub model: Option<&'r str>,
    /// Counts tokens.
    pub gauge: Gauge,
    /// What the result has to get within (tokens), if a window is known.
    pub target: Option<u64>,
    /// How much of the user's words in the covered part is kept (tokens).
    pub keep_user: u64,
    /// How the place of the cut is chosen.
    pub rule: CutRule,
}

/// A compaction that only lacks its summary.
#[derive(Clone, Debug)]
pub struct CutPlan {
    /// How many messages from the first are covered.
    pub at: usize,
    /// How many of these render an earlier compaction.
    pub from: usize,
    /// What that says.
    pub earlier: Option<String>,
    /// Whether that only stands in for a summary.
    pub needs_retry: bool,
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
    /// The covered turns that no checkpoint covers.
    pub turns: u64,
}

impl<'a> Task<'_, 'a> {
    /// Finds the cut. `None` when there is nothing to gain: no legal cut, or none that could bring the
    /// request within the target however short the summary.
    #[must_use]
    pub fn plan(&self) -> Option<CutPlan> {
        let Task { messages, system, tools, model, .. } = *self;
        let before = self.tokens(messages);
        let request = |messages| Request { messages, system, tools, model };
        let rests = self.gauge.rests(request(messages));
        // The tail is counted by itself, without what goes with every request.
        let base = self.gauge.tokens(request(&[]));
        let tails: Vec<u64> = rests.iter().map(|rest| rest.saturating_sub(base)).collect();
        let preferred = self.rule.preferred(&tails);
        let legal = cut::legal(messages);
        let is_over = self.target.is_some_and(|target| before > target);
        let may_do_without = is_over && self.rule != CutRule::Classic;
        if preferred == 0 && !may_do_without {
            return None;
        }
        let choice = CutChoice { task: self, before, rests: &rests };
        let at = match self.rule {
            CutRule::Classic => cut::choose(&legal, preferred, messages.len(), |_| true),
            _ if !is_over => choice.where_it_fits(&legal, preferred),
            _ => choice.where_it_gets_small(&legal, preferred),
        };
        Some(self.planned(at?, before))
    }

    /// The plan of which record `id` is the first that is kept; `None` where no cut can be.
    #[must_use]
    pub fn plan_from(&self, id: &str) -> Option<CutPlan> {
        let is_it = |at: &usize| self.first_record(*at).is_some_and(|(first, _)| first == id);
        let at = cut::legal(self.messages).into_iter().find(is_it)?;
        Some(self.planned(at, self.tokens(self.messages)))
    }

    /// The plan and the text that the newest checkpoint gives: a cut no later than what it covers, so that
    /// nothing falls between, and with the newest messages kept as after any other cut. It has to have had half
    /// of the request's tokens or more (whole numbers: 5 of 11 will do), and what is left has to be smaller and
    /// within the target.
    #[must_use]
    pub fn by_checkpoint(&self) -> Option<(CutPlan, String)> {
        let known = LatestCheckpoint::among(self.messages)?;
        let end = known.place(self.messages)? + 1;
        let before = self.tokens(self.messages);
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
        let planned = cuts.map(|at| self.planned(*at, before)).find(fits)?;
        Some((planned, text))
    }

    /// The most tokens that a summary of this part may have: as long as any may be, and half of what it
    /// stands for.
    #[must_use]
    pub fn most_tokens(&self, planned: &CutPlan) -> u64 {
        self.summary_tokens().min(planned.covered / 2)
    }

    /// How long a summary may be: see [`summary_tokens`].
    #[must_use]
    pub fn summary_tokens(&self) -> u64 {
        summary_tokens(self.target)
    }

    fn planned(&self, at: usize, before: u64) -> CutPlan {
        let covered = &self.messages[..at];
        let earlier = covered.iter().find_map(|m| m.meta.as_ref()?.summary.as_ref());
        let mut pinned = earlier.map(|summary| summary.pinned.clone()).unwrap_or_default();
        let is_pinned = |message: &Message<'_>| message.meta.as_ref().is_some_and(|meta| meta.pin);
        pinned.extend(covered.iter().filter(|m| is_pinned(m)).map(pinned_text));
        let mut details = earlier.map(|summary| summary.details.clone()).unwrap_or_default();
        details::add(&mut details, covered);
        CutPlan {
            at,
            before,
            from: cut::leading_summary(covered),
            earlier: earlier.map(|summary| summary.text.clone()),
            needs_retry: earlier.is_some_and(|summary| summary.needs_retry),
            covered: covered.iter().map(|message| self.gauge.message(message)).sum(),
            kept_user: self.kept_user(covered, earlier),
            pinned,
            details,
            turns: open_turns(self.messages, at),
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
        verbatim::choose(self.gauge, &said, is_pending, budget)
    }

    /// The messages with the covered ones replaced by a summary that says `text`.
    #[must_use]
    pub fn apply(&self, planned: &CutPlan, text: &str) -> Vec<Message<'a>> {
        let mut messages = vec![summary::message(&planned.summary(text))];
        let rest = &self.messages[planned.at..];
        if rest.first().is_some_and(|next| next.role == Role::User) {
            messages.push(summary::acknowledgement());
        }
        let first = messages.len();
        messages.extend(rest.iter().cloned());
        // What the provider counted was the request with the covered messages.
        for meta in messages[first..].iter_mut().filter_map(|message| message.meta.as_mut()) {
            meta.drop_count();
        }
        if let Some(scale) = self.gauge.scale().filter(|_| self.has_meta()) {
            messages[0].meta = Some(Box::new(Meta { scale: Some(scale), ..Meta::default() }));
        }
        messages
    }

    fn has_meta(&self) -> bool {
        self.messages.iter().any(|message| message.meta.is_some())
    }

    /// Tokens of the whole request with these messages.
    #[must_use]
    pub fn tokens(&self, messages: &[Message<'_>]) -> u64 {
        let Task { system, tools, model, .. } = *self;
        self.gauge.tokens(Request { messages, system, tools, model })
    }

    /// The first record that is kept, and where it begins; `None` when the messages came without
    /// `_meta`.
    #[must_use]
    pub fn first_kept(&self, planned: &CutPlan) -> Option<(String, u64)> {
        self.first_record(planned.at)
    }

    /// The first record, in file order, of the messages from `at` on, and where it begins.
    fn first_record(&self, at: usize) -> Option<(String, u64)> {
        let kept = self.messages[at..].iter().map(|message| message.meta.as_ref());
        let known = kept.flatten().filter(|meta| !meta.id.is_empty());
        known.min_by_key(|meta| meta.offset).map(|meta| (meta.id.to_string(), meta.offset))
    }
}

/// Whether a cut is worth it.
struct CutChoice<'t> {
    task: &'t Task<'t, 't>,
    before: u64,
    rests: &'t [u64],
}

impl CutChoice<'_> {
    /// Whether a cut at `at` leaves a request that is smaller and within the target: with a summary as long
    /// as may be if `is_sure`, else with none at all.
    fn fits(&self, at: usize, is_sure: bool) -> bool {
        let CutChoice { task, before, rests } = *self;
        // What would stay is too much even without a summary: told without trying.
        if task.target.is_some_and(|target| rests[at] > target) {
            return false;
        }
        let planned = task.planned(at, before);
        let summary = if is_sure { task.most_tokens(&planned) } else { 0 };
        let size = task.tokens(&task.apply(&planned, "")) + summary;
        size < before && task.target.is_none_or(|target| size <= target)
    }

    /// Where all of it fits already: only a target moves the cut into what is to stay, unless that is the
    /// first legal place.
    fn where_it_fits(&self, legal: &[usize], preferred: usize) -> Option<usize> {
        let first = legal.iter().copied().find(|at| *at >= preferred);
        let latest = self.latest();
        let most = if self.task.rule == CutRule::Half { latest } else { preferred };
        let may_cut = |at: usize| at <= most || Some(at) == first;
        cut::choose(legal, preferred, latest, |at| may_cut(at) && self.fits(at, false))
    }

    /// Where it does not. If the least that can stay hardly fits, only a very short summary helps.
    fn where_it_gets_small(&self, legal: &[usize], preferred: usize) -> Option<usize> {
        let hardly = || legal.last().copied().filter(|at| self.fits(*at, false));
        cut::choose(legal, preferred, self.latest(), |at| self.fits(at, true)).or_else(hardly)
    }

    fn latest(&self) -> usize {
        self.task.rule.latest(self.task.messages.len())
    }
}

/// What a pinned message says, results included.
fn pinned_text(message: &Message<'_>) -> String {
    let mut said = message.content.says();
    for block in message.blocks().filter(|block| block.is_result()) {
        let content = block.member("content").map(crate::record::content::Content::parse);
        if let Some(Ok(content)) = content {
            said.push_str(&content.says());
        }
    }
    said
}

impl CutPlan {
    /// The summary with everything that is kept beside it.
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
        }
    }

    /// The compaction record, without id and time.
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
        summary
            .add_to(Members::of_type("compaction"))
            .string("first_kept_entry_id", id)
            .number("first_kept_offset", *offset)
            .number("tokens_before", self.before)
            .number("tokens_after", after)
            .string("strategy", source.strategy.name())
            .optional(Members::string, "model", source.model)
            .optional(Members::raw, "usage", source.usage)
            .optional(Members::string, "retry_of", source.retry_of)
            .optional(Members::decimal, "scale", source.scale)
            .into_json()
    }
}

/// How a summary was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// A model wrote it.
    Llm,
    /// It was there already, as a checkpoint.
    Checkpoint,
    /// Put together without a model.
    Local,
    /// The user wrote it.
    File,
    /// It says only that there is none.
    Stub,
}

impl Strategy {
    /// Its word in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Llm => "llm",
            Strategy::Checkpoint => "checkpoint",
            Strategy::Local => "local",
            Strategy::File => "file",
            Strategy::Stub => "stub",
        }
    }
}

/// A summary, and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct MadeSummary<'s> {
    /// The summary.
    pub text: &'s str,
    /// How it was made.
    pub strategy: Strategy,
    /// The model that wrote it.
    pub model: Option<&'s str>,
    /// What the provider counted for it, as it was sent; added up over several calls.
    pub usage: Option<&'s str>,
    /// The record in whose place it stands, if that only stood in for a summary.
    pub retry_of: Option<&'s str>,
    /// The scale by the counts that no longer hold.
    pub scale: Option<Scale>,
}
