//! Draws the chart as inline SVG, with a description and a table of the same numbers.
//!
//! The SVG has no fixed width: lines are stretched to the width of the page, and positions of text are in
//! percent, so that text has a readable size on any screen.

use super::chart::{Chart, Point, StepKind};
use super::wording::{Language, noun, phrase};
use crate::estimate::report::grouped;
use std::fmt::Write;

/// The heights in pixels of the space above the plot, of the plot itself, and of the space below it.
const TOP: u64 = 22;
const PLOT: u64 = 150;
const BOTTOM: u64 = 24;
/// The width of the plot in SVG units.
const ACROSS: u64 = 1000;
/// The maximum number of points in the line. If there are more, one point stands for several neighbours.
const MAX_POINTS: usize = 400;
/// The maximum number of points for which each request is drawn as a dot.
const MAX_DOTS: usize = 60;
/// The maximum number of compactions that the description names; the table has them all.
const MAX_NAMED: usize = 6;
/// The maximum number of rows in the table.
const MAX_ROWS: usize = 500;

/// Returns the chart as a figure; an empty string if there are no requests.
pub fn figure(chart: &Chart, language: Language) -> String {
    if chart.requests().next().is_none() {
        return String::new();
    }
    let words = words(chart, language);
    let has_picture = chart.points.len() > 1;
    let picture = if has_picture { picture(chart, &words, language) } else { String::new() };
    let table = table(chart, language);
    format!("<figure>\n{picture}<figcaption>{words}</figcaption>\n{table}</figure>\n")
}

/// Describes the picture.
fn words(chart: &Chart, language: Language) -> String {
    let count = |fits: fn(&StepKind) -> bool| {
        chart.points.iter().filter(|point| fits(&point.kind)).count() as u64
    };
    let mut requests = chart.requests();
    let most = chart.requests().max_by_key(|point| point.tokens);
    let (most, last) = (most.map_or((0, 0), |it| (it.tokens, it.turn)), requests.next_back());
    let last = grouped(last.map_or(0, |point| point.tokens));
    let tokens = language.count(most.0, noun::TOKEN);
    let mut text = language.with(phrase::LARGEST, &[&most.1, &tokens, &last]);
    let gap = if language == Language::En { " " } else { "" };
    let mut add = |sentence: String| {
        text.push_str(gap);
        text.push_str(&sentence);
    };
    let compacted = |point: &&Point| matches!(point.kind, StepKind::Compacted(_));
    let compactions = chart.points.iter().filter(compacted).count();
    if compactions > MAX_NAMED {
        add(language.with(phrase::COMPACTIONS, &[&compactions]));
    }
    for point in chart.points.iter().filter(|_| compactions <= MAX_NAMED) {
        if let StepKind::Compacted(before) = point.kind {
            let (before, after) = (grouped(before), grouped(point.tokens));
            add(language.with(phrase::COMPACTED, &[&point.turn, &before, &after]));
        }
    }
    let refused = count(|kind| *kind == StepKind::Refused);
    if refused > 0 {
        let requests = language.count(refused, noun::REQUEST);
        add(language.with(phrase::DID_NOT_FIT_ALL, &[&requests]));
    }
    let estimated = count(|kind| *kind == StepKind::Estimated);
    if estimated > 0 {
        let phrase = if estimated == 1 { phrase::ESTIMATED_ONE } else { phrase::ESTIMATED_ALL };
        add(language.with(phrase, &[&grouped(estimated)]));
    }
    text
}

/// The scale of the picture.
struct Frame {
    /// The index of the last point.
    last: usize,
    /// The tokens at the top.
    most: u64,
}

impl Frame {
    /// Returns the horizontal position of a point in percent.
    fn x(&self, index: usize) -> f64 {
        index as f64 * 100.0 / self.last.max(1) as f64
    }

    fn across(&self, index: usize) -> u64 {
        (index as u64 * ACROSS) / self.last.max(1) as u64
    }

    /// Returns the distance from the top of the plot in pixels.
    fn y(&self, tokens: u64) -> u64 {
        PLOT - (tokens.min(self.most) as f64 * PLOT as f64 / self.most.max(1) as f64).round() as u64
    }
}

fn picture(chart: &Chart, words: &str, language: Language) -> String {
    let largest = chart.points.iter().map(|point| match point.kind {
        StepKind::Compacted(before) | StepKind::Shortened(before) => before.max(point.tokens),
        _ => point.tokens,
    });
    let largest = largest.max().unwrap_or(0).max(1);
    // A window far above all points would flatten the plot.
    let window = chart.window.filter(|window| *window <= largest * 2);
    let step = round_step(largest.max(window.unwrap_or(0)));
    let most = largest.max(window.unwrap_or(0)).div_ceil(step) * step;
    let frame = Frame { last: chart.points.len() - 1, most };
    let mut svg = format!(
        "<svg role=\"img\" aria-labelledby=\"chart-title chart-words\" width=\"100%\" height=\"{}\">\n\
         <title id=\"chart-title\">{}</title>\n\
         <desc id=\"chart-words\">{words}</desc>\n",
        TOP + PLOT + BOTTOM,
        language.say(phrase::CHART)
    );
    grid(&mut svg, &frame, step);
    if let Some(window) = window {
        level(
            &mut svg,
            "window",
            TOP + frame.y(window),
            &language.with(phrase::WINDOW, &[&short(window)]),
            true,
        );
    }
    line(&mut svg, &frame, &chart.points);
    marks(&mut svg, &frame, &chart.points, language);
    turns(&mut svg, &frame, &chart.points, language);
    svg.push_str("</svg>\n");
    svg
}

fn grid(svg: &mut String, frame: &Frame, step: u64) {
    for tokens in (0..=frame.most).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let text = if tokens == 0 { String::new() } else { short(tokens) };
        level(svg, "grid", TOP + frame.y(tokens), &text, false);
    }
}

/// Draws a horizontal line with its label at one end.
fn level(svg: &mut String, class: &str, y: u64, text: &str, at_right: bool) {
    let (x, anchor) = if at_right { ("100%", " text-anchor=\"end\"") } else { ("0", "") };
    let _ = writeln!(svg, "<line class=\"{class}\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
    if !text.is_empty() {
        let _ = writeln!(
            svg,
            "<text class=\"{class}\" x=\"{x}\" y=\"{}\"{anchor}>{text}</text>",
            y - 4
        );
    }
}

/// Returns the point that represents all of `points`, with its index: the first compaction, or else the first truncation,
/// or else the largest.
fn shown(points: &[Point]) -> Option<(usize, &Point)> {
    let first =
        |is: fn(&StepKind) -> bool| points.iter().enumerate().find(|(_, point)| is(&point.kind));
    let compaction = first(|kind| matches!(kind, StepKind::Compacted(_)));
    let truncation = || first(|kind| matches!(kind, StepKind::Shortened(_)));
    let largest = || points.iter().enumerate().max_by_key(|(_, point)| point.tokens);
    compaction.or_else(truncation).or_else(largest)
}

/// Draws the size as a line with a filled area below it, stretched to the width of the page. A compaction or
/// truncation is a vertical drop. If there are too many points, the line has one for several; there must be at least one.
fn line(svg: &mut String, frame: &Frame, points: &[Point]) {
    let mut path = String::new();
    let mut put = |index: usize, tokens: u64| {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{} {}", frame.across(index), frame.y(tokens));
    };
    let bucket_size = points.len().div_ceil(MAX_POINTS);
    for (number, bucket) in points.chunks(bucket_size).enumerate() {
        let Some((index, point)) = shown(bucket) else { continue };
        let index = number * bucket_size + index;
        if let StepKind::Compacted(before) | StepKind::Shortened(before) = point.kind {
            put(index, before);
        }
        put(index, point.tokens);
    }
    // The area is closed along the bottom, back to where the line begins.
    let begin = path.strip_prefix('M').and_then(|rest| rest.split(' ').next()).unwrap_or("0");
    let _ = writeln!(
        svg,
        "<svg x=\"0\" y=\"{TOP}\" width=\"100%\" height=\"{PLOT}\" viewBox=\"0 0 {ACROSS} {PLOT}\" preserveAspectRatio=\"none\" overflow=\"visible\">\n\
         <path class=\"area\" d=\"{path}V{PLOT}H{begin}Z\"/>\n\
         <path class=\"size\" d=\"{path}\"/>\n</svg>",
    );
}

fn marks(svg: &mut String, frame: &Frame, points: &[Point], language: Language) {
    let has_dots = points.len() <= MAX_DOTS;
    let compactions = points.iter().filter(|it| matches!(it.kind, StepKind::Compacted(_))).count();
    for (index, point) in points.iter().enumerate() {
        let (x, y) = (frame.x(index), TOP + frame.y(point.tokens));
        let turn = language.with(phrase::TURN, &[&point.turn]).to_lowercase();
        match point.kind {
            StepKind::Compacted(before) => {
                let name = language.say(phrase::COMPACTION);
                let (from, to) = (grouped(before), grouped(point.tokens));
                let _ = write!(
                    svg,
                    "<g class=\"compaction\"><title>{turn}: {name}, {from} → {to}</title>\
                     <line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{}\" y2=\"{}\"/>",
                    TOP - 14,
                    TOP + PLOT,
                );
                if compactions <= MAX_NAMED && before > point.tokens {
                    let (anchor, shift) =
                        if x > 80.0 { (" text-anchor=\"end\"", -4) } else { ("", 4) };
                    let less = short(before - point.tokens);
                    let _ = write!(
                        svg,
                        "<text x=\"{x:.2}%\" dx=\"{shift}\" y=\"12\"{anchor}>−{less}</text>"
                    );
                }
                svg.push_str("</g>\n");
            }
            StepKind::Refused => {
                let tokens = language.with(phrase::DID_NOT_FIT, &[&grouped(point.tokens)]);
                let _ = writeln!(
                    svg,
                    "<circle class=\"refused\" cx=\"{x:.2}%\" cy=\"{y}\" r=\"4\"><title>{turn}: {tokens}</title></circle>"
                );
            }
            StepKind::Counted | StepKind::Estimated if has_dots => {
                let class = if point.kind == StepKind::Counted { "counted" } else { "estimated" };
                let how = if class == "counted" { phrase::COUNTED } else { phrase::ESTIMATED };
                let tokens = language.count(point.tokens, noun::TOKEN);
                let tokens = format!("{tokens}, {}", language.say(how));
                let _ = writeln!(
                    svg,
                    "<circle class=\"{class}\" cx=\"{x:.2}%\" cy=\"{y}\" r=\"3\"><title>{turn}: {tokens}</title></circle>"
                );
            }
            _ => {}
        }
    }
}

/// Draws the turn numbers: the first, the last, and one between them.
fn turns(svg: &mut String, frame: &Frame, points: &[Point], language: Language) {
    let y = TOP + PLOT + 16;
    let mut last_turn = None;
    for (index, anchor) in
        [(0, ""), (frame.last / 2, " text-anchor=\"middle\""), (frame.last, " text-anchor=\"end\"")]
    {
        let Some(turn) = points.get(index).map(|point| point.turn) else { continue };
        if last_turn.replace(turn) == Some(turn) {
            continue;
        }
        let name = language.with(phrase::TURN, &[&turn]).to_lowercase();
        let name = if index == 0 { name } else { turn.to_string() };
        let x = frame.x(index);
        let _ = writeln!(svg, "<text x=\"{x:.2}%\" y=\"{y}\"{anchor}>{name}</text>");
    }
}

/// Returns a table of the same numbers, with the largest request of each turn.
fn table(chart: &Chart, language: Language) -> String {
    let mut rows: Vec<(u64, u64, String)> = Vec::new();
    for point in &chart.points {
        if rows.last().is_none_or(|row| row.0 != point.turn) {
            rows.push((point.turn, 0, String::new()));
        }
        let Some(row) = rows.last_mut() else { continue };
        match point.kind {
            StepKind::Counted | StepKind::Estimated => row.1 = row.1.max(point.tokens),
            kind => {
                let what = match kind {
                    StepKind::Compacted(before) => {
                        let name = language.say(phrase::COMPACTION);
                        format!("{name}, {} → {}", grouped(before), grouped(point.tokens))
                    }
                    StepKind::Refused => {
                        language.with(phrase::DID_NOT_FIT, &[&grouped(point.tokens)])
                    }
                    _ => language.say(phrase::RESULTS_SHORTENED).to_owned(),
                };
                let gap = if row.2.is_empty() { "" } else { "; " };
                row.2.push_str(&format!("{gap}{what}"));
            }
        }
    }
    let heads = [phrase::TURNS_HEAD, phrase::TOKENS, phrase::EVENT].map(|it| language.say(it));
    let heads = heads.map(|head| format!("<th scope=\"col\">{head}</th>")).concat();
    let mut html = format!(
        "<details>\n<summary>{}</summary>\n<table>\n<tr>{heads}</tr>\n",
        language.say(phrase::NUMBERS)
    );
    let skipped = rows.len().saturating_sub(MAX_ROWS);
    for (turn, tokens, what) in rows.into_iter().skip(skipped) {
        let tokens = if tokens == 0 { String::new() } else { grouped(tokens) };
        let turn =
            if turn == 0 { String::new() } else { format!("<a href=\"#turn-{turn}\">{turn}</a>") };
        let _ = writeln!(html, "<tr><td>{turn}</td><td>{tokens}</td><td>{what}</td></tr>");
    }
    if skipped > 0 {
        let _ = writeln!(
            html,
            "<caption>{}</caption>",
            language.with(phrase::LEFT_OUT, &[&language.count(skipped as u64, noun::EARLIER_TURN)])
        );
    }
    html.push_str("</table>\n</details>\n");
    html
}

/// Returns the smallest round step (1, 2 or 5 times a power of ten) for which `most` is at most four steps.
fn round_step(most: u64) -> u64 {
    let mut unit = 1;
    while unit * 10 * 3 <= most {
        unit *= 10;
    }
    [1, 2, 5, 10].into_iter().map(|of| of * unit).find(|step| step * 4 >= most).unwrap_or(unit * 10)
}

/// Formats a number in few characters.
fn short(number: u64) -> String {
    let tenths = |unit: u64, name: &str| {
        let tenths = (number + unit / 20) / (unit / 10);
        match tenths % 10 {
            0 => format!("{}{name}", tenths / 10),
            rest => format!("{}.{rest}{name}", tenths / 10),
        }
    };
    match number {
        0..=999 => number.to_string(),
        1_000..=999_949 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_steps_are_round() {
        let shown = [0, 999, 1000, 1049, 1050, 30_000, 999_949, 1_000_000, 2_340_000].map(short);
        assert_eq!(shown, ["0", "999", "1k", "1k", "1.1k", "30k", "999.9k", "1M", "2.3M"]);
        for (most, step) in
            [(1, 1), (3, 1), (4, 1), (9, 5), (30, 10), (100, 50), (1319, 500), (200_000, 50_000)]
        {
            assert_eq!(round_step(most), step, "{most}");
        }
    }

    #[test]
    fn nothing_is_drawn_without_requests() {
        assert_eq!(figure(&Chart::default(), Language::En), "");
    }

    #[test]
    fn a_compaction_is_a_drop_in_the_line() {
        let point = |tokens, kind| Point { turn: 1, tokens, kind };
        let mut chart = Chart::default();
        chart.points.extend([
            point(100, StepKind::Counted),
            point(40, StepKind::Compacted(200)),
            point(50, StepKind::Estimated),
        ]);
        let svg = figure(&chart, Language::En);
        assert!(svg.contains("d=\"M0 75L500 0L500 120L1000 112\""), "{svg}");
        assert!(svg.contains("A compaction in turn 1 reduced it from 200 to 40."), "{svg}");
    }
}
