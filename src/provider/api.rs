//! A protocol: how a request is written and how an answer is read.

use crate::json::Object;
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply};

/// A protocol.
pub trait Api {
    /// Returns the URL to send a request to. `base` may end in a slash or a version, or be the endpoint itself.
    fn url(&self, base: &str) -> String;

    /// Returns the URL of the token counting endpoint, if the protocol has one.
    fn count_url(&self, base: &str) -> Option<String>;

    /// Returns the body of a request, without the members of `extra`. The same request always gives the same bytes.
    fn body(&self, request: &ModelRequest<'_, '_>) -> String;

    /// Reads a complete, non-streaming answer.
    ///
    /// # Errors
    /// Returns what is missing, phrased to follow "the answer".
    fn read(&self, answer: &Object<'_>) -> Result<Reply, String>;

    /// Returns a collector for a streaming answer.
    fn collect(&self) -> Box<dyn Collect>;
}
