//! OpenClaw's layout of sessions: `agents/AGENT/sessions/ID.jsonl`, with an index by key beside the transcripts.
//!
//! These files are only read: OpenClaw writes them, and an index or a record of ours would damage them.

use super::SessionEntry;
use crate::json::Object;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// The name of the index in a directory of sessions.
const INDEX: &str = "sessions.json";

/// Returns true if `workspace` has sessions in OpenClaw's layout.
#[must_use]
pub fn is_here(workspace: &Path) -> bool {
    let agents = std::fs::read_dir(workspace.join("agents")).into_iter().flatten().flatten();
    agents.into_iter().any(|agent| agent.path().join("sessions").join(INDEX).is_file())
}

/// Completes the entries of a directory of sessions from its index. A session that the index does not name keeps the
/// data from its file.
pub fn complete(sessions: &Path, entries: &mut [SessionEntry]) {
    let text = std::fs::read_to_string(sessions.join(INDEX)).unwrap_or_default();
    let Ok(index) = Object::parse(text.trim()) else { return };
    let by_id: HashMap<String, (String, Option<u64>)> = index
        .members()
        .filter_map(|member| {
            let row = Object::parse(member.value).ok()?;
            let id = row.string("sessionId").map(Cow::into_owned)?;
            Some((id, (member.name().into_owned(), row.number("updatedAt"))))
        })
        .collect();
    for entry in entries {
        let Some((key, updated)) = by_id.get(&entry.id) else { continue };
        entry.key.clone_from(key);
        let micros = updated.and_then(|millis| i64::try_from(millis.checked_mul(1000)?).ok());
        entry.active = micros.unwrap_or(entry.active);
    }
}
