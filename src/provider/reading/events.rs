//! Reads a streaming answer.

use super::MAX_ANSWER;
use super::whole::{NoReply, error_of, is_error, over, too_wide};
use crate::json::Object;
use crate::provider::Reply;
use crate::provider::collect::{Collect, Remaining, Unfinished};
use crate::provider::protocol::Protocol;
use crate::provider::stream::{Events, Framing, MAX_EVENT, StreamEvent};

/// A stream that is being read.
pub(super) struct StreamReading {
    events: Events,
    collect: Box<dyn Collect>,
    state: StreamState,
}

/// The state of a stream.
enum StreamState {
    /// No event has arrived.
    Silent,
    InProgress,
    /// The answer is complete.
    Over,
    /// An error event arrived; holds its data.
    Refused(String),
    /// An event was unusable; holds the reason.
    Broken(String),
    /// A size limit was exceeded; holds a message that names it.
    TooLong(String),
}

impl StreamReading {
    pub(super) fn new(framing: Framing, protocol: Protocol) -> StreamReading {
        let (events, collect) = (Events::new(framing), protocol.api().collect());
        StreamReading { events, collect, state: StreamState::Silent }
    }

    pub(super) fn take(&mut self, piece: &[u8], show: &mut dyn FnMut(&str)) {
        let StreamReading { events, collect, state } = self;
        events.take(piece, |event| take_event(event, collect.as_mut(), state, show));
        if matches!(state, StreamState::Silent | StreamState::InProgress) && events.is_too_large() {
            *state = StreamState::TooLong(over("one event", MAX_EVENT));
        }
    }

    /// Applies the size limit of the whole stream. A stream that has already ended is never too long.
    pub(super) fn limit(&mut self, received: usize) {
        if received > MAX_ANSWER
            && matches!(self.state, StreamState::Silent | StreamState::InProgress)
        {
            self.state = StreamState::TooLong(over("it", MAX_ANSWER));
        }
    }

    pub(super) fn remaining(&self) -> Remaining {
        match &self.state {
            StreamState::Silent => Remaining::Required,
            StreamState::InProgress => self.collect.remaining(),
            StreamState::Over
            | StreamState::Refused(_)
            | StreamState::Broken(_)
            | StreamState::TooLong(_) => Remaining::None,
        }
    }

    /// Returns the reply, or the reason why there is none and the part that was shown.
    pub(super) fn finish(
        self,
        show: &mut dyn FnMut(&str),
    ) -> (Result<Reply, NoReply>, Option<Reply>) {
        let StreamReading { events, mut collect, mut state } = self;
        let begun = events.begun();
        events.finish(|event| take_event(event, collect.as_mut(), &mut state, show));
        // An error is reported if its JSON is complete, even if the end of its event is missing.
        let is_refused = || Object::parse(begun.trim()).is_ok_and(|object| is_error(&object));
        let ended = match state {
            StreamState::Refused(data) => NoReply::Refused(data),
            StreamState::Broken(why) => NoReply::Broken(why),
            StreamState::TooLong(why) => NoReply::TooLong(why),
            StreamState::Silent | StreamState::InProgress if is_refused() => {
                NoReply::Refused(begun)
            }
            StreamState::Silent => NoReply::Broken("is an empty stream".to_owned()),
            StreamState::InProgress | StreamState::Over => {
                return match collect.finish() {
                    Ok(reply) => (Ok(reply), None),
                    Err(Unfinished { why, shown }) => (Err(NoReply::Broken(why)), Some(shown)),
                };
            }
        };
        (Err(ended), Some(collect.shown()))
    }
}

/// Takes one event. After the end of the answer, an error, or an unusable event, further events are ignored.
fn take_event(
    event: &StreamEvent,
    collect: &mut dyn Collect,
    state: &mut StreamState,
    show: &mut dyn FnMut(&str),
) {
    let data = event.data.trim();
    if data.is_empty() || !matches!(state, StreamState::Silent | StreamState::InProgress) {
        return;
    }
    if data == "[DONE]" {
        if matches!(state, StreamState::InProgress) {
            collect.done();
        }
    } else if let Some(why) = too_wide(data) {
        *state = StreamState::TooLong(why);
    } else {
        *state = match Object::parse(data) {
            Ok(object) if is_error(&object) => StreamState::Refused(error_of(&object)),
            // The data of an error event need not be JSON.
            _ if event.name == "error" => StreamState::Refused(data.to_owned()),
            Err(_) => StreamState::Broken("has an event that is not a JSON object".to_owned()),
            Ok(object) => match collect.take(&object, show) {
                Ok(()) => StreamState::InProgress,
                Err(why) => StreamState::Broken(why),
            },
        };
    }
    if matches!(state, StreamState::InProgress) && collect.remaining() == Remaining::None {
        *state = StreamState::Over;
    }
}
