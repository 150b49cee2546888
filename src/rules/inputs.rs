//! The input of a tool call, which must be a JSON object. Models write strings that contain the object, and programs store
//! nothing for a call without arguments.

use crate::json::write::Members;
use crate::json::{self, Object};

/// The member that holds an input that is no object.
pub const INPUT: &str = "input";

/// Returns true if the input can be sent as it is.
#[must_use]
pub fn fits(input: Option<&str>) -> bool {
    input.is_some_and(|input| input.starts_with('{'))
}

/// Returns the object to send for an input that is none: the object that a string contains, `{}` for nothing, or else an
/// object with the value as its only member.
#[must_use]
pub fn object(input: Option<&str>) -> String {
    corrected(input).0
}

/// Returns the object as [`object`] does, and where it comes from, as a clause for a diagnostic.
#[must_use]
pub fn corrected(input: Option<&str>) -> (String, &'static str) {
    match input {
        None | Some("null" | "\"\"") => (Members::new().into_json(), "it is {} now"),
        Some(input) if input.starts_with('{') => (input.to_owned(), "it is kept"),
        Some(input) => {
            let text = json::string(input);
            let inner = text.as_deref().map(str::trim).and_then(|text| Object::parse(text).ok());
            match inner {
                Some(inner) => {
                    let inner = json::escape_line_breaks(inner.text()).into_owned();
                    (inner, "it is the object in its string now")
                }
                None => {
                    let outer = Members::new().raw(INPUT, input).into_json();
                    (outer, "it is the member 'input' of one now")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_input_becomes_an_object() {
        let [empty, inner, member] = [
            "it is {} now",
            "it is the object in its string now",
            "it is the member 'input' of one now",
        ];
        for (input, expected, how) in [
            (None, "{}", empty),
            (Some("null"), "{}", empty),
            (Some(r#""""#), "{}", empty),
            (Some(r#"{"a":1}"#), r#"{"a":1}"#, "it is kept"),
            (Some(r#"" {\"a\":\"\\u00e9\"}\n""#), r#"{"a":"\u00e9"}"#, inner),
            (Some(r#""{\"a\":""#), r#"{"input":"{\"a\":"}"#, member),
            (Some(r#""ls -l""#), r#"{"input":"ls -l"}"#, member),
            (Some("[1,2]"), r#"{"input":[1,2]}"#, member),
            (Some("5"), r#"{"input":5}"#, member),
        ] {
            assert_eq!(corrected(input), (expected.to_owned(), how));
            assert_eq!(object(input), expected);
            assert!(fits(Some(expected)));
        }
    }
}
