//! Laws of tool results that are shortened repeatedly: each record describes the original result, rebuilding
//! with the records gives the messages that `truncate` produced, and retracting the records restores the
//! original messages. The request is within the budget, if that is possible.

use super::any::{Law, lines, rebuild, same};
use super::choices::Choices;
use super::views::File;
use clawutils::estimate::{Estimate, Gauge, Method, Request};
use clawutils::record::digest;
use clawutils::truncate::{TruncateOptions, truncate};
use serde_json::{Value, json};

/// Pieces of text that are awkward to cut: line ends, characters of several bytes, blank text, and text that
/// looks like a truncation marker.
const PIECES: [&str; 9] = [
    "some words on a line\n",
    "word ",
    "\n",
    "a line with its end\r\n",
    "日本語の文字",
    "   ",
    "[... 40 of 90 bytes (1 lines) left out, sha256 0123456789abcdef ...]",
    "\n[... image of 52 bytes left out, sha256 0123456789abcdef ...]\n",
    "👩‍👩‍👧",
];

/// Returns random content for a result: a string, or a list of text blocks and images in any order.
fn content(choices: &mut Choices) -> Value {
    let mut text = |most: usize| -> String {
        let unit: String = (0..1 + choices.below(4)).map(|_| choices.of_these(&PIECES)).collect();
        unit.repeat(1 + choices.below(most))
    };
    let (whole, parts) = (text(30), [text(8), text(3), text(1), text(8)]);
    if choices.one_in(4) {
        return whole.into();
    }
    let count = 1 + choices.below(12);
    let block = |_| match choices.one_in(8) {
        true => {
            json!({"type": "image", "source": {"type": "url", "url": format!("https://example.org/{}", choices.below(3))}})
        }
        false => {
            json!({"type": "text", "text": choices.of_these(&[0, 1, 2, 3].map(|at| &*parts[at]))})
        }
    };
    (0..count).map(block).collect()
}

/// Returns the original text that the truncation records of a result describe: a string, or the non-blank text blocks
/// of a list, joined.
fn text_of(content: &Value) -> String {
    let block_text = |block: &Value| {
        block["text"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
    };
    match content {
        Value::Array(blocks) => blocks.iter().filter_map(block_text).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// Shortens results with random content several times, and then retracts all truncation records.
pub fn repeatedly(seed: u64) -> Law {
    let choices = &mut Choices::seeded(seed);
    let mut file = File::new(Vec::new());
    let contents: Vec<Value> = (0..1 + choices.below(3)).map(|_| content(choices)).collect();
    file.append(r#"{"type":"user","content":"Look."}"#)?;
    for (index, content) in contents.iter().enumerate() {
        let id = format!("call_{index}");
        let call = json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": {}});
        file.append(&call.to_string())?;
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        file.append(&result.to_string())?;
    }
    let before = lines(&rebuild(&file.bytes)?.messages);
    for step in 0..4 {
        shorten(&mut file, choices, &contents).map_err(|why| format!("step {step}: {why}"))?;
    }
    for view in file.views.clone() {
        file.append(&json!({"type": "retract", "target": view}).to_string())?;
    }
    same("all records retracted", &lines(&rebuild(&file.bytes)?.messages), &before)
}

fn shorten(file: &mut File, choices: &mut Choices, contents: &[Value]) -> Law {
    let mut messages = rebuild(&file.bytes)?.messages;
    let request = Request { messages: &messages, ..Request::default() };
    let gauge = Gauge::new(request, None);
    let budget = gauge.tokens(request) * (3 + choices.below(7) as u64) / 10;
    let limit = Some(200 + choices.below(800)).filter(|_| choices.one_in(2));
    let options = TruncateOptions {
        max_chars: limit.unwrap_or(usize::MAX),
        floor_chars: choices.below(300),
        head_ratio: choices.of_these(&[0.0, 0.3, 0.7, 1.0]),
        min_gain: 0,
        budget,
    };
    let mut least = messages.clone();
    let outcome = truncate(&mut messages, Request::default(), gauge, options);
    // A request that is still over the budget is as small as it can be.
    let none = TruncateOptions { budget: 0, ..options };
    let least = truncate(&mut least, Request::default(), gauge, none).after;
    if outcome.after > budget && outcome.after > least {
        return Err(format!("{} tokens, budget {budget}, at least {least}", outcome.after));
    }
    for record in &outcome.records {
        let parsed: Value = serde_json::from_str(record).map_err(|error| error.to_string())?;
        let index = parsed["tool_use_id"].as_str().and_then(|id| id[5..].parse().ok()).unwrap_or(0);
        let whole = text_of(contents.get::<usize>(index).ok_or("a truncation of an unknown call")?);
        if parsed["type"] == "omission" {
            file.append_view(record)?;
            continue;
        }
        if parsed["bytes"] != whole.len() || parsed["sha256"] != digest(&whole) {
            return Err(format!("{record} does not describe {whole:?}"));
        }
        file.append_view(record)?;
    }
    let rebuilt = rebuild(&file.bytes)?;
    if let Some(finding) = rebuilt.findings.first() {
        return Err(finding.to_string());
    }
    same("rebuilt with the records", &lines(&rebuilt.messages), &lines(&messages))?;
    let request = Request { messages: &rebuilt.messages, ..Request::default() };
    let tokens = Estimate::of(request, Method::Script).tokens;
    // With a character limit, the marker may cost more tokens than the cut saves.
    let is_smaller = limit.is_some() || outcome.after <= outcome.before;
    match tokens == outcome.after && is_smaller {
        true => Ok(()),
        false => Err(format!("{tokens} tokens instead of {outcome:?}")),
    }
}
