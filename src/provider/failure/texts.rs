//! The texts by which providers tell a window overflow, and the texts that only look like one.
//!
//! [`RULES`] is data: a row a line, in the order of trial. A row's family says what its text means;
//! the caller says which families count at a response's status. The order of families is the point
//! of the table: throttling, money and keys are tried before any overflow text, so that no limit on
//! tokens *per minute* is ever taken for a limit on tokens *per request*. No row matches a bare
//! number or the bare words "context" and "token".
//!
//! An error may quote the request or what the model said, so a text matches only where the provider itself
//! speaks: from the beginning of the message, or right after the words that gateways put in front (see
//! [`opening`]), up to the end of a sentence. What a quotation holds, or a later sentence, decides nothing.
//! The tests take a sample of every row and quote it in several ways; a row without a sample fails them.
//!
//! Patterns ignore case. Of Unicode's classes they may use `\s`, `\d` and `\w` alone: the `regex` crate is built
//! without the tables of the others.

use std::sync::OnceLock;

use regex::{Captures, Regex, RegexBuilder};

use super::opening;
use Group::{Cap, Floor, Input, Limit, Over, Requested, Total};
use TextFamily::{Account, Busy, Ceiling, Key, Midway, Output, Shape, Size, Throttle, Window};

/// Has to follow the words of a rule: the end, or a sign that ends a sentence or a clause. A quotation
/// mark does not, nor does a word.
const END: &str = r"\s*(?:$|[.,;:!()。，；…])";

/// What a text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFamily {
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
    /// The window filled up while the answer was made.
    Midway,
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
    /// How far the prompt is over the window.
    Over,
    /// The window (for a [`TextFamily::Ceiling`], that limit).
    Limit,
    /// The output that was asked for.
    Requested,
    /// Prompt and requested output together.
    Total,
    /// The most output that the model gives.
    Cap,
}

/// A row of the table.
pub(super) struct TextRule {
    /// The name that reports give.
    pub(super) name: &'static str,
    /// What the text means.
    pub(super) family: TextFamily,
    /// What the capture groups count, in order.
    pub(super) groups: &'static [Group],
    /// The text, as a regular expression.
    pattern: &'static str,
    /// The pattern, compiled when it is first tried: most failures are told by a few rows.
    compiled: OnceLock<Option<Regex>>,
}

impl TextRule {
    /// The expression; none if it does not compile, and the tests prove that there is no such row.
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

/// A stretch of one sentence without quotations: what may stand before and after the words of a rule whose
/// sentence varies. Nothing in it can end a sentence or begin a quotation.
macro_rules! plain {
    () => {
        r#"[^.:;'"`{}\[\]\n]*"#
    };
}

/// Every known text, in the order of trial.
///
/// Missing on purpose: "too many tokens" and "token limit exceeded", which Bedrock and others also
/// say when they throttle.
#[rustfmt::skip]
pub(super) static RULES: [TextRule; 74] = [
    rule("T1", Ceiling, &[Limit, Total], r#"(?:request too large|rate limit reached) for [^'"{}\[\]\n]+ on tokens per min(?:ute)? \(TPM\): Limit ([0-9,]+),(?: Used [0-9,]+,)? Requested ([0-9,]+)"#),
    rule("T2", Ceiling, &[], r"extra usage is required for long context(?: requests?)?"),

    rule("W1", Throttle, &[], concat!("(?:request too large: )?", plain!(), "tokens per (?:min(?:ute)?|hour|day)(?-u:\\b)", plain!())),
    rule("W2", Throttle, &[], concat!("too many tokens,? please wait", plain!())),
    rule("W3", Throttle, &[], r"throttling ?(?:error|exception)"),
    rule("W4", Throttle, &[], concat!(plain!(), "too many requests", plain!())),
    rule("W5", Throttle, &[], concat!(plain!(), "(?:exceeded|reached|hit)(?: [a-z-]+){0,4} rate[ -]limit", plain!())),
    rule("W6", Throttle, &[], concat!(plain!(), "rate[ -]limits? (?:was |has been )?(?:exceeded|reached|hit)", plain!())),
    rule("A1", Account, &[], concat!(plain!(), "(?:credit balance is too low|insufficient (?:credits?|funds|balance|quota))", plain!())),
    rule("A2", Account, &[], concat!(plain!(), "(?:exceeded your current quota|reached your (?:[a-z]+ ){0,2}usage limit)", plain!())),
    rule("K1", Key, &[], concat!(plain!(), "(?:(?:invalid|incorrect) (?:x-)?api[ -]key|api key not valid)", plain!())),
    rule("S1", Shape, &[], r"(?:messages|contents|system|tools|input)(?:[.\[][0-9a-z]|: )(?s:.*)"),
    rule("S2", Shape, &[], r#"(?:invalid (?:value|type|'|")|[0-9]+ validation errors?)(?s:.*)"#),
    rule("B1", Size, &[], r"(?:the )?request exceeds the maximum size|(?:the )?(?:payload|request entity|request body)(?: is)? too large"),
    rule("B2", Size, &[], r"(?:the )?request payload size exceeds the limit: [0-9,]+ bytes"),

    rule("R1", Window, &[Input, Limit], r"(?:the |your )?prompt is too long: ([0-9,]+) tokens? > ([0-9,]+) maximum"),
    rule("R2", Window, &[Input, Requested, Limit], r"input length and `max_tokens` exceed context limit: ([0-9,]+) \+ ([0-9,]+) > ([0-9,]+)"),
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
    // The same families of wordings without their numbers, for the versions that word them apart.
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

    rule("M1", Midway, &[], r"(?:the )?context size has been exceeded"),
    rule("M2", Midway, &[Limit], r"reached context length of ([0-9,]+) tokens(?: with model \([^)\n]*\))?(?: which does not currently support mid-generation context overflow)?"),

    rule("T3", Output, &[Requested, Cap], r"max_tokens: ([0-9,]+) > ([0-9,]+), which is the maximum allowed number of output tokens(?: for [^\s]+)?"),
    rule("T4", Output, &[Cap], r"(?:['`]?max_(?:completion_|output_)?tokens['`]? is too large: [0-9,]+\. )?this model supports at most ([0-9,]+) completion tokens"),
    rule("T5", Output, &[Requested, Cap], r"max_tokens: ([0-9,]+) > ([0-9,]+)"),
    rule("T6", Output, &[Cap], r"[`'\x22]?max_(?:completion_|output_)?tokens[`'\x22]? (?:must be (?:less than or equal to|at most|<=)|cannot exceed|<=) [`'\x22]?([0-9,]+)[`'\x22]?"),
    rule("T7", Output, &[Cap], r"(?:invalid max_tokens value, )?(?:the )?(?:valid )?range of max_tokens (?:is|should be) \[[0-9]+, ?([0-9,]+)\]"),

    rule("U1", Busy, &[], r#"[^'"`{}\[\]]*(?:try again|retry (?:later|after|in)|please retry|overloaded|server (?:is )?busy|loading model|slow down)[^'"`{}\[\]]*"#),
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

/// The first row of one of `families` that `text` matches where its provider speaks, and the numbers it holds.
pub(super) fn find(text: &str, families: &[TextFamily]) -> Option<(&'static TextRule, Numbers)> {
    let openings = opening::all(text);
    let mut rows = RULES.iter().filter(|rule| families.contains(&rule.family));
    rows.find_map(|rule| {
        let regex = rule.regex()?;
        let found = openings.iter().find_map(|text| regex.captures(text))?;
        Some((rule, numbers(rule.groups, &found)))
    })
}

/// Reads the captures. A total without its prompt part gives the prompt as what the output leaves.
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
        }
    }
    let rest = total.map(|total: u64| total.saturating_sub(numbers.requested.unwrap_or(0)));
    let beyond =
        numbers.limit.zip(over).and_then(|(limit, over): (u64, _)| limit.checked_add(over));
    numbers.input = numbers.input.or(rest).or(beyond);
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
