//! Families of models. The models of a family have similar tokenizers, so their counts are comparable.

use super::models::bare;

/// The prefixes of model names and the family of each.
const FAMILIES: [(&str, &str); 23] = [
    ("claude", "claude"),
    ("gpt", "gpt"),
    ("chatgpt", "gpt"),
    ("o1", "gpt"),
    ("o3", "gpt"),
    ("o4", "gpt"),
    ("gemini", "gemini"),
    ("gemma", "gemini"),
    ("llama", "llama"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("mistral", "mistral"),
    ("ministral", "mistral"),
    ("mixtral", "mistral"),
    ("codestral", "mistral"),
    ("devstral", "mistral"),
    ("deepseek", "deepseek"),
    ("glm", "glm"),
    ("kimi", "kimi"),
    ("command", "command"),
    ("grok", "grok"),
    ("phi", "phi"),
    ("minimax", "minimax"),
];

/// Returns true if the two models are known to belong to different families. A name without a known family, such
/// as an alias or a deployment name, may stand for any model.
#[must_use]
pub fn differ(one: &str, other: &str) -> bool {
    matches!((family(one), family(other)), (Some(one), Some(other)) if one != other)
}

fn family(model: &str) -> Option<&'static str> {
    let name = bare(model);
    FAMILIES.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, family)| *family)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_14_families_differ_only_if_both_are_known() {
        for (one, other, is) in [
            ("claude-haiku-4-5", "claude-opus-5", false),
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
}
