//! Reports, with `--log json`, how much of the session's last request a request repeats, which is what a prompt cache can hold,
//! and the provider's reason if its cache did not hold it.

use clawutils::cli::model::state_dir;
use clawutils::cli::{Log, diagnostics, variable};
use clawutils::json::write::Members;
use clawutils::new_file::{NewFile, PRIVATE};
use clawutils::provider::cache;
use clawutils::provider::prefix::RequestParts;
use clawutils::provider::protocol::Protocol;
use clawutils::provider::{ModelRequest, Reply};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The line of the file before the id of the answer.
const ANSWER: &str = "answer ";

/// The last request of the session: the hashes of its parts and the id of its answer, in a file in the state directory. A
/// failure to store them is ignored, because the report is only for information.
pub struct LastRequest {
    path: PathBuf,
    parts: Option<RequestParts>,
    answer: Option<String>,
}

impl LastRequest {
    /// Reads the file of the session; `None` without `--log json` or a session.
    pub fn read() -> Option<LastRequest> {
        let dir = state_dir().filter(|_| diagnostics::is_json())?;
        let path = dir.join("prefixes").join(session_key()?);
        let text = std::fs::read_to_string(&path).ok();
        let answer = text.as_deref().and_then(|text| text.lines().last()?.strip_prefix(ANSWER));
        let answer = answer.map(str::to_owned);
        Some(LastRequest { path, parts: text.as_deref().map(RequestParts::read), answer })
    }

    /// Returns the id of its answer.
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    /// Reports what a new request repeats, which then is the last one.
    pub fn report(
        &self,
        request: &ModelRequest<'_, '_>,
        protocol: Protocol,
        log: Log,
    ) -> SentRequest {
        let parts = RequestParts::of(request, protocol);
        if let Some(earlier) = &self.parts {
            let (common, last) = (parts.common(earlier), earlier.bytes());
            let text = format!("the request repeats {common} of the {last} bytes of the last one");
            let members = Members::new().number("prefix_bytes", common).number("last_bytes", last);
            log.outcome(&text, &members.number("bytes", parts.bytes()));
        }
        let sent = SentRequest { path: self.path.clone(), parts: parts.to_text() };
        let _ = store(&sent.path, &sent.parts);
        sent
    }
}

/// A request that was reported.
pub struct SentRequest {
    path: PathBuf,
    /// The hashes of its parts, as text.
    parts: String,
}

impl SentRequest {
    /// Reports the reason of a cache miss in the answer, and stores the answer's id.
    pub fn answered(&self, reply: &Reply, log: Log) {
        if let Some(miss) = &reply.cache_miss {
            let text =
                format!("the provider's cache does not have the last request: {}", miss.reason);
            let members = Members::new().string("cache_miss", &miss.reason);
            log.outcome(
                &text,
                &members.optional(Members::number, "cache_miss_tokens", miss.tokens),
            );
        }
        if let Some(id) = reply.id.as_deref().filter(|id| !id.contains('\n')) {
            let _ = store(&self.path, &[&self.parts, ANSWER, id, "\n"].concat());
        }
    }
}

fn store(path: &Path, text: &str) -> anyhow::Result<()> {
    path.parent().map_or(Ok(()), clawutils::transcript::make_directory)?;
    let mut file = NewFile::create(path, PRIVATE)?;
    file.write_all(text.as_bytes())?;
    Ok(file.finish(true)?)
}

/// Returns the key of the session whose turn this is.
pub(super) fn session_key() -> Option<String> {
    let path = std::path::absolute(variable("CLAW_SESSION")?).ok()?;
    Some(cache::session_key(&path.to_string_lossy()))
}
