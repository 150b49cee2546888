//! `claw-call`: check, send, write the reply.

use crate::cli::budget::Extras;
use crate::cli::model::{ModelArgs, Provider};
use crate::cli::{Log, Output, messages, now, seconds, variable};
use crate::estimate::budget::default_output;
use crate::exit::{Exit, fail};
use crate::json::{Object, quote};
use crate::messages::rebuild::check_ready;
use crate::provider::call::{Patience, World};
use crate::provider::protocol::Protocol;
use crate::provider::reading::Reading;
use crate::provider::{Answer, Failure, Reply, Request, anthropic, offline};
use anyhow::Context;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The most tokens of an answer when nobody says and the window is large or unknown, as in claw0.
const MAX_TOKENS: u64 = 8096;

/// The options of `claw-call` alone.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// Most tokens of the answer (8096, at most a quarter of the window)
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// Window in tokens; the offline provider refuses what is over it (CLAW_WINDOW)
    #[arg(long, value_name = "TOKENS")]
    pub window: Option<u64>,
    /// Write the body that would be sent, say the headers, send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the error record of a failed call to FILE
    #[arg(long, value_name = "FILE")]
    pub failure: Option<PathBuf>,
    /// Longest time for one exchange, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub timeout: Duration,
    /// Further tries when the provider is busy, broken or away
    #[arg(long, value_name = "N", default_value = "2")]
    pub max_retries: u32,
    /// Longest wait that the provider may ask for, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub max_wait: Duration,
}

/// Runs `claw-call`.
///
/// # Errors
/// 7 or 76 when the messages cannot be sent, 77 or 78 when key or configuration are missing, 74 when
/// the reply cannot be written. A provider's refusal is no error here: it is said, noted, and its status
/// returned.
pub fn call(
    args: &CallArgs,
    model: &ModelArgs,
    input: &[(Arc<str>, Vec<u8>)],
    extras: &Extras,
    log: Log,
) -> anyhow::Result<Exit> {
    let messages = messages(input)?;
    check_ready(&messages)?;
    let name = match model.model()? {
        Some(name) => name,
        None => return fail(Exit::Config, "no model: give --model or set CLAW_MODEL"),
    };
    let window = model.window(args.window)?;
    let room = || window.map_or(MAX_TOKENS, default_output);
    let request = Request {
        model: &name,
        max_tokens: args.max_tokens.unwrap_or_else(room),
        system: extras.system.as_deref(),
        tools: extras.tools.as_deref(),
        messages: &messages,
        stream: false,
        window,
        extra: None,
    };
    let endpoint = Endpoint::new(model)?;
    if args.dry_run {
        return dry_run(&endpoint, &request, log);
    }
    endpoint.check()?;
    let mut network = Network { endpoint: &endpoint, window, timeout: args.timeout, log };
    let patience = Patience { retries: args.max_retries, max_wait: args.max_wait.as_secs_f64() };
    match crate::provider::call::call(
        Protocol::Anthropic,
        &request,
        patience,
        &mut network,
        &mut |_| {},
    ) {
        Ok(reply) => write_reply(&reply, model.provider()?, log),
        Err(mut failure) => {
            failure.message = endpoint.without_key(&failure.message);
            note_failure(&failure, args.failure.as_deref(), model, log)?;
            Ok(failure.exit())
        }
    }
}

/// Where and how to send.
struct Endpoint {
    provider: Provider,
    url: String,
    /// The headers with the key, and what to say of them.
    key: Option<(&'static str, String)>,
}

impl Endpoint {
    fn new(model: &ModelArgs) -> anyhow::Result<Endpoint> {
        let provider = model.provider()?;
        let url = anthropic::url(&model.endpoint()?);
        let key = match provider {
            Provider::Offline => None,
            Provider::Anthropic => anthropic_key()?,
        };
        Ok(Endpoint { provider, url, key })
    }

    /// Whether sending there is safe and can succeed.
    fn check(&self) -> anyhow::Result<()> {
        if self.provider == Provider::Offline {
            return Ok(());
        }
        let local = is_local(&self.url);
        if !(self.url.starts_with("https://") || local) {
            let text =
                format!("cannot send to '{}': only https, or http on this machine", self.url);
            return fail(Exit::Config, text);
        }
        if self.key.is_none() && !local {
            let text = "no key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN";
            return fail(Exit::Permission, text);
        }
        Ok(())
    }

    /// A provider's text: some repeat the key that they do not accept.
    fn without_key(&self, text: &str) -> String {
        let Some((_, value)) = &self.key else { return text.to_owned() };
        text.replace(value.trim_start_matches("Bearer "), "(hidden)")
    }

    /// Says where and with which headers a request would be sent; never the key.
    fn say_headers(&self, log: Log) {
        log.note(&format!("would send POST {}", self.url));
        for (name, value) in self.headers() {
            let is_secret = self.key.as_ref().is_some_and(|(key, _)| *key == name);
            log.note(&format!(
                "would send {name}: {}",
                if is_secret { "(hidden)" } else { &value }
            ));
        }
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", anthropic::VERSION.to_owned());
        std::iter::once(version).chain(self.key.clone()).collect()
    }
}

/// The key from the environment, as the header that carries it.
fn anthropic_key() -> anyhow::Result<Option<(&'static str, String)>> {
    match (variable("ANTHROPIC_API_KEY"), variable("ANTHROPIC_AUTH_TOKEN")) {
        (Some(_), Some(_)) => {
            fail(Exit::Config, "both ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are set: unset one")
        }
        (Some(key), None) => Ok(Some(("x-api-key", key))),
        (None, Some(token)) => Ok(Some(("authorization", format!("Bearer {token}")))),
        (None, None) => Ok(None),
    }
}

/// Whether an address is plain HTTP on this machine.
fn is_local(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let ip: Option<std::net::IpAddr> = host.parse().ok();
    // With a user name the host is what follows '@'; such addresses are not for keys.
    !authority.contains('@') && (host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()))
}

fn dry_run(endpoint: &Endpoint, request: &Request<'_, '_>, log: Log) -> anyhow::Result<Exit> {
    if endpoint.provider == Provider::Offline {
        log.note("would ask the offline provider; this is what another would be sent");
    } else {
        endpoint.say_headers(log);
    }
    let mut out = Output::open();
    writeln!(out, "{}", anthropic::body(request)).context("cannot write '<stdout>'")?;
    out.finish()?;
    Ok(Exit::Done)
}

/// The world that a call is made in.
struct Network<'n> {
    endpoint: &'n Endpoint,
    window: Option<u64>,
    timeout: Duration,
    log: Log,
}

impl World for Network<'_> {
    fn send(
        &mut self,
        request: &Request<'_, '_>,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        let answer = match self.endpoint.provider {
            Provider::Offline => offline::answer(request, self.window),
            Provider::Anthropic => post(self.endpoint, body, self.timeout)?,
        };
        reading.head(answer.status, answer.headers);
        reading.take(&answer.body);
        Ok(())
    }

    fn wait(&mut self, seconds: f64) {
        std::thread::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    }

    fn now(&self) -> f64 {
        now().unwrap_or_default()
    }

    fn chance(&mut self) -> f64 {
        // The hasher's seed is random for each process, which is all that spreading them takes.
        RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
    }

    fn say(&mut self, text: &str) {
        self.log.note(&self.endpoint.without_key(text));
    }
}

#[cfg(feature = "http")]
fn post(endpoint: &Endpoint, body: &str, timeout: Duration) -> Result<Answer, Failure> {
    crate::provider::http::post(&endpoint.url, &endpoint.headers(), body, timeout)
}

#[cfg(not(feature = "http"))]
fn post(_: &Endpoint, _: &str, _: Duration) -> Result<Answer, Failure> {
    Err(Failure::unreachable("this build has no network"))
}

/// Writes the reply's records.
fn write_reply(reply: &Reply, provider: Provider, log: Log) -> anyhow::Result<Exit> {
    let records = reply.to_records(provider.name());
    let mut out = Output::open();
    for line in &records.lines {
        writeln!(out, "{line}").context("cannot write '<stdout>'")?;
    }
    out.finish()?;
    if let Some(name) = &records.cut_call {
        log.note(&format!("the call of '{name}' was cut off in the middle and is left out"));
    }
    let reason = reply.stop_reason.as_deref().unwrap_or("none");
    match reply.stop_reason.as_deref() {
        _ if reply.is_cut_off() => {
            log.note(&format!("the answer was cut off: stop reason '{reason}'"));
            return Ok(Exit::CutOff);
        }
        Some("end_turn" | "tool_use" | "stop_sequence") => {}
        _ => log.note(&format!("the answer ended unusually: stop reason '{reason}'")),
    }
    Ok(Exit::Done)
}

/// Says why a call failed, writes the error record, and remembers the window if one was named.
fn note_failure(
    failure: &Failure,
    file: Option<&Path>,
    model: &ModelArgs,
    log: Log,
) -> anyhow::Result<()> {
    let name = model.model()?;
    let record = failure.to_error_record(name.as_deref());
    let mut members = format!("{},\"rule\":{}", log_members(&record), quote(failure.rule));
    if let Some(seconds) = failure.retry_after {
        members.push_str(&format!(",\"retry_after\":{seconds}"));
    }
    log.outcome(&failure.to_string(), &members);
    if let Some(path) = file {
        write_private(path, &(record + "\n"))
            .with_context(|| format!("cannot write '{}'", path.display()))?;
    }
    if let Some(window) = taught_window(failure, model.provider()?)
        && let Err(error) = model.learn_window(window, now()?)
    {
        // The refusal itself was said; without the memory the next one says it again.
        log.note(&format!("{error:#}"));
    }
    Ok(())
}

/// The window that a refusal teaches. The offline provider only enforces what it was told, and rule T1
/// names a limit on tokens per minute, which is the account's and may change tomorrow.
fn taught_window(failure: &Failure, provider: Provider) -> Option<u64> {
    let is_taught =
        failure.exit() == Exit::Overflow && provider != Provider::Offline && failure.rule != "T1";
    failure.limit.filter(|_| is_taught)
}

/// The members of an error record, but for its message: that is in what is said.
fn log_members(record: &str) -> String {
    let Ok(object) = Object::parse(record) else { return String::new() };
    let members = object.members().filter(|member| member.name() != "message");
    members.map(|m| format!("{}:{}", m.raw_name, m.value)).collect::<Vec<_>>().join(",")
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_failure_has_one_message() {
        let record = r#"{"type":"error","class":"overflow","message":"too long","limit":5}"#;
        assert_eq!(log_members(record), r#""type":"error","class":"overflow","limit":5"#);
    }

    #[test]
    fn t5_plain_http_stays_on_this_machine() {
        for url in ["http://127.0.0.1:1/v1", "http://localhost/x", "http://[::1]:8080/"] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "http://example.org/",
            "http://127.0.0.1@example.org/",
            "http://127.0.0.1.example.org/",
            "https://127.0.0.1/",
            "http://10.0.0.1/",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }
}
