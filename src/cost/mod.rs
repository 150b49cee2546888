//! The cost of a session: the prices of models, the bill for calls, and the moment at which a cut pays.

mod bill;
pub mod cold;
pub mod policy;
mod prices;
pub mod rent;
pub mod session;

use crate::json::Object;
pub use bill::Bill;
pub use prices::{PriceList, PriceTable};

/// The moment of a compaction ahead of an overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CompactWhen {
    /// When the window less the reserve is full
    Window,
    /// Also when reading the old part again has cost as much as a summary and a new prefix
    Cost,
}

/// Returns a view record with the reason that it was made for cost.
#[must_use]
pub fn for_cost(record: &str) -> String {
    Object::parse(record).map_or_else(|_| record.to_owned(), |it| it.with("reason", "\"cost\""))
}
