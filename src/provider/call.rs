//! One call, to its end: send, read, and try again where that can help.
//!
//! What moves the bytes and what waits are passed in. A request is sent again unchanged only when the
//! provider could not take it (rate limit, overload, a server that failed, no answer); one that does
//! not fit only because of the room for its answer is sent once more with less room; nothing else is
//! ever repeated.

use crate::exit::Exit;
use crate::provider::protocol::Protocol;
use crate::provider::reading::Reading;
use crate::provider::{Failure, Reply, Request};
use std::cell::Cell;

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

/// What a call needs of the world.
pub trait World {
    /// Sends a body and gives the answer to `reading` as it comes.
    ///
    /// # Errors
    /// A [`Failure`] when there was no answer, or it ended too early.
    fn send(
        &mut self,
        request: &Request<'_, '_>,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure>;
    /// Waits so many seconds.
    fn wait(&mut self, seconds: f64);
    /// The time in Unix seconds.
    fn now(&self) -> f64;
    /// A number from 0 to 1, to spread the retries of many processes.
    fn chance(&mut self) -> f64;
    /// Says what is done next.
    fn say(&mut self, text: &str);
}

/// Calls the provider. Text that the model says is given to `show`; once there was some, the request is
/// not sent again, for nobody could take it back.
///
/// # Errors
/// The [`Failure`] of the last try.
pub fn call(
    protocol: Protocol,
    request: &Request<'_, '_>,
    patience: Patience,
    world: &mut impl World,
    show: &mut dyn FnMut(&str),
) -> Result<Reply, Failure> {
    let mut request = *request;
    let mut tries = 0;
    let mut has_lowered = false;
    let has_shown = Cell::new(false);
    let mut show = |text: &str| {
        has_shown.set(has_shown.get() || !text.is_empty());
        show(text);
    };
    loop {
        let mut reading = Reading::new(protocol, &mut show);
        let sent = world.send(&request, &protocol.body(&request), &mut reading);
        let failure = match sent.and_then(|()| reading.finish(world.now())) {
            Ok(reply) => return Ok(reply),
            Err(failure) if has_shown.get() => return Err(failure),
            Err(failure) => failure,
        };
        if let Some(room) = output_room(&failure, request.max_tokens).filter(|_| !has_lowered) {
            world.say(&format!("{failure}; trying again with --max-tokens {room}"));
            request.max_tokens = room;
            has_lowered = true;
            continue;
        }
        let Some(pause) = pause(&failure, tries, patience, world) else { return Err(failure) };
        world.say(&format!("{failure}; trying again in {pause:.1} s"));
        world.wait(pause);
        tries += 1;
    }
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
fn pause(failure: &Failure, tries: u32, patience: Patience, world: &mut impl World) -> Option<f64> {
    if !failure.retryable || tries >= patience.retries {
        return None;
    }
    match failure.retry_after {
        Some(seconds) => (seconds <= patience.max_wait).then_some(seconds),
        None => {
            let pause = (FIRST_PAUSE * 2f64.powi(tries.min(10).cast_signed())).min(LONGEST_PAUSE);
            Some(pause * (1.0 - 0.25 * world.chance()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Message, Role};
    use crate::provider::Answer;

    /// A world with a list of answers.
    struct Scripted {
        answers: Vec<Result<Answer, Failure>>,
        asked: Vec<u64>,
        waits: Vec<f64>,
    }

    impl World for Scripted {
        fn send(
            &mut self,
            request: &Request<'_, '_>,
            _: &str,
            reading: &mut Reading<'_>,
        ) -> Result<(), Failure> {
            self.asked.push(request.max_tokens);
            let answer = self.answers.remove(0)?;
            reading.head(answer.status, answer.headers);
            reading.take(&answer.body);
            Ok(())
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
        let request = Request {
            model: "m",
            max_tokens: 4000,
            system: None,
            tools: None,
            messages: &messages,
            stream: false,
            window: None,
            extra: None,
        };
        let mut world = Scripted { answers, asked: vec![], waits: vec![] };
        let patience = Patience { retries: 2, max_wait: 60.0 };
        let outcome = call(Protocol::Anthropic, &request, patience, &mut world, &mut |_| {});
        (outcome.is_ok(), world.asked, world.waits)
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
