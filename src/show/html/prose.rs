//! Renders the Markdown of messages. Raw HTML and images in it become text, and only links to web and mail addresses are
//! kept.

use super::super::code::{self, CodePart};
use super::super::emphasis::Marked;
use super::super::markdown::{DIALECT, MAX_PARSED};
use super::super::words::{clean, html};
use super::blocks::pre;
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Parser, Tag, TagEnd, TextMergeStream,
};

/// Renders Markdown as HTML. Very long text is not parsed.
pub fn rendered(text: &str) -> String {
    let text = clean(text);
    if text.len() > MAX_PARSED {
        return pre(&text);
    }
    let (marked, mut links) = (Marked::new(&text), Vec::new());
    let events = Parser::new_ext(&marked.text, DIALECT).map(|event| marked.event(event));
    let mut headings = Headings::default();
    let events = events.filter_map(|event| safe(event, &mut links, &mut headings));
    let mut out = String::with_capacity(text.len() * 2);
    let mut language = None;
    let events = TextMergeStream::new(events).map(|event| coloured(event, &mut language));
    pulldown_cmark::html::push_html(&mut out, events);
    // Code that scrolls must be reachable with the keyboard. There is no other markup that begins so, because text is escaped.
    out.replace("<pre><code", "<pre tabindex=\"0\"><code")
}

/// Highlights code in fences. `language` is that of the open fence.
fn coloured<'a>(event: Event<'a>, language: &mut Option<CowStr<'a>>) -> Event<'a> {
    let code = match (&event, &language) {
        (Event::Text(text), Some(language)) => code::pieces(language, text),
        _ => None,
    };
    let code = code.map(|pieces| spans(&pieces));
    match &event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => *language = Some(info.clone()),
        Event::End(TagEnd::CodeBlock) => *language = None,
        _ => {}
    }
    code.map_or(event, |code| Event::Html(code.into()))
}

/// Renders pieces of code, escaped.
fn spans(pieces: &[(CodePart, &str)]) -> String {
    let span = |(part, text): &(CodePart, &str)| match part.class {
        Some(class) => format!("<span class=\"{class}\">{}</span>", html(text)),
        None => html(text),
    };
    pieces.iter().map(span).collect()
}

/// Makes an event safe. `links` has an element for each open link: true if it is kept.
fn safe<'a>(event: Event<'a>, links: &mut Vec<bool>, headings: &mut Headings) -> Option<Event<'a>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { level, .. }) => {
            let (id, classes, attrs) = (None, Vec::new(), Vec::new());
            Event::Start(Tag::Heading { level: headings.begin(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(headings.current())),
        Event::Start(Tag::Image { .. }) => Event::Text(CowStr::Borrowed("[image: ")),
        Event::End(TagEnd::Image) => Event::Text(CowStr::Borrowed("]")),
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            links.push(is_safe(dest_url));
            return links.last().copied().unwrap_or(false).then_some(event);
        }
        Event::End(TagEnd::Link) => return links.pop().unwrap_or(false).then_some(event),
        event => event,
    })
}

/// The headings of a message that are above the current place, by their levels.
#[derive(Default)]
struct Headings(Vec<HeadingLevel>);

impl Headings {
    /// Begins a heading, and returns its level on the page, which uses the levels 1 to 3 itself. A heading is one level below
    /// the one that it belongs to, because readers of a page by its outline expect no gaps.
    fn begin(&mut self, level: HeadingLevel) -> HeadingLevel {
        while self.0.last().is_some_and(|above| *above >= level) {
            self.0.pop();
        }
        self.0.push(level);
        self.current()
    }

    fn current(&self) -> HeadingLevel {
        match self.0.len() {
            0 | 1 => HeadingLevel::H4,
            2 => HeadingLevel::H5,
            _ => HeadingLevel::H6,
        }
    }
}

/// Returns true for the URL of a web or mail address.
fn is_safe(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
    url.contains(':') && ["http", "https", "mailto"].contains(&scheme.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_messages_is_never_markup() {
        for (markdown, shown) in [
            ("a <b>x</b>", "<p>a &lt;b&gt;x&lt;/b&gt;</p>\n"),
            ("<script>\nx\n</script>", "<p>&lt;script&gt;\nx\n&lt;/script&gt;</p>\n"),
            ("これは**「永久」**です", "<p>これは<strong>「永久」</strong>です</p>\n"),
            ("# one\n## two", "<h4>one</h4>\n<h5>two</h5>\n"),
            ("### one\n##### two\n### three", "<h4>one</h4>\n<h5>two</h5>\n<h4>three</h4>\n"),
            (
                "[a](javascript:x) [b](https://x.org) [c](#d)",
                "<p>a <a href=\"https://x.org\">b</a> c</p>\n",
            ),
            ("![a](https://x.org/i.png)", "<p>[image: a]</p>\n"),
            (
                "```rust\nlet a = \"</code><b>\";\n```",
                "<pre tabindex=\"0\"><code class=\"language-rust\"><span class=\"keyword\">let</span> a = <span class=\"string\">\"&lt;/code&gt;&lt;b&gt;\"</span>;\n</code></pre>\n",
            ),
            ("[![a](i)](JavaScript:x)", "<p>[image: a]</p>\n"),
            ("a\u{1b}[31m\u{202e}b", "<p>a\\u{1b}[31m\\u{202e}b</p>\n"),
        ] {
            assert_eq!(rendered(markdown), shown, "{markdown}");
        }
    }
}
