//! JSON Schemas of tool inputs, completed where OpenAI refuses what other providers accept.
//!
//! OpenAI answers 400 `Invalid schema for function 'x': In context=(), object schema missing properties`, the same for a
//! nested object, `array schema missing items`, and `schema must be a JSON Schema of 'type: "object"'` for an empty
//! schema (chat completions and Responses, seen in reports from 2023 to 2026).

use crate::json::write::{self, Members};
use crate::json::{Object, elements};
use std::borrow::Cow;

/// The deepest schema that is completed. Deeper ones are sent as they are.
const DEPTH: usize = 32;
/// Keywords whose value is a schema.
const SCHEMAS: [&str; 4] = ["items", "additionalProperties", "not", "contains"];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is an object with a schema in each member.
const MAPS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Returns the schema of a tool's input as OpenAI accepts it. A schema that needs no change is returned as it is.
pub(super) fn parameters(raw: &str) -> Cow<'_, str> {
    let whole = completed(raw, DEPTH);
    match Object::parse(&whole) {
        Ok(schema) if schema.members().next().is_none() => {
            Cow::Owned(Members::of_type("object").raw("properties", "{}").into_json())
        }
        _ => whole,
    }
}

/// Adds empty `properties` to objects and empty `items` to arrays that lack them.
fn completed(raw: &str, depth: usize) -> Cow<'_, str> {
    let mut whole = Cow::Borrowed(raw);
    if depth == 0 {
        return whole;
    }
    let schema = |value: &str| completed(value, depth - 1).into_owned();
    for name in SCHEMAS {
        change(&mut whole, name, |value| value.starts_with('{').then(|| schema(value)));
    }
    for name in LISTS {
        change(&mut whole, name, |value| {
            let old = elements(value)?;
            let new: Vec<String> = old.iter().copied().map(schema).collect();
            (new != old).then(|| write::list(new))
        });
    }
    for name in MAPS {
        change(&mut whole, name, |value| {
            let map = Object::parse(value).ok()?;
            let mut changed = value.to_owned();
            for member in map.members() {
                let new = schema(member.value);
                if new != member.value {
                    changed = Object::parse(&changed).ok()?.with(&member.name(), &new);
                }
            }
            Some(changed)
        });
    }
    let lacks = |kind: &str, member: &str| {
        let schema = Object::parse(&whole).ok()?;
        let lacks = schema.string("type").is_some_and(|own| own == kind);
        (lacks && schema.get(member).is_none()).then(|| schema.with(member, "{}"))
    };
    let new = lacks("object", "properties").or_else(|| lacks("array", "items"));
    new.map_or(whole, Cow::Owned)
}

/// Replaces the value of a member by what `new` returns for it, if that differs.
fn change(whole: &mut Cow<'_, str>, name: &str, new: impl FnOnce(&str) -> Option<String>) {
    let changed = Object::parse(whole).ok().and_then(|schema| {
        let value = schema.get(name)?;
        let new = new(value)?;
        (new != value).then(|| schema.with(name, &new))
    });
    if let Some(changed) = changed {
        *whole = Cow::Owned(changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_get_properties_and_arrays_items() {
        for (given, sent) in [
            ("{}", r#"{"type":"object","properties":{}}"#),
            (r#"{"type": "object"}"#, r#"{"type": "object","properties":{}}"#),
            (
                r#"{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"array"}}}"#,
                r#"{"type":"object","properties":{"a":{"type":"object","properties":{}},"b":{"type":"array","items":{}}}}"#,
            ),
            (
                r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"object"},{"type":"null"}]}}}"#,
                r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"object","properties":{}},{"type":"null"}]}}}"#,
            ),
            (
                r#"{"type":"object","properties":{},"$defs":{"x":{"type":"array","items":{"type":"object"}}}}"#,
                r#"{"type":"object","properties":{},"$defs":{"x":{"type":"array","items":{"type":"object","properties":{}}}}}"#,
            ),
        ] {
            assert_eq!(parameters(given), sent);
            assert_eq!(parameters(sent), sent);
        }
    }

    #[test]
    fn what_needs_no_change_keeps_its_bytes() {
        let deep = format!("{}1{}", r#"{"items":"#.repeat(200), "}".repeat(200));
        for same in
            [r#"{"type":"object", "properties":{"a":{"anyOf":[ {} , 1 ]}} }"#, "7", "true", &deep]
        {
            assert_eq!(parameters(same), same);
        }
    }
}
