//! Context windows of models by name: a plain-text table that users can extend.
//!
//! [`lookup`] searches the user's table first, and then `models.txt`, which is compiled in and documents its
//! format. A model in neither has no known window. The program does not guess one: a guess that is too large
//! shows only when a session overflows.
//!
//! A row names a prefix of a model's name, so one row covers both `claude-haiku-4-5` and
//! `claude-haiku-4-5-20251001`. A prefix does not match part of a version: the row `gpt-5` does not match
//! `gpt-5.9`, and `claude-opus-4-1` does not match `claude-opus-4-10`.

/// The table that is compiled in.
const BUILT_IN: &str = include_str!("models.txt");

/// The limits of a model in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The limit for prompt and answer together.
    pub window: u64,
    /// The limit for an answer, unless it depends on the host.
    pub max_output: Option<u64>,
}

/// Finds `name` in `extra`, the text of a user's table, and then in the table that is compiled in.
///
/// Names are compared without regard to case and without the provider, which ends at the last `/`. In each table the
/// longest matching row wins; of two with the same length, the later one. Returns `Ok(None)` if no row matches.
///
/// # Errors
///
/// Fails if a line of `extra` is malformed. The message has the number of the first such line and the reason.
pub fn lookup(name: &str, extra: Option<&str>) -> Result<Option<Model>, String> {
    let name = bare(name);
    for table in extra.into_iter().chain([BUILT_IN]) {
        if let Some(model) = find(&name, table)? {
            return Ok(Some(model));
        }
    }
    Ok(None)
}

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

/// Returns the model in the row of `table` that matches a bare name best.
fn find(name: &str, table: &str) -> Result<Option<Model>, String> {
    let mut best: Option<(usize, Model)> = None;
    for (index, line) in table.lines().enumerate() {
        let row = parse(line).map_err(|reason| format!("line {}: {reason}", index + 1))?;
        if let Some((prefix, model)) = row.filter(|(prefix, _)| fits(name, prefix))
            && best.is_none_or(|(length, _)| length <= prefix.len())
        {
            best = Some((prefix.len(), model));
        }
    }
    Ok(best.map(|(_, model)| model))
}

/// Parses a line into a prefix, as a bare name, and a model. Returns `None` if the line has only a comment or
/// is blank.
fn parse(line: &str) -> Result<Option<(String, Model)>, String> {
    let row = line.split('#').next().unwrap_or_default();
    let mut columns = row.split_whitespace();
    let Some(prefix) = columns.next() else {
        return Ok(None);
    };
    let window = columns.next().ok_or_else(|| format!("'{prefix}' has no window"))?;
    let window = number("window", window)?;
    let max_output = match columns.next() {
        None | Some("-") => None,
        Some(column) => Some(number("max output", column)?),
    };
    if let Some(column) = columns.next() {
        return Err(format!("'{column}' is one column too many"));
    }
    if max_output.is_some_and(|max_output| max_output > window) {
        return Err(format!("the max output of '{prefix}' is larger than its window"));
    }
    Ok(Some((bare(prefix), Model { window, max_output })))
}

fn number(column: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err(format!("the {column} is 0")),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("the {column} '{text}' is not a number of tokens")),
    }
}

fn fits(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !continues_version(prefix, rest))
}

/// Returns true if `rest` continues the version number at the end of `prefix`.
///
/// A digit does, and so does a dot or hyphen followed by a number of one or two digits. A longer number is a date,
/// and a number followed by a letter (`-32b`) is a size.
fn continues_version(prefix: &str, rest: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    if !prefix.ends_with(is_digit) {
        return false;
    }
    if rest.starts_with(is_digit) {
        return true;
    }
    let Some(part) = rest.strip_prefix(['.', '-']) else {
        return false;
    };
    let after = part.trim_start_matches(is_digit);
    let digits = part.len() - after.len();
    (1..=2).contains(&digits) && !after.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::{BUILT_IN, Model, find, is_same, lookup, parse};

    fn window(name: &str) -> Option<u64> {
        lookup(name, None).unwrap().map(|model| model.window)
    }

    #[test]
    fn audit_11_a_dated_name_is_the_same_model() {
        let haiku = "claude-haiku-4-5";
        for same in [
            "claude-haiku-4-5-20251001",
            "Claude-Haiku-4-5@20251001",
            "anthropic/claude-haiku-4-5",
            "claude-haiku-4-5-2025-10-01",
        ] {
            assert!(is_same(same, haiku), "{same}");
        }
        for other in ["claude-haiku-4", "claude-haiku-4-5-mini", "claude-haiku-4-5-2025", ""] {
            assert!(!is_same(other, haiku), "{other}");
        }
    }

    #[test]
    fn the_built_in_table_is_well_formed() {
        assert_eq!(find("", BUILT_IN), Ok(None));
    }

    #[test]
    fn the_prefix_in_each_row_finds_that_row() {
        for (prefix, model) in BUILT_IN.lines().filter_map(|line| parse(line).unwrap()) {
            assert_eq!(lookup(&prefix, None), Ok(Some(model)), "{prefix}");
        }
    }

    #[test]
    fn provider_date_and_case_are_ignored() {
        let haiku = Some(Model { window: 200_000, max_output: Some(64_000) });
        for name in [
            "claude-haiku-4-5",
            "claude-haiku-4-5-20251001",
            "claude-haiku-4-5@20251001",
            "anthropic/claude-haiku-4-5",
            "openrouter/anthropic/Claude-Haiku-4-5-20251001",
            "anthropic/claude-haiku-4.5",
            "anthropic/claude-haiku-4.5:beta",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        ] {
            assert_eq!(lookup(name, None), Ok(haiku), "{name}");
        }
        assert_eq!(window("gpt-4o-mini-2024-07-18"), Some(128_000));
        assert_eq!(window("Qwen/Qwen3-32B-AWQ"), Some(40_960));
    }

    #[test]
    fn the_longest_row_wins() {
        assert_eq!(window("gpt-4.1-nano"), Some(1_047_576));
        let table = "a 10\na-b-c 30\na-b 20\n";
        let found = |name| lookup(name, Some(table)).unwrap().map(|model| model.window);
        assert_eq!(found("a-b-c-d"), Some(30));
        assert_eq!(found("a-b-d"), Some(20));
        assert_eq!(found("a-d"), Some(10));
    }

    #[test]
    fn another_version_is_another_model() {
        for name in ["gpt-5.9", "gpt-50", "claude-opus-4-10", "claude-opus-5-1", "o33", "qwen2.5"] {
            assert_eq!(window(name), None, "{name}");
        }
        for name in ["gpt-5-mini", "gpt-5-2025-08-07", "gpt-5.2-codex", "claude-opus-5-20260801"] {
            assert!(window(name).is_some(), "{name}");
        }
        let family = lookup("qwen3-4b", Some("qwen3 9000")).unwrap();
        assert_eq!(family.map(|model| model.window), Some(9_000));
    }

    #[test]
    fn an_unknown_model_has_no_window() {
        for name in ["", "/", "my-model", "claude", "claude-opus", "anthropic/"] {
            assert_eq!(window(name), None, "{name}");
        }
    }

    #[test]
    fn the_users_rows_come_first() {
        let table =
            "# mine\n\nClaude 90000 4096 # the proxy allows no more\r\nlocal 4096 -\nlocal 8192";
        let found = |name| lookup(name, Some(table)).unwrap();
        assert_eq!(
            found("claude-opus-4-5"),
            Some(Model { window: 90_000, max_output: Some(4_096) })
        );
        assert_eq!(found("local"), Some(Model { window: 8_192, max_output: None }));
        assert_eq!(found("gpt-4o"), lookup("gpt-4o", None).unwrap());
        assert_eq!(lookup("Mine", Some("me/mine 100")), lookup("you/mine", Some("MINE 100")));
    }

    #[test]
    fn an_error_names_the_malformed_line_and_the_reason() {
        for (line, reason) in [
            ("m", "'m' has no window"),
            ("m many", "the window 'many' is not a number of tokens"),
            ("m -5", "the window '-5' is not a number of tokens"),
            ("m 0", "the window is 0"),
            ("m 100 few", "the max output 'few' is not a number of tokens"),
            ("m 100 200", "the max output of 'm' is larger than its window"),
            ("m 100 50 fast", "'fast' is one column too many"),
        ] {
            let table = format!("# one\n\n{line}\n");
            assert_eq!(lookup("gpt-4o", Some(&table)), Err(format!("line 3: {reason}")));
        }
    }
}
