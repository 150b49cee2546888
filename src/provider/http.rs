//! Sends HTTP requests. This is the only file that uses reqwest.

use crate::exit;
use crate::provider::question::Content;
use crate::provider::{Failure, address};
use reqwest::blocking::{Client, ClientBuilder, Response};
use reqwest::redirect::Policy;
use reqwest::tls::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::io::Read;
use std::time::Duration;

/// Causes that only name a layer of the HTTP library. They are omitted, because the next cause in the chain says
/// what happened.
const LAYERS: [&str; 2] = ["client error (Connect)", "tcp connect error"];
/// The errors of rustls if no known authority has signed the certificate of the server.
const UNTRUSTED: [&str; 2] =
    ["invalid peer certificate: UnknownIssuer", "No CA certificates were loaded from the system"];
/// The time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The size of the read buffer, in bytes.
const PIECE: usize = 16 * 1024;

/// A request. It owns its data, so that another thread can send it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The URL.
    pub url: String,
    /// True if the URL is on this machine; proxies are then ignored.
    pub is_local: bool,
    /// The headers, including the key.
    pub headers: Vec<(&'static str, String)>,
    /// The body of a POST request; without one, the request is a GET.
    pub body: Option<Content>,
    /// The longest wait for the beginning of the answer, and for each piece of it.
    pub timeout: Duration,
    /// PEM certificates to trust in addition to the system's.
    pub certificates: Option<Vec<u8>>,
}

/// A part of an answer.
#[derive(Debug)]
pub enum AnswerPart {
    /// The status, and the headers with names in lower case.
    Head(u16, Vec<(String, String)>),
    /// The next piece of the body.
    Body(Vec<u8>),
}

/// Sends a request and passes the answer to `each` as it arrives, until `each` returns false. Redirects are
/// not followed, so that the key reaches no other host.
///
/// # Errors
/// Returns a [`Failure`] if no complete answer arrived: the name lookup failed, the connection was refused or
/// lost, the certificate is not trusted, or a timeout expired.
pub fn send(mut request: Request, mut each: impl FnMut(AnswerPart) -> bool) -> Result<(), Failure> {
    let client = client(&request).map_err(|error| no_answer(&request, &error))?;
    let mut built = match request.body.take() {
        Some(Content { kind, text }) => {
            client.post(&request.url).header("content-type", kind).body(text)
        }
        None => client.get(&request.url),
    };
    for (name, value) in &request.headers {
        built = built.header(*name, value);
    }
    let mut response = built.send().map_err(|error| no_answer(&request, &error))?;
    let mut wants_more = each(AnswerPart::Head(response.status().as_u16(), headers(&response)));
    let mut piece = vec![0; PIECE];
    while wants_more {
        match response.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => wants_more = each(AnswerPart::Body(piece[..count].to_vec())),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(interrupted(&error)),
        }
    }
    Ok(())
}

fn client(request: &Request) -> reqwest::Result<Client> {
    // This fails only if a crypto provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(request.timeout)
        .redirect(Policy::none())
        .user_agent(concat!("clawutils/", env!("CARGO_PKG_VERSION")));
    if request.url.starts_with("http:") {
        // Loading the system's certificates takes longer than everything else, and plain HTTP needs none.
        builder = builder.tls_certs_only([]);
    } else if let Some(pem) = &request.certificates {
        builder = trusting(builder, pem)?;
    }
    if request.is_local {
        builder = builder.no_proxy();
    }
    builder.build()
}

fn trusting(builder: ClientBuilder, pem: &[u8]) -> reqwest::Result<ClientBuilder> {
    Ok(builder.tls_certs_merge(Certificate::from_pem_bundle(pem)?))
}

/// Returns the reason why a URL is invalid, or `None` if it is valid.
#[must_use]
pub fn why_invalid_url(url: &str) -> Option<String> {
    reqwest::Url::parse(url).err().map(|error| format!("{error}; check --base-url"))
}

/// Returns the reason why a certificate file cannot be used, or `None` if it can.
#[must_use]
pub fn why_invalid_certificates(pem: &[u8]) -> Option<String> {
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate.map(|certificate| trusted.add(certificate));
        if !matches!(added, Ok(Ok(()))) {
            return Some("it contains an invalid certificate; give a PEM file".to_owned());
        }
    }
    trusted.is_empty().then(|| "it contains no certificate; give a PEM file".to_owned())
}

fn headers(response: &Response) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = response.headers().iter();
    headers.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

/// Returns the failure for a request without an answer, with its chain of causes. The message names only the
/// scheme, host and port of the URL, because the path or query could hold a key.
fn no_answer(request: &Request, error: &reqwest::Error) -> Failure {
    let timed_out = if error.is_timeout() { "timed out: " } else { "" };
    let text = format!("{timed_out}no answer from '{}'", address::origin(&request.url));
    let mut text = with_causes(&text, std::error::Error::source(error));
    if error.is_connect()
        && let Some(name) = proxy_variable(request)
    {
        text.push_str(&format!(" ({name} is set: is the proxy reachable?)"));
    }
    // The errors of rustls are only text here.
    match UNTRUSTED.iter().any(|untrusted| text.contains(untrusted)) {
        true => Failure::untrusted(text),
        // A server that refuses a large body often closes the connection before it has read all of it.
        false if !error.is_connect() && !error.is_timeout() => Failure::aborted(text),
        false => Failure::unreachable(text),
    }
}

/// Returns the environment variable that may have selected a proxy.
fn proxy_variable(request: &Request) -> Option<&'static str> {
    let names = match request.url.starts_with("https:") {
        true => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    names.into_iter().filter(|_| !request.is_local).find(is_set)
}

fn interrupted(error: &std::io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<reqwest::Error>());
    let is_timeout = inner.is_some_and(reqwest::Error::is_timeout);
    let text = match is_timeout {
        true => "timed out in the middle of the answer",
        false => "the connection was lost in the middle of the answer",
    };
    let cause = inner.and_then(std::error::Error::source);
    Failure::unreachable(with_causes(text, cause))
}

fn with_causes(text: &str, mut cause: Option<&(dyn std::error::Error + 'static)>) -> String {
    let mut text = text.to_owned();
    while let Some(inner) = cause {
        let cause_text = inner.to_string();
        if !LAYERS.contains(&cause_text.as_str()) {
            text.push_str(&format!(": {}", exit::cause(&cause_text)));
        }
        cause = inner.source();
    }
    text
}
