//! The windows of models, by name: a plain-text table that the user can extend.
//!
//! [`lookup`] finds a name in `models.txt`, which is part of the program and explains its own form,
//! and before that in a table of the user's. A model that is in neither has no window, and none is
//! made up for it: a window that is guessed too large shows only when a session overflows.
//!
//! A row names the start of a model's name, so that one row serves `claude-haiku-4-5` and
//! `claude-haiku-4-5-20251001`. It does not reach into a version: the row `gpt-5` says nothing of
//! `gpt-5.9`, nor `claude-opus-4-1` of `claude-opus-4-10`.

/// The table that is part of the program.
const BUILT_IN: &str = include_str!("models.txt");

/// What is known of a model, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The most that a request may take, prompt and answer together.
    pub window: u64,
    /// The most that an answer may take, if that does not depend on the host.
    pub max_output: Option<u64>,
}

/// Finds `name` in `extra`, the text of a user's table, and then in the table of the program.
///
/// Case does not matter, nor does a provider before the last `/`, on either side. In each table the
/// longest fitting row wins, and of two equal ones the later. `Ok(None)` says that no row fits.
///
/// # Errors
///
/// The first malformed line of `extra`: its number, and what is wrong with it.
pub fn lookup(name: &str, extra: Option<&str>) -> Result<Option<Model>, String> {
    let name = bare(name);
    for table in extra.into_iter().chain([BUILT_IN]) {
        if let Some(model) = find(&name, table)? {
            return Ok(Some(model));
        }
    }
    Ok(None)
}

/// A name without its provider, in small letters.
pub(super) fn bare(name: &str) -> String {
    name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Returns whether two names are those of one model, as the table of models sees it: case does not matter, nor
/// a provider before the last `/`, nor the date of a version at the end.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    undated(&bare(one)) == undated(&bare(other))
}

/// A bare name without a date at its end: `-20251001`, `@20251001` or `-2025-10-01`.
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

/// The model of the best row in `table` for a bare name.
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

/// The row of a line, its prefix a bare name; `None` if there is only a comment or nothing.
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
    name.strip_prefix(prefix).is_some_and(|rest| !goes_on(prefix, rest))
}

/// Whether `rest` goes on with the version number that `prefix` ends with.
///
/// It does with a digit, and with a dot or hyphen and a number of one or two digits. A longer
/// number is a date, and one with a letter after it (`-32b`) is a size.
fn goes_on(prefix: &str, rest: &str) -> bool {
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
    fn the_table_of_the_program_is_well_formed() {
        assert_eq!(find("", BUILT_IN), Ok(None));
    }

    #[test]
    fn every_row_finds_itself() {
        for (prefix, model) in BUILT_IN.lines().filter_map(|line| parse(line).unwrap()) {
            assert_eq!(lookup(&prefix, None), Ok(Some(model)), "{prefix}");
        }
    }

    #[test]
    fn a_provider_a_date_and_case_do_not_matter() {
        let haiku = Some(Model { window: 200_000, max_output: Some(64_000) });
        for name in [
            "claude-haiku-4-5",
            "claude-haiku-4-5-20251001",
            "claude-haiku-4-5@20251001",
            "anthropic/claude-haiku-4-5",
            "openrouter/anthropic/Claude-Haiku-4-5-20251001",
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
    fn the_rows_of_the_user_win() {
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
    fn a_malformed_line_is_named_with_its_reason() {
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
