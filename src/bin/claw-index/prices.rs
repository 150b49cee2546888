//! Keeps the prices of the models in the index.

use clawutils::cost::PriceList;
use clawutils::usage::prices::hour_write;
use rusqlite::{Connection, params};

/// Adds a model whose prices [`refresh`] then sets.
pub const ADD: &str = "INSERT OR IGNORE INTO prices (model, above) VALUES (coalesce(?, ''), 0)";

/// Sets the prices of all models in the index, in one transaction.
pub fn refresh(database: &Connection, list: &PriceList) -> rusqlite::Result<()> {
    let change = database.unchecked_transaction()?;
    let models = change
        .prepare("SELECT DISTINCT model FROM prices")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut insert =
        change.prepare("INSERT OR REPLACE INTO prices VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    for model in models {
        change.execute("DELETE FROM prices WHERE model = ? AND above > 0", [&model])?;
        let prices = list.of(&model);
        let usual = prices.and_then(|prices| prices.all()).map(|prices| prices.map(Some));
        let [input, read, write, output] = usual.unwrap_or_default();
        let hour = input.zip(write).map(|(input, write)| hour_write(input, write));
        insert.execute(params![model, 0, input, read, write, output, hour])?;
        if let Some(long) = prices.and_then(|prices| prices.above) {
            let limit = i64::try_from(long.limit).unwrap_or(i64::MAX);
            let [input, read, write, output] = long.prices;
            let hour = hour_write(input, write);
            insert.execute(params![model, limit, input, read, write, output, hour])?;
        }
    }
    drop(insert);
    change.commit()
}
