//! Classifies failures: turns a provider's refusal into a [`Failure`].
//!
//! [`Failure::classify`] is a pure function of the status, the headers and the bytes of the body. It never fails or
//! panics, whatever the bytes are, and runs in linear time. The [`FailureClass`] of its result determines the exit
//! status, and [`Failure::rule`] names the rule that decided.
//!
//! # Order of decisions
//!
//! The first rule that applies decides.
//!
//! 1. 401 is [`FailureClass::Auth`], 402 [`FailureClass::Billing`], 403 [`FailureClass::Permission`]; the text is not
//!    read. (A 403 whose error type says billing or authentication is classified by that type. A 402 with `retry-after`
//!    is [`FailureClass::RateLimit`].)
//! 2. A message about a rate or subscription limit (rules T1 and T2). If this request exceeds the limit on its own, the
//!    failure is an overflow, see [`Failure::limit`]; otherwise it is a rate limit.
//! 3. The structured type or code: billing, keys and throttling first, then overflow, then the others. At 429, only the
//!    types for billing and overload are considered, so a 429 is never an overflow by its code.
//! 4. The rows that the user added to the failure table, at every status except 401, 402, 403 and 429. They also match short
//!    plain text and the title of a page.
//! 5. The text of the message, at 400, 413, 422 and 4xx statuses without a specific meaning, and for an error inside a
//!    2xx. At 413 and 5xx, only messages about throttling, the account and the window are considered, at 429 those about
//!    an account without credit, and at 503 also those about a busy server.
//! 6. What the message says, if no row knows it: words for a thing that has a size, words for too much, and numbers. It
//!    applies at the 4xx statuses of step 5 except 429, and at 500 and 501 without `retry-after`. Its result is
//!    [`Certainty::Likely`].
//! 7. The status.
//!
//! The guard does not act on the class, but on the [`Fault`]: too many tokens, too many bytes, or a block that the provider
//! rejects.
//!
//! 8. The fault: that of the type, code or evidence that decided the class; else a place in the messages that the refusal
//!    names, or a word in it for something that stands in messages, which make it a block; else what the class says.
//!
//! [`Failure::weigh`] then weighs the result against what the caller knows about the request. It may change the class, and
//! with it the fault: a request without an explanation is too long or too large if its size makes that likely; and a refusal
//! that names nothing is likely one of a block, if an earlier request of the session was accepted.
//!
//! # Source of the text
//!
//! The text is taken only from a JSON error, never from a successful answer. It is the first of these that is a
//! non-empty string: `error.metadata.raw`, `error.message`, `error`, `errors[0].message`, `message`, `detail`, the
//! whole body. That text may itself be a JSON error, after a prefix that a gateway adds (Ollama, OpenRouter) or
//! written as a Python `b'...'` literal or dictionary (LiteLLM). Then the inner error is used, up to a few levels
//! deep. If the body is a list (Gemini), its first element is used, and if it is a stream, its first error event.
//!
//! An error may quote the request or the model's output. Therefore text decides only at the beginning of the message,
//! where the words are the provider's own; JSON later in the message is treated as a quotation.
//!
//! A body that is not JSON, and an object without any of these members, is never looked up in the built-in table. Short plain
//! text, the title of a page, and members with other names count only for the user's rows (step 4) and as evidence (step 6).
//! An empty body is classified by its status and by [`Failure::weigh`].

use jiff::fmt::rfc2822::DateTimeParser;

mod answer;
mod class;
mod code;
mod evidence;
mod fault;
mod feature;
mod opening;
pub mod place;
mod python;
mod record;
mod rows;
mod text;
mod verdict;
mod weigh;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::provider::address;
use answer::ErrorBody;
pub use class::{Certainty, FailureClass};
use fault::Finding;
pub use feature::{Feature, Features};
use place::{Place, WirePlace};
pub use rows::Rows;
use std::borrow::Cow;
use verdict::decide;
pub use weigh::Known;

/// The rule of [`Failure::untrusted`].
const UNTRUSTED: &str = "untrusted-certificate";
/// The rule of [`Failure::empty`].
pub(super) const EMPTY: &str = "empty-answer";
/// The rule of [`Failure::malformed`].
pub(super) const MALFORMED: &str = "malformed-answer";
/// The maximum length of a provider's message, in bytes. The rest is cut off.
const MESSAGE_BYTES: usize = 2048;
/// The maximum length of a URL in a message, in bytes.
const LOCATION_BYTES: usize = 200;
/// The longest wait that is reported, in seconds: 31 days. Longer waits are reduced to it.
const LONGEST_WAIT: f64 = 31.0 * 86_400.0;

/// A failed call.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The class, which determines the exit status.
    pub class: FailureClass,
    /// The HTTP status, or `None` if there was no answer.
    pub status: Option<u16>,
    /// The provider's error type or code: the one that decided, otherwise the innermost.
    pub kind: Option<String>,
    /// The provider's message without wrapping errors, at most 2 KiB. If the body has no message: the status and
    /// the first 500 bytes of the body. A redirect's message ends with its target.
    pub message: String,
    /// The size of the prompt in tokens, as counted by the provider.
    pub actual: Option<u64>,
    /// True if `actual` is only a lower bound. vLLM stops counting at its limit, so the excess is unknown and
    /// must not be used to decide how much to cut.
    pub actual_is_floor: bool,
    /// The context window in tokens.
    ///
    /// For rule T1 it is the limit on tokens per minute. A request above that limit is refused however long the
    /// caller waits, so the limit acts as the window, `actual` is the number of tokens requested, and the class is
    /// overflow. For rule T2 it is 200000, the longest prompt that a subscription allows without extra usage. T2
    /// has also been seen on small prompts, so a caller whose estimate is far below 200000 should distrust it.
    pub limit: Option<u64>,
    /// The same value as `limit` if that is the model's window as stated by the provider. The caller may remember it.
    /// `None` if the limit is one of the account or of this program.
    pub stated_window: Option<u64>,
    /// The `max_tokens` of the request, as stated in the provider's refusal.
    pub requested_output: Option<u64>,
    /// The model's maximum output, in tokens.
    pub output_cap: Option<u64>,
    /// The wait that the provider asks for, in seconds, from 0 to 31 days.
    pub retry_after: Option<f64>,
    /// True if the same request may succeed later.
    pub retryable: bool,
    /// The provider's id for the request.
    pub request_id: Option<String>,
    /// The fault, by which the guard acts.
    pub fault: Fault,
    /// How sure the classification is.
    pub certainty: Certainty,
    /// The evidence, in a short sentence, if no rule decided alone.
    pub why: Option<Box<str>>,
    /// The places in the body that the refusal names, as the provider counts.
    pub wire_places: Box<[WirePlace]>,
    /// The places in the caller's messages. The caller fills them in (see [`crate::provider::message_places`]).
    pub places: Box<[Place]>,
    /// The size of the refused body in bytes.
    pub request_bytes: Option<u64>,
    /// The largest body in bytes that the provider accepts, as it states.
    pub limit_bytes: Option<u64>,
    /// The rule that decided: `status-401`, `type-exceed_context_size_error`, `R1`, `T1`, ...; for a user's row, its
    /// file and line.
    pub rule: Cow<'static, str>,
}

impl Failure {
    /// Returns the final error message: the failure, and advice unless the failure states when to try again.
    #[must_use]
    pub fn final_message(&self) -> String {
        match self.retry_after {
            Some(_) if self.retryable => self.to_string(),
            _ => format!("{self}; {}", self.advice()),
        }
    }

    fn advice(&self) -> &'static str {
        match &*self.rule {
            UNTRUSTED => {
                "install the system's CA certificates, or give the server's certificate (--ca)"
            }
            _ if self.wants_responses() => {
                "the model needs OpenAI's Responses API; give --api responses"
            }
            _ if self.blames_call_id() => {
                "the id of a call is not accepted, and nothing that can be left out changes it; undo the turn, or try another model"
            }
            _ if Feature::Calls.is_refused_by(self) => {
                "if the model takes no tools, leave out --tools or use another model"
            }
            _ => self.class.advice(),
        }
    }

    /// Returns true if the provider does not accept the id of a call, and names nothing else that could be left out.
    fn blames_call_id(&self) -> bool {
        self.fault == Fault::Other && self.wire_places.iter().any(|place| place.is_call_id)
    }

    /// Returns true if a server refuses a chat completion and names its other API: `Please use /v1/responses instead`, `This model
    /// is only supported in v1/responses` (OpenAI, 2025 and 2026).
    #[must_use]
    pub fn wants_responses(&self) -> bool {
        let is_refusal = matches!(self.class, FailureClass::BadRequest | FailureClass::NotFound);
        is_refusal && self.message.contains("v1/responses")
    }

    /// Returns a failure that this program detected itself. It has no status and no numbers.
    #[must_use]
    pub fn new(
        class: FailureClass,
        rule: impl Into<Cow<'static, str>>,
        message: impl AsRef<str>,
    ) -> Failure {
        Failure {
            class,
            status: None,
            kind: None,
            message: bounded(message.as_ref(), MESSAGE_BYTES).to_owned(),
            actual: None,
            actual_is_floor: false,
            limit: None,
            stated_window: None,
            requested_output: None,
            output_cap: None,
            retry_after: None,
            retryable: class.retryable(),
            request_id: None,
            fault: class.fault(),
            certainty: Certainty::Certain,
            why: None,
            wire_places: Box::default(),
            places: Box::default(),
            request_bytes: None,
            limit_bytes: None,
            rule: rule.into(),
        }
    }

    /// Returns the failure for a missing answer: connection refused or reset, unknown host, timeout.
    #[must_use]
    pub fn unreachable(message: impl AsRef<str>) -> Failure {
        Failure::new(FailureClass::Unreachable, "no-answer", message)
    }

    /// Returns the failure for a connection that was lost while the request was sent or before the answer began.
    #[must_use]
    pub fn aborted(message: impl AsRef<str>) -> Failure {
        Failure::new(FailureClass::Unreachable, weigh::ABORTED, message)
    }

    /// Returns the failure for a server whose certificate is not trusted. The same request fails again.
    #[must_use]
    pub fn untrusted(message: impl AsRef<str>) -> Failure {
        let failure = Failure::new(FailureClass::Unreachable, UNTRUSTED, message);
        Failure { retryable: false, ..failure }
    }

    /// Returns the failure for an unusable answer with HTTP status `status`.
    #[must_use]
    pub fn broken(status: u16, message: impl AsRef<str>) -> Failure {
        let failure = Failure::new(FailureClass::Broken, "broken-answer", message);
        Failure { status: Some(status), ..failure }
    }

    /// Returns the failure for a complete answer with HTTP status `status` that is malformed. It is paid for, so it is
    /// asked for only once more.
    #[must_use]
    pub fn malformed(status: u16, message: impl AsRef<str>) -> Failure {
        let failure = Failure::new(FailureClass::Broken, MALFORMED, message);
        Failure { status: Some(status), ..failure }
    }

    /// Returns the failure for an answer with neither text nor tool calls.
    #[must_use]
    pub fn empty() -> Failure {
        let text = "the answer has neither text nor tool calls";
        let failure = Failure::new(FailureClass::Broken, EMPTY, text);
        Failure { status: Some(200), ..failure }
    }

    /// Classifies a provider's refusal.
    ///
    /// `header` returns a response header's value by its lower-case name. `now_unix` is the time in Unix seconds,
    /// which is subtracted from a date in `retry-after`. An `x-should-retry` header overrides `retryable` and
    /// nothing else. `rows` are the user's additions to the failure table. Call this only for failures: a 2xx
    /// without an error in it is [`FailureClass::Broken`], unless its stop reason says that the window is full.
    #[must_use]
    pub fn classify(
        status: u16,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
        now_unix: f64,
        rows: &Rows,
    ) -> Failure {
        let answer = ErrorBody::read(body);
        let retry_after = retry_after(header, now_unix);
        let verdict = decide(status, &answer, retry_after.is_some(), rows);
        let numbers = verdict.numbers(&answer);
        let mut message = answer.message(status, body);
        if let Some(to) = header("location").filter(|_| (300..400).contains(&status)) {
            let to = address::shown(bounded(&to, LOCATION_BYTES));
            message.push_str(&format!("; redirects to '{to}' (redirects are not followed)"));
        }
        let wire_places = answer.places();
        let failure = Failure::new(verdict.class, verdict.rule.clone(), message);
        let text = answer.text.as_deref().unwrap_or_default();
        let Finding { fault, certainty, why } = fault::find(&verdict, &wire_places, text);
        let is_of_size = verdict.class == FailureClass::TooLarge;
        let sized = answer.own_text().filter(|_| is_of_size);
        Failure {
            status: Some(status),
            fault,
            certainty,
            why: why.map(String::into_boxed_str),
            wire_places: wire_places.into(),
            limit_bytes: sized.and_then(evidence::limit_in_bytes),
            kind: verdict.kind.or_else(|| answer.first_kind()).cloned(),
            actual: numbers.input,
            actual_is_floor: numbers.input_is_floor,
            limit: numbers.limit,
            stated_window: numbers.limit.filter(|_| verdict.states_window),
            requested_output: numbers.requested,
            output_cap: numbers.cap,
            retry_after,
            retryable: should_retry(header).unwrap_or(failure.retryable),
            request_id: header("request-id")
                .or_else(|| header("x-request-id"))
                .or_else(|| answer.request_id.clone()),
            ..failure
        }
    }

    /// Returns the failure without its numbers of tokens, for a body in which they may be incomplete.
    #[must_use]
    pub(super) fn without_numbers(self) -> Failure {
        Failure {
            actual: None,
            actual_is_floor: false,
            limit: None,
            stated_window: None,
            requested_output: None,
            output_cap: None,
            limit_bytes: None,
            ..self
        }
    }

    /// Returns the exit status for the failure.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.class.exit()
    }
}

/// Returns the wait that the headers ask for, in seconds: `retry-after-ms`, else `retry-after` as a number of
/// seconds or as a date. A date in the past is a wait of 0.
fn retry_after(header: &dyn Fn(&str) -> Option<String>, now_unix: f64) -> Option<f64> {
    let number = |name: &str, unit: f64| -> Option<f64> {
        let wait = header(name)?.trim().parse::<f64>().ok()? * unit;
        limited_wait(wait)
    };
    let date = || -> Option<f64> {
        const HTTP_DATE: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
        let date = HTTP_DATE.parse_timestamp(header("retry-after")?.trim()).ok()?;
        limited_wait((date.as_duration().as_secs_f64() - now_unix).max(0.0))
    };
    number("retry-after-ms", 0.001).or_else(|| number("retry-after", 1.0)).or_else(date)
}

/// Limits a wait to [`LONGEST_WAIT`]. Returns `None` for a negative number or NaN.
fn limited_wait(seconds: f64) -> Option<f64> {
    (seconds >= 0.0).then(|| seconds.min(LONGEST_WAIT))
}

/// Returns the provider's own statement of whether a retry may help.
fn should_retry(header: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    header("x-should-retry")?.trim().to_ascii_lowercase().parse().ok()
}

/// Returns the longest prefix of `text` with at most `most` bytes that ends at a character boundary.
fn bounded(text: &str, most: usize) -> &str {
    let mut ends = (0..=most.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
