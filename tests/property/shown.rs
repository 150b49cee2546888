//! Laws of claw-show: all content that is sent is shown, and text from a transcript never becomes markup in the
//! output.

use super::any::Law;
use super::choices::Choices;
use super::records::Conversation;
use clawutils::input::Input;
use clawutils::messages::Message;
use clawutils::messages::rebuild::{self, from_inputs};
use clawutils::show::agents::Agents;
use clawutils::show::render::MarkdownLayout;
use clawutils::show::stream::Stream;
use clawutils::show::{self, Format, ShowOptions};
use pulldown_cmark::{Event, HeadingLevel, Options as Dialect, Parser, Tag, TagEnd};
use std::collections::BTreeSet;

/// Returns what claw-show prints for a transcript, with nothing folded.
fn shown(bytes: &[u8], format: Format) -> Result<String, String> {
    let inputs = [Input::memory("t", bytes.to_vec())];
    let options = ShowOptions { full: true, ..ShowOptions::default() };
    let mut out = Vec::new();
    show::show(&inputs, "t", &Agents::default(), format, &options, &mut out)
        .map_err(|error| format!("{error:#}"))?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

/// Returns the marks in `text`. A mark is a letter and a number.
fn marks(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_mark = |word: &&str| {
        let number = word.strip_prefix(['w', 'r']).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    words.filter(is_mark).collect()
}

/// Checks that each format shows all content of a conversation that would be sent, and is well-formed.
pub fn of_conversations(conversation: &Conversation) -> Law {
    let bytes = conversation.write().bytes;
    let inputs = [Input::memory("t", bytes.clone())];
    let options =
        rebuild::RebuildOptions { ignore_compactions: true, ..rebuild::RebuildOptions::default() };
    let sent = from_inputs(&inputs, &options).map_err(|error| format!("{error:#}"))?.messages;
    let sent: String = sent.iter().map(Message::to_json).collect();
    // The content of images is not shown.
    let sent = without(&without(&sent, r#""url":""#), r#""data":""#);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let text = shown(&bytes, format)?;
        let lost: Vec<_> = marks(&sent).difference(&marks(&text)).copied().collect();
        if !lost.is_empty() {
            return Err(format!("{format:?}: {lost:?} is not shown in\n{text}"));
        }
        is_sound(&text, format)?;
    }
    Ok(())
}

/// Returns the text without the values of the members that begin with `opening`.
fn without(text: &str, opening: &str) -> String {
    let mut parts = text.split(opening);
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| Some(part.split_once('"')?.1)).collect::<String>()
}

/// Checks that the output has no control characters and is well-formed in its format.
fn is_sound(text: &str, format: Format) -> Law {
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if let Some(odd) = text.chars().find(|c| is_odd(*c)) {
        return Err(format!("{format:?}: {odd:?} in\n{text}"));
    }
    match format {
        Format::Text => Ok(()),
        Format::Markdown => is_sound_markdown(text),
        Format::Html => is_sound_html(text),
    }
}

/// Checks that headings outside block quotes and lists are only the title, the turns in order, and the roles; that
/// folded parts are closed; and that there is no other raw HTML.
fn is_sound_markdown(text: &str) -> Law {
    let (mut turns, mut folds, mut depth, mut level) = (0, 0, 0, None);
    let wrong = |what: String| Err(format!("{what} in\n{text}"));
    for event in Parser::new_ext(text, Dialect::ENABLE_TABLES | Dialect::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Heading { level: own, .. }) if depth == 0 => level = Some(own),
            Event::End(TagEnd::Heading(_)) => level = None,
            Event::Text(words) => match level {
                None | Some(HeadingLevel::H1) => {}
                Some(HeadingLevel::H2) => {
                    turns += 1;
                    if !words.starts_with(&format!("Turn {turns}")) {
                        return wrong(format!("heading {words:?} for turn {turns}"));
                    }
                }
                Some(HeadingLevel::H3) if ["User", "Assistant"].contains(&words.as_ref()) => {}
                Some(_) => return wrong(format!("heading {words:?}")),
            },
            Event::Html(html) => match html.trim_end() {
                "<details open>" => folds += 1,
                "</details>" if depth == 0 => folds -= 1,
                line if line.starts_with("<summary>") && line.matches('<').count() == 2 => {}
                other => return wrong(format!("raw {other:?}")),
            },
            Event::InlineHtml(html) => return wrong(format!("raw {html:?}")),
            Event::Start(Tag::Image { .. }) => return wrong("an image".to_owned()),
            Event::Start(Tag::BlockQuote(_) | Tag::Item) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::Item) => depth -= 1,
            _ => {}
        }
    }
    let lines = text.lines().filter(|line| line.starts_with("## Turn ")).count();
    if folds == 0 && turns <= lines {
        Ok(())
    } else {
        wrong(format!("{turns} turns, {folds} open"))
    }
}

/// HTML tags without an end tag.
const EMPTY: [&str; 7] = ["!doctype", "meta", "hr", "br", "img", "line", "circle"];
/// The tags that claw-show writes.
const KNOWN: [&str; 60] = [
    "html",
    "head",
    "title",
    "style",
    "body",
    "header",
    "h1",
    "p",
    "figure",
    "figcaption",
    "svg",
    "desc",
    "path",
    "g",
    "text",
    "details",
    "summary",
    "table",
    "tr",
    "th",
    "td",
    "caption",
    "a",
    "main",
    "section",
    "h2",
    "time",
    "article",
    "h3",
    "small",
    "div",
    "aside",
    "b",
    "pre",
    "code",
    "h4",
    "h5",
    "h6",
    "em",
    "strong",
    "del",
    "ul",
    "ol",
    "li",
    "blockquote",
    "thead",
    "tbody",
    "!doctype",
    "meta",
    "hr",
    "br",
    "img",
    "line",
    "circle",
    "path/",
    "sup",
    "span",
    "s",
    "u",
    "nav",
];

/// Checks that all tags are known and closed in order.
fn is_sound_html(text: &str) -> Law {
    let mut open = Vec::new();
    for part in text.split('<').skip(1) {
        let Some((tag, _)) = part.split_once('>') else {
            return Err(format!("'<' does not begin a tag: {part:?}"));
        };
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        let (name, is_end) = name.strip_prefix('/').map_or((name, false), |name| (name, true));
        let name = name.trim_end_matches('/');
        if !KNOWN.contains(&name) {
            return Err(format!("unknown tag {tag:?}"));
        }
        if tag.ends_with('/') || EMPTY.contains(&name) {
            continue;
        }
        if !is_end {
            open.push(name);
        } else if open.pop() != Some(name) {
            return Err(format!("end tag {tag:?} without a start tag\n{text}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("tags without an end: {open:?}")) }
}

/// Pieces of the syntax of Markdown and HTML.
const PIECES: &[&str] = &[
    "```",
    "~~~~",
    "`",
    "``",
    "> ",
    ">",
    "- ",
    "* ",
    "1. ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\n> ",
    "\n- ",
    "\n```\n",
    "\n# h\n",
    "\n## Turn 9\n",
    "\n===\n",
    "\n---\n",
    "|a|b|\n|-|-|\n",
    "[x]: /u\n",
    "[x]",
    "![i](u)",
    "](",
    "\\",
    "&lt;",
    "&#60;",
    "<div>",
    "<div\n",
    "</div>",
    "<details>",
    "</details>",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<pre>",
    "<?php",
    "?>",
    "<![CDATA[",
    "]]>",
    "<!X",
    "<a href=\"",
    "'>",
    "<b",
    "<https://x.org>",
    "*",
    "**",
    "_",
    "~~",
    "w1",
    "words",
    "日本",
    "e\u{301}",
    "\u{202e}",
    "\u{1b}[31m",
    "\0",
];

/// Checks text made of [`PIECES`] in the members of records of several types.
pub fn of_texts(choices: &mut Choices) -> Law {
    let mut text = String::new();
    for _ in 0..1 + choices.below(24) {
        text.push_str(choices.of_these(PIECES));
    }
    let json = clawutils::json::quote(&text);
    let records = format!(
        r#"{{"type":"session","id":{json},"label":{json},"created":"x"}}
{{"type":"user","content":{json}}}
{{"type":"assistant","content":[{{"type":"thinking","thinking":{json},"signature":"s"}},{{"type":"text","text":{json}}}],"model":{json}}}
{{"type":"tool_use","tool_use_id":{json},"name":{json},"input":{{{json}:{json},"":[{json}]}}}}
{{"type":"tool_result","tool_use_id":{json},"content":{json}}}
{{"type":"compaction","summary":{json},"first_kept_entry_id":{json},"strategy":{json},"kept_user":[{json}]}}
{{"type":"error","class":{json},"message":{json}}}
{{"type":"user","content":[{{"type":"text","text":{json}}},{{"type":{json},"x":1}}]}}
{{"type":"assistant","content":{json}}}
"#
    );
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let shown = shown(records.as_bytes(), format)?;
        is_sound(&shown, format)?;
        let turns = |mark: &str| shown.lines().filter(|line| line.starts_with(mark)).count();
        let count = match format {
            Format::Text => turns("── turn "),
            Format::Markdown => headings(&shown),
            Format::Html => turns("<section class=\"turn\" id=\"turn-"),
        };
        if count != 2 && !text.trim().is_empty() {
            return Err(format!("{format:?}: {count} turns instead of 2 for {text:?}\n{shown}"));
        }
    }
    Ok(())
}

/// Returns the number of turns that a Markdown reader sees.
fn headings(text: &str) -> usize {
    let dialect = Dialect::ENABLE_TABLES | Dialect::ENABLE_STRIKETHROUGH;
    let mut depth = 0;
    Parser::new_ext(text, dialect)
        .filter(|event| match event {
            Event::Start(Tag::BlockQuote(_) | Tag::Item) => {
                depth += 1;
                false
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::Item) => {
                depth -= 1;
                false
            }
            Event::Start(Tag::Heading { level: HeadingLevel::H2, .. }) => depth == 0,
            _ => false,
        })
        .count()
}

/// Checks Markdown that arrives in pieces: the output is the same wherever the text is cut, and has every word.
pub fn of_streams(choices: &mut Choices) -> Law {
    let mut text = String::new();
    for _ in 0..1 + choices.below(40) {
        text.push_str(match choices.below(3) {
            0 => choices.of_these(WORDS),
            _ => choices.of_these(PIECES),
        });
    }
    let layout =
        MarkdownLayout { width: 24 + choices.below(60), color: choices.one_in(2), has_all: false };
    let mut whole = Stream::new(layout, Vec::new());
    let wrong = |error: std::io::Error| error.to_string();
    whole.take(text.as_bytes()).map_err(wrong)?;
    let whole = String::from_utf8_lossy(&whole.end().map_err(wrong)?).into_owned();
    let mut cut = Stream::new(layout, Vec::new());
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let (part, others) = rest.split_at(1 + choices.below(rest.len().min(12)));
        cut.take(part).map_err(wrong)?;
        rest = others;
    }
    let cut = String::from_utf8_lossy(&cut.end().map_err(wrong)?).into_owned();
    if whole != cut {
        return Err(format!("{text:?} in pieces:\n{cut}\n--- and at once:\n{whole}"));
    }
    let letters = |text: &str| text.matches(['w', '日']).count();
    if letters(&whole) < letters(&text) {
        return Err(format!("{text:?} has lost words:\n{whole}"));
    }
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\u{1b}');
    match whole.chars().find(|c| is_odd(*c)) {
        Some(odd) => Err(format!("{odd:?} in the output for {text:?}")),
        None => Ok(()),
    }
}

/// Phrases that make lines wrap, line breaks, and list markers.
const WORDS: &[&str] = &[
    "some words that go on ",
    "日本語のテキスト「です」、",
    "**bold and** w1 ",
    "**「太字」**です",
    "`code` w1, ",
    "a longer line of text that says nothing at all but w1 ",
    "[a link](http://x.org/y) ",
    "\n\n",
    "\n- ",
    "\n1. ",
    "\n  ",
];
