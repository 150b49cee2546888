//! A built-in provider: deterministic, without a network or a key.
//!
//! It refuses a prompt that exceeds its window, with the error message of a real provider and the token counts. It
//! answers a summary request with a digest of the quoted conversation, as JSON if the request asks for that, and
//! everything else with the number of messages and the last line of the prompt. This is enough to try claw-turn and its
//! guard against overflows without an account.

use crate::estimate::{self, Estimate, Method, Model};
use crate::json::write::Members;
use crate::messages::Message;
use crate::provider::call::Ask;
use crate::provider::estimated::to_estimate;
use crate::provider::{Answer, ModelRequest};
use crate::record::content::Block;

/// The default window in tokens, for models that are not in the table of models.
pub const WINDOW: u64 = 200_000;

/// Answers a request, or counts its tokens. `window` is the maximum size of prompt and answer together, in estimated
/// tokens.
#[must_use]
pub fn answer(ask: Ask, request: &ModelRequest<'_, '_>, window: u64) -> Answer {
    let input = Estimate::of(to_estimate(request), Method::Script).unmeasured;
    if ask == Ask::Count {
        let body = Members::new().number("input_tokens", input).into_json();
        return Answer { status: 200, headers: Vec::new(), body: body.into_bytes() };
    }
    if input > window {
        return refuse(&format!("prompt is too long: {input} tokens > {window} maximum"));
    }
    if input + request.max_tokens > window {
        let output = request.max_tokens;
        return refuse(&format!(
            "input length and `max_tokens` exceed context limit: {input} + {output} > {window}, \
             decrease input length or `max_tokens` and try again"
        ));
    }
    let family = Model::named(request.model).family;
    let tokens = |text: &str| estimate::tokens_of(text, family);
    let fits = |text: &str| tokens(text) <= request.max_tokens;
    let text = reply(request.messages, fits);
    let (text, stop_reason) = cut(&text, fits);
    let output = tokens(&text);
    let body = Members::new()
        .string("id", "msg_offline")
        .string("type", "message")
        .string("role", "assistant")
        .list("content", [&*Block::from_text(&text).raw])
        .string("model", request.model)
        .string("stop_reason", stop_reason)
        .object("usage", |it| it.number("input_tokens", input).number("output_tokens", output))
        .into_json();
    Answer { status: 200, headers: Vec::new(), body: body.into_bytes() }
}

fn refuse(message: &str) -> Answer {
    let error = |it: Members| it.string("type", "invalid_request_error").string("message", message);
    let body = Members::of_type("error").object("error", error).into_json();
    Answer { status: 400, headers: Vec::new(), body: body.into_bytes() }
}

/// Returns the text of the answer. `fits` returns true if its argument is within `max_tokens` by estimate.
fn reply(messages: &[Message<'_>], fits: impl Fn(&str) -> bool) -> String {
    let last = messages.iter().rev().find(|message| message.is_from_user());
    let prompt = last.map(|message| message.content.text()).unwrap_or_default();
    match prompt.split_once("\n<conversation ") {
        Some((asked, quoted)) if messages.len() == 1 => {
            let lines = digest(quoted);
            let write = |most: usize| match asked.contains("\"open_questions\"") {
                true => checkpoint(&lines[..most]),
                false => summary(&lines[..most]),
            };
            // Take the text with the most lines that fits.
            let mut texts = (0..=lines.len()).rev().map(write);
            texts.find(|text| fits(text)).unwrap_or_default()
        }
        _ => {
            let line = prompt.lines().next_back().unwrap_or_default();
            let line: String = line.chars().take(200).collect();
            let plural = if messages.len() == 1 { "" } else { "s" };
            format!("Reply to {} message{plural}: {line}", messages.len())
        }
    }
}

fn summary(lines: &[String]) -> String {
    ["In short:"].into_iter().chain(lines.iter().map(String::as_str)).collect::<Vec<_>>().join("\n")
}

/// Returns a summary as the JSON object that a checkpoint request asks for.
fn checkpoint(lines: &[String]) -> String {
    let topics = lines.iter().filter_map(|line| line.strip_prefix("- user: ")).take(3);
    Members::new()
        .string("summary", &summary(lines))
        .strings("topics", topics)
        .list("key_decisions", [""; 0])
        .list("open_questions", [""; 0])
        .into_json()
}

/// Returns a line for each of the first eleven quoted messages that have text: the title and the first 60 characters
/// of the first line that is not blank.
fn digest(quoted: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut title = "";
    for line in quoted.lines() {
        match line.strip_prefix("  ") {
            None => title = line.trim_end_matches(':'),
            Some(text) if !title.is_empty() && !text.trim().is_empty() => {
                let text: String = text.chars().take(60).collect();
                lines.push(format!("- {title}: {text}"));
                title = "";
            }
            Some(_) => {}
        }
    }
    lines.truncate(11);
    lines
}

/// Truncates an answer after the last word that `fits`. Also returns the stop reason.
fn cut(text: &str, fits: impl Fn(&str) -> bool) -> (String, &'static str) {
    if fits(text) {
        return (text.to_owned(), "end_turn");
    }
    let mut kept = String::new();
    for word in text.split_inclusive(' ') {
        if !fits(&format!("{kept}{word}")) {
            break;
        }
        kept.push_str(word);
    }
    (kept, "max_tokens")
}
