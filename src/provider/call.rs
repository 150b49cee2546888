//! One call, to its end: send, read, and try again where that can help.
//!
//! What moves the bytes and what waits are passed in. A request is sent again unchanged only when the
//! provider could not take it (rate limit, overload, a server that failed, no answer); one that does
//! not fit only because of the room for its answer is sent once more with less room; nothing else is
//! ever repeated.

use crate::exit::Exit;
use crate::json::Object;
use crate::messages::Message;
use crate::provider::collect::Rest;
use crate::provider::failure::Rows;
use crate::provider::ollama::Cut;
use crate::provider::protocol::Protocol;
use crate::provider::reading::Reading;
use crate::provider::{FailedCall, Failure, ModelRequest, Reply, estimated};
use crate::record::content::{Block, Content, Role};
use std::cell::Cell;

/// The most times that a turn is continued after the provider paused it.
pub const MOST_PAUSES: usize = 10;
/// The least room for an answer that is worth a call, in tokens.
const LEAST_OUTPUT: u64 = 256;
/// What is kept free, in tokens, when the room for the answer is computed from a refusal's numbers.
const SLACK: u64 = 64;
/// The first pause when the provider names none, in seconds; each further one is twice as long.
const FIRST_PAUSE: f64 = 0.5;
/// The longest pause when the provider names none, in seconds.
const LONGEST_PAUSE: f64 = 8.0;

/// How often and how long to try.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The most further tries after the first.
    pub retries: u32,
    /// The longest single wait that the provider may ask for, in seconds.
    pub max_wait: f64,
}

/// What is asked with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A reply.
    Reply,
    /// How many tokens it has.
    Count,
}

/// What a call needs from outside: sending, waiting, time and chance.
pub trait Transport {
    /// Sends a body and gives the answer to `reading` as it comes.
    ///
    /// # Errors
    /// A [`Failure`] when there was no answer, or it ended too early.
    fn send(
        &mut self,
        ask: Ask,
        request: &ModelRequest<'_, '_>,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure>;
    /// Returns the seconds that are left for the call, retries and waits included.
    fn left(&self) -> f64;
    /// Waits so many seconds.
    fn wait(&mut self, seconds: f64);
    /// The time in Unix seconds.
    fn now(&self) -> f64;
    /// A number from 0 to 1, to spread the retries of many processes.
    fn chance(&mut self) -> f64;
    /// Says what is done next.
    fn say(&mut self, text: &str);
}

/// What a call is.
#[derive(Clone, Copy, Debug)]
pub struct ModelCall<'c, 'r, 'a> {
    /// How it is spelled.
    pub protocol: Protocol,
    /// What is asked.
    pub request: ModelRequest<'r, 'a>,
    /// How often and how long to try.
    pub patience: Patience,
    /// The user's rows of the failure table.
    pub rows: &'c Rows,
    /// Whether an answer to a prompt of which some may have been dropped is a failure.
    pub detect_truncation: bool,
}

/// Calls the provider, and asks for the rest of a turn that it paused, up to [`MOST_PAUSES`] times: the replies
/// belong together. Text that the model says is given to `show`.
///
/// # Errors
/// The failure of the last try, and what there is of the reply.
pub fn call(
    call: ModelCall<'_, '_, '_>,
    transport: &mut impl Transport,
    show: &mut dyn FnMut(&str),
) -> Result<Vec<Reply>, FailedCall> {
    let mut messages = call.request.messages.to_vec();
    let mut replies: Vec<Reply> = Vec::new();
    loop {
        let request = ModelRequest { messages: &messages, ..call.request };
        match one_reply(ModelCall { request, ..call }, transport, show) {
            Ok(reply) => replies.push(reply),
            Err(mut failed) => {
                replies.iter_mut().for_each(|reply| reply.interrupted = true);
                failed.shown.splice(0..0, replies);
                return Err(failed);
            }
        }
        let can_go_on = replies.last().is_some_and(Reply::can_be_continued);
        if replies.len() > MOST_PAUSES || !can_go_on {
            return Ok(replies);
        }
        messages.truncate(call.request.messages.len());
        messages.push(so_far(&replies));
    }
}

/// Joins these replies into one assistant message that the provider continues from.
fn so_far(replies: &[Reply]) -> Message<'static> {
    let blocks = replies.iter().flat_map(|reply| &reply.blocks);
    let blocks = blocks.filter_map(|raw| Block::parse(raw.clone()).ok()).collect();
    Message::new(Role::Assistant, Content::Blocks(blocks))
}

/// Calls the provider for one reply, and tries again where that may help. Text that the model says is given to
/// `show`; once there was some, the request is not sent again, because text on a screen cannot be taken back.
///
/// # Errors
/// The failure of the last try, and what was shown of its reply.
fn one_reply(
    call: ModelCall<'_, '_, '_>,
    transport: &mut impl Transport,
    show: &mut dyn FnMut(&str),
) -> Result<Reply, FailedCall> {
    let ModelCall { protocol, mut request, patience, .. } = call;
    let mut has_lowered = false;
    let has_shown = Cell::new(false);
    let mut show = |text: &str| {
        has_shown.set(has_shown.get() || !text.is_empty());
        show(text);
    };
    request.max_tokens = estimated::room(protocol, &request, LEAST_OUTPUT)?;
    let may_repeat = || !has_shown.get();
    with_patience(patience, transport, may_repeat, |transport| {
        loop {
            let failed = match once(&ModelCall { request, ..call }, transport, &mut show) {
                Err(failed) if !has_shown.get() && !has_lowered => failed,
                outcome => return outcome,
            };
            let Some(room) = output_room(&failed.failure, request.max_tokens) else {
                return Err(failed);
            };
            transport.say(&format!("{}; trying again with --max-tokens {room}", failed.failure));
            request.max_tokens = room;
            has_lowered = true;
        }
    })
}

/// Does something until it succeeds, or its failure is one that does not pass, or patience is at its end,
/// or `may_repeat` says no.
fn with_patience<T, W: Transport>(
    patience: Patience,
    transport: &mut W,
    may_repeat: impl Fn() -> bool,
    mut attempt: impl FnMut(&mut W) -> Result<T, FailedCall>,
) -> Result<T, FailedCall> {
    let mut tries = 0;
    loop {
        let failed = match attempt(transport) {
            Err(failed) if may_repeat() => failed,
            outcome => return outcome,
        };
        let failure = &failed.failure;
        let Some(pause) = pause(failure, tries, patience, transport) else { return Err(failed) };
        transport.say(&format!("{failure}; trying again in {pause:.1} s"));
        transport.wait(pause);
        tries += 1;
    }
}

/// One exchange.
fn once(
    call: &ModelCall<'_, '_, '_>,
    transport: &mut impl Transport,
    show: &mut dyn FnMut(&str),
) -> Result<Reply, FailedCall> {
    let ModelCall { protocol, request, rows, .. } = call;
    let mut reading = Reading::new(*protocol, rows, show);
    let sent = transport.send(Ask::Reply, request, &protocol.body(request), &mut reading);
    let is_empty = reading.so_far().0.body.trim_ascii().is_empty();
    let reply = reading.finish(transport.now(), sent);
    let reply = reply.map_err(|FailedCall { failure, shown }| FailedCall {
        failure: estimated::reconsider(failure, is_empty, request),
        shown,
    })?;
    match estimated::truncated(*protocol, request, &reply) {
        (Cut::No, _) => Ok(reply),
        (Cut::Perhaps, failure) if !call.detect_truncation => {
            transport.say(&format!("{}; it may have dropped the rest", failure.message));
            Ok(reply)
        }
        (_, failure) => Err(failure.into()),
    }
}

/// The body of the first try.
///
/// # Errors
/// The [`Failure`] that keeps it from being sent.
pub fn first_body(call: &ModelCall<'_, '_, '_>) -> Result<String, Failure> {
    let max_tokens = estimated::room(call.protocol, &call.request, LEAST_OUTPUT)?;
    Ok(call.protocol.body(&ModelRequest { max_tokens, ..call.request }))
}

/// Has the provider count the tokens of the prompt.
///
/// # Errors
/// The [`Failure`] of the last try.
pub fn count(call: &ModelCall<'_, '_, '_>, transport: &mut impl Transport) -> Result<u64, Failure> {
    let ModelCall { protocol, request, patience, rows, .. } = call;
    let body = protocol.count_body(request);
    let counted = with_patience(
        *patience,
        transport,
        || true,
        |transport| {
            let (mut show, now) = (|_: &str| {}, transport.now());
            let mut reading = Reading::new(*protocol, rows, &mut show);
            let sent = transport.send(Ask::Count, request, &body, &mut reading);
            if reading.rest() != Rest::Nothing {
                sent?;
            }
            Ok(counted(&reading, now, rows)?)
        },
    );
    counted.map_err(|failed| failed.failure)
}

/// The number in an answer that counts.
fn counted(reading: &Reading<'_>, now: f64, rows: &Rows) -> Result<u64, Failure> {
    let (answer, _) = reading.so_far();
    let text = String::from_utf8_lossy(&answer.body);
    let object = Object::parse(text.trim()).ok().filter(|_| answer.is_success());
    let tokens = object.as_ref().and_then(|object| object.number("input_tokens"));
    tokens.ok_or_else(|| match answer.is_success() {
        true => Failure::broken(answer.status, "the answer has no count"),
        false => answer.refusal(&answer.body, now, rows),
    })
}

/// The room for the answer with which a refused request fits, if that is all that it lacks.
fn output_room(failure: &Failure, asked: u64) -> Option<u64> {
    let room = match failure.exit() {
        Exit::Overflow => {
            let (actual, limit) = (failure.actual?, failure.limit?);
            // Only if the refusal counted the answer's room; else the prompt alone is too long. A
            // prompt that was counted in part only says nothing about what is left.
            failure.requested_output.filter(|_| !failure.actual_is_floor)?;
            limit.checked_sub(actual)?.checked_sub(SLACK)?
        }
        _ => failure.output_cap?,
    };
    (room >= LEAST_OUTPUT.min(asked) && room < asked).then_some(room)
}

/// How long to wait before the next try, or `None` when there is to be none.
fn pause(
    failure: &Failure,
    tries: u32,
    patience: Patience,
    transport: &mut impl Transport,
) -> Option<f64> {
    if !failure.retryable || tries >= patience.retries {
        return None;
    }
    let pause = match failure.retry_after {
        Some(seconds) if seconds > patience.max_wait => return None,
        Some(seconds) => seconds,
        None => {
            let pause = (FIRST_PAUSE * 2f64.powi(tries.min(10).cast_signed())).min(LONGEST_PAUSE);
            pause * (1.0 - 0.25 * transport.chance())
        }
    };
    (pause < transport.left()).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Answer;

    /// A transport with a list of answers.
    struct Scripted {
        answers: Vec<Result<Answer, Failure>>,
        asked: Vec<u64>,
        waits: Vec<f64>,
    }

    impl Transport for Scripted {
        fn send(
            &mut self,
            _: Ask,
            request: &ModelRequest<'_, '_>,
            _: &str,
            reading: &mut Reading<'_>,
        ) -> Result<(), Failure> {
            self.asked.push(request.max_tokens);
            let answer = self.answers.remove(0)?;
            reading.head(answer.status, answer.headers);
            reading.take(&answer.body);
            Ok(())
        }
        fn left(&self) -> f64 {
            f64::INFINITY
        }
        fn wait(&mut self, seconds: f64) {
            self.waits.push(seconds);
        }
        fn now(&self) -> f64 {
            0.0
        }
        fn chance(&mut self) -> f64 {
            0.0
        }
        fn say(&mut self, _: &str) {}
    }

    fn refusal(status: u16, message: &str, retry_after: Option<&str>) -> Result<Answer, Failure> {
        let body =
            format!(r#"{{"error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
        let headers = retry_after.map(|wait| ("retry-after".to_owned(), wait.to_owned()));
        Ok(Answer { status, headers: headers.into_iter().collect(), body: body.into() })
    }

    fn good() -> Result<Answer, Failure> {
        Ok(Answer { status: 200, headers: vec![], body: br#"{"content":[]}"#.to_vec() })
    }

    fn run(answers: Vec<Result<Answer, Failure>>) -> (bool, Vec<u64>, Vec<f64>) {
        let messages = [Message::say(Role::User, "hi")];
        let request = ModelRequest::plain(&messages, 4000);
        let mut transport = Scripted { answers, asked: vec![], waits: vec![] };
        let patience = Patience { retries: 2, max_wait: 60.0 };
        let (protocol, rows) = (Protocol::Anthropic, &Rows::default());
        let outcome = call(
            ModelCall { protocol, request, patience, rows, detect_truncation: false },
            &mut transport,
            &mut |_| {},
        );
        (outcome.is_ok(), transport.asked, transport.waits)
    }

    const ROOM: &str = "input length and `max_tokens` exceed context limit: 7000 + 4000 > 10000, x";

    #[test]
    fn v65_room_for_the_answer_is_lowered_first_and_once() {
        assert_eq!(run(vec![refusal(400, ROOM, None), good()]), (true, vec![4000, 2936], vec![]));
        let twice = vec![refusal(400, ROOM, None), refusal(400, ROOM, None)];
        assert_eq!(run(twice), (false, vec![4000, 2936], vec![]));
        let full = "input length and `max_tokens` exceed context limit: 9990 + 4000 > 10000, x";
        assert_eq!(run(vec![refusal(400, full, None)]).1, [4000]);
    }

    #[test]
    fn v61_what_may_pass_is_tried_again_and_nothing_else() {
        let busy = || refusal(529, "Overloaded", None);
        assert_eq!(run(vec![busy(), busy(), good()]), (true, vec![4000; 3], vec![0.5, 1.0]));
        assert_eq!(run(vec![busy(), busy(), busy()]), (false, vec![4000; 3], vec![0.5, 1.0]));
        let limited = refusal(429, "slow down", Some("7"));
        assert_eq!(run(vec![limited, good()]), (true, vec![4000; 2], vec![7.0]));
        let long = refusal(429, "slow down", Some("61"));
        assert_eq!(run(vec![long]), (false, vec![4000], vec![]), "not sooner than asked");
        let dead = Err(Failure::unreachable("reset"));
        assert_eq!(run(vec![dead, good()]).1.len(), 2);
        for status in [400, 401, 402, 403, 404, 413, 422] {
            assert_eq!(run(vec![refusal(status, "no", None)]).1.len(), 1, "{status}");
        }
        let overflow = "prompt is too long: 20000 tokens > 10000 maximum";
        assert_eq!(run(vec![refusal(400, overflow, None)]).1.len(), 1);
    }
}
