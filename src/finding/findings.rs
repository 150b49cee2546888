//! Findings in bounded memory: a file of damaged lines has millions of them.

use super::Finding;
use super::rules::Rule;
use std::collections::BTreeMap;
use std::ops::Deref;

/// The maximum number of findings of one rule that are listed.
pub const MAX_LISTED: u64 = 1000;

/// A finding, or a value that is converted to one.
pub trait OfRule {
    /// Returns the rule that is broken.
    fn rule(&self) -> &'static Rule;
}

impl OfRule for Finding {
    fn rule(&self) -> &'static Rule {
        self.rule
    }
}

/// A list with the first [`MAX_LISTED`] findings of each rule. The others are only counted.
#[derive(Clone, Debug)]
pub struct Findings<F = Finding> {
    listed: Vec<F>,
    counts: BTreeMap<&'static Rule, Count>,
}

/// The number of findings of one rule.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    listed: u64,
    all: u64,
}

impl<F> Default for Findings<F> {
    fn default() -> Findings<F> {
        Findings { listed: Vec::new(), counts: BTreeMap::new() }
    }
}

impl<F> Deref for Findings<F> {
    type Target = [F];

    /// Returns the listed findings.
    fn deref(&self) -> &[F] {
        &self.listed
    }
}

impl<F: OfRule> Findings<F> {
    /// Adds a finding.
    pub fn push(&mut self, finding: F) {
        self.counts.entry(finding.rule()).or_default().all += 1;
        self.list(finding);
    }

    /// Lists a finding that is already counted, unless enough of its rule are listed.
    fn list(&mut self, finding: F) {
        let count = self.counts.entry(finding.rule()).or_default();
        if count.listed < MAX_LISTED {
            count.listed += 1;
            self.listed.push(finding);
        }
    }

    /// Adds the findings of `other`, which come after those in this list.
    pub fn append(&mut self, other: Findings<F>) {
        for (rule, count) in other.counts {
            self.counts.entry(rule).or_default().all += count.all;
        }
        other.listed.into_iter().for_each(|finding| self.list(finding));
    }

    /// Returns true if no further findings of a rule will be listed.
    pub fn is_full(&self, rule: &'static Rule) -> bool {
        self.counts.get(rule).is_some_and(|count| count.listed == MAX_LISTED)
    }

    /// Removes the listed findings for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(&F) -> bool) {
        let counts = &mut self.counts;
        self.listed.retain(|finding| {
            let is_kept = keep(finding);
            if let Some(count) = counts.get_mut(finding.rule()).filter(|_| !is_kept) {
                count.listed -= 1;
                count.all -= 1;
            }
            is_kept
        });
    }

    /// Removes all findings of a rule.
    pub fn remove(&mut self, rule: &'static Rule) {
        self.counts.remove(rule);
        self.listed.retain(|finding| finding.rule() != rule);
    }

    /// Returns the number of findings whose rule fits, including those that are not listed.
    pub fn count(&self, fits: impl Fn(&Rule) -> bool) -> u64 {
        let counts = self.counts.iter().filter(|(rule, _)| fits(rule));
        counts.map(|(_, count)| count.all).sum()
    }

    /// Returns the number of findings of each rule, including those that are not listed.
    pub fn counts(&self) -> impl Iterator<Item = (&'static Rule, u64)> {
        let counts = self.counts.iter().map(|(rule, count)| (*rule, count.all));
        counts.filter(|(_, count)| *count > 0)
    }

    /// Returns the rules with findings that are not listed, and their number.
    pub fn unlisted(&self) -> impl Iterator<Item = (&'static Rule, u64)> {
        let counts = self.counts.iter().map(|(rule, count)| (*rule, count.all - count.listed));
        counts.filter(|(_, count)| *count > 0)
    }

    /// Converts each listed finding.
    pub fn map<G>(&self, convert: impl FnMut(&F) -> G) -> Findings<G> {
        Findings { listed: self.listed.iter().map(convert).collect(), counts: self.counts.clone() }
    }

    /// Returns the listed findings, to change their places.
    pub fn listed_mut(&mut self) -> &mut [F] {
        &mut self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Place, rules};

    fn finding(rule: &'static Rule, offset: u64) -> Finding {
        let place = Place { input: "t".into(), line: None, offset, length: 1 };
        Finding { rule, place, id: None, message: "text".to_owned() }
    }

    /// Returns a list with this number of findings of each rule.
    fn findings(numbers: &[(&'static Rule, u64)]) -> Findings {
        let mut findings = Findings::default();
        for (rule, number) in numbers {
            (0..*number).for_each(|offset| findings.push(finding(rule, offset)));
        }
        findings
    }

    #[test]
    fn each_rule_has_its_own_limit() {
        let mut findings = findings(&[(&rules::BAD_JSON, 1001), (&rules::OPEN_CALL, 2)]);
        assert_eq!((findings.len(), findings.count(|_| true)), (1002, 1003));
        findings.push(finding(&rules::REFUSED, 7));
        assert_eq!(findings.last().unwrap().rule, &rules::REFUSED);
        assert_eq!(findings.unlisted().collect::<Vec<_>>(), [(&rules::BAD_JSON, 1)]);
    }

    #[test]
    fn appended_and_removed_findings_are_counted() {
        let mut all = findings(&[(&rules::BAD_JSON, 900)]);
        all.append(findings(&[(&rules::BAD_JSON, 1500), (&rules::OPEN_CALL, 3)]));
        assert_eq!((all.len(), all.count(|_| true)), (1003, 2403));
        all.retain(|found| found.place.offset >= 2);
        let counts: Vec<_> = all.counts().map(|(rule, count)| (rule.name, count)).collect();
        assert_eq!(counts, [("bad-json", 2396), ("open-call", 1)]);
        all.remove(&rules::BAD_JSON);
        assert_eq!((all.len(), all.count(|_| true)), (1, 1));
    }
}
