//! Gemini's batch mode. The requests are part of the body, and so are the results.

use super::{Batch, BatchService, Outcome, Phase, object, page, seconds};
use crate::json::write::{Members, list};
use crate::json::{Object, elements};
use crate::provider::address::{segment, with_ending};
use crate::provider::question::Question;

/// The HTTP status and the name, in small letters, of each code in an error (`google/rpc/code.proto`). A result may have only
/// the code.
const CODES: [(u64, u16, &str); 12] = [
    (1, 499, "cancelled"),
    (3, 400, "invalid_argument"),
    (4, 504, "deadline_exceeded"),
    (5, 404, "not_found"),
    (7, 403, "permission_denied"),
    (8, 429, "resource_exhausted"),
    (9, 400, "failed_precondition"),
    (11, 400, "out_of_range"),
    (12, 501, "unimplemented"),
    (13, 500, "internal"),
    (14, 503, "unavailable"),
    (16, 401, "unauthenticated"),
];

/// The service for a model.
pub struct GeminiBatches {
    /// The URL under which models and batches are.
    parent: String,
    /// The URL that creates a batch.
    create: String,
}

impl GeminiBatches {
    /// Returns the service for a model, `models/NAME`, under the URL `parent`.
    #[must_use]
    pub fn of(parent: &str, model: &str) -> GeminiBatches {
        let create = with_ending(parent, &format!("/{model}:batchGenerateContent"));
        GeminiBatches { parent: parent.to_owned(), create }
    }
}

impl BatchService for GeminiBatches {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn entry(&self, id: &str, body: &str) -> String {
        Members::with_capacity(body.len() + 64)
            .raw("request", body)
            .object("metadata", |metadata| metadata.string("key", id))
            .into_json()
    }

    fn create(&self, name: &str, entries: &[String], _: Option<&str>) -> Question {
        let requests = list(entries);
        let body = Members::with_capacity(requests.len() + 128).object("batch", |batch| {
            batch.string("displayName", name).object("inputConfig", |input| {
                input.object("requests", |it| it.raw("requests", &requests))
            })
        });
        Question::post(self.create.clone(), body)
    }

    fn state(&self, id: &str) -> Question {
        let id = segment(id.rsplit('/').next().unwrap_or_default());
        Question::get(with_ending(&self.parent, &format!("/batches/{id}")))
    }

    fn list(&self, after: Option<&str>) -> Question {
        page(&with_ending(&self.parent, "/batches"), "pageSize=100", "pageToken", after)
    }

    fn read(&self, batch: &Object<'_>) -> Option<Batch> {
        let metadata = object(batch, "metadata");
        let text =
            |name: &str| metadata.as_ref().and_then(|it| Some(it.string(name)?.into_owned()));
        // The states are named BATCH_STATE_X, as on Vertex AI JOB_STATE_X.
        let state = text("state").unwrap_or_default().to_lowercase();
        let state = state.rsplit("state_").next().unwrap_or_default();
        let ended = ["succeeded", "failed", "cancelled", "expired", "partially_succeeded"];
        let stats = metadata.as_ref().and_then(|it| object(it, "batchStats"));
        let count = stats.and_then(|it| it.string("requestCount")?.parse().ok());
        let error = object(batch, "error").and_then(|it| Some(it.string("message")?.into_owned()));
        Some(Batch {
            id: batch.string("name")?.into_owned(),
            name: text("displayName"),
            created: text("createTime").and_then(|time| seconds(&time)),
            requests: count,
            phase: match batch.is_true("done") || ended.contains(&state) {
                true => Phase::Ended(
                    error.unwrap_or_else(|| format!("it has no result, and the batch is {state}")),
                ),
                false => Phase::Running,
            },
            files: Vec::new(),
        })
    }

    fn results(&self, batch: &Batch) -> Vec<Question> {
        vec![self.state(&batch.id)]
    }

    fn has_lines(&self) -> bool {
        false
    }

    fn inline<'a>(&self, answer: &Object<'a>) -> Vec<&'a str> {
        let output = || object(&object(answer, "metadata")?, "output");
        let results = object(answer, "response").or_else(output);
        let results = results.and_then(|it| object(&it, "inlinedResponses"));
        let results = results.and_then(|it| elements(it.get("inlinedResponses")?));
        results.unwrap_or_default()
    }

    fn result(&self, result: &Object<'_>) -> Option<(Option<String>, Outcome)> {
        let key = object(result, "metadata").and_then(|it| Some(it.string("key")?.into_owned()));
        let outcome = match result.get("response") {
            Some(response) => Outcome::Answer(200, response.to_owned()),
            None => refused(&object(result, "error")?),
        };
        Some((key, outcome))
    }
}

/// Returns the answer that a request with an error would have got alone.
fn refused(error: &Object<'_>) -> Outcome {
    let code = error.number("code").unwrap_or_default();
    let known = CODES.iter().find(|(own, _, _)| *own == code);
    // Codes of HTTP are larger than those of the table.
    let other = u16::try_from(code).ok().filter(|code| *code >= 400);
    let status = known.map(|(_, status, _)| *status).or(other).unwrap_or(500);
    let name = known.map(|(_, _, name)| name.to_uppercase());
    let body = Members::new().object("error", |it| {
        it.number("code", status)
            .string("message", &error.string("message").unwrap_or_default())
            .optional(
                Members::string,
                "status",
                error.string("status").as_deref().or(name.as_deref()),
            )
    });
    Outcome::Answer(status, body.into_json())
}
