//! Tokenizer families. The models of a family have the same or a similar tokenizer, so they share a table of weights,
//! and a provider's count for one of them also applies to the others.

/// A group of models whose tokenizers give about the same counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// OpenAI's models since GPT-4o.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
    /// Claude up to version 4.6. The tokenizer is not public, so the weights are fitted to the tokenizer of Claude 2
    /// and scaled to the counts of Anthropic's API in a real session.
    Claude,
    /// Claude since version 4.7, whose tokenizer is reported to give up to a third more tokens.
    NewerClaude,
    /// Llama 3 and 4.
    Llama,
    /// Qwen 2, 2.5 and 3.
    Qwen,
    /// DeepSeek V3 and its successors.
    DeepSeek,
    /// Mistral's models with the tokenizer Tekken.
    Mistral,
    /// Gemini and Gemma.
    Gemini,
    /// Any other model. Its estimate is about the largest of all families, and never below that for newer Claude.
    #[default]
    Unknown,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 10] = [
        Family::O200k,
        Family::Cl100k,
        Family::Claude,
        Family::NewerClaude,
        Family::Llama,
        Family::Qwen,
        Family::DeepSeek,
        Family::Mistral,
        Family::Gemini,
        Family::Unknown,
    ];

    /// Returns its name in records, tables and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::O200k => "o200k",
            Family::Cl100k => "cl100k",
            Family::Claude => "claude",
            Family::NewerClaude => "newer-claude",
            Family::Llama => "llama",
            Family::Qwen => "qwen",
            Family::DeepSeek => "deepseek",
            Family::Mistral => "mistral",
            Family::Gemini => "gemini",
            Family::Unknown => "unknown",
        }
    }

    /// Returns the family with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Model;

    #[test]
    fn the_longest_matching_prefix_determines_the_family() {
        for (model, family) in [
            ("claude-sonnet-4-5-20250929", Family::Claude),
            ("anthropic/claude-sonnet-4.5", Family::Claude),
            ("claude-3-5-sonnet-latest", Family::Claude),
            ("claude-opus-4-1", Family::Claude),
            ("claude-opus-4-8", Family::NewerClaude),
            ("anthropic/claude-opus-4.6:beta", Family::Claude),
            ("claude-sonnet-5", Family::NewerClaude),
            ("gpt-4-turbo", Family::Cl100k),
            ("gpt-4o-mini", Family::O200k),
            ("gpt-4.1", Family::O200k),
            ("openai/gpt-oss-120b", Family::O200k),
            ("meta-llama/Llama-3.3-70B-Instruct", Family::Llama),
            ("llama2:7b", Family::Unknown),
            ("Qwen/Qwen3-32B", Family::Qwen),
            ("my-model", Family::Unknown),
            ("claude-sonnet-4-6", Family::Claude),
            ("gpt-5-mini", Family::O200k),
            ("gpt-j-6b", Family::Unknown),
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", Family::Llama),
            ("llama-30b", Family::Unknown),
            ("deepseek-chat", Family::DeepSeek),
            ("deepseek-ai/DeepSeek-R1", Family::DeepSeek),
            ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", Family::Unknown),
            ("deepseek-r1:8b", Family::Unknown),
        ] {
            assert_eq!(Model::named(model).family, family, "{model}");
        }
    }
}
