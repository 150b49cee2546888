//! The class of a failure: its exit status, its name, and what can be done about it.

use crate::exit::Exit;
use crate::fault::Fault;

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
    /// `max_tokens` is larger than the model's maximum output, which is in [`Failure::output_cap`](super::Failure::output_cap). A smaller
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
        self.facts().0
    }

    /// Returns the name used in diagnostics and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().1
    }

    /// Returns the advice that ends the error message.
    #[must_use]
    pub fn advice(self) -> &'static str {
        self.facts().2
    }

    /// Returns the exit status, the name and the advice.
    fn facts(self) -> (Exit, &'static str, &'static str) {
        use Exit::{Permission, Refused, TryLater, Unavailable};
        const LATER: &str = "try again later";
        const SHORTEN: &str = "shorten it (claw-truncate, claw-compact)";
        const SHRINK: &str = "remove images or shorten long results (claw-truncate)";
        const SERVER: &str = "check that the server is running, and its address (--base-url)";
        const KEY: &str = "check the key (--key-file, --key-cmd or its variable)";
        const DRY: &str = "check the request with claw-call --dry-run";
        match self {
            FailureClass::Overflow => (Exit::Overflow, "overflow", SHORTEN),
            FailureClass::TooLarge => (Exit::TooLarge, "too-large", SHRINK),
            FailureClass::RateLimit => (TryLater, "rate-limit", LATER),
            FailureClass::Overloaded => (TryLater, "overloaded", LATER),
            FailureClass::Server => (Unavailable, "server", LATER),
            FailureClass::Unreachable => (Unavailable, "unreachable", SERVER),
            FailureClass::Broken => {
                (Unavailable, "broken-answer", "try again, or check the address (--base-url)")
            }
            FailureClass::Auth => (Permission, "auth", KEY),
            FailureClass::Billing => (Permission, "billing", "check the account"),
            FailureClass::Permission => {
                (Permission, "permission", "check the permissions of the key")
            }
            FailureClass::NotFound => (Refused, "not-found", "check --model and --base-url"),
            FailureClass::OutputCap => (Refused, "output-cap", "give a smaller --max-tokens"),
            FailureClass::BadRequest => (Refused, "bad-request", DRY),
            FailureClass::NotRecorded => {
                (Exit::NotRecorded, "not-recorded", "record it first (--record)")
            }
        }
    }

    /// Returns what the guard can act on, unless the refusal says more.
    #[must_use]
    pub fn fault(self) -> Fault {
        match self {
            FailureClass::Overflow => Fault::Tokens,
            FailureClass::TooLarge => Fault::Bytes,
            _ if self.retryable() => Fault::Wait,
            _ => Fault::Other,
        }
    }

    /// Returns true if the same request may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self.exit(), Exit::TryLater | Exit::Unavailable)
    }
}

/// How sure a classification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// A status, a type, a code or a known text decided.
    Certain,
    /// The evidence decided. It teaches no window and no limit.
    Likely,
}

impl Certainty {
    /// Returns the name used in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
        }
    }
}
