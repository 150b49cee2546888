//! The definitions of tools, in the form that chat completions, Responses and Gemini share.

use super::schema;
use crate::json::write::{self, Members};
use crate::json::{Object, elements};
use std::borrow::Cow;

/// Converts a list of tools, a JSON array, to function tools. Returns `None` for an empty list, which providers
/// reject. Tools that are already functions or of an unknown type stay unchanged and are left to the provider.
pub(in crate::provider) fn tools(raw: &str) -> Option<String> {
    let Some(tools) = elements(raw) else { return Some(raw.to_owned()) };
    let tools: Vec<String> = tools.into_iter().map(tool).collect();
    (!tools.is_empty()).then(|| write::list(tools))
}

fn tool(raw: &str) -> String {
    match Function::of(raw) {
        Some(function) => {
            Members::of_type("function").object("function", |it| function.add_to(it)).into_json()
        }
        None => raw.to_owned(),
    }
}

/// The definition of a tool. All members are JSON.
pub(in crate::provider) struct Function<'r> {
    /// The name.
    pub(in crate::provider) name: &'r str,
    /// The description.
    pub(in crate::provider) description: Option<&'r str>,
    /// The schema of the input.
    pub(in crate::provider) parameters: Option<Cow<'r, str>>,
    /// True for a custom tool of the Responses API, whose input is text. It is a member of the input for other APIs.
    pub(in crate::provider) is_custom: bool,
}

/// Returns the schema of the input of a custom tool: an object with the text.
fn text_input() -> String {
    let text = Members::of_type("string").into_json();
    let members = Members::new().raw("input", &text).into_json();
    Members::of_type("object")
        .raw("properties", &members)
        .strings("required", ["input"])
        .into_json()
}

impl<'r> Function<'r> {
    /// Returns the definition in a tool; `None` if it has none of its own or is a function already.
    fn of(raw: &'r str) -> Option<Function<'r>> {
        let object = Object::parse(raw).ok()?;
        let kind = object.string("type");
        let is_ours = matches!(kind.as_deref(), None | Some("custom"));
        let name = object.get("name").filter(|_| is_ours)?;
        let parameters = object.get("input_schema").map(schema::parameters);
        let is_custom = kind.is_some() && parameters.is_none();
        let parameters = parameters.or(is_custom.then(|| Cow::Owned(text_input())));
        Some(Function { name, description: object.get("description"), parameters, is_custom })
    }

    /// Returns the definition in a tool, also in one that has the form of chat completions.
    pub(in crate::provider) fn of_any(raw: &'r str) -> Option<Function<'r>> {
        Function::of(raw).or_else(|| {
            let object = Object::parse(Object::parse(raw).ok()?.get("function")?).ok()?;
            let name = object.get("name")?;
            let parameters = object.get("parameters").map(schema::parameters);
            let description = object.get("description");
            Some(Function { name, description, parameters, is_custom: false })
        })
    }

    /// Adds the members of the definition.
    pub(in crate::provider) fn add_to(&self, members: Members) -> Members {
        members
            .raw("name", self.name)
            .optional(Members::raw, "description", self.description)
            .optional(Members::raw, "parameters", self.parameters.as_deref())
    }
}
