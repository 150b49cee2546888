//! Finds where a provider's own words begin in an error message.
//!
//! Gateways and SDKs add a prefix to a provider's message, such as the name of an exception or a status:
//! `litellm.BadRequestError: OpenAIException - This model's ...`. What follows a known prefix is the provider's
//! message. What follows any other text may quote someone else, such as a tool or the user, so it is not treated as the
//! provider's words.

use regex::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// The maximum number of consecutive prefixes.
const MAX_PREFIXES: usize = 8;

/// The known prefixes, each with the punctuation that ends it.
const PREFIX: &str = r"(?x)^\s*(?:
    # The name of an exception or a type: 'litellm.BadRequestError:', 'AnthropicException -', 'Error:'
    (?:(?:api|upstream|server|internal\ server|provider|client|context\ window)\ )?
        (?:[a-z_][a-z0-9_]*\.)*[a-z0-9_]*(?:error|exception)
        (?:\ [a-z0-9_]*(?:error|exception))*(?:\ \([a-z0-9_\ ]+\))?(?::|\ -)
    |internalerror(?:\.[a-z]+)+:
    # A status or a code: '400', 'HTTP 400:', '<400>', 'Error code: 400 -', '400 Bad Request:'
    |(?:(?:http|status|status\ code:?|error|error\ code:|api\ error:|request\ failed\ with\ status\ code)\ )?
        [<\[(]?[0-9]{3,6}[>\])]?
        (?:\ (?:bad\ request|payload\ too\ large|content\ too\ large|unprocessable\ entity|internal\ server\ error))?
        (?::|,|\ -)?
    # go-openai: 'error, status code: 400, status: 400 Bad Request, message: ...'
    |error,\ status\ code:\ [0-9]{3},(?:\ status:\ [a-z0-9\ ]{0,40},)?\ message:
    |bad\ request(?:\ error)?:
    # A status of gRPC, which Google's servers use
    |(?:invalid_argument|failed_precondition|out_of_range|resource_exhausted|internal|unknown|unavailable):
    # An SDK or a gateway that names the source of the message
    |an\ error\ occurred\ \([a-z]+\)\ when\ calling\ the\ [a-z]+\ operation(?:\ \([a-z0-9:\ ]+\))?:
    |the\ model\ returned\ the\ following\ errors:
    |(?:upstream\ |provider\ )?error\ from\ [a-z0-9_./()\ -]+:
    |provider\ returned\ error:
    |(?:ai|midstreamfallback):
)\s+";

/// Returns the suffixes of `text` that may be a provider's own words: all of it, and the rest after each known
/// prefix.
pub(super) fn all(text: &str) -> Vec<&str> {
    let mut openings = vec![text.trim_start()];
    while openings.len() <= MAX_PREFIXES
        && let Some(rest) = openings.last().and_then(|text| after_prefix(text))
    {
        openings.push(rest);
    }
    openings
}

/// Returns what a message says about the whole list of messages, as in `messages: ...` or `Invalid 'messages': ...`. The
/// numbers of the second form count items or characters, so it is returned with false.
pub(super) fn after_list<'t>(text: &'t str) -> Option<(&'t str, bool)> {
    let text = all(text).pop()?;
    let found = |names: [&str; 3]| names.into_iter().find_map(|name| text.strip_prefix(name));
    let plain = found(["messages: ", "input: ", "contents: "]).map(|rest| (rest, true));
    let invalid = || found(["Invalid 'messages': ", "Invalid 'input': ", "Invalid 'contents': "]);
    let without_type = |rest: &'t str| {
        ["array ", "string "].into_iter().find_map(|kind| rest.strip_prefix(kind)).unwrap_or(rest)
    };
    plain.or_else(|| invalid().map(|rest| (without_type(rest), false)))
}

fn after_prefix(text: &str) -> Option<&str> {
    static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
    let build = || RegexBuilder::new(PREFIX).case_insensitive(true).build().ok();
    let found = REGEX.get_or_init(build).as_ref()?.find(text)?;
    text.get(found.end()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_gateways_are_skipped() {
        for front in [
            "",
            "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - ",
            "litellm.BadRequestError: VertexAIException BadRequestError - ",
            "litellm.BadRequestError: BedrockException: Context Window Error - ",
            "Error code: 400 - ",
            "400 ",
            "HTTP 400: ",
            "API Error: 400 ",
            "400 Bad Request: ",
            "<400> InternalError.Algo.InvalidParameter: ",
            "5021: AiError: AiError: ",
            "An error occurred (ValidationException) when calling the InvokeModel operation: ",
            "ValidationException: The model returned the following errors: ",
            "Upstream error from Some Cloud: ",
            "invalid_request_error: ",
            "INVALID_ARGUMENT: ",
            "error, status code: 400, message: ",
            "error, status code: 400, status: 400 Bad Request, message: ",
            "AiError: Ai: ",
            "litellm.MidStreamFallbackError: litellm.ContextWindowExceededError: VllmException - ",
        ] {
            assert_eq!(all(&format!("{front}Too long.")).last(), Some(&"Too long."), "{front}");
        }
    }

    #[test]
    fn possible_quotations_are_not_skipped() {
        for text in [
            "error parsing tool call: raw='Too long.'",
            "Invalid content: Too long.",
            "The tool failed. Too long.",
            "'Too long.' is not a role",
            "content: Too long.",
            "Parse error: Too long.",
        ] {
            assert_eq!(all(text), [text]);
        }
        assert!(all(&"Error: ".repeat(100)).len() < 20);
    }
}
