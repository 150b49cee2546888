//! The items of a request, each with its weight, and their shares of the tokens.
//!
//! The shares add up to the tokens of the whole request, and so do the totals of all parts of the prompt.

use crate::id::Id;
use crate::messages::Message;
use crate::record::content::Role;
use std::collections::HashMap;

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The system prompt.
    System,
    /// The tools.
    Tools,
    /// The user's text.
    User,
    /// The assistant's text, thinking and tool calls.
    Assistant,
    /// The tool results, without their images.
    Results,
    /// Images and documents.
    Images,
}

impl Part {
    /// All parts, in the order of reports.
    pub const ALL: [Part; 6] =
        [Part::System, Part::Tools, Part::User, Part::Assistant, Part::Results, Part::Images];

    /// Returns the part that the text of a role belongs to.
    pub(super) fn of(role: Role) -> Part {
        match role {
            Role::User => Part::User,
            Role::Assistant => Part::Assistant,
        }
    }

    /// Returns the name of the part in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::System => "system",
            Part::Tools => "tools",
            Part::User => "user",
            Part::Assistant => "assistant",
            Part::Results => "results",
            Part::Images => "images",
        }
    }
}

/// A weighed item of a request: the system prompt, the tools, or a block of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The part that it belongs to.
    pub part: Part,
    /// The index of its message; `None` for the system prompt and the tools.
    pub message: Option<usize>,
    /// For a tool result and its images, the id of the call.
    pub call: Option<Id>,
    /// Its weight, in the units of [`weigh`](super::text::weigh).
    pub weight: u64,
}

/// Divides `total` among items in proportion to their weights. The shares add up to `total`: rounding applies to the
/// cumulative sums, so that each share differs by less than one from its exact value. If all weights are zero, the
/// last item gets everything.
pub(super) fn share_out(total: u64, items: &[Item]) -> Vec<u64> {
    let sum: u128 = items.iter().map(|item| u128::from(item.weight)).sum();
    let (mut before, mut shared) = (0, 0);
    let share = |item: &Item| {
        before += u128::from(item.weight);
        let boundary = (u128::from(total) * before + sum / 2).checked_div(sum).unwrap_or(0);
        let boundary = u64::try_from(boundary).unwrap_or(total);
        boundary - std::mem::replace(&mut shared, boundary)
    };
    let mut shares: Vec<u64> = items.iter().map(share).collect();
    if let Some(last) = shares.last_mut() {
        *last += total - shared;
    }
    shares
}

/// The tokens of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTokens {
    /// The id of the record. Content other than tool results is under the first record of its message.
    pub id: Id,
    /// The part that most of its tokens belong to.
    pub part: Part,
    /// Its share of the tokens of the request.
    pub tokens: u64,
}

/// Returns the `count` records with the most tokens, the largest first. Messages without `_meta` have no records.
pub(super) fn largest(
    items: &[Item],
    shares: &[u64],
    messages: &[Message<'_>],
    count: usize,
) -> Vec<RecordTokens> {
    let mut places = HashMap::new();
    let mut records: Vec<(RecordTokens, u64)> = Vec::new();
    for (item, share) in items.iter().zip(shares) {
        let Some(id) = record_of(item, messages) else { continue };
        let place = *places.entry(id.clone()).or_insert(records.len());
        if place == records.len() {
            records.push((RecordTokens { id, part: item.part, tokens: 0 }, 0));
        }
        let (record, most) = &mut records[place];
        record.tokens += share;
        if share > most {
            (record.part, *most) = (item.part, *share);
        }
    }
    let mut records: Vec<RecordTokens> = records.into_iter().map(|(record, _)| record).collect();
    records.sort_by_key(|record| std::cmp::Reverse(record.tokens));
    records.truncate(count);
    records
}

/// Returns the id of the record that an item comes from.
fn record_of(item: &Item, messages: &[Message<'_>]) -> Option<Id> {
    let meta = messages.get(item.message?)?.meta.as_ref()?;
    let result = |call: &Id| meta.results.iter().find(|result| result.tool_use_id == *call);
    let id = match item.call.as_ref().and_then(result) {
        Some(result) => &result.record,
        None => &meta.id,
    };
    (!id.is_empty()).then(|| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(weights: &[u64]) -> Vec<Item> {
        let item =
            |weight: &u64| Item { part: Part::User, message: None, call: None, weight: *weight };
        weights.iter().map(item).collect()
    }

    #[test]
    fn audit_28_shares_add_up_to_the_total() {
        for (total, weights) in [
            (0, [0; 8]),
            (7, [0; 8]),
            (1, [1, 1, 1, 1, 1, 1, 1, 1]),
            (18, [0, 0, 10, 0, 0, 0, 0, 16]),
            (170_510, [12, 530, 99, 1, 0, 7, 0, 8]),
            (u64::MAX, [u64::MAX / 8; 8]),
        ] {
            let shares = share_out(total, &items(&weights));
            assert_eq!(shares.iter().sum::<u64>(), total, "{weights:?}");
            let is_empty = weights == [0; 8];
            let is_kept = |(weight, share): (&u64, &u64)| *weight > 0 || *share == 0;
            assert!(is_empty || weights.iter().zip(&shares).all(is_kept), "{weights:?} {shares:?}");
        }
        // If the weights already add up to the total, the shares are the weights.
        assert_eq!(share_out(1_000_008, &items(&[5, 0, 1_000_003])), [5, 0, 1_000_003]);
        assert_eq!(share_out(0, &[]), [0; 0]);
    }
}
