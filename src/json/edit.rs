//! Sets or removes one member in the text of a JSON object, and keeps the layout of the rest.

use super::{Member, Object, offset_in, quote};
use std::ops::Range;

/// Returns `object` with the member at `path` set to `value`. Objects on the path that are missing or null are created.
/// `depth` is the number of objects around `object`, for indentation.
///
/// # Errors
/// Fails if `object`, or a value on the path other than null, is not an object.
pub fn with(object: &str, path: &[&str], value: &str, depth: usize) -> Result<String, String> {
    let [name, rest @ ..] = path else { return Ok(value.to_owned()) };
    let members = members(object)?;
    let old = members.iter().rev().find(|member| member.name() == *name);
    let inner = old.map(|member| member.value).filter(|value| *value != "null");
    let new = match rest {
        [] => value.to_owned(),
        _ => with(inner.unwrap_or("{}"), rest, value, depth + 1)?,
    };
    let name = quote(name);
    Ok(match (old, members.last()) {
        (Some(old), _) => replaced(object, place(object, old.value), &new),
        (None, Some(last)) => {
            // Use the same spacing as the last member.
            let (key, last) = (place(object, last.raw_name), place(object, last.value));
            let before = &object[..key.start];
            let gap = &before[before.trim_end().len()..];
            let colon = &object[key.end..last.start];
            replaced(object, last.end..last.end, &format!(",{gap}{name}{colon}{new}"))
        }
        (None, None) => {
            let (pad, end) = ("  ".repeat(depth + 1), "  ".repeat(depth));
            replaced(object, inside(object), &format!("\n{pad}{name}: {new}\n{end}"))
        }
    })
}

/// Returns `object` without the member at `path`.
///
/// # Errors
/// Fails as [`with`] does.
pub fn without(object: &str, path: &[&str]) -> Result<String, String> {
    let [name, rest @ ..] = path else { return Ok(object.to_owned()) };
    let members = members(object)?;
    let Some(at) = members.iter().rposition(|member| member.name() == *name) else {
        return Ok(object.to_owned());
    };
    let value = place(object, members[at].value);
    if !rest.is_empty() {
        return match &object[value.clone()] {
            "null" => Ok(object.to_owned()),
            inner => Ok(replaced(object, value, &without(inner, rest)?)),
        };
    }
    let begin = place(object, members[at].raw_name).start;
    let span = match (at.checked_sub(1).map(|before| &members[before]), members.get(at + 1)) {
        (_, Some(next)) => begin..place(object, next.raw_name).start,
        (Some(before), None) => place(object, before.value).end..value.end,
        (None, None) => inside(object),
    };
    // The object may have a second member with this name.
    without(&replaced(object, span, ""), path)
}

fn members(object: &str) -> Result<Vec<Member<'_>>, String> {
    match Object::parse(object) {
        Ok(parsed) => Ok(parsed.members().collect()),
        Err(error) => Err(format!("{error}; correct it")),
    }
}

/// Returns the range of `part`, which is a slice of `whole`.
fn place(whole: &str, part: &str) -> Range<usize> {
    let start = offset_in(whole, part);
    start..start + part.len()
}

/// Returns the range between the braces.
fn inside(object: &str) -> Range<usize> {
    let (start, end) = (object.find('{'), object.rfind('}'));
    start.map_or(0, |at| at + 1)..end.unwrap_or(object.len())
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_member_keeps_the_rest() {
        for (before, path, after) in [
            ("{}\n", &["a"][..], "{\n  \"a\": 1\n}\n"),
            ("{\n\t\"b\" : 2\n}", &["a"], "{\n\t\"b\" : 2,\n\t\"a\" : 1\n}"),
            (r#"{"b":2}"#, &["a"], r#"{"b":2,"a":1}"#),
            (r#"{"a": [2, 3], "b": {}}"#, &["a"], r#"{"a": 1, "b": {}}"#),
            (r#"{"a":2,"a":3}"#, &["a"], r#"{"a":2,"a":1}"#),
            ("{}", &["p", "a"], "{\n  \"p\": {\n    \"a\": 1\n  }\n}"),
            (r#"{"p": null}"#, &["p", "a"], "{\"p\": {\n    \"a\": 1\n  }}"),
            (r#"{"p": {"b": 2}, "c": 3}"#, &["p", "a"], r#"{"p": {"b": 2,"a": 1}, "c": 3}"#),
        ] {
            assert_eq!(with(before, path, "1", 0).unwrap(), after);
        }
        assert!(with("[]", &["a"], "1", 0).is_err());
        assert!(with(r#"{"p": 1}"#, &["p", "a"], "1", 0).is_err());
    }

    #[test]
    fn removing_a_member_keeps_the_rest() {
        for (before, path, after) in [
            ("{}", &["a"][..], "{}"),
            ("{\n  \"a\": 1\n}\n", &["a"], "{}\n"),
            ("{\n  \"a\": 1,\n  \"b\": 2\n}", &["a"], "{\n  \"b\": 2\n}"),
            ("{\n  \"a\": 1,\n  \"b\": 2\n}", &["b"], "{\n  \"a\": 1\n}"),
            (r#"{"a":1,"b":2,"a":3}"#, &["a"], r#"{"b":2}"#),
            (r#"{"p":{"a":1,"b":2}}"#, &["p", "a"], r#"{"p":{"b":2}}"#),
            (r#"{"p":null}"#, &["p", "a"], r#"{"p":null}"#),
            (r#"{"b":2}"#, &["p", "a"], r#"{"b":2}"#),
        ] {
            assert_eq!(without(before, path).unwrap(), after);
        }
    }
}
