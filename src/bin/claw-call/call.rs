//! `claw-call`: checks the messages, sends them, and writes the reply.

use crate::classify::{self, RowArgs};
use crate::prefix::LastRequest;
use crate::refused;
use crate::reply::{self, Destination, Prices};
use crate::show::Show;
use crate::source::{AnswerSource, SourceArgs};
use crate::spent::SpentArgs;
use crate::transport::Network;
use anyhow::Context;
use clawutils::cli::budget::{BodyArgs, Extras, WindowArgs};
use clawutils::cli::endpoint::ConnectionArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::PatienceArgs;
use clawutils::cli::{Log, Output, messages, now, variable};
use clawutils::cost::cold;
use clawutils::estimate::budget::default_output;
use clawutils::estimate::sizes::Size;
use clawutils::exit::{self, Exit, fail};
use clawutils::provider::cache::{self, Cache, CacheChoice};
use clawutils::provider::call::{self, Ask, ModelCall, Patience};
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::fit::{self, Fitted};
use clawutils::provider::protocol::Protocol;
use clawutils::provider::reasoning::Author;
use clawutils::provider::refusal::{Feature, Features};
use clawutils::provider::{ModelRequest, Provider, container, ollama, own_summary, plain};
use clawutils::rules::check_ready;
use clawutils::settings::values::{positive, seconds};
use signal_hook::low_level::emulate_default_handler;
use std::cell::OnceCell;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default maximum number of tokens in an answer if the window is unknown, as in claw0.
const MAX_TOKENS: u64 = 8096;

/// The options for a call: its limits, output, recordings, connection and retries.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// The context window, which the offline provider enforces, and the maximum length of the answer.
    #[command(flatten)]
    pub window: WindowArgs,
    /// The rest of the request body.
    #[command(flatten)]
    pub body: BodyArgs,
    /// Stream the answer, and show its text as it arrives: on standard error, in FILE, or with - on standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(requires_if("-", "reply"))]
    pub stream: Option<Option<PathBuf>>,
    /// Write the records to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub reply: Option<PathBuf>,
    /// The batch service.
    #[command(flatten)]
    pub batches: BatchArgs,
    /// Add a 'call' member to the reply's first record, with the model, the output limit and hashes of the request
    #[arg(long)]
    pub meta: bool,
    /// Write the request body and report the address and headers, but send nothing
    #[arg(long, conflicts_with_all = ["count", "classify"])]
    pub dry_run: bool,
    /// Write the number of tokens that the provider counts in the request, without asking for a reply
    #[arg(long, conflicts_with = "classify")]
    pub count: bool,
    /// List the models that the provider offers, as JSON lines, instead of a call
    #[arg(long = "list-models", conflicts_with_all = ["count", "classify", "dry_run", "ask_window"])]
    pub models_offered: bool,
    /// Ask the provider for the window of the model, and store it for all programs, instead of a call
    #[arg(long, conflicts_with_all = ["count", "classify", "dry_run"])]
    pub ask_window: bool,
    /// Ask for the provider's own summary of the messages instead of a reply
    #[arg(long, conflicts_with_all = ["count", "classify", "stream"])]
    pub compact: bool,
    /// Classify an answer with HTTP status STATUS whose body is the input, without sending anything
    #[arg(long, value_name = "STATUS", value_parser = classify::status)]
    pub classify: Option<u16>,
    /// Additional rows of the failure table, and headers for --classify.
    #[command(flatten)]
    pub rows: RowArgs,
    /// Write the error record of a failed call to FILE
    #[arg(long, value_name = "FILE")]
    pub failure: Option<PathBuf>,
    /// The limits on tokens and cost.
    #[command(flatten)]
    pub spent: SpentArgs,
    /// The source of the answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Begin with recording N of a request that was recorded several times
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1")]
    pub recording: u64,
    /// The connection to the provider and its key.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// The timeouts and retries.
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Time limit for the whole call, in seconds, including retries and waits
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
}

/// The options for batches.
#[derive(Clone, Debug, clap::Args)]
pub struct BatchArgs {
    /// Send what --queue has stored in subdirectories of DIR as batches, and wait for the answers
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["queue", "record", "replay", "dry_run", "count", "classify", "compact", "stream", "reply"])]
    pub batch: Option<PathBuf>,
    /// Pause before looking again whether the batches have ended, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub poll: Duration,
}

/// Runs `claw-call` on messages. If the provider refuses the request or fails, the failure is reported, and the exit
/// status for it is returned.
///
/// # Errors
/// Status 7 or 76 if the messages cannot be sent, 5 if a limit on tokens or cost is reached, 77 or 78 if the key or a
/// setting is missing, 74 if the reply cannot be written.
pub fn call(
    args: &CallArgs,
    model: &ModelArgs,
    input: &[(Arc<str>, Vec<u8>)],
    extras: &Extras,
    log: Log,
) -> anyhow::Result<Exit> {
    let messages = messages(input)?;
    if !args.compact {
        check_ready(&messages)?;
    }
    let name = named(model)?;
    let (rows, extra) = (args.rows.failures.read()?, args.body.read()?);
    let mut endpoint = args.connection.endpoint(model)?;
    let known = known_window(args, model, log)?;
    let default_limit = known.map_or(MAX_TOKENS, default_output);
    let fitted = fit::fit(endpoint.protocol, &name, &messages, extras.tools.as_deref());
    let betas = args.connection.beta.join(",");
    let author = Author::new(endpoint.protocol.name(), &endpoint.base, &name);
    // The recordings of a container that has expired since then name it. A batch takes longer than a container lasts.
    let time = match &args.source {
        SourceArgs { queue: Some(_), .. } => f64::INFINITY,
        source if source.cassette.replay.is_some() => 0.0,
        _ => now()?,
    };
    let container = container::newest(&fitted.messages, &author, time);
    let key = session_key();
    let of = (endpoint.provider, endpoint.protocol);
    let last = LastRequest::read().filter(|_| args.body.cache != CacheChoice::Off);
    let cache = Cache::of(args.body.cache, of, &endpoint.base, &name, key.as_deref());
    let cache = match cache {
        Some(cache) if args.source.is_live() => {
            let previous = last.as_ref().and_then(LastRequest::answer);
            let cache = cache.compared_with(previous, &endpoint.base);
            let is_slow = cold::has_long_pause(&messages, time);
            Some(if is_slow { cache.kept_longer() } else { cache })
        }
        // A recording depends neither on the time nor on the last answer.
        other => other,
    };
    let mut request = ModelRequest {
        model: &name,
        max_tokens: args.window.max_tokens.unwrap_or(default_limit),
        max_tokens_name: endpoint.output_limit_name(&name),
        system: extras.system.as_deref(),
        tools: fitted.tools.as_deref(),
        messages: &fitted.messages,
        temperature: args.body.temperature,
        effort: args.body.effort,
        thinking_budget: args.body.thinking_budget,
        without: Features::default(),
        betas: &betas,
        author: Some(&author),
        container: container.as_deref(),
        cache,
        stream: args.stream.is_some(),
        window: window(known, endpoint.provider),
        extra: extra.as_deref(),
    };
    let purpose = if args.compact { Ask::Summary } else { Ask::Reply };
    if args.compact {
        check_makes_summaries(&endpoint)?;
    }
    if let Some(beta) = endpoint.protocol.api().summary_beta()
        && (args.compact || own_summary::is_among(&messages, Some(&author)))
    {
        endpoint.request_beta(beta);
    }
    let plain = OnceCell::new();
    request.without = refused::known(request.features(), model)?;
    if request.without.has(Feature::Calls) {
        request.messages = plain.get_or_init(|| plain::without_calls(&fitted.messages));
    }
    if let Err(why) = endpoint.protocol.check_budget(&request) {
        return fail(Exit::Config, why);
    }
    let (protocol, detect_truncation) = (endpoint.protocol, args.patience.detect_truncation);
    let call = ModelCall {
        ask: purpose,
        protocol,
        request,
        patience: args.patience(),
        rows: &rows,
        sizes: model.sizes()?,
        detect_truncation,
    };
    let prices = Prices::read(&args.spent.limits, model)?;
    if args.dry_run {
        endpoint.check()?;
        return dry_run(&endpoint, &call, log);
    }
    args.spent.check(&request, &prices)?;
    let mut source = AnswerSource::open(&args.source, args.recording, &mut endpoint)?;
    source.check(&call.body())?;
    let mut network = Network {
        source: &mut source,
        endpoint: &endpoint,
        model,
        timeout: args.patience.timeout,
        log,
        sent_bytes: 0,
        stopped: None,
        broken: None,
        deadline: args.until(),
    };
    if args.count {
        return count(args, model, &call, &mut network);
    }
    if protocol == Protocol::Ollama && known.is_none() {
        report_window(&name, log);
    }
    if let Some(last) = &last {
        last.report(&call.request, protocol, log);
    }
    ask(args, model, &call, &fitted, &mut network, &prices, last.as_ref())
}

/// Checks that the provider's servers can summarise a conversation.
fn check_makes_summaries(endpoint: &Endpoint) -> anyhow::Result<()> {
    let is_offline = endpoint.provider.is_offline();
    match endpoint.protocol.api().summary_url(&endpoint.urls).filter(|_| !is_offline) {
        Some(_) => Ok(()),
        None => {
            let text = format!(
                "{} makes no summaries of its own by this API; use anthropic, or openai with --api responses, instead of --compact",
                endpoint.provider.name()
            );
            fail(Exit::Config, text)
        }
    }
}

/// Returns the key of the session whose turn this is.
pub(super) fn session_key() -> Option<String> {
    let path = std::path::absolute(variable("CLAW_SESSION")?).ok()?;
    Some(cache::session_key(&path.to_string_lossy()))
}

/// Returns the name of the model.
pub(super) fn named(model: &ModelArgs) -> anyhow::Result<String> {
    match model.model() {
        Some(name) => Ok(name),
        None => fail(Exit::Config, "no model is named; give --model or set CLAW_MODEL"),
    }
}

/// Returns the window, if it is known, and warns if it is larger than the one that the provider stated in a refusal.
fn known_window(args: &CallArgs, model: &ModelArgs, log: Log) -> anyhow::Result<Option<u64>> {
    let known = model.window(args.window.window)?.map(|window| window.tokens);
    if let Some(warning) = model.window_warning(args.window.window)? {
        log.note(&warning);
    }
    Ok(known)
}

/// Requests a reply, and writes its records. Reports a failed call.
fn ask(
    args: &CallArgs,
    model: &ModelArgs,
    call: &ModelCall<'_, '_, '_>,
    fitted: &Fitted<'_, '_>,
    network: &mut Network<'_>,
    prices: &Prices,
    last: Option<&LastRequest>,
) -> anyhow::Result<Exit> {
    let (endpoint, log) = (network.endpoint, network.log);
    let mut show = Show::new(args.stream.as_ref())?;
    let mut to = Destination::open(args.reply.as_deref())?;
    let outcome = call::call(*call, network, &mut |text| show.text(text));
    let shown = show.finish();
    // Also if there is a reply: the attempt after an empty one has no answer yet.
    if network.is_queued() {
        log.note("the request is queued; send it with --batch");
        return Ok(Exit::NotRecorded);
    }
    let mut failed = match outcome {
        Ok(mut replies) => {
            fitted.restore(&mut replies);
            let bytes = network.sent_bytes;
            if network.is_live() && call.sizes.learns(bytes) {
                note_error(model.learn_size(Size::Accepted(bytes)), log);
            }
            if let (Some(last), Some(reply)) = (last, replies.last()) {
                last.answered(&call.request, call.protocol, reply, log);
            }
            let exit = reply::write_reply(
                &mut replies,
                &mut to,
                endpoint.provider,
                call,
                args,
                prices,
                log,
            )?;
            return shown
                .with_context(|| format!("cannot write '<stdout>' ('{}' has the reply)", to.name))
                .and(Ok(exit));
        }
        Err(failed) => failed,
    };
    if !failed.shown.is_empty() {
        fitted.restore(&mut failed.shown);
        reply::write_records(&mut failed.shown, &mut to, endpoint.provider, call, args)?;
    }
    match (network.stopped, network.broken.take()) {
        (Some(signal), _) => {
            emulate_default_handler(signal)?;
            Ok(Exit::Failed)
        }
        (None, Some(error)) => Err(error),
        (None, None) => reply::note_failure(failed.failure, args, model, endpoint, log),
    }
}

/// Reports an error that does not stop the program: what could not be stored will be learned again.
pub(super) fn note_error(outcome: anyhow::Result<()>, log: Log) {
    if let Err(error) = outcome {
        log.note(&exit::text(&error));
    }
}

/// Reports that the window is unknown, and how large a window is requested.
fn report_window(model: &str, log: Log) {
    let window = ollama::WINDOW;
    log.note(&format!(
        "the window of '{model}' is unknown: requesting {window} tokens; use --window to change this"
    ));
}

/// Returns the window to request. A request to Ollama always names a window, so it gets a default if the window is
/// unknown.
fn window(known: Option<u64>, provider: Provider) -> Option<u64> {
    match provider {
        Provider::Ollama => Some(known.unwrap_or(ollama::WINDOW)),
        _ => known,
    }
}

impl CallArgs {
    fn patience(&self) -> Patience {
        let PatienceArgs { max_retries: retries, max_wait, .. } = self.patience;
        Patience { retries, max_wait: max_wait.as_secs_f64() }
    }

    /// Returns the time limit of the call, if there is one, and the moment at which it expires.
    fn until(&self) -> Option<(Duration, Instant)> {
        let end = |most: Duration| Some((most, Instant::now().checked_add(most)?));
        self.deadline.and_then(end)
    }
}

fn dry_run(endpoint: &Endpoint, call: &ModelCall<'_, '_, '_>, log: Log) -> anyhow::Result<Exit> {
    if endpoint.provider == Provider::Offline {
        log.note("the offline provider would be called; this is the body for another provider");
    } else {
        endpoint.shown(call.ask, call.request.stream).iter().for_each(|line| log.note(line));
    }
    let body = call::first_body(call).unwrap_or_else(|_| call.body());
    let mut out = Output::open();
    writeln!(out, "{body}").context("cannot write '<stdout>'")?;
    out.finish()?;
    Ok(Exit::Done)
}

/// Asks the provider to count the tokens of the request, and writes the number.
fn count(
    args: &CallArgs,
    model: &ModelArgs,
    call: &ModelCall<'_, '_, '_>,
    network: &mut Network<'_>,
) -> anyhow::Result<Exit> {
    let (endpoint, log) = (network.endpoint, network.log);
    if endpoint.urls.count.is_none() && endpoint.provider != Provider::Offline {
        let text = format!(
            "{} cannot count the tokens of a request; use claw-estimate instead of --count",
            endpoint.provider.name()
        );
        return fail(Exit::Config, text);
    }
    match call::count(call, network) {
        Ok(tokens) => {
            let mut out = Output::open();
            writeln!(out, "{tokens}").context("cannot write '<stdout>'")?;
            out.finish()?;
            Ok(Exit::Done)
        }
        Err(failure) => match network.broken.take() {
            Some(error) => Err(error),
            None => reply::note_failure(failure, args, model, endpoint, log),
        },
    }
}
