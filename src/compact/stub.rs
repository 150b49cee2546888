//! The placeholder for messages that have no summary: it says how many there are and how to read them.

use crate::compact::CutPlan;

/// Returns the placeholder for `planned`. It repeats an earlier summary, which is the only trace of the messages that
/// the earlier compaction covered.
#[must_use]
pub fn text(planned: &CutPlan) -> String {
    let count = planned.at - planned.from;
    let messages = if count == 1 { "message" } else { "messages" };
    let said = format!(
        "({count} {messages} were left out here without a summary, for want of room. They are in the transcript: claw-rebuild --ignore-compactions.)"
    );
    match planned.earlier.as_deref().map(str::trim) {
        Some(earlier) if !earlier.is_empty() => format!("{earlier}\n\n{said}"),
        _ => said,
    }
}
