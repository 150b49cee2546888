//! Sampling parameters in a request body: how the model chooses among likely tokens.

use crate::json::Object;

/// The members of a body that may contain the parameters: Gemini's and Ollama's. All other APIs have them in the body itself.
const PLACES: [&str; 2] = ["generationConfig", "options"];

/// Returns the values of a parameter in a body, or in additional members of one.
pub fn values<'b>(body: &'b str, name: &str) -> impl Iterator<Item = &'b str> {
    let object = Object::parse(body).ok();
    let own = object.as_ref().and_then(|body| body.get(name));
    let inside = PLACES.into_iter().filter_map(move |place| {
        let inner = Object::parse(object.as_ref()?.get(place)?).ok()?;
        inner.get(name)
    });
    let inside: Vec<&str> = inside.collect();
    own.into_iter().chain(inside)
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
}
