//! The numbers that a provider gives when it refuses a request as too long.

use crate::estimate::{Gauge, Request};
use crate::json::Object;

/// What the `error` record of a refused request says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    /// The window that it named, in tokens.
    pub limit: Option<u64>,
    /// The prompt's tokens as the provider counted them.
    pub actual: Option<u64>,
    /// The provider stopped counting there.
    pub is_floor: bool,
}

impl Refused {
    /// Reads the record.
    #[must_use]
    pub fn of(record: &Object<'_>) -> Refused {
        let positive = |name: &str| record.number(name).filter(|number| *number > 0);
        Refused {
            limit: positive("limit"),
            actual: positive("actual"),
            is_floor: record.is_true("actual_is_floor"),
        }
    }

    /// A gauge for the request that was refused.
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
