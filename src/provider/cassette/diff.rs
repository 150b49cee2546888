//! In what two requests differ: how many values, and the first of them.

use super::key::{canonical, parse};
use crate::json::{Object, elements};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The most characters of a value that are shown.
const SHOWN: usize = 40;
/// How many of them stand before the first difference.
const BEFORE: usize = 10;

/// In what a request differs from a recorded one.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// How many values (strings, numbers, ...) are different, or are in one of them only.
    pub(super) count: usize,
    /// The first in the order of the request that was sent.
    pub(super) first: Option<Difference>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Where: `.messages[2].content`; `.` is all of it.
    place: String,
    /// What was recorded there, cut short; none when nothing was.
    recorded: Option<String>,
    /// What is sent there, cut short; none when nothing is.
    sent: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let (recorded, sent) = (shown(&self.recorded), shown(&self.sent));
        write!(f, "{}: recorded {recorded}, sent {sent}", self.place)
    }
}

/// Compares a recorded body and one that is sent. Where one of them is no JSON, they are compared as texts.
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

/// Walks through two values together. The one that is sent stays text, for there is the order of its
/// members. It is nested no deeper than serde_json reads, so this may recurse.
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
            // Of two members with one name the last counts.
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

    /// Does `look` one step further in.
    fn at(&mut self, step: &str, look: impl FnOnce(&mut DiffWalk)) {
        let length = self.place.len();
        self.place.push_str(step);
        look(self);
        self.place.truncate(length);
    }

    /// Counts a difference here.
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

/// How a path goes on to a member.
fn step(name: &str) -> String {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_word && !name.is_empty() { format!(".{name}") } else { format!("[\"{name}\"]") }
}

/// How many values without parts there are in it; an empty array or object is one.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(leaves).sum::<usize>().max(1),
        Value::Object(members) => members.values().map(leaves).sum::<usize>().max(1),
        _ => 1,
    }
}

/// Two values around their first difference.
fn show(recorded: Option<&Value>, sent: Option<&Value>) -> (Option<String>, Option<String>) {
    let (recorded, sent) = (recorded.map(Told::of), sent.map(Told::of));
    let same = match (&recorded, &sent) {
        (Some(one), Some(other)) => {
            let pairs = one.text.chars().zip(other.text.chars());
            pairs.take_while(|(one, other)| one == other).count()
        }
        _ => 0,
    };
    let from = same.saturating_sub(BEFORE);
    let cut = |told: Option<Told>| told.map(|told| told.from(from));
    (cut(recorded), cut(sent))
}

/// A value as text, and what stands around that.
struct Told {
    text: String,
    mark: &'static str,
}

impl Told {
    fn of(value: &Value) -> Told {
        match value {
            Value::String(text) => Told { text: text.clone(), mark: "\"" },
            other => Told { text: canonical(other), mark: "" },
        }
    }

    /// At most [`SHOWN`] characters from the given one on; `…` stands for what is left out.
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

    /// How many differences, and the first.
    fn told(recorded: &str, sent: &str) -> (usize, String) {
        let found = compare(recorded, sent);
        (found.count, found.first.map(|first| first.to_string()).unwrap_or_default())
    }

    #[test]
    fn the_first_difference_is_the_first_in_what_was_sent() {
        let recorded = r#"{"a":1,"m":[{"c":"x"},{"c":[{"t":"abc"}]}],"z":1}"#;
        let sent = r#"{"z":1,"m":[{"c":"x"},{"c":[{"t":"abd"}]}],"a":2}"#;
        let first = r#".m[1].c[0].t: recorded "abc", sent "abd""#;
        assert_eq!(told(recorded, sent), (2, first.to_owned()));
        assert_eq!(told(sent, sent), (0, String::new()));
        assert_eq!(told(sent, r#"{"z":1.0,"m":[{"c":"x"},{"c":[{"t":"abd"}]}],"a":2}"#).0, 0);
    }

    #[test]
    fn what_is_in_one_only_counts_by_what_is_in_it() {
        let longer = r#"{"m":[1,{"a":[2,3],"b":{}}]}"#;
        let added = ".m[1]: recorded nothing, sent {\"a\":[2,3],\"b\":{}}";
        assert_eq!(told(r#"{"m":[1]}"#, longer), (3, added.to_owned()));
        let left_out = ".m[1]: recorded {\"a\":[2,3],\"b\":{}}, sent nothing";
        assert_eq!(told(longer, r#"{"m":[1]}"#), (3, left_out.to_owned()));
        assert_eq!(told("{}", r#"{"a b":null}"#).1, r#".["a b"]: recorded nothing, sent null"#);
        assert_eq!(told(r#"{"x":null}"#, "{}").1, ".x: recorded null, sent nothing");
        assert_eq!(told("[1]", "[2]").1, ".[0]: recorded 1, sent 2");
    }

    #[test]
    fn other_kinds_of_values_differ_as_a_whole() {
        assert_eq!(told(r#"{"a":[1,2]}"#, r#"{"a":"x"}"#).1, r#".a: recorded [1,2], sent "x""#);
        assert_eq!(told("no json", "{}"), (1, r#".: recorded "no json", sent "{}""#.to_owned()));
        assert_eq!(told(r#"{"a":1}"#, r#"{"a":2,"a":1}"#).0, 0, "the last of two counts");
    }

    #[test]
    fn values_are_shown_around_their_difference() {
        let long = |middle: &str| format!(r#""{}{middle}{}""#, "é".repeat(50), "z".repeat(50));
        let (_, shown) = told(&long("1"), &long("2"));
        let side = |middle: &str| format!("\"…éééééééééé{middle}{}…\"", "z".repeat(27));
        assert_eq!(shown, format!(".: recorded {}, sent {}", side("1"), side("2")));
        for (recorded, sent) in [("\"\"", long("")), ("1", long("")), ("[]", long(""))] {
            let found = compare(recorded, &sent).first.unwrap();
            assert_eq!(found.sent.unwrap().chars().count(), SHOWN + 2);
        }
    }
}
