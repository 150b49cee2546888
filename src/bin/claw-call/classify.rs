//! `claw-call --classify`: classifies an answer without a call.

use clawutils::cli::options::FailuresArgs;
use clawutils::cli::{Log, Output, now};
use clawutils::exit::{Error, Exit};
use clawutils::json::Object;
use clawutils::json::write::Members;
use clawutils::provider::Failure;

/// The options for classifying an answer.
#[derive(Clone, Debug, clap::Args)]
pub struct RowArgs {
    /// The failure table.
    #[command(flatten)]
    pub failures: FailuresArgs,
    /// Header of the answer to classify, as 'name: value'; may be repeated
    #[arg(long, value_name = "HEADER", requires = "classify", value_parser = header)]
    pub header: Vec<(String, String)>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("no colon; write 'name: value'")?;
    Ok((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

/// Parses an HTTP status.
///
/// # Errors
/// Fails unless the text is a number from 100 to 599.
pub fn status(text: &str) -> Result<u16, &'static str> {
    let status = text.parse().ok().filter(|status| (100..600).contains(status));
    status.ok_or("not an HTTP status; use a number from 100 to 599")
}

/// Classifies an answer by its status, headers and body, and writes the failure as a JSON object.
///
/// # Errors
/// Status 74 or 78 as in [`FailuresArgs::read`]; 65 if the answer is a successful reply.
pub fn classify(status: u16, body: &[u8], args: &RowArgs, log: Log) -> anyhow::Result<Exit> {
    let header = |name: &str| {
        args.header.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    };
    if (200..300).contains(&status) && is_reply(body) {
        return Err(Error::new(
            Exit::Data,
            "the answer is a successful reply; only failures can be classified",
        )
        .into());
    }
    let failure = Failure::classify(status, &header, body, now()?, &args.failures.read()?);
    Output::lines([to_json(&failure)])?;
    log.note(&failure.to_string());
    Ok(failure.exit())
}

/// Returns true if a body looks like a reply.
fn is_reply(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    let Ok(object) = Object::parse(text.trim()) else { return false };
    let is_error = object.get("error").is_some_and(|error| error != "null");
    let names = ["content", "choices", "message"];
    !is_error && names.iter().any(|name| object.get(name).is_some_and(|raw| raw != "null"))
}

/// Returns a failure as a JSON object. Unknown values are null.
fn to_json(failure: &Failure) -> String {
    let object = Members::new()
        .string("class", failure.class.name())
        .or_null(Members::number, "status", failure.status)
        .number("exit", failure.exit().code())
        .string("rule", &failure.rule)
        .or_null(Members::number, "limit", failure.limit)
        .or_null(Members::number, "actual", failure.actual)
        .bool("actual_is_floor", failure.actual_is_floor)
        .or_null(Members::number, "requested_output", failure.requested_output)
        .or_null(Members::number, "output_cap", failure.output_cap)
        .bool("retryable", failure.retryable)
        .or_null(Members::decimal, "retry_after", failure.retry_after);
    failure
        .evidence(object)
        .or_null(Members::string, "kind", failure.kind.as_deref())
        .or_null(Members::string, "request_id", failure.request_id.as_deref())
        .string("message", &failure.message)
        .into_json()
}
