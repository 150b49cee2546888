//! The prices of models, and the cost of a reply.

use clawutils::cli::Log;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::LimitArgs;
use clawutils::cost::PriceList;
use clawutils::json::write::Members;
use clawutils::provider::Reply;
use clawutils::usage::Counts;

/// The prices of models.
pub struct Prices {
    list: PriceList,
    /// True if the user gave prices, so that each reply's cost is reported.
    is_reported: bool,
}

impl Prices {
    /// Reads the prices.
    ///
    /// # Errors
    /// See [`LimitArgs::prices`].
    pub(super) fn read(limits: &LimitArgs, model: &ModelArgs) -> anyhow::Result<Prices> {
        Ok(Prices { list: limits.prices(model)?, is_reported: limits.prices.is_some() })
    }

    /// Returns the cost of these tokens.
    ///
    /// # Errors
    /// See [`PriceList::require`].
    pub(super) fn cost(&self, model: &str, counts: &Counts) -> anyhow::Result<f64> {
        Ok(self.list.require(model)?.cost(counts).unwrap_or_default())
    }

    /// Reports the cost of a reply, if the user gave prices. If the reply has no usage or the model no price, reports the cost as
    /// `unpriced`. Also reports a count that cannot be true.
    pub(super) fn report(&self, reply: &Reply, requested: &str, log: Log) {
        let counts = reply.usage.as_deref().map_or(Ok(None), Counts::check);
        if let Err(implausible) = &counts {
            log.note(&implausible.to_string());
        }
        if !self.is_reported {
            return;
        }
        let model = reply.model.as_deref().unwrap_or(requested);
        let Ok(Some(counts)) = counts else {
            log.outcome(
                "the reply has no usage that can be counted, so its cost is unknown",
                &Members::new().string("cost", "unpriced"),
            );
            return;
        };
        let cost = self.list.cost(model, &counts).or_else(|| self.list.cost(requested, &counts));
        match cost {
            Some(cost) => {
                log.outcome(
                    &format!("{counts}: {cost}"),
                    &counts.add_to(Members::new().decimal("cost", cost)),
                );
            }
            None => {
                let text = format!("{counts}: unpriced, no price for '{model}'");
                log.outcome(&text, &counts.add_to(Members::new().string("cost", "unpriced")));
            }
        }
    }
}
