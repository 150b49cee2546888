//! Decides the class of a refusal, and names the rule.
//!
//! The steps run in the order given in the documentation of [`super`]. Each step is named after what it looks at.
//! All but the last return `None` if they do not apply. Step 1 has no function: the other steps skip its statuses,
//! so that [`by_status`] decides.

use super::answer::ErrorBody;
use super::text::{self, Numbers, TextFamily};
use super::{FailureClass, Rows};
use std::borrow::Cow;

/// The longest prompt, in tokens, that a subscription allows without extra usage. Text T2 does not state it.
const LONG_CONTEXT: u64 = 200_000;

/// The error types and codes that determine a class, in the order in which they are tried. The rule's name is `type-`
/// followed by the type or code. `invalid_request_error` and the like are too general to be included.
pub(super) const KINDS: &[(&str, FailureClass)] = &[
    ("type-insufficient_quota", FailureClass::Billing),
    ("type-billing_error", FailureClass::Billing),
    ("type-billing_hard_limit_reached", FailureClass::Billing),
    ("type-authentication_error", FailureClass::Auth),
    ("type-invalid_api_key", FailureClass::Auth),
    ("type-permission_error", FailureClass::Permission),
    ("type-rate_limit_error", FailureClass::RateLimit),
    ("type-rate_limit_exceeded", FailureClass::RateLimit),
    ("type-RESOURCE_EXHAUSTED", FailureClass::RateLimit),
    ("type-ThrottlingException", FailureClass::RateLimit),
    ("type-overloaded_error", FailureClass::Overloaded),
    ("type-engine_overloaded_error", FailureClass::Overloaded),
    ("type-unavailable_error", FailureClass::Overloaded),
    ("type-context_length_exceeded", FailureClass::Overflow),
    ("type-context_window_exceeded", FailureClass::Overflow),
    ("type-exceed_context_size_error", FailureClass::Overflow),
    ("type-model_context_window_exceeded", FailureClass::Overflow),
    ("type-tokens_limit_reached", FailureClass::Overflow),
    ("type-OutofContextError", FailureClass::Overflow),
    ("type-request_too_large", FailureClass::TooLarge),
    ("type-string_above_max_length", FailureClass::BadRequest),
    ("type-not_found_error", FailureClass::NotFound),
    ("type-model_not_found", FailureClass::NotFound),
    ("type-api_error", FailureClass::Server),
    ("type-server_error", FailureClass::Server),
    ("type-timeout_error", FailureClass::Server),
];

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
}

impl Verdict<'_> {
    fn new(class: FailureClass, rule: impl Into<Cow<'static, str>>) -> Self {
        let found = Numbers::default();
        Verdict { class, rule: rule.into(), kind: None, found, states_window: false }
    }

    /// Returns the numbers to report. If the failure is an overflow by its type or code, the numbers come from separate
    /// members of the answer (llama.cpp) or from its text.
    pub(super) fn numbers(&self, answer: &ErrorBody) -> Numbers {
        if self.class != FailureClass::Overflow || self.kind.is_none() {
            return self.found;
        }
        let text = answer.text.as_deref().unwrap_or_default();
        let in_text = text::find(text, &[TextFamily::Window, TextFamily::Midway])
            .map_or_else(Numbers::default, |(_, numbers)| numbers);
        Numbers {
            input: answer.input.or(in_text.input),
            input_is_floor: answer.input.is_none() && in_text.input_is_floor,
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
        .or_else(|| by_row(status, text, rows))
        .or_else(|| by_text(status, text))
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

/// Decides by the first row of [`KINDS`] that the answer names and that applies at this status.
fn by_kind(status: Option<u16>, answer: &ErrorBody) -> Option<Verdict<'_>> {
    let mut rows = KINDS.iter().filter(|(_, class)| kind_applies(status, *class));
    rows.find_map(|&(rule, class)| {
        let word = rule.strip_prefix("type-")?;
        let kind = answer.kinds.iter().find(|kind| kind.eq_ignore_ascii_case(word))?;
        let states_window = class == FailureClass::Overflow;
        Some(Verdict { kind: Some(kind), states_window, ..Verdict::new(class, rule) })
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
    let class = match rule.family {
        TextFamily::Throttle => FailureClass::RateLimit,
        TextFamily::Account => FailureClass::Billing,
        TextFamily::Key => FailureClass::Auth,
        TextFamily::Shape => FailureClass::BadRequest,
        TextFamily::Size => FailureClass::TooLarge,
        TextFamily::Ceiling | TextFamily::Window | TextFamily::Midway => FailureClass::Overflow,
        TextFamily::Output => FailureClass::OutputCap,
        TextFamily::Busy => FailureClass::Overloaded,
    };
    let states_window = class == FailureClass::Overflow;
    Some(Verdict { found, states_window, ..Verdict::new(class, rule.name) })
}

/// Returns the families of rules that apply at a status, apart from [`TextFamily::Ceiling`].
fn families(status: Option<u16>) -> &'static [TextFamily] {
    use TextFamily::{Account, Busy, Key, Midway, Output, Shape, Size, Throttle, Window};
    match status {
        Some(413) => &[Throttle, Window],
        Some(503) => &[Busy],
        Some(401..=404 | 408 | 409 | 429 | 499) => &[],
        Some(500) => &[Midway],
        None | Some(400..=499) => &[Throttle, Account, Key, Shape, Size, Window, Midway, Output],
        Some(_) => &[],
    }
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
