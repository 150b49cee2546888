//! Collects a streaming answer.

use super::reply;
use crate::json::Object;
use crate::provider::Reply;
use crate::provider::collect::{Collect, Remaining, Unfinished};
use crate::provider::turns::draft::Draft;

/// A streaming reply, one JSON object per line.
#[derive(Default)]
pub struct OllamaStream {
    draft: Draft,
    is_complete: bool,
}

impl Collect for OllamaStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.is_complete |= reply::take(&mut self.draft, data, show)?;
        Ok(())
    }

    fn remaining(&self) -> Remaining {
        if self.is_complete { Remaining::None } else { Remaining::Required }
    }

    fn shown(self: Box<Self>) -> Reply {
        self.draft.shown()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Unfinished> {
        if !self.is_complete {
            return Err(Unfinished::cut(self.shown()));
        }
        self.draft.reply()
    }
}
