//! The numbers in claw-guard(7) are those of the library, of the settings and of the measurements in docs/.

use std::fs;
use std::path::Path;

use clawutils::compact::{KEEP_USER, SUMMARY_TOKENS, summary_tokens};
use clawutils::estimate::Budget;
use clawutils::estimate::bytes::{ByteLimit, documented};
use clawutils::fault::Fault;
use clawutils::guard::{SENT, next};
use clawutils::shorten::HEAD_RATIO;
use clawutils::truncate::{MAX_FRACTION, TruncateOptions};

use crate::common::{AssertExt, Sandbox};
use crate::man::assert_no_complaints;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn page() -> String {
    read("man/claw-guard.7")
}

/// Returns the text on one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the percentages in one column of a text's tables, from the rows whose first cell begins with `name`.
fn percentages(text: &str, name: &str, column: usize) -> Vec<f64> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let cells = cells.filter(|cells| cells[0].starts_with(name));
    cells.filter_map(|cells| cells.get(column)?.strip_suffix(" %")?.parse().ok()).collect()
}

/// Returns the number with a comma after each group of three digits, as the page writes it.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Returns the column of the table for a window: the name of each row, and its number.
fn column(window: u64) -> Vec<(&'static str, u64)> {
    let budget = Budget::new(window, None, None).expect("a window with room for a prompt");
    let options = TruncateOptions::new(window, MAX_FRACTION, budget.prompt());
    let chars = |count: usize| u64::try_from(count).expect("a small number");
    vec![
        ("window", window),
        ("answer", budget.output),
        ("margin", budget.margin),
        ("prompt budget", budget.prompt()),
        ("compact at", budget.trigger()),
        ("compact to", budget.target()),
        ("one result", chars(options.max_chars)),
        ("shortest result", chars(options.floor_chars)),
        ("longest summary", summary_tokens(Some(budget.target()))),
        ("user's words", KEEP_USER.min(budget.target() / 4)),
    ]
}

#[test]
fn the_table_of_sizes_is_that_of_the_library() {
    let columns = [8000, 32_768, 200_000, 1_000_000].map(column);
    let row = |at: usize| {
        let numbers: String =
            columns.iter().map(|column| format!(" Ta {}", grouped(column[at].1))).collect();
        format!(".It {}{numbers}", columns[0][at].0)
    };
    let expected: Vec<String> = (0..columns[0].len()).map(row).collect();
    let page = page();
    let rows: Vec<&str> = page.lines().filter(|line| line.contains(" Ta ")).collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_limits_in_bytes_are_those_of_the_library() {
    let limit = |provider: &str, address: &str| {
        documented(provider, address).map(|bytes| bytes / 1_000_000).expect("a limit")
    };
    let [bedrock, vertex] = ["https://bedrock-runtime.aws", "https://x-aiplatform.googleapis.com"]
        .map(|address| limit("anthropic", address));
    let google = limit("openai", "https://generativelanguage.googleapis.com/v1beta/openai");
    let words = format!(
        "are {} MB for Anthropic ({bedrock} MB on Bedrock, {vertex} MB on Vertex AI), {} MB for OpenAI and {google} MB for Google",
        limit("anthropic", "https://api.anthropic.com"),
        limit("openai", "https://api.openai.com/v1"),
    );
    let text = joined(&page());
    assert!(text.contains(&words), "{words}");
    let margin = 100 - ByteLimit(100).most();
    assert!(text.contains(&format!("stated in a refusal, less {margin} %")));
    let below = 100 - ByteLimit(100).target();
    assert!(text.contains(&format!("until the request is {below} % below the limit")));
    let calls = 1
        + (0..).take_while(|sent| next(Fault::Block, false, &vec![SENT; *sent]).is_some()).count();
    assert_eq!(calls, 8, "the page says: at most eight calls");
}

#[test]
fn the_defaults_in_the_text_are_those_of_the_programs() {
    let run = Sandbox::new().cmd("claw-config").args(["list", "--json"]).assert();
    let settings = run.success().json();
    let default = |key: &str| -> u64 {
        let found = settings.iter().find(|setting| setting["key"] == key);
        found.and_then(|setting| setting["default"].as_u64()).unwrap_or_else(|| panic!("{key}"))
    };
    let large = Budget::new(u64::from(u32::MAX), None, None).expect("a large window");
    let statements = [
        format!("smaller of {} tokens and 15 % of the window", grouped(large.reserve)),
        format!("more than {} seconds, the call fails", default("max-wait")),
        format!("longer than {:.0} % of the window", MAX_FRACTION * 100.0),
        format!("kept, {:.0} % is from the beginning", HEAD_RATIO * 100.0),
        format!("up to {} tokens and a quarter", grouped(KEEP_USER)),
        format!("at most {SUMMARY_TOKENS} tokens"),
        format!(
            "after {} turns, and has at least {} tokens",
            default("checkpoint-turns"),
            grouped(default("checkpoint-min-tokens"))
        ),
        format!(
            "failed {} times in a row is skipped for {} minutes",
            default("max-failures"),
            default("failure-reset")
        ),
    ];
    let text = joined(&page());
    let missing: Vec<String> =
        statements.into_iter().filter(|words| !text.contains(words)).collect();
    assert_no_complaints(&missing);
    assert_eq!(default("max-retries"), 2, "the page says: at most twice");
}

#[test]
fn the_measured_shares_are_those_of_the_documents() {
    let ends = |all: &[f64]| {
        let low = all.iter().copied().fold(f64::INFINITY, f64::min).abs();
        (low, all.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let (low, high) = ends(&percentages(&read("docs/recall.md"), "local", 3));
    let kept = format!("{low:.0} to {high:.0} %");
    let accuracy = read("docs/accuracy.md");
    let own = accuracy.split("\n## ").find(|part| part.starts_with("claw-estimate"));
    let own = own.expect("the section of claw-estimate");
    let (low, _) = ends(&percentages(own, "", 5));
    let (_, high) = ends(&percentages(own, "", 6));
    let guard = format!("between {low:.0} % below and {high:.0} % above");
    let changelog = format!("between {low:.0} % too low and {high:.0} % too high");
    let said = [
        ("man/claw-guard.7", &kept),
        ("README.md", &kept),
        ("man/claw-guard.7", &guard),
        ("CHANGELOG.md", &changelog),
    ];
    let missing = said.iter().filter(|(file, words)| !joined(&read(file)).contains(*words));
    assert_no_complaints(
        &missing.map(|(file, words)| format!("{file}: no {words:?}")).collect::<Vec<_>>(),
    );
}
