//! Writes the outcome of a call: the records of the reply, or the failure.

use crate::args::CallArgs;
use crate::prices::Prices;
use crate::refused_features::note_error;
use anyhow::Context;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{Log, Output};
use clawutils::estimate::sizes::Size;
use clawutils::estimate::windows::Source;
use clawutils::exit::Exit;
use clawutils::json::write::Members;
use clawutils::json::{Object, edit};
use clawutils::process::signals;
use clawutils::provider::call::ModelCall;
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::refusal::Certainty;
use clawutils::provider::{Failure, Provider, Reply, estimated};
use clawutils::record;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The destination of the records of a reply.
pub(super) struct Destination {
    /// The name in diagnostics.
    pub(super) name: String,
    out: Box<dyn Write>,
    is_file: bool,
}

impl Destination {
    /// Opens standard output or the file at `path`. A new file can be read and written only by its owner. The caller
    /// opens the destination before the call, because the call may cost money and an error would lose the reply.
    ///
    /// # Errors
    /// Status 74 or 77 if the file cannot be written.
    pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Destination> {
        let name = path.map_or_else(|| "<stdout>".into(), |path| path.display().to_string());
        let out: Box<dyn Write> = match path {
            None => Box::new(Output::open()),
            Some(path) => {
                let file = open_private(path).with_context(|| format!("cannot write '{name}'"))?;
                Box::new(BufWriter::new(file))
            }
        };
        Ok(Destination { name, out, is_file: path.is_some() })
    }

    /// Writes records. Signals do not interrupt a write to a file, but they interrupt a write to standard output,
    /// because that can block forever if nothing reads it.
    fn write(&mut self, records: &[String]) -> anyhow::Result<()> {
        if self.is_file {
            signals::leave();
        }
        self.write_lines(records).with_context(|| format!("cannot write '{}'", self.name))
    }

    /// Writes the records without copying them, because they can be large.
    fn write_lines(&mut self, records: &[String]) -> io::Result<()> {
        for record in records {
            self.out.write_all(record.as_bytes())?;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

/// Writes the records of a turn, which consists of several replies if the provider paused it, and reports the cost and
/// what was dropped. Returns the exit status.
///
/// # Errors
/// Status 74 if the records cannot be written.
pub(super) fn write_reply(
    replies: &mut [Reply],
    to: &mut Destination,
    provider: Provider,
    call: &ModelCall<'_, '_, '_>,
    args: &CallArgs,
    prices: &Prices,
    log: Log,
) -> anyhow::Result<Exit> {
    let is_empty = replies.last().is_some_and(Reply::is_empty) && replies.len() == 1;
    let cause = replies.last().filter(|_| is_empty).map(|reply| empty_cause(reply, call));
    let cut_call = write_records(replies, to, provider, call, args)?;
    for reply in replies.iter() {
        prices.report(reply, call.request.model, log);
        for kind in &reply.left_out {
            log.note(&format!("dropped '{kind}' from the answer: records cannot hold it"));
        }
    }
    if let Some(name) = &cut_call {
        log.note(&format!("dropped an incomplete call to '{name}': the answer was cut off"));
    }
    if let Some(cause) = cause {
        log.note(&format!("the answer has neither text nor tool calls: {cause}"));
        return Ok(Exit::CutOff);
    }
    Ok(replies.last().map_or(Exit::Failed, |reply| ending(reply, log)))
}

/// Returns the likely cause of an answer without text and calls, and what to do.
fn empty_cause(reply: &Reply, call: &ModelCall<'_, '_, '_>) -> String {
    let thought = reply.reasoning.is_some() || !reply.blocks.is_empty();
    match (thought, reply.stop_reason.as_deref()) {
        (true, _) => {
            "the model only thought; give a larger --max-tokens or send another prompt".to_owned()
        }
        (false, Some("tool_use")) => {
            "the server announced a tool call and sent none; check its tool parser".to_owned()
        }
        (false, _) => {
            let prompt = estimated::prompt(&call.request);
            format!(
                "the prompt of about {prompt} tokens may be larger than the server's window; check that window, or shorten the prompt (--window, claw-compact)"
            )
        }
    }
}

/// Writes the records of complete or interrupted replies. Returns the name of an incomplete tool call that was dropped.
///
/// # Errors
/// Status 74 if the records cannot be written.
pub(super) fn write_records(
    replies: &mut [Reply],
    to: &mut Destination,
    provider: Provider,
    call: &ModelCall<'_, '_, '_>,
    args: &CallArgs,
) -> anyhow::Result<Option<String>> {
    let (mut lines, mut cut_call) = (Vec::new(), None);
    let author = call.request.author.cloned().unwrap_or_default();
    for (number, reply) in replies.iter_mut().enumerate() {
        let mut records = reply.take_records(provider.name(), &author);
        if args.meta
            && number == 0
            && let Some(first) = records.lines.first_mut()
            && let Ok(object) = Object::parse(first)
        {
            *first = object.with("call", &request_members(call));
        }
        if args.compact
            && let Some(first) = records.lines.first_mut()
            && let Ok(object) = Object::parse(first)
        {
            *first = object.with("author", &author.add_to(Members::new()).into_json());
        }
        lines.append(&mut records.lines);
        cut_call = records.cut_call;
    }
    to.write(&lines)?;
    Ok(cut_call)
}

/// Returns the exit status for a reply's stop reason. A reply with an unknown stop reason may be incomplete, so it
/// counts as cut off, and so does an answer without text and calls.
fn ending(reply: &Reply, log: Log) -> Exit {
    let reason = reply.stop_reason.as_deref().unwrap_or("none");
    match reason {
        _ if reply.is_cut_off() => {
            log.note(&format!("the answer was cut off: stop reason '{reason}'"));
            Exit::CutOff
        }
        // The last is a pause that the request asks for, after Anthropic's servers have summarised the conversation.
        "end_turn" | "tool_use" | "stop_sequence" | "compaction" => Exit::Done,
        "refusal" => {
            log.note(&format!("the answer ended in a refusal: stop reason '{reason}'"));
            Exit::Done
        }
        "pause_turn" => {
            log.note("the provider paused the answer, and it was not continued");
            Exit::CutOff
        }
        _ => {
            log.note(&format!("unknown stop reason '{reason}': the answer may be incomplete"));
            Exit::CutOff
        }
    }
}

/// Returns the `call` member for `--meta`. The whole body, the system prompt, the tools and the members of `--extra`
/// are given as hashes: the first 16 hexadecimal digits of the SHA-256.
fn request_members(call: &ModelCall<'_, '_, '_>) -> String {
    let request = &call.request;
    let hash = |text: Option<&str>| text.map(record::digest);
    Members::new()
        .string("request", &record::digest(&call.protocol.body(request)))
        .string("model", request.model)
        .number("max_tokens", request.max_tokens)
        .bool("stream", request.stream)
        .or_null(Members::string, "system", hash(request.system).as_deref())
        .or_null(Members::string, "tools", hash(request.tools).as_deref())
        .or_null(Members::string, "extra", hash(request.extra).as_deref())
        .into_json()
}

/// Reports a failed call, writes its error record to the file of `--failure`, and stores the window if the provider
/// stated one. Returns the exit status.
///
/// # Errors
/// Status 74 if the record cannot be written.
pub(super) fn note_failure(
    mut failure: Failure,
    args: &CallArgs,
    model: &ModelArgs,
    endpoint: &Endpoint,
    log: Log,
) -> anyhow::Result<Exit> {
    failure.message = endpoint.without_key(&failure.message);
    failure.request_id = failure.request_id.map(|id| endpoint.without_key(&id));
    let name = model.model();
    let record = failure.to_error_record(name.as_deref());
    let members = Members::new()
        // The message is left out, because the text of the diagnostic contains it.
        .spread(&edit::without(&record, &["message"]).unwrap_or_default())
        .string("rule", &failure.rule)
        .bool("retryable", failure.retryable)
        .optional(Members::decimal, "retry_after", failure.retry_after)
        .optional(Members::string, "request_id", failure.request_id.as_deref());
    log.outcome(&failure.final_message(), &members);
    if let Some(path) = &args.failure {
        write_private(path, &(record + "\n"))
            .with_context(|| format!("cannot write '{}'", path.display()))?;
    }
    // The offline provider only states the window that it was given, so there is nothing to learn from it.
    if endpoint.provider != Provider::Offline {
        if let Some(window) = failure.stated_window {
            note_error(model.learn_window(Source::Refusal, Some(window), args.window.window), log);
        }
        // A limit that is not below what was sent is another one.
        let is_below = |limit: &u64| failure.request_bytes.is_none_or(|bytes| *limit <= bytes);
        let is_certain = failure.certainty == Certainty::Certain;
        if let Some(limit) = failure.limit_bytes.filter(is_below).filter(|_| is_certain) {
            note_error(model.learn_size(Size::Limit(limit)), log);
        }
    }
    Ok(failure.exit())
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    open_private(path)?.write_all(text.as_bytes())
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)
}
