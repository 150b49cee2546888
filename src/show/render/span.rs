//! Lays out the inline content of a block: text, code, emphasis, links and images.

use super::{Leaf, Renderer};
use crate::show::emphasis::is_escaped;
use crate::show::inline::{Inline, Style};
use crate::show::table::Table;
use crate::show::wrap::expand_tabs;
use pulldown_cmark::LinkType;
use std::ops::Range;

impl Renderer<'_> {
    /// Adds text that is not a delimiter.
    pub(super) fn text(&mut self, text: &str, range: Range<usize>) {
        if let Some(Leaf::Code { text: code, .. }) = &mut self.leaf {
            return code.push_str(text);
        }
        if self.source.get(range.clone()) == Some(text) {
            self.look_for_beginnings(range.clone());
        }
        let marked = self.marked;
        for (at, part) in marked.parts(text) {
            self.push(part, range.start + at);
        }
        self.inner_end = range.end;
    }

    pub(super) fn code(&mut self, code: &str, range: Range<usize>) {
        let code = self.marked.without(code).into_owned();
        self.style(Style::CODE);
        match self.layout.color {
            true => self.push(&code, range.start),
            false => {
                let ticks = "`".repeat(self.run_at(range.start));
                let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
                self.push(&format!("{ticks}{pad}{code}{pad}{ticks}"), range.start);
            }
        }
        self.styles.pop();
        self.inner_end = range.end;
    }

    /// Opens an element whose delimiter has `length` bytes.
    pub(super) fn open_inline(&mut self, style: Style, length: usize, range: Range<usize>) {
        self.open.push(range.start);
        self.style(style);
        self.inner_end = range.start + length;
        if !self.layout.color {
            let mark = self.source.get(range.start..range.start + length).unwrap_or_default();
            self.push(mark, range.start);
        }
    }

    pub(super) fn close_inline(&mut self, length: usize, range: Range<usize>) {
        if !self.layout.color {
            let start = range.end.saturating_sub(length);
            let mark = self.source.get(start..range.end).unwrap_or_default();
            self.push(mark, start);
        }
        self.styles.pop();
        self.open.pop();
        self.inner_end = range.end;
    }

    pub(super) fn link(&mut self, style: Style, mark: &str, address: String, range: Range<usize>) {
        self.open.push(range.start);
        self.style(style);
        if !self.layout.color {
            self.push(mark, range.start);
        } else if mark == "![" {
            self.push("[image: ", range.start);
        }
        self.inner_end = range.start + mark.len();
        let from = self.inline().map_or(0, |inline| inline.text.len());
        self.links.push((self.marked.without(&address).into_owned(), from));
    }

    pub(super) fn end_link(&mut self, range: Range<usize>, is_image: bool) {
        let Some((url, from)) = self.links.pop() else { return };
        let words = self.inline().map_or(String::new(), |inline| inline.text[from..].to_owned());
        self.styles.pop();
        self.open.pop();
        if !self.layout.color {
            let tail = self.source.get(self.inner_end..range.end).unwrap_or_default();
            let tail = self.marked.without(tail).replace('\n', " ");
            self.push(&tail, self.inner_end);
        } else {
            self.style(Style::DIM);
            if is_image {
                self.push("]", range.end);
            }
            let is_shown = url == words || url.strip_prefix("mailto:") == Some(&words);
            if !is_shown && !url.is_empty() {
                self.push(&format!(" ({url})"), range.end);
            }
            self.styles.pop();
        }
        self.inner_end = range.end;
    }

    /// Adds text to the open leaf. Opens one if there is none: the text of a list item need not be a paragraph.
    pub(super) fn push(&mut self, text: &str, at: usize) {
        if self.leaf.is_none() {
            self.begin(Leaf::text(None), at);
        }
        let style = self.styles.iter().fold(Style::PLAIN, |all, style| all.with(*style));
        let text = expand_tabs(text).into_owned();
        if let Some(inline) = self.inline() {
            inline.push(&text, style, at);
        }
    }

    fn inline(&mut self) -> Option<&mut Inline> {
        match &mut self.leaf {
            Some(Leaf::Text { inline, .. }) => Some(inline),
            Some(Leaf::Table(table)) => table.cell(),
            _ => None,
        }
    }

    pub(super) fn in_table(&mut self, change: fn(&mut Table)) {
        if let Some(Leaf::Table(table)) = &mut self.leaf {
            change(table);
        }
    }

    pub(super) fn style(&mut self, style: Style) {
        self.styles.push(style);
    }

    /// Returns the length of the run of equal characters at this offset.
    pub(super) fn run_at(&self, at: usize) -> usize {
        let text = &self.source[at..];
        let first = text.chars().next().unwrap_or_default();
        text.chars().take_while(|c| *c == first).count()
    }

    /// Finds the first character that may become the start of emphasis, code, a link, HTML or an entity when more text
    /// arrives.
    fn look_for_beginnings(&mut self, range: Range<usize>) {
        for (at, c) in self.source[range.clone()].char_indices() {
            let at = range.start + at;
            if at < self.unsettled && self.may_begin(at, c) && !is_escaped(&self.source[..at]) {
                self.unsettled = self.open.first().copied().unwrap_or(at);
            }
        }
    }

    fn may_begin(&self, at: usize, c: char) -> bool {
        let rest = &self.source[at..];
        match c {
            '*' | '~' => {
                let after = rest.trim_start_matches(c).chars().next();
                after.is_none_or(|after| !after.is_whitespace())
            }
            '_' => !self.source[..at].ends_with(char::is_alphanumeric),
            '`' => true,
            '[' => bracket_is_open(rest),
            '<' => rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "/!?".contains(c)),
            '&' => {
                rest.len() < 40
                    && rest[1..].bytes().all(|byte| byte == b'#' || byte.is_ascii_alphanumeric())
            }
            _ => false,
        }
    }
}

/// Returns the address of a link with its title.
pub(super) fn address(url: &str, title: &str) -> String {
    if title.is_empty() { url.to_owned() } else { format!("{url} \"{title}\"") }
}

pub(super) fn is_auto(link: LinkType) -> bool {
    matches!(link, LinkType::Autolink | LinkType::Email)
}

/// Returns true if the link at the start of `text` may be incomplete: its bracket or its address is not closed, or
/// the text ends right after the bracket.
fn bracket_is_open(text: &str) -> bool {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let rest = &text[at + 1..];
            return rest.is_empty() || rest.starts_with('(') && !rest.contains(')');
        }
    }
    true
}
