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
//! 4. The rows that the user added to the failure table, at every status except 401, 402, 403 and 429.
//! 5. The text of the message, at 400, 413, 422 and 4xx statuses without a specific meaning, and for an error inside a
//!    2xx. At 413, only messages about throttling and the window are considered; at 500, only those about a window that
//!    filled up while the answer was generated; at 503, only those about a busy server.
//! 6. The status.
//!
//! # Source of the text
//!
//! The text is taken only from a JSON error, never from a successful answer. It is the first of these that is a
//! non-empty string: `error.metadata.raw`, `error.message`, `error`, `errors[0].message`, `message`, `detail`, the
//! whole body. That text may itself be a JSON error, after a prefix that a gateway adds (Ollama, OpenRouter) or
//! written as a Python `b'...'` literal or dictionary (LiteLLM). Then the inner error is used, up to a few levels
//! deep. If the body is a stream, its first error event is used.
//!
//! An error may quote the request or the model's output. Therefore text decides only at the beginning of the message,
//! where the words are the provider's own; JSON later in the message is treated as a quotation.
//!
//! A body that is empty, HTML or otherwise not JSON is classified by its status alone and is never an overflow.
//! That includes a 400 without a body: at least one provider reports an overflow this way, but detecting it takes
//! an estimate of the prompt, which is not available here.

use crate::json::write::Members;
use std::fmt;

use jiff::fmt::rfc2822::DateTimeParser;

mod answer;
mod opening;
mod python;
mod rows;
mod text;
mod verdict;

use crate::exit::Exit;
use crate::provider::address;
use answer::ErrorBody;
pub use rows::Rows;
use std::borrow::Cow;
use verdict::decide;

/// The rule of [`Failure::untrusted`].
const UNTRUSTED: &str = "untrusted-certificate";
/// The maximum length of a provider's message, in bytes. The rest is cut off.
const MESSAGE_BYTES: usize = 2048;
/// The maximum length of a URL in a message, in bytes.
const LOCATION_BYTES: usize = 200;
/// The longest wait that is reported, in seconds: 31 days. Longer waits are reduced to it.
const LONGEST_WAIT: f64 = 31.0 * 86_400.0;

/// The class of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The request does not fit the window, in tokens.
    Overflow,
    /// The request is too large in bytes.
    TooLarge,
    /// A rate limit was exceeded.
    RateLimit,
    /// The provider is busy or still loading the model.
    Overloaded,
    /// The provider failed.
    Server,
    /// There was no answer: the connection was refused or reset, or it timed out.
    Unreachable,
    /// The answer is neither an error nor a usable reply.
    Broken,
    /// The key is missing or invalid.
    Auth,
    /// Credit or quota is used up.
    Billing,
    /// The key is valid but lacks the permission.
    Permission,
    /// The model or the address does not exist.
    NotFound,
    /// `max_tokens` is larger than the model's maximum output, which is in [`Failure::output_cap`]. A smaller
    /// `max_tokens` helps; a smaller prompt does not.
    OutputCap,
    /// The provider rejects the request as invalid.
    BadRequest,
    /// A replay has no recording of the request.
    NotRecorded,
}

impl FailureClass {
    /// Every class, in the order of the table in claw-call(1).
    pub const ALL: [FailureClass; 14] = [
        FailureClass::Overflow,
        FailureClass::TooLarge,
        FailureClass::RateLimit,
        FailureClass::Overloaded,
        FailureClass::Server,
        FailureClass::Unreachable,
        FailureClass::Broken,
        FailureClass::Auth,
        FailureClass::Billing,
        FailureClass::Permission,
        FailureClass::NotFound,
        FailureClass::OutputCap,
        FailureClass::BadRequest,
        FailureClass::NotRecorded,
    ];

    /// Returns the exit status for the class.
    #[must_use]
    pub fn exit(self) -> Exit {
        match self {
            FailureClass::Overflow => Exit::Overflow,
            FailureClass::TooLarge => Exit::TooLarge,
            FailureClass::RateLimit | FailureClass::Overloaded => Exit::TryLater,
            FailureClass::Server | FailureClass::Unreachable | FailureClass::Broken => {
                Exit::Unavailable
            }
            FailureClass::Auth | FailureClass::Billing | FailureClass::Permission => {
                Exit::Permission
            }
            FailureClass::NotFound | FailureClass::OutputCap | FailureClass::BadRequest => {
                Exit::Refused
            }
            FailureClass::NotRecorded => Exit::NotRecorded,
        }
    }

    /// Returns the name used in diagnostics and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::Overflow => "overflow",
            FailureClass::TooLarge => "too-large",
            FailureClass::RateLimit => "rate-limit",
            FailureClass::Overloaded => "overloaded",
            FailureClass::Server => "server",
            FailureClass::Unreachable => "unreachable",
            FailureClass::Broken => "broken-answer",
            FailureClass::Auth => "auth",
            FailureClass::Billing => "billing",
            FailureClass::Permission => "permission",
            FailureClass::NotFound => "not-found",
            FailureClass::OutputCap => "output-cap",
            FailureClass::BadRequest => "bad-request",
            FailureClass::NotRecorded => "not-recorded",
        }
    }

    /// Returns the advice that ends the error message.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            FailureClass::Overflow => "shorten it (claw-truncate, claw-compact)",
            FailureClass::TooLarge => "remove images or shorten long results (claw-truncate)",
            FailureClass::RateLimit | FailureClass::Overloaded | FailureClass::Server => {
                "try again later"
            }
            FailureClass::Unreachable => {
                "check that the server is running, and its address (--base-url)"
            }
            FailureClass::Broken => "try again, or check the address (--base-url)",
            FailureClass::Auth => "check the key (--key-file, --key-cmd or its variable)",
            FailureClass::Billing => "check the account",
            FailureClass::Permission => "check the permissions of the key",
            FailureClass::NotFound => "check --model and --base-url",
            FailureClass::OutputCap => "give a smaller --max-tokens",
            FailureClass::BadRequest => "check the request with claw-call --dry-run",
            FailureClass::NotRecorded => "record it first (--record)",
        }
    }

    /// Returns true if the same request may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self.exit(), Exit::TryLater | Exit::Unavailable)
    }
}

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
            _ => self.class.advice(),
        }
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
            rule: rule.into(),
        }
    }

    /// Returns the failure for a missing answer: connection refused or reset, unknown host, timeout.
    #[must_use]
    pub fn unreachable(message: impl AsRef<str>) -> Failure {
        Failure::new(FailureClass::Unreachable, "no-answer", message)
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
        let failure = Failure::new(verdict.class, verdict.rule, message);
        Failure {
            status: Some(status),
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
            ..self
        }
    }

    /// Returns the exit status for the failure.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.class.exit()
    }

    /// Returns the failure as an `error` record without id, timestamp and line end. If unknown, `limit` and `actual`
    /// are omitted, and `status` and `model` are null.
    #[must_use]
    pub fn to_error_record(&self, model: Option<&str>) -> String {
        Members::of_type("error")
            .string("class", self.class.name())
            .or_null(Members::number, "status", self.status)
            .string("message", &self.message)
            .optional(Members::number, "limit", self.limit)
            .optional(Members::number, "actual", self.actual)
            .flag("actual_is_floor", self.actual_is_floor)
            .or_null(Members::string, "model", model)
            .into_json()
    }
}

impl fmt::Display for Failure {
    /// Writes the class, the rule and the message, then the numbers that are known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (rule {}): {}", self.class.name(), self.rule, self.message)?;
        let actual = if self.actual_is_floor { "actual at least" } else { "actual" };
        let numbers = [
            (actual, self.actual),
            ("limit", self.limit),
            ("requested output", self.requested_output),
            ("output cap", self.output_cap),
        ];
        let known: Vec<String> = numbers
            .into_iter()
            .filter_map(|(name, tokens)| Some(format!("{name} {}", tokens?)))
            .collect();
        if !known.is_empty() {
            write!(f, " ({})", known.join(", "))?;
        }
        match self.retry_after {
            Some(seconds) if self.retryable => write!(f, "; retry after {seconds} s"),
            _ => Ok(()),
        }
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
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
