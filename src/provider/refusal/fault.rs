//! Decides the fault of a refusal, by which the guard acts: step 8 in the documentation of [`super`].

use super::place::{self, WirePlace};
use super::verdict::Verdict;
use super::{Certainty, Failure, FailureClass, evidence};
use crate::fault::Fault;

/// The fault of a refusal, how sure it is, and the evidence.
pub(super) struct Finding {
    pub(super) fault: Fault,
    pub(super) certainty: Certainty,
    pub(super) why: Option<String>,
}

/// Returns the fault of a refusal. `places` are those that it names, and `text` is its message. The first of these decides:
///
/// 1. the fault of the type, code or evidence that decided the class;
/// 2. a place in the messages, if the class is [`FailureClass::BadRequest`]: a block, unless it is the id of a call;
/// 3. without any place, a word for something that stands in messages: likely a block. A refusal that is about a rate, a key or
///    a parameter is not read so, and at [`FailureClass::NotFound`] only words for media count: a model that reads none;
/// 4. the class, see [`FailureClass::fault`].
pub(super) fn find(verdict: &Verdict<'_>, places: &[WirePlace], text: &str) -> Finding {
    let block = |why, certainty| Finding { fault: Fault::Block, certainty, why: Some(why) };
    let likely = if places.is_empty() { Certainty::Likely } else { verdict.certainty };
    let word = match (verdict.class, verdict.fault) {
        (_, Some(fault)) => {
            return Finding { fault, certainty: verdict.certainty, why: verdict.why.clone() };
        }
        (FailureClass::BadRequest, None) if place::is_in_messages(places) => {
            return block("it names a place in the messages".to_owned(), verdict.certainty);
        }
        // The definition of a tool is not part of a message, and no block that is left out takes the id of a call with it.
        (FailureClass::BadRequest, None) if places.is_empty() && !evidence::is_unrelated(text) => {
            evidence::suspect_block(text)
        }
        (FailureClass::NotFound, None) => evidence::media(text),
        _ => None,
    };
    match word {
        Some(word) => block(evidence::says(word), likely),
        None => Finding {
            fault: verdict.class.fault(),
            certainty: verdict.certainty,
            why: verdict.why.clone(),
        },
    }
}

/// Returns a refusal that names nothing as one of a block, likely, if the provider accepted an earlier request of the session:
/// then something new in the messages is the probable cause.
pub(super) fn suspect(failure: Failure, has_reply: bool) -> Failure {
    let is_vague = failure.fault == Fault::Other
        && failure.wire_places.is_empty()
        && matches!(failure.status, Some(400 | 422))
        && !evidence::is_about_setting(&failure.message);
    if !is_vague || !has_reply {
        return failure;
    }
    let why = Some("it names nothing, and an earlier request of this session was accepted".into());
    Failure { fault: Fault::Block, certainty: Certainty::Likely, why, ..failure }
}
