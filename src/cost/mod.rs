//! The cost of a session: the prices of models, the bill for calls, and the moment at which a cut pays.

mod bill;
mod prices;

pub use bill::Bill;
pub use prices::{PriceList, PriceTable};
