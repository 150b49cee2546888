//! Measures how far the estimates for a model are from the counts of its provider.
//!
//! The measure is the growth of the counts divided by the growth of the estimates, each summed over all pairs of
//! consecutive replies of the model. Text that a provider adds to every prompt does not affect the measure.

use super::{Model, Request, table, weigh};
use crate::messages::Message;
use crate::usage::Counts;
use std::fmt;
use weigh::{Weigher, tokens};

/// The smallest growth of the estimates, in tokens, from which a factor is derived.
pub const MIN_GROWTH: u64 = 1000;

/// A measured model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The model's name.
    pub model: String,
    /// The growth of the prompts in tokens, as the provider counted them.
    pub counted: u64,
    /// The same growth in the estimates.
    pub estimated: u64,
}

impl Calibration {
    /// Returns the factor for estimates in thousandths, within the bounds of the table of models.
    #[must_use]
    pub fn factor(&self) -> u64 {
        let factor = u128::from(self.counted) * 1000 / u128::from(self.estimated.max(1));
        u64::try_from(factor).unwrap_or(u64::MAX).clamp(table::FACTORS.0, table::FACTORS.1)
    }
}

impl fmt::Display for Calibration {
    /// Formats the row for a table of models.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calibration { model, counted, estimated } = self;
        let factor = self.factor() as f64 / 1000.0;
        write!(f, "{model} - - factor={factor} # counted {counted}, estimated {estimated} tokens")
    }
}

/// Measures each model that has counts in the messages, in the order in which they appear. A model is left out if its
/// prompts grow too little, or if its name cannot be written into a table.
#[must_use]
pub fn calibrate(messages: &[Message<'_>]) -> Vec<Calibration> {
    let mut names: Vec<&str> = messages.iter().filter_map(|it| Some(counted(it)?.0)).collect();
    let mut known = std::collections::HashSet::new();
    names.retain(|name| known.insert(*name) && is_plain(name));
    let measured = names.into_iter().map(|name| measure(messages, name));
    measured.filter(|it| it.estimated >= MIN_GROWTH).collect()
}

/// Returns true if a name can be written into a table as it is.
fn is_plain(name: &str) -> bool {
    !name.ends_with('*') && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

fn measure(messages: &[Message<'_>], model: &str) -> Calibration {
    let known = Model { factor: 1000, ..Model::named(model) };
    let request = Request { model: Some(known), ..Request::default() };
    let weigher = Weigher::new(request, super::Method::Script);
    let mut sum = Calibration { model: model.to_owned(), counted: 0, estimated: 0 };
    let (mut weight, mut before) = (0, None);
    for message in messages {
        if let Some((_, counts)) = counted(message).filter(|(name, _)| *name == model) {
            let now = (counts.prompt(), tokens(weight));
            if let Some((count, estimate)) = before
                && now.0 > count
                && now.1 > estimate
            {
                sum.counted += now.0 - count;
                sum.estimated += now.1 - estimate;
            }
            before = Some(now);
        }
        weight += weigher.whole(message);
    }
    sum
}

fn counted<'m>(message: &'m Message<'_>) -> Option<(&'m str, Counts)> {
    let meta = message.meta.as_deref()?;
    Some((meta.model.as_deref()?, Counts::read(meta.usage.as_ref()?)?))
}
