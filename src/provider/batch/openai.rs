//! OpenAI's Batch API, for chat completions and for Responses. The requests and the results are files of JSON lines.

use super::{Batch, BatchService, Outcome, Phase, object, page};
use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::provider::address::{openai_url, segment, split_query, with_ending};
use crate::provider::question::{Content, Question};

/// The content type of an upload. Its boundary begins no line of JSON.
const FORM: &str = "multipart/form-data; boundary=claw-batch";
/// The name of the member of a batch's metadata that has its name.
const NAME: &str = "clawutils";

/// The service under a base URL.
pub struct OpenaiBatches {
    batches: String,
    files: String,
    /// The path of the requests: that of OpenAI's own servers, whatever the base URL is.
    path: String,
}

impl OpenaiBatches {
    /// Returns the service for the requests of an endpoint. `endpoint` is its path, such as `/responses`.
    #[must_use]
    pub fn under(base: &str, endpoint: &str) -> OpenaiBatches {
        // The base URL may be the endpoint itself.
        let (path, query) = split_query(base);
        let base = [path.strip_suffix(endpoint).unwrap_or(path), query].concat();
        OpenaiBatches {
            batches: openai_url(&base, "/batches"),
            files: openai_url(&base, "/files"),
            path: format!("/v1{endpoint}"),
        }
    }
}

impl BatchService for OpenaiBatches {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn entry(&self, id: &str, body: &str) -> String {
        Members::with_capacity(body.len() + 128)
            .string("custom_id", id)
            .string("method", "POST")
            .string("url", &self.path)
            .raw("body", body)
            .into_json()
    }

    fn upload(&self, name: &str, entries: &[String]) -> Option<Question> {
        let length = entries.iter().map(|entry| entry.len() + 1).sum::<usize>();
        let mut text = String::with_capacity(length + 512);
        text.push_str("--claw-batch\r\n");
        text.push_str("content-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n");
        text.push_str("--claw-batch\r\n");
        text.push_str("content-disposition: form-data; name=\"file\"; filename=\"");
        text.push_str(name);
        text.push_str(".jsonl\"\r\ncontent-type: application/jsonl\r\n\r\n");
        for entry in entries {
            text.push_str(entry);
            text.push('\n');
        }
        text.push_str("\r\n--claw-batch--\r\n");
        Some(Question { url: self.files.clone(), body: Some(Content { kind: FORM, text }) })
    }

    fn create(&self, name: &str, _: &[String], file: Option<&str>) -> Question {
        let body = Members::new()
            .string("input_file_id", file.unwrap_or_default())
            .string("endpoint", &self.path)
            .string("completion_window", "24h")
            .object("metadata", |metadata| metadata.string(NAME, name));
        Question::post(self.batches.clone(), body)
    }

    fn state(&self, id: &str) -> Question {
        Question::get(with_ending(&self.batches, &format!("/{}", segment(id))))
    }

    fn list(&self, after: Option<&str>) -> Question {
        page(&self.batches, "limit=100", "after", after)
    }

    fn read(&self, batch: &Object<'_>) -> Option<Batch> {
        let status = batch.string("status")?;
        let name = object(batch, "metadata").and_then(|it| Some(it.string(NAME)?.into_owned()));
        let files = ["output_file_id", "error_file_id"];
        let files = files.into_iter().filter_map(|name| batch.string(name));
        let counts = object(batch, "request_counts");
        Some(Batch {
            id: batch.string("id")?.into_owned(),
            name,
            created: batch.number("created_at").map(|time| time as f64),
            requests: counts.and_then(|counts| counts.number("total")),
            phase: match &*status {
                "failed" => Phase::Ended(failed(batch)),
                "completed" | "expired" | "cancelled" => {
                    Phase::Ended(format!("it has no result, and the batch is {status}"))
                }
                _ => Phase::Running,
            },
            files: files.filter(|id| !id.is_empty()).map(|id| id.into_owned()).collect(),
        })
    }

    fn results(&self, batch: &Batch) -> Vec<Question> {
        let content = |id: &String| with_ending(&self.files, &format!("/{}/content", segment(id)));
        batch.files.iter().map(|id| Question::get(content(id))).collect()
    }

    fn result(&self, result: &Object<'_>) -> Option<(Option<String>, Outcome)> {
        let id = result.string("custom_id")?.into_owned();
        let outcome = match object(result, "response") {
            Some(response) => {
                let status =
                    response.number("status_code").and_then(|it| u16::try_from(it).ok())?;
                Outcome::Answer(status, response.get("body")?.to_owned())
            }
            None => Outcome::None(described(&object(result, "error")?)),
        };
        Some((Some(id), outcome))
    }
}

/// Returns the reason why a batch was not run at all: its first error.
fn failed(batch: &Object<'_>) -> String {
    let errors = object(batch, "errors");
    let first =
        errors.as_ref().and_then(|errors| elements(errors.get("data")?)?.into_iter().next());
    let first = first.and_then(|error| Object::parse(error).ok());
    let why = first.as_ref().map_or_else(|| "unknown error".to_owned(), described);
    format!("the batch was not run: {why}")
}

fn described(error: &Object<'_>) -> String {
    let text = ["code", "message"].into_iter().filter_map(|name| error.string(name));
    text.collect::<Vec<_>>().join(": ")
}
