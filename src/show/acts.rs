//! Recognises the calls that are shown as what they are: a to-do list, a plan, and work for a subagent.
//!
//! Tools have different names in every program. A call is recognised by the members of its input, as an edit is.

use super::wording::{Language, Phrase, phrase};
use crate::json::{self, Object};
use std::borrow::Cow;

/// The members that hold a to-do list. Each item has one of [`TEXTS`] and a `status`: Claude Code's TodoWrite, Codex's
/// update_plan, Gemini CLI's write_todos, opencode's todowrite.
const LISTS: [&str; 2] = ["todos", "plan"];
/// The members that hold the text of an item.
const TEXTS: [&str; 5] = ["content", "step", "description", "title", "text"];
/// The members that hold the work of a subagent.
const TASKS: [&str; 3] = ["prompt", "objective", "message"];
/// The members that name the kind of a subagent, one of which a call for a subagent has.
const AGENTS: [&str; 4] = ["subagent_type", "agent_type", "agent_name", "agent"];

/// A call that is shown as what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A to-do list.
    Todos(Vec<Todo>),
    /// A plan, in Markdown.
    Plan(String),
    /// Work for a subagent.
    Agent {
        /// The kind of the subagent.
        kind: String,
        /// A short description.
        description: String,
        /// The prompt, in Markdown.
        prompt: String,
    },
}

/// An item of a to-do list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// The state.
    pub state: TodoState,
    /// The text.
    pub text: String,
}

/// The state of an item of a to-do list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TodoState {
    /// The class of an item in this state on a page.
    pub class: &'static str,
    /// The box in front of such an item.
    pub mark: &'static str,
    /// The name of the state.
    pub name: Phrase,
}

const fn state(class: &'static str, mark: &'static str, name: Phrase) -> TodoState {
    TodoState { class, mark, name }
}

impl TodoState {
    /// Not begun, or of an unknown state.
    pub const OPEN: TodoState = state("Open", "[ ]", phrase::OPEN);
    /// Done.
    pub const DONE: TodoState = state("Done", "[x]", phrase::DONE);

    fn of(status: &str) -> TodoState {
        match status {
            "completed" | "done" => TodoState::DONE,
            "in_progress" | "active" => state("Active", "[>]", phrase::IN_PROGRESS),
            "cancelled" | "canceled" | "dropped" => state("Dropped", "[-]", phrase::DROPPED),
            _ => TodoState::OPEN,
        }
    }
}

/// Returns what a call with this input is, if it is shown as that.
#[must_use]
pub fn read(input: &str) -> Option<Act> {
    let object = Object::parse(input).ok()?;
    if let Some(todos) = LISTS.iter().find_map(|name| todos(object.get(name)?)) {
        return Some(Act::Todos(todos));
    }
    let text = |name: &str| object.string(name).map(Cow::into_owned).unwrap_or_default();
    let plan = text("plan");
    if !plan.trim().is_empty() {
        return Some(Act::Plan(plan));
    }
    let kind = AGENTS.iter().map(|name| text(name)).find(|kind| !kind.is_empty())?;
    let prompt = TASKS.iter().map(|name| text(name)).find(|task| !task.is_empty())?;
    Some(Act::Agent { kind, description: text("description"), prompt })
}

fn todos(raw: &str) -> Option<Vec<Todo>> {
    let item = |raw: &str| {
        let object = Object::parse(raw).ok()?;
        let status = object.string("status")?;
        let text = TEXTS.iter().find_map(|name| object.string(name))?;
        Some(Todo { state: TodoState::of(&status), text: text.into_owned() })
    };
    let todos = json::elements(raw)?.into_iter().map(item).collect::<Option<Vec<_>>>()?;
    (!todos.is_empty()).then_some(todos)
}

/// Returns the line for a call: the tool, and what it is about.
#[must_use]
pub fn line(name: &str, act: &Act, language: Language) -> String {
    match act {
        Act::Todos(todos) => {
            let done = todos.iter().filter(|todo| todo.state == TodoState::DONE).count();
            format!("{name} · {}", language.with(phrase::DONE_OF, &[&done, &todos.len()]))
        }
        Act::Plan(_) => format!("{name} · {}", language.say(phrase::PLAN)),
        Act::Agent { kind, description, .. } => {
            let gap = if description.is_empty() { "" } else { ": " };
            format!("{name} · {}{gap}{description}", language.with(phrase::SUBAGENT, &[kind]))
        }
    }
}

/// Returns the id of the subagent that a result names, as Claude Code's results do.
#[must_use]
pub fn agent_of(result: &str) -> Option<&str> {
    let id = result.split("agentId: ").nth(1)?;
    let end = id.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(id.len());
    Some(&id[..end]).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_recognised_by_their_input() {
        for (input, expected) in [
            (
                r#"{"todos":[{"content":"a","status":"completed","activeForm":"b"},{"content":"c","status":"pending"}]}"#,
                Some("f · 1 of 2 done"),
            ),
            (
                r#"{"explanation":"e","plan":[{"step":"a","status":"in_progress"}]}"#,
                Some("f · 0 of 1 done"),
            ),
            (r#"{"todos":[{"description":"a","status":"cancelled"}]}"#, Some("f · 0 of 1 done")),
            (r##"{"plan":"# Steps\n1. a"}"##, Some("f · plan")),
            (
                r#"{"description":"Count","prompt":"Count it","subagent_type":"Explore"}"#,
                Some("f · subagent Explore: Count"),
            ),
            (r#"{"agent_name":"x","objective":"y"}"#, Some("f · subagent x")),
            (r#"{"todos":[]}"#, None),
            (r#"{"todos":["a"]}"#, None),
            (r#"{"prompt":"draw","description":"d"}"#, None),
            (r#"{"plan":""}"#, None),
            ("[]", None),
        ] {
            let line = read(input).map(|act| line("f", &act, Language::En));
            assert_eq!(line.as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn a_result_names_its_subagent() {
        assert_eq!(agent_of("done\nagentId: a9788de (for resuming)"), Some("a9788de"));
        assert_eq!(agent_of("agentId: "), None);
        assert_eq!(agent_of("no"), None);
    }
}
