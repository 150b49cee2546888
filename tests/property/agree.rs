//! The law that our JSON scanner and serde_json agree on any input. The fuzz target `scan` also uses this law.

use clawutils::json::{self, Object};
use serde_json::value::RawValue;

/// The largest number of values to compare. Without a limit, deeply nested text would be read again at every level.
const MAX_TEXTS: usize = 100;

/// Returns true if `text` is an object. Also compares the two parsers on the objects and arrays inside it, up to
/// [`MAX_TEXTS`].
///
/// # Errors
/// Reports where the parsers disagree.
pub fn on(text: &str) -> Result<bool, String> {
    among_others(text)?;
    let mut texts = vec![text];
    let mut is_object = None;
    for _ in 0..MAX_TEXTS {
        let Some(text) = texts.pop() else { break };
        let inner = members(text)?;
        is_object.get_or_insert(inner.is_some());
        texts.extend(inner.into_iter().chain(elements(text)?).flatten());
    }
    Ok(is_object.unwrap_or_default())
}

/// Compares the two parsers on the first object that the scanner finds if the text is followed by a line feed and by
/// itself again. Also checks that this object has no line feed.
fn among_others(text: &str) -> Result<(), String> {
    let (mut spans, many) = (Vec::new(), [text, "\n", text].concat());
    let Some((end, _)) = Object::scan(&many, &mut spans) else { return Ok(()) };
    let (object, scanned) =
        (Object::parse_slowly(&many[..end]), Object::scanned(&many[..end], &spans, true));
    match object {
        Ok(object) if !many[..end].contains('\n') && object.members().eq(scanned.members()) => {
            Ok(())
        }
        object => differs("the first object", &many, &end, &object),
    }
}

/// Returns the values in an object that are objects or arrays; `None` if the text is not an object. Fails if the
/// parsers disagree.
fn members(text: &str) -> Result<Option<Vec<&str>>, String> {
    let (fast, slow) = match (Object::parse(text), Object::parse_slowly(text)) {
        (Ok(fast), Ok(slow)) => (fast, slow),
        (Err(fast), Err(slow)) if fast.to_string() == slow.to_string() => return Ok(None),
        (fast, slow) => return differs("an object", text, &fast.err(), &slow.err()),
    };
    let parts = |object: &Object<'_>| -> Vec<_> {
        let members = object.members();
        let part = |member: json::Member<'_>| {
            (member.name().into_owned(), place(text, member.raw_name), place(text, member.value))
        };
        members.map(part).collect()
    };
    let (of_fast, of_slow) = (parts(&fast), parts(&slow));
    if of_fast != of_slow {
        return differs("members", text, &of_fast, &of_slow);
    }
    Ok(Some(nested(fast.members().map(|member| member.value))))
}

/// Returns the elements of an array that are objects or arrays; `None` if the text is not an array. Fails if the
/// parsers disagree.
fn elements(text: &str) -> Result<Option<Vec<&str>>, String> {
    let fast = json::elements(text);
    let slow: Option<Vec<&RawValue>> = serde_json::from_str(text).ok();
    let of_fast: Option<Vec<_>> =
        fast.as_ref().map(|list| list.iter().map(|element| place(text, element)).collect());
    let of_slow: Option<Vec<_>> =
        slow.map(|list| list.into_iter().map(|element| place(text, element.get())).collect());
    if of_fast != of_slow {
        return differs("elements", text, &of_fast, &of_slow);
    }
    Ok(fast.map(|list| nested(list.into_iter())))
}

fn differs<T>(
    what: &str,
    text: &str,
    fast: &impl std::fmt::Debug,
    slow: &impl std::fmt::Debug,
) -> Result<T, String> {
    Err(format!("{what} in {text:?}: the scanner reads {fast:?}, serde_json {slow:?}"))
}

/// Returns the offset and the length of `part`, which is a slice of `text`.
fn place(text: &str, part: &str) -> (usize, usize) {
    ((part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize), part.len())
}

fn nested<'t>(values: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    values.filter(|value| value.starts_with(['{', '['])).collect()
}
