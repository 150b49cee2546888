//! Weighs a refusal against what the caller knows about the request: its size in tokens and bytes, the window, what
//! the endpoint and the session had accepted before, and how often the same request failed in the same way.

use crate::estimate::sizes::Sizes;

use super::{Certainty, Failure, FailureClass, evidence, fault};
use crate::fault::Fault;

/// The rule of [`Failure::aborted`].
pub(super) const ABORTED: &str = "aborted";
/// The share of the window above which a prompt counts as nearly filling it. Estimates may be too low by the rest.
const NEARLY_FULL: f64 = 0.8;
/// The size of a body, in bytes, from which it may be the cause of a failure without an explanation. Servers commonly
/// limit a body to 1, 4.5, 10 or 32 MB.
const LARGE_BODY: u64 = 1_000_000;
/// The size of a body, in bytes, below which it is hardly too large.
const SMALL_BODY: u64 = 90_000;
/// The smallest prompt, in tokens, that an unexplained refusal may find too long if the window is unknown.
const LONG_PROMPT: u64 = 3000;
/// The number of equal failures after which a large body counts as the cause.
const ENOUGH: u32 = 2;

/// The facts that the caller knows about a request that failed. All are optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The estimated size of the prompt in tokens.
    pub prompt: Option<u64>,
    /// The window in tokens.
    pub window: Option<u64>,
    /// The size of the body in bytes.
    pub bytes: Option<u64>,
    /// The sizes of bodies that the endpoint is known to accept.
    pub sizes: Sizes,
    /// True if the messages have a reply: an earlier request of the session, smaller than this one, was accepted.
    pub has_reply: bool,
    /// True if the answer had no body.
    pub is_bare: bool,
    /// The number of times in a row that this request failed, this time included.
    pub failures: u32,
}

impl Known {
    fn fills(&self, window: u64) -> bool {
        self.prompt.is_some_and(|prompt| prompt as f64 > NEARLY_FULL * window as f64)
    }

    fn fills_window(&self) -> bool {
        self.window.is_some_and(|window| self.fills(window))
    }

    /// Returns true if the body is larger than any that the endpoint accepted, and large for a body.
    fn has_large_body(&self) -> bool {
        let most = self.sizes.accepted.unwrap_or(0).max(LARGE_BODY);
        self.bytes.is_some_and(|bytes| bytes > most)
    }
}

impl Failure {
    /// Corrects a classification with the help of what is known about the request.
    #[must_use]
    pub fn weigh(self, known: &Known) -> Failure {
        let failure = Failure { request_bytes: known.bytes.or(self.request_bytes), ..self };
        let failure = failure.classed(known);
        // A limit that is known, but not stated in this refusal.
        let limit = known.sizes.limit.filter(|_| failure.class == FailureClass::TooLarge);
        Failure { limit_bytes: failure.limit_bytes.or(limit), ..failure }
    }

    /// Corrects the class.
    fn classed(self, known: &Known) -> Failure {
        let failure = self;
        match (failure.class, &*failure.rule) {
            (FailureClass::Overflow, "T2") => failure.subscription(known),
            (FailureClass::Overflow, _) if failure.certainty == Certainty::Likely => {
                failure.confirmed(known)
            }
            (FailureClass::TooLarge, "evidence-size") => failure.size(known),
            (FailureClass::TooLarge, "status-413") if known.is_bare => failure.bare(known),
            (FailureClass::BadRequest, _) => failure.refused(known),
            (FailureClass::Server | FailureClass::Unreachable | FailureClass::Broken, _) => {
                failure.repeated(known)
            }
            _ => failure,
        }
    }

    /// A refusal that says that the prompt is too long for the subscription, but has also been seen on small prompts.
    fn subscription(self, known: &Known) -> Failure {
        if known.prompt.is_none() || self.limit.is_some_and(|limit| known.fills(limit)) {
            return self;
        }
        let failure = self.turned(FailureClass::Billing, "T2-short-prompt", None);
        Failure { limit: None, certainty: Certainty::Certain, ..failure }
    }

    /// An overflow whose numbers agree with the estimate is certain.
    fn confirmed(self, known: &Known) -> Failure {
        let (Some(prompt), Some(actual), Some(limit)) = (known.prompt, self.actual, self.limit)
        else {
            return self;
        };
        let agrees = actual > limit && actual / 2 <= prompt && prompt / 2 <= actual;
        match agrees {
            true => Failure { certainty: Certainty::Certain, stated_window: Some(limit), ..self },
            false => self,
        }
    }

    /// A request that is too large, in tokens or bytes.
    fn size(self, known: &Known) -> Failure {
        let is_small = known.bytes.is_some_and(|bytes| bytes < SMALL_BODY);
        if known.fills_window() && !known.has_large_body() || is_small {
            let why = "the request is too large, and its body is small".to_owned();
            return self.turned(FailureClass::Overflow, "evidence-size", Some(why));
        }
        self
    }

    /// A refusal without a body.
    fn bare(self, known: &Known) -> Failure {
        if known.fills_window() {
            let why = "the prompt nearly fills the window".to_owned();
            let failure = self.turned(FailureClass::Overflow, "empty-body", Some(why));
            return Failure { limit: known.window, ..failure };
        }
        self
    }

    /// A request that is refused for a reason that is not understood.
    fn refused(self, known: &Known) -> Failure {
        let is_explained = self.fault == Fault::Block && self.certainty == Certainty::Certain
            || !self.rule.starts_with("status-");
        if is_explained || evidence::is_unrelated(&self.message) {
            return self;
        }
        let is_over =
            known.prompt.zip(known.window).is_some_and(|(prompt, window)| prompt > window);
        if known.is_bare && known.fills_window() {
            return self.bare(known);
        }
        if is_over {
            let why = "the estimate is larger than the window".to_owned();
            let failure = self.turned(FailureClass::Overflow, "estimate", Some(why));
            return Failure { limit: known.window, ..failure };
        }
        if !known.is_bare {
            return fault::suspect(self, known.has_reply);
        }
        if known.has_large_body() {
            return self.turned(FailureClass::TooLarge, "empty-body", Some(large_body(known)));
        }
        let is_long = known.prompt.is_some_and(|prompt| prompt >= LONG_PROMPT);
        if known.has_reply && is_long && known.window.is_none() {
            let why =
                "it says nothing, and a smaller request of this session was accepted".to_owned();
            return self.turned(FailureClass::Overflow, "empty-body", Some(why));
        }
        self
    }

    /// A failure that would be temporary, if it did not repeat with a large body or a full window.
    fn repeated(self, known: &Known) -> Failure {
        let is_unsure = match self.class {
            FailureClass::Unreachable => self.rule == ABORTED,
            FailureClass::Broken => known.is_bare,
            _ => {
                matches!(self.status, Some(408 | 500 | 502 | 520 | 524))
                    && self.retry_after.is_none()
            }
        };
        // 408: the server waited in vain for the rest of the request.
        let has_arrived = self.class != FailureClass::Unreachable && self.status != Some(408);
        let is_unrelated = has_arrived && evidence::is_unrelated(&self.message);
        if !is_unsure || known.failures < ENOUGH || is_unrelated {
            return self;
        }
        if known.fills_window() && has_arrived {
            let why = "it failed twice, and the prompt nearly fills the window".to_owned();
            let failure = self.turned(FailureClass::Overflow, "repeated", Some(why));
            return Failure { limit: known.window, ..failure };
        }
        if known.has_large_body() {
            return self.turned(FailureClass::TooLarge, "repeated", Some(large_body(known)));
        }
        self
    }

    /// Returns the failure with another class, which is likely.
    fn turned(self, class: FailureClass, rule: &'static str, why: Option<String>) -> Failure {
        let (rule, certainty, fault) = (rule.into(), Certainty::Likely, class.fault());
        let why = why.map(String::into_boxed_str);
        Failure { class, rule, certainty, fault, why, retryable: false, ..self }
    }
}

fn large_body(known: &Known) -> String {
    let bytes = known.bytes.unwrap_or(0);
    match known.sizes.accepted {
        Some(accepted) => {
            format!("the body has {bytes} bytes, and at most {accepted} were accepted before")
        }
        None => format!("the body has {bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::refusal::Rows;

    fn classify(status: u16, body: &str, known: Known) -> Failure {
        let failure = Failure::classify(status, &|_| None, body.as_bytes(), 0.0, &Rows::default());
        failure.weigh(&Known { is_bare: body.is_empty(), ..known })
    }

    const FULL: Known = Known {
        prompt: Some(9000),
        window: Some(10_000),
        bytes: Some(36_000),
        sizes: Sizes { accepted: None, limit: None },
        has_reply: true,
        is_bare: false,
        failures: 1,
    };
    const LARGE: Known = Known { prompt: Some(2000), bytes: Some(5_000_000), ..FULL };
    const PLAIN: Known = Known { prompt: Some(2000), ..FULL };

    #[test]
    #[rustfmt::skip]
    fn what_is_known_decides_where_the_answer_says_too_little() {
        let twice = |known: Known| Known { failures: 2, ..known };
        let busy = r#"{"error":{"message":"Internal server error"}}"#;
        let vague = r#"{"error":{"message":"Bad request"}}"#;
        let slow = r#"{"error":{"message":"Timed out reading request body.","code":"user_request_timeout"}}"#;
        let size = r#"{"error":{"message":"The request is too large."}}"#;
        for (status, body, known, class, rule) in [
            (400, "", FULL, FailureClass::Overflow, "empty-body"),
            (413, "", FULL, FailureClass::Overflow, "empty-body"),
            (422, "", FULL, FailureClass::Overflow, "empty-body"),
            (400, "", PLAIN, FailureClass::BadRequest, "status-400"),
            (400, "", LARGE, FailureClass::TooLarge, "empty-body"),
            (413, "", LARGE, FailureClass::TooLarge, "status-413"),
            (400, "", Known { window: None, ..FULL }, FailureClass::Overflow, "empty-body"),
            (400, "", Known { window: None, has_reply: false, ..FULL }, FailureClass::BadRequest, "status-400"),
            (400, vague, Known { prompt: Some(10_001), ..FULL }, FailureClass::Overflow, "estimate"),
            (400, vague, Known { has_reply: false, ..FULL }, FailureClass::BadRequest, "status-400"),
            (500, busy, FULL, FailureClass::Server, "status-500"),
            (500, busy, twice(FULL), FailureClass::Overflow, "repeated"),
            (500, busy, twice(LARGE), FailureClass::TooLarge, "repeated"),
            (500, busy, twice(PLAIN), FailureClass::Server, "status-500"),
            (502, "<html>Bad gateway</html>", twice(LARGE), FailureClass::TooLarge, "repeated"),
            (503, busy, twice(LARGE), FailureClass::Server, "status-503"),
            (408, slow, LARGE, FailureClass::Server, "status-408"),
            (408, slow, twice(LARGE), FailureClass::TooLarge, "repeated"),
            (408, slow, twice(FULL), FailureClass::Server, "status-408"),
            (200, "", twice(FULL), FailureClass::Overflow, "repeated"),
            (200, "", twice(LARGE), FailureClass::TooLarge, "repeated"),
            (200, "", LARGE, FailureClass::Broken, "status-2xx"),
            (500, busy, twice(Known { sizes: Sizes { accepted: Some(6_000_000), limit: None }, ..LARGE }), FailureClass::Server, "status-500"),
            (400, size, FULL, FailureClass::Overflow, "evidence-size"),
            (400, size, LARGE, FailureClass::TooLarge, "evidence-size"),
            (429, "", twice(LARGE), FailureClass::RateLimit, "status-429"),
        ] {
            let failure = classify(status, body, known);
            assert_eq!((failure.class, &*failure.rule), (class, rule), "{status} {body} {known:?}");
            let is_likely = matches!(class, FailureClass::Overflow | FailureClass::TooLarge) && rule != "status-413";
            assert_eq!(failure.certainty == Certainty::Likely, is_likely, "{status} {body}");
            assert_eq!((failure.stated_window, failure.fault), (None, class.fault()), "{status} {body}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn the_reason_and_the_limit_are_stated() {
        let twice = |known: Known| Known { failures: 2, ..known };
        let accepted = |most| Known { sizes: Sizes { accepted: Some(most), limit: None }, ..LARGE };
        let limited = |known| Known { sizes: Sizes { accepted: None, limit: Some(4_000_000) }, ..known };
        let busy = r#"{"error":{"message":"Internal server error"}}"#;
        let vague = r#"{"error":{"message":"Bad request"}}"#;
        let size = r#"{"error":{"message":"The request is too large."}}"#;
        let full = "the prompt nearly fills the window";
        for (status, body, known, limit, limit_bytes, why) in [
            (400, "", FULL, Some(10_000), None, full),
            (413, "", FULL, Some(10_000), None, full),
            (400, "", limited(FULL), Some(10_000), None, full),
            (400, vague, Known { prompt: Some(10_001), ..FULL }, Some(10_000), None, "the estimate is larger than the window"),
            (500, busy, twice(FULL), Some(10_000), None, "it failed twice, and the prompt nearly fills the window"),
            (500, busy, twice(LARGE), None, None, "the body has 5000000 bytes"),
            (500, busy, twice(accepted(2_000_000)), None, None, "the body has 5000000 bytes, and at most 2000000 were accepted before"),
            (400, size, FULL, None, None, "the request is too large, and its body is small"),
            (400, "", Known { window: None, ..FULL }, None, None, "it says nothing, and a smaller request of this session was accepted"),
            (400, vague, PLAIN, None, None, "it names nothing, and an earlier request of this session was accepted"),
            (413, "", limited(LARGE), None, Some(4_000_000), ""),
        ] {
            let failure = classify(status, body, known);
            let found = (failure.limit, failure.limit_bytes, failure.why.as_deref().unwrap_or_default());
            assert_eq!(found, (limit, limit_bytes, why), "{status} {body} {known:?}");
        }
        // A diagnostic has the reason of a guess, and the size of the body if that is the fault.
        assert!(classify(400, "", FULL).to_string().ends_with(&format!("(limit 10000, {full})")));
        assert!(classify(413, "", limited(LARGE)).to_string().ends_with("(bytes sent 5000000, limit in bytes 4000000)"));
    }

    #[test]
    #[rustfmt::skip]
    fn a_size_counts_from_its_bound_on() {
        let vague = r#"{"error":{"message":"Bad request"}}"#;
        let size = r#"{"error":{"message":"The request is too large."}}"#;
        let place = r#"{"error":{"message":"messages.1.content.0: image is invalid"}}"#;
        let param = r#"{"error":{"message":"Not accepted","param":"messages[1].content[0]"}}"#;
        let image = r#"{"error":{"message":"Could not process image"}}"#;
        let media = r#"{"error":{"message":"image input is not supported"}}"#;
        let bytes = |bytes, known| Known { bytes: Some(bytes), ..known };
        let prompt = |prompt| Known { prompt: Some(prompt), ..FULL };
        for (status, body, known, class) in [
            (400, "", prompt(8000), FailureClass::BadRequest),
            (400, "", prompt(8001), FailureClass::Overflow),
            (400, vague, prompt(10_000), FailureClass::BadRequest),
            (400, vague, prompt(10_001), FailureClass::Overflow),
            (400, "", bytes(1_000_000, PLAIN), FailureClass::BadRequest),
            (400, "", bytes(1_000_001, PLAIN), FailureClass::TooLarge),
            (400, size, bytes(89_999, PLAIN), FailureClass::Overflow),
            (400, size, bytes(90_000, PLAIN), FailureClass::TooLarge),
            (400, size, bytes(500_000, FULL), FailureClass::Overflow),
            // The answer explains the refusal: the size is not the cause.
            (413, vague, FULL, FailureClass::TooLarge),
            (400, param, prompt(10_001), FailureClass::BadRequest),
            (400, place, prompt(10_001), FailureClass::BadRequest),
            (500, media, prompt(10_001), FailureClass::BadRequest),
            // A word alone is no explanation.
            (400, image, prompt(10_001), FailureClass::Overflow),
        ] {
            assert_eq!(classify(status, body, known).class, class, "{status} {body} {known:?}");
        }
    }

    #[test]
    fn extra_usage_is_a_matter_of_the_bill_if_the_prompt_is_short() {
        let body = r#"{"error":{"message":"Extra usage is required for long context requests."}}"#;
        for (prompt, class, rule, limit) in [
            (None, FailureClass::Overflow, "T2", Some(200_000)),
            (Some(180_000), FailureClass::Overflow, "T2", Some(200_000)),
            (Some(9000), FailureClass::Billing, "T2-short-prompt", None),
        ] {
            let failure = classify(429, body, Known { prompt, ..FULL });
            assert_eq!((failure.class, &*failure.rule, failure.limit), (class, rule, limit));
            assert_eq!(failure.certainty, Certainty::Certain, "{prompt:?}");
        }
    }

    #[test]
    fn an_upload_that_is_cut_off_twice_is_too_large() {
        let cut = |known| Failure::aborted("no answer: connection reset").weigh(&known);
        assert!(cut(LARGE).retryable);
        let failure = cut(Known { failures: 2, ..LARGE });
        assert_eq!((failure.class, failure.retryable), (FailureClass::TooLarge, false));
        assert_eq!((failure.status, failure.request_bytes), (None, Some(5_000_000)));
        assert!(cut(Known { failures: 2, ..PLAIN }).retryable);
        let refused = Failure::unreachable("connection refused");
        assert!(refused.weigh(&Known { failures: 2, ..LARGE }).retryable);
    }

    #[test]
    fn what_is_new_is_suspect_if_a_refusal_names_nothing() {
        let fault = |text: &str, known| {
            classify(400, &format!(r#"{{"error":{{"message":"{text}"}}}}"#), known).fault
        };
        let first = Known { has_reply: false, ..PLAIN };
        let guess = classify(
            400,
            r#"{"error":{"message":"Request contains an invalid argument."}}"#,
            PLAIN,
        );
        assert_eq!((guess.fault, guess.certainty), (Fault::Block, Certainty::Likely));
        assert_eq!(fault("Request contains an invalid argument.", first), Fault::Other);
        assert_eq!(fault("Unknown model", PLAIN), Fault::Other);
        let teapot = r#"{"error":{"message":"Request contains an invalid argument."}}"#;
        assert_eq!(classify(418, teapot, PLAIN).fault, Fault::Other);
        let image = classify(400, r#"{"error":{"message":"Could not process image"}}"#, PLAIN);
        assert_eq!((image.fault, image.why.as_deref()), (Fault::Block, Some("it says 'image'")));
        assert_eq!(fault("temperature is out of range", PLAIN), Fault::Other);
        let vision = r#"{"error":{"message":"No endpoints found that support image input"}}"#;
        assert_eq!(classify(404, vision, PLAIN).fault, Fault::Block);
        assert_eq!(classify(404, vision, PLAIN).certainty, Certainty::Likely);
        assert_eq!(classify(404, r#"{"error":"no such model"}"#, PLAIN).fault, Fault::Other);
    }

    #[test]
    fn numbers_that_agree_with_the_estimate_are_certain() {
        let text = r#"{"error":"Token limit exceeded: 12000 > 8000"}"#;
        let certain = classify(400, text, FULL);
        assert_eq!((certain.certainty, certain.stated_window), (Certainty::Certain, Some(8000)));
        let other = classify(400, text, Known { prompt: Some(100), ..FULL });
        assert_eq!((other.certainty, other.stated_window), (Certainty::Likely, None));
        assert_eq!((other.limit, other.actual), (Some(8000), Some(12_000)));
        let larger = classify(400, text, Known { prompt: Some(30_001), ..FULL });
        assert_eq!(larger.certainty, Certainty::Likely);
        // A limit of the account is no window, whatever its certainty.
        let rate = r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 36278."}}"#;
        let rate = classify(429, rate, Known { prompt: Some(36_000), ..FULL });
        assert_eq!((rate.certainty, rate.stated_window), (Certainty::Certain, None));
    }
}
