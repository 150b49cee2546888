//! The fault of a refused request: what about it a stage of the guard could change. [`crate::provider::refusal`] finds it,
//! `error` records carry it, and [`crate::guard`] chooses a stage by it.

/// The fault of a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The prompt has too many tokens.
    Tokens,
    /// The body has too many bytes.
    Bytes,
    /// The provider rejects a block or a message.
    Block,
    /// None that is known: the same request may succeed later.
    Wait,
    /// One that no change of the messages cures.
    Other,
}

impl Fault {
    const ALL: [Fault; 5] = [Fault::Tokens, Fault::Bytes, Fault::Block, Fault::Wait, Fault::Other];

    /// Returns the name used in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::Tokens => "tokens",
            Fault::Bytes => "bytes",
            Fault::Block => "block",
            Fault::Wait => "wait",
            Fault::Other => "none",
        }
    }

    /// Returns the fault with this name. An unknown name is [`Fault::Other`].
    #[must_use]
    pub fn named(name: &str) -> Fault {
        Fault::ALL.into_iter().find(|fault| fault.name() == name).unwrap_or(Fault::Other)
    }

    /// Returns true if a change of the messages may cure the fault.
    #[must_use]
    pub fn is_in_messages(self) -> bool {
        match self {
            Fault::Tokens | Fault::Bytes | Fault::Block => true,
            Fault::Wait | Fault::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        for fault in Fault::ALL {
            assert_eq!(Fault::named(fault.name()), fault);
        }
        assert_eq!(Fault::named("later"), Fault::Other);
    }
}
