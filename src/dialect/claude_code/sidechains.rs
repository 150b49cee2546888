//! The conversations of subagents inside the file of the session, as versions before 2.0.60 or so wrote them.
//!
//! Their records have `isSidechain`, and the first one has the prompt of the call as its content, which is all that links them.

use crate::dialect::blocks::text;
use crate::dialect::claude_code::record::Record;
use crate::dialect::source::SourceLine;
use crate::input::Input;
use crate::input::lines::{Lines, ValueLine};
use crate::json;
use crate::json::outline::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The conversation of a subagent.
struct Sidechain {
    /// The prompt with which it begins.
    prompt: String,
    /// The id of its last record.
    leaf: String,
}

/// Returns the ids of the calls that began the conversations of subagents in a file, and the ids of the last records of these
/// conversations. If several calls have the same prompt, they are in the order of their conversations.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn of_calls(input: &Input) -> anyhow::Result<Vec<(String, String)>> {
    let (mut chains, mut of_record) = (Vec::<Sidechain>::new(), HashMap::<String, usize>::new());
    let mut calls = Vec::new();
    let mut lines = Lines::with_values(input);
    while let Some(mut batch) = lines.batch()? {
        while let Some((place, line)) = batch.next_value() {
            let ValueLine::Object(value, _) = line else { continue };
            let record = Record::of(SourceLine { value, place, at: place.offset });
            let content = record.message.and_then(|message| message.content);
            if !record.is_sidechain {
                calls.extend(content.into_iter().flat_map(prompts));
                continue;
            }
            let Some(id) = record.source().id.map(Cow::into_owned) else { continue };
            let parent = record.parent.and_then(json::string);
            let index = match parent.and_then(|parent| of_record.get(&*parent).copied()) {
                Some(index) => index,
                None => {
                    let prompt = content.map(text).unwrap_or_default();
                    chains.push(Sidechain { prompt, leaf: String::new() });
                    chains.len() - 1
                }
            };
            chains[index].leaf.clone_from(&id);
            of_record.insert(id, index);
        }
    }
    let chain = |(call, prompt): (String, String)| {
        let index = chains.iter().position(|chain| chain.prompt == prompt)?;
        Some((call, chains.remove(index).leaf))
    };
    Ok(calls.into_iter().filter_map(chain).collect())
}

/// Returns the ids and prompts of the calls in a message that have a prompt.
fn prompts(content: Value<'_>) -> Vec<(String, String)> {
    let call = |block: Value<'_>| {
        let prompt = block.object("input")?.string("prompt")?.into_owned();
        Some((block.string("id")?.into_owned(), prompt))
    };
    content.elements().into_iter().flatten().filter_map(call).collect()
}
