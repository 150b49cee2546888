//! The network: the one file that names reqwest.

use crate::provider::{Answer, Failure};
use reqwest::blocking::Client;
use reqwest::redirect::Policy;
use std::time::Duration;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a POST and gives the answer. The key is in `headers`; redirects are not followed, so it
/// reaches no other host.
///
/// # Errors
/// A [`Failure`] when there was no whole answer: a name that is not found, a refused or broken
/// connection, a certificate that is not trusted, a time out.
pub fn post(
    url: &str,
    headers: &[(&str, String)],
    body: &str,
    timeout: Duration,
) -> Result<Answer, Failure> {
    // A second provider would only mean that one was installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(timeout)
        .redirect(Policy::none())
        .user_agent(concat!("clawutils/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("http:") {
        // Plain HTTP is for this machine; a proxy would carry the key off it. And reading the system's
        // certificates takes longer than all the rest.
        builder = builder.no_proxy().tls_certs_only([]);
    }
    let client = builder.build().map_err(|error| no_answer(&error))?;
    let mut request = client.post(url).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let response = request.body(body.to_owned()).send().map_err(|error| no_answer(&error))?;
    let status = response.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect();
    let body = response.bytes().map_err(|error| no_answer(&error))?.to_vec();
    Ok(Answer { status, headers, body })
}

/// The chain of causes without the address, which is said elsewhere and could hold a key.
fn no_answer(error: &reqwest::Error) -> Failure {
    let mut text = if error.is_timeout() { "timed out" } else { "no answer" }.to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    Failure::unreachable(text)
}
