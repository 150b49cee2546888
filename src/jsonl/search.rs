//! Lines that hold a text, from the end of an input backwards.

use super::batch::{BLOCK, Block, MUCH};
use super::place;
use crate::check::Place;
use crate::source::Input;
use aho_corasick::packed;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::thread;

/// How much is looked through, at the most, before lines are given out.
const MOST_REACH: u64 = 64 * 1024 * 1024;
/// How much is read at once to find the ends of a line.
const PART: u64 = 16 * 1024;

/// A search for several texts at once.
#[derive(Debug)]
pub struct Needles {
    searcher: Option<packed::Searcher>,
    longest: usize,
}

impl Needles {
    /// A search for `texts`, none of which is empty.
    #[must_use]
    pub fn new<T: AsRef<[u8]>>(texts: &[T]) -> Needles {
        // The slower way, where the processor has no vectors for the other.
        let slower = || packed::Config::new().only_rabin_karp(true).builder().extend(texts).build();
        Needles {
            searcher: packed::Searcher::new(texts).or_else(slower),
            longest: texts.iter().map(|text| text.as_ref().len()).max().unwrap_or(0),
        }
    }

    /// Where they begin in `part` of the input's first `end` bytes, in order.
    fn find(&self, input: &Input, part: Range<u64>, end: u64) -> io::Result<Vec<u64>> {
        let Some(searcher) = &self.searcher else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut block = Block::default();
        let mut from = part.start;
        while from < part.end {
            let to = (from + BLOCK as u64).min(part.end);
            // One may lie across the border of two blocks.
            let size = (to + self.longest as u64).min(end) - from;
            block.read(input, from, usize::try_from(size).unwrap_or(BLOCK))?;
            let hits = searcher.find_iter(block.bytes()).map(|hit| from + hit.start() as u64);
            found.extend(hits.take_while(|hit| *hit < to));
            from = to;
        }
        Ok(found)
    }

    /// The same, on all processors where there is much to look through.
    fn find_together(&self, input: &Input, part: Range<u64>, end: u64) -> io::Result<Vec<u64>> {
        let length = part.end - part.start;
        let processors = thread::available_parallelism().map_or(1, NonZero::get) as u64;
        if length < MUCH || processors == 1 {
            return self.find(input, part, end);
        }
        let share = length.div_ceil(processors);
        let begins = (0..processors).map(|number| part.start + number * share);
        let shares = begins.map(|from| from..(from + share).min(part.end));
        thread::scope(|scope| {
            let searches: Vec<_> =
                shares.map(|share| scope.spawn(|| self.find(input, share, end))).collect();
            let mut found = Vec::new();
            for search in searches {
                let gone = |_| Err(io::Error::other("a search ended early"));
                found.extend(search.join().unwrap_or_else(gone)?);
            }
            Ok(found)
        })
    }
}

/// Whole lines that hold one of `needles`, from the end of the input's first `end` bytes backwards;
/// the same line is not given twice. `each` says how far to go on: to lines that begin at that offset or
/// after it (0 is to the beginning, the input's end is no further).
///
/// # Errors
/// When the input cannot be read.
pub fn backwards(
    input: &Input,
    end: u64,
    needles: &Needles,
    mut each: impl FnMut(&[u8], Place) -> io::Result<u64>,
) -> io::Result<()> {
    let (mut upper, mut floor) = (end, 0);
    let mut reach = BLOCK as u64;
    let mut last_line = u64::MAX;
    while upper > floor {
        let lower = upper.saturating_sub(reach);
        for at in needles.find_together(input, lower..upper, end)?.into_iter().rev() {
            if at >= last_line || at < floor {
                continue;
            }
            let (offset, line) = line_around(input, at, end)?;
            last_line = offset;
            let place = place(input, None, offset, line.len());
            floor = each(&line, place)?.max(floor);
        }
        upper = lower;
        // Nobody waits long for what is near the end, and what is far is looked for in long steps.
        reach = (reach * 2).min(MOST_REACH);
    }
    Ok(())
}

/// The line that byte `at` lies in, among the first `end` bytes: where it begins, and its bytes.
///
/// # Errors
/// When the input cannot be read.
pub fn line_around(input: &Input, at: u64, end: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut start = at;
    while start > 0 {
        let from = start.saturating_sub(PART);
        let part = input.part(from, start)?;
        let feed = memchr::memrchr(b'\n', &part);
        start = from + feed.map_or(0, |feed| feed as u64 + 1);
        if feed.is_some() {
            break;
        }
    }
    let mut line = input.part(start, at)?;
    let mut next = at;
    while next < end {
        let to = (next + PART).min(end);
        let part = input.part(next, to)?;
        let feed = memchr::memchr(b'\n', &part);
        line.extend_from_slice(&part[..feed.unwrap_or(part.len())]);
        next = to;
        if feed.is_some() {
            break;
        }
    }
    Ok((start, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backwards_finds_every_line_once_and_from_the_end() {
        // Short, and long enough for several threads.
        for padding in [4000, 100_000] {
            let mut text = String::new();
            let mut expected = Vec::new();
            for number in 0..400 {
                let hit = if number % 7 == 0 { "needle needle" } else { "" };
                if number % 7 == 0 {
                    expected.push(text.len() as u64);
                }
                text.push_str(&format!("{}{hit}\n", "y".repeat(number * 4013 % padding)));
            }
            expected.reverse();
            let input = Input::memory("t", text.into_bytes());
            let mut found = Vec::new();
            let needles = Needles::new(&["needle", "eedl"]);
            backwards(&input, input.length, &needles, |_, place| {
                found.push(place.offset);
                Ok(0)
            })
            .unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_needle_across_any_border_is_found() {
        for at in BLOCK - 8..BLOCK + 2 {
            let text = format!("{}needle{}", "x".repeat(at), "x".repeat(2 * BLOCK));
            let input = Input::memory("t", text.into_bytes());
            let needles = Needles::new(&["needle"]);
            assert_eq!(needles.find(&input, 0..input.length, input.length).unwrap(), [at as u64]);
        }
    }
}
