//! A provider call with its retries.
//!
//! The caller supplies the [`Transport`] that sends, waits and tells the time. A request is sent again unchanged
//! only after a failure that may be temporary (rate limit, overload, server error, no usable answer), and once after an
//! answer with neither text nor tool calls. A request that fits except for `max_tokens` is sent again with a smaller
//! `max_tokens`. If a model seems to refuse something without which the request can be sent (a [`Feature`]), it is sent again
//! without that. No other request is repeated.

use crate::estimate::sizes::Sizes;
use crate::json::Object;
use crate::messages::Message;
use crate::provider::collect::Remaining;
use crate::provider::ollama::truncated::Cut;
use crate::provider::protocol::Protocol;
use crate::provider::reading::Reading;
use crate::provider::refusal::{EMPTY, FailureClass, Feature, Features, Known, MALFORMED, Rows};
use crate::provider::{
    FailedCall, Failure, ModelRequest, Reply, container, estimated, message_places, own_summary,
    plain,
};
use crate::record::content::{Block, Content, Role};
use crate::usage;
use std::cell::{Cell, OnceCell};

/// The maximum number of times that a paused turn is continued.
pub const MAX_PAUSES: usize = 10;
/// The smallest `max_tokens` that is worth a call, unless the caller asks for less.
const MIN_OUTPUT: u64 = 256;
/// The safety margin, in tokens, when `max_tokens` is computed from the numbers in a refusal.
const SLACK: u64 = 64;
/// The maximum number of times that `max_tokens` is lowered. A server that states a limit first for the output and then
/// for prompt and output together takes two.
const MAX_LOWERED: u32 = 3;
/// The pause before the first retry, in seconds, unless the provider asks for a wait. Each further pause is twice
/// as long. A random part of up to a quarter is subtracted.
const FIRST_PAUSE: f64 = 0.5;
/// The longest pause before a retry, in seconds, unless the provider asks for a wait.
const LONGEST_PAUSE: f64 = 8.0;

/// The retry policy.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The maximum number of retries after the first attempt.
    pub retries: u32,
    /// The longest wait, in seconds, that the provider may ask for. A longer one ends the call.
    pub max_wait: f64,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To get a reply.
    Reply,
    /// To count the tokens of the prompt.
    Count,
    /// To get the server's own summary of the messages.
    Summary,
}

/// The side effects of a call: sending, waiting, the clock and random numbers.
pub trait Transport {
    /// Sends a body and passes the answer to `reading` as it arrives.
    ///
    /// # Errors
    /// Returns a [`Failure`] if there was no answer or it ended early.
    fn send(
        &mut self,
        ask: Ask,
        request: &ModelRequest<'_, '_>,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure>;
    /// Returns the number of seconds left for the call, including retries and waits.
    fn left(&self) -> f64;
    /// Waits this many seconds.
    fn wait(&mut self, seconds: f64);
    /// Returns the time in Unix seconds.
    fn now(&self) -> f64;
    /// Returns a random number from 0 to 1, used to spread the retries of many processes.
    fn random(&mut self) -> f64;
    /// Reports a retry or a warning to the user.
    fn report(&mut self, text: &str);
    /// Stores that the model refuses something, in all requests or in those with the other feature, so that later requests do
    /// not contain it.
    fn learn(&mut self, refused: Feature, with: Option<Feature>);
}

/// A call: the request and how to make it.
#[derive(Clone, Copy, Debug)]
pub struct ModelCall<'c, 'r, 'a> {
    /// The purpose, other than to count.
    pub ask: Ask,
    /// The wire protocol.
    pub protocol: Protocol,
    /// The request.
    pub request: ModelRequest<'r, 'a>,
    /// The retry policy.
    pub patience: Patience,
    /// The user's additions to the failure table.
    pub rows: &'c Rows,
    /// The sizes of bodies that the endpoint is known to accept.
    pub sizes: Sizes,
    /// True to fail, and not just to warn, if the provider may have truncated the prompt.
    pub detect_truncation: bool,
}

impl ModelCall<'_, '_, '_> {
    /// Returns the body for the purpose of the call.
    #[must_use]
    pub fn body(&self) -> String {
        let ModelCall { protocol, request, .. } = self;
        let summary = || protocol.summary_body(request).filter(|_| self.ask == Ask::Summary);
        summary().unwrap_or_else(|| protocol.body(request))
    }
}

/// Calls the provider. If the provider pauses the turn, requests the rest up to [`MAX_PAUSES`] times; the returned
/// replies together are the turn. The model's text is passed to `show` as it arrives.
///
/// # Errors
/// Returns the failure of the last attempt and the part of the reply that was shown.
pub fn call(
    call: ModelCall<'_, '_, '_>,
    transport: &mut impl Transport,
    show: &mut dyn FnMut(&str),
) -> Result<Vec<Reply>, FailedCall> {
    let mut messages = call.request.messages.to_vec();
    let mut replies: Vec<Reply> = Vec::new();
    loop {
        // A paused turn goes on in its container.
        let container = replies.iter().rev().find_map(|reply| reply.container.as_deref());
        let container = container.and_then(container::id);
        let container = container.as_deref().or(call.request.container);
        let request = ModelRequest { messages: &messages, container, ..call.request };
        match one_reply(ModelCall { request, ..call }, transport, show) {
            Ok(reply) => replies.push(reply),
            Err(mut failed) => {
                replies.iter_mut().for_each(|reply| reply.interrupted = true);
                failed.shown.splice(0..0, replies);
                return Err(failed);
            }
        }
        let is_paused = replies.last().is_some_and(Reply::can_be_continued);
        if replies.len() > MAX_PAUSES || !is_paused {
            return Ok(replies);
        }
        messages.truncate(call.request.messages.len());
        messages.push(so_far(&replies));
    }
}

/// Joins replies into one assistant message, which the provider then continues.
fn so_far(replies: &[Reply]) -> Message<'static> {
    let blocks = replies.iter().flat_map(|reply| &reply.blocks);
    let blocks = blocks.filter_map(|raw| Block::parse(raw.clone()).ok()).collect();
    Message::new(Role::Assistant, Content::Blocks(blocks))
}

/// Calls the provider for one reply, with retries. The model's text is passed to `show`. Once text has been shown,
/// the request is not sent again, because text on a terminal cannot be undone.
///
/// # Errors
/// Returns the failure of the last attempt and the part of its reply that was shown.
fn one_reply(
    call: ModelCall<'_, '_, '_>,
    transport: &mut impl Transport,
    show: &mut dyn FnMut(&str),
) -> Result<Reply, FailedCall> {
    let ModelCall { protocol, patience, .. } = call;
    let without_calls = OnceCell::new();
    let (mut request, mut lowered) = (call.request, 0);
    let has_shown = Cell::new(false);
    let mut show = |text: &str| {
        has_shown.set(has_shown.get() || !text.is_empty());
        show(text);
    };
    request.max_tokens = estimated::room(protocol, &request, MIN_OUTPUT)?;
    let mut empty: Option<Reply> = None;
    let mut learned = Vec::new();
    let may_repeat = || !has_shown.get();
    let outcome = with_patience(patience, transport, may_repeat, |transport, failures| {
        loop {
            let call = ModelCall { request, ..call };
            let failed = match once(&call, failures, transport, &mut show) {
                Ok(reply) if reply.is_empty() => {
                    empty = Some(reply);
                    return Err(Failure::empty().into());
                }
                Ok(reply) => {
                    learned.drain(..).for_each(|(feature, with)| transport.learn(feature, with));
                    return Ok(reply);
                }
                Err(failed) if !has_shown.get() && lowered < MAX_LOWERED => failed,
                outcome => return outcome,
            };
            if let Some((feature, with)) = asked(&request).refused_by(&failed.failure) {
                let replacement = feature.replacement();
                transport.report(&format!("{}; trying again {replacement}", failed.failure));
                request.without.add(feature);
                learned.push((feature, with));
                if feature == Feature::Calls {
                    request.messages =
                        without_calls.get_or_init(|| plain::without_calls(request.messages));
                }
                continue;
            }
            let thought = protocol.thinking_budget(&request).unwrap_or_default();
            let Some(room) = output_room(&failed.failure, &request, thought + MIN_OUTPUT) else {
                return Err(failed);
            };
            transport.report(&format!("{}; trying again with --max-tokens {room}", failed.failure));
            request.max_tokens = room;
            lowered += 1;
        }
    });
    match (outcome, empty) {
        (Err(failed), Some(reply)) if failed.failure.rule == EMPTY => {
            no_content(&request, &call, reply)
        }
        // The empty answer is complete, whatever happened to the second attempt.
        (Err(failed), Some(first))
            if failed.failure.retryable || failed.failure.class == FailureClass::NotRecorded =>
        {
            Ok(first)
        }
        (outcome, _) => outcome,
    }
}

/// Returns the features that the request is sent with.
fn asked(request: &ModelRequest<'_, '_>) -> Features {
    let mut asked = Features::default();
    let features = request.features();
    features.iter().filter(|it| !request.without.has(*it)).for_each(|it| asked.add(it));
    asked
}

/// Returns an answer that has neither text nor calls, or the failure that is its likely cause: some servers answer like
/// this if the prompt fills the window, or the body is too large.
fn no_content(
    request: &ModelRequest<'_, '_>,
    call: &ModelCall<'_, '_, '_>,
    reply: Reply,
) -> Result<Reply, FailedCall> {
    let body = call.protocol.body(request);
    let known = estimated::known(request, body.len());
    let known = Known { sizes: call.sizes, is_bare: true, failures: 2, ..known };
    let failure = Failure::empty().weigh(&known);
    match failure.class {
        FailureClass::Broken => Ok(reply),
        _ => Err(failure.into()),
    }
}

/// Repeats an attempt until it succeeds, it fails for a reason that a retry cannot fix, no retries are left, the
/// next wait would be too long, or `may_repeat` returns false. `attempt` gets the number of failures so far.
fn with_patience<T, W: Transport>(
    patience: Patience,
    transport: &mut W,
    may_repeat: impl Fn() -> bool,
    mut attempt: impl FnMut(&mut W, u32) -> Result<T, FailedCall>,
) -> Result<T, FailedCall> {
    let mut tries = 0;
    loop {
        let failed = match attempt(transport, tries) {
            Err(failed) if may_repeat() => failed,
            outcome => return outcome,
        };
        let failure = &failed.failure;
        let Some(pause) = pause(failure, tries, patience, transport) else { return Err(failed) };
        transport.report(&format!("{failure}; trying again in {pause:.1} s"));
        transport.wait(pause);
        tries += 1;
    }
}

/// Makes one attempt, after `failures` failures of the same request.
fn once(
    call: &ModelCall<'_, '_, '_>,
    failures: u32,
    transport: &mut impl Transport,
    show: &mut dyn FnMut(&str),
) -> Result<Reply, FailedCall> {
    let ModelCall { protocol, request, rows, .. } = call;
    let mut reading = Reading::new(*protocol, rows, show);
    let body = call.body();
    let sent = transport.send(call.ask, request, &body, &mut reading);
    let is_bare = reading.is_bare();
    let reply = reading.finish(transport.now(), sent);
    let reply = reply.map_err(|FailedCall { failure, shown }| {
        let known = Known {
            sizes: call.sizes,
            is_bare,
            failures: failures + 1,
            ..estimated::known(request, body.len())
        };
        let messages = own_summary::applied(request);
        let sent = ModelRequest { messages: &messages, ..*request };
        let failure = message_places::located(*protocol, &sent, failure.weigh(&known));
        FailedCall { failure, shown }
    })?;
    match estimated::truncated(*protocol, request, &reply) {
        (Cut::No, _) => Ok(reply),
        (Cut::Perhaps, failure) if !call.detect_truncation => {
            transport.report(&format!("{}; it may have dropped the rest", failure.message));
            Ok(reply)
        }
        (_, failure) => Err(failure.into()),
    }
}

/// Returns the body of the first attempt.
///
/// # Errors
/// Returns a [`Failure`] if the request would not be sent.
pub fn first_body(call: &ModelCall<'_, '_, '_>) -> Result<String, Failure> {
    let max_tokens = estimated::room(call.protocol, &call.request, MIN_OUTPUT)?;
    let request = ModelRequest { max_tokens, ..call.request };
    Ok(ModelCall { request, ..*call }.body())
}

/// Asks the provider for the number of tokens in the prompt.
///
/// # Errors
/// Returns the [`Failure`] of the last attempt.
pub fn count(call: &ModelCall<'_, '_, '_>, transport: &mut impl Transport) -> Result<u64, Failure> {
    let ModelCall { protocol, request, patience, rows, .. } = call;
    let body = protocol.count_body(request);
    let counted = with_patience(
        *patience,
        transport,
        || true,
        |transport, _| {
            let (mut show, now) = (|_: &str| {}, transport.now());
            let mut reading = Reading::new(*protocol, rows, &mut show);
            let sent = transport.send(Ask::Count, request, &body, &mut reading);
            if reading.remaining() != Remaining::None {
                sent?;
            }
            Ok(counted(&reading, now, rows)?)
        },
    );
    counted.map_err(|failed| failed.failure)
}

/// Returns the number of tokens in the answer to a counting request.
fn counted(reading: &Reading<'_>, now: f64, rows: &Rows) -> Result<u64, Failure> {
    let (answer, _) = reading.so_far();
    let text = String::from_utf8_lossy(&answer.body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let object = Object::parse(text).ok().filter(|_| answer.is_success());
    let tokens = object.as_ref().and_then(counted_tokens);
    tokens.ok_or_else(|| match answer.is_success() {
        true => Failure::broken(answer.status, "the answer has no token count"),
        false => answer.refusal(&answer.body, now, rows),
    })
}

/// Returns the number under its name in the Messages API and Responses, or in Gemini's API.
fn counted_tokens(answer: &Object<'_>) -> Option<u64> {
    ["input_tokens", "totalTokens"].into_iter().find_map(|name| usage::count(answer.get(name)?))
}

/// Returns the `max_tokens` with which a refused request would fit, if a smaller `max_tokens` is enough. It is at least
/// `least`, unless the caller asked for less.
fn output_room(failure: &Failure, request: &ModelRequest<'_, '_>, least: u64) -> Option<u64> {
    let asked = request.max_tokens;
    let room = match failure.class {
        FailureClass::Overflow => {
            // If the refusal does not count `max_tokens`, the prompt alone is too long.
            failure.requested_output?;
            room_beside_prompt(failure, request)?
        }
        FailureClass::OutputCap => {
            let cap = failure.output_cap?;
            // If the cap is the window, the prompt takes its part of it.
            match failure.limit {
                Some(_) => room_beside_prompt(failure, request)?.min(cap),
                None => cap,
            }
        }
        _ => return None,
    };
    (room >= least.min(asked) && room < asked).then_some(room)
}

/// Returns the tokens that the limit in a refusal leaves for the answer. If the server did not count the whole prompt,
/// the estimate takes the place of its count, with a twentieth for its error.
fn room_beside_prompt(failure: &Failure, request: &ModelRequest<'_, '_>) -> Option<u64> {
    let counted = failure.actual.filter(|_| !failure.actual_is_floor);
    let prompt = counted.unwrap_or_else(|| {
        let prompt = estimated::prompt(request);
        prompt.saturating_add(prompt / 20)
    });
    failure.limit?.checked_sub(prompt)?.checked_sub(SLACK)
}

/// Returns the wait before the next attempt in seconds, or `None` if there must not be one.
fn pause(
    failure: &Failure,
    tries: u32,
    patience: Patience,
    transport: &mut impl Transport,
) -> Option<f64> {
    // These answers are paid for.
    let is_paid = [EMPTY, MALFORMED].contains(&&*failure.rule);
    let most = if is_paid { patience.retries.min(1) } else { patience.retries };
    if !failure.retryable || tries >= most {
        return None;
    }
    let pause = match failure.retry_after {
        Some(seconds) if seconds > patience.max_wait => return None,
        Some(seconds) => seconds,
        None => {
            let pause = (FIRST_PAUSE * 2f64.powi(tries.min(10).cast_signed())).min(LONGEST_PAUSE);
            pause * (1.0 - 0.25 * transport.random())
        }
    };
    (pause < transport.left()).then_some(pause)
}

#[cfg(test)]
mod tests;
