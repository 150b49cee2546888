//! The kinds of messages that sessions name themselves, in one table.

use std::borrow::Cow;

/// Names for the kinds of messages that sessions name themselves: Claude Code's attachments and origins, Codex's items. A
/// kind that is missing here is its own name, with spaces.
const KINDS: [(&str, &str); 26] = [
    ("environment_context", "environment"),
    ("agent_listing_delta", "agents"),
    ("skill_listing", "skills"),
    ("deferred_tools_delta", "tools"),
    ("mcp_instructions_delta", "MCP servers"),
    ("total_tokens_reminder", "tokens left"),
    ("token_usage", "tokens left"),
    ("budget_usd", "cost left"),
    ("session_context", "context"),
    ("remote_session_change", "attribution"),
    ("compact_file_reference", "file"),
    ("edited_text_file", "changed file"),
    ("nested_memory", "memory"),
    ("relevant_memories", "memory"),
    ("plan_mode", "plan mode"),
    ("queued_command", "queued message"),
    ("todo_reminder", "to-do list"),
    ("task_reminder", "to-do list"),
    ("turn_aborted", "interruption"),
    ("hook_success", "hook output"),
    ("hook_additional_context", "hook output"),
    ("hook_blocking_error", "hook output"),
    ("agents_md", "instructions"),
    ("context_delivered", "skill"),
    ("mode_notice_delivered", "mode"),
    ("context_cleared", "context"),
];

/// Returns the name of a kind of message, such as `agents` for `agent_listing_delta`.
#[must_use]
pub fn name_of_kind(kind: &str) -> Cow<'static, str> {
    let kind = kind.rsplit('.').next().unwrap_or(kind);
    match KINDS.iter().find(|(own, _)| *own == kind) {
        Some((_, name)) => Cow::Borrowed(*name),
        None => Cow::Owned(kind.replace(['_', '-'], " ").trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_name_is_its_own_name() {
        for (kind, name) in [
            ("agent_listing_delta", "agents"),
            ("environments.environment_context", "environment"),
            ("generic.turn_aborted", "interruption"),
            ("task-notification", "task notification"),
        ] {
            assert_eq!(name_of_kind(kind), name);
        }
    }
}
