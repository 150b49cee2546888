//! Decides the class of a refusal, and names the rule.
//!
//! The steps run in the order given in the documentation of [`super`]. Each step is named after what it looks at.
//! All but the last return `None` if they do not apply. Step 1 has no function: the other steps skip its statuses,
//! so that [`by_status`] decides.

use super::answer::ErrorBody;
use super::code::CODES;
use super::evidence::{self, Excess};
use super::opening;
use super::text::{self, Numbers, TextFamily};
use super::{Certainty, FailureClass, Rows};
use crate::fault::Fault;
use std::borrow::Cow;

/// The longest prompt, in tokens, that a subscription allows without extra usage. Text T2 does not state it.
const LONG_CONTEXT: u64 = 200_000;

/// The class of each status and the name of its rule, used if nothing else decides.
pub(super) const STATUSES: &[(u16, FailureClass, &str)] = &[
    (400, FailureClass::BadRequest, "status-400"),
    (401, FailureClass::Auth, "status-401"),
    (402, FailureClass::Billing, "status-402"),
    (403, FailureClass::Permission, "status-403"),
    (404, FailureClass::NotFound, "status-404"),
    (408, FailureClass::Server, "status-408"),
    (409, FailureClass::Overloaded, "status-409"),
    (413, FailureClass::TooLarge, "status-413"),
    (422, FailureClass::BadRequest, "status-422"),
    (429, FailureClass::RateLimit, "status-429"),
    (499, FailureClass::Server, "status-499"),
    (500, FailureClass::Server, "status-500"),
    (502, FailureClass::Server, "status-502"),
    (503, FailureClass::Server, "status-503"),
    (504, FailureClass::Server, "status-504"),
    (529, FailureClass::Overloaded, "status-529"),
];

/// The decision and its reason.
pub(super) struct Verdict<'a> {
    pub(super) class: FailureClass,
    pub(super) rule: Cow<'static, str>,
    /// The provider's type or code that decided, if one did.
    pub(super) kind: Option<&'a String>,
    /// The numbers in the text that decided.
    pub(super) found: Numbers,
    /// True if the limit among the numbers is the model's window as stated by the provider.
    pub(super) states_window: bool,
    pub(super) certainty: Certainty,
    /// The evidence, if no rule decided.
    pub(super) why: Option<String>,
    /// The fault, if it is another one than that of the class.
    pub(super) fault: Option<Fault>,
}

impl Numbers {
    /// Adds the prompt and the window from a text whose row does not read them, if it states both.
    fn or_judged(self, text: &str) -> Numbers {
        if self.limit.is_some() || self.input.is_some() {
            return self;
        }
        let judged = evidence::judge(text).map(|it| it.numbers);
        let is_both =
            |it: &Numbers| it.input.zip(it.limit).is_some_and(|(input, limit)| input > limit);
        judged.filter(is_both).unwrap_or(self)
    }
}

impl Verdict<'_> {
    fn new(class: FailureClass, rule: impl Into<Cow<'static, str>>) -> Self {
        Verdict {
            class,
            rule: rule.into(),
            kind: None,
            found: Numbers::default(),
            states_window: false,
            certainty: Certainty::Certain,
            why: None,
            fault: None,
        }
    }

    /// Returns the numbers to report. If the failure is an overflow by its type or code, the numbers come from separate
    /// members of the answer (llama.cpp) or from its text.
    pub(super) fn numbers(&self, answer: &ErrorBody) -> Numbers {
        if self.class != FailureClass::Overflow || self.kind.is_none() {
            return self.found;
        }
        let text = answer.text.as_deref().unwrap_or_default();
        let in_text = text::find(text, &[TextFamily::Window]).map(|it| it.1);
        let in_text = in_text.unwrap_or_default().or_judged(text);
        Numbers {
            input: answer.input.or(in_text.input),
            limit: answer.limit.or(in_text.limit),
            ..in_text
        }
    }
}

/// Decides the class. `has_retry_after` is true if the answer has that header.
pub(super) fn decide<'a>(
    status: u16,
    answer: &'a ErrorBody,
    has_retry_after: bool,
    rows: &Rows,
) -> Verdict<'a> {
    // If a 2xx answer contains an error, its HTTP status is ignored. Some of these errors contain the real status.
    let inside = answer.is_error && matches!(status, 200..=299);
    let status = if inside { answer.code } else { Some(status) };
    let text = answer.text.as_deref().unwrap_or_default();
    by_ceiling(status, text)
        .or_else(|| by_kind(status, answer))
        .or_else(|| by_row(status, answer.own_text().unwrap_or_default(), rows))
        .or_else(|| by_text(status, text))
        .or_else(|| by_evidence(status, answer, has_retry_after))
        .unwrap_or_else(|| by_status(status, has_retry_after))
}

/// Decides by a rate or subscription limit in the text. If this request alone exceeds the limit, waiting does not help,
/// and the failure is an overflow.
fn by_ceiling(status: Option<u16>, text: &str) -> Option<Verdict<'static>> {
    if matches!(status, Some(0..=399 | 401..=404)) {
        return None;
    }
    let (rule, mut found) = text::find(text, &[TextFamily::Ceiling])?;
    if rule.groups.is_empty() {
        // T2 has no numbers in its text.
        found.limit = Some(LONG_CONTEXT);
    } else if found.input <= found.limit {
        return Some(Verdict::new(FailureClass::RateLimit, rule.name));
    }
    Some(Verdict { found, ..Verdict::new(FailureClass::Overflow, rule.name) })
}

/// Decides by the first row of [`CODES`] that the answer names and that applies at this status.
fn by_kind(status: Option<u16>, answer: &ErrorBody) -> Option<Verdict<'_>> {
    let mut rows = CODES.iter().filter(|code| kind_applies(status, code.class));
    rows.find_map(|code| {
        let is_named = |kind: &&String| kind.eq_ignore_ascii_case(code.word());
        let kind = answer.kinds.iter().chain(&answer.codes).find(is_named)?;
        let states_window = code.class == FailureClass::Overflow;
        let verdict = Verdict::new(code.class, code.rule);
        Some(Verdict { kind: Some(kind), states_window, fault: code.fault, ..verdict })
    })
}

/// Returns true if an error type of this class overrides the status. Without a status, every error type decides.
fn kind_applies(status: Option<u16>, class: FailureClass) -> bool {
    match status {
        None => true,
        Some(0..=399) => class == FailureClass::Overflow,
        Some(401 | 402) => false,
        Some(403) => matches!(class, FailureClass::Auth | FailureClass::Billing),
        Some(429) => matches!(class, FailureClass::Billing | FailureClass::Overloaded),
        // Some servers report every error as `api_error`.
        Some(_) => class != FailureClass::Server,
    }
}

/// Decides by the first of the user's rows that matches the text. The rows do not apply if the refusal is about the
/// account (401 to 403) or a rate limit (429).
fn by_row(status: Option<u16>, text: &str, rows: &Rows) -> Option<Verdict<'static>> {
    if matches!(status, Some(401..=403 | 429)) {
        return None;
    }
    let (class, name, found, is_at_opening) = rows.find(text)?;
    let states_window = class == FailureClass::Overflow && is_at_opening;
    Some(Verdict { found, states_window, ..Verdict::new(class, name.to_owned()) })
}

/// Decides by the first known text of a family that applies at this status.
fn by_text(status: Option<u16>, text: &str) -> Option<Verdict<'static>> {
    let (rule, found) = text::find(text, families(status))?;
    // A message about the whole list may say that it is too long.
    if rule.family == TextFamily::Shape
        && let Some((rest, counts_tokens)) = opening::after_list(text)
        && let Some(verdict) = judged(status, &format!("the messages: {rest}"))
        && verdict.class == FailureClass::Overflow
    {
        let found = if counts_tokens { verdict.found } else { Numbers::default() };
        return Some(Verdict { found, ..verdict });
    }
    let class = match rule.family {
        TextFamily::Throttle => FailureClass::RateLimit,
        TextFamily::Account | TextFamily::Quota => FailureClass::Billing,
        TextFamily::Key => FailureClass::Auth,
        TextFamily::Shape => FailureClass::BadRequest,
        TextFamily::Size => FailureClass::TooLarge,
        TextFamily::Ceiling | TextFamily::Window => FailureClass::Overflow,
        TextFamily::Output => FailureClass::OutputCap,
        TextFamily::Busy => FailureClass::Overloaded,
    };
    let states_window = matches!(class, FailureClass::Overflow | FailureClass::OutputCap);
    let found = if class == FailureClass::Overflow { found.or_judged(text) } else { found };
    Some(Verdict { found, states_window, ..Verdict::new(class, rule.name) })
}

/// Returns true for a status of the client's mistakes that has no meaning of its own.
fn is_general(status: u16) -> bool {
    matches!(status, 400 | 405..=407 | 410..=428 | 430..=498)
}

/// Returns the families of rules that apply at a status, apart from [`TextFamily::Ceiling`].
fn families(status: Option<u16>) -> &'static [TextFamily] {
    use TextFamily::{Account, Busy, Key, Output, Quota, Shape, Size, Throttle, Window};
    match status {
        Some(413) => &[Throttle, Account, Window],
        Some(429) => &[Account],
        // A gateway may report a refusal of the provider as an error of its own.
        Some(503) => &[Busy, Account, Window],
        Some(529) => &[],
        Some(500..=599) => &[Throttle, Account, Window],
        Some(status) if !is_general(status) => &[],
        None | Some(_) => &[Throttle, Account, Quota, Key, Shape, Size, Window, Output],
    }
}

/// Decides by what the message says, if no rule knows it.
fn by_evidence(
    status: Option<u16>,
    answer: &ErrorBody,
    has_retry_after: bool,
) -> Option<Verdict<'static>> {
    let applies = match status {
        None => true,
        Some(500 | 501) => !has_retry_after,
        Some(status) => is_general(status),
    };
    let text = answer.own_text().filter(|_| applies)?;
    judged(status, text).or_else(|| media_not_taken(status, text))
}

/// Returns the verdict about a server error that says that the model cannot read images or documents. Servers of local models
/// send such a one, where others send a 400.
fn media_not_taken(status: Option<u16>, text: &str) -> Option<Verdict<'static>> {
    let is_server_error = matches!(status, Some(500 | 501));
    let word = evidence::media_not_taken(text).filter(|_| is_server_error)?;
    let why = Some(evidence::says(word));
    let verdict = Verdict::new(FailureClass::BadRequest, "evidence-media");
    Some(Verdict { why, fault: Some(Fault::Block), certainty: Certainty::Likely, ..verdict })
}

/// Returns the verdict about a message by what it says.
fn judged(status: Option<u16>, text: &str) -> Option<Verdict<'static>> {
    let judged = evidence::judge(text)?;
    let (class, rule) = match judged.excess {
        Excess::Tokens => (FailureClass::Overflow, "evidence"),
        Excess::Output if status == Some(413) => return None,
        Excess::Output => (FailureClass::OutputCap, "evidence-output"),
        // The status says the same.
        Excess::Bytes | Excess::Either if status == Some(413) => return None,
        Excess::Bytes => (FailureClass::TooLarge, "evidence-bytes"),
        Excess::Either => (FailureClass::TooLarge, "evidence-size"),
    };
    let verdict = Verdict::new(class, rule);
    let (found, why) = (judged.numbers, Some(judged.why));
    Some(Verdict { found, why, certainty: Certainty::Likely, ..verdict })
}

/// Decides by the status alone. `has_retry_after` is true if the answer has that header.
fn by_status(status: Option<u16>, has_retry_after: bool) -> Verdict<'static> {
    let Some(status) = status else {
        return Verdict::new(FailureClass::Server, "error-in-answer");
    };
    let row = STATUSES.iter().find(|row| row.0 == status);
    let (class, rule) = match (status, row) {
        (402, _) if has_retry_after => (FailureClass::RateLimit, "status-402-retry-after"),
        (503, _) if has_retry_after => (FailureClass::Overloaded, "status-503-retry-after"),
        (_, Some(&(_, class, rule))) => (class, rule),
        (400..=499, None) => (FailureClass::BadRequest, "status-4xx"),
        (500..=599, None) => (FailureClass::Server, "status-5xx"),
        (200..=299, None) => (FailureClass::Broken, "status-2xx"),
        // Redirects are not followed, because that could send the key to another host.
        (300..=399, None) => (FailureClass::NotFound, "status-3xx"),
        (_, None) => (FailureClass::Broken, "status-other"),
    };
    Verdict::new(class, rule)
}
