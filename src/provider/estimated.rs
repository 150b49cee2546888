//! Decisions that need an estimate of the prompt: whether it fits, for a provider that would truncate it; what is known
//! about a request that was refused; and whether the provider truncated the prompt.

use crate::estimate::{self, Estimate, Method, Model};
use crate::messages::Message;
use crate::provider::ollama::truncated::{Cut, was_truncated};
use crate::provider::protocol::Protocol;
use crate::provider::refusal::{FailureClass, Known};
use crate::provider::{Failure, ModelRequest, Reply};
use crate::record::content::BlockKind;
use crate::usage::Counts;

/// Returns an estimate of the prompt's tokens. It is more likely too high than too low.
#[must_use]
pub fn prompt(request: &ModelRequest<'_, '_>) -> u64 {
    Estimate::of(to_estimate(request), Method::Script).tokens
}

/// Returns the tokens that a request may take: an estimate of the prompt, and the largest number in the answer.
#[must_use]
pub fn most(request: &ModelRequest<'_, '_>) -> Counts {
    Counts { input: prompt(request), output: request.max_tokens, ..Counts::default() }
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
    let Some(window) = dropping_window(protocol, request) else { return Ok(asked) };
    let prompt = prompt(request);
    let room = window.saturating_sub(prompt).min(asked);
    if room >= least.min(asked) {
        return Ok(room);
    }
    let text = format!("not sent: the prompt has about {prompt} tokens, the window {window}");
    let failure = Failure::new(FailureClass::Overflow, "preflight", text);
    Err(Failure { actual: Some(prompt), limit: Some(window), ..failure })
}

/// Returns what is known about a request with a body of `bytes`, for [`Failure::weigh`].
#[must_use]
pub fn known(request: &ModelRequest<'_, '_>, bytes: usize) -> Known {
    Known {
        prompt: Some(prompt(request)),
        window: request.window,
        bytes: u64::try_from(bytes).ok(),
        has_reply: request.messages.iter().any(|message| !message.is_from_user()),
        ..Known::default()
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
    let window = dropping_window(protocol, request);
    let cut = match window.filter(|_| !request.messages.iter().any(has_media)) {
        Some(window) => was_truncated(prompt, usage, window),
        None => Cut::No,
    };
    let read = usage.and_then(Counts::read).map_or(0, |counts| counts.prompt());
    let text = format!("the provider read {read} tokens of a prompt of about {prompt}");
    let failure = Failure::new(FailureClass::Overflow, "silent-truncation", text);
    (cut, Failure { status: Some(200), limit: request.window, ..failure })
}

/// Returns the window of a request if the server may silently drop what does not fit into it.
fn dropping_window(protocol: Protocol, request: &ModelRequest<'_, '_>) -> Option<u64> {
    request.window.filter(|_| protocol.api().default_window().is_some())
}

fn has_media(message: &Message<'_>) -> bool {
    message.content.blocks().iter().any(|block| {
        block.kind == BlockKind::Media || block.is_result() && block.raw.contains(r#""image""#)
    })
}
