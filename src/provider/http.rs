//! The network: the one file that names reqwest.

use crate::exit;
use crate::provider::{Failure, address};
use reqwest::blocking::{Client, ClientBuilder, Response};
use reqwest::redirect::Policy;
use reqwest::tls::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::io::Read;
use std::time::Duration;

/// Causes that only name a layer of the library; the next one says what happened.
const LAYERS: [&str; 2] = ["client error (Connect)", "tcp connect error"];
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read at once.
const PIECE: usize = 16 * 1024;

/// A POST, which a thread of its own can send.
#[derive(Clone, Debug)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// Whether that is this machine: no proxy stands between.
    pub is_local: bool,
    /// The headers, the key among them.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
    /// The longest wait for the answer's beginning, and for each piece of it.
    pub timeout: Duration,
    /// Certificates in PEM that are trusted beside the system's.
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

/// Sends a POST and gives the answer to `each` as it comes, while that says that it wants more. Redirects are
/// not followed, so a key reaches no other host.
///
/// # Errors
/// A [`Failure`] when there was no whole answer: a name that is not found, a refused or broken
/// connection, a certificate that is not trusted, a time out.
pub fn post(mut post: Post, mut each: impl FnMut(AnswerPart) -> bool) -> Result<(), Failure> {
    let client = client(&post).map_err(|error| no_answer(&post, &error))?;
    let mut request = client.post(&post.url).header("content-type", "application/json");
    for (name, value) in &post.headers {
        request = request.header(*name, value);
    }
    let body = std::mem::take(&mut post.body);
    let mut response = request.body(body).send().map_err(|e| no_answer(&post, &e))?;
    let mut wants_more = each(AnswerPart::Head(response.status().as_u16(), headers(&response)));
    let mut piece = vec![0; PIECE];
    while wants_more {
        match response.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => wants_more = each(AnswerPart::Body(piece[..count].to_vec())),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(broke_off(&error)),
        }
    }
    Ok(())
}

fn client(post: &Post) -> reqwest::Result<Client> {
    // A second provider would only mean that one was installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(post.timeout)
        .redirect(Policy::none())
        .user_agent(concat!("clawutils/", env!("CARGO_PKG_VERSION")));
    if post.url.starts_with("http:") {
        // Reading the system's certificates takes longer than all the rest.
        builder = builder.tls_certs_only([]);
    } else if let Some(pem) = &post.certificates {
        builder = trusting(builder, pem)?;
    }
    if post.is_local {
        builder = builder.no_proxy();
    }
    builder.build()
}

fn trusting(builder: ClientBuilder, pem: &[u8]) -> reqwest::Result<ClientBuilder> {
    Ok(builder.tls_certs_merge(Certificate::from_pem_bundle(pem)?))
}

/// Why an address is none, if it is none.
#[must_use]
pub fn why_no_address(url: &str) -> Option<String> {
    reqwest::Url::parse(url).err().map(|error| format!("{error}; check --base-url"))
}

/// Why a file of certificates cannot be used, if it cannot.
#[must_use]
pub fn why_no_certificates(pem: &[u8]) -> Option<String> {
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate.map(|certificate| trusted.add(certificate));
        if !matches!(added, Ok(Ok(()))) {
            return Some("a certificate in it cannot be read; give PEM".to_owned());
        }
    }
    trusted.is_empty().then(|| "no certificate in it; give PEM".to_owned())
}

fn headers(response: &Response) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = response.headers().iter();
    headers.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect()
}

/// The chain of causes. Of the address the host is told, and no path or query, which could hold a key.
fn no_answer(post: &Post, error: &reqwest::Error) -> Failure {
    let timed_out = if error.is_timeout() { "timed out: " } else { "" };
    let text = format!("{timed_out}no answer from '{}'", address::origin(&post.url));
    let mut text = with_causes(&text, std::error::Error::source(error));
    if error.is_connect()
        && let Some(name) = proxy_variable(post)
    {
        text.push_str(&format!(" (by way of a proxy? {name} is set)"));
    }
    Failure::unreachable(text)
}

/// The variable that may put a proxy between.
fn proxy_variable(post: &Post) -> Option<&'static str> {
    let names = match post.url.starts_with("https:") {
        true => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    names.into_iter().filter(|_| !post.is_local).find(is_set)
}

fn broke_off(error: &std::io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<reqwest::Error>());
    let is_timeout = inner.is_some_and(reqwest::Error::is_timeout);
    let text = if is_timeout { "timed out in the middle" } else { "the answer broke off" };
    let cause = inner.and_then(std::error::Error::source);
    Failure::unreachable(with_causes(text, cause))
}

fn with_causes(text: &str, mut cause: Option<&(dyn std::error::Error + 'static)>) -> String {
    let mut text = text.to_owned();
    while let Some(inner) = cause {
        let told = inner.to_string();
        if !LAYERS.contains(&told.as_str()) {
            text.push_str(&format!(": {}", exit::cause(&told)));
        }
        cause = inner.source();
    }
    text
}
