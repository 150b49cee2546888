//! Blocks in the form of another API, which programs that work with several providers leave in transcripts.

use crate::json::Object;
use crate::json::write::Members;

/// Returns the block in Anthropic's form if it is a text or an image in the form of chat completions (`image_url`) or of
/// Responses (`input_text`, `output_text`, `input_image`).
#[must_use]
pub fn own_form(block: &str) -> Option<String> {
    let object = Object::parse(block).ok()?;
    match object.string("type")?.as_ref() {
        "input_text" | "output_text" => {
            let text = object.get("text").filter(|text| text.starts_with('"'))?;
            Some(Members::of_type("text").raw("text", text).into_json())
        }
        "image_url" | "input_image" => {
            let value = object.get("image_url")?;
            let inner = Object::parse(value).ok();
            let url = inner.as_ref().and_then(|inner| inner.get("url")).unwrap_or(value);
            let url = Some(url).filter(|url| url.starts_with('"'))?;
            let source = |it: Members| it.string("type", "url").raw("url", url);
            Some(Members::of_type("image").object("source", source).into_json())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_images_of_other_apis_get_our_form() {
        let image = r#"{"type":"image","source":{"type":"url","url":"http://x"}}"#;
        for (block, expected) in [
            (r#"{"type":"image_url","image_url":{"url":"http://x","detail":"low"}}"#, Some(image)),
            (r#"{"type":"input_image","image_url":"http://x"}"#, Some(image)),
            (
                r#"{"type":"input_text","text":"\u00e9"}"#,
                Some(r#"{"type":"text","text":"\u00e9"}"#),
            ),
            (r#"{"type":"output_text","text":5}"#, None),
            (r#"{"type":"image_url"}"#, None),
            (r#"{"type":"search_result"}"#, None),
        ] {
            assert_eq!(own_form(block).as_deref(), expected, "{block}");
        }
    }
}
