//! The programs that write sessions.

use clap::ValueEnum;
use std::fmt;

/// A program that writes sessions. Its value is the name in the header of a session that was translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    ClaudeCode,
    Codex,
    Copilot,
    GeminiCli,
    #[value(name = "goclaw")]
    GoClaw,
    Llm,
    #[value(name = "openclaw")]
    OpenClaw,
    Opencode,
    Pi,
    Clawutils,
    /// One that no name tells, such as that which wrote messages for a provider's API.
    #[value(skip)]
    Other,
}

impl Program {
    /// Returns the program that the header of a session names.
    #[must_use]
    pub fn named(name: &str) -> Program {
        Program::from_str(name, false).unwrap_or(Program::Other)
    }
}

impl fmt::Display for Program {
    /// Writes the name that its users know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Program::ClaudeCode => "Claude Code",
            Program::Codex => "Codex",
            Program::Copilot => "Copilot CLI",
            Program::GeminiCli => "Gemini CLI",
            Program::GoClaw => "GoClaw",
            Program::Llm => "llm",
            Program::OpenClaw => "OpenClaw",
            Program::Opencode => "opencode",
            Program::Pi => "pi",
            Program::Clawutils => "clawutils",
            Program::Other => "another program",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    #[test]
    fn the_program_of_every_dialect_and_database_is_known() {
        for dialect in Dialect::value_variants() {
            let is_known = Program::named(dialect.name()) != Program::Other;
            let is_of_any = matches!(dialect, Dialect::Openai | Dialect::Gemini);
            assert_ne!(is_known, is_of_any, "{dialect:?}");
        }
        for name in ["goclaw", "llm", "openclaw", "opencode", "clawutils"] {
            assert_ne!(Program::named(name), Program::Other, "{name}");
        }
        assert_eq!(Program::named("unheard-of"), Program::Other);
    }
}
