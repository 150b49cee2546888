//! Decisions that need an estimate of the prompt: whether it fits, for a provider that would truncate it; whether an
//! ambiguous refusal is an overflow; and whether the provider truncated the prompt.

use crate::estimate::{self, Estimate, Method, Model};
use crate::messages::Message;
use crate::provider::refusal::FailureClass;
use crate::provider::ollama::{self, Cut};
use crate::provider::protocol::Protocol;
use crate::provider::{Failure, ModelRequest, Reply};
use crate::record::content::BlockKind;
use crate::usage::Counts;

/// The share of the window above which a prompt counts as nearly filling the window. If such a prompt is refused
/// without a body, the refusal is an overflow: Cerebras reports overflows that way.
const NEARLY_FULL: f64 = 0.8;

/// Returns an estimate of the prompt's tokens. It is more likely too high than too low.
#[must_use]
pub fn prompt(request: &ModelRequest<'_, '_>) -> u64 {
    Estimate::of(to_estimate(request), Method::Script).tokens
}

/// Returns the parts of a request that the estimator needs.
pub(super) fn to_estimate<'r, 'a>(request: &ModelRequest<'r, 'a>) -> estimate::Request<'r, 'a> {
    let ModelRequest { messages, system, tools, model, .. } = *request;
    estimate::Request { messages, system, tools, model: Some(Model::named(model)) }
}

/// Returns a deliberately low estimate of the tokens that are sent, for decisions where an overestimate does harm. Some
/// models count less for message overhead and repetitive text than the estimator does, and thinking is not sent.
fn least(request: &ModelRequest<'_, '_>) -> u64 {
    let request = to_estimate(request);
    let [script, chars4] =
        [Method::Script, Method::Chars4].map(|method| Estimate::of(request, method).unmeasured);
    script.saturating_sub(estimate::thinking(request)).min(chars4)
}

/// Returns the `max_tokens` to request: the requested value, or for Ollama what the window leaves if that is less.
/// Old versions of Ollama silently drop part of a prompt that does not fit, so the check must happen before the call.
///
/// # Errors
/// Returns an overflow failure if the window leaves less than both `least` tokens and the requested value.
pub fn room(
    protocol: Protocol,
    request: &ModelRequest<'_, '_>,
    least: u64,
) -> Result<u64, Failure> {
    let asked = request.max_tokens;
    let (Protocol::Ollama, Some(window)) = (protocol, request.window) else { return Ok(asked) };
    let prompt = prompt(request);
    let room = window.saturating_sub(prompt).min(asked);
    if room >= least.min(asked) {
        return Ok(room);
    }
    let text = format!("not sent: the prompt has about {prompt} tokens, the window {window}");
    let failure = Failure::new(FailureClass::Overflow, "preflight", text);
    Err(Failure { actual: Some(prompt), limit: Some(window), ..failure })
}

/// Corrects the class of a refusal with the help of the estimate. A 400 or 413 without a body (`is_empty`) is an
/// overflow if the prompt nearly fills the window. A refusal by rule T2, which says that the prompt is too long for the
/// subscription, becomes a billing failure unless the prompt is close to the subscription's limit.
#[must_use]
pub fn reconsider(failure: Failure, is_empty: bool, request: &ModelRequest<'_, '_>) -> Failure {
    let is_bare = is_empty && matches!(failure.status, Some(400 | 413));
    let over = |window: u64| prompt(request) as f64 > NEARLY_FULL * window as f64;
    if is_bare && let Some(window) = request.window.filter(|window| over(*window)) {
        let (class, rule) = (FailureClass::Overflow, "empty-body".into());
        return Failure { class, rule, limit: Some(window), retryable: false, ..failure };
    }
    match failure.limit {
        Some(limit) if failure.rule == "T2" && !over(limit) => {
            let (class, rule) = (FailureClass::Billing, "T2-short-prompt".into());
            Failure { class, rule, limit: None, retryable: false, ..failure }
        }
        _ => failure,
    }
}

/// Checks an answer for signs that the provider silently truncated the prompt. Returns how likely that is, and the
/// failure to report if the caller decides that the prompt was truncated.
///
/// Only Ollama's counts allow the check. Prompts with images are not checked, because their size in tokens is unknown.
#[must_use]
pub fn truncated(
    protocol: Protocol,
    request: &ModelRequest<'_, '_>,
    reply: &Reply,
) -> (Cut, Failure) {
    let prompt = least(request);
    let usage = reply.usage.as_deref();
    let cut = match (protocol, request.window) {
        (Protocol::Ollama, Some(window)) if !request.messages.iter().any(has_media) => {
            ollama::was_truncated(prompt, usage, window)
        }
        _ => Cut::No,
    };
    let read = usage.and_then(Counts::read).map_or(0, |counts| counts.prompt());
    let text = format!("the provider read {read} tokens of a prompt of about {prompt}");
    let failure = Failure::new(FailureClass::Overflow, "silent-truncation", text);
    (cut, Failure { status: Some(200), limit: request.window, ..failure })
}

fn has_media(message: &Message<'_>) -> bool {
    message.content.blocks().iter().any(|block| {
        block.kind == BlockKind::Media || block.is_result() && block.raw.contains(r#""image""#)
    })
}
