//! Collects a streaming answer: a list of answers, each with the next parts.

use super::reply::AnswerDraft;
use crate::json::Object;
use crate::provider::Reply;
use crate::provider::collect::{Collect, Remaining, Unfinished};

/// A streaming answer.
#[derive(Default)]
pub struct GeminiStream(AnswerDraft);

impl Collect for GeminiStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.0.take(data, show)
    }

    fn remaining(&self) -> Remaining {
        // More usage may follow the end.
        if self.0.has_ended() { Remaining::Optional } else { Remaining::Required }
    }

    fn shown(self: Box<Self>) -> Reply {
        self.0.shown()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Unfinished> {
        self.0.finish()
    }
}
