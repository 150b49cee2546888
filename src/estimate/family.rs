//! Tokenizer families. The models of a family have the same or a similar tokenizer, so one table of weights and each
//! other's counts apply to all of them.

use super::models::bare;

/// A group of models whose tokenizers give about the same counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// OpenAI's models since GPT-4o.
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
    /// Claude up to version 4.5. The tokenizer is not public: the weights are fitted to the one of Claude 2, and scaled
    /// to what Anthropic counted in a real session.
    Claude,
    /// Claude since version 4.6, whose tokenizers are reported to give a third more tokens.
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
    /// Any other model. Its estimate is the largest of all families with a known tokenizer.
    #[default]
    Unknown,
}

/// A row of the table: the beginning of a model's name, its vendor, and its family.
type Row = (&'static str, &'static str, Family);

/// The beginnings of model names. The longest one that fits applies.
const NAMES: [Row; 64] = [
    ("claude", "claude", Family::NewerClaude),
    ("claude-2", "claude", Family::Claude),
    ("claude-3", "claude", Family::Claude),
    ("claude-instant", "claude", Family::Claude),
    ("claude-haiku-4", "claude", Family::Claude),
    ("claude-sonnet-4", "claude", Family::Claude),
    ("claude-opus-4", "claude", Family::Claude),
    ("claude-haiku-4-6", "claude", Family::NewerClaude),
    ("claude-haiku-4-7", "claude", Family::NewerClaude),
    ("claude-haiku-4-8", "claude", Family::NewerClaude),
    ("claude-haiku-4-9", "claude", Family::NewerClaude),
    ("claude-sonnet-4-6", "claude", Family::NewerClaude),
    ("claude-sonnet-4-7", "claude", Family::NewerClaude),
    ("claude-sonnet-4-8", "claude", Family::NewerClaude),
    ("claude-sonnet-4-9", "claude", Family::NewerClaude),
    ("claude-opus-4-6", "claude", Family::NewerClaude),
    ("claude-opus-4-7", "claude", Family::NewerClaude),
    ("claude-opus-4-8", "claude", Family::NewerClaude),
    ("claude-opus-4-9", "claude", Family::NewerClaude),
    ("gpt", "gpt", Family::Unknown),
    ("gpt-5", "gpt", Family::O200k),
    ("gpt-oss", "gpt", Family::O200k),
    ("gpt-3.5", "gpt", Family::Cl100k),
    ("gpt-35", "gpt", Family::Cl100k),
    ("gpt-4", "gpt", Family::Cl100k),
    ("gpt-4o", "gpt", Family::O200k),
    ("gpt-4.", "gpt", Family::O200k),
    ("chatgpt", "gpt", Family::O200k),
    ("o1", "gpt", Family::O200k),
    ("o3", "gpt", Family::O200k),
    ("o4", "gpt", Family::O200k),
    ("gemini", "gemini", Family::Gemini),
    ("gemma", "gemini", Family::Gemini),
    ("llama", "llama", Family::Unknown),
    ("llama3", "llama", Family::Llama),
    ("llama-3-", "llama", Family::Llama),
    ("llama-3.", "llama", Family::Llama),
    ("meta-llama-3", "llama", Family::Llama),
    ("llama4", "llama", Family::Llama),
    ("llama-4", "llama", Family::Llama),
    ("qwen", "qwen", Family::Qwen),
    ("qwq", "qwen", Family::Qwen),
    ("mistral", "mistral", Family::Unknown),
    ("mistral-nemo", "mistral", Family::Mistral),
    ("mistral-small", "mistral", Family::Mistral),
    ("mistral-medium", "mistral", Family::Mistral),
    ("ministral", "mistral", Family::Mistral),
    ("magistral", "mistral", Family::Mistral),
    ("devstral", "mistral", Family::Mistral),
    ("mixtral", "mistral", Family::Unknown),
    ("codestral", "mistral", Family::Unknown),
    ("deepseek", "deepseek", Family::Unknown),
    ("deepseek-chat", "deepseek", Family::DeepSeek),
    ("deepseek-reasoner", "deepseek", Family::DeepSeek),
    ("deepseek-v3", "deepseek", Family::DeepSeek),
    ("deepseek-r1", "deepseek", Family::DeepSeek),
    // These have the tokenizers of Qwen and Llama; in Ollama, so do all tags but one.
    ("deepseek-r1-distill", "deepseek", Family::Unknown),
    ("deepseek-r1:", "deepseek", Family::Unknown),
    ("glm", "glm", Family::Unknown),
    ("kimi", "kimi", Family::Unknown),
    ("command", "command", Family::Unknown),
    ("grok", "grok", Family::Unknown),
    ("phi", "phi", Family::Unknown),
    ("minimax", "minimax", Family::Unknown),
];

impl Family {
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

    /// Returns the family of a model, by its name.
    #[must_use]
    pub fn of(model: Option<&str>) -> Family {
        model.and_then(row).map_or(Family::Unknown, |(_, _, family)| family)
    }
}

/// Returns true if the two models are known to be of different vendors or tokenizer families, so that the counts of one
/// say little about the other. A name without a row, such as an alias or a deployment name, may stand for any model.
#[must_use]
pub fn differ(one: &str, other: &str) -> bool {
    match (row(one), row(other)) {
        (Some((_, vendor, family)), Some((_, other_vendor, other_family))) => {
            (vendor, family) != (other_vendor, other_family)
        }
        _ => false,
    }
}

fn row(model: &str) -> Option<Row> {
    let name = bare(model);
    let fitting = NAMES.into_iter().filter(|(begin, _, _)| name.starts_with(begin));
    fitting.max_by_key(|(begin, _, _)| begin.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_14_families_differ_only_if_both_are_known() {
        for (one, other, is) in [
            ("claude-haiku-4-5", "claude-opus-5", true),
            ("claude-haiku-4-5", "claude-3-5-sonnet", false),
            ("claude-opus-4-6", "claude-opus-5", false),
            ("gpt-4-turbo", "gpt-4o", true),
            ("grok-3", "grok-4", false),
            ("grok-3", "kimi-k2", true),
            ("anthropic/Claude-Haiku-4-5", "openai/gpt-5-mini", true),
            ("o3", "chatgpt-4o-latest", false),
            ("llama3.1:70b", "qwen2.5:7b", true),
            ("my-deployment", "gpt-4o", false),
            ("offline", "claude-haiku-4-5", false),
            ("", "gpt-4o", false),
        ] {
            assert_eq!(differ(one, other), is, "{one} {other}");
            assert_eq!(differ(other, one), is, "{other} {one}");
        }
    }

    #[test]
    fn the_longest_beginning_determines_the_family() {
        for (model, family) in [
            ("claude-sonnet-4-5-20250929", Family::Claude),
            ("anthropic/claude-sonnet-4.5", Family::Claude),
            ("claude-3-5-sonnet-latest", Family::Claude),
            ("claude-opus-4-1", Family::Claude),
            ("claude-opus-4-8", Family::NewerClaude),
            ("anthropic/claude-opus-4.6:beta", Family::NewerClaude),
            ("claude-sonnet-5", Family::NewerClaude),
            ("gpt-4-turbo", Family::Cl100k),
            ("gpt-4o-mini", Family::O200k),
            ("gpt-4.1", Family::O200k),
            ("openai/gpt-oss-120b", Family::O200k),
            ("meta-llama/Llama-3.3-70B-Instruct", Family::Llama),
            ("llama2:7b", Family::Unknown),
            ("Qwen/Qwen3-32B", Family::Qwen),
            ("my-model", Family::Unknown),
            ("claude-haiku-4-6", Family::NewerClaude),
            ("gpt-5-mini", Family::O200k),
            ("gpt-j-6b", Family::Unknown),
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", Family::Llama),
            ("llama-30b", Family::Unknown),
            ("deepseek-chat", Family::DeepSeek),
            ("deepseek-ai/DeepSeek-R1", Family::DeepSeek),
            ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", Family::Unknown),
            ("deepseek-r1:8b", Family::Unknown),
        ] {
            assert_eq!(Family::of(Some(model)), family, "{model}");
        }
        assert_eq!(Family::of(None), Family::Unknown);
    }
}
