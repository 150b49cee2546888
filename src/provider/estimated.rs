//! What only our own estimate can tell: whether a prompt fits where the provider would not say so, and
//! what a refusal without words, or an answer to half of a prompt, means.

use crate::estimate::{self, Estimate, Method};
use crate::messages::Message;
use crate::provider::failure::FailureClass;
use crate::provider::ollama::{self, Cut};
use crate::provider::protocol::Protocol;
use crate::provider::{Failure, ModelRequest, Reply};
use crate::record::content::BlockKind;
use crate::usage::Counts;

/// From this share of the window on a refusal without words means that the prompt does not fit
/// (Cerebras answers so).
const NEARLY_FULL: f64 = 0.8;

/// The prompt's tokens by our own count, which is rather too high than too low.
#[must_use]
pub fn prompt(request: &ModelRequest<'_, '_>) -> u64 {
    Estimate::of(to_estimate(request), Method::Script).tokens
}

/// The parts of a request that count.
pub(super) fn to_estimate<'r, 'a>(request: &ModelRequest<'r, 'a>) -> estimate::Request<'r, 'a> {
    let ModelRequest { messages, system, tools, model, .. } = *request;
    estimate::Request { messages, system, tools, model: Some(model) }
}

/// The least tokens that what is sent of the prompt can have, to go by where too high a number does harm.
/// Fixed costs and repetitive text weigh less on some models than we count, and thinking is not sent.
fn least(request: &ModelRequest<'_, '_>) -> u64 {
    let sent = |method| {
        let estimate = Estimate::of(to_estimate(request), method);
        estimate.unmeasured.saturating_sub(estimate.kinds.thinking)
    };
    sent(Method::Script).min(sent(Method::Chars4))
}

/// The room for the answer that the window leaves. Ollama takes what does not fit and drops something
/// without a word, so there it has to be known before.
///
/// # Errors
/// The failure that it should have been, if the prompt leaves less than `least` tokens.
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
    let text = format!("the prompt has about {prompt} tokens, the window {window}; it is not sent");
    let failure = Failure::new(FailureClass::Overflow, "preflight", text);
    Err(Failure { actual: Some(prompt), limit: Some(window), ..failure })
}

/// A refusal with a second thought: one without a body, where the window is nearly full, is an overflow;
/// and a gate for long prompts that was shut to a short one is the account's.
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

/// Whether the provider cut something away from the prompt without a word, and the failure that the answer
/// is then.
///
/// Ollama's counts tell, and images are left out of this: how many tokens they are nobody knows.
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
