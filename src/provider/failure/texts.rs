//! The texts by which providers tell a window overflow, and the texts that only look like one.
//!
//! [`RULES`] is data: a row a line, in the order of trial. A row's family says what its text means;
//! the caller says which families count at a response's status. The order of families is the point
//! of the table: throttling, money and keys are tried before any overflow text, so that no limit on
//! tokens *per minute* is ever taken for a limit on tokens *per request*. No row matches a bare
//! number or the bare words "context" and "token".
//!
//! Patterns ignore case and are looked for anywhere in the text, because gateways put their own
//! words in front. They keep to ASCII classes: the `regex` crate is built without Unicode tables.

use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};

use Family::{Account, Busy, Ceiling, Key, Output, Shape, Size, Throttle, Window};
use Group::{Cap, Floor, Input, Limit, Requested, Total};

/// What a text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// A rate or subscription limit that a single request can be too large for.
    Ceiling,
    /// Too much in too short a time.
    Throttle,
    /// Credit or quota is used up.
    Account,
    /// The key is not accepted.
    Key,
    /// A member of the request is malformed; such texts may quote the request.
    Shape,
    /// The request has too many bytes.
    Size,
    /// The request does not fit the window.
    Window,
    /// More output is asked for than the model ever gives.
    Output,
    /// The server is busy or still loading, and says to come back.
    Busy,
}

/// What a number in a text counts; always tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// The prompt.
    Input,
    /// The prompt, at least: the server stopped counting at its limit.
    Floor,
    /// The window (for a [`Family::Ceiling`], that limit).
    Limit,
    /// The output that was asked for.
    Requested,
    /// Prompt and requested output together.
    Total,
    /// The most output that the model gives.
    Cap,
}

/// A row of the table.
pub(super) struct Rule {
    /// The name that reports give.
    pub(super) name: &'static str,
    /// What the text means.
    pub(super) family: Family,
    /// What the capture groups count, in order.
    pub(super) groups: &'static [Group],
    /// The text, as a regular expression.
    pattern: &'static str,
    /// The pattern, compiled when it is first tried: most failures are told by a few rows.
    compiled: OnceLock<Option<Regex>>,
}

impl Rule {
    /// The expression; none if it does not compile, and the tests prove that there is no such row.
    fn regex(&self) -> Option<&Regex> {
        let build = || RegexBuilder::new(self.pattern).case_insensitive(true).build().ok();
        self.compiled.get_or_init(build).as_ref()
    }
}

const fn rule(
    name: &'static str,
    family: Family,
    groups: &'static [Group],
    pattern: &'static str,
) -> Rule {
    Rule { name, family, groups, pattern, compiled: OnceLock::new() }
}

/// Every known text, in the order of trial.
///
/// Missing on purpose: "too many tokens" and "token limit exceeded", which Bedrock and others also
/// say when they throttle.
#[rustfmt::skip]
pub(super) static RULES: [Rule; 55] = [
    rule("T1", Ceiling, &[Limit, Total], r"on tokens per min(?:ute)? \(TPM\): Limit ([0-9,]+),(?: Used [0-9,]+,)? Requested ([0-9,]+)"),
    rule("T2", Ceiling, &[], r"extra usage is required for long context"),

    rule("W1", Throttle, &[], r"tokens per (?:min(?:ute)?|hour|day)(?-u:\b)"),
    rule("W2", Throttle, &[], r"too many tokens,? please wait"),
    rule("W3", Throttle, &[], r"throttling ?(?:error|exception)"),
    rule("W4", Throttle, &[], r"too many requests"),
    rule("W5", Throttle, &[], r"(?:exceeded|reached|hit)(?: [a-z-]+){0,4} rate[ -]limit"),
    rule("W6", Throttle, &[], r"rate[ -]limits? (?:was |has been )?(?:exceeded|reached|hit)"),
    rule("A1", Account, &[], r"credit balance is too low|insufficient (?:credits?|funds|balance|quota)"),
    rule("A2", Account, &[], r"exceeded your current quota|reached your (?:[a-z]+ ){0,2}usage limit"),
    rule("K1", Key, &[], r"(?:invalid|incorrect) (?:x-)?api[ -]key|api key not valid"),
    rule("S1", Shape, &[], r"^(?:messages|contents|system|tools|input)(?:[.\[][0-9a-z]|: )"),
    rule("S2", Shape, &[], r#"^(?:invalid (?:value|type|'|")|[0-9]+ validation errors?)"#),
    rule("B1", Size, &[], r"request exceeds the maximum size|(?:payload|request entity|request body)(?: is)? too large"),

    rule("R1", Window, &[Input, Limit], r"prompt is too long: ([0-9,]+) tokens? > ([0-9,]+) maximum"),
    rule("R2", Window, &[Input, Requested, Limit], r"exceed context limit: ([0-9,]+) \+ ([0-9,]+) > ([0-9,]+)"),
    rule("R3", Window, &[Input, Limit], r"request \(([0-9,]+) tokens\) exceeds the available context size \(([0-9,]+) tokens\)"),
    rule("R4", Window, &[Limit, Requested, Floor], r"maximum context length is ([0-9,]+) tokens\. However, you requested ([0-9,]+) output tokens and your prompt contains at least ([0-9,]+) input tokens"),
    rule("R5", Window, &[Limit, Total, Input, Requested], r"maximum context length is ([0-9,]+) tokens[.,] however,? you requested ([0-9,]+) tokens \(([0-9,]+) in (?:the messages|your prompt)[,;] ([0-9,]+) (?:in|for) the completion\)"),
    rule("R6", Window, &[Limit, Input], r"maximum context length is ([0-9,]+) tokens\. However, your messages resulted in ([0-9,]+) tokens"),
    rule("R7", Window, &[Limit, Total, Requested], r"maximum context length is ([0-9,]+) tokens\. However, you requested about ([0-9,]+) tokens(?: \([^)]*[^0-9,)]([0-9,]+) in the output\))?"),
    rule("R8", Window, &[Limit], r"input tokens exceed the configured limit of ([0-9,]+) tokens"),
    rule("R9", Window, &[], r"exceeds the context window of this model"),
    rule("R10", Window, &[Input, Limit], r"input \(([0-9,]+) tokens\) is longer than the model's context length \(([0-9,]+) tokens\)"),
    rule("R11", Window, &[Input, Limit], r"input token count(?: \(([0-9,]+)\))? exceeds the maximum number of tokens allowed \(([0-9,]+)\)"),
    rule("R12", Window, &[Limit, Input], r"maximum prompt length is ([0-9,]+) but the request contains ([0-9,]+) tokens"),
    rule("R13", Window, &[Input, Limit], r"prompt token count of ([0-9,]+) exceeds the limit of ([0-9,]+)"),
    rule("R14", Window, &[Input, Limit], r"prompt contains ([0-9,]+) tokens.*too large for model with ([0-9,]+) maximum context length"),
    rule("R15", Window, &[Limit, Input], r"exceeded model token limit: ([0-9,]+) \(requested: ([0-9,]+)\)"),
    rule("R16", Window, &[Input, Limit], r"prompt tokens \(([0-9,]+)\) exceed model maximum \(([0-9,]+)\)"),
    rule("R17", Window, &[], r"prompt is longer than the context length currently available to the model"),
    rule("R18", Window, &[], r"input is too long for (?:the )?requested model"),
    rule("R19", Window, &[], r"tokens to keep from the initial prompt is greater than the context length"),
    rule("R20", Window, &[], r"context window exceeds limit"),
    rule("R21", Window, &[], r"exceeds the available context size"),
    rule("R22", Window, &[Requested, Limit, Input], r"is too large: ([0-9,]+)\. This model's maximum context length is ([0-9,]+) tokens and your request has ([0-9,]+) input tokens"),
    // The same families of wordings without their numbers, for the versions that word them apart.
    rule("R23", Window, &[Limit], r"maximum context length (?:is|of) ([0-9,]+)"),
    rule("R24", Window, &[Limit], r"too large for model with ([0-9,]+) maximum context length"),
    rule("R25", Window, &[Limit], r"maximum prompt length is ([0-9,]+)"),
    rule("R26", Window, &[Limit], r"maximum allowed input length of ([0-9,]+)"),
    rule("R27", Window, &[], r"input token count[^.]{0,40} exceeds the maximum"),
    rule("R28", Window, &[], r"prompt (?:is )?too long"),
    rule("R29", Window, &[], r"input (?:is )?too long for (?:the |this )?model"),
    rule("R30", Window, &[], r"exceed(?:s|ed)? (?:the |this )?(?:model(?:'s)? )?(?:max(?:imum)? )?context (?:window|length|size)"),
    rule("R31", Window, &[], r"context[_ ](?:length|window|size)[_ ](?:has been )?exceeded"),
    rule("R32", Window, &[], r"greater than the context length"),
    rule("R33", Window, &[], r"exceeded model token limit"),
    rule("R34", Window, &[], r"reduce the length of the (?:messages|prompt|input)"),
    rule("R35", Window, &[], r"上下文(?:过长|超出|长度超)|超出最大上下文"),

    rule("T3", Output, &[Requested, Cap], r"max_tokens: ([0-9,]+) > ([0-9,]+), which is the maximum allowed number of output tokens"),
    rule("T4", Output, &[Cap], r"supports at most ([0-9,]+) completion tokens"),
    rule("T5", Output, &[Requested, Cap], r"max_tokens: ([0-9,]+) > ([0-9,]+)"),
    rule("T6", Output, &[Cap], r"max_(?:completion_|output_)?tokens[`'\x22]? (?:must be (?:less than or equal to|at most|<=)|cannot exceed|<=) [`'\x22]?([0-9,]+)"),
    rule("T7", Output, &[Cap], r"valid range of max_tokens is \[[0-9]+, ?([0-9,]+)\]"),

    rule("U1", Busy, &[], r"try again|retry (?:later|after|in)|please retry|overloaded|server (?:is )?busy|loading model|slow down"),
];

/// The numbers in a text, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The prompt.
    pub(super) input: Option<u64>,
    /// Whether `input` is only a lower bound.
    pub(super) input_is_floor: bool,
    /// The window or other limit.
    pub(super) limit: Option<u64>,
    /// The output that was asked for.
    pub(super) requested: Option<u64>,
    /// The most output that the model gives.
    pub(super) cap: Option<u64>,
}

/// The first row of one of `families` that `text` matches, and the numbers it holds.
pub(super) fn find(text: &str, families: &[Family]) -> Option<(&'static Rule, Numbers)> {
    let mut rows = RULES.iter().filter(|rule| families.contains(&rule.family));
    rows.find_map(|rule| Some((rule, numbers(rule.groups, &rule.regex()?.captures(text)?))))
}

/// Reads the captures. A total without its prompt part gives the prompt as what the output leaves.
fn numbers(groups: &[Group], found: &Captures<'_>) -> Numbers {
    let mut numbers = Numbers::default();
    let mut total = None;
    for (group, capture) in groups.iter().zip(found.iter().skip(1)) {
        let value = capture.and_then(|digits| parse(digits.as_str()));
        match group {
            Input => numbers.input = value,
            Floor => (numbers.input, numbers.input_is_floor) = (value, value.is_some()),
            Limit => numbers.limit = value,
            Requested => numbers.requested = value,
            Total => total = value,
            Cap => numbers.cap = value,
        }
    }
    let rest = total.map(|total: u64| total.saturating_sub(numbers.requested.unwrap_or(0)));
    numbers.input = numbers.input.or(rest);
    numbers
}

/// A decimal number with or without commas between its digits.
pub(super) fn parse(digits: &str) -> Option<u64> {
    digits.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_compiles_and_names_all_its_groups() {
        for rule in &RULES {
            let groups = rule.regex().map(|regex| regex.captures_len() - 1);
            assert_eq!(groups, Some(rule.groups.len()), "{}", rule.name);
        }
    }

    #[test]
    fn names_are_unique() {
        for (at, rule) in RULES.iter().enumerate() {
            assert!(RULES[..at].iter().all(|other| other.name != rule.name), "{}", rule.name);
        }
    }

    #[test]
    fn commas_are_no_part_of_a_number_and_too_many_digits_are_none() {
        assert_eq!(parse("1,048,576"), Some(1_048_576));
        assert_eq!(parse(","), None);
        assert_eq!(parse(&"9".repeat(40)), None);
    }
}
