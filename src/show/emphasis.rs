//! Emphasis next to Chinese, Japanese and Korean text.
//!
//! In CommonMark, `**` ends emphasis only if no punctuation precedes it, or a space or punctuation follows.
//! That fails for languages without spaces: nothing in `これは**「永久」**です` would be emphasised. A proposed
//! amendment to CommonMark treats CJK punctuation next to a delimiter as letters, and other punctuation too if
//! there is a CJK character on the other side of the delimiter. [`Marked`] has the same effect with any parser: it
//! inserts a private-use character, which counts as a letter, between such punctuation and the delimiter.
//! [`Marked::without`] removes it from the parser's output.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Tag};
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// Private-use characters, of which the first one that is not in the text becomes the mark.
const MARKS: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{e0ff}';

/// A Markdown text with marks inserted where necessary.
#[derive(Debug)]
pub struct Marked<'t> {
    /// The marked text, for a parser.
    pub text: Cow<'t, str>,
    mark: Option<char>,
}

impl<'t> Marked<'t> {
    /// Marks delimiters of emphasis next to CJK text.
    pub fn new(text: &'t str) -> Marked<'t> {
        Marked::at(text, places(text))
    }

    /// Marks a part of a longer text. `[label]: address` is not treated as a link definition, because the
    /// links that it would define can be in other parts.
    pub fn part(text: &'t str) -> Marked<'t> {
        let mut places = places(text);
        places.extend(text.match_indices("]:").map(|(at, _)| at + 1));
        places.sort_unstable();
        Marked::at(text, places)
    }

    fn at(text: &'t str, places: Vec<usize>) -> Marked<'t> {
        let mut marks = MARKS;
        let mark = marks.find(|mark| !places.is_empty() && !text.contains(*mark));
        let Some(mark) = mark else { return Marked { text: Cow::Borrowed(text), mark: None } };
        let mut marked = String::with_capacity(text.len() + places.len() * mark.len_utf8());
        let mut from = 0;
        for at in places {
            marked.push_str(&text[from..at]);
            marked.push(mark);
            from = at;
        }
        marked.push_str(&text[from..]);
        Marked { text: Cow::Owned(marked), mark: Some(mark) }
    }

    /// Removes the marks from a piece of the text.
    pub fn without<'p>(&self, piece: &'p str) -> Cow<'p, str> {
        match self.mark {
            Some(mark) if piece.contains(mark) => Cow::Owned(piece.replace(mark, "")),
            _ => Cow::Borrowed(piece),
        }
    }

    /// Removes the marks from an event of the parser.
    pub fn event<'e>(&self, event: Event<'e>) -> Event<'e> {
        let own = |text: CowStr<'e>| match self.without(&text) {
            Cow::Owned(text) => CowStr::from(text),
            Cow::Borrowed(_) => text,
        };
        match event {
            Event::Text(text) => Event::Text(own(text)),
            Event::Code(text) => Event::Code(own(text)),
            Event::Html(text) => Event::Html(own(text)),
            Event::InlineHtml(text) => Event::InlineHtml(own(text)),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(own(info))))
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let (dest_url, title) = (own(dest_url), own(title));
                Event::Start(Tag::Link { link_type, dest_url, title, id })
            }
            event => event,
        }
    }

    /// Returns the parts of a piece between marks, with their offsets in it.
    pub fn parts<'p>(&self, piece: &'p str) -> impl Iterator<Item = (usize, &'p str)> {
        let mark = self.mark.unwrap_or('\0');
        let parts = piece.split(mark).filter(|_| self.mark.is_some());
        let base = piece.as_ptr() as usize;
        let whole = self.mark.is_none().then_some((0, piece));
        parts.map(move |part| (part.as_ptr() as usize - base, part)).chain(whole)
    }

    /// Converts an offset in the marked text to one in the original.
    pub fn original(&self, at: usize) -> usize {
        let Some(mark) = self.mark else { return at };
        at - self.text[..at].matches(mark).count() * mark.len_utf8()
    }
}

/// Returns the offsets where a mark is necessary.
fn places(text: &str) -> Vec<usize> {
    let mut places = Vec::new();
    if text.is_ascii() {
        return places;
    }
    let mut end = 0;
    for (first, _) in text.match_indices('*') {
        if first < end {
            continue;
        }
        // An escaped delimiter is an ordinary character.
        let at = first + usize::from(is_escaped(&text[..first]));
        end = text.len() - text[at..].trim_start_matches('*').len();
        if at == end {
            continue;
        }
        let before = text[..at].chars().next_back();
        let after = text[end..].chars().next();
        let Some((before, after)) = before.zip(after) else { continue };
        let is_letter = |own, other| is_punctuation(own) && (is_cjk(own) || is_cjk(other));
        places.extend(is_letter(before, after).then_some(at));
        places.extend(is_letter(after, before).then_some(end));
    }
    places
}

/// Returns true if the character after this text is escaped: an odd number of backslashes precedes it.
pub fn is_escaped(before: &str) -> bool {
    (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
}

/// Returns true if a character is Chinese, Japanese or Korean, or one of their punctuation marks or width
/// variants.
fn is_cjk(c: char) -> bool {
    let is_emoji = matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2300}'..='\u{2bff}');
    !is_emoji
        && (c.width() == Some(2) || matches!(c, '\u{ff61}'..='\u{ffdc}' | '\u{1100}'..='\u{11ff}'))
}

/// Returns true if CommonMark may count a character as punctuation. Letters never count.
fn is_punctuation(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulldown_cmark::{Parser, html};

    fn rendered(text: &str) -> String {
        let marked = Marked::new(text);
        let events = Parser::new(&marked.text).map(|event| marked.event(event));
        let mut out = String::new();
        html::push_html(&mut out, events);
        out.trim_end().replace("<p>", "").replace("</p>", "")
    }

    #[test]
    fn audit_30_emphasis_beside_cjk_punctuation_renders() {
        for (text, expected) in [
            ("これは**「永久」**です", "これは<strong>「永久」</strong>です"),
            ("**重要。**次に進む", "<strong>重要。</strong>次に進む"),
            ("これは*「斜体」*です", "これは<em>「斜体」</em>です"),
            ("注意**(必須)**です", "注意<strong>(必須)</strong>です"),
            ("値は**`x`**です", "値は<strong><code>x</code></strong>です"),
            ("**Rust（言語）**を使う", "<strong>Rust（言語）</strong>を使う"),
            ("全て***「強調」***した", "全て<em><strong>「強調」</strong></em>した"),
            ("他说**“你好”**。他走了", "他说<strong>“你好”</strong>。他走了"),
            ("他说**“你好”**然后走了", "他说<strong>“你好”</strong>然后走了"),
            ("**注意：**请先备份", "<strong>注意：</strong>请先备份"),
            ("请看**《红楼梦》**这本书", "请看<strong>《红楼梦》</strong>这本书"),
            ("**强调(说明)**的文字", "<strong>强调(说明)</strong>的文字"),
            ("**강조(설명)**는 중요", "<strong>강조(설명)</strong>는 중요"),
            ("그는 **\"안녕\"**이라고", "그는 <strong>\"안녕\"</strong>이라고"),
            ("**「제목」**은 좋다", "<strong>「제목」</strong>은 좋다"),
            ("これは`**「永久」**`です", "これは<code>**「永久」**</code>です"),
            ("これは\\**「永久」です", "これは**「永久」です"),
            ("「\\*は", "「*は"),
            ("5 * 「3」 * 2", "5 * 「3」 * 2"),
            ("**開いたまま「です", "**開いたまま「です"),
            ("**太字**と**太字**", "<strong>太字</strong>と<strong>太字</strong>"),
        ] {
            assert_eq!(rendered(text), expected, "{text}");
        }
    }

    #[test]
    fn audit_30_text_without_cjk_characters_is_unchanged() {
        for text in [
            "a **(b)**c",
            "a**\"b\"**c “d”**e**",
            "f(*args, **kwargs) – naïve",
            "2 * 3 * 4 → **x.**y",
            "🎉**!**🎉",
            "`**「」**`".trim_matches('`').trim_matches(['*', '「', '」']),
        ] {
            let marked = Marked::new(text);
            assert_eq!(marked.text, text);
        }
    }

    #[test]
    fn offsets_are_converted_to_the_original_text() {
        let text = "は**「永久」**で、]: ";
        let marked = Marked::part(text);
        let at = marked.text.find('で').unwrap();
        assert_eq!(marked.original(at), text.find('で').unwrap());
        assert_eq!(marked.without(&marked.text), text);
        let parts: Vec<(usize, &str)> = marked.parts(&marked.text).collect();
        assert_eq!(parts.iter().map(|part| part.1).collect::<String>(), text);
        assert!(parts.iter().all(|(at, part)| marked.text[*at..].starts_with(part)));
    }
}
