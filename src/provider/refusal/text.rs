//! The wording with which providers report a window overflow, and that of other failures that could be mistaken for
//! one.
//!
//! [`RULES`] is a table with one row per line, in the order in which the rows are tried. A row's family is the
//! meaning of its text; the caller selects the families that count at the HTTP status. The order of the families
//! matters: throttling, billing and keys are tried before any overflow text, so that a limit on tokens *per minute*
//! is never mistaken for a limit on tokens *per request*. No row matches a bare number or the bare words "context"
//! and "token".
//!
//! An error may quote the request or the model's output, so a rule matches only the provider's own words: from the
//! beginning of the message, or directly after a prefix added by a gateway (see [`opening`]), up to the end of a
//! sentence or clause. Quotations never decide, and later sentences decide only for [`TextFamily::Busy`]. The tests
//! quote a sample of every row in several ways, and fail for a row without a sample.
//!
//! Patterns are case-insensitive. The only Unicode classes they may use are `\s`, `\d` and `\w`: the `regex` crate is
//! built without the tables of the other classes.

use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};

use super::opening;
use Group::{Cap, CapBelow, CapWindow, Floor, Input, Limit, Over, Requested, Total};
use TextFamily::{Account, Busy, Ceiling, Key, Output, Quota, Shape, Size, Throttle, Window};

/// Matches what must follow the text of a rule: the end of the message, or punctuation that ends a sentence or a
/// clause, but not a quotation mark or another word.
const END: &str = r"\s*(?:$|[.,;:!()。，；…])";

/// The meaning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFamily {
    /// A rate or subscription limit that a single request may exceed on its own.
    Ceiling,
    /// A rate limit was exceeded.
    Throttle,
    /// The account has no credit. Waiting does not help.
    Account,
    /// A quota is used up. At 429, this may be a rate limit.
    Quota,
    /// The key is invalid.
    Key,
    /// A member of the request is malformed. Such messages may quote the request.
    Shape,
    /// The request has too many bytes.
    Size,
    /// The request does not fit the window.
    Window,
    /// `max_tokens` is larger than the model's maximum output.
    Output,
    /// The server is busy or still loading the model, and asks the client to retry.
    Busy,
}

/// The meaning of a number in a message. All numbers are in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// The prompt.
    Input,
    /// A lower bound for the prompt: the server stopped counting at its limit.
    Floor,
    /// The number by which the prompt exceeds the window.
    Over,
    /// The window, or the rate or subscription limit for [`TextFamily::Ceiling`].
    Limit,
    /// The requested output.
    Requested,
    /// The prompt plus the requested output.
    Total,
    /// The model's maximum output.
    Cap,
    /// The number above the model's maximum output.
    CapBelow,
    /// The window, which also is the model's maximum output.
    CapWindow,
}

/// A row of the table.
pub(super) struct TextRule {
    /// The name that messages show.
    pub(super) name: &'static str,
    /// The meaning of the text.
    pub(super) family: TextFamily,
    /// The meanings of the capture groups, in order.
    pub(super) groups: &'static [Group],
    /// The text, as a regular expression.
    pattern: &'static str,
    /// The pattern, compiled on first use, because a failure needs only a few of the rows.
    compiled: OnceLock<Option<Regex>>,
}

impl TextRule {
    /// Returns the compiled pattern, or `None` if it is invalid. A test checks that all patterns compile.
    fn regex(&self) -> Option<&Regex> {
        let anchored = || format!("^(?:{}){END}", self.pattern);
        let build = || RegexBuilder::new(&anchored()).case_insensitive(true).build().ok();
        self.compiled.get_or_init(build).as_ref()
    }
}

const fn rule(
    name: &'static str,
    family: TextFamily,
    groups: &'static [Group],
    pattern: &'static str,
) -> TextRule {
    TextRule { name, family, groups, pattern, compiled: OnceLock::new() }
}

/// Matches part of a sentence without quotations. Rules whose sentence varies allow it before and after their key
/// words. It matches no character that ends a clause or begins a quotation.
macro_rules! plain {
    () => {
        r#"[^.:;'"`{}\[\]\n]*"#
    };
}

/// All rules, in the order in which they are tried.
///
/// "too many tokens" and "token limit exceeded" are omitted on purpose: Bedrock and others also use them for
/// throttling.
#[rustfmt::skip]
pub(super) static RULES: [TextRule; 82] = [
    rule("T1", Ceiling, &[Limit, Total], r#"(?:request too large|rate limit reached) for [^'"{}\[\]\n]+ on tokens per min(?:ute)? \(TPM\): Limit ([0-9,]+),(?: Used [0-9,]+,)? Requested ([0-9,]+)"#),
    rule("T2", Ceiling, &[], r"extra usage is required for long context(?: requests?)?(?: over 200k tokens)?"),

    rule("W1", Throttle, &[], concat!("(?:request too large: )?", plain!(), "tokens per (?:min(?:ute)?|hour|day)(?-u:\\b)", plain!())),
    rule("W2", Throttle, &[], concat!("too many tokens,? please wait", plain!())),
    rule("W3", Throttle, &[], r"throttling ?(?:error|exception)"),
    rule("W4", Throttle, &[], concat!(plain!(), "too many requests", plain!())),
    rule("W5", Throttle, &[], concat!(plain!(), "(?:exceeded|reached|hit)(?: [a-z-]+){0,4} rate[ -]limit", plain!())),
    rule("W6", Throttle, &[], concat!(plain!(), "rate[ -]limits? (?:was |has been )?(?:exceeded|reached|hit)", plain!())),
    rule("A1", Account, &[], concat!(plain!(), "(?:credit balance is too low|insufficient (?:credits?|funds|balance|quota))", plain!())),
    rule("A3", Account, &[], concat!(plain!(), "(?:used all (?:available|of your|your) credits|monthly spending limit|no resource package|余额不足|欠费)[^'`{}\"]*")),
    rule("A2", Quota, &[], concat!(plain!(), "(?:exceeded your current quota|reached your (?:[a-z]+ ){0,2}usage limit)", plain!())),
    rule("K1", Key, &[], concat!(plain!(), "(?:(?:invalid|incorrect) (?:x-)?api[ -]key|api key not valid)", plain!())),
    rule("S1", Shape, &[], r"(?:messages|contents|system|tools|input)(?:[.\[][0-9a-z]|: )(?s:.*)"),
    rule("S2", Shape, &[], r#"(?:invalid (?:value|type|'|")|[0-9]+ validation errors?)(?s:.*)"#),
    rule("B1", Size, &[], r"(?:the )?request exceeds the maximum size|(?:the )?(?:payload|request entity|request body)(?: is)? too large"),
    rule("B2", Size, &[], r"(?:the )?request payload size exceeds the limit: [0-9,]+ bytes"),

    rule("R1", Window, &[Input, Limit], r"(?:the |your )?prompt is too long: ([0-9,]+) tokens? > ([0-9,]+) maximum"),
    rule("R2", Window, &[Input, Requested, Limit], r"input length and `?max_tokens`? exceed context limit(?: \(i\.e\.?)?:? ([0-9,]+) \+ ([0-9,]+) > ([0-9,]+)"),
    rule("R3", Window, &[Input, Limit], r"(?:the )?request \(([0-9,]+) tokens\) exceeds the available context size \(([0-9,]+) tokens\)"),
    rule("R4", Window, &[Limit, Requested, Floor], r"th(?:is|e) (?:model|endpoint)'s maximum context length is ([0-9,]+) tokens\.\s+However, you requested ([0-9,]+) output tokens and your prompt contains at least ([0-9,]+) input tokens"),
    rule("R5", Window, &[Limit, Total, Input, Requested], r"th(?:is|e) (?:model|endpoint)'s maximum context length is ([0-9,]+) tokens[.,]\s+however,? you requested ([0-9,]+) tokens \(([0-9,]+) in (?:the messages|your prompt)[,;] ([0-9,]+) (?:in|for) the completion\)"),
    rule("R6", Window, &[Limit, Input], r"th(?:is|e) (?:model|endpoint)'s maximum context length is ([0-9,]+) tokens\.\s+However, your (?:messages resulted in|request has) ([0-9,]+) (?:input )?tokens"),
    rule("R7", Window, &[Limit, Total, Requested], r"th(?:is|e) (?:model|endpoint)'s maximum context length is ([0-9,]+) tokens\.\s+However, you requested about ([0-9,]+) tokens(?: \([^)]*[^0-9,)]([0-9,]+) in the output\))?"),
    rule("R8", Window, &[Limit], r"(?:your )?input tokens exceed the configured limit of ([0-9,]+) tokens"),
    rule("R9", Window, &[], r"(?:your|the) input exceeds the context window of this model"),
    rule("R10", Window, &[Input, Limit], r"(?:the )?input \(([0-9,]+) tokens\) is longer than the model's context length \(([0-9,]+) tokens\)"),
    rule("R11", Window, &[Input, Limit], r"the input token count(?: \(([0-9,]+)\))? exceeds the maximum number of tokens allowed \(?([0-9,]+)\)?"),
    rule("R12", Window, &[Limit, Input], r"this model's maximum prompt length is ([0-9,]+) but the request contains ([0-9,]+) tokens"),
    rule("R13", Window, &[Input, Limit], r"(?:the )?prompt token count of ([0-9,]+) exceeds the limit of ([0-9,]+)"),
    rule("R14", Window, &[Input, Limit], r#"prompt contains ([0-9,]+) tokens[^'"{}\n]*too large for model with ([0-9,]+) maximum context length"#),
    rule("R15", Window, &[Limit, Input], r"(?:invalid request: )?your request exceeded model token limit: ([0-9,]+) \(requested: ([0-9,]+)\)"),
    rule("R16", Window, &[Input, Limit], r"(?:input )?prompt tokens \(([0-9,]+)\) exceed model maximum \(([0-9,]+)\)"),
    rule("R17", Window, &[], r"(?:the )?prompt is longer than the context length currently available to the model"),
    rule("R18", Window, &[], r"(?:the )?input is too long for (?:the )?requested model"),
    rule("R19", Window, &[], r"(?:the )?(?:number of )?tokens to keep from the initial prompt is greater than the context length"),
    rule("R20", Window, &[], r"(?:invalid params, )?context window exceeds limit"),
    rule("R21", Window, &[], r"(?:the )?request exceeds the available context size"),
    rule("R22", Window, &[Requested, Limit, Input], r"['`]?max_tokens['`]?(?: or ['`]?max_completion_tokens['`]?)? is too large: ([0-9,]+)\. This model's maximum context length is ([0-9,]+) tokens and your request has ([0-9,]+) input tokens"),
    rule("R36", Window, &[Input, Limit], r"(?:unable to submit request because )?the input token count is ([0-9,]+) but (?:the )?model (?:only )?supports up to ([0-9,]+)"),
    rule("R37", Window, &[Limit, Total, Input, Requested], r"requested token count exceeds the model's maximum context length of ([0-9,]+) tokens\. You requested a total of ([0-9,]+) tokens: ([0-9,]+) tokens from the input messages and ([0-9,]+) tokens for the completion"),
    rule("R38", Window, &[Input, Limit], r"requested tokens \(([0-9,]+)\) exceed context window of ([0-9,]+)"),
    rule("R39", Window, &[Over, Limit], r"too many tokens: size limit exceeded by ([0-9,]+) tokens(?:[^{}\n]+ the limit for this model is ([0-9,]+)(?: tokens)?)?"),
    rule("R40", Window, &[Limit, Input, Requested], r"(?:input validation error: )?`inputs` tokens \+ `max_new_tokens` must be <= ([0-9,]+)(?:\. Given: ([0-9,]+) `inputs` tokens and ([0-9,]+) `max_new_tokens`)?"),
    rule("R41", Window, &[Limit, Input], r"(?:input validation error: )?`inputs` must have less than ([0-9,]+) tokens(?:\. Given: ([0-9,]+))?"),
    rule("R42", Window, &[Limit], r"range of input length should be \[[0-9]+, ?([0-9,]+)\]"),
    rule("R43", Window, &[Input, Limit], r"trying to keep the first ([0-9,]+) tokens when context the overflows(?:\. However, the model is loaded with context length of only ([0-9,]+) tokens)?"),
    rule("R44", Window, &[Input, Limit], r"the (?:[a-z]+ )?prompt \((?:total )?length ([0-9,]+)\) is (?:longer than the maximum model length of|too long to fit into the model \(context length) ([0-9,]+)\)?"),
    rule("R45", Window, &[Limit], r#"request body too large for [^'"{}\s]+ model\. Max size: ([0-9,]+) tokens"#),
    rule("R46", Window, &[Limit], r"the estimated number of input and maximum output tokens \([0-9,]+\) exceeded this model context window limit \(([0-9,]+)\)"),
    rule("R47", Window, &[], r"(?:the )?prompt exceeds max(?:imum)? length"),
    rule("R48", Window, &[], r"total tokens of image and text exceed max message tokens"),
    rule("R49", Window, &[Input, Limit], r"length of prompt_tokens \(([0-9,]+)\) must be less than max_seq_len \(([0-9,]+)\)"),
    rule("R50", Window, &[Limit, Input], r"too many input tokens\. Max input tokens: ([0-9,]+), request input token count: ([0-9,]+)"),
    rule("R51", Window, &[Input, Limit], r"(?:the )?prompt is too long: ([0-9,]+), model maximum context length: ([0-9,]+)"),
    // vLLM since January 2026 counts only up to the limit and one more.
    rule("R52", Window, &[Floor, Requested, Limit], r"you passed ([0-9,]+) input tokens(?: \([^)]*\))? and requested ([0-9,]+) output tokens\. However, the model's context length is only ([0-9,]+) tokens"),
    rule("R53", Window, &[Input, Limit], r"input length \(([0-9,]+) tokens\) exceeds the maximum allowed length \(([0-9,]+) tokens\)"),
    rule("R54", Window, &[Input, Limit], r"cannot truncate prompt with n_keep \(([0-9,]+)\) >= n_ctx \(([0-9,]+)\)"),
    rule("R55", Window, &[], r"input tokens exceeded: number of input tokens exceeds maximum length"),
    rule("R56", Window, &[Input, Limit], r"requested input length ([0-9,]+) exceeds maximum input length ([0-9,]+)"),
    // Shorter forms of the messages above, for server versions that word the rest differently.
    rule("R23", Window, &[Limit], r"(?:th(?:is|e) )?(?:(?:model|endpoint)'s )?maximum context length (?:is|of) ([0-9,]+)(?: tokens?)?"),
    rule("R24", Window, &[Limit], r"(?:(?:the )?(?:prompt|input|request) is )?too large for model with ([0-9,]+) maximum context length"),
    rule("R25", Window, &[Limit], r"(?:th(?:is|e) model's )?maximum prompt length is ([0-9,]+)(?: tokens?)?"),
    rule("R26", Window, &[Limit], r"(?:(?:the |your )?(?:input|prompt|request)(?: length)?(?: of)?(?: \(?[0-9,]+(?: tokens)?\)?)? )?exceeds the maximum allowed input length of ([0-9,]+)(?: tokens?)?"),
    rule("R27", Window, &[], r"(?:the )?input token count(?: of| is)?(?: \(?[0-9,]+\)?)? exceeds the maximum(?: number of tokens)?(?: allowed)?"),
    rule("R28", Window, &[], r"(?:the |your )?prompt (?:is )?too long(?: for (?:the|this) model)?"),
    rule("R29", Window, &[], r"(?:the |your )?input (?:is )?too long for (?:the |this )?model"),
    rule("R30", Window, &[Limit], r"(?:(?:the|your|this) )?(?:input|prompt|request|messages?|conversation|chat|text)(?: (?:size|length|tokens?|count))?(?: \([0-9,]+(?: tokens)?\))? exceed(?:s|ed)? (?:the |this )?(?:model(?:'s)? )?(?:max(?:imum)? )?context (?:window|length|size)(?: of ([0-9,]+)(?: tokens?)?| of (?:the|this) model| limit)?"),
    rule("R31", Window, &[], r"(?:the |this model's )?(?:max(?:imum)? )?context[_ ](?:length|window|size)[_ ](?:has been |was |is )?exceeded(?: for (?:the|this) model)?"),
    rule("R32", Window, &[], r"(?:the |your )?(?:prompt|input|request) is (?:greater|longer) than the (?:model's )?context (?:length|window|size)"),
    rule("R33", Window, &[], r"(?:invalid request: )?(?:your request )?exceeded model token limit"),
    rule("R34", Window, &[], r"please reduce the length of the (?:messages|prompt|input)(?: or completion)?"),
    rule("R35", Window, &[], r#"(?:输入|请求|当前|您的|的)*(?:上下文(?:过长|超出|长度超)|超出最大上下文)[^'"“”{}\n]*"#),

    rule("M2", Window, &[Limit], r"reached context length of ([0-9,]+) tokens(?: with model \([^)\n]*\))?(?: which does not currently support mid-generation context overflow)?"),

    rule("T3", Output, &[Requested, Cap], r"max_tokens: ([0-9,]+) > ([0-9,]+), which is the maximum allowed number of output tokens(?: for [^\s]+)?"),
    rule("T4", Output, &[Cap], r"(?:['`]?max_(?:completion_|output_)?tokens['`]? is too large: [0-9,]+\. )?this model supports at most ([0-9,]+) completion tokens"),
    rule("T5", Output, &[Requested, Cap], r"max_tokens: ([0-9,]+) > ([0-9,]+)"),
    rule("T6", Output, &[Cap], r"[`'\x22]?max_(?:completion_|output_)?tokens[`'\x22]? (?:must be (?:less than or equal to|at most|<=)|cannot exceed|<=) [`'\x22]?([0-9,]+)[`'\x22]?"),
    rule("T7", Output, &[Cap], r"(?:invalid max_tokens value, )?(?:the )?(?:valid )?range of max_tokens (?:is|should be) \[[0-9]+, ?([0-9,]+)\]"),
    rule("T8", Output, &[Requested, CapWindow], r"max_tokens=([0-9,]+) cannot be greater than max_model_len=(?:[a-z_]+=)?([0-9,]+)"),
    rule("T9", Output, &[Cap], r"the maximum tokens you requested exceeds the model limit of ([0-9,]+)"),
    rule("T10", Output, &[Requested, CapBelow], r"(?:unable to submit request because )?(?:it has an? |the )?max_?output_?tokens value of ([0-9,]+) but the supported range is from 1 \(inclusive\) to ([0-9,]+) \(exclusive\)"),

    rule("U1", Busy, &[], r#"[^'"`{}\[\]]*(?:try again|retry (?:later|after|in)|please retry|overloaded|server (?:is )?busy|loading model|slow down)[^'"`{}\[\]]*"#),
];

/// The numbers in a message, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The prompt.
    pub(super) input: Option<u64>,
    /// True if `input` is only a lower bound.
    pub(super) input_is_floor: bool,
    /// The window or other limit.
    pub(super) limit: Option<u64>,
    /// The requested output.
    pub(super) requested: Option<u64>,
    /// The model's maximum output.
    pub(super) cap: Option<u64>,
}

/// Returns the first row of `families` that matches the provider's own words in `text`, with its numbers.
pub(super) fn find(text: &str, families: &[TextFamily]) -> Option<(&'static TextRule, Numbers)> {
    let openings = opening::all(text);
    let mut rows = RULES.iter().filter(|rule| families.contains(&rule.family));
    rows.find_map(|rule| {
        let regex = rule.regex()?;
        let (found, text) =
            openings.iter().find_map(|text| Some((regex.captures(text)?, *text)))?;
        let numbers = if is_shortened(&found, text) {
            Numbers::default()
        } else {
            numbers(rule.groups, &found)
        };
        Some((rule, numbers))
    })
}

/// Reads the captured numbers. If the prompt is not stated, it is computed from the total minus the requested output,
/// or from the limit plus the excess.
fn numbers(groups: &[Group], found: &Captures<'_>) -> Numbers {
    let mut numbers = Numbers::default();
    let (mut total, mut over) = (None, None);
    for (group, capture) in groups.iter().zip(found.iter().skip(1)) {
        let value = capture.and_then(|digits| parse(digits.as_str()));
        match group {
            Input => numbers.input = value,
            Floor => (numbers.input, numbers.input_is_floor) = (value, value.is_some()),
            Over => over = value,
            Limit => numbers.limit = value,
            Requested => numbers.requested = value,
            Total => total = value,
            Cap => numbers.cap = value,
            CapBelow => numbers.cap = value.map(|value| value.saturating_sub(1)),
            CapWindow => (numbers.cap, numbers.limit) = (value, value),
        }
    }
    let rest = total.map(|total: u64| total.saturating_sub(numbers.requested.unwrap_or(0)));
    let beyond =
        numbers.limit.zip(over).and_then(|(limit, over): (u64, _)| limit.checked_add(over));
    numbers.input = numbers.input.or(rest).or(beyond);
    numbers
}

/// Returns true if an ellipsis follows a number that was found in `text`. A gateway has then shortened the text, and the
/// number may have had more digits.
pub(super) fn is_shortened(found: &Captures<'_>, text: &str) -> bool {
    let mut rests = found.iter().skip(1).flatten().map(|digits| &text[digits.end()..]);
    rests.any(|rest| rest.starts_with("...") || rest.starts_with('…'))
}

/// Parses a decimal number, with or without commas between its digits.
pub(super) fn parse(digits: &str) -> Option<u64> {
    digits.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_each_of_its_groups_has_a_meaning() {
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
    fn commas_are_ignored_and_numbers_that_overflow_are_rejected() {
        assert_eq!(parse("1,048,576"), Some(1_048_576));
        assert_eq!(parse(","), None);
        assert_eq!(parse(&"9".repeat(40)), None);
    }
}
