//! Lines that hold a text, from the end of an input backwards.

use super::block::{BLOCK, Block, MUCH, processors};
use super::lines::place;
use crate::finding::Place;
use crate::input::Input;
use crate::simd::{self, Marks, STEP, Walk};
use memchr::memmem;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How much is looked through, at the most, before lines that were found are given out.
const MOST_REACH: u64 = 64 * 1024 * 1024;
/// How much is read at once to find the ends of a line.
const PART: u64 = 16 * 1024;

/// A search for one text, or for several at once that end in the same way.
#[derive(Debug)]
pub enum Needles {
    /// For one.
    One(Box<memmem::Finder<'static>>),
    /// For several that end with a quote.
    Quoted {
        /// The texts.
        texts: Vec<&'static str>,
        /// The two bytes that they have before the quote.
        ends: Vec<[u8; 2]>,
    },
}

impl Needles {
    /// A search for `text`, which is not empty.
    #[must_use]
    pub fn one(text: impl AsRef<[u8]>) -> Needles {
        Needles::One(Box::new(memmem::Finder::new(text.as_ref()).into_owned()))
    }

    /// A search for `texts`, each of which is longer than two bytes and ends with a quote.
    #[must_use]
    pub fn quoted(texts: &[&'static str]) -> Needles {
        let mut ends: Vec<[u8; 2]> = texts
            .iter()
            .filter_map(|text| text.strip_suffix('"')?.as_bytes().last_chunk())
            .copied()
            .collect();
        ends.sort_unstable();
        ends.dedup();
        Needles::Quoted { texts: texts.to_vec(), ends }
    }

    /// The length of the longest (bytes).
    fn longest(&self) -> usize {
        match self {
            Needles::One(finder) => finder.needle().len(),
            Needles::Quoted { texts, .. } => texts.iter().map(|text| text.len()).max().unwrap_or(0),
        }
    }

    /// Gives where they begin in `bytes` to `each`, in order.
    fn find_in(&self, bytes: &[u8], each: &mut impl FnMut(usize)) {
        let (texts, ends) = match self {
            Needles::One(finder) => return finder.find_iter(bytes).for_each(each),
            Needles::Quoted { texts, ends } => (texts, ends),
        };
        let look_closer = |quote: usize| {
            let here = texts.iter().find(|text| bytes[..=quote].ends_with(text.as_bytes()));
            here.into_iter().for_each(|text| each(quote + 1 - text.len()));
        };
        // How many there are has to be known when this is compiled.
        match ends[..] {
            [one] => simd::with_known(EndsIn { bytes, ends: [one], each: look_closer }),
            [one, two] => simd::with_known(EndsIn { bytes, ends: [one, two], each: look_closer }),
            [one, two, three] => {
                simd::with_known(EndsIn { bytes, ends: [one, two, three], each: look_closer });
            }
            _ => memchr::memchr_iter(b'"', bytes).for_each(look_closer),
        }
    }

    /// Where they begin in what `rest` gives out of the input's first `end` bytes, in no order.
    fn find(&self, input: &Input, end: u64, rest: &Mutex<Rest>) -> io::Result<Vec<u64>> {
        let (mut block, mut found) = (Block::default(), Vec::new());
        let take = |has_found| rest.lock().unwrap_or_else(PoisonError::into_inner).take(has_found);
        while let Some(part) = take(!found.is_empty()) {
            // One may lie across the border of two parts.
            let size = (part.end + self.longest() as u64).min(end) - part.start;
            block.read(input, part.start, usize::try_from(size).unwrap_or(BLOCK))?;
            self.find_in(block.bytes(), &mut |at| {
                found.extend(Some(part.start + at as u64).filter(|at| *at < part.end));
            });
        }
        Ok(found)
    }

    /// The same by all processors.
    fn find_together(&self, input: &Input, end: u64, rest: &Mutex<Rest>) -> io::Result<Vec<u64>> {
        thread::scope(|scope| {
            simd::ask();
            let help = || self.find(input, end, rest);
            let others: Vec<_> = (1..processors()).map(|_| scope.spawn(help)).collect();
            let mut found = self.find(input, end, rest)?;
            for other in others {
                let gone = |_| Err(io::Error::other("a search ended early"));
                found.extend(other.join().unwrap_or_else(gone)?);
            }
            Ok(found)
        })
    }
}

/// What is still to be looked through, from its end backwards.
struct Rest {
    end: u64,
    /// To here it is looked through in any case, and from there on to here as long as nothing is found.
    least: u64,
    most: u64,
    has_found: bool,
}

impl Rest {
    /// The next part, for one that `has_found` something.
    fn take(&mut self, has_found: bool) -> Option<Range<u64>> {
        self.has_found |= has_found;
        if self.end <= self.most || self.end <= self.least && self.has_found {
            return None;
        }
        let end = self.end;
        self.end = end.saturating_sub(BLOCK as u64).max(self.most);
        Some(self.end..end)
    }
}

/// Gives the quotes in `bytes` that stand behind two bytes which are one of `ends` to `each`, in order.
struct EndsIn<'b, F, const COUNT: usize> {
    bytes: &'b [u8],
    ends: [[u8; 2]; COUNT],
    each: F,
}

impl<F: FnMut(usize), const COUNT: usize> Walk for EndsIn<'_, F, COUNT> {
    type Output = ();

    #[inline(always)]
    fn walk(self, _: impl Fn(&[u8; STEP]) -> Marks, equal: impl Fn(&[u8; STEP], u8) -> u64) {
        let EndsIn { bytes, ends, mut each } = self;
        let part = |at: usize| bytes.get(at..)?.first_chunk::<STEP>();
        let mut quotes = 2;
        while let (Some(first), Some(second), Some(third)) =
            (part(quotes - 2), part(quotes - 1), part(quotes))
        {
            let ended = ends.map(|[one, two]| equal(first, one) & equal(second, two));
            let mut found = equal(third, b'"') & ended.into_iter().fold(0, |all, one| all | one);
            while found != 0 {
                each(quotes + found.trailing_zeros() as usize);
                found &= found - 1;
            }
            quotes += STEP;
        }
        let rest = bytes.get(quotes..).unwrap_or_default();
        memchr::memchr_iter(b'"', rest).for_each(|at| each(quotes + at));
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
    let (mut upper, mut floor, mut reach) = (end, 0, 0);
    let mut last_line = u64::MAX;
    while upper > floor {
        // Nobody waits for threads to find what is near the end, and what is far is looked for in long steps.
        let far = end.saturating_sub(MUCH);
        let (is_near, least) = (upper > far, upper.saturating_sub(reach));
        let most = if is_near { far.max(floor) } else { floor };
        let rest = Mutex::new(Rest { end: upper, least, most, has_found: false });
        let mut found = match is_near {
            true => needles.find(input, end, &rest)?,
            false => needles.find_together(input, end, &rest)?,
        };
        found.sort_unstable();
        for at in found.into_iter().rev() {
            if at >= last_line || at < floor {
                continue;
            }
            let (offset, line) = line_around(input, at, end)?;
            last_line = offset;
            let place = place(input, None, offset, line.len());
            floor = each(&line, place)?.max(floor);
        }
        upper = rest.into_inner().unwrap_or_else(PoisonError::into_inner).end;
        reach = (reach * 4).clamp(BLOCK as u64, MOST_REACH);
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
                let hit = if number % 7 == 0 { "needle\" needle\"" } else { "" };
                if number % 7 == 0 {
                    expected.push(text.len() as u64);
                }
                text.push_str(&format!("{}{hit}\n", "y".repeat(number * 4013 % padding)));
            }
            expected.reverse();
            let input = Input::memory("t", text.into_bytes());
            let mut found = Vec::new();
            let needles = Needles::quoted(&["needle\"", "eedle\""]);
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
        // Blocks are counted from the end, vectors from the beginning of a block.
        for after in (BLOCK - 8..BLOCK + 2).chain(BLOCK - 2 * STEP..BLOCK - STEP + 8) {
            let text = format!("first\nneedle\"{}", "x".repeat(after));
            let input = Input::memory("t", text.into_bytes());
            for needles in [Needles::one("needle\""), Needles::quoted(&["needle\"", "no needle\""])]
            {
                let mut found = Vec::new();
                let note = |_: &[u8], place: Place| {
                    found.push(place.offset);
                    Ok(0)
                };
                backwards(&input, input.length, &needles, note).unwrap();
                assert_eq!(found, [6], "{after}");
            }
        }
    }
}
