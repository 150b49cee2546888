//! What providers counted: the usage that is recorded with their answers.

use crate::json::Object;
use crate::messages::Message;

/// The newest count of a provider's: how many messages it covers, and the tokens of the prompt and
/// the answer that is now the last of them.
pub(super) fn measured(messages: &[Message<'_>]) -> Option<(usize, u64)> {
    let counted = |message: &Message<'_>| {
        let usage = message.meta.as_ref()?.usage.as_ref()?;
        let usage = Object::parse(usage).ok()?;
        counted_by_provider(&usage)
    };
    let found = messages.iter().enumerate().rev();
    found.filter_map(|(index, message)| Some((index + 1, counted(message)?))).next()
}

/// The tokens of the prompt and of the answer that a provider counted, whose names for them differ:
///
/// - chat completions: `prompt_tokens`, what a cache held included, and `completion_tokens`. They come
///   first: some gateways add Anthropic's names for what the cache held, and not the rest;
/// - Anthropic: `input_tokens`, only what no cache held, what the caches held, and `output_tokens`;
/// - Ollama: `prompt_eval_count` and `eval_count`.
///
/// `None` when no prompt was counted: a count that is missing or 0 says nothing.
fn counted_by_provider(usage: &Object<'_>) -> Option<u64> {
    let names: [(&[&str], &str); 3] = [
        (&["prompt_tokens"], "completion_tokens"),
        (
            &["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"],
            "output_tokens",
        ),
        (&["prompt_eval_count"], "eval_count"),
    ];
    let number = |name: &str| usage.number(name).unwrap_or(0);
    names.into_iter().find_map(|(prompt, answer)| {
        let prompt = prompt.iter().fold(0_u64, |sum, name| sum.saturating_add(number(name)));
        (prompt > 0).then(|| prompt.saturating_add(number(answer)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_s_names_are_understood() {
        for (usage, tokens) in [
            (
                r#"{"prompt_tokens":34,"completion_tokens":32,"total_tokens":66,"prompt_tokens_details":{"cached_tokens":24}}"#,
                Some(66),
            ),
            (
                r#"{"prompt_tokens":34,"completion_tokens":2,"cache_read_input_tokens":24}"#,
                Some(36),
            ),
            (r#"{"cache_read_input_tokens":24,"input_tokens":10,"output_tokens":64}"#, Some(98)),
            (r#"{"prompt_eval_count":26,"eval_count":298,"total_duration":5}"#, Some(324)),
            (r#"{"prompt_tokens":34}"#, Some(34)),
            (r#"{"eval_count":298}"#, None),
            (r#"{"prompt_tokens":0,"completion_tokens":3}"#, None),
            (r#"{"prompt_tokens":"34"}"#, None),
            (r#"{"input_tokens":18446744073709551615,"output_tokens":1}"#, Some(u64::MAX)),
            ("{}", None),
        ] {
            assert_eq!(counted_by_provider(&Object::parse(usage).unwrap()), tokens, "{usage}");
        }
    }
}
