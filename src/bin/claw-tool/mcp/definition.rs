//! A tool of a server, as a definition for the model. All of it was written by the server.

use clawutils::json::is_deeper;
use clawutils::json::write::Members;
use clawutils::printable::printable;
use clawutils::rules::names;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// The longest name, in bytes.
const MAX_NAME: usize = 256;
/// The longest description, in bytes.
const MAX_DESCRIPTION: usize = 16 << 10;
/// The longest schema of an input, in bytes.
const MAX_SCHEMA: usize = 64 << 10;
/// The deepest schema.
const MAX_DEPTH: usize = 64;
/// The maximum number of characters of a description in a list.
const SHORT: usize = 60;

/// The definition of a tool.
#[derive(Debug)]
pub struct Definition {
    /// The name for the model, which is that of the executable. It is a plain file name.
    pub name: String,
    /// The name for the server.
    pub original: String,
    description: String,
    /// The JSON Schema of the input.
    schema: String,
    hint: &'static str,
}

impl Definition {
    /// Checks a tool.
    ///
    /// # Errors
    /// Returns the reason why it cannot be used.
    pub fn new(tool: Tool, prefix: &str) -> Result<Self, String> {
        let original = tool.name.into_owned();
        if original.len() > MAX_NAME || original.contains('\0') {
            let begin: String = original.chars().take(SHORT).collect();
            return Err(format!("'{begin}': its name has a NUL or more than {MAX_NAME} bytes"));
        }
        let bad = |why: &str| format!("'{original}': {why}");
        let mut schema = Arc::unwrap_or_clone(tool.input_schema);
        let kind = schema.entry("type").or_insert_with(|| "object".into());
        if kind != "object" {
            return Err(bad("its input is not an object"));
        }
        let schema = Value::Object(schema).to_string();
        if schema.len() > MAX_SCHEMA || is_deeper(&schema, MAX_DEPTH) {
            return Err(bad("the schema of its input is larger than 64 KiB or too deep"));
        }
        let description = tool.description.map(|it| it.into_owned()).or(tool.title);
        let description = description.unwrap_or_default();
        if description.len() > MAX_DESCRIPTION {
            return Err(bad("its description is longer than 16 KiB"));
        }
        let name = names::fit(&[prefix, &original].concat()).into_owned();
        let hint = tool.annotations.as_ref().map_or("unknown", hint);
        Ok(Self { name, original, description, schema, hint })
    }

    /// Returns true if both names are the same file where the case of letters does not matter.
    pub fn has_name_of(&self, other: &Definition) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }

    /// Returns the definition as JSON, as claw-tool(7) describes it.
    pub fn json(&self) -> String {
        let members = Members::new().string("description", &self.description);
        members.raw("input_schema", &self.schema).into_line()
    }

    /// Returns a line for a person: the name, what the server says that it does to data, and the beginning of the description.
    pub fn line(&self) -> String {
        let first = self.description.lines().next().unwrap_or_default();
        let short: String = first.chars().take(SHORT).collect();
        let dots = if short.len() < first.len() { "…" } else { "" };
        format!("{}\t{}\t{}{dots}", self.name, self.hint, printable(&short))
    }
}

/// Returns what a server says that a tool does to data.
fn hint(annotations: &ToolAnnotations) -> &'static str {
    match (annotations.read_only_hint, annotations.destructive_hint) {
        (Some(true), _) => "reads",
        (Some(false), Some(false)) => "adds",
        (Some(false), _) | (None, Some(true)) => "changes",
        _ => "unknown",
    }
}
