//! Reports, with `--log json`, how much of the session's last request a request repeats, which is what a prompt cache can hold.

use crate::call::session_key;
use clawutils::cli::model::state_dir;
use clawutils::cli::{Log, diagnostics};
use clawutils::json::write::Members;
use clawutils::new_file::{NewFile, PRIVATE};
use clawutils::provider::ModelRequest;
use clawutils::provider::prefix::RequestParts;
use clawutils::provider::protocol::Protocol;
use std::io::Write;
use std::path::Path;

/// Reports the common prefix, and stores the hashes of this request in the state directory, in a file for the session. A
/// failure to store them is ignored, because the report is only for information.
pub fn report(request: &ModelRequest<'_, '_>, protocol: Protocol, log: Log) {
    let (true, Some(key), Some(dir)) = (diagnostics::is_json(), session_key(), state_dir()) else {
        return;
    };
    let path = dir.join("prefixes").join(key);
    let parts = RequestParts::of(request, protocol);
    let earlier = std::fs::read_to_string(&path).map(|text| RequestParts::read(&text));
    if let Ok(earlier) = earlier {
        let (common, last) = (parts.common(&earlier), earlier.bytes());
        let text = format!("the request repeats {common} of the {last} bytes of the last one");
        let members = Members::new().number("prefix_bytes", common).number("last_bytes", last);
        log.outcome(&text, &members.number("bytes", parts.bytes()));
    }
    let _ = store(&path, &parts);
}

fn store(path: &Path, parts: &RequestParts) -> anyhow::Result<()> {
    path.parent().map_or(Ok(()), clawutils::transcript::make_directory)?;
    let mut file = NewFile::create(path, PRIVATE)?;
    file.write_all(parts.to_text().as_bytes())?;
    Ok(file.finish(true)?)
}
