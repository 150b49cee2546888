//! A search for the lines that contain a given string, from the end of the inputs backwards.

use super::block::{BLOCK, LARGE, ReadBlock, processors};
use super::line::{Line, read_line};
use super::lines::place;
use crate::finding::Place;
use crate::input::Input;
use crate::simd::{self, Marks, STEP, Walk};
use memchr::memmem;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The largest [`Backward::reach`], in bytes.
const MAX_REACH: u64 = 64 * 1024 * 1024;
/// The number of bytes per read when looking for the ends of a line.
const PART: u64 = 16 * 1024;

/// The strings to search for.
#[derive(Debug)]
pub enum Needles {
    /// One string.
    One(Box<memmem::Finder<'static>>),
    /// Several strings that end with a quote.
    Quoted {
        /// The strings.
        texts: Vec<&'static str>,
        /// The pairs of bytes that occur before the final quote.
        ends: Vec<[u8; 2]>,
    },
}

impl Needles {
    /// Creates a search for `text`, which must not be empty.
    #[must_use]
    pub fn one(text: impl AsRef<[u8]>) -> Needles {
        Needles::One(Box::new(memmem::Finder::new(text.as_ref()).into_owned()))
    }

    /// Creates a search for `texts`. Each must be longer than two bytes and end with a quote.
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

    /// Returns the length of the longest string in bytes.
    fn longest(&self) -> usize {
        match self {
            Needles::One(finder) => finder.needle().len(),
            Needles::Quoted { texts, .. } => texts.iter().map(|text| text.len()).max().unwrap_or(0),
        }
    }

    /// Calls `each` with the offset of every match in `bytes`, in order.
    fn find_in(&self, bytes: &[u8], each: &mut impl FnMut(usize)) {
        let (texts, ends) = match self {
            Needles::One(finder) => return finder.find_iter(bytes).for_each(each),
            Needles::Quoted { texts, ends } => (texts, ends),
        };
        let check_quote = |quote: usize| {
            let here = texts.iter().find(|text| bytes[..=quote].ends_with(text.as_bytes()));
            here.into_iter().for_each(|text| each(quote + 1 - text.len()));
        };
        // The vector code needs the number of pairs at compile time.
        match ends[..] {
            [one] => simd::with_known(EndsIn { bytes, ends: [one], each: check_quote }),
            [one, two] => simd::with_known(EndsIn { bytes, ends: [one, two], each: check_quote }),
            [one, two, three] => {
                simd::with_known(EndsIn { bytes, ends: [one, two, three], each: check_quote });
            }
            _ => memchr::memchr_iter(b'"', bytes).for_each(check_quote),
        }
    }

    /// Searches the parts that it takes from `rest`, within the input's first `end` bytes. Returns the offsets of the
    /// matches, unordered.
    fn find(&self, input: &Input, end: u64, rest: &Mutex<Unsearched>) -> io::Result<Vec<u64>> {
        let (mut block, mut found) = (ReadBlock::default(), Vec::new());
        let take = |has_found| rest.lock().unwrap_or_else(PoisonError::into_inner).take(has_found);
        while let Some(part) = take(!found.is_empty()) {
            // A match may extend past the end of its part.
            let size = (part.end + self.longest() as u64).min(end) - part.start;
            block.read(input, part.start, usize::try_from(size).unwrap_or(BLOCK))?;
            self.find_in(block.bytes(), &mut |at| {
                found.extend(Some(part.start + at as u64).filter(|at| *at < part.end));
            });
        }
        Ok(found)
    }

    /// Searches like [`Needles::find`], with one thread per processor.
    fn find_in_parallel(
        &self,
        input: &Input,
        end: u64,
        rest: &Mutex<Unsearched>,
    ) -> io::Result<Vec<u64>> {
        thread::scope(|scope| {
            simd::detect();
            let search = || self.find(input, end, rest);
            let others: Vec<_> = (1..processors()).map(|_| scope.spawn(search)).collect();
            let mut found = self.find(input, end, rest)?;
            for other in others {
                let failed = |_| Err(io::Error::other("a search thread failed"));
                found.extend(other.join().unwrap_or_else(failed)?);
            }
            Ok(found)
        })
    }
}

/// The part of an input that is still to be searched, from its end backwards.
struct Unsearched {
    end: u64,
    /// The search always continues down to this offset.
    always_to: u64,
    /// Below `always_to`, the search continues down to this offset until something is found.
    at_most_to: u64,
    has_found: bool,
}

impl Unsearched {
    /// Returns the next part to search. `has_found` is true if the caller has found a match.
    fn take(&mut self, has_found: bool) -> Option<Range<u64>> {
        self.has_found |= has_found;
        if self.end <= self.at_most_to || self.end <= self.always_to && self.has_found {
            return None;
        }
        let end = self.end;
        self.end = end.saturating_sub(BLOCK as u64).max(self.at_most_to);
        Some(self.end..end)
    }
}

/// A walk that calls `each` with the offset of every quote in `bytes` that follows one of the byte pairs `ends`. In the
/// last bytes, it calls `each` for every quote.
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

/// A search for lines that contain a needle, from the end of the inputs backwards. It returns each line once.
#[derive(Debug)]
pub struct Backward<'s> {
    /// The inputs up to the one that is being searched, which is the last.
    inputs: &'s [Input],
    needles: &'s Needles,
    /// The offset at which the search begins, counted over all inputs.
    end: u64,
    /// The search skips matches before this offset, counted over all inputs.
    floor: u64,
    /// The offset of the input that is being searched, counted over all inputs. The offsets below count from here.
    base: u64,
    /// The end of the part of the input to search.
    limit: u64,
    /// The end of the part that has not been searched.
    unsearched: u64,
    /// The number of bytes that the next step searches even if it has found a match. The first step stops at its first
    /// match.
    reach: u64,
    /// The offsets of the matches of the last step that have not been taken yet, in ascending order. Some may be in the
    /// line that was returned last.
    found: Vec<u64>,
    /// The beginning of the line that was returned last.
    last_line: u64,
}

/// A line that owns its bytes.
#[derive(Clone, Debug)]
pub struct FoundLine {
    /// Its bytes, without the line feed.
    pub bytes: Vec<u8>,
    /// Its place in its own input.
    pub place: Place,
    /// The offset of that input, counted over all inputs.
    base: u64,
}

impl FoundLine {
    /// Parses the line into its object, or a finding and the objects that can be recovered.
    #[must_use]
    pub fn read(&self) -> Vec<Line<'_>> {
        read_line(&self.bytes, self.place.clone(), self.base)
    }
}

impl<'s> Backward<'s> {
    /// Creates a search for `needles` that begins at offset `end`, counted over all inputs.
    #[must_use]
    pub fn new(inputs: &'s [Input], end: u64, needles: &'s Needles) -> Backward<'s> {
        let base = super::total(inputs);
        let (floor, limit, unsearched, reach, last_line) = (0, 0, 0, 0, 0);
        let found = Vec::new();
        let mut search = Backward {
            inputs,
            needles,
            end,
            floor,
            base,
            limit,
            unsearched,
            reach,
            found,
            last_line,
        };
        search.enter(inputs);
        search
    }

    /// Continues with the last of `inputs`.
    fn enter(&mut self, inputs: &'s [Input]) {
        let length = inputs.last().map_or(0, |input| input.length);
        self.inputs = inputs;
        self.base -= length;
        self.limit = self.end.saturating_sub(self.base).min(length);
        (self.unsearched, self.reach, self.last_line) = (self.limit, 0, u64::MAX);
    }

    /// Makes the search skip matches before `offset`, counted over all inputs.
    pub fn stop_at(&mut self, offset: u64) {
        self.floor = self.floor.max(offset);
    }

    /// Returns the next matching line towards the beginning.
    ///
    /// # Errors
    /// Fails if an input cannot be read.
    pub fn next_line(&mut self) -> anyhow::Result<Option<FoundLine>> {
        while let Some((input, before)) = self.inputs.split_last() {
            let floor = self.floor.saturating_sub(self.base);
            if let Some(at) = self.found.pop() {
                // Skip an earlier match in the line that was returned last.
                if at < self.last_line && at >= floor {
                    return self.line_at(input, at).map(Some);
                }
            } else if self.unsearched > floor {
                input.named(self.search(input, floor))?;
            } else {
                self.enter(before);
            }
        }
        Ok(None)
    }

    /// Returns the line that contains byte `at` of `input`.
    fn line_at(&mut self, input: &Input, at: u64) -> anyhow::Result<FoundLine> {
        let (offset, bytes) = line_around(input, at, self.limit)?;
        self.last_line = offset;
        Ok(FoundLine { place: place(input, None, offset, bytes.len()), bytes, base: self.base })
    }

    /// Searches the next part of `input`, down to `floor` at most. Near the end a search without threads is faster;
    /// the rest is searched by all processors, in growing steps.
    fn search(&mut self, input: &Input, floor: u64) -> io::Result<()> {
        let far = self.limit.saturating_sub(LARGE);
        let is_near = self.unsearched > far;
        let rest = Mutex::new(Unsearched {
            end: self.unsearched,
            always_to: self.unsearched.saturating_sub(self.reach),
            at_most_to: if is_near { far.max(floor) } else { floor },
            has_found: false,
        });
        self.found = match is_near {
            true => self.needles.find(input, self.limit, &rest)?,
            false => self.needles.find_in_parallel(input, self.limit, &rest)?,
        };
        self.found.sort_unstable();
        self.unsearched = rest.into_inner().unwrap_or_else(PoisonError::into_inner).end;
        self.reach = (self.reach * 4).clamp(BLOCK as u64, MAX_REACH);
        Ok(())
    }
}

/// Returns the line that contains byte `offset`, counted over all inputs; `None` after their end.
///
/// # Errors
/// Fails if an input cannot be read.
pub fn line_at(inputs: &[Input], offset: u64) -> anyhow::Result<Option<FoundLine>> {
    let Some((input, base)) = super::input_at(inputs, offset) else { return Ok(None) };
    let (start, bytes) = line_around(input, offset - base, input.length)?;
    Ok(Some(FoundLine { place: place(input, None, start, bytes.len()), bytes, base }))
}

/// Returns the beginning and the bytes of the line that contains byte `at`. Reads only the first `end` bytes.
fn line_around(input: &Input, at: u64, end: u64) -> anyhow::Result<(u64, Vec<u8>)> {
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
    let mut line = input.part(start, at)?.into_owned();
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

    /// Returns the offsets of the lines that contain a needle, in the order of the search.
    fn offsets(input: Input, needles: &Needles) -> Vec<u64> {
        let end = input.length;
        let inputs = [input];
        let mut search = Backward::new(&inputs, end, needles);
        let mut found = Vec::new();
        while let Some(line) = search.next_line().unwrap() {
            found.push(line.place.offset);
        }
        found
    }

    #[test]
    fn each_matching_line_is_returned_once_from_the_end() {
        // One input is short, the other long enough for several threads.
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
            assert_eq!(offsets(input, &Needles::quoted(&["needle\"", "eedle\""])), expected);
        }
    }

    #[test]
    fn a_needle_across_a_block_or_vector_boundary_is_found() {
        // Blocks are aligned to the end of the input, vectors to the beginning of a block.
        for after in (BLOCK - 8..BLOCK + 2).chain(BLOCK - 2 * STEP..BLOCK - STEP + 8) {
            let text = format!("first\nneedle\"{}", "x".repeat(after));
            let input = Input::memory("t", text.into_bytes());
            for needles in [Needles::one("needle\""), Needles::quoted(&["needle\"", "no needle\""])]
            {
                assert_eq!(offsets(input.clone(), &needles), [6], "{after}");
            }
        }
    }
}
