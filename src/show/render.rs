//! Lays out Markdown as rows for a terminal.
//!
//! With colours, styles replace the Markdown delimiters; without colours the delimiters stay, so that no
//! meaning is lost. Each line of a paragraph starts a new row and is wrapped. Code is not wrapped. Tables are
//! aligned, and wrapped within their columns.
//!
//! Text that is still growing is laid out repeatedly. [`Rendered::settled`] is the number of rows that no further text
//! can change: all rows of the blocks before the last one, and those rows of the last block that precede anything that
//! may still become emphasis, code or a link.

mod span;

use super::code;
use super::emphasis::Marked;
use super::inline::{Inline, Style};
use super::table::Table;
use super::wrap::{expand_tabs, width};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use span::{address, is_auto};
use std::ops::Range;

/// The minimum width of the layout in columns.
const MIN_WIDTH: usize = 10;
/// The supported Markdown extensions.
const DIALECT: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// The options of the layout.
#[derive(Clone, Copy, Debug)]
pub struct MarkdownLayout {
    /// The width of a row in columns.
    pub width: usize,
    /// True to replace delimiters with styles.
    pub color: bool,
    /// True if the text is complete. Only then is code highlighted, because the colours of a line can depend on
    /// the lines after it.
    pub has_all: bool,
}

/// Markdown after layout.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The rows, each with the index of its top-level block.
    pub rows: Vec<(usize, String)>,
    /// For each top-level block its offset in the text, and true if it starts with a blank row.
    pub tops: Vec<(usize, bool)>,
    /// The number of rows that no further text can change.
    pub settled: usize,
}

/// Lays out a complete text.
pub fn render(text: &str, layout: MarkdownLayout) -> Vec<String> {
    let rendered = render_part(text, layout, false);
    rendered.rows.into_iter().map(|(_, row)| row).collect()
}

/// Lays out part of a longer text, from the start of a block; a blank row comes first if `has_gap`.
pub fn render_part(text: &str, layout: MarkdownLayout, has_gap: bool) -> Rendered {
    let marked = Marked::part(text);
    let mut renderer = Renderer::new(&marked, layout, has_gap);
    for (event, range) in Parser::new_ext(&marked.text, DIALECT).into_offset_iter() {
        renderer.take(event, range);
    }
    let settled = renderer.settled();
    let tops = renderer.tops.iter().map(|(at, gap)| (marked.original(*at), *gap)).collect();
    Rendered { rows: renderer.rows, tops, settled }
}

/// The prefix of the rows in a container.
struct Prefix {
    first: String,
    others: String,
    /// True after the first row.
    is_used: bool,
}

/// A block that contains no other blocks.
enum Leaf {
    /// A paragraph or a heading. `below` is the underline of a heading that is shown as a paragraph.
    Text {
        inline: Inline,
        below: Option<String>,
    },
    Code {
        language: String,
        text: String,
    },
    Html(String),
    Table(Table),
}

/// The state of the newest leaf, from which [`Renderer::settled`] counts the settled rows.
#[derive(Default)]
struct Newest {
    range: Range<usize>,
    /// The index of its first row.
    first_row: usize,
    /// For each row its end in the text.
    ends: Vec<usize>,
    /// The offset from which everything may still change.
    unsettled: usize,
    /// The number of settled rows from the beginning of the text, if the leaf is code.
    settled: usize,
    is_code: bool,
}

struct Renderer<'m> {
    marked: &'m Marked<'m>,
    source: &'m str,
    layout: MarkdownLayout,
    rows: Vec<(usize, String)>,
    tops: Vec<(usize, bool)>,
    depth: usize,
    prefixes: Vec<Prefix>,
    /// The smallest number of open containers since the last leaf.
    lowest: usize,
    leaf: Option<Leaf>,
    start: usize,
    /// The end of the last leaf.
    end: Option<usize>,
    /// The start of the first container opened since the last leaf.
    outer: Option<usize>,
    has_gap: bool,
    styles: Vec<Style>,
    /// The offsets of the open inline elements.
    open: Vec<usize>,
    /// The end of the last inline event.
    inner_end: usize,
    /// The open links: the address, and where the link text starts in the text of the leaf.
    links: Vec<(String, usize)>,
    /// The offset of the outermost open inline element, or of a delimiter that may open one.
    unsettled: usize,
    newest: Newest,
}

impl<'m> Renderer<'m> {
    fn new(marked: &'m Marked<'m>, layout: MarkdownLayout, has_gap: bool) -> Renderer<'m> {
        Renderer {
            marked,
            source: &marked.text,
            layout,
            rows: Vec::new(),
            tops: Vec::new(),
            depth: 0,
            prefixes: Vec::new(),
            lowest: 0,
            leaf: None,
            start: 0,
            end: None,
            outer: None,
            has_gap,
            styles: Vec::new(),
            open: Vec::new(),
            inner_end: 0,
            links: Vec::new(),
            unsettled: usize::MAX,
            newest: Newest::default(),
        }
    }

    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        if self.depth == 0 && !matches!(event, Event::End(_)) {
            // The indentation is part of the block.
            let line = self.source[..range.start].rfind('\n').map_or(0, |feed| feed + 1);
            self.tops.push((line, false));
        }
        match event {
            Event::Start(tag) => {
                self.depth += 1;
                self.start(tag, range);
            }
            Event::End(tag) => {
                self.depth -= 1;
                self.end(tag, range);
            }
            Event::Text(text) => self.text(&text, range),
            Event::Code(code) => self.code(&code, range),
            Event::Html(html) => match &mut self.leaf {
                Some(Leaf::Html(text)) => text.push_str(&html),
                _ => self.text(&html, range),
            },
            Event::SoftBreak | Event::HardBreak => self.push("\n", range.start),
            Event::Rule => self.rule(range),
            Event::InlineHtml(html) => self.text(&html, range),
            // The enabled extensions produce no other events.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => self.begin(Leaf::text(None), range.start),
            Tag::Heading { level, .. } => self.heading(level as usize, range),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(info) => {
                        self.marked.without(&info).into_owned()
                    }
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                };
                self.begin(Leaf::Code { language, text: String::new() }, range.start);
            }
            Tag::HtmlBlock => self.begin(Leaf::Html(String::new()), range.start),
            Tag::Table(alignments) => self.begin(Leaf::Table(Table::new(alignments)), range.start),
            Tag::TableRow | Tag::TableHead => self.in_table(Table::begin_row),
            Tag::TableCell => self.in_table(Table::begin_cell),
            Tag::BlockQuote(_) => {
                self.finish(range.start);
                self.outer.get_or_insert(range.start);
                let bar =
                    if self.layout.color { Style::DIM.paint("│ ") } else { "> ".to_owned() };
                self.prefixes.push(Prefix { first: bar.clone(), others: bar, is_used: false });
            }
            Tag::List(_) => self.finish(range.start),
            Tag::Item => self.item(range.start),
            Tag::Emphasis => self.open_inline(Style::ITALIC, 1, range),
            Tag::Strong => self.open_inline(Style::BOLD, 2, range),
            Tag::Strikethrough => self.open_inline(Style::STRUCK, self.run_at(range.start), range),
            Tag::Link { link_type, dest_url, title, .. } => {
                let mark = if is_auto(link_type) { "<" } else { "[" };
                self.link(Style::LINK, mark, address(&dest_url, &title), range);
            }
            Tag::Image { dest_url, title, .. } => {
                self.link(Style::DIM, "![", address(&dest_url, &title), range);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::Table => self.finish(range.end),
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.finish(range.end);
                self.close(range);
            }
            TagEnd::Emphasis => self.close_inline(1, range),
            TagEnd::Strong => self.close_inline(2, range),
            TagEnd::Strikethrough => self.close_inline(self.run_at(range.start), range),
            TagEnd::Link => self.end_link(range, false),
            TagEnd::Image => self.end_link(range, true),
            _ => {}
        }
    }

    // ---- containers ----------------------------------------------------------------------

    fn item(&mut self, at: usize) {
        self.finish(at);
        self.outer.get_or_insert(at);
        let line = self.source[at..].lines().next().unwrap_or_default();
        let line = line.trim_start_matches(' ');
        let marker = line.split([' ', '\t']).next().unwrap_or_default();
        let is_number = marker.as_bytes().first().is_some_and(u8::is_ascii_digit);
        let end = marker.find(|c: char| !c.is_ascii_digit()).unwrap_or(0) + 1;
        let first = match (is_number, self.layout.color) {
            (true, _) => format!("{} ", marker.get(..end).unwrap_or(marker)),
            (false, true) => "• ".to_owned(),
            (false, false) => format!("{} ", marker.chars().next().unwrap_or('-')),
        };
        let others = " ".repeat(width(&first));
        self.prefixes.push(Prefix { first, others, is_used: false });
    }

    /// Ends a container. An empty container takes one row.
    fn close(&mut self, range: Range<usize>) {
        if self.prefixes.last().is_some_and(|prefix| !prefix.is_used) {
            self.gap(range.start);
            self.newest = Newest { range: range.clone(), ..self.fresh() };
            self.row("");
            self.end = Some(range.start + self.source[range].trim_end().len());
        }
        self.prefixes.pop();
        self.lowest = self.lowest.min(self.prefixes.len());
    }

    // ---- leaves --------------------------------------------------------------------------

    fn heading(&mut self, level: usize, range: Range<usize>) {
        let below = self.line_below(&self.source[range.clone()]);
        let is_heading = below.is_none();
        self.begin(Leaf::text(below), range.start);
        if is_heading && !self.layout.color {
            self.push(&format!("{} ", "#".repeat(level)), range.start);
        }
        if is_heading {
            self.style(Style::heading(level));
        }
    }

    /// Returns the underline of a heading whose text takes more than one row. The first of these rows was settled
    /// as part of a paragraph before the underline arrived, so the heading is shown as a paragraph.
    fn line_below(&self, heading: &str) -> Option<String> {
        let heading = heading.trim();
        let (words, line) = heading.rsplit_once('\n').filter(|_| !heading.starts_with('#'))?;
        let is_long = words.contains('\n') || width(words) > self.room();
        is_long.then(|| line.trim_start_matches(['>', ' ']).to_owned())
    }

    fn begin(&mut self, leaf: Leaf, at: usize) {
        self.finish(at);
        (self.leaf, self.start) = (Some(leaf), at);
        (self.inner_end, self.unsettled) = (at, usize::MAX);
    }

    /// Writes the open leaf.
    fn finish(&mut self, end: usize) {
        let Some(leaf) = self.leaf.take() else { return };
        let end = self.start + self.source[self.start..end.max(self.start)].trim_end().len();
        self.styles.clear();
        self.open.clear();
        self.gap(self.start);
        self.newest =
            Newest { range: self.start..end, unsettled: self.unsettled.min(end), ..self.fresh() };
        match leaf {
            Leaf::Text { inline, below } => self.put_text(inline, below),
            Leaf::Code { language, text } => self.put_code(&language, &text),
            Leaf::Html(text) => self.put_lines(&text, Style::PLAIN),
            Leaf::Table(table) => {
                let room = self.room();
                table.rows(room, self.layout.color).iter().for_each(|row| self.row(row));
                self.newest.unsettled = self.start;
            }
        }
        self.end = Some(end);
        self.lowest = self.prefixes.len();
    }

    fn fresh(&self) -> Newest {
        Newest { first_row: self.rows.len(), ..Newest::default() }
    }

    /// Adds a blank row if the text has a blank line before the new block.
    fn gap(&mut self, at: usize) {
        let at = self.outer.take().unwrap_or(at);
        let is_blank = |end: usize| self.source[end..at.max(end)].matches('\n').count() > 1;
        let has_gap = self.end.map_or(self.has_gap, is_blank);
        let is_first = self.rows.last().is_none_or(|(top, _)| *top != self.top());
        if let Some(top) = self.tops.last_mut().filter(|_| is_first) {
            top.1 = has_gap;
        }
        if has_gap {
            let prefixes = self.prefixes[..self.lowest.min(self.prefixes.len())].iter();
            let prefix: String = prefixes.map(|prefix| prefix.others.as_str()).collect();
            self.rows.push((self.top(), prefix.trim_end().to_owned()));
        }
    }

    fn put_text(&mut self, inline: Inline, below: Option<String>) {
        let room = self.room();
        for row in inline.rows(room) {
            let end = inline.source_at(row.end).min(self.newest.range.end);
            let text = inline.paint(row, self.layout.color);
            self.row(&text);
            self.newest.ends.push(end);
        }
        below.iter().for_each(|line| self.row(line));
        // The last line may become the header of a table.
        let own = &self.source[self.newest.range.clone()];
        let line = own.rfind('\n').map_or(0, |feed| feed + 1);
        if own[line..].contains('|') {
            self.newest.unsettled = self.newest.unsettled.min(self.newest.range.start + line);
        }
    }

    fn put_code(&mut self, language: &str, text: &str) {
        let own = self.source[self.newest.range.clone()].trim_start().to_owned();
        let fence: String = own.chars().take_while(|c| matches!(c, '`' | '~')).collect();
        let (is_fenced, has_marks) = (fence.len() > 2, fence.len() > 2 && !self.layout.color);
        if has_marks {
            self.row(&format!("{fence}{language}"));
        } else if !language.is_empty() {
            self.row(&Style::DIM.paint(language));
        }
        let indent = if has_marks { "" } else { "  " };
        let mut settled = self.rows.len();
        for line in self.code_lines(language, &self.marked.without(text)) {
            self.row(&format!("{indent}{line}"));
            // Blank lines at the end of indented code are not part of it.
            if is_fenced || !line.is_empty() {
                settled = self.rows.len();
            }
        }
        let last = own.lines().skip(1).last().unwrap_or_default().trim_start_matches(['>', ' ']);
        let is_end = last.starts_with(&fence) && last.trim_end_matches(['`', '~']).is_empty();
        if has_marks && is_end {
            self.row(last);
        }
        self.newest.settled = settled;
        self.newest.is_code = true;
    }

    fn code_lines(&self, language: &str, text: &str) -> Vec<String> {
        let lines = text.lines().map(|line| expand_tabs(line).trim_end().to_owned());
        let lines: Vec<String> = lines.collect();
        if !self.layout.color {
            return lines;
        }
        let text = lines.join("\n");
        let known = if self.layout.has_all { code::pieces(language, &text) } else { None };
        let Some(pieces) = known else {
            return lines.iter().map(|line| Style::CODE.paint(line)).collect();
        };
        let mut rows = vec![String::new(); lines.len()];
        let mut at = 0;
        for (part, piece) in pieces {
            for (index, line) in piece.split('\n').enumerate() {
                at += usize::from(index > 0);
                if let Some(row) = rows.get_mut(at) {
                    row.push_str(&part.style.paint(line));
                }
            }
        }
        rows
    }

    fn put_lines(&mut self, text: &str, style: Style) {
        let room = self.room();
        for line in text.trim_end().lines() {
            let mut inline = Inline::default();
            inline.push(&expand_tabs(&self.marked.without(line)), style, 0);
            for row in inline.rows(room) {
                let row = inline.paint(row, self.layout.color);
                self.row(&row);
            }
        }
    }

    fn rule(&mut self, range: Range<usize>) {
        let line = match self.layout.color {
            true => "─".repeat(self.room()),
            false => self.source[range.clone()].trim().to_owned(),
        };
        self.begin(Leaf::Html(line), range.start);
        self.finish(range.end);
    }

    fn top(&self) -> usize {
        self.tops.len().saturating_sub(1)
    }

    fn room(&self) -> usize {
        let taken: usize = self.prefixes.iter().map(|prefix| prefix_width(&prefix.others)).sum();
        self.layout.width.saturating_sub(taken).max(MIN_WIDTH)
    }

    fn row(&mut self, text: &str) {
        let mut row = String::new();
        for prefix in &mut self.prefixes {
            let is_first = !std::mem::replace(&mut prefix.is_used, true);
            row.push_str(if is_first { &prefix.first } else { &prefix.others });
        }
        row.push_str(text);
        self.rows.push((self.top(), row.trim_end().to_owned()));
    }

    // ---- settled rows --------------------------------------------------------------------

    fn settled(&self) -> usize {
        let Newest { range, first_row, ends, unsettled, settled, is_code } = &self.newest;
        if *is_code {
            let has_part = !self.source.ends_with('\n') && *settled == self.rows.len();
            return settled.saturating_sub(usize::from(has_part)).max(*first_row);
        }
        let rest = self.end.map_or("", |end| &self.source[end.min(self.source.len())..]);
        if rest.matches('\n').count() > 1 {
            return self.rows.len();
        }
        // A block without letters, such as `- - -`, may become a rule. The end of the last row depends on the text
        // after it.
        let has_letters = self.source[range.clone()].contains(char::is_alphanumeric);
        let certain = ends.iter().take_while(|end| **end <= *unsettled && has_letters).count();
        first_row + certain.saturating_sub(1)
    }
}

impl Leaf {
    fn text(below: Option<String>) -> Leaf {
        Leaf::Text { inline: Inline::default(), below }
    }
}

/// Returns the width in columns of a prefix, which may contain a style.
fn prefix_width(prefix: &str) -> usize {
    if prefix.contains('│') { 2 } else { width(prefix) }
}
