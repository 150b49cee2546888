//! Requests other than those for a reply: questions about models, and what sends and reads a batch.

use crate::json::write::Members;

/// The content type of JSON.
pub const JSON: &str = "application/json";

/// A request: a POST if it has a body, else a GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The URL.
    pub url: String,
    /// The body of a POST.
    pub body: Option<Content>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The content type.
    pub kind: &'static str,
    /// The text.
    pub text: String,
}

impl Content {
    /// Returns a body of JSON.
    #[must_use]
    pub fn json(text: String) -> Content {
        Content { kind: JSON, text }
    }
}

impl Question {
    /// Returns a GET request.
    #[must_use]
    pub fn get(url: String) -> Question {
        Question { url, body: None }
    }

    /// Returns a POST request with an object as its body.
    #[must_use]
    pub fn post(url: String, body: Members) -> Question {
        Question { url, body: Some(Content::json(body.into_json())) }
    }
}
