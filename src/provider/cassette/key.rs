//! The key of a request, and the canonical form of JSON from which it is computed.

use crate::json::quote;
use crate::json::write::{Members, list};
use crate::record::digest;
use serde_json::{Number, Value};

/// Returns the key of a request: the first 16 hex digits of the SHA-256 of `POST`, the path and the canonical
/// body, separated by line feeds. `path` does not include the host.
///
/// The order of members, white space, escapes and the notation of numbers do not matter. A body that is not JSON, is
/// nested more than 127 levels deep, or contains a lone surrogate is hashed byte for byte.
#[must_use]
pub fn key(path: &str, body: &str) -> String {
    digest(&format!("POST\n{path}\n{}", canonical_text(body)))
}

/// Returns the canonical text of a JSON value: equal values have the same text, whatever their notation. Input that is
/// not JSON, is nested more than 127 levels deep, or contains a lone surrogate is returned unchanged.
#[must_use]
pub fn canonical_text(json: &str) -> String {
    parse(json).map_or_else(|| json.to_owned(), |value| canonical(&value))
}

/// Parses a body. serde_json rejects values nested more than 127 levels deep, so callers may recurse through the
/// result.
pub(super) fn parse(body: &str) -> Option<Value> {
    serde_json::from_str(body).ok()
}

/// Returns the canonical text of a value.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quote(text),
        Value::Array(elements) => list(elements.iter().map(canonical)),
        Value::Object(members) => {
            // The order of serde_json's members depends on features that other crates enable.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            let add =
                |it: Members, (name, value): (&String, &Value)| it.named(name, &canonical(value));
            members.into_iter().fold(Members::new(), add).into_json()
        }
    }
}

/// Returns the text of a number, which depends only on its value: 1, 1.0 and 1e0 give the same text.
fn number_text(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        // Adding 0.0 turns -0 into 0.
        Some(value) if value.fract() == 0.0 => format!("{:.0}", value + 0.0),
        Some(value) => value.to_string(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_of_a_request_does_not_matter() {
        let plain = key("/p", r#"{"a":[1,2.5,"é/"],"b":{"c":null,"d":true}}"#);
        let other = r#" { "b" : {"d":true, "c":null}, "a":[1e0, 25e-1, "\u00e9\/"] } "#;
        assert_eq!(key("/p", other), plain);
        assert_eq!(plain.len(), 16);
    }

    #[test]
    fn the_content_of_a_request_matters() {
        let plain = key("/p", r#"{"a":[1,2]}"#);
        for other in [
            r#"{"a":[2,1]}"#,
            r#"{"a":[1,"2"]}"#,
            r#"{"a":[1]}"#,
            r#"{"a":[1,2],"b":null}"#,
            r#"{"A":[1,2]}"#,
        ] {
            assert_ne!(key("/p", other), plain, "{other}");
        }
        assert_ne!(key("/q", r#"{"a":[1,2]}"#), plain);
    }

    #[test]
    fn the_key_is_the_documented_hash() {
        assert_eq!(key("/p", "{ }"), digest("POST\n/p\n{}"));
        assert_eq!(key("/p", "no json"), digest("POST\n/p\nno json"));
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let same = |one: &str, other: &str| key("", one) == key("", other);
        assert!(same("0", "-0.0"));
        assert!(same("1000000000000000000", "1e18"));
        assert!(same("9223372036854775808", "9223372036854775808.0"));
        assert!(same("100000000000000000000", "1e20"));
        assert!(!same("9007199254740992", "9007199254740993"));
        assert!(!same("0.1", "0.10000000000000002"));
        assert!(!same("1", "-1"));
    }

    #[test]
    fn deeply_nested_bodies_have_keys() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(key("/p", &deep), key("/p", &deep));
        assert_ne!(key("/p", &deep), key("/p", &format!("{deep} ")));
    }
}
