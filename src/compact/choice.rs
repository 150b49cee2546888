//! The choice of a cut: each legal one is tried with the size that the request would have.

use super::cut::{self, CutRule};
use super::{BYTES_PER_TOKEN, CutPlan, Task, details};
use crate::estimate::{Request, Tally, Weight, bytes};
use crate::messages::Message;
use crate::messages::checkpoint::open_turns;
use std::cell::Cell;

/// Chooses among the legal cuts. Each message is weighed once, however many cuts are tried.
pub(super) struct CutChoice<'t, 'r, 'a> {
    task: &'t Task<'r, 'a>,
    /// The number of tokens in the request before the compaction.
    pub(super) before: u64,
    weights: Vec<Weight>,
    /// For each message, the count of the request without the messages before it.
    pub(super) rests: Vec<Tally>,
    /// The plan for the cut that was tried last.
    tried: Cell<Option<CutPlan>>,
}

impl<'t, 'r, 'a> CutChoice<'t, 'r, 'a> {
    pub(super) fn of(task: &'t Task<'r, 'a>) -> CutChoice<'t, 'r, 'a> {
        CutChoice::new(task, task.weights())
    }

    pub(super) fn new(task: &'t Task<'r, 'a>, weights: Vec<Weight>) -> CutChoice<'t, 'r, 'a> {
        let Task { messages, system, tools, model, gauge, .. } = *task;
        let mut rest = gauge.tally(Request { messages: &[], system, tools, model });
        let mut rests = vec![rest; messages.len()];
        for (place, weight) in rests.iter_mut().zip(&weights).rev() {
            rest.add(*weight);
            *place = rest;
        }
        let has_count =
            |message: &Message<'_>| message.meta.as_ref().is_some_and(|it| it.usage.is_some());
        let before = match messages.iter().any(has_count) {
            true => task.tokens(messages),
            false => rest.tokens(),
        };
        CutChoice { task, before, weights, rests, tried: Cell::default() }
    }

    /// Returns the plan for the chosen cut, which is usually the one that was tried last.
    pub(super) fn chosen(&self, at: usize) -> CutPlan {
        self.tried.take().filter(|tried| tried.at == at).unwrap_or_else(|| self.planned(at))
    }

    pub(super) fn planned(&self, at: usize) -> CutPlan {
        let CutChoice { task, before, .. } = *self;
        let covered = &task.messages[..at];
        let earlier = covered.iter().find_map(|m| m.meta.as_ref()?.summary.as_deref());
        let mut pinned = earlier.map(|summary| summary.pinned.clone()).unwrap_or_default();
        let is_pinned = |message: &Message<'_>| message.meta.as_ref().is_some_and(|meta| meta.pin);
        pinned.extend(covered.iter().filter(|m| is_pinned(m)).map(pinned_text));
        let mut details = earlier.map(|summary| summary.details.clone()).unwrap_or_default();
        details::add(&mut details, covered);
        let tokens = |weight: &Weight| task.gauge.scaled(weight.tokens());
        CutPlan {
            at,
            before,
            from: cut::leading_summary(covered),
            earlier: earlier.map(|summary| summary.text.clone()),
            needs_retry: earlier.is_some_and(|summary| summary.needs_retry),
            covered_tokens: self.weights[..at].iter().map(tokens).sum(),
            kept_user: task.kept_user(covered, earlier),
            pinned,
            details,
            turns: open_turns(task.messages, at),
            own: None,
        }
    }

    /// Returns the number of tokens in the compacted request, with an empty summary.
    fn size(&self, planned: &CutPlan) -> u64 {
        let mut tally = self.rests[planned.at];
        for message in self.task.opening(planned, "") {
            tally.add(self.task.gauge.weigh(&message));
        }
        tally.tokens()
    }

    /// Returns true if a cut at `at` makes the request smaller and brings it within the target. The summary
    /// counts with its greatest length if `with_summary`, and as empty otherwise.
    pub(super) fn fits(&self, at: usize, with_summary: bool) -> bool {
        let CutChoice { task, before, rests, .. } = self;
        // The kept messages alone exceed the target: no need to plan the compaction.
        if task.target.is_some_and(|target| rests[at].tokens() > target) {
            return false;
        }
        let planned = self.planned(at);
        let summary = if with_summary { task.most_tokens(&planned) } else { 0 };
        let size = self.size(&planned) + summary;
        self.tried.set(Some(planned));
        let is_small = task.limits.bytes.is_none_or(|most| self.bytes_of(at) <= most);
        size < *before && task.target.is_none_or(|target| size <= target) && is_small
    }

    /// Returns the size of the compacted request in bytes, with the longest summary.
    fn bytes_of(&self, at: usize) -> u64 {
        let task = self.task;
        let opening = bytes::of(Request {
            messages: &task.opening(&self.planned(at), ""),
            ..Request::default()
        });
        task.bytes(&task.messages[at..]) + opening + task.summary_tokens() * BYTES_PER_TOKEN
    }

    /// Returns the cut for a request that is within the target already. The cut is not after the preferred place
    /// (with [`CutRule::Half`]: the latest place), unless it is the first legal place from the preferred one on.
    pub(super) fn choose_within_target(&self, legal: &[usize], preferred: usize) -> Option<usize> {
        let first = legal.iter().copied().find(|at| *at >= preferred);
        let latest = self.latest();
        let most = if self.task.rule == CutRule::Half { latest } else { preferred };
        let may_cut = |at: usize| at <= most || Some(at) == first;
        cut::choose(legal, preferred, latest, |at| may_cut(at) && self.fits(at, false))
    }

    /// Returns the cut for a request that exceeds the target. If no cut leaves room for a summary of the
    /// greatest length, it is the last legal one that leaves room for a very short summary.
    pub(super) fn choose_over_target(&self, legal: &[usize], preferred: usize) -> Option<usize> {
        let last = || legal.iter().rev().copied().find(|at| self.fits(*at, false));
        cut::choose(legal, preferred, self.latest(), |at| self.fits(at, true)).or_else(last)
    }

    fn latest(&self) -> usize {
        self.task.rule.latest(self.task.messages.len())
    }
}

/// Returns the text of a pinned message, with its tool results.
fn pinned_text(message: &Message<'_>) -> String {
    let mut said = message.content.text();
    for block in message.blocks().filter(|block| block.is_result()) {
        said.push_str(&block.result_content().text());
    }
    said
}
