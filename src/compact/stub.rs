//! What stands for a part of which there is no summary: it says so, and how to read it.

use crate::compact::CutPlan;

/// The text for `planned`. What an earlier summary says stays: it is all that is known of its part.
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
