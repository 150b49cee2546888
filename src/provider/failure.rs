//! What kind of failure is it: a provider's refusal, read into a [`Failure`].
//!
//! [`Failure::classify`] is a pure function of the status, the headers and the bytes of the body.
//! It never fails and never panics, whatever the bytes are; its work is linear in their number. The
//! [`FailureClass`] that it finds decides the exit status, and [`Failure::rule`] says which rule found it.
//!
//! # Order of decisions
//!
//! The first that applies holds.
//!
//! 1. 401 is [`FailureClass::Auth`], 402 [`FailureClass::Billing`], 403 [`FailureClass::Permission`]; no text is read.
//!    (A 403 may name its type: billing or authentication. A 402 that says when to come back is
//!    [`FailureClass::RateLimit`].)
//! 2. A rate or subscription limit that this one request exceeds by itself, texts T1 and T2: see
//!    [`Failure::limit`].
//! 3. The structured type or code: throttling, money and keys first, then overflow. At 429 only
//!    money and overload count, so a 429 is never an overflow by its code.
//! 4. The rows of the user's own, at every status but 401, 402, 403 and 429.
//! 5. The text of the message, at 400, 413, 422 and the 4xx without a meaning of their own, and for
//!    an error inside a 2xx; at 503 only to tell busy from broken. At 413 only throttling and
//!    window texts count, at 500 only a window that filled up while the answer was made.
//! 6. The status.
//!
//! # Where text comes from
//!
//! Only from a JSON error, never from an answer that succeeded: `error.metadata.raw`,
//! `error.message`, `error` as a string, `errors[0].message`, `message`, `detail`. Where that text is
//! another JSON error (Ollama, OpenRouter; LiteLLM in a Python `b'...'` or dictionary), but for words that
//! gateways put in front, the inner one speaks, a few levels deep. A stream that is given as a body is searched
//! for its first error event.
//!
//! An error may quote the request or what the model said. A text decides only from the beginning of the
//! message on, where the provider itself speaks; JSON further on is a quotation.
//!
//! A body that is empty, HTML or otherwise not JSON is judged by its status alone and is never an
//! overflow. That includes the 400 without a body: at least one provider answers an overflow so,
//! but only an estimate of the prompt could tell, and there is none here.

use crate::json::write::Members;
use std::fmt;

use jiff::fmt::rfc2822::DateTimeParser;

mod answer;
mod opening;
mod python;
mod rows;
mod texts;
mod verdict;

use crate::exit::Exit;
use crate::provider::address;
use answer::ErrorBody;
pub use rows::Rows;
use std::borrow::Cow;
use verdict::decide;

/// The most bytes of a provider's text that are kept.
const MESSAGE_BYTES: usize = 2048;
/// The most bytes of an address that are shown.
const LOCATION_BYTES: usize = 200;
/// The longest wait that is reported, 31 days in seconds. A longer one counts as this.
const LONGEST_WAIT: f64 = 31.0 * 86_400.0;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The request does not fit the window, in tokens.
    Overflow,
    /// The request is too large in bytes.
    TooLarge,
    /// Too much in too short a time.
    RateLimit,
    /// The provider is busy or still loading.
    Overloaded,
    /// The provider failed.
    Server,
    /// There was no answer: refused, reset, timed out.
    Unreachable,
    /// The answer is no error, and no answer either.
    Broken,
    /// The key is missing or not accepted.
    Auth,
    /// Credit or quota is used up.
    Billing,
    /// The key is good and not enough.
    Permission,
    /// No such model or address.
    NotFound,
    /// More output was asked for than the model ever gives; [`Failure::output_cap`] says how much
    /// that is. A smaller `max_tokens` helps, a smaller prompt does not.
    OutputCap,
    /// The provider refuses the request's shape.
    BadRequest,
    /// There is no recording of the request.
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

    /// The status that a program ends in.
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

    /// The word for diagnostics and records.
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

    /// The advice for it.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            FailureClass::Overflow => "shorten it (claw-truncate, claw-compact)",
            FailureClass::TooLarge => "leave out images or long results (claw-truncate)",
            FailureClass::RateLimit | FailureClass::Overloaded | FailureClass::Server => {
                "try again later"
            }
            FailureClass::Unreachable => "check that the server runs, and its address (--base-url)",
            FailureClass::Broken => "try again, or check the address (--base-url)",
            FailureClass::Auth => "check the key (--key-file, --key-cmd or its variable)",
            FailureClass::Billing => "check the account",
            FailureClass::Permission => "check what the key may use",
            FailureClass::NotFound => "check --model and --base-url",
            FailureClass::OutputCap => "give a smaller --max-tokens",
            FailureClass::BadRequest => "claw-call --dry-run shows the request",
            FailureClass::NotRecorded => "record it first (--record)",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self.exit(), Exit::TryLater | Exit::Unavailable)
    }
}

/// One failed call.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What kind of failure it is.
    pub class: FailureClass,
    /// The HTTP status; none when there was no answer.
    pub status: Option<u16>,
    /// The provider's own type or code: the one that decided, else the innermost.
    pub kind: Option<String>,
    /// The provider's text without its wrappings, at most 2 KiB; or, when the body has none, the
    /// status and the body's first 500 bytes.
    pub message: String,
    /// The prompt's tokens as the provider counted them.
    pub actual: Option<u64>,
    /// Whether `actual` is only a lower bound: vLLM stops counting at its limit, so the overshoot
    /// is unknown, and no cut may be sized by it.
    pub actual_is_floor: bool,
    /// The window, in tokens.
    ///
    /// By rule T1 it is the limit on tokens per minute: a request above it is refused however long
    /// one waits, so that limit is the window in effect, `actual` is what was requested, and the
    /// class is overflow. By rule T2 it is 200000, the prompt that a subscription carries without
    /// extra usage; T2 has been seen on small prompts as well, so a caller whose own estimate is
    /// far below that should distrust it.
    pub limit: Option<u64>,
    /// The limit once more, where it is the model's window and the provider stated it, so that it may be
    /// remembered; not a limit of the account, nor one of our own.
    pub stated_window: Option<u64>,
    /// The `max_tokens` that was part of the refusal, in tokens.
    pub requested_output: Option<u64>,
    /// The most output that the model gives, in tokens.
    pub output_cap: Option<u64>,
    /// The wait that the provider asks for, in seconds, from 0 to 31 days.
    pub retry_after: Option<f64>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The provider's name for the exchange.
    pub request_id: Option<String>,
    /// The rule that decided: `status-401`, `type-exceed_context_size_error`, `R1`, `T1`, ...; for a row
    /// of the user's its file and line.
    pub rule: Cow<'static, str>,
}

impl Failure {
    /// The final message: the failure, and the advice for it.
    #[must_use]
    pub fn last_words(&self) -> String {
        match self.retry_after {
            Some(_) if self.retryable => self.to_string(),
            _ => format!("{self}; {}", self.class.advice()),
        }
    }

    /// A failure that was found here and not told by the provider: no numbers, no status.
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

    /// No answer came: connection refused or reset, name not found, time out.
    #[must_use]
    pub fn unreachable(message: impl AsRef<str>) -> Failure {
        Failure::new(FailureClass::Unreachable, "no-answer", message)
    }

    /// An answer of `status` came that cannot be used: cut off, not what was promised.
    #[must_use]
    pub fn broken(status: u16, message: impl AsRef<str>) -> Failure {
        let failure = Failure::new(FailureClass::Broken, "broken-answer", message);
        Failure { status: Some(status), ..failure }
    }

    /// Reads a provider's refusal.
    ///
    /// `header` gives a response header's value by its lower-case name; `now_unix` is the time in
    /// Unix seconds, against which a date in `retry-after` is measured. An `x-should-retry` header
    /// overrides `retryable` and nothing else. A 2xx without an error in it is [`FailureClass::Broken`],
    /// unless its stop reason says that the window is full; call this only for failures. `rows` are the
    /// user's own.
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
            message.push_str(&format!("; it is now at '{to}', and a key is not sent after it"));
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

    /// The status that a program ends in.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.class.exit()
    }

    /// The failure as an `error` record without id and time: one JSON object on one line, without
    /// a line end. Unknown, `limit` and `actual` are left out, `status` and `model` are null.
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
    /// What to say: the class, the rule, the text, then whatever numbers are known.
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

/// The wait that the headers ask for, in seconds: `retry-after-ms`, else `retry-after` as a number
/// of seconds or as a date, where a date gone by is no wait.
fn retry_after(header: &dyn Fn(&str) -> Option<String>, now_unix: f64) -> Option<f64> {
    let number = |name: &str, unit: f64| -> Option<f64> {
        let wait = header(name)?.trim().parse::<f64>().ok()? * unit;
        sane(wait)
    };
    let date = || -> Option<f64> {
        const HTTP_DATE: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
        let date = HTTP_DATE.parse_timestamp(header("retry-after")?.trim()).ok()?;
        sane((date.as_duration().as_secs_f64() - now_unix).max(0.0))
    };
    number("retry-after-ms", 0.001).or_else(|| number("retry-after", 1.0)).or_else(date)
}

/// Returns a wait, [`LONGEST_WAIT`] at the most; a negative number is not one.
fn sane(seconds: f64) -> Option<f64> {
    (seconds >= 0.0).then(|| seconds.min(LONGEST_WAIT))
}

/// The provider's own word on whether to try again.
fn should_retry(header: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    header("x-should-retry")?.trim().to_ascii_lowercase().parse().ok()
}

/// The longest start of `text` of at most `most` bytes that ends between characters.
fn bounded(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests;
