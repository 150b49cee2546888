//! A protocol: how a request is written and how an answer is read.

use crate::json::Object;
use crate::json::write::Members;
use crate::provider::batch::BatchService;
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply};

/// The URLs of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Urls {
    /// The URL for complete answers.
    pub reply: String,
    /// The URL for streaming answers.
    pub stream: String,
    /// The URL for counting tokens, if the protocol has one.
    pub count: Option<String>,
    /// The URL for the list of models, if the protocol has one.
    pub models: Option<String>,
}

impl Urls {
    /// Returns the URLs of a protocol that has the same one for complete and for streaming answers.
    #[must_use]
    pub fn same(url: String, count: Option<String>, models: String) -> Urls {
        Urls { stream: url.clone(), reply: url, count, models: Some(models) }
    }
}

/// A protocol.
pub trait Api {
    /// Returns the URLs to send requests to. `base` may end in a slash or a version, or be the endpoint itself.
    fn urls(&self, base: &str, model: &str) -> Urls;

    /// Returns the body of a request, without the members of `extra`. The same request always gives the same bytes.
    fn body(&self, request: &ModelRequest<'_, '_>) -> String;

    /// Returns the headers of a request, apart from the key. `betas` are the beta features to request, separated by commas.
    fn headers(&self, _betas: &str) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the window in tokens to ask for if the model's is unknown; `None` unless requests ask for a window. A server
    /// that loads a model with such a window may silently drop a part of a prompt that does not fit.
    fn default_window(&self) -> Option<u64> {
        None
    }

    /// Returns the smallest budget for thinking other than 0. `None` for an API without budgets.
    fn least_budget(&self) -> Option<u64> {
        None
    }

    /// Returns the body of a token counting request, made from the body of a request. It has no output limit.
    fn count_body(&self, body: &Object<'_>, _: &str) -> String {
        let is_left_out = |name: &str| matches!(name, "max_tokens" | "max_completion_tokens");
        let members = body.members().filter(|member| !is_left_out(&member.name()));
        members.fold(Members::new(), Members::member).into_json()
    }

    /// Returns the URL for the server's own summary of a conversation, if the API has one.
    fn summary_url(&self, _: &Urls) -> Option<String> {
        None
    }

    /// Returns the body of a request for the server's own summary, made from the body of a request.
    fn summary_body(&self, _: &Object<'_>) -> Option<String> {
        None
    }

    /// Returns the beta feature that a request for the server's own summary needs, and each request that contains one.
    fn summary_beta(&self) -> Option<&'static str> {
        None
    }

    /// Returns the batch service for the requests of a model, if the API has one.
    fn batches(&self, _base: &str, _model: &str) -> Option<Box<dyn BatchService>> {
        None
    }

    /// Reads a complete, non-streaming answer.
    ///
    /// # Errors
    /// Returns what is missing, phrased to follow "the answer".
    fn read(&self, answer: &Object<'_>) -> Result<Reply, String>;

    /// Returns true if a complete JSON value is the first line of a stream that its headers do not announce.
    fn begins_stream(&self, _: &Object<'_>) -> bool {
        false
    }

    /// Returns a collector for a streaming answer.
    fn collect(&self) -> Box<dyn Collect>;
}
