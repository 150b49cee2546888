//! Chooses the user messages that a compaction keeps word for word beside its summary.
//!
//! A message that has no answer yet is always kept. Then, within a budget: the first message, because it has
//! the task and its rules; sentences that read like rules; and then the newest of the other messages.

use crate::compact::reads_like::sentences;
use crate::compact::rules::is_rule;
use crate::estimate::Gauge;
use crate::json::quote;
use crate::record::content::Content;
use crate::shorten::{self, HEAD_RATIO, ResultText};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Marks text that is left out between two sentences.
const GAP: &str = " [...] ";

/// Chooses the texts to keep from `said`, the texts of all user messages. Both lists are oldest first. `pending` is
/// true if the last message has no answer yet. `budget` is in tokens.
#[must_use]
pub fn choose(gauge: Gauge, said: &[String], pending: bool, budget: u64) -> Vec<String> {
    let mut choice = QuoteChoice { gauge, said, kept: vec![None; said.len()], room: Room(budget) };
    if pending && let Some((last, _)) = said.split_last() {
        choice.kept[said.len() - 1] = Some(last.clone());
    }
    choice.keep_first(budget / 2);
    choice.keep_rules(budget / 2);
    choice.keep_newest();
    choice.kept.into_iter().flatten().collect()
}

struct QuoteChoice<'s> {
    gauge: Gauge,
    said: &'s [String],
    kept: Vec<Option<String>>,
    room: Room,
}

/// The number of tokens left.
struct Room(u64);

impl Room {
    /// Takes `tokens` and returns true if that many are left. Otherwise takes none.
    fn take(&mut self, tokens: u64) -> bool {
        let left = self.0.checked_sub(tokens);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

impl QuoteChoice<'_> {
    /// Keeps message `at` as `text` if there is room for it.
    fn keep(&mut self, at: usize, text: String) -> bool {
        let is_kept = !text.trim().is_empty() && self.room.take(self.tokens(&text));
        if is_kept {
            self.kept[at] = Some(text);
        }
        is_kept
    }

    /// Returns the indices of messages that are not kept yet, newest first. Of several equal messages, only the newest
    /// counts.
    fn others(&self) -> Vec<usize> {
        let mut seen: HashSet<&str> = self.kept.iter().flatten().map(String::as_str).collect();
        let open = (0..self.said.len()).rev().filter(|at| self.kept[*at].is_none());
        open.filter(|at| seen.insert(&self.said[*at])).collect()
    }

    /// Keeps the first message: all of it, or else its rules, or else as much of it as `most` tokens hold.
    fn keep_first(&mut self, most: u64) {
        let Some(text) = self.said.first().filter(|_| self.kept[0].is_none()) else { return };
        let rules = rules_of(text).filter(|rules| self.gauge.text(rules) <= most);
        let text = match rules {
            _ if self.gauge.text(text) <= most => Some(text.clone()),
            None => self.shortened(text, most),
            rules => rules,
        };
        if let Some(text) = text {
            self.keep(0, text);
        }
    }

    /// Keeps the rules of the other messages within `most` tokens, beginning with the messages whose rules are
    /// shortest. If tokens are left, short messages with rules are kept whole, newest first.
    fn keep_rules(&mut self, most: u64) {
        let mut room = Room(most.min(self.room.0));
        let mut chosen = Vec::new();
        for (at, rules) in self.rules_shortest_first() {
            if room.take(self.tokens(&rules)) {
                chosen.push((at, rules));
            }
        }
        chosen.sort_by_key(|(at, _)| Reverse(*at));
        for (at, rules) in chosen {
            let whole = &self.said[at];
            let tokens = self.tokens(whole);
            let extra = tokens.saturating_sub(self.tokens(&rules));
            let is_kept_whole = tokens <= most / 8 && room.take(extra);
            self.keep(at, if is_kept_whole { whole.clone() } else { rules });
        }
    }

    /// Returns the rules of each message that has some and is not kept yet, shortest first.
    fn rules_shortest_first(&self) -> Vec<(usize, String)> {
        let rules = |at: usize| Some((at, rules_of(&self.said[at])?));
        let mut found: Vec<(usize, String)> = self.others().into_iter().filter_map(rules).collect();
        found.sort_by_key(|(_, rules)| self.tokens(rules));
        found
    }

    fn tokens(&self, text: &str) -> u64 {
        self.gauge.text(text).max(1)
    }

    /// Keeps the rest, newest first, up to the first message that does not fit, which is shortened.
    fn keep_newest(&mut self) {
        for at in self.others() {
            let text = &self.said[at];
            if text.trim().is_empty() || self.keep(at, text.clone()) {
                continue;
            }
            if let Some(short) = self.shortened(text, self.room.0) {
                self.keep(at, short);
            }
            break;
        }
    }

    /// Shortens `text` to `most` tokens, marker included. Returns `None` if `most` is too small for that.
    fn shortened(&self, text: &str, most: u64) -> Option<String> {
        let density = text.chars().count() as f64 / self.gauge.text(text).max(1) as f64;
        // The beginning and the end that are kept may have more tokens per character than the whole text, so smaller
        // sizes are also tried.
        let shares = [0.9, 0.7, 0.5].map(|share| (most as f64 * density * share) as usize);
        let mut short =
            shares.into_iter().filter(|max| *max >= 200).filter_map(|max| short(text, max));
        short.find(|short| self.gauge.text(short) <= most)
    }
}

/// Returns the sentences of `text` that read like rules, joined by [`GAP`].
fn rules_of(text: &str) -> Option<String> {
    // An earlier compaction may have left out sentences and joined the others with `GAP`.
    let parts = text.split(GAP.trim());
    let rules: Vec<&str> = parts.flat_map(sentences).filter(|part| is_rule(part)).collect();
    (!rules.is_empty()).then(|| rules.join(GAP))
}

/// Shortens `text` to `max` characters, marker included.
fn short(text: &str, max: usize) -> Option<String> {
    // An earlier compaction may have shortened it.
    let whole = ResultText::guess(text);
    let shown = shorten::plan(&whole, max, HEAD_RATIO, None)?;
    let content = Content::Text(quote(text).into());
    shorten::show(&content, &whole, &shown, None).map(|short| short.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Request;

    fn chosen(said: &[&str], pending: bool, budget: u64) -> Vec<String> {
        let gauge = Gauge::new(Request { messages: &[], ..Request::default() }, None);
        let said: Vec<String> = said.iter().map(|text| (*text).to_owned()).collect();
        choose(gauge, &said, pending, budget)
    }

    #[test]
    fn n3_every_message_is_kept_if_there_is_room() {
        let said = ["one", "two", " ", "three"];
        assert_eq!(chosen(&said, false, 1000), ["one", "two", "three"]);
        assert_eq!(chosen(&said, true, 0), ["three"], "the message without an answer is kept");
        assert_eq!(chosen(&[], true, 1000), [""; 0]);
    }

    #[test]
    fn a_repeated_message_is_kept_once() {
        let said = ["Build it.", "continue", "continue", "Why?", "continue"];
        assert_eq!(chosen(&said, false, 1000), ["Build it.", "Why?", "continue"]);
    }

    #[test]
    fn the_first_message_and_the_rules_come_before_the_newest() {
        let chat: Vec<String> = (0..200).map(|n| format!("And what about number {n}?")).collect();
        let mut said = vec!["Build a shop."];
        said.extend(chat[..100].iter().map(String::as_str));
        said.push("By the way: never push to main.");
        said.extend(chat[100..].iter().map(String::as_str));
        let kept = chosen(&said, false, 200);
        assert_eq!(kept[..2], ["Build a shop.", "By the way: never push to main."]);
        assert_eq!(kept.last().unwrap(), "And what about number 199?");
        assert!(kept.len() > 10 && kept.len() < 40, "{kept:?}");
    }

    #[test]
    fn the_rules_of_a_long_message_are_kept() {
        let long = format!("{} Never push to main. {}", "Look. ".repeat(3000), "So. ".repeat(900));
        assert_eq!(chosen(&[&long, "x"], false, 500), ["Never push to main.", "x"]);
        assert_eq!(chosen(&["x", &long, "y"], false, 500)[..2], ["x", "Never push to main."]);
    }

    #[test]
    fn choosing_again_keeps_one_mark_between_two_rules() {
        let long = format!("Never push. {} Always use tabs.", "Look. ".repeat(3000));
        let mut kept = chosen(&["x", &long, "y"], false, 500);
        for _ in 0..3 {
            assert_eq!(kept[1], "Never push. [...] Always use tabs.");
            let again: Vec<&str> = kept.iter().map(String::as_str).collect();
            kept = chosen(&again, false, 60);
        }
    }

    #[test]
    fn choosing_again_keeps_what_was_chosen() {
        let long = format!("Build it. {}", "words and more words. ".repeat(900));
        let chat: Vec<String> = (0..60).map(|n| format!("And number {n}?")).collect();
        let mut said = vec![long.as_str(), "Always use tabs."];
        said.extend(chat.iter().map(String::as_str));
        let mut kept = chosen(&said, false, 400);
        for round in 0..10 {
            let mut said: Vec<&str> = kept.iter().map(String::as_str).collect();
            let more: Vec<String> = (0..9).map(|n| format!("Round {round}, number {n}?")).collect();
            said.extend(more.iter().map(String::as_str));
            let next = chosen(&said, false, 400);
            assert_eq!(next[..2], kept[..2]);
            assert_eq!(next.concat().matches("left out").count(), 1, "{next:?}");
            kept = next;
        }
    }
}
