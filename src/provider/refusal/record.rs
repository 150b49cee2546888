//! Writes a failure: as an `error` record, and as the text of a diagnostic.

use super::place::Place;
use super::{Certainty, Failure};
use crate::fault::Fault;
use crate::json::write::Members;
use std::fmt;

/// The maximum number of places in a diagnostic.
const SHOWN_PLACES: usize = 3;

impl Failure {
    /// Returns the failure as an `error` record without id, timestamp and line end. If unknown, members are omitted,
    /// except that `status` and `model` are null.
    #[must_use]
    pub fn to_error_record(&self, model: Option<&str>) -> String {
        let record = Members::of_type("error")
            .string("class", self.class.name())
            .or_null(Members::number, "status", self.status)
            .string("message", &self.message)
            .optional(Members::number, "limit", self.limit)
            .optional(Members::number, "actual", self.actual)
            .flag("actual_is_floor", self.actual_is_floor);
        self.evidence(record).or_null(Members::string, "model", model).into_json()
    }

    /// Adds the members about what the guard can do to `record`.
    #[must_use]
    pub fn evidence(&self, record: Members) -> Members {
        let places = Some(self.places.iter().map(Place::to_json)).filter(|it| it.len() > 0);
        record
            .string("fault", self.fault.name())
            .string("certainty", self.certainty.name())
            .optional(Members::string, "why", self.why.as_deref())
            .optional(Members::list, "places", places)
            .optional(Members::number, "request_bytes", self.request_bytes)
            .optional(Members::number, "limit_bytes", self.limit_bytes)
    }
}

impl fmt::Display for Failure {
    /// Writes the class, the rule and the message, then the numbers that are known and the evidence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let likely = match self.certainty {
            Certainty::Likely if self.fault != Fault::Block => "likely ",
            _ => "",
        };
        write!(f, "{likely}{} (rule {}): {}", self.class.name(), self.rule, self.message)?;
        let actual = if self.actual_is_floor { "actual at least" } else { "actual" };
        let is_of_size = self.fault == Fault::Bytes;
        let numbers = [
            (actual, self.actual),
            ("limit", self.limit),
            ("requested output", self.requested_output),
            ("output cap", self.output_cap),
            ("bytes sent", self.request_bytes.filter(|_| is_of_size)),
            ("limit in bytes", self.limit_bytes),
        ];
        let known =
            numbers.into_iter().filter_map(|(name, size)| Some(format!("{name} {}", size?)));
        let why = self.why.iter().filter(|_| !likely.is_empty()).map(ToString::to_string);
        let places = self.places.iter().take(SHOWN_PLACES).map(Place::to_string);
        let known: Vec<String> = known.chain(places).chain(why).collect();
        if !known.is_empty() {
            write!(f, " ({})", known.join(", "))?;
        }
        match self.retry_after {
            Some(seconds) if self.retryable => write!(f, "; retry after {seconds} s"),
            _ => Ok(()),
        }
    }
}
