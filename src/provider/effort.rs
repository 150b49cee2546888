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

    /// Returns the budget in tokens that has the effect of the level. The values are those with which Google translates
    /// OpenAI's levels (ai.google.dev/gemini-api/docs/openai, read in November 2026).
    #[must_use]
    pub fn budget(self) -> u64 {
        match self {
            Effort::None => 0,
            Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High | Effort::Xhigh | Effort::Max => 24_576,
        }
    }

    /// Returns the lowest level whose budget is not below `tokens`, and for larger budgets `high`.
    #[must_use]
    pub fn nearest(tokens: u64) -> Effort {
        let levels = [Effort::None, Effort::Low, Effort::Medium];
        levels.into_iter().find(|level| tokens <= level.budget()).unwrap_or(Effort::High)
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
    fn a_budget_has_the_nearest_level() {
        for (tokens, level) in [
            (0, Effort::None),
            (1, Effort::Low),
            (1024, Effort::Low),
            (1025, Effort::Medium),
            (8192, Effort::Medium),
            (8193, Effort::High),
            (u64::MAX, Effort::High),
        ] {
            assert_eq!(Effort::nearest(tokens), level, "{tokens}");
        }
    }

    #[test]
    fn each_level_has_a_member_in_ollamas_api() {
        for (effort, ollama) in [
            (Effort::None, r#"{"think":false}"#),
            (Effort::Minimal, r#"{"think":"low"}"#),
            (Effort::Medium, r#"{"think":"medium"}"#),
            (Effort::Max, r#"{"think":"high"}"#),
        ] {
            assert_eq!(effort.for_ollama(Members::new()).into_json(), ollama);
        }
    }
}
