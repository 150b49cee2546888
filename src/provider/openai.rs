//! Chat completions, as OpenAI has them and many others: requests to bytes, bytes to replies.

use crate::json::Object;
use crate::provider::protocol::Collect;
use crate::provider::{Reply, Request};

/// Where the API is when nobody says.
pub const BASE_URL: &str = "https://api.openai.com/v1";

/// The address under a base URL.
#[must_use]
pub fn url(base: &str) -> String {
    base.to_owned()
}

/// The body of a request: always the same bytes for the same request.
#[must_use]
pub fn body(_request: &Request<'_, '_>) -> String {
    String::new()
}

/// Reads an answer that came whole.
///
/// # Errors
/// Says what it lacks.
pub fn read(_answer: &Object<'_>) -> Result<Reply, String> {
    Err("is not read yet".to_owned())
}

/// A reply that comes event by event.
#[derive(Default)]
pub struct Stream;

impl Collect for Stream {
    fn take(&mut self, _: &Object<'_>, _: &mut dyn FnMut(&str)) -> Result<(), String> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Reply, String> {
        Err("is not read yet".to_owned())
    }
}
