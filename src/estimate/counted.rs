//! What providers counted: the usage that is recorded with their answers.

use crate::messages::Message;
use crate::usage::Counts;

/// The newest count of a provider's: how many messages it covers, and the tokens of the prompt and
/// the answer that is now the last of them.
pub(super) fn measured(messages: &[Message<'_>]) -> Option<(usize, u64)> {
    let counted = |message: &Message<'_>| {
        let usage = message.meta.as_ref()?.usage.as_ref()?;
        Counts::read(usage).map(|counts| counts.all())
    };
    let found = messages.iter().enumerate().rev();
    found.filter_map(|(index, message)| Some((index + 1, counted(message)?))).next()
}
