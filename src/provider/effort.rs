//! How much a model thinks before it answers.

use crate::json::write::Members;

/// The effort of a model. Not every model has every level; a provider refuses those that a model lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Effort {
    /// No thinking
    None,
    /// As little as possible
    Minimal,
    /// Little
    Low,
    /// Some
    Medium,
    /// Much
    High,
    /// Very much
    Xhigh,
    /// As much as possible
    Max,
}

impl Effort {
    /// Returns the name of the level, which is OpenAI's (`types/shared/reasoning_effort.py` of openai 3.57.0).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Xhigh => "xhigh",
            Effort::Max => "max",
        }
    }

    /// Adds the member of Anthropic's API: `output_config.effort`, whose lowest level is low, or disabled thinking
    /// (`types/output_config_param.py` and `types/thinking_config_disabled_param.py` of anthropic 2.14.0).
    #[must_use]
    pub(super) fn for_anthropic(self, body: Members) -> Members {
        match self {
            Effort::None => body.object("thinking", |it| it.string("type", "disabled")),
            level => body
                .object("output_config", |it| it.string("effort", level.max(Effort::Low).name())),
        }
    }

    /// Adds the member of Ollama's API: `think`, which is false or one of three levels (docs/api.md of Ollama, read in November
    /// 2026).
    #[must_use]
    pub(super) fn for_ollama(self, body: Members) -> Members {
        match self {
            Effort::None => body.bool("think", false),
            level => body.string("think", level.clamp(Effort::Low, Effort::High).name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_member_in_each_protocol() {
        for (effort, anthropic, ollama) in [
            (Effort::None, r#"{"thinking":{"type":"disabled"}}"#, r#"{"think":false}"#),
            (Effort::Minimal, r#"{"output_config":{"effort":"low"}}"#, r#"{"think":"low"}"#),
            (Effort::Medium, r#"{"output_config":{"effort":"medium"}}"#, r#"{"think":"medium"}"#),
            (Effort::Max, r#"{"output_config":{"effort":"max"}}"#, r#"{"think":"high"}"#),
        ] {
            assert_eq!(effort.for_anthropic(Members::new()).into_json(), anthropic);
            assert_eq!(effort.for_ollama(Members::new()).into_json(), ollama);
        }
    }
}
