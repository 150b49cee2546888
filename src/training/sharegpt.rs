//! Examples in ShareGPT's form.
//!
//! LLaMA-Factory (ff6d4d1, 2026-08-18, `src/llamafactory/data/converter.py` and `formatter.py`) requires that `human` or
//! `observation` alternate with `gpt` or `function_call`, beginning with the former. The value of `function_call` is the JSON
//! of one call or of a list of calls, so text beside calls has no place. `tools` is JSON in a string. Axolotl (067b021,
//! 2026-07-24, `src/axolotl/prompt_strategies/chat_template.py`) maps `human` and `gpt` to roles of a chat template, and
//! passes other roles on unchanged.

use super::{LeftOut, Part, Reply, Turn, tools};
use crate::json::write::{Members, list, strings};

/// Returns the example as a line.
pub fn line(turns: &[Turn], left_out: &mut LeftOut) -> String {
    let mut messages = Vec::new();
    let mut put = |from: &str, value: &str| {
        messages.push(Members::new().string("from", from).string("value", value).into_json());
    };
    for turn in turns {
        put("human", &prompt(&turn.prompt, left_out));
        for reply in &turn.replies {
            if reply.calls.is_empty() {
                put("gpt", &reply.text);
                continue;
            }
            if !reply.text.trim().is_empty() {
                left_out.add("text of the model before calls");
            }
            put("function_call", &calls(reply));
            put("observation", &results(reply));
        }
    }
    let definitions = tools::definitions(turns);
    let members = Members::new().list("conversations", messages);
    members.optional(Members::string, "tools", definitions.as_deref()).into_line()
}

fn prompt(parts: &[Part], left_out: &mut LeftOut) -> String {
    let mut texts = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text.as_str()),
            Part::Image(_) => left_out.add("images"),
        }
    }
    texts.join("\n\n")
}

/// Returns the calls as JSON: an object, or a list of them.
fn calls(reply: &Reply) -> String {
    let calls: Vec<String> = reply
        .calls
        .iter()
        .map(|call| {
            Members::new().string("name", &call.name).raw("arguments", &call.input).into_json()
        })
        .collect();
    match calls.as_slice() {
        [only] => only.clone(),
        _ => list(calls),
    }
}

/// Returns the results: the text of one, or a JSON list of texts.
fn results(reply: &Reply) -> String {
    let results: Vec<&str> =
        reply.calls.iter().map(|call| call.result.as_deref().unwrap_or_default()).collect();
    match results.as_slice() {
        [only] => (*only).to_owned(),
        _ => strings(results),
    }
}
