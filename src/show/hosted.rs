//! The wording of what a provider's own tools did, and the links to the sources that it found.

use super::wording::{Language, noun, phrase};
use super::words::{clean, html};
use crate::hosted::{HostedAct, HostedSource};
use crate::printable::printable;

/// The maximum length of an input on the first line, in characters.
const MAX_INPUT: usize = 200;

/// Returns true for a result and for sources, which stand on the side of the answer.
pub fn is_answer(act: &HostedAct) -> bool {
    act.input.is_none() && !act.is_call()
}

/// Returns the first line: the tool, what it was asked, and how it ended.
pub fn line(act: &HostedAct, language: Language) -> String {
    let asked = act.input.as_deref().map(str::trim).filter(|_| long_input(act).is_none());
    let asked = asked.map_or(String::new(), |asked| format!(": {asked}"));
    let mut facts = vec![format!("{}{asked}", act.tool)];
    facts.extend(act.failure.as_ref().map(|why| {
        let failed = language.say(phrase::FAILED);
        format!("{failed}: {why}")
    }));
    let count = act.sources.len() as u64;
    facts.extend((count > 0).then(|| language.count(count, noun::SOURCE)));
    facts.join(" · ")
}

/// Returns an input that is not on the first line: several lines, or a long one.
pub fn long_input(act: &HostedAct) -> Option<&str> {
    let input = act.input.as_deref()?.trim_end();
    (input.contains('\n') || input.chars().nth(MAX_INPUT).is_some()).then_some(input)
}

/// Returns the sources and the answer as lines.
pub fn body(act: &HostedAct) -> String {
    let mut text = String::new();
    for (number, source) in act.sources.iter().enumerate() {
        let HostedSource { title, address, quote } = source;
        let quote =
            if quote.trim().is_empty() { String::new() } else { format!("\"{}\"", quote.trim()) };
        let lines = [title.as_str(), address, &quote];
        let lines = lines.iter().flat_map(|it| it.lines()).filter(|line| !line.trim().is_empty());
        for (at, line) in lines.enumerate() {
            let begin = if at == 0 { format!("{}. ", number + 1) } else { "   ".to_owned() };
            text.push_str(&format!("{begin}{line}\n"));
        }
    }
    text + act.output.trim_end()
}

/// Returns the input if it is long, the sources with links, and the answer as HTML; `pre` makes a block of text.
pub fn body_html(act: &HostedAct, pre: impl Fn(&str) -> String) -> String {
    let sources: String = act.sources.iter().map(|it| format!("<li>{}</li>\n", item(it))).collect();
    let sources = (!sources.is_empty()).then(|| format!("<ol class=\"sources\">\n{sources}</ol>"));
    let output = Some(act.output.as_str()).filter(|text| !text.trim().is_empty()).map(&pre);
    let parts = [long_input(act).map(&pre), sources, output];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Returns the title as a link to the address, the address, and the quotation.
fn item(source: &HostedSource) -> String {
    let HostedSource { title, address, quote } = source;
    let shown = |text: &str| html(&printable(text.trim()));
    let name = shown(if title.trim().is_empty() { address } else { title });
    let name = match link(address) {
        Some(link) => format!("<a href=\"{}\">{name}</a>", html(link).replace('"', "&quot;")),
        None => name,
    };
    let address = if title.trim().is_empty() { String::new() } else { shown(address) };
    let address = if address.is_empty() { address } else { format!(" <small>{address}</small>") };
    let quote = if quote.trim().is_empty() { String::new() } else { html(clean(quote).trim()) };
    let quote = if quote.is_empty() { quote } else { format!("<blockquote>{quote}</blockquote>") };
    format!("{name}{address}{quote}")
}

/// Returns the input if it is long, the sources with links, and the answer as Markdown. `inline` escapes text on a line, and
/// `fenced` makes a block of text.
pub fn body_markdown(
    act: &HostedAct,
    inline: impl Fn(&str) -> String,
    fenced: impl Fn(&str) -> String,
) -> String {
    let one_line = |text: &str| inline(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let item = |(number, source): (usize, &HostedSource)| {
        let HostedSource { title, address, quote } = source;
        let name = one_line(if title.trim().is_empty() { address } else { title });
        let name = match link(address) {
            Some(link) => format!("[{name}](<{link}>)"),
            None if name == one_line(address) => name,
            None => format!("{name} {}", one_line(address)),
        };
        let quote = one_line(quote);
        let quote = if quote.is_empty() { quote } else { format!(": “{quote}”") };
        format!("{}. {}{quote}", number + 1, name.trim_end())
    };
    let sources: Vec<String> = act.sources.iter().enumerate().map(item).collect();
    let sources = (!sources.is_empty()).then(|| sources.join("\n"));
    let output = Some(act.output.as_str()).filter(|text| !text.trim().is_empty()).map(&fenced);
    let parts = [long_input(act).map(&fenced), sources, output];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Returns the address if it is one of the web that cannot end a link.
fn link(address: &str) -> Option<&str> {
    let (scheme, rest) = address.trim().split_once("://")?;
    let is_web = ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
    let is_plain = rest.chars().all(|c| {
        !c.is_whitespace()
            && !"<>\\`".contains(c)
            && printable(c.encode_utf8(&mut [0; 4])).chars().eq([c])
    });
    (is_web && is_plain && !rest.is_empty()).then_some(address.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(title: &str, address: &str, quote: &str) -> HostedAct {
        let source =
            HostedSource { title: title.into(), address: address.into(), quote: quote.into() };
        HostedAct { tool: "web search".into(), sources: vec![source], ..HostedAct::default() }
    }

    #[test]
    fn only_addresses_of_the_web_become_links() {
        for (address, is_link) in [
            ("https://a.example/x?a=1&b=2", true),
            ("HTTP://a.example", true),
            ("javascript://a.example/%0aalert(1)", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("https://a.example/\u{202e}x", false),
            ("https://a.example> [b](https://b.example)", false),
            ("https://", false),
            ("a.pdf", false),
        ] {
            let act = found("T", address, "");
            let page = body_html(&act, str::to_owned);
            assert_eq!(page.contains("<a href"), is_link, "{page}");
            let markdown = body_markdown(&act, super::super::markdown::inline, str::to_owned);
            assert_eq!(markdown.starts_with("1. [T](<"), is_link, "{markdown}");
        }
    }

    #[test]
    fn nothing_in_a_source_is_markup() {
        let act = found("<b>\u{1b}[1m", "https://a.example/\"onclick=x", "<script>");
        let expected = "<ol class=\"sources\">\n<li><a href=\"https://a.example/&quot;onclick=x\">&lt;b&gt;\\u{1b}[1m</a> <small>https://a.example/\"onclick=x</small><blockquote>&lt;script&gt;</blockquote></li>\n</ol>";
        assert_eq!(body_html(&act, str::to_owned), expected);
        let markdown = body_markdown(&act, super::super::markdown::inline, str::to_owned);
        assert!(markdown.starts_with("1. [\\<b\\>\\\\u{1b}\\[1m](<https"), "{markdown}");
        assert!(markdown.ends_with(": “\\<script\\>”"), "{markdown}");
    }

    #[test]
    fn the_first_line_says_what_was_asked_and_how_it_ended() {
        let act = HostedAct { input: Some("q".into()), ..found("T", "https://a.example", "c") };
        assert_eq!(
            (line(&act, Language::En).as_str(), is_answer(&act)),
            ("web search: q · 1 source", false)
        );
        assert_eq!(body(&act), "1. T\n   https://a.example\n   \"c\"\n");
        let code = HostedAct { input: Some("a = 1\nb".into()), ..HostedAct::default() };
        assert_eq!((line(&code, Language::En).as_str(), long_input(&code)), ("", Some("a = 1\nb")));
        let failed = HostedAct { failure: Some("too long".into()), ..HostedAct::default() };
        assert_eq!(
            (line(&failed, Language::En).as_str(), is_answer(&failed)),
            (" · failed: too long", true)
        );
    }
}
