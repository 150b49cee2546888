//! Writes all JSON that this crate produces.
//!
//! An object is written from front to back into one `String`, and each method adds a member:
//!
//! ```
//! use clawutils::json::write::Members;
//!
//! let call = Members::new().string("id", "c1").object("function", |it| it.raw("arguments", "{}"));
//! assert_eq!(call.into_json(), r#"{"id":"c1","function":{"arguments":{}}}"#);
//! ```
//!
//! Names that are known at compile time are `&'static str` and are written without escaping. `opening!` and
//! `member!` write such names at compile time, for objects that are written in pieces around a long value,
//! so that it is not copied.

use super::{Member, push_quoted, quote};
use std::fmt::{Display, Write as _};

/// The members of an object that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The object's text, except for the closing brace.
    json: String,
}

impl Default for Members {
    fn default() -> Members {
        Members::new()
    }
}

impl Members {
    /// Returns an object without members.
    #[must_use]
    pub fn new() -> Members {
        Members::with_capacity(62)
    }

    /// Returns an object without members, with room for `bytes` bytes.
    #[inline]
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Members {
        let mut json = String::with_capacity(bytes + 2);
        json.push('{');
        Members { json }
    }

    /// Returns an empty object that reuses the memory of `buffer`, for code that writes many objects.
    #[must_use]
    pub fn reusing(mut buffer: String) -> Members {
        buffer.clear();
        buffer.push('{');
        Members { json: buffer }
    }

    /// Returns a record or block of this type: an object with the member `type`.
    #[must_use]
    pub fn of_type(name: &str) -> Members {
        Members::new().string("type", name)
    }

    /// Returns the object.
    #[must_use]
    pub fn into_json(mut self) -> String {
        self.json.push('}');
        self.json
    }

    /// Returns the object as a line with a line feed.
    #[must_use]
    pub fn into_line(mut self) -> String {
        self.json.push_str("}\n");
        self.json
    }

    /// Returns the members without braces, to append to the members of another object: with a leading comma,
    /// unless there are no members.
    #[must_use]
    pub fn into_rest(mut self) -> String {
        let comma = if self.is_empty() { "" } else { "," };
        self.json.replace_range(..1, comma);
        self.json
    }

    /// Adds a string, which is quoted.
    #[inline]
    #[must_use]
    pub fn string(mut self, name: &'static str, value: &str) -> Members {
        self.name(name);
        push_quoted(&mut self.json, value);
        self
    }

    /// Adds a value that already is JSON.
    #[inline]
    #[must_use]
    pub fn raw(mut self, name: &'static str, value: &str) -> Members {
        self.name(name);
        self.json.push_str(value);
        self
    }

    /// Adds a whole number.
    #[inline]
    #[must_use]
    pub fn number(self, name: &'static str, value: impl itoa::Integer) -> Members {
        self.raw(name, itoa::Buffer::new().format(value))
    }

    /// Adds a number whose `Display` form is valid JSON.
    #[must_use]
    pub fn decimal(mut self, name: &'static str, value: impl Display) -> Members {
        self.name(name);
        // Writing into a String cannot fail.
        let _ = write!(self.json, "{value}");
        self
    }

    /// Adds `true` or `false`.
    #[inline]
    #[must_use]
    pub fn bool(self, name: &'static str, value: bool) -> Members {
        self.raw(name, if value { "true" } else { "false" })
    }

    /// Adds `true` if `is_set`, and nothing otherwise.
    #[must_use]
    pub fn flag(self, name: &'static str, is_set: bool) -> Members {
        if is_set { self.bool(name, true) } else { self }
    }

    /// Adds `value` with `add`, which is one of the other methods. Adds nothing if `value` is `None`.
    #[must_use]
    pub fn optional<T>(
        self,
        add: impl FnOnce(Members, &'static str, T) -> Members,
        name: &'static str,
        value: Option<T>,
    ) -> Members {
        match value {
            Some(value) => add(self, name, value),
            None => self,
        }
    }

    /// Adds `value` with `add`, which is one of the other methods. Adds `null` if `value` is `None`.
    #[must_use]
    pub fn or_null<T>(
        self,
        add: impl FnOnce(Members, &'static str, T) -> Members,
        name: &'static str,
        value: Option<T>,
    ) -> Members {
        match value {
            Some(value) => add(self, name, value),
            None => self.raw(name, "null"),
        }
    }

    /// Adds a list of strings.
    #[must_use]
    pub fn strings(
        mut self,
        name: &'static str,
        items: impl IntoIterator<Item: AsRef<str>>,
    ) -> Members {
        self.name(name);
        push_list(&mut self.json, items, |json, item| push_quoted(json, item.as_ref()));
        self
    }

    /// Adds a list of values that already are JSON.
    #[must_use]
    pub fn list(
        mut self,
        name: &'static str,
        items: impl IntoIterator<Item: AsRef<str>>,
    ) -> Members {
        self.name(name);
        push_list(&mut self.json, items, |json, item| json.push_str(item.as_ref()));
        self
    }

    /// Adds an object with the members that `add` adds.
    #[must_use]
    pub fn object(mut self, name: &'static str, add: impl FnOnce(Members) -> Members) -> Members {
        self.name(name);
        push_object(&mut self.json, add);
        self
    }

    /// Adds a list of objects, each with the members that `add` adds for its item.
    #[must_use]
    pub fn objects<T>(
        mut self,
        name: &'static str,
        items: impl IntoIterator<Item = T>,
        add: impl Fn(Members, T) -> Members,
    ) -> Members {
        self.name(name);
        push_list(&mut self.json, items, |json, item| push_object(json, |it| add(it, item)));
        self
    }

    /// Adds a value that already is JSON, under a name known only at run time.
    #[must_use]
    pub fn named(mut self, name: &str, value: &str) -> Members {
        self.separate();
        push_quoted(&mut self.json, name);
        self.json.push(':');
        self.json.push_str(value);
        self
    }

    /// Adds a member of another object with its bytes unchanged.
    #[must_use]
    pub fn member(mut self, member: Member<'_>) -> Members {
        self.separate();
        self.json.push_str(member.raw_name);
        self.json.push(':');
        self.json.push_str(member.value);
        self
    }

    /// Adds all members of `other`.
    #[must_use]
    pub fn members(self, other: &Members) -> Members {
        self.inner(&other.json[1..])
    }

    /// Adds all members of the JSON object `object`. The bytes between its braces stay the same, except that white
    /// space after the opening brace and before the closing one is dropped.
    #[must_use]
    pub fn spread(self, object: &str) -> Members {
        let inner = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        self.inner(inner.unwrap_or_default().trim())
    }

    fn inner(mut self, members: &str) -> Members {
        if !members.is_empty() {
            self.separate();
            self.json.push_str(members);
        }
        self
    }

    /// Passes the members to `add` and returns its result.
    #[must_use]
    pub fn with(self, add: impl FnOnce(Members) -> Members) -> Members {
        add(self)
    }

    /// Returns true if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.json.len() == 1
    }

    /// Adds the name and colon of a member.
    #[inline]
    fn name(&mut self, name: &'static str) {
        self.separate();
        self.json.push('"');
        self.json.push_str(name);
        self.json.push_str("\":");
    }

    /// Adds a comma unless the next member is the first of its object. The text ends with an opening brace only
    /// before a first member, because no JSON value ends with one.
    #[inline]
    fn separate(&mut self) {
        if self.json.as_bytes().last() != Some(&b'{') {
            self.json.push(',');
        }
    }
}

/// Returns a list of values that already are JSON.
#[must_use]
pub fn list(items: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut json = String::new();
    push_list(&mut json, items, |json, item| json.push_str(item.as_ref()));
    json
}

/// Returns a list of strings.
#[must_use]
pub fn strings(items: impl IntoIterator<Item: AsRef<str>>) -> String {
    let mut json = String::new();
    push_list(&mut json, items, |json, item| push_quoted(json, item.as_ref()));
    json
}

/// Returns an object with one line per member, whose value already is JSON, and a final line feed.
#[must_use]
pub fn table(rows: impl IntoIterator<Item = (impl AsRef<str>, String)>) -> String {
    let row = |(name, value): (_, String)| [quote(AsRef::as_ref(&name)), value].join(": ");
    let rows: Vec<String> = rows.into_iter().map(row).collect();
    ["{\n  ", &rows.join(",\n  "), "\n}\n"].concat()
}

fn push_list<T>(
    json: &mut String,
    items: impl IntoIterator<Item = T>,
    push: impl Fn(&mut String, T),
) {
    json.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        push(json, item);
    }
    json.push(']');
}

fn push_object(json: &mut String, add: impl FnOnce(Members) -> Members) {
    json.push('{');
    *json = add(Members { json: std::mem::take(json) }).json;
    json.push('}');
}

/// The text of an object up to the value of its last member: `opening!("role": "user", "content")`.
macro_rules! opening {
    ($first:literal $(: $value:literal, $name:literal)*) => {
        concat!("{\"", $first, "\":" $(, "\"", $value, "\",\"", $name, "\":")*)
    };
}

/// The text of another member up to its value, `member!("content")`, or including a value that is not a
/// string, `member!("is_error": true)`.
macro_rules! member {
    ($name:literal $(: $value:literal)?) => {
        concat!(",\"", $name, "\":" $(, $value)?)
    };
}

pub(crate) use {member, opening};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    #[test]
    fn each_kind_of_member_is_written_as_valid_json() {
        type Add = fn(Members) -> Members;
        let cases: [(Add, &str); 20] = [
            (|it| it, "{}"),
            (|it| it.string("a", "b\"\u{85}"), r#"{"a":"b\"\u0085"}"#),
            (|it| it.raw("a", "[1]").raw("b", "{}"), r#"{"a":[1],"b":{}}"#),
            (|it| it.number("a", 7_u64).number("b", -1_i32), r#"{"a":7,"b":-1}"#),
            (
                |it| it.decimal("a", 1.5).decimal("b", format_args!("{:.1}", 2.0)),
                r#"{"a":1.5,"b":2.0}"#,
            ),
            (|it| it.bool("a", true).bool("b", false), r#"{"a":true,"b":false}"#),
            (|it| it.flag("a", false).flag("b", true), r#"{"b":true}"#),
            (|it| it.optional(Members::string, "a", Some("b")), r#"{"a":"b"}"#),
            (|it| it.optional(Members::number, "a", None::<u64>), "{}"),
            (|it| it.or_null(Members::raw, "a", None), r#"{"a":null}"#),
            (|it| it.or_null(Members::raw, "a", Some("1")), r#"{"a":1}"#),
            (|it| it.strings("a", ["b", "\n"]).strings("c", [""; 0]), r#"{"a":["b","\n"],"c":[]}"#),
            (|it| it.list("a", ["1", "{}"]).list("b", [""; 0]), r#"{"a":[1,{}],"b":[]}"#),
            (
                |it| it.object("a", |it| it).object("b", |it| it.bool("c", true)),
                r#"{"a":{},"b":{"c":true}}"#,
            ),
            (|it| it.objects("a", [1, 2], |it, n| it.number("n", n)), r#"{"a":[{"n":1},{"n":2}]}"#),
            (|it| it.named("a\"", "1"), r#"{"a\"":1}"#),
            (|it| it.members(&Members::new()).members(&Members::of_type("x")), r#"{"type":"x"}"#),
            (|it| it.bool("a", true).members(&Members::of_type("x")), r#"{"a":true,"type":"x"}"#),
            (|it| it.spread("{ }").spread(r#"{ "a": 1 }"#).spread("{}"), r#"{"a": 1}"#),
            (|it| it.with(|it| it.raw("a", "\"{\"")).raw("b", "1"), r#"{"a":"{","b":1}"#),
        ];
        for (add, expected) in cases {
            assert_eq!(add(Members::new()).into_json(), expected);
            assert!(Object::parse(expected).is_ok());
        }
        assert_eq!(list(["1", "2"]), "[1,2]");
        assert_eq!(strings(["1", "2"]), r#"["1","2"]"#);
        let rows = [("a", "1".to_owned()), ("b\"", "{}".to_owned())];
        assert_eq!(table(rows), "{\n  \"a\": 1,\n  \"b\\\"\": {}\n}\n");
    }

    #[test]
    fn members_of_another_object_keep_their_bytes() {
        let object = Object::parse(r#"{"\u0061" : 1e2}"#).unwrap();
        let copy = object.members().fold(Members::new(), Members::member);
        assert_eq!(copy.into_line(), "{\"\\u0061\":1e2}\n");
    }

    #[test]
    fn a_reused_buffer_starts_empty() {
        let first = Members::new().raw("a", "1").into_json();
        assert_eq!(Members::reusing(first).raw("b", "2").into_json(), r#"{"b":2}"#);
    }

    #[test]
    fn the_rest_of_an_object_begins_with_a_comma() {
        assert_eq!(Members::new().into_rest(), "");
        assert_eq!(Members::new().raw("a", "1").raw("b", "2").into_rest(), r#","a":1,"b":2"#);
    }

    #[test]
    fn the_macros_write_the_same_text_as_the_writer() {
        let whole = Members::new().string("role", "user").raw("content", "[]").bool("x", true);
        let pieces = [opening!("role": "user", "content"), "[]", member!("x": true), "}"];
        assert_eq!(pieces.concat(), whole.into_json());
        assert_eq!([opening!("a"), "1", member!("b"), "2}"].concat(), r#"{"a":1,"b":2}"#);
    }
}
