//! The decision: which class an answer is, and which rule says so.
//!
//! The order is the one that the head of [`super`] gives. Each step looks only at what it is named for,
//! and yields when it has nothing to say.

use super::answer::ErrorBody;
use super::texts::{self, Numbers, TextFamily};
use super::{FailureClass, Rows};
use std::borrow::Cow;

/// Where subscriptions without extra usage end, in prompt tokens (text T2, which does not say it).
const LONG_CONTEXT: u64 = 200_000;

/// The structured types and codes that decide, in the order of trial; the rule's name is `type-`
/// and the word. `invalid_request_error` and its like say too little to be here.
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

/// What a status means when nothing else decides.
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

/// What was decided, and by what.
pub(super) struct Verdict<'a> {
    pub(super) class: FailureClass,
    pub(super) rule: Cow<'static, str>,
    /// The provider's word that decided.
    pub(super) kind: Option<&'a String>,
    /// The numbers of the text that decided.
    pub(super) found: Numbers,
    /// True if a limit among the numbers is the model's window, in the place where its provider states it.
    pub(super) states_window: bool,
}

impl Verdict<'_> {
    fn new(class: FailureClass, rule: impl Into<Cow<'static, str>>) -> Self {
        let found = Numbers::default();
        Verdict { class, rule: rule.into(), kind: None, found, states_window: false }
    }

    /// The numbers to report. An overflow by its code has them in members of their own (llama.cpp)
    /// or in its text.
    pub(super) fn numbers(&self, answer: &ErrorBody) -> Numbers {
        if self.class != FailureClass::Overflow || self.kind.is_none() {
            return self.found;
        }
        let text = answer.text.as_deref().unwrap_or_default();
        let told = texts::find(text, &[TextFamily::Window, TextFamily::Midway])
            .map_or_else(Numbers::default, |told| told.1);
        Numbers {
            input: answer.input.or(told.input),
            input_is_floor: answer.input.is_none() && told.input_is_floor,
            limit: answer.limit.or(told.limit),
            ..told
        }
    }
}

/// Decides, in the order that the head of this file gives.
pub(super) fn decide<'a>(
    status: u16,
    answer: &'a ErrorBody,
    paced: bool,
    rows: &Rows,
) -> Verdict<'a> {
    // An error inside a success speaks for itself; some carry the status that they should have had.
    let inside = answer.is_error && matches!(status, 200..=299);
    let status = if inside { answer.code } else { Some(status) };
    let text = answer.text.as_deref().unwrap_or_default();
    by_ceiling(status, text)
        .or_else(|| by_kind(status, answer))
        .or_else(|| by_row(status, text, rows))
        .or_else(|| by_text(status, text))
        .unwrap_or_else(|| by_status(status, paced))
}

/// A limit that this request can never get under by waiting is a window; else it is just a limit.
fn by_ceiling(status: Option<u16>, text: &str) -> Option<Verdict<'static>> {
    if matches!(status, Some(0..=399 | 401..=404)) {
        return None;
    }
    let (rule, mut found) = texts::find(text, &[TextFamily::Ceiling])?;
    if rule.groups.is_empty() {
        // T2 has no numbers in its text.
        found.limit = Some(LONG_CONTEXT);
    } else if found.input <= found.limit {
        return Some(Verdict::new(FailureClass::RateLimit, rule.name));
    }
    Some(Verdict { found, ..Verdict::new(FailureClass::Overflow, rule.name) })
}

/// The first row of [`KINDS`] that the answer names and that counts at this status.
fn by_kind(status: Option<u16>, answer: &ErrorBody) -> Option<Verdict<'_>> {
    let mut rows = KINDS.iter().filter(|(_, class)| kind_counts(status, *class));
    rows.find_map(|&(rule, class)| {
        let word = rule.strip_prefix("type-")?;
        let kind = answer.kinds.iter().find(|kind| kind.eq_ignore_ascii_case(word))?;
        let states_window = class == FailureClass::Overflow;
        Some(Verdict { kind: Some(kind), states_window, ..Verdict::new(class, rule) })
    })
}

/// Whether a type of this class may overrule the status; without a status, each does.
fn kind_counts(status: Option<u16>, class: FailureClass) -> bool {
    match status {
        None => true,
        Some(0..=399) => class == FailureClass::Overflow,
        Some(401 | 402) => false,
        Some(403) => matches!(class, FailureClass::Auth | FailureClass::Billing),
        Some(429) => matches!(class, FailureClass::Billing | FailureClass::Overloaded),
        // Some servers call all their errors `api_error`.
        Some(_) => class != FailureClass::Server,
    }
}

/// The first row of the user's that the text matches. A refusal of the account, and one for its rate, is
/// that whatever it says.
fn by_row(status: Option<u16>, text: &str, rows: &Rows) -> Option<Verdict<'static>> {
    if matches!(status, Some(401..=403 | 429)) {
        return None;
    }
    let (class, name, found, is_at_opening) = rows.find(text)?;
    let states_window = class == FailureClass::Overflow && is_at_opening;
    Some(Verdict { found, states_window, ..Verdict::new(class, name.to_owned()) })
}

/// The first text of the families that count at this status.
fn by_text(status: Option<u16>, text: &str) -> Option<Verdict<'static>> {
    let (rule, found) = texts::find(text, families(status))?;
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

/// The texts that count at a status, after its ceilings.
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

/// The status alone, with what `retry-after` adds to it (`paced`).
fn by_status(status: Option<u16>, paced: bool) -> Verdict<'static> {
    let Some(status) = status else {
        return Verdict::new(FailureClass::Server, "error-in-answer");
    };
    let row = STATUSES.iter().find(|row| row.0 == status);
    let (class, rule) = match (status, row) {
        (402, _) if paced => (FailureClass::RateLimit, "status-402-retry-after"),
        (503, _) if paced => (FailureClass::Overloaded, "status-503-retry-after"),
        (_, Some(&(_, class, rule))) => (class, rule),
        (400..=499, None) => (FailureClass::BadRequest, "status-4xx"),
        (500..=599, None) => (FailureClass::Server, "status-5xx"),
        (200..=299, None) => (FailureClass::Broken, "status-2xx"),
        // The address is another one now, and a key is not sent to where an answer says.
        (300..=399, None) => (FailureClass::NotFound, "status-3xx"),
        (_, None) => (FailureClass::Broken, "status-other"),
    };
    Verdict::new(class, rule)
}
