//! The tools in an example: their names, inputs and definitions.

use super::Turn;
use crate::json::write::{Members, list};
use crate::json::{self, Object};
use std::collections::BTreeMap;

/// The length limit of a name in characters, as in OpenAI's API.
const LONGEST: usize = 64;

/// Returns the name of a tool: letters, digits, `_` and `-`, as OpenAI's API requires.
pub fn name(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(safe).take(LONGEST).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// Returns the input of a call as a JSON object on one line. An input of another type becomes its member `input`.
pub fn input(input: &str) -> String {
    let line = json::on_one_line(input);
    match Object::parse(&line) {
        Ok(_) => line,
        Err(_) if line.is_empty() => "{}".to_owned(),
        Err(_) => Members::new().string("input", &line).into_json(),
    }
}

/// Returns the definitions of the tools that are called, as a list in the form of OpenAI's API, or `None` if there are no
/// calls. A session does not have the definitions, so they have what the calls show: the parameters and their types.
pub fn definitions(turns: &[Turn]) -> Option<String> {
    let calls = turns.iter().flat_map(|turn| &turn.replies).flat_map(|reply| &reply.calls);
    let mut tools: BTreeMap<&str, BTreeMap<String, Option<&'static str>>> = BTreeMap::new();
    for call in calls {
        let parameters = tools.entry(&call.name).or_default();
        let Ok(object) = Object::parse(&call.input) else { continue };
        for member in object.members() {
            let kind = kind(member.value);
            let known = parameters.entry(member.name().into_owned()).or_insert(kind);
            *known = known.filter(|known| Some(*known) == kind);
        }
    }
    let tools: Vec<String> = tools.iter().map(|(name, own)| definition(name, own)).collect();
    (!tools.is_empty()).then(|| list(tools))
}

fn definition(name: &str, parameters: &BTreeMap<String, Option<&'static str>>) -> String {
    let properties = parameters.iter().fold(Members::new(), |all, (name, kind)| {
        all.named(name, &Members::new().optional(Members::string, "type", *kind).into_json())
    });
    let properties = properties.into_json();
    let parameters = |it: Members| it.string("type", "object").raw("properties", &properties);
    let function = |it: Members| it.string("name", name).object("parameters", parameters);
    Members::new().string("type", "function").object("function", function).into_json()
}

/// Returns the type of a value in JSON Schema.
fn kind(value: &str) -> Option<&'static str> {
    Some(match value.as_bytes().first()? {
        b'"' => "string",
        b'{' => "object",
        b'[' => "array",
        b't' | b'f' => "boolean",
        b'n' => "null",
        _ => "number",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_inputs_are_those_of_the_api() {
        assert_eq!(name("mcp.server/read file"), "mcp_server_read_file");
        assert_eq!(name(""), "tool");
        assert_eq!(name(&"x".repeat(100)).len(), LONGEST);
        for (given, expected) in
            [("{\"a\":\n1}", r#"{"a": 1}"#), ("\"ls\"", r#"{"input":"\"ls\""}"#), ("", "{}")]
        {
            assert_eq!(input(given), expected, "{given}");
        }
    }
}
