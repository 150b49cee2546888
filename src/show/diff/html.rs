//! Writes a comparison as a page: the sides beside each other, and on a narrow screen one above the other.

use super::side::NAMES;
use super::unit::{Mark, Unit, UnitKind};
use super::{Comparison, DiffWriter, TurnPair};
use crate::printable::printable;
use crate::show::chart::Chart;
use crate::show::html::{Entries, Place, head};
use crate::show::totals::Totals;
use crate::show::wording::{noun, phrase};
use crate::show::words::html;
use crate::show::{Item, ShowOptions};
use std::io::{self, Write};

const STYLE: &str = include_str!("diff.css");

/// A page.
pub struct HtmlDiff<'o, W> {
    options: &'o ShowOptions,
    /// The data of both sessions, for the totals of the turns of the common beginning.
    charts: [&'o Chart; 2],
    /// The main language of the page.
    language: &'static str,
    out: W,
    /// True while the common beginning is written.
    is_in_common: bool,
    /// The common parts that are not written yet, as HTML, and the number of their messages.
    same: (Vec<u8>, u64),
}

impl<'o, W: Write> HtmlDiff<'o, W> {
    pub fn new(
        comparison: &'o Comparison<'_>,
        options: &'o ShowOptions,
        out: W,
    ) -> HtmlDiff<'o, W> {
        let charts = comparison.sides.each_ref().map(|side| &side.chart);
        let language = charts[0].languages.of_page(options.language);
        HtmlDiff { options, charts, language, out, is_in_common: false, same: (Vec::new(), 0) }
    }

    /// Returns a part as HTML, with the heading of its turn if that is wanted.
    fn part(&self, side: usize, unit: &Unit, has_turn: bool) -> io::Result<Vec<u8>> {
        let out: Vec<u8> = Vec::new();
        let mut entries =
            Entries::begin(self.options, self.charts[side], None, Place::Page, self.language, out);
        let own = unit.entries.iter().filter(|it| has_turn || !matches!(it.item, Item::Turn(_)));
        own.into_iter().try_for_each(|entry| entries.show(entry))?;
        entries.end()
    }

    /// Writes what both sides have, folded.
    fn flush(&mut self) -> io::Result<()> {
        let (parts, messages) = std::mem::take(&mut self.same);
        if messages == 0 {
            return Ok(());
        }
        let language = self.options.language;
        let summary = language.with(phrase::SAME, &[&language.count(messages, noun::MESSAGE)]);
        self.begin_fold(&summary)?;
        self.out.write_all(&parts)?;
        writeln!(self.out, "</details>")
    }

    fn begin_fold(&mut self, summary: &str) -> io::Result<()> {
        let open = if self.options.full { " open" } else { "" };
        writeln!(self.out, "<details class=\"same\"{open}>\n<summary>{}</summary>", html(summary))
    }

    /// Writes both sides. A side without content is left empty.
    fn sides(&mut self, contents: [Vec<u8>; 2]) -> io::Result<()> {
        writeln!(self.out, "<div class=\"pair\">")?;
        for (content, name) in contents.iter().zip(NAMES) {
            writeln!(self.out, "<div>")?;
            if !content.is_empty() {
                writeln!(self.out, "<p class=\"which\">{name}</p>")?;
                self.out.write_all(content)?;
            }
            writeln!(self.out, "</div>")?;
        }
        writeln!(self.out, "</div>")
    }

    /// Ends the common beginning.
    fn end_common(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_in_common) {
            true => writeln!(self.out, "</details>"),
            false => Ok(()),
        }
    }
}

impl<W: Write> DiffWriter for HtmlDiff<'_, W> {
    fn header(&mut self, comparison: &Comparison<'_>) -> io::Result<()> {
        let [a, b] = comparison.sides.each_ref().map(|side| html(&printable(side.title())));
        let both = if a == b { a.clone() } else { format!("{a} / {b}") };
        let title = self.options.language.with(phrase::COMPARISON, &[&both]);
        write!(
            self.out,
            "{}<body class=\"pairs\">\n<header>\n<h1 dir=\"auto\">{title}</h1>\n<div class=\"pair\">\n",
            head(self.language, &title, STYLE)
        )?;
        for ((side, title), name) in comparison.sides.iter().zip([a, b]).zip(NAMES) {
            let line = |text: &str| format!("<p class=\"facts\">{}</p>\n", html(&printable(text)));
            let [all, after] = side.totals(self.options);
            let after = if comparison.common.is_all { String::new() } else { line(&after) };
            let facts = line(&side.facts(self.options));
            let all = line(&all);
            writeln!(
                self.out,
                "<div>\n<h2><span dir=\"auto\">{name} · {title}</span></h2>\n{facts}{all}{after}</div>"
            )?;
        }
        writeln!(self.out, "</div>\n</header>\n<main id=\"content\">")?;
        let line = comparison.common.line(self.options);
        if comparison.alignment.folded == 0 {
            return writeln!(self.out, "<p class=\"facts\">{}</p>", html(&line));
        }
        self.is_in_common = true;
        self.begin_fold(&line)
    }

    fn common(&mut self, unit: &Unit) -> io::Result<()> {
        let part = self.part(0, unit, true)?;
        self.out.write_all(&part)
    }

    fn turn(&mut self, turn: &TurnPair) -> io::Result<()> {
        self.end_common()?;
        let language = self.options.language;
        let name = super::turn_name(turn, |number| language.with(phrase::TURN, &[&number]));
        let ids = NAMES.into_iter().zip(turn.numbers);
        let id =
            ids.filter_map(|(side, number)| Some(format!("{}{}", side.to_lowercase(), number?)));
        let id = id.collect::<Vec<_>>().join("-");
        writeln!(
            self.out,
            "<section class=\"turn\" id=\"{id}\">\n<h2><a href=\"#{id}\">{name}</a></h2>"
        )
    }

    fn same(&mut self, unit: &Unit, mark: &Mark) -> io::Result<()> {
        let part = self.part(0, unit, false)?;
        if unit.kind == UnitKind::Prompt {
            self.flush()?;
            return self.out.write_all(&part);
        }
        self.same.0.extend(part);
        self.same.1 += mark.messages;
        Ok(())
    }

    fn pair(&mut self, units: &[Option<Unit>; 2]) -> io::Result<()> {
        self.flush()?;
        let part = |side: usize| match &units[side] {
            Some(unit) => self.part(side, unit, false),
            None => Ok(Vec::new()),
        };
        let parts = [part(0)?, part(1)?];
        self.sides(parts)
    }

    fn end_turn(&mut self, totals: Option<[Option<Totals>; 2]>) -> io::Result<()> {
        self.flush()?;
        if let Some(totals) = totals {
            let facts = totals.map(|own| {
                let facts = own.map(|own| own.facts(self.options)).unwrap_or_default().join(" · ");
                let line = format!("<p class=\"facts\">{}</p>\n", html(&facts));
                if facts.is_empty() { Vec::new() } else { line.into_bytes() }
            });
            if facts.iter().any(|own| !own.is_empty()) {
                self.sides(facts)?;
            }
        }
        writeln!(self.out, "</section>")
    }

    fn end(&mut self) -> io::Result<()> {
        self.end_common()?;
        writeln!(self.out, "</main>\n</body>\n</html>")?;
        self.out.flush()
    }
}
