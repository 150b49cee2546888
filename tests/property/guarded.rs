//! A guarded turn in memory: what claw-turn does with claw-rebuild, claw-call, claw-truncate and claw-compact, by the same
//! functions of the library, against a strict provider.

use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::{MadeSummary, Strategy, Task};
use clawutils::estimate::bytes::{self, ByteLimit, RefusedBody};
use clawutils::estimate::sizes::Sizes;
use clawutils::estimate::{Budget, Refused, Request};
use clawutils::fault::Fault;
use clawutils::guard::{self, SENT, Stage};
use clawutils::json::Object;
use clawutils::messages::Message;
use clawutils::provider::call::{self, Ask, ModelCall, Patience, Transport};
use clawutils::provider::protocol::Protocol;
use clawutils::provider::reading::Reading;
use clawutils::provider::refusal::{Feature, Features, Rows};
use clawutils::provider::{Failure, ModelRequest, fit};
use clawutils::rules::check_ready;
use clawutils::truncate::body::{ShrinkOptions, shrink};
use clawutils::truncate::{self, MAX_FRACTION, TruncateOptions, block};

use super::any::rebuild;
use super::strict::{self, Broken, Form};
use super::views::File;

/// The provider of a session.
pub struct Provider {
    /// The form of its requests.
    pub form: Form,
    /// The signatures of its models.
    pub signed: Vec<&'static str>,
    /// The most characters of a request.
    pub window: usize,
    /// How it words its refusals.
    pub way: usize,
    /// The tools, as a JSON array in Anthropic's form.
    pub tools: Option<String>,
    /// The largest body that it accepted.
    pub accepted: Option<u64>,
}

impl Provider {
    fn protocol(&self) -> Protocol {
        match self.form {
            Form::Anthropic => Protocol::Anthropic,
            Form::Chat | Form::Mistral => Protocol::Chat,
            Form::Responses => Protocol::Responses,
            Form::Gemini => Protocol::Gemini,
            Form::Ollama => Protocol::Ollama,
        }
    }

    fn model(&self) -> &'static str {
        match self.form {
            Form::Mistral => "mistral-large",
            Form::Gemini => "gemini-3.5-flash",
            _ => "m",
        }
    }

    /// Returns the limit on bytes that is documented for the provider.
    fn limit(&self) -> Option<ByteLimit> {
        bytes::documented("anthropic", "").filter(|_| self.form == Form::Anthropic).map(ByteLimit)
    }

    fn answer(&self) -> &'static str {
        match self.form {
            Form::Anthropic => {
                r#"{"content":[{"type":"text","text":"I see."}],"stop_reason":"end_turn"}"#
            }
            Form::Chat | Form::Mistral => {
                r#"{"choices":[{"message":{"role":"assistant","content":"I see."},"finish_reason":"stop"}]}"#
            }
            Form::Responses => {
                r#"{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I see."}]}]}"#
            }
            Form::Gemini => {
                r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"I see."}]},"finishReason":"STOP"}]}"#
            }
            Form::Ollama => {
                r#"{"message":{"role":"assistant","content":"I see."},"done":true,"done_reason":"stop"}"#
            }
        }
    }
}

/// The connection to the provider in one call.
struct Connection<'p> {
    provider: &'p Provider,
    /// The refusals of this call.
    refused: Vec<Broken>,
    sent: usize,
}

impl Transport for Connection<'_> {
    fn send(
        &mut self,
        _: Ask,
        _: &ModelRequest<'_, '_>,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        let provider = self.provider;
        self.sent += 1;
        let (status, answer) =
            match strict::broken(provider.form, body, &provider.signed, provider.window) {
                None => (200, provider.answer().to_owned()),
                Some(broken) => {
                    let refusal = strict::refusal(provider.form, &broken, provider.way);
                    self.refused.push(broken);
                    refusal
                }
            };
        reading.head(status, Vec::new());
        reading.take(answer.as_bytes());
        Ok(())
    }

    fn left(&self) -> f64 {
        f64::INFINITY
    }

    fn wait(&mut self, _: f64) {}

    fn now(&self) -> f64 {
        0.0
    }

    fn random(&mut self) -> f64 {
        0.0
    }

    fn report(&mut self, _: &str) {}

    fn learn(&mut self, _: Feature, _: Option<Feature>) {}
}

/// A turn that ended with a reply.
pub struct Turn {
    /// The number of calls.
    pub calls: usize,
    /// The rules of the refusals.
    pub refused: Vec<Broken>,
}

/// Sends the messages of the transcript, with the steps of the guard, and appends the reply.
///
/// # Errors
/// Returns the refusals if the turn ends without a reply.
pub fn turn(file: &mut File, provider: &mut Provider) -> Result<Turn, String> {
    let mut turn = Turn { calls: 0, refused: Vec::new() };
    let mut tried: Vec<&str> = Vec::new();
    ahead(file, provider)?;
    loop {
        let messages = rebuild(&file.bytes)?.messages;
        let told = |turn: &Turn, why: &str| format!("{why}; refused: {:?}", turn.refused);
        check_ready(&messages).map_err(|why| told(&turn, &format!("{why:#}")))?;
        let failure = match send(&messages, provider, &mut turn) {
            Ok(()) => {
                file.append(r#"{"type":"assistant","content":"I see."}"#)?;
                return Ok(turn);
            }
            Err(failure) => failure,
        };
        let record = failure.to_error_record(Some(provider.model()));
        let object = Object::parse(&record).map_err(|why| why.to_string())?;
        let (refused, status) = (Refused::of(&object), failure.exit() as u8);
        let Some(fault) = guard::fault(status, Some(&refused)) else {
            return Err(told(&turn, &format!("no step for {record}")));
        };
        loop {
            let Some(stage) = guard::next(fault, refused.is_likely, &tried) else {
                return Err(told(&turn, &format!("no step is left after {tried:?} for {record}")));
            };
            tried.push(stage.program());
            if step(file, provider, stage, &refused)? {
                tried.push(SENT);
                break;
            }
        }
    }
}

fn send(messages: &[Message<'_>], provider: &mut Provider, turn: &mut Turn) -> Result<(), Failure> {
    let (protocol, model) = (provider.protocol(), provider.model());
    let fitted = fit::fit(protocol, model, messages, provider.tools.as_deref());
    let request = ModelRequest {
        temperature: None,
        effort: None,
        thinking_budget: None,
        without: Features::default(),
        betas: "",
        author: None,
        container: None,
        cache: None,
        model,
        max_tokens: 1000,
        max_tokens_name: "max_tokens",
        system: None,
        tools: fitted.tools.as_deref(),
        messages: &fitted.messages,
        stream: false,
        window: None,
        extra: None,
    };
    let (rows, sizes) = (Rows::default(), Sizes { accepted: provider.accepted, limit: None });
    let patience = Patience { retries: 1, max_wait: 1.0 };
    let call = ModelCall {
        ask: Ask::Reply,
        protocol,
        request,
        patience,
        rows: &rows,
        sizes,
        detect_truncation: false,
    };
    let mut connection = Connection { provider, refused: Vec::new(), sent: 0 };
    let outcome = call::call(call, &mut connection, &mut |_| {});
    let Connection { refused, sent, .. } = connection;
    turn.calls += sent;
    turn.refused.extend(refused);
    match outcome {
        Ok(_) => {
            let size = protocol.body(&request).len() as u64;
            provider.accepted = provider.accepted.max(Some(size));
            Ok(())
        }
        Err(failed) => Err(failed.failure),
    }
}

/// Makes the request smaller if it exceeds a documented limit in bytes.
fn ahead(file: &mut File, provider: &Provider) -> Result<(), String> {
    let Some(limit) = provider.limit() else { return Ok(()) };
    let mut messages = rebuild(&file.bytes)?.messages;
    let request = Request { messages: &messages, ..Request::default() };
    if limit.fits(bytes::of(request)) {
        return Ok(());
    }
    let gauge = Refused::gauge(None, request);
    let outcome =
        shrink(&mut messages, Request::default(), gauge, ShrinkOptions::new(limit.target()));
    outcome.records.iter().try_for_each(|record| file.append_view(record))
}

/// Makes a step and appends its records, which change the messages. Returns false if there are none.
fn step(
    file: &mut File,
    provider: &Provider,
    stage: Stage,
    refused: &Refused,
) -> Result<bool, String> {
    let mut messages = rebuild(&file.bytes)?.messages;
    let before: Vec<String> = messages.iter().map(Message::to_json).collect();
    let request = Request { messages: &messages, ..Request::default() };
    let gauge = Refused::gauge(Some(refused), request);
    let window = refused.limit.unwrap_or(provider.window as u64 / 4);
    let budget = Budget::new(window, Some(1000), None)?;
    let beside = Request::default();
    let records = match (stage, refused.fault) {
        (Stage::Compact, _) => summary(&messages, gauge, budget),
        (_, Fault::Block) => block::leave_out(&mut messages, beside, gauge, refused).records,
        (_, Fault::Bytes) => {
            let now = bytes::of(request);
            let body = RefusedBody {
                sent: refused.request_bytes,
                stated: refused.limit_bytes,
                known: provider.limit().map(|limit| limit.0),
                accepted: provider.accepted,
            };
            shrink(&mut messages, beside, gauge, ShrinkOptions::new(body.target(now))).records
        }
        _ => {
            let options = TruncateOptions::new(window, MAX_FRACTION, budget.prompt());
            truncate::truncate(&mut messages, beside, gauge, options).records
        }
    };
    records.iter().try_for_each(|record| file.append_view(record))?;
    let now: Vec<String> = rebuild(&file.bytes)?.messages.iter().map(Message::to_json).collect();
    match (now == before, records.is_empty()) {
        (true, false) => Err(format!("the records of {stage:?} change nothing: {records:?}")),
        (_, is_empty) => Ok(!is_empty),
    }
}

/// Returns a record with a short summary of the old part, if one is possible.
fn summary(
    messages: &[Message<'_>],
    gauge: clawutils::estimate::Gauge,
    budget: Budget,
) -> Vec<String> {
    let task = Task {
        messages,
        system: None,
        tools: None,
        model: None,
        gauge,
        target: Some(budget.target()),
        keep_user: 100,
        rule: CutRule::Half,
        limits: CutLimits::default(),
    };
    let Some(planned) = task.plan() else { return Vec::new() };
    let source = MadeSummary {
        text: "what happened so far",
        strategy: Strategy::File,
        model: None,
        usage: None,
        retry_of: None,
        scale: gauge.scale(),
    };
    let kept = task.first_kept(&planned);
    kept.map(|kept| planned.record(&source, &kept, 1)).into_iter().collect()
}
