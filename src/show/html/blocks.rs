//! Renders parts of a page that are not prose: verbatim text, diffs and images.

use super::super::Media;
use super::super::code::CodePart;
use super::super::edit::{DiffLine, Edit};
use super::super::wording::Language;
use super::super::words::{self, clean, html};
use crate::printable::printable;

/// The types of images that are shown. Formats that can contain scripts are excluded.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Renders the changes of a tool call.
pub fn diff(edit: &Edit) -> String {
    let line = |line: &DiffLine| {
        let class = CodePart::from(line.kind).class.unwrap_or("same");
        let text = html(&clean(&line.text));
        format!("<span class=\"{class}\">{}{text}</span>\n", line.kind.sign())
    };
    let lines: String = edit.lines.iter().map(line).collect();
    let others = if edit.others.is_empty() { String::new() } else { pre(&edit.others) + "\n" };
    format!("{others}<pre class=\"diff\" dir=\"auto\" tabindex=\"0\">\n{lines}</pre>")
}

/// Renders text verbatim.
pub fn pre(text: &str) -> String {
    let text = clean(text);
    // A browser drops a line feed right after the tag.
    format!("<pre dir=\"auto\" tabindex=\"0\">\n{}</pre>", html(text.trim_end_matches('\n')))
}

/// Renders an image if its data is included and safe, or else its properties.
pub fn picture(media: &Media, language: Language) -> String {
    let words = html(&printable(&words::media(media, language)));
    let media_type = media.media_type.as_deref().filter(|it| IMAGES.contains(it));
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let data = media.data.as_ref().filter(|data| data.bytes().all(is_base64));
    match media_type.zip(data).filter(|_| media.kind == "image") {
        Some((media_type, data)) => {
            let words = words.replace('"', "&quot;");
            format!("<p><img alt=\"{words}\" src=\"data:{media_type};base64,{data}\"></p>")
        }
        None => format!("<p class=\"facts\">[{words}]</p>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_can_contain_scripts_are_not_shown() {
        let media = |media_type: &str, data: &str| Media {
            kind: "image".into(),
            media_type: Some(media_type.into()),
            bytes: Some(3),
            data: Some(data.into()),
            raw: String::new(),
        };
        let png =
            "<p><img alt=\"image, image/png, 3 bytes\" src=\"data:image/png;base64,AAAA\"></p>";
        assert_eq!(picture(&media("image/png", "AAAA"), Language::En), png);
        assert!(!picture(&media("image/svg+xml", "AAAA"), Language::En).contains("<img"));
        assert!(!picture(&media("image/png", "AA\"onerror=x"), Language::En).contains("<img"));
    }
}
