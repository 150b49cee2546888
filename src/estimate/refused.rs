//! The `error` record of a refused request: what is wrong with the request, where, and the numbers.

use crate::estimate::{Gauge, Request};
use crate::fault::Fault;
use crate::json::{Object, elements};

/// A place that a refusal names, read from the member `places` of an `error` record, where `provider::refusal::place::Place`
/// writes it. All indices begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedPlace {
    /// The index of the message.
    pub message: usize,
    /// The index of the block in the message; `None` for the whole message.
    pub block: Option<usize>,
    /// The index of the item in the content of a tool result; `None` for the whole block.
    pub part: Option<usize>,
}

impl RefusedPlace {
    fn parse(raw: &str) -> Option<RefusedPlace> {
        let object = Object::parse(raw).ok()?;
        let index = |name| object.number(name).and_then(|number| usize::try_from(number).ok());
        let (block, part) = (index("block"), index("part"));
        Some(RefusedPlace { message: index("message")?, block, part })
    }
}

/// The `error` record of a refused request.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The fault of the request. If the record does not state it, its class decides.
    pub fault: Fault,
    /// True if the fault is only likely.
    pub is_likely: bool,
    /// The places that the refusal names.
    pub places: Vec<RefusedPlace>,
    /// The tool call that the refusal names.
    pub tool_use_id: Option<String>,
    /// The size of the refused request, in bytes.
    pub request_bytes: Option<u64>,
    /// The largest request that the provider accepts, in bytes.
    pub limit_bytes: Option<u64>,
    /// The provider's message.
    pub message: String,
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
        let places = record.get("places").and_then(elements).unwrap_or_default();
        let text = |name: &str| record.string(name).map(|text| text.into_owned());
        Refused {
            fault: fault(record),
            is_likely: record.string("certainty").as_deref() == Some("likely"),
            tool_use_id: text("tool_use_id").or_else(|| places.iter().find_map(|raw| call_in(raw))),
            places: places.into_iter().filter_map(RefusedPlace::parse).collect(),
            request_bytes: positive("request_bytes"),
            limit_bytes: positive("limit_bytes"),
            message: text("message").unwrap_or_default(),
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

/// Returns the id of the tool call in a place, if it has one.
fn call_in(place: &str) -> Option<String> {
    Some(Object::parse(place).ok()?.string("tool_use_id")?.into_owned())
}

/// Returns what the record says is wrong. A record without a class describes a request that is too long.
fn fault(record: &Object<'_>) -> Fault {
    match record.string("fault").as_deref() {
        Some(name) => Fault::named(name),
        None => match record.string("class").as_deref() {
            None | Some("overflow") => Fault::Tokens,
            Some("too-large") => Fault::Bytes,
            Some(_) => Fault::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(record: &str) -> Refused {
        Refused::of(&Object::parse(record).unwrap())
    }

    #[test]
    fn the_fault_decides_before_the_class() {
        for (record, fault) in [
            (r#"{"limit":5}"#, Fault::Tokens),
            (r#"{"class":"overflow"}"#, Fault::Tokens),
            (r#"{"class":"too-large"}"#, Fault::Bytes),
            (r#"{"class":"bad-request"}"#, Fault::Other),
            (r#"{"class":"bad-request","fault":"block"}"#, Fault::Block),
            (r#"{"class":"server","fault":"bytes"}"#, Fault::Bytes),
            (r#"{"class":"overflow","fault":"none"}"#, Fault::Other),
            (r#"{"class":"overflow","fault":"wait"}"#, Fault::Wait),
        ] {
            assert_eq!(refused(record).fault, fault, "{record}");
        }
    }

    #[test]
    fn places_that_are_not_understood_are_skipped() {
        let places =
            refused(r#"{"places":[{"message":3,"block":1,"part":0},{"block":1},7]}"#).places;
        assert_eq!(places, [RefusedPlace { message: 3, block: Some(1), part: Some(0) }]);
    }
}
