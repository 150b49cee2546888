//! The plan for a request that would fail although the newest messages fit the window: its size is not within the target,
//! which leaves room for the next turns.

use super::choice::CutChoice;
use super::cut;
use super::{CutPlan, Task};
use std::iter;

impl<'r, 'a> Task<'r, 'a> {
    /// Returns true if the compacted request is within the target with a summary of the greatest length.
    #[must_use]
    pub fn has_room(&self, planned: &CutPlan) -> bool {
        let size = self.tokens(&self.apply(planned, "")) + self.most_tokens(planned);
        self.target.is_none_or(|target| size <= target)
    }

    /// Plans the compaction that covers as much as possible, or all before message `at`, within the first of `limits` for
    /// which that is possible. These replace the target, in tokens, and are in ascending order. For each limit, fewer and
    /// fewer of the user's words are kept. Only if even the last limit leaves no room for a summary of the greatest length,
    /// the summary counts as empty.
    ///
    /// Returns the plan, and the task with the limit that the plan is within as its target.
    #[must_use]
    pub fn plan_within(
        &self,
        limits: &[u64],
        at: Option<usize>,
    ) -> Option<(CutPlan, Task<'r, 'a>)> {
        let at = at.or_else(|| cut::legal(self.messages).last().copied())?;
        let weights = self.weights();
        let rest = CutChoice::new(self, weights.clone()).rests[at].tokens();
        let halved = |words: &u64| (*words > 0).then_some(words / 2);
        let words = || iter::successors(Some(self.keep_user), halved);
        let fitting = limits.iter().filter(|limit| rest <= **limit);
        let with_summary = fitting.flat_map(|limit| words().map(|words| (*limit, words, true)));
        let with_none = limits.last().filter(|limit| rest <= **limit).map(|it| (*it, 0, false));
        with_summary.chain(with_none).find_map(|(limit, keep_user, with_summary)| {
            let task = Task { target: Some(limit), keep_user, ..*self };
            let choice = CutChoice::new(&task, weights.clone());
            choice.fits(at, with_summary).then(|| (choice.chosen(at), task))
        })
    }
}
