//! Compares the messages of two transcripts without keeping them in memory.

use crate::report::{Case, Outcome};
use clawutils::input::Input;
use clawutils::messages::Message;
use clawutils::messages::rebuild::{self, RebuildOptions};
use clawutils::show::edit;
use sha2::{Digest, Sha256};

/// The maximum number of characters of a message that are compared line by line.
const MAX_CHARS: usize = 20_000;
/// The maximum number of lines in the detail of a case.
const MAX_LINES: usize = 50;

/// Compares the messages that rebuild makes from two transcripts.
///
/// # Errors
/// Fails if one cannot be read.
pub fn case(old: &Input, new: &Input) -> anyhow::Result<Case> {
    let (before, after) = (hashes(old)?, hashes(new)?);
    if before == after {
        return Ok(Case::new("messages", Outcome::Passed, "same"));
    }
    let first = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let [old, new] = [old, new].map(|input| message_at(input, first));
    let lines = edit::compare(&old?, &new?);
    let mut detail = String::new();
    for line in lines.iter().take(MAX_LINES) {
        detail.push_str(&[line.kind.sign(), &line.text, "\n"].concat());
    }
    if lines.len() > MAX_LINES {
        detail.push_str("…\n");
    }
    let message = format!(
        "first difference in message {} ({} messages -> {})",
        first + 1,
        before.len(),
        after.len()
    );
    Ok(Case { detail: Some(detail), ..Case::new("messages", Outcome::Failed, message) })
}

/// Returns the hash of each message.
fn hashes(input: &Input) -> anyhow::Result<Vec<[u8; 16]>> {
    let mut hashes = Vec::new();
    each(input, |message| {
        let hash = Sha256::digest(message.to_json());
        hashes.push(hash.first_chunk().copied().unwrap_or_default());
    })?;
    Ok(hashes)
}

/// Returns the message with this index as JSON, broken into lines for the comparison; an empty string if there is none.
fn message_at(input: &Input, wanted: usize) -> anyhow::Result<String> {
    let (mut index, mut text) = (0, String::new());
    each(input, |message| {
        if index == wanted {
            // Break lines at escaped line feeds and between blocks, so that text is compared line by line.
            let json = message.to_json().replace("\\n", "\n").replace("},{", "},\n{");
            text = json.chars().take(MAX_CHARS).collect();
        }
        index += 1;
    })?;
    Ok(text)
}

fn each(input: &Input, mut take: impl FnMut(&Message<'_>)) -> anyhow::Result<()> {
    let inputs = std::slice::from_ref(input);
    rebuild::stream(inputs, &RebuildOptions::default(), false, |message| {
        take(&message);
        Ok(())
    })?;
    Ok(())
}
