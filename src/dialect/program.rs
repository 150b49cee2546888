//! The programs that write sessions.

use std::fmt;

/// A program that writes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    ClaudeCode,
    Codex,
    Copilot,
    GeminiCli,
    GoClaw,
    Llm,
    OpenClaw,
    Opencode,
    Pi,
    Clawutils,
    /// One that no name tells, such as that which wrote messages for a provider's API.
    Other,
}

/// The name of each program in the headers of sessions, and the name that its users know.
const NAMES: [(Program, &str, &str); 10] = [
    (Program::ClaudeCode, "claude-code", "Claude Code"),
    (Program::Codex, "codex", "Codex"),
    (Program::Copilot, "copilot", "Copilot CLI"),
    (Program::GeminiCli, "gemini-cli", "Gemini CLI"),
    (Program::GoClaw, "goclaw", "GoClaw"),
    (Program::Llm, "llm", "llm"),
    (Program::OpenClaw, "openclaw", "OpenClaw"),
    (Program::Opencode, "opencode", "opencode"),
    (Program::Pi, "pi", "pi"),
    (Program::Clawutils, "clawutils", "clawutils"),
];

impl Program {
    /// Returns the program that the header of a session names.
    #[must_use]
    pub fn named(name: &str) -> Program {
        let found = NAMES.iter().find(|(_, header, _)| *header == name);
        found.map_or(Program::Other, |(program, _, _)| *program)
    }
}

impl fmt::Display for Program {
    /// Writes the name that its users know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = NAMES.iter().find(|(program, _, _)| program == self);
        f.write_str(found.map_or("another program", |(_, _, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use clap::ValueEnum;

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
