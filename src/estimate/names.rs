//! Removes the provider and the date from names of models, to compare them.

/// Returns a model's name without its provider, in lower case. The names that gateways give Claude are turned into
/// Anthropic's: `anthropic/claude-sonnet-4.5` and `us.anthropic.claude-sonnet-4-5` into `claude-sonnet-4-5`.
pub(super) fn bare(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    match name.rfind("anthropic.").map_or(&*name, |at| &name[at + "anthropic.".len()..]) {
        claude if claude.starts_with("claude-") => claude.replace('.', "-"),
        _ => name,
    }
}

/// Returns true if both names belong to the same model. Case, the provider (up to the last `/`) and a date at the end
/// are ignored.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    undated(&bare(one)) == undated(&bare(other))
}

/// Removes what does not change the price from the end of a bare name: Bedrock's `-v1:0`, a date and `-latest`.
pub(super) fn released(name: &str) -> &str {
    let name = name.strip_suffix(":0").unwrap_or(name);
    let name = name.strip_suffix("-v1").or(name.strip_suffix("-v2")).unwrap_or(name);
    undated(name.strip_suffix("-latest").unwrap_or(name))
}

/// Removes a date from the end of a bare name: `-20251001`, `@20251001` or `-2025-10-01`.
fn undated(name: &str) -> &str {
    let without = |pattern: &str| {
        let (before, end) = name.split_at_checked(name.len().checked_sub(pattern.len())?)?;
        let fits = |(c, p): (char, char)| match p {
            '0' => c.is_ascii_digit(),
            '@' => c == '@' || c == '-',
            p => c == p,
        };
        end.chars().zip(pattern.chars()).all(fits).then_some(before)
    };
    ["@0000-00-00", "@00000000"].into_iter().find_map(without).unwrap_or(name)
}
