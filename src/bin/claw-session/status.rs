//! status: show the names, the path and statistics of a session.

use crate::list;
use crate::place::{SessionPlace, short};
use clawutils::cli::{Output, open_transcript, prices};
use clawutils::cost::{Bill, PriceList};
use clawutils::exit::Exit;
use clawutils::json::write::Members;
use clawutils::printable::{printable, printable_json};
use clawutils::session::SessionEntry;
use clawutils::session::status::SessionStatus as Contents;
use std::path::PathBuf;

/// Show the names, the path and statistics of a session.
#[derive(Clone, Debug, clap::Args)]
pub struct Status {
    /// Id, key or label of the session, or the beginning of one
    pub name: String,
    /// Write one JSON object
    #[arg(long)]
    pub json: bool,
    /// File of prices, one model per line, which wins over the table of models
    #[arg(long, value_name = "FILE", env = "CLAW_PRICES")]
    pub prices: Option<PathBuf>,
    /// File of models to look up before the built-in table
    #[arg(long, value_name = "FILE", env = "CLAW_MODELS")]
    pub models: Option<PathBuf>,
}

impl Status {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let entry = place.find(&entries, &self.name)?;
        let input = open_transcript(&entry.path)?;
        let contents = Contents::read(&input)?;
        let prices = prices(self.prices.as_deref(), self.models.as_deref())?;
        let bill = Bill::of(contents.used.each(), &prices);
        if self.json {
            let current = place.store.current(&entry.agent, &entries);
            let entry = list::members(entry, current.is_some_and(|own| own.path == entry.path));
            let members = add_counts(entry, &contents, &bill, input.length);
            return Output::lines([printable_json(&members.into_json())]);
        }
        let lines = lines(entry, &contents, &bill, &prices, input.length).into_iter();
        Output::lines(
            lines.map(|(name, value)| printable(&format!("{name:13}{value}")).into_owned()),
        )
    }
}

/// Returns the counts by name.
fn counts(contents: &Contents, bytes: u64) -> [(&'static str, u64); 10] {
    [
        ("turns", contents.turns),
        ("calls", contents.calls),
        ("results", contents.results),
        ("compactions", contents.compactions),
        ("truncations", contents.truncations),
        ("omissions", contents.omissions),
        ("checkpoints", contents.checkpoints),
        ("errors", contents.errors),
        ("findings", contents.findings),
        ("bytes", bytes),
    ]
}

fn add_counts(members: Members, contents: &Contents, bill: &Bill, bytes: u64) -> Members {
    let counts = counts(contents, bytes).into_iter();
    counts
        .fold(members, |it, (name, count)| it.number(name, count))
        .string("model", &contents.model)
        .object("used", |it| bill.add_to(it))
}

fn lines(
    entry: &SessionEntry,
    contents: &Contents,
    bill: &Bill,
    prices: &PriceList,
    bytes: u64,
) -> Vec<(&'static str, String)> {
    let SessionEntry { id, agent, key, label, path, created, active, .. } = entry;
    let mut lines = vec![
        ("id", id.clone()),
        ("agent", agent.clone()),
        ("key", key.clone()),
        ("label", label.clone()),
        ("path", path.display().to_string()),
        ("created", short(*created)),
        ("last record", short(*active)),
        ("records", contents.records.to_string()),
    ];
    lines.extend(counts(contents, bytes).map(|(name, count)| (name, count.to_string())));
    lines.push(("model", contents.model.clone()));
    if !bill.is_empty() {
        lines.extend([("used", bill.counts.to_string()), ("cost", bill.amount(prices))]);
    }
    lines.retain(|(_, value)| !value.is_empty());
    lines
}
