//! Sampling parameters in a request body: how the model chooses among likely tokens.

use crate::json::{Object, edit};

/// The members of a body that may contain the parameters: Gemini's and Ollama's. All other APIs have them in the body itself.
const PLACES: [&str; 2] = ["generationConfig", "options"];

/// The names of each parameter. The first is that of most APIs; Gemini writes them with capitals. They are the parameters of
/// anthropic 2.14.0 (`types/message_create_params.py`), openai 3.57.0 (`types/chat/completion_create_params.py`), google-genai
/// 3.6.1 (`GenerationConfig` in `types.py`), and of the servers of llama.cpp, vLLM and Ollama (their documentation, November 2026).
pub const PARAMETERS: [&[&str]; 10] = [
    &["temperature"],
    &["top_p", "topP", "top p"],
    &["top_k", "topK", "top k"],
    &["min_p"],
    &["typical_p"],
    &["presence_penalty", "presencePenalty"],
    &["frequency_penalty", "frequencyPenalty"],
    &["repetition_penalty", "repeat_penalty"],
    &["logit_bias"],
    &["seed"],
];

/// Returns the values of a parameter in a body, or in additional members of one.
pub fn values<'b>(body: &'b str, name: &str) -> impl Iterator<Item = &'b str> {
    let object = Object::parse(body).ok();
    let own = object.as_ref().and_then(|body| body.get(name));
    let inside = PLACES.into_iter().filter_map(|place| {
        let inner = Object::parse(object.as_ref()?.get(place)?).ok()?;
        inner.get(name)
    });
    let inside: Vec<&str> = inside.collect();
    own.into_iter().chain(inside)
}

/// Returns a body without a parameter.
#[must_use]
pub fn without(body: &str, names: &[&str]) -> String {
    let paths = |name| [vec![name]].into_iter().chain(PLACES.map(|place| vec![place, name]));
    let paths = names.iter().flat_map(|name| paths(*name));
    // A member that is not an object has no parameters.
    paths.fold(body.to_owned(), |body, path| edit::without(&body, &path).unwrap_or(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_in_the_body_or_in_a_member_of_it() {
        for (body, expected) in [
            (r#"{"temperature":1,"top_p":2}"#, &["1"][..]),
            (r#"{"generationConfig":{"temperature":0.5}}"#, &["0.5"]),
            (r#"{"temperature":1,"options":{"temperature":2}}"#, &["1", "2"]),
            (r#"{"options":[],"messages":[{"temperature":3}]}"#, &[]),
            ("", &[]),
        ] {
            assert_eq!(values(body, "temperature").collect::<Vec<_>>(), expected, "{body}");
        }
    }

    #[test]
    fn a_parameter_is_removed_wherever_it_is() {
        let names = PARAMETERS[1];
        for (before, after) in [
            (r#"{"a":1,"top_p":2,"b":3}"#, r#"{"a":1,"b":3}"#),
            (r#"{"generationConfig":{"topP":2,"topK":1}}"#, r#"{"generationConfig":{"topK":1}}"#),
            (r#"{"options":{"top_p":2}}"#, r#"{"options":{}}"#),
            (r#"{"options":"top_p"}"#, r#"{"options":"top_p"}"#),
        ] {
            assert_eq!(without(before, names), after);
        }
    }
}
