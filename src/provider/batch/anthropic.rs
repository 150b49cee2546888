//! Anthropic's Message Batches.

use super::{Batch, BatchService, Outcome, Phase, object, page, seconds};
use crate::json::Object;
use crate::json::write::{Members, list};
use crate::provider::address::{segment, with_ending};
use crate::provider::question::Question;

/// The HTTP status of each type of error (`_client.py` and `types/shared` of anthropic 2.14.0). A result has only the type.
const STATUSES: [(&str, u16); 10] = [
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// The service at a URL.
pub struct MessageBatches {
    /// The URL of the batches.
    url: String,
}

impl MessageBatches {
    /// Returns the service beside the endpoint for messages.
    #[must_use]
    pub fn beside(messages: &str) -> MessageBatches {
        MessageBatches { url: with_ending(messages, "/batches") }
    }

    fn of(&self, id: &str, ending: &str) -> Question {
        Question::get(with_ending(&self.url, &format!("/{}{ending}", segment(id))))
    }
}

impl BatchService for MessageBatches {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn has_names(&self) -> bool {
        false
    }

    fn is_newest_first(&self) -> bool {
        true
    }

    fn entry(&self, id: &str, body: &str) -> String {
        Members::with_capacity(body.len() + 64)
            .string("custom_id", id)
            .raw("params", body)
            .into_json()
    }

    fn create(&self, _: &str, entries: &[String], _: Option<&str>) -> Question {
        Question::post(self.url.clone(), Members::new().raw("requests", &list(entries)))
    }

    fn state(&self, id: &str) -> Question {
        self.of(id, "")
    }

    fn list(&self, after: Option<&str>) -> Question {
        page(&self.url, "limit=100", "after_id", after)
    }

    fn read(&self, batch: &Object<'_>) -> Option<Batch> {
        let counts = object(batch, "request_counts");
        let count = |name: &str| counts.as_ref().and_then(|counts| counts.number(name));
        let names = ["processing", "succeeded", "errored", "canceled", "expired"];
        let status = batch.string("processing_status")?;
        Some(Batch {
            id: batch.string("id")?.into_owned(),
            name: None,
            created: batch.string("created_at").and_then(|time| seconds(&time)),
            requests: counts.as_ref().map(|_| names.into_iter().filter_map(count).sum()),
            phase: match &*status {
                "ended" => Phase::Ended("it has no result".to_owned()),
                _ => Phase::Running,
            },
            files: Vec::new(),
        })
    }

    /// The URL that the service names is not used, because the key would go to it.
    fn results(&self, batch: &Batch) -> Vec<Question> {
        vec![self.of(&batch.id, "/results")]
    }

    fn result(&self, result: &Object<'_>) -> Option<(Option<String>, Outcome)> {
        let id = result.string("custom_id")?.into_owned();
        let result = object(result, "result")?;
        let outcome = match &*result.string("type")? {
            "succeeded" => Outcome::Answer(200, result.get("message")?.to_owned()),
            "errored" => refused(&result)?,
            "expired" => Outcome::None("the request expired".to_owned()),
            other => Outcome::None(format!("the request was {other}")),
        };
        Some((Some(id), outcome))
    }
}

/// Returns the answer that a request with an error would have got alone.
fn refused(result: &Object<'_>) -> Option<Outcome> {
    let error = result.get("error")?;
    let kind = object(&Object::parse(error).ok()?, "error")?.string("type")?.into_owned();
    let status = STATUSES.iter().find(|(name, _)| *name == kind).map_or(500, |(_, status)| *status);
    Some(Outcome::Answer(status, error.to_owned()))
}
