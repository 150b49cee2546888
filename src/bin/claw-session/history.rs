//! history: print the last records of a session, one per line.

use crate::place::{SessionPlace, short};
use clawutils::cli::Output;
use clawutils::exit::Exit;
use clawutils::input::lines::Lines;
use clawutils::json::{Object, elements, string};
use clawutils::printable::printable;
use clawutils::session::time;
use std::collections::VecDeque;

/// Show the last records of a session.
#[derive(Clone, Debug, clap::Args)]
pub struct History {
    /// Id, key or label of the session, or the beginning of one; or the path of a transcript
    pub name: String,
    /// Number of records to show
    #[arg(short = 'n', long = "count", value_name = "N", default_value = "20")]
    pub count: usize,
    /// Write only the ids of the records
    #[arg(long)]
    pub ids: bool,
}

/// The maximum length of a record's text, in characters.
const MAX_CHARACTERS: usize = 200;

impl History {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let input = place.open(&self.name)?;
        let mut last: VecDeque<String> = VecDeque::new();
        let mut lines = Lines::of(&input);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                last.push_back(line.object.text().to_owned());
                if last.len() > self.count {
                    last.pop_front();
                }
            }
        }
        let line = |text: &String| {
            let object = Object::parse(text).ok()?;
            let line = if self.ids { object.string("id")? } else { row(&object).into() };
            Some(printable(line.trim_end()).into_owned())
        };
        Output::lines(last.iter().filter_map(line))
    }
}

fn row(object: &Object<'_>) -> String {
    let time = object.get("ts").and_then(time::of_ts).map_or(String::new(), short);
    let kind = object.string("type").unwrap_or_default();
    format!("{time:19}  {kind:11}  {}", cut(&summary(object)))
}

/// Summarises a record in one line.
fn summary(object: &Object<'_>) -> String {
    let text = |name| object.string(name).map(|text| text.into_owned()).unwrap_or_default();
    match object.string("type").as_deref() {
        Some("session") => [text("id"), text("key"), text("label")].join("  "),
        Some("tool_use") => format!("{} {}", text("name"), object.get("input").unwrap_or_default()),
        Some("compaction" | "checkpoint") => text("summary"),
        Some("retract") => text("target"),
        Some("truncation" | "omission") => text("record_id"),
        Some("error") => text("message"),
        Some("label") => text("label"),
        _ => {
            let content = object.get("content").or_else(|| object.get("output"));
            content.map(content_text).unwrap_or_default()
        }
    }
}

fn content_text(raw: &str) -> String {
    if let Some(text) = string(raw) {
        return text.into_owned();
    }
    let block = |raw: &str| {
        let object = Object::parse(raw).ok()?;
        let kind = object.string("type")?;
        Some(match object.string("text") {
            Some(text) if kind == "text" => text.into_owned(),
            _ => format!("[{kind}]"),
        })
    };
    let blocks = elements(raw).unwrap_or_default();
    blocks.into_iter().filter_map(block).collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of `text`, on one line.
fn cut(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}
