//! The numbers that a provider gives when it refuses a request as too long.

use crate::estimate::{Gauge, Request};
use crate::json::Object;

/// The numbers in the `error` record of a refused request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    /// The window according to the provider, in tokens.
    pub limit: Option<u64>,
    /// The tokens of the prompt according to the provider.
    pub actual: Option<u64>,
    /// True if the provider stopped counting at `actual`, so that the prompt may be larger.
    pub is_floor: bool,
}

impl Refused {
    /// Reads the numbers from the record.
    #[must_use]
    pub fn of(record: &Object<'_>) -> Refused {
        let positive = |name: &str| record.number(name).filter(|number| *number > 0);
        Refused {
            limit: positive("limit"),
            actual: positive("actual"),
            is_floor: record.is_true("actual_is_floor"),
        }
    }

    /// Returns a gauge for a request, calibrated by its refusal if there was one. If the provider stopped counting
    /// early, its count is used only if the estimate is not larger.
    #[must_use]
    pub fn gauge(refused: Option<&Refused>, request: Request<'_, '_>) -> Gauge {
        let plain = Gauge::new(request, None);
        let Some(Refused { actual: Some(actual), is_floor, .. }) = refused else { return plain };
        if *is_floor && plain.tokens(request) > *actual {
            return plain;
        }
        Gauge::new(request, Some(*actual))
    }
}
