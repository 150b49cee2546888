//! Lines of an input by the batch, in order, with what the scanner makes of them.
//!
//! Getting bytes out of the kernel, finding lines in them and scanning those takes as long as all that
//! is done with them later. So where there is much to read, a thread of its own reads the next batches
//! while the caller is still busy with this one, and whoever has less to do finds the lines in them.

use crate::input::Input;
use crate::json::{Object, Span};
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// How much is read at once, in bytes.
pub const BLOCK: usize = 256 * 1024;
/// Reads that land on a page boundary are several times faster on some processors.
const PAGE: usize = 4096;
/// From so many bytes on a thread is worth its start.
pub(super) const MUCH: u64 = 4 * 1024 * 1024;
/// So many batches may be ready at once.
const AHEAD: usize = 3;
/// A batch that had to be larger, for one long line, is not used again.
const MOST_KEPT: usize = 4 * BLOCK;

/// Bytes of an input.
#[derive(Debug, Default)]
pub struct ReadBlock {
    buffer: Vec<u8>,
    held: Range<usize>,
}

impl ReadBlock {
    /// Holds nothing but `bytes`, and puts them where what is read after them lands on a page boundary.
    /// There will be `more` bytes of that.
    fn begin_with(&mut self, bytes: &[u8], more: usize) {
        let room = bytes.len().next_multiple_of(PAGE);
        self.make_room(PAGE + room + more);
        let end = self.buffer.as_ptr().align_offset(PAGE).min(PAGE) + room;
        let begin = end - bytes.len();
        self.buffer[begin..end].copy_from_slice(bytes);
        self.held = begin..end;
    }

    /// Reads `size` bytes more, from byte `from` of the input on, and says how many there were.
    fn read_on(&mut self, input: &Input, from: u64, size: usize) -> io::Result<usize> {
        let (begin, end) = (self.held.end, self.held.end + size);
        self.make_room(end);
        let read = input.read_at(from, &mut self.buffer[begin..end])?;
        self.held.end += read;
        Ok(read)
    }

    fn make_room(&mut self, size: usize) {
        if self.buffer.is_empty() {
            // The allocator has zeroed pages at hand; growing an empty vector would write each byte.
            self.buffer = vec![0; size];
        } else if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
    }

    /// Reads `size` bytes from byte `from` of the input on, or what there is. What was read before is gone.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn read(&mut self, input: &Input, from: u64, size: usize) -> io::Result<()> {
        self.begin_with(b"", size);
        self.read_on(input, from, size)?;
        Ok(())
    }

    /// What was read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }
}

/// Lines, each whole.
#[derive(Debug, Default)]
pub struct WholeLines {
    /// The lines, and after them what was read of the next.
    block: ReadBlock,
    /// So many of its bytes are lines.
    length: usize,
    lines: Vec<Prepared>,
    /// The members of the objects of all lines.
    spans: Vec<Span>,
}

/// A line in a batch.
#[derive(Debug)]
struct Prepared {
    /// Its bytes, without the line feed.
    line: Range<usize>,
    outline: Option<Outline>,
}

/// Where an object stands in a batch, and its members.
#[derive(Debug)]
struct Outline {
    text: Range<usize>,
    spans: Range<usize>,
    has_surrogates: bool,
}

impl WholeLines {
    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A line's bytes, and whether a line feed follows them.
    #[must_use]
    pub fn line(&self, number: usize) -> (&[u8], bool) {
        let line = self.lines[number].line.clone();
        (&self.block.bytes()[line.clone()], line.end < self.length)
    }

    /// The object that a line is, with nothing but white space around it, if the scanner is sure of it.
    #[must_use]
    pub fn object(&self, number: usize) -> Option<Object<'_>> {
        let outline = self.lines[number].outline.as_ref()?;
        let bytes = &self.block.bytes()[outline.text.clone()];
        // SAFETY: only `split` makes outlines, of what it found to be UTF-8, from one brace to another; and
        // what was read stays as it is until the next `fill`, which begins with throwing them away.
        #[allow(unsafe_code, reason = "a second look at all text takes long, see CONTRIBUTING")]
        let text = unsafe { std::str::from_utf8_unchecked(bytes) };
        Some(Object::scanned(text, &self.spans[outline.spans.clone()], outline.has_surrogates))
    }

    /// Reads whole lines, which begin with `carry` and go on where `reading` is, and at the end of it what
    /// there is. Gives what was read of the line after them. The lines are there after [`WholeLines::split`].
    fn fill(&mut self, carry: &[u8], reading: &mut BlockReading) -> io::Result<&[u8]> {
        if self.block.buffer.len() > MOST_KEPT {
            *self = WholeLines::default();
        }
        self.lines.clear();
        self.spans.clear();
        self.length = 0;
        self.block.begin_with(carry, reading.size());
        self.length = loop {
            let before = self.block.bytes().len();
            let read = reading.read_on(&mut self.block)?;
            let feed = memchr::memrchr(b'\n', &self.block.bytes()[before..]);
            match feed {
                Some(feed) => break before + feed + 1,
                None if read == 0 => break before,
                None => {}
            }
        };
        Ok(&self.block.bytes()[self.length..])
    }

    /// Finds the lines and what the scanner makes of them, unless that was done.
    fn split(&mut self) {
        if !self.lines.is_empty() {
            return;
        }
        let all = &self.block.bytes()[..self.length];
        let text = simdutf8::basic::from_utf8(all).ok();
        let mut begin = 0;
        while begin < all.len() {
            let object = text.and_then(|text| object_at(text, begin, &mut self.spans));
            let prepared = object.unwrap_or_else(|| {
                let feed = memchr::memchr(b'\n', &all[begin..]);
                let end = feed.map_or(all.len(), |feed| begin + feed);
                Prepared { line: begin..end, outline: None }
            });
            begin = prepared.line.end + 1;
            self.lines.push(prepared);
        }
    }
}

/// The line that begins at `begin`, if the scanner is sure that it is an object with nothing but white space
/// around it. The scanner passes no line feed, so nobody has to look for the end of the line first.
fn object_at(text: &str, begin: usize, spans: &mut Vec<Span>) -> Option<Prepared> {
    let after_white = |at: usize| {
        let is_white = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
        at + text.as_bytes()[at..].iter().take_while(is_white).count()
    };
    let start = after_white(begin);
    let first = spans.len();
    let ended = Object::scan(&text[start..], spans).and_then(|(length, has_surrogates)| {
        let end = after_white(start + length);
        let is_line = matches!(text.as_bytes().get(end), None | Some(b'\n'));
        is_line.then_some((start + length, end, has_surrogates))
    });
    let Some((last, end, has_surrogates)) = ended else {
        spans.truncate(first);
        return None;
    };
    let outline = Outline { text: start..last, spans: first..spans.len(), has_surrogates };
    Some(Prepared { line: begin..end, outline: Some(outline) })
}

/// A walk over a part of an input, batch by batch.
#[derive(Debug)]
pub struct Batches {
    current: WholeLines,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Here(BlockReading),
    Ahead {
        full: Receiver<io::Result<WholeLines>>,
        /// How many of them there are, or are being made.
        waiting: Arc<AtomicUsize>,
        empty: Sender<WholeLines>,
    },
}

impl Batches {
    /// The batches of `part`. None of them is read yet.
    #[must_use]
    pub fn new(input: &Input, part: Range<u64>) -> Batches {
        let is_much = part.end.saturating_sub(part.start) >= MUCH && processors() > 1;
        let reading =
            || BlockReading { input: input.clone(), part: part.clone(), carry: Vec::new() };
        let ahead = if is_much { read_ahead(reading()) } else { None };
        let reader = ahead.unwrap_or_else(|| Reader::Here(reading()));
        Batches { current: WholeLines::default(), reader }
    }

    /// The batch that was read last.
    #[must_use]
    pub fn current(&self) -> &WholeLines {
        &self.current
    }

    /// Reads the next batch; says whether there was one.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn advance(&mut self) -> io::Result<bool> {
        match &mut self.reader {
            Reader::Here(reading) => reading.next(&mut self.current)?,
            Reader::Ahead { full, empty, waiting } => {
                // The reader is gone after the last batch.
                let Ok(next) = full.recv() else { return Ok(false) };
                waiting.fetch_sub(1, Ordering::Relaxed);
                let used = std::mem::replace(&mut self.current, next?);
                let _ = empty.send(used);
            }
        }
        self.current.split();
        Ok(!self.current.is_empty())
    }
}

/// Returns the number of threads that can run at the same time.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Starts a thread that makes batches as long as somebody takes them; `None` where no thread can be had.
fn read_ahead(mut reading: BlockReading) -> Option<Reader> {
    let ((give, full), (empty, take)) = (channel(), channel::<WholeLines>());
    (0..AHEAD).try_for_each(|_| empty.send(WholeLines::default())).ok()?;
    let waiting = Arc::new(AtomicUsize::new(0));
    let own_waiting = Arc::clone(&waiting);
    let read = move || {
        for mut batch in take {
            let outcome = reading.next(&mut batch);
            let is_last = outcome.is_err() || batch.length == 0;
            // The caller splits this one as well, if it has nothing else to do.
            if own_waiting.fetch_add(1, Ordering::Relaxed) > 0 {
                batch.split();
            }
            if give.send(outcome.map(|()| batch)).is_err() || is_last {
                break;
            }
        }
    };
    thread::Builder::new().spawn(read).ok()?;
    Some(Reader::Ahead { full, waiting, empty })
}

/// What is still to be read.
#[derive(Debug)]
struct BlockReading {
    input: Input,
    part: Range<u64>,
    /// The beginning of the next line.
    carry: Vec<u8>,
}

impl BlockReading {
    /// Makes the next batch. At the end what is left is a line if it is anything at all, and then the
    /// batch is empty.
    fn next(&mut self, batch: &mut WholeLines) -> io::Result<()> {
        let carry = std::mem::take(&mut self.carry);
        self.carry = batch.fill(&carry, self)?.to_vec();
        Ok(())
    }

    /// How many bytes are read next.
    fn size(&self) -> usize {
        usize::try_from(self.part.end.saturating_sub(self.part.start)).unwrap_or(BLOCK).min(BLOCK)
    }

    /// Reads them, and says how many there were.
    fn read_on(&mut self, block: &mut ReadBlock) -> io::Result<usize> {
        let read = block.read_on(&self.input, self.part.start, self.size())?;
        self.part.start += read as u64;
        self.input.reach(self.part.start);
        Ok(read)
    }
}
