//! Decides where a reply ends, for rebuild and for show.
//!
//! A reply consists of consecutive assistant records and tool calls. It ends with the first result of one of its calls,
//! because the model had that result when it continued. Early versions of claw0 wrote a result before its call; after a
//! reply whose calls all have such an early result, text belongs to the next reply.

/// The state that decides whether further records belong to the reply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyState {
    calls: usize,
    /// The number of calls whose results come before them.
    early: usize,
    is_ended: bool,
}

impl ReplyState {
    /// Adds a call. `is_early` is true if its result comes before it.
    pub fn add_call(&mut self, is_early: bool) {
        self.calls += 1;
        self.early += usize::from(is_early);
    }

    /// Ends the reply, because a result of one of its calls was read.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Returns true if a call that follows belongs to the reply.
    #[must_use]
    pub fn takes_calls(self) -> bool {
        !self.is_ended
    }

    /// Returns true if an assistant record that follows belongs to the reply.
    #[must_use]
    pub fn takes_text(self) -> bool {
        !self.is_ended && (self.calls == 0 || self.early < self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_with_its_first_result() {
        // c: a call; e: a call with an early result; r: a result. The flags: true if text, or a call, that follows
        // still belongs to the reply.
        for (records, text, calls) in [
            ("", true, true),
            ("c", true, true),
            ("cc", true, true),
            ("ce", true, true),
            ("ee", false, true),
            ("cr", false, false),
            ("ecr", false, false),
        ] {
            let mut reply = ReplyState::default();
            for record in records.chars() {
                match record {
                    'r' => reply.end(),
                    call => reply.add_call(call == 'e'),
                }
            }
            assert_eq!((reply.takes_text(), reply.takes_calls()), (text, calls), "{records}");
        }
    }
}
