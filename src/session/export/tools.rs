//! The tools that several programs have: a call of one becomes a call of the other's.

use crate::dialect::program::Program::{
    self, ClaudeCode, Clawutils, Codex, Copilot, GeminiCli, OpenClaw, Opencode, Pi,
};
use crate::json::write::Members;
use crate::json::{Object, elements};

/// The work of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Command,
    Read,
    Write,
    Edit,
}

/// A member of an input: its meaning, and its name in this program.
type Named = (&'static str, &'static str);

/// A tool of a program.
struct Tool {
    program: Program,
    name: &'static str,
    work: Work,
    /// The members that each call has.
    required: &'static [Named],
    /// Further members.
    optional: &'static [Named],
    /// A list of the input, and the members that its only element has.
    list: Option<(&'static str, &'static [Named])>,
}

/// A call in the form of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The name of the tool.
    pub name: &'static str,
    /// The input, as JSON.
    pub input: String,
    /// The names of the members of the input that the tool does not have.
    pub dropped: Vec<String>,
}

const fn tool(
    program: Program,
    name: &'static str,
    work: Work,
    required: &'static [Named],
    optional: &'static [Named],
) -> Tool {
    Tool { program, name, work, required, optional, list: None }
}

const COMMAND: &[Named] = &[("command", "command")];
const DIRECTORY: &[Named] = &[("directory", "workdir")];
const FILE: &[Named] = &[("path", "file_path")];
const RANGE: &[Named] = &[("offset", "offset"), ("limit", "limit")];
const WRITTEN: &[Named] = &[("path", "file_path"), ("text", "content")];
const EDITED: &[Named] = &[("path", "file_path"), ("old", "old_string"), ("new", "new_string")];
const OPENCODE_EDITED: &[Named] =
    &[("path", "filePath"), ("old", "oldString"), ("new", "newString")];
const COPILOT_WRITTEN: &[Named] = &[("path", "path"), ("text", "file_text")];
const COPILOT_EDITED: &[Named] = &[("path", "path"), ("old", "old_str"), ("new", "new_str")];
const PI_FILE: &[Named] = &[("path", "path")];
const PI_WRITTEN: &[Named] = &[("path", "path"), ("text", "content")];
const PI_EDITED: &[Named] = &[("old", "oldText"), ("new", "newText")];
const PI_OLD_EDITED: &[Named] = &[("path", "path"), ("old", "oldText"), ("new", "newText")];

use Work::{Command, Edit, Read, Write};

/// The first tool of a program for some work is the one that calls become; the others are those of older versions.
///
/// Sources, all of 28 November 2026: the tools in the requests of Claude Code 2.1.197, Codex 0.171.0, Copilot CLI 1.0.102,
/// Gemini CLI 0.61.0, OpenClaw 2026.9.6, opencode 1.18.33 and pi 1.5.2, and those in sessions of older versions; for
/// clawutils, `tools/`. Files of OpenClaw are not told from those of pi.
static TOOLS: [Tool; 29] = [
    tool(ClaudeCode, "Bash", Command, COMMAND, &[]),
    tool(ClaudeCode, "Read", Read, FILE, RANGE),
    tool(ClaudeCode, "Write", Write, WRITTEN, &[]),
    tool(ClaudeCode, "Edit", Edit, EDITED, &[]),
    tool(Codex, "exec_command", Command, &[("command", "cmd")], DIRECTORY),
    tool(Codex, "shell_command", Command, COMMAND, DIRECTORY),
    tool(Copilot, "bash", Command, COMMAND, &[]),
    tool(Copilot, "view", Read, PI_FILE, &[]),
    tool(Copilot, "create", Write, COPILOT_WRITTEN, &[]),
    tool(Copilot, "edit", Edit, COPILOT_EDITED, &[]),
    tool(GeminiCli, "run_shell_command", Command, COMMAND, &[("directory", "dir_path")]),
    tool(GeminiCli, "read_file", Read, FILE, &[]),
    tool(GeminiCli, "write_file", Write, WRITTEN, &[]),
    tool(GeminiCli, "replace", Edit, EDITED, &[]),
    tool(OpenClaw, "exec", Command, COMMAND, DIRECTORY),
    tool(OpenClaw, "read", Read, PI_FILE, RANGE),
    tool(OpenClaw, "write", Write, PI_WRITTEN, &[]),
    Tool { list: Some(("edits", PI_EDITED)), ..tool(OpenClaw, "edit", Edit, PI_FILE, &[]) },
    tool(Opencode, "bash", Command, COMMAND, DIRECTORY),
    tool(Opencode, "read", Read, &[("path", "filePath")], RANGE),
    tool(Opencode, "write", Write, &[("path", "filePath"), ("text", "content")], &[]),
    tool(Opencode, "edit", Edit, OPENCODE_EDITED, &[]),
    tool(Pi, "bash", Command, COMMAND, &[]),
    tool(Pi, "read", Read, PI_FILE, RANGE),
    tool(Pi, "write", Write, PI_WRITTEN, &[]),
    Tool { list: Some(("edits", PI_EDITED)), ..tool(Pi, "edit", Edit, PI_FILE, &[]) },
    tool(Pi, "edit", Edit, PI_OLD_EDITED, &[]),
    tool(Pi, "exec", Command, COMMAND, DIRECTORY),
    tool(Clawutils, "read_file", Read, FILE, &[]),
];

/// Converts a call of a tool of `from` to one of `to`, or returns `None` if `to` has no such tool.
#[must_use]
pub fn convert(from: Program, to: Program, name: &str, input: &str) -> Option<Converted> {
    let input = Object::parse(input).ok()?;
    let own = TOOLS.iter().filter(|tool| tool.program == from && tool.name == name);
    let (source, values) = own.filter_map(|tool| Some((tool, tool.values(&input)?))).next()?;
    let target = TOOLS.iter().find(|tool| tool.program == to && tool.work == source.work)?;
    let dropped = input.members().map(|member| member.name().into_owned());
    let is_dropped = |name: &String| match source.meaning(name) {
        Some(meaning) => target.all().all(|(other, _)| *other != meaning),
        None => source.list.is_none_or(|(list, _)| list != name),
    };
    let dropped = dropped.filter(is_dropped).collect();
    Some(Converted { name: target.name, input: target.input(&values), dropped })
}

/// The values of an input by their meanings, as JSON.
type Values<'a> = Vec<(&'static str, &'a str)>;

impl Tool {
    /// Returns all members that an input can have.
    fn all(&self) -> impl Iterator<Item = &'static Named> {
        let inner = self.list.map_or(&[][..], |(_, members)| members);
        self.required.iter().chain(self.optional).chain(inner)
    }

    fn meaning(&self, name: &str) -> Option<&'static str> {
        let mut members = self.required.iter().chain(self.optional);
        members.find(|(_, own)| *own == name).map(|(meaning, _)| *meaning)
    }

    /// Returns the values of a call's input, or `None` if a required one is missing.
    fn values<'a>(&self, input: &Object<'a>) -> Option<Values<'a>> {
        let mut values = Vec::new();
        for (meaning, name) in self.required {
            values.push((*meaning, input.get(name)?));
        }
        for (meaning, name) in self.optional {
            values.extend(input.get(name).map(|value| (*meaning, value)));
        }
        if let Some((list, members)) = self.list {
            let list = elements(input.get(list)?)?;
            let [only] = list.as_slice() else { return None };
            let only = Object::parse(only).ok()?;
            for (meaning, name) in members {
                values.push((*meaning, only.get(name)?));
            }
        }
        Some(values)
    }

    /// Returns an input with these values.
    fn input(&self, values: &Values<'_>) -> String {
        let add = |it: Members, members: &[Named]| {
            members.iter().fold(it, |it, (meaning, name)| {
                let value = values.iter().find(|(own, _)| own == meaning);
                it.optional(Members::raw, name, value.map(|(_, value)| *value))
            })
        };
        let input = add(add(Members::new(), self.required), self.optional);
        match self.list {
            Some((list, members)) => input.list(list, [add(Members::new(), members).into_json()]),
            None => input,
        }
        .into_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(from: Program, to: Program, name: &str, input: &str) -> Option<String> {
        let Converted { name, input, dropped } = convert(from, to, name, input)?;
        Some(format!("{name} {input} {}", dropped.join(",")))
    }

    #[test]
    fn a_call_becomes_one_of_the_tool_that_does_the_same() {
        for (from, to, name, input, expected) in [
            (
                ClaudeCode,
                Pi,
                "Read",
                r#"{"file_path":"a","limit":5}"#,
                r#"read {"path":"a","limit":5} "#,
            ),
            (
                Codex,
                Pi,
                "exec_command",
                r#"{"cmd":"ls","workdir":"/x"}"#,
                r#"bash {"command":"ls"} workdir"#,
            ),
            (
                Pi,
                ClaudeCode,
                "edit",
                r#"{"path":"a","edits":[{"oldText":"b","newText":"c"}]}"#,
                r#"Edit {"file_path":"a","old_string":"b","new_string":"c"} "#,
            ),
            (
                ClaudeCode,
                Pi,
                "Edit",
                r#"{"file_path":"a","old_string":"b","new_string":"c","replace_all":false}"#,
                r#"edit {"path":"a","edits":[{"oldText":"b","newText":"c"}]} replace_all"#,
            ),
            (
                Copilot,
                Pi,
                "edit",
                r#"{"path":"a","old_str":"b","new_str":"c"}"#,
                r#"edit {"path":"a","edits":[{"oldText":"b","newText":"c"}]} "#,
            ),
            (
                OpenClaw,
                Codex,
                "exec",
                r#"{"command":"ls","workdir":"/x"}"#,
                r#"exec_command {"cmd":"ls","workdir":"/x"} "#,
            ),
            (
                Clawutils,
                ClaudeCode,
                "read_file",
                r#"{"file_path":"a"}"#,
                r#"Read {"file_path":"a"} "#,
            ),
        ] {
            assert_eq!(converted(from, to, name, input).as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_call_without_such_a_tool_or_with_another_input_is_not_converted() {
        for (from, to, name, input) in [
            (ClaudeCode, Codex, "Read", r#"{"file_path":"a"}"#),
            (ClaudeCode, Pi, "Grep", r#"{"pattern":"a"}"#),
            (ClaudeCode, Pi, "Read", r#"{"path":"a"}"#),
            (Pi, ClaudeCode, "edit", r#"{"path":"a","edits":[]}"#),
            (Pi, ClaudeCode, "Read", r#"{"file_path":"a"}"#),
        ] {
            assert_eq!(converted(from, to, name, input), None, "{name} {input}");
        }
    }
}
