//! Images and documents: what is wrong with one, and how it is made to fit.
//!
//! A block is judged by the structure of its file. What can be corrected (the media type, the type of block, the spelling of
//! the base64, the size) is corrected; only an image that must be scaled or written again is decoded.

use super::accepts::{IMAGE, PDF_PAGES};
use crate::json::outline::{Outline, Value};
use crate::json::write::Members;
use crate::json::{Object, quote};
use crate::media::encoded::{self, Encoded};
use crate::media::kind::HEAD;
use crate::media::scale::{self, Scaled};
use crate::media::{self, Kind, TORN, pdf, size};
use std::borrow::Cow;

/// The correction of a block.
#[derive(Debug)]
pub struct Correction<'a> {
    block: &'a str,
    /// The data in the standard form of base64.
    data: String,
    kind: Kind,
    /// What is wrong, as clauses for a diagnostic.
    faults: Vec<String>,
    /// True if the image must be decoded and written again.
    is_rewritten: bool,
    /// The number of pixels to decode; 0 if the image is not decoded, also because it has too many.
    pub pixels: u64,
}

/// A block that was corrected.
#[derive(Debug, PartialEq, Eq)]
pub struct Corrected {
    /// The JSON text of the block.
    pub block: String,
    /// The corrections, as clauses for a diagnostic; empty if only the form is another one.
    pub what: String,
    /// The form of an image that was written again, to follow a verb.
    pub form: Option<String>,
}

impl Corrected {
    /// Returns what was corrected, and in which form the block is written or sent, for a diagnostic. `verb` says which.
    #[must_use]
    pub fn summary(&self, verb: &str) -> String {
        let form = self.form.as_ref().map(|form| format!("{verb} {form}"));
        let what = Some(self.what.clone()).filter(|what| !what.is_empty());
        what.into_iter().chain(form).collect::<Vec<_>>().join("; ")
    }
}

/// Judges an image or document block: `None` if it can be sent as it is, or its correction.
///
/// # Errors
/// Returns the reason, phrased to follow "it", if no provider accepts the block and nothing can be corrected.
pub fn judge(block: &str) -> Result<Option<Correction<'_>>, String> {
    let mut outline = Outline::default();
    let Some(whole) = outline.read(block, usize::MAX) else { return Ok(None) };
    let source = whole.object("source").ok_or("has no source")?;
    let Some(data) = data(source)? else { return Ok(None) };
    let mut faults = Vec::new();
    let cleaned;
    let file = match Encoded::new(&data) {
        Some(file) => file,
        None => {
            faults.push("its data is not plain base64".to_owned());
            cleaned = encoded::clean(&data).ok_or("is not base64")?;
            Encoded::new(&cleaned).ok_or("is not base64")?
        }
    };
    let kind = Kind::of(&file.read(0, HEAD));
    let own = whole.string("type").unwrap_or_default();
    let is_rewritten = match kind {
        Kind::Text if own == "document" => false,
        Kind::Pdf => check_pdf(file).map(|()| false)?,
        Kind::Bmp => true,
        _ => must_be_rewritten(file, kind, &mut faults)?,
    };
    let media_type = source.string("media_type").unwrap_or_default();
    if kind.media_type().is_some_and(|actual| actual != media_type) {
        faults.push(format!("it is {}, not '{media_type}'", kind.name()));
    }
    if kind == Kind::Text {
        faults.push(match &*media_type {
            "text/plain" => "its text is in base64".to_owned(),
            media_type => format!("it is text, not '{media_type}'"),
        });
    } else if own != kind.block() {
        faults.push(format!("it is {}, not {own}", kind.name()));
    }
    if faults.is_empty() && !is_rewritten {
        return Ok(None);
    }
    let size = if is_rewritten { size::size(file.text()).unwrap_or((1, 1)) } else { (0, 0) };
    let pixels = u64::from(size.0) * u64::from(size.1);
    let pixels = if pixels > scale::MOST_PIXELS { 0 } else { pixels };
    let data = file.text().to_owned();
    Ok(Some(Correction { block, data, kind, faults, is_rewritten, pixels }))
}

/// Returns the data of a source, or `None` if the block has no file or refers to one elsewhere. Programs also write a file as
/// the address `data:`, which providers refuse.
fn data(source: Value<'_>) -> Result<Option<Cow<'_, str>>, String> {
    let is_blank = |name| source.string(name).is_none_or(|text| text.trim().is_empty());
    match source.string("type").as_deref() {
        Some("base64") | None => Ok(Some(source.string("data").ok_or("has no data")?)),
        Some("url") if is_blank("url") => Err("has no URL".to_owned()),
        Some("url") => Ok(source.string("url").filter(|url| url.starts_with("data:"))),
        Some("text") if is_blank("data") => Err("is empty".to_owned()),
        Some(_) => Ok(None),
    }
}

/// Returns true if an image must be decoded and written again, because it is too large or can be read although it is torn.
/// Adds what is wrong to `faults`.
fn must_be_rewritten(
    file: Encoded<'_>,
    kind: Kind,
    faults: &mut Vec<String>,
) -> Result<bool, String> {
    let picture = match media::check(file) {
        Ok(picture) => picture,
        Err(why) if kind == Kind::Jpeg && why == TORN => {
            faults.push(["it ", &why].concat());
            return Ok(true);
        }
        Err(why) => return Err(why),
    };
    let (width, height) = (picture.width, picture.height);
    let (is_wide, is_long) = (width.max(height) > IMAGE.edge, file.byte_count() > IMAGE.bytes);
    if is_wide {
        faults.push(format!("it has {width} x {height} pixels"));
    }
    if is_long {
        faults.push(format!("it has {} bytes", file.byte_count()));
    }
    Ok(is_wide || is_long)
}

fn check_pdf(file: Encoded<'_>) -> Result<(), String> {
    match pdf::check(&file.decode())? {
        Some(pages) if pages > PDF_PAGES => {
            Err(format!("has {pages} pages, more than {PDF_PAGES}"))
        }
        _ => Ok(()),
    }
}

impl Correction<'_> {
    /// Corrects the block. The same block always gives the same bytes.
    ///
    /// # Errors
    /// Returns the reason, phrased to follow "it", if the image cannot be decoded.
    pub fn apply(self) -> Result<Corrected, String> {
        let Correction { block, data, kind, faults, is_rewritten, .. } = self;
        let file =
            Encoded::new(&data).map(Encoded::decode).filter(|_| is_rewritten || kind == Kind::Text);
        let file = file.unwrap_or_default();
        let (what, mut form) = (faults.join(", "), None);
        let source = match kind {
            Kind::Text => {
                let text = String::from_utf8(file).map_err(|_| "is neither PDF nor text")?;
                Members::of_type("text").string("media_type", "text/plain").string("data", &text)
            }
            _ if is_rewritten => {
                let Scaled { kind, file, before, now } = scale::fit(&file, kind, IMAGE)?;
                form = Some(match before == now {
                    true => format!("as {}", kind.name()),
                    false => format!("with {} x {} pixels", now.0, now.1),
                });
                base64(kind, &encoded::encode(&file))
            }
            kind => base64(kind, &data),
        };
        let block = Object::parse(block).map_err(|_| "is not an object")?;
        let corrected = block.with("source", &source.into_json());
        let corrected = match block.string("type").as_deref() == Some(kind.block()) {
            true => corrected,
            false => Object::parse(&corrected)
                .map(|it| it.with("type", &quote(kind.block())))
                .unwrap_or(corrected),
        };
        Ok(Corrected { block: corrected, what, form })
    }
}

fn base64(kind: Kind, data: &str) -> Members {
    let media_type = kind.media_type().unwrap_or_default();
    Members::of_type("base64").string("media_type", media_type).string("data", data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::scale::tests::picture;

    fn block(kind: &str, media_type: &str, data: &str) -> String {
        Members::of_type(kind)
            .object("source", |it| {
                it.string("type", "base64").string("media_type", media_type).string("data", data)
            })
            .into_json()
    }

    /// Returns what is corrected or the reason why nothing is, and the corrected block.
    fn judged(block: &str) -> (String, String) {
        match judge(block).map(|judged| judged.map(Correction::apply)) {
            Ok(None) => ("fine".to_owned(), block.to_owned()),
            Ok(Some(Ok(corrected))) => {
                let (what, block) = (corrected.summary("sent"), corrected.block);
                assert!(judge(&block).unwrap().is_none(), "{what}: {block}");
                (what, block)
            }
            Ok(Some(Err(why))) | Err(why) => (format!("it {why}"), String::new()),
        }
    }

    #[test]
    fn what_providers_refuse_is_corrected_or_has_a_reason() {
        let png = picture(Kind::Png, 30, 20);
        let text = encoded::encode(&png);
        let jpeg = picture(Kind::Jpeg, 30, 20);
        let torn = encoded::encode(&jpeg[..jpeg.len() - 2]);
        let broken = text.chars().enumerate().fold(String::new(), |text, (at, c)| {
            text + if at % 76 == 75 { "\r\n" } else { "" } + &c.to_string()
        });
        let pdf = encoded::encode(b"%PDF-1.4\nstartxref\n0\n%%EOF");
        let secret = encoded::encode(b"%PDF-1.4\ntrailer <</Encrypt 5 0 R>>\nstartxref\n0\n%%EOF");
        let wide = encoded::encode(&picture(Kind::Png, 2500, 5));
        let of = |kind| encoded::encode(&picture(kind, 30, 20));
        let pages = |count: u64| {
            let tree = format!("%PDF-1.4\n<</Type /Pages /Count {count}>>\nstartxref\n0\n%%EOF");
            block("document", "application/pdf", &encoded::encode(tree.as_bytes()))
        };
        for (block, expected) in [
            (block("image", "image/png", &text), "fine"),
            (block("image", "image/jpeg", &text), "it is PNG, not 'image/jpeg'"),
            (block("image", "", &text), "it is PNG, not ''"),
            (block("document", "image/png", &text), "it is PNG, not document"),
            (block("image", "image/png", &broken), "its data is not plain base64"),
            (
                block("image", "image/png", &format!("data:image/png;base64,{text}")),
                "its data is not plain base64",
            ),
            (
                block("image", "image/png", &wide),
                "it has 2500 x 5 pixels; sent with 2000 x 4 pixels",
            ),
            (block("image", "image/jpeg", &torn), "it ends too early; sent as JPEG"),
            (
                block("image", "image/bmp", &encoded::encode(&picture(Kind::Bmp, 9, 9))),
                "sent as PNG",
            ),
            (block("image", "image/png", &encoded::encode(&png[..90])), "it ends too early"),
            (block("image", "image/png", ""), "it is empty"),
            (block("image", "image/png", "?"), "it is not base64"),
            (block("image", "image/png", "aGVsbG8="), "it is text, which is not accepted"),
            (block("image", "image/png", &of(Kind::Jpeg)), "it is JPEG, not 'image/png'"),
            (block("image", "image/png", &of(Kind::Gif)), "it is GIF, not 'image/png'"),
            (block("image", "image/png", &of(Kind::Webp)), "it is WebP, not 'image/png'"),
            (block("document", "image/png", &pdf), "it is PDF, not 'image/png'"),
            (pages(600), "fine"),
            (pages(601), "it has 601 pages, more than 600"),
            (block("document", "application/pdf", &pdf), "fine"),
            (block("image", "application/pdf", &pdf), "it is PDF, not image"),
            (block("document", "application/pdf", &secret), "it is encrypted"),
            (block("document", "application/pdf", "aGVsbG8="), "it is text, not 'application/pdf'"),
            (block("document", "text/plain", "aGVsbG8="), "its text is in base64"),
            (r#"{"type":"image"}"#.to_owned(), "it has no source"),
            (r#"{"type":"image","source":{"type":"base64"}}"#.to_owned(), "it has no data"),
            (r#"{"type":"image","source":{"type":"url","url":""}}"#.to_owned(), "it has no URL"),
            (r#"{"type":"image","source":{"type":"url","url":"http://x"}}"#.to_owned(), "fine"),
            (r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#.to_owned(), "fine"),
            (
                r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":" "}}"#
                    .to_owned(),
                "it is empty",
            ),
        ] {
            assert_eq!(judged(&block).0, expected, "{block:.200}");
        }
    }

    #[test]
    fn the_other_members_of_a_block_stay() {
        let png = encoded::encode(&picture(Kind::Png, 3, 2));
        let own = format!(
            r#"{{"type":"document","title":"t","source":{{"type":"url","url":"data:image/gif;base64,{png}"}},"cache_control":{{"type":"ephemeral"}}}}"#
        );
        let corrected = format!(
            r#"{{"type":"image","title":"t","source":{{"type":"base64","media_type":"image/png","data":"{png}"}},"cache_control":{{"type":"ephemeral"}}}}"#
        );
        assert_eq!(judged(&own).1, corrected);
    }

    #[test]
    fn a_document_that_is_text_becomes_a_text_document() {
        let document = block("document", "application/pdf", "aGVsbG8=");
        let expected = r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hello"}}"#;
        assert_eq!(judged(&document).1, expected);
    }
}
