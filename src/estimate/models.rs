//! Models by name: context windows, tokenizer families, images and prices, from a plain-text table that users can extend.
//!
//! [`Model::find`] searches the user's table first, and then `models.txt`, which is compiled in and documents its
//! format. A model in neither has no known window, and the largest estimates. The program does not guess a window: a
//! guess that is too large shows only when a session overflows.
//!
//! A row names a prefix of a model's name, so one row covers both `claude-haiku-4-5` and
//! `claude-haiku-4-5-20251001`. A prefix does not match part of a version: the row `gpt-5` does not match
//! `gpt-5.9`, and `claude-opus-4-1` does not match `claude-opus-4-10`.

use super::Family;
use super::images::ImageRule;
pub use super::names::is_same;
use super::names::{bare, released};
use super::table::{Columns, Row};
use crate::usage::prices::Prices;
use std::cmp::Reverse;
use std::sync::LazyLock;

/// The table that is compiled in. A test parses it.
static BUILT_IN: LazyLock<Vec<Row>> =
    LazyLock::new(|| Row::read_all(include_str!("models.txt")).unwrap_or_default());

/// The properties of a model that the tables contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model<'n> {
    /// The name that it was looked up by.
    pub name: &'n str,
    /// The limit for prompt and answer together in tokens, if known.
    pub window: Option<u64>,
    /// The limit for an answer in tokens, unless it depends on the host.
    pub max_output: Option<u64>,
    /// The tokenizer family; [`Family::Unknown`] if no table names one.
    pub family: Family,
    /// True if a table has a family for the model, even the family `unknown`.
    pub is_listed: bool,
    /// The rule for the tokens of images.
    pub images: ImageRule,
    /// True if the model refuses tools in chat completions, so that OpenAI's Responses API is used for it.
    pub needs_responses: bool,
    /// The factor for all estimates, in thousandths.
    pub factor: u64,
    /// The prices, if known.
    pub prices: Option<Prices>,
}

impl<'n> Model<'n> {
    /// Finds a model in the table that is compiled in.
    #[must_use]
    pub fn named(name: &'n str) -> Model<'n> {
        Model::new(name, columns(&bare(name), &BUILT_IN))
    }

    /// Finds a model in `extra`, the text of a user's table, and in the table that is compiled in.
    ///
    /// Names are compared without regard to case and without the provider, which ends at the last `/`. Each column comes
    /// from the user's table if a matching row there has it. In each table the longest matching row that has the column
    /// wins; of two with the same length, the later one.
    ///
    /// # Errors
    ///
    /// Fails if a line of `extra` is malformed. The message has the number of the first such line and the reason.
    pub fn find(name: &'n str, extra: Option<&str>) -> Result<Model<'n>, String> {
        let bare = bare(name);
        let own = Row::read_all(extra.unwrap_or_default())?;
        Ok(Model::new(name, columns(&bare, &own).or(columns(&bare, &BUILT_IN))))
    }

    fn new(name: &'n str, columns: Columns) -> Model<'n> {
        let family = columns.family.unwrap_or_default();
        Model {
            name,
            window: columns.window,
            max_output: columns.max_output,
            family,
            is_listed: columns.family.is_some(),
            images: columns.images.unwrap_or_default(),
            needs_responses: columns.needs_responses.unwrap_or_default(),
            factor: columns.factor.unwrap_or(1000),
            prices: columns.prices,
        }
    }

    /// Returns true if the model is known to have another vendor or tokenizer than the model with the name `other`, so
    /// that the counts of one say little about the other. A name that is not listed, such as an alias or a deployment
    /// name, may stand for any model, so the result for it is false.
    #[must_use]
    pub fn differs_from(&self, other: &str) -> bool {
        if is_same(self.name, other) {
            return false;
        }
        let other = Model::named(other);
        let vendor = |model: &Model<'_>| -> String {
            bare(model.name).chars().take_while(char::is_ascii_alphabetic).collect()
        };
        let is_unknown = self.family == Family::Unknown;
        self.is_listed
            && other.is_listed
            && (self.family != other.family || is_unknown && vendor(self) != vendor(&other))
    }
}

/// Returns the columns of the rows that match a bare name. A row's prices are used only if the row matches all versions
/// or names the model itself.
fn columns(name: &str, table: &[Row]) -> Columns {
    let mut rows: Vec<&Row> = table.iter().filter(|row| fits(name, row)).collect();
    rows.reverse();
    rows.sort_by_key(|row| Reverse(row.prefix.len()));
    rows.into_iter().fold(Columns::default(), |columns, row| {
        let is_priced = row.is_open || released(name) == released(&row.prefix);
        let prices = row.columns.prices.filter(|_| is_priced);
        columns.or(Columns { prices, ..row.columns })
    })
}

fn fits(name: &str, row: &Row) -> bool {
    let rest = name.strip_prefix(&row.prefix);
    rest.is_some_and(|rest| row.is_open || !continues_version(&row.prefix, rest))
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
    use super::{BUILT_IN, Family, Model, Row, is_same};

    fn window(name: &str) -> Option<u64> {
        Model::named(name).window
    }

    fn window_in(name: &str, table: &str) -> Option<u64> {
        Model::find(name, Some(table)).unwrap().window
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
        let table = Row::read_all(include_str!("models.txt")).unwrap();
        assert!(table.len() > 100);
        assert_eq!(table, *BUILT_IN);
    }

    #[test]
    fn the_prefix_in_each_row_finds_that_row() {
        for row in BUILT_IN.iter() {
            let (model, own) = (Model::named(&row.prefix), row.columns);
            for (found, own) in [(model.window, own.window), (model.max_output, own.max_output)] {
                assert!(own.is_none() || found == own, "{}", row.prefix);
            }
            assert!(own.family.is_none_or(|it| it == model.family), "{}", row.prefix);
            assert!(own.images.is_none_or(|it| it == model.images), "{}", row.prefix);
            assert!(own.prices.is_none() || own.prices == model.prices, "{}", row.prefix);
        }
    }

    #[test]
    fn every_built_in_row_has_a_family() {
        for row in BUILT_IN.iter() {
            assert!(Model::named(&row.prefix).is_listed, "{}", row.prefix);
        }
    }

    #[test]
    fn the_models_of_today_are_known_and_those_of_tomorrow_have_the_family_of_their_line() {
        for (name, window, output) in [
            ("claude-opus-5-5", 1_000_000, 128_000),
            ("claude-sonnet-5-5", 1_000_000, 128_000),
            ("claude-haiku-5-5", 1_000_000, 128_000),
            ("claude-fable-5-1", 1_000_000, 128_000),
            ("claude-fable-5-2", 1_000_000, 128_000),
            ("claude-mythos-5-1", 1_000_000, 128_000),
            ("claude-mythos-5-2", 1_000_000, 128_000),
            ("gpt-6.2-sol", 922_000, 128_000),
            ("gpt-6-astra", 922_000, 128_000),
            ("gpt-6.1-sol", 922_000, 128_000),
            ("gpt-5.6-terra", 922_000, 128_000),
            ("gpt-5.5", 922_000, 128_000),
            ("gpt-5.4-2026-03-05", 922_000, 128_000),
            ("gemini-3.5-flash", 1_048_576, 65_536),
            ("kimi-k3", 1_048_576, 1_048_576),
            ("grok-4.7", 500_000, 500_000),
            ("glm-5.3", 1_000_000, 128_000),
            ("qwen3.8-max", 991_808, 131_072),
            ("mistral-large-4", 1_048_576, 1_048_576),
        ] {
            let model = Model::named(name);
            assert_eq!((model.window, model.max_output), (Some(window), Some(output)), "{name}");
        }
        for (name, family, needs_responses) in [
            ("claude-opus-6", Family::NewerClaude, false),
            ("gpt-6.3-nova", Family::O200k, true),
            ("gpt-5.7", Family::O200k, true),
            ("gpt-8", Family::O200k, true),
            ("gpt-12.1-sol", Family::O200k, true),
            ("gpt-5.3", Family::O200k, false),
            ("gemini-4-pro", Family::Gemini, false),
        ] {
            let model = Model::named(name);
            assert_eq!((model.family, model.needs_responses), (family, needs_responses), "{name}");
            assert_eq!((model.window, model.prices), (None, None), "{name}");
        }
        assert!(
            Model::named("gpt-5.4").needs_responses && !Model::named("gpt-5.2").needs_responses
        );
    }

    #[test]
    fn a_price_is_for_the_named_model_only() {
        let input = |name| Model::named(name).prices.and_then(|prices| prices.input);
        for (name, price) in [
            ("claude-opus-4-5", Some(5.0)),
            ("anthropic/claude-opus-4.5", Some(5.0)),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some(1.0)),
            ("gpt-4o-2024-08-06", Some(2.5)),
            ("gpt-4o-2024-05-13", Some(5.0)),
            ("gpt-4o-mini", Some(0.15)),
            ("gpt-4o-audio-preview", None),
            ("anthropic/claude-opus-4.5:free", None),
            ("gpt-5.4-pro", Some(30.0)),
            ("gemini-2.5-pro", Some(1.25)),
            ("my-model", None),
        ] {
            assert_eq!(input(name), price, "{name}");
        }
        let own = Model::find("my-model-2", Some("my-* - - input=0 output=0")).unwrap();
        assert_eq!(own.prices.and_then(|prices| prices.output), Some(0.0));
    }

    #[test]
    fn a_column_in_the_users_table_replaces_only_that_column() {
        let own = "claude 90000\ngpt-5* - - factor=1.2\nx - - family=qwen images=tiles:1:2";
        let model = |name| Model::find(name, Some(own)).unwrap();
        let claude = model("claude-opus-4-5");
        assert_eq!((claude.window, claude.family), (Some(90_000), Family::Claude));
        assert!(claude.prices.is_some());
        let gpt = model("gpt-5.2");
        assert_eq!((gpt.window, gpt.family, gpt.factor), (Some(272_000), Family::O200k, 1200));
        assert_eq!((model("x").window, model("x").family), (None, Family::Qwen));
    }

    #[test]
    fn audit_14_models_differ_only_if_both_are_listed() {
        for (one, other, is) in [
            ("claude-haiku-4-5", "claude-opus-5", true),
            ("claude-haiku-4-5", "claude-3-5-sonnet", false),
            ("claude-haiku-4-5", "claude-opus-4-6", false),
            ("claude-opus-4-8", "claude-opus-5", false),
            ("anthropic/Claude-Haiku-4-5", "openai/gpt-5-mini", true),
            ("gpt-4-turbo", "gpt-4o", true),
            ("grok-3", "grok-4", false),
            ("grok-3", "kimi-k2", true),
            ("o3", "chatgpt-4o-latest", false),
            ("llama3.1:70b", "qwen2.5:7b", true),
            ("my-deployment", "gpt-4o", false),
            ("offline", "claude-haiku-4-5", false),
            ("", "gpt-4o", false),
        ] {
            assert_eq!(Model::named(one).differs_from(other), is, "{one} {other}");
            assert_eq!(Model::named(other).differs_from(one), is, "{other} {one}");
        }
    }

    #[test]
    fn provider_date_and_case_are_ignored() {
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
            let model = Model::named(name);
            assert_eq!((model.window, model.max_output), (Some(200_000), Some(64_000)), "{name}");
        }
        assert_eq!(window("gpt-4o-mini-2024-07-18"), Some(128_000));
        assert_eq!(window("Qwen/Qwen3-32B-AWQ"), Some(40_960));
    }

    #[test]
    fn the_row_with_the_longest_matching_prefix_wins() {
        assert_eq!(window("gpt-4.1-nano"), Some(1_047_576));
        let table = "a 10\na-b-c 30\na-b 20\n";
        for (name, window) in [("a-b-c-d", 30), ("a-b-d", 20), ("a-d", 10)] {
            assert_eq!(window_in(name, table), Some(window));
        }
    }

    #[test]
    fn another_version_is_another_model() {
        for name in ["gpt-5.9", "gpt-50", "claude-opus-4-10", "claude-opus-5-1", "o33", "qwen2.5"] {
            assert_eq!(window(name), None, "{name}");
        }
        for name in ["gpt-5-mini", "gpt-5-2025-08-07", "gpt-5.2-codex", "claude-opus-5-20260801"] {
            assert!(window(name).is_some(), "{name}");
        }
        assert_eq!(window_in("qwen3-4b", "qwen3 9000"), Some(9_000));
    }

    #[test]
    fn an_unknown_model_has_no_window() {
        for name in ["", "/", "my-model", "claude", "claude-opus", "anthropic/"] {
            assert_eq!(window(name), None, "{name}");
        }
    }

    #[test]
    fn a_makers_limits_are_not_those_of_other_models_with_the_same_beginning() {
        for name in [
            "deepseek-r1:7b",
            "deepseek-r1-distill-llama-70b",
            "deepseek-coder:6.7b",
            "deepseek-v3:671b",
            "mistral-small:24b",
            "mistral-small3.1",
            "mistral-medium-2505",
            "gemma-3-27b-it",
            "qwen3-30b-a3b",
            "minimax-m2.5",
        ] {
            assert_eq!(window(name), None, "{name}");
        }
    }

    #[test]
    fn the_users_rows_come_first() {
        let table =
            "# mine\n\nClaude 90000 4096 # the proxy allows no more\r\nlocal 4096 -\nlocal 8192";
        let limits = |name| {
            let model = Model::find(name, Some(table)).unwrap();
            (model.window, model.max_output)
        };
        assert_eq!(limits("claude-opus-4-5"), (Some(90_000), Some(4_096)));
        assert_eq!(limits("local"), (Some(8_192), None));
        assert_eq!(window_in("gpt-4o", table), window("gpt-4o"));
        assert_eq!(window_in("Mine", "me/mine 100"), window_in("you/mine", "MINE 100"));
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
            ("m 100 50 speed=9", "there is no column 'speed'"),
            ("m 100 family=x", "'family=x' is not valid"),
            ("m 100 images=tiles:1", "'images=tiles:1' is not valid"),
            ("m 100 factor=2.1", "'factor=2.1' is not valid"),
            ("m 100 input=-1", "'input=-1' is not valid"),
            ("m 100 input=1", "'m' has prices, but not for both input and output"),
        ] {
            let table = format!("# one\n\n{line}\n");
            let found = Model::find("gpt-4o", Some(&table));
            assert_eq!(found.unwrap_err(), format!("line 3: {reason}"));
        }
    }
}
