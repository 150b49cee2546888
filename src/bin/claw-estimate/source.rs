//! The input: messages, or transcripts that are rebuilt into messages.

use clawutils::cli::{self, DialectArgs, Log, Operands, report};
use clawutils::dialect::looks::{self, Looks};
use clawutils::input::Input;
use clawutils::messages::Message;
use clawutils::messages::rebuild::{self, RebuildOptions};
use std::sync::Arc;

/// The opened operands.
pub enum Source {
    /// Messages, one per line, with the names of the inputs.
    Messages(Vec<(Arc<str>, Vec<u8>)>),
    /// Transcripts that are read as if they were concatenated.
    Transcripts(Vec<Input>),
}

impl Source {
    /// Opens all operands. All of them are read as transcripts if one looks like a transcript, or if an option for
    /// transcripts is given.
    ///
    /// # Errors
    /// Fails with 74 or 77 if an operand cannot be read, and with 65 if only some of the operands are transcripts.
    pub fn open(operands: &Operands, dialect: &DialectArgs) -> anyhow::Result<Source> {
        let inputs = operands.open()?;
        let mut are_transcripts = dialect.from.is_some() || dialect.leaf.is_some();
        for input in &inputs {
            are_transcripts |= matches!(looks::of(input)?, Looks::Records | Looks::Dialect(_));
        }
        if are_transcripts {
            let open = |input| dialect.open(input);
            return Ok(Source::Transcripts(
                inputs.into_iter().map(open).collect::<Result<_, _>>()?,
            ));
        }
        Ok(Source::Messages(inputs.iter().map(Input::named_bytes).collect::<Result<_, _>>()?))
    }

    /// Returns the messages. The findings of a rebuild are reported.
    ///
    /// # Errors
    /// Fails with 65 at the first line that is not a message, and with 74 if a transcript cannot be read.
    pub fn messages(&self, log: Log) -> anyhow::Result<Vec<Message<'_>>> {
        match self {
            Source::Messages(inputs) => cli::messages(inputs),
            Source::Transcripts(inputs) => {
                let rebuilt = rebuild::from_inputs(inputs, &RebuildOptions::default())?;
                report(log, &rebuilt.findings, false)?;
                Ok(rebuilt.messages)
            }
        }
    }
}
