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
    match input {
        None | Some("null" | "\"\"") => Members::new().into_json(),
        Some(input) if input.starts_with('{') => input.to_owned(),
        Some(input) => {
            let text = json::string(input);
            let inner = text.as_deref().map(str::trim).and_then(|text| Object::parse(text).ok());
            match inner {
                Some(inner) => json::escape_line_breaks(inner.text()).into_owned(),
                None => Members::new().raw(INPUT, input).into_json(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_input_becomes_an_object() {
        for (input, expected) in [
            (None, "{}"),
            (Some("null"), "{}"),
            (Some(r#""""#), "{}"),
            (Some(r#"{"a":1}"#), r#"{"a":1}"#),
            (Some(r#"" {\"a\":\"\\u00e9\"}\n""#), r#"{"a":"\u00e9"}"#),
            (Some(r#""{\"a\":""#), r#"{"input":"{\"a\":"}"#),
            (Some(r#""ls -l""#), r#"{"input":"ls -l"}"#),
            (Some("[1,2]"), r#"{"input":[1,2]}"#),
            (Some("5"), r#"{"input":5}"#),
        ] {
            assert_eq!(object(input), expected);
            assert!(fits(Some(expected)));
        }
    }
}
