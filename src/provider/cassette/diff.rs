//! Compares two requests: finds the number of differences, and the first difference.

use super::key::{canonical, parse};
use crate::json::{Object, elements};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The maximum number of characters shown of a value.
const SHOWN: usize = 40;
/// The number of characters shown before the first difference.
const BEFORE: usize = 10;

/// The differences between a request and a recorded one.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// The number of values (strings, numbers, ...) that differ or occur in only one request.
    pub(super) count: usize,
    /// The first difference, in the order of the request that was sent.
    pub(super) first: Option<Difference>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The path of the value, such as `.messages[2].content`. `.` is the whole body.
    place: String,
    /// The recorded value, shortened, or `None` if there is none.
    recorded: Option<String>,
    /// The value that was sent, shortened, or `None` if there is none.
    sent: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let (recorded, sent) = (shown(&self.recorded), shown(&self.sent));
        write!(f, "{}: recorded {recorded}, sent {sent}", self.place)
    }
}

/// Compares a recorded body with the one that is sent. If either is not JSON, they are compared as plain text.
pub(super) fn compare(recorded: &str, sent: &str) -> Differences {
    let mut walk = DiffWalk::default();
    match (parse(recorded), parse(sent)) {
        (Some(recorded), Some(_)) => walk.value(&recorded, sent),
        _ if recorded == sent => {}
        _ => {
            let (recorded, sent) = (Value::from(recorded), Value::from(sent));
            walk.differ(Some(&recorded), Some(&sent));
        }
    }
    walk.found
}

/// Walks two values in parallel. The value that is sent stays text, because parsing would lose the order of its
/// members. Recursion is safe: serde_json has already limited the depth.
#[derive(Default)]
struct DiffWalk {
    place: String,
    found: Differences,
}

impl DiffWalk {
    fn value(&mut self, recorded: &Value, sent: &str) {
        match recorded {
            Value::Object(members) => {
                if let Ok(object) = Object::parse(sent) {
                    return self.members(members, &object);
                }
            }
            Value::Array(recorded) => {
                if let Some(sent) = elements(sent) {
                    return self.elements(recorded, &sent);
                }
            }
            _ => {}
        }
        let sent = parse(sent).unwrap_or_default();
        if canonical(recorded) != canonical(&sent) {
            self.differ(Some(recorded), Some(&sent));
        }
    }

    fn members(&mut self, recorded: &Map<String, Value>, sent: &Object<'_>) {
        let mut seen = BTreeSet::new();
        for member in sent.members() {
            let name = member.name();
            // Of duplicate members, the last one counts.
            let value = sent.get(&name).unwrap_or(member.value);
            if seen.contains(name.as_ref()) {
                continue;
            }
            let known = recorded.get(name.as_ref());
            self.at(&step(&name), |walk| match known {
                Some(known) => walk.value(known, value),
                None => walk.differ(None, parse(value).as_ref()),
            });
            seen.insert(name.into_owned());
        }
        for (name, known) in recorded.iter().filter(|(name, _)| !seen.contains(*name)) {
            self.at(&step(name), |walk| walk.differ(Some(known), None));
        }
    }

    fn elements(&mut self, recorded: &[Value], sent: &[&str]) {
        for index in 0..recorded.len().max(sent.len()) {
            self.at(&format!("[{index}]"), |walk| match (recorded.get(index), sent.get(index)) {
                (Some(known), Some(value)) => walk.value(known, value),
                (known, value) => walk.differ(known, value.and_then(|raw| parse(raw)).as_ref()),
            });
        }
    }

    /// Runs `look` with `step` appended to the path.
    fn at(&mut self, step: &str, look: impl FnOnce(&mut DiffWalk)) {
        let length = self.place.len();
        self.place.push_str(step);
        look(self);
        self.place.truncate(length);
    }

    /// Records a difference at the current path.
    fn differ(&mut self, recorded: Option<&Value>, sent: Option<&Value>) {
        let count = |value: Option<&Value>| value.map_or(0, leaves);
        self.found.count += count(recorded).max(count(sent));
        if self.found.first.is_none() {
            let root = if self.place.starts_with('.') { "" } else { "." };
            let place = format!("{root}{}", self.place);
            let (recorded, sent) = show(recorded, sent);
            self.found.first = Some(Difference { place, recorded, sent });
        }
    }
}

/// Returns the path step to a member.
fn step(name: &str) -> String {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_word && !name.is_empty() { format!(".{name}") } else { format!("[\"{name}\"]") }
}

/// Returns the number of scalar values in a value. An empty array or object counts as one.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(leaves).sum::<usize>().max(1),
        Value::Object(members) => members.values().map(leaves).sum::<usize>().max(1),
        _ => 1,
    }
}

/// Renders two values around their first difference.
fn show(recorded: Option<&Value>, sent: Option<&Value>) -> (Option<String>, Option<String>) {
    let (recorded, sent) = (recorded.map(Excerpt::of), sent.map(Excerpt::of));
    let same = match (&recorded, &sent) {
        (Some(one), Some(other)) => {
            let pairs = one.text.chars().zip(other.text.chars());
            pairs.take_while(|(one, other)| one == other).count()
        }
        _ => 0,
    };
    let from = same.saturating_sub(BEFORE);
    let cut = |value: Option<Excerpt>| value.map(|value| value.from(from));
    (cut(recorded), cut(sent))
}

/// A value as text, and the quotation mark around it, if any.
struct Excerpt {
    text: String,
    mark: &'static str,
}

impl Excerpt {
    fn of(value: &Value) -> Excerpt {
        match value {
            Value::String(text) => Excerpt { text: text.clone(), mark: "\"" },
            other => Excerpt { text: canonical(other), mark: "" },
        }
    }

    /// Returns at most [`SHOWN`] characters, starting at index `from`. `…` marks omitted text.
    fn from(&self, from: usize) -> String {
        let before = if from > 0 { "…" } else { "" };
        let room = SHOWN - before.chars().count();
        let mut text: String = self.text.chars().skip(from).take(room).collect();
        if self.text.chars().skip(from).nth(room).is_some() {
            text.pop();
            text.push('…');
        }
        format!("{0}{before}{text}{0}", self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of differences and the first one.
    fn compared(recorded: &str, sent: &str) -> (usize, String) {
        let found = compare(recorded, sent);
        (found.count, found.first.map(|first| first.to_string()).unwrap_or_default())
    }

    #[test]
    fn the_first_difference_is_the_first_in_the_sent_request() {
        let recorded = r#"{"a":1,"m":[{"c":"x"},{"c":[{"t":"abc"}]}],"z":1}"#;
        let sent = r#"{"z":1,"m":[{"c":"x"},{"c":[{"t":"abd"}]}],"a":2}"#;
        let first = r#".m[1].c[0].t: recorded "abc", sent "abd""#;
        assert_eq!(compared(recorded, sent), (2, first.to_owned()));
        assert_eq!(compared(sent, sent), (0, String::new()));
        assert_eq!(compared(sent, r#"{"z":1.0,"m":[{"c":"x"},{"c":[{"t":"abd"}]}],"a":2}"#).0, 0);
    }

    #[test]
    fn a_missing_value_counts_once_for_each_scalar_in_it() {
        let longer = r#"{"m":[1,{"a":[2,3],"b":{}}]}"#;
        let added = ".m[1]: recorded nothing, sent {\"a\":[2,3],\"b\":{}}";
        assert_eq!(compared(r#"{"m":[1]}"#, longer), (3, added.to_owned()));
        let left_out = ".m[1]: recorded {\"a\":[2,3],\"b\":{}}, sent nothing";
        assert_eq!(compared(longer, r#"{"m":[1]}"#), (3, left_out.to_owned()));
        assert_eq!(compared("{}", r#"{"a b":null}"#).1, r#".["a b"]: recorded nothing, sent null"#);
        assert_eq!(compared(r#"{"x":null}"#, "{}").1, ".x: recorded null, sent nothing");
        assert_eq!(compared("[1]", "[2]").1, ".[0]: recorded 1, sent 2");
    }

    #[test]
    fn values_of_different_types_differ_as_a_whole() {
        assert_eq!(compared(r#"{"a":[1,2]}"#, r#"{"a":"x"}"#).1, r#".a: recorded [1,2], sent "x""#);
        assert_eq!(
            compared("no json", "{}"),
            (1, r#".: recorded "no json", sent "{}""#.to_owned())
        );
        assert_eq!(
            compared(r#"{"a":1}"#, r#"{"a":2,"a":1}"#).0,
            0,
            "the last of two members counts"
        );
    }

    #[test]
    fn values_are_shown_around_their_difference() {
        let long = |middle: &str| format!(r#""{}{middle}{}""#, "é".repeat(50), "z".repeat(50));
        let (_, shown) = compared(&long("1"), &long("2"));
        let side = |middle: &str| format!("\"…éééééééééé{middle}{}…\"", "z".repeat(27));
        assert_eq!(shown, format!(".: recorded {}, sent {}", side("1"), side("2")));
        for (recorded, sent) in [("\"\"", long("")), ("1", long("")), ("[]", long(""))] {
            let found = compare(recorded, &sent).first.unwrap();
            assert_eq!(found.sent.unwrap().chars().count(), SHOWN + 2);
        }
    }
}
