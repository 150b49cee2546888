//! Files to attach to a prompt: images and PDF documents as media, other UTF-8 files as text.

use crate::cli::read_file;
use crate::exit::{Exit, fail};
use crate::json::write::Members;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::path::Path;

/// The largest file, in bytes, before it is encoded in base64.
const MAX_BYTES: usize = 30 << 20;

/// The media types that providers accept, each with the first bytes of its files. WebP is not listed, because the
/// first bytes of such a file contain its length.
const MEDIA: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
];

/// Reads a file as a content block of a message, in JSON.
///
/// # Errors
/// Fails with 74 or 77 if it cannot be read, and with 65 if it is empty, too large, or neither known media nor UTF-8.
pub fn block(path: &Path) -> anyhow::Result<String> {
    let bytes = read_file(path)?;
    let name = path.display();
    if bytes.is_empty() {
        return fail(Exit::Data, format!("cannot attach '{name}': the file is empty; check it"));
    }
    if bytes.len() > MAX_BYTES {
        let most = MAX_BYTES >> 20;
        let text = format!("cannot attach '{name}': more than {most} MiB; use a smaller file");
        return fail(Exit::Data, text);
    }
    if let Some(media_type) = media_type(&bytes) {
        let kind = if media_type.starts_with("image/") { "image" } else { "document" };
        let data = BASE64_STANDARD.encode(&bytes);
        let source = |source: Members| {
            source.string("type", "base64").string("media_type", media_type).string("data", &data)
        };
        return Ok(Members::of_type(kind).object("source", source).into_json());
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        let takes = "give PNG, JPEG, GIF, WebP, PDF or UTF-8 text";
        return fail(Exit::Data, format!("cannot attach '{name}': unknown type; {takes}"));
    };
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    Ok(Members::of_type("text").string("text", &format!("File '{file}':\n\n{text}")).into_json())
}

/// Returns the type of an image or document by its first bytes.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    MEDIA.iter().find(|(first, _)| bytes.starts_with(first)).map(|(_, media_type)| *media_type)
}
