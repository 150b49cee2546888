//! The numbers that `claw-replay call` reports.

use crate::call::limits::RunLimits;
use crate::call::reply::NewReply;
use clawutils::json::write::Members;
use clawutils::usage::Counts;

/// The numbers of one transcript.
#[derive(Debug, Default)]
pub struct CallNumbers {
    /// The number of new replies.
    replies: u64,
    counts: Counts,
    cost: f64,
    /// The number of replies whose cost is not known.
    unpriced: u64,
    /// The number of repetitions that passed, by case.
    passed: Vec<(String, u64)>,
}

impl CallNumbers {
    /// Adds a reply.
    pub fn add(&mut self, new: &NewReply, limits: &RunLimits) {
        self.replies += 1;
        self.counts = self.counts + new.counts.unwrap_or_default();
        let cost = new.counts.and_then(|counts| limits.cost(new.model.as_deref(), &counts));
        match cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }

    /// Adds a case, with the number of its repetitions that passed.
    pub fn note(&mut self, name: &str, passed: u64) {
        self.passed.push((name.to_owned(), passed));
    }

    /// Returns the members for the report.
    pub fn to_members(&self, turns: usize, repeat: u64) -> Members {
        // Round to millionths, to hide the rounding errors of binary fractions.
        let cost = (self.cost * 1e6).round() / 1e6;
        let is_known = self.unpriced < self.replies || self.replies == 0;
        let members = Members::new()
            .number("turns", turns)
            .number("replies", self.replies)
            .object("usage", |usage| self.counts.add_to(usage))
            .or_null(Members::decimal, "cost", is_known.then_some(cost))
            .number("unpriced", self.unpriced);
        if repeat <= 1 {
            return members;
        }
        members.objects("repeats", &self.passed, |members, (name, passed)| {
            members.string("name", name).number("passed", *passed).number("of", repeat)
        })
    }
}
