//! Tests that any bytes can be read as a provider's answer.

use clawutils::provider::Reply;
use clawutils::provider::protocol::Protocol;
use clawutils::provider::reading::Reading;
use clawutils::provider::refusal::{Failure, Rows};
use serde_json::Value;

/// The protocols, one of which the second byte selects.
const PROTOCOLS: [Protocol; 5] =
    [Protocol::Anthropic, Protocol::Chat, Protocol::Ollama, Protocol::Responses, Protocol::Gemini];

/// Reads an answer in pieces. Returns its outcome, which is a reply or a failure, and the text that was shown.
fn read(
    protocol: Protocol,
    status: u16,
    kind: &str,
    pieces: &[&[u8]],
) -> (Result<Reply, Failure>, String) {
    let (mut shown, rows) = (String::new(), Rows::default());
    let mut show = |text: &str| shown.push_str(text);
    let mut reading = Reading::new(protocol, &rows, &mut show);
    reading.head(status, vec![("content-type".to_owned(), kind.to_owned())]);
    for piece in pieces {
        reading.take(piece);
    }
    let outcome = reading.finish(0.0, Ok(())).map_err(|failed| failed.failure);
    (outcome, shown)
}

/// Checks the laws: the outcome does not depend on how an answer is divided into pieces, and each record of a reply is
/// valid JSON on one line.
///
/// The first byte selects the cut, the second the protocol and the content type, and the third the status.
///
/// # Panics
/// If a law is broken.
pub fn run(bytes: &[u8]) {
    let [at, how, status, body @ ..] = bytes else { return };
    let at = usize::from(*at) % (body.len() + 1);
    let kinds = ["text/event-stream", "application/x-ndjson", "application/json", ""];
    let (kind, protocol) =
        (usize::from(*how) / PROTOCOLS.len(), usize::from(*how) % PROTOCOLS.len());
    let (kind, protocol) = (kinds[kind % kinds.len()], PROTOCOLS[protocol]);
    let status = if status % 4 == 0 { 400 } else { 200 };
    let whole = read(protocol, status, kind, &[body]);
    let cut = read(protocol, status, kind, &[&body[..at], b"", &body[at..]]);
    assert_eq!(whole.0, cut.0, "cut at {at}");
    if let Ok(reply) = whole.0 {
        assert_eq!(status, 200);
        for line in reply.to_records("p").lines {
            assert!(!line.contains('\n'), "{line}");
            // Numbers beyond the range of a double, lone surrogates and deep nesting are kept unchanged, but serde_json
            // does not accept them.
            if let Err(error) = serde_json::from_str::<Value>(&line) {
                let why = error.to_string();
                let is_known = ["number out of range", "surrogate", "escape", "recursion"];
                assert!(is_known.iter().any(|known| why.contains(known)), "{why}: {line}");
            }
        }
    }
}
