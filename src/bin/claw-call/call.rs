//! `claw-call`: checks the messages, sends them, and writes the reply.

use crate::args::{CallArgs, named};
use crate::prefix::{LastRequest, SentRequest, session_key};
use crate::prices::Prices;
use crate::refused_features::{self, note_error};
use crate::reply::{self, Destination};
use crate::show::Show;
use crate::source::{AnswerSource, SourceArgs};
use crate::transport::Network;
use anyhow::Context;
use clawutils::cli::budget::Extras;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{Log, Output, messages, now};
use clawutils::cost::cold;
use clawutils::estimate::budget::default_output;
use clawutils::estimate::sizes::Size;
use clawutils::exit::{Exit, fail};
use clawutils::provider::cache::{Cache, CacheChoice};
use clawutils::provider::call::{self, Ask, ModelCall};
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::fit::{self, Fitted};
use clawutils::provider::reasoning::Author;
use clawutils::provider::refusal::{Feature, Features};
use clawutils::provider::{ModelRequest, Provider, container, own_summary, plain};
use clawutils::rules::check_ready;
use signal_hook::low_level::emulate_default_handler;
use std::cell::OnceCell;
use std::sync::Arc;

/// The default maximum number of tokens in an answer if the window is unknown, as in claw0.
const MAX_TOKENS: u64 = 8096;

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
        window: known.or_else(|| endpoint.protocol.api().default_window()),
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
    request.without = refused_features::known(request.features(), model)?;
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
    if let (None, Some(window)) = (known, protocol.api().default_window()) {
        report_window(&name, window, log);
    }
    let sent = last.as_ref().map(|last| last.report(&call.request, protocol, log));
    ask(args, model, &call, &fitted, &mut network, &prices, sent.as_ref())
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
    sent: Option<&SentRequest>,
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
            if let (Some(sent), Some(reply)) = (sent, replies.last()) {
                sent.answered(reply, log);
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

/// Reports that the window is unknown, and how large a window is requested.
fn report_window(model: &str, window: u64, log: Log) {
    log.note(&format!(
        "the window of '{model}' is unknown: requesting {window} tokens; use --window to change this"
    ));
}

fn dry_run(endpoint: &Endpoint, call: &ModelCall<'_, '_, '_>, log: Log) -> anyhow::Result<Exit> {
    if endpoint.provider == Provider::Offline {
        log.note("the offline provider would be called; this is the body for another provider");
    } else {
        endpoint.shown(call.ask, call.request.stream).iter().for_each(|line| log.note(line));
    }
    let body = call::first_body(call).unwrap_or_else(|_| call.body());
    Output::lines([body])
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
        Ok(tokens) => Output::lines([tokens]),
        Err(failure) => match network.broken.take() {
            Some(error) => Err(error),
            None => reply::note_failure(failure, args, model, endpoint, log),
        },
    }
}
