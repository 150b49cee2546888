//! Lines of an input by the batch, in order, with what the scanner makes of them.
//!
//! Getting bytes out of the kernel, finding lines in them and scanning those takes as long as all that
//! is done with them later. So where there is much to read, a thread of its own makes the next batches
//! while the caller is still busy with this one.

use crate::json::{Object, Span};
use crate::source::Input;
use std::io;
use std::ops::Range;
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

/// Bytes of an input that were read at once.
#[derive(Debug)]
pub struct Block {
    buffer: Vec<u8>,
    held: Range<usize>,
}

impl Block {
    /// An empty block with room for `size` bytes.
    #[must_use]
    pub fn new(size: usize) -> Block {
        Block { buffer: vec![0; size + PAGE], held: 0..0 }
    }

    /// Reads from byte `from` on, up to byte `to` or as much as there is room for.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn read(&mut self, input: &Input, from: u64, to: u64) -> io::Result<()> {
        let page = self.buffer.as_ptr().align_offset(PAGE).min(PAGE);
        let room = self.buffer.len() - PAGE;
        let size = usize::try_from(to.saturating_sub(from)).unwrap_or(room).min(room);
        let read = input.read_at(from, &mut self.buffer[page..page + size])?;
        self.held = page..page + read;
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
pub struct Batch {
    /// The lines, if all of them are UTF-8.
    text: String,
    /// The lines, if they are not.
    odd: Vec<u8>,
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

impl Batch {
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
        let all = if self.odd.is_empty() { self.text.as_bytes() } else { &self.odd };
        let line = self.lines[number].line.clone();
        (&all[line.clone()], line.end < all.len())
    }

    /// The object that a line is, with nothing but white space around it, if the scanner is sure of it.
    #[must_use]
    pub fn object(&self, number: usize) -> Option<Object<'_>> {
        let outline = self.lines[number].outline.as_ref()?;
        let text = &self.text[outline.text.clone()];
        Some(Object::scanned(text, &self.spans[outline.spans.clone()], outline.has_surrogates))
    }

    /// Takes in what was read: the beginning of a line, and whole lines.
    fn fill(&mut self, carry: &[u8], rest: &[u8]) {
        if self.text.capacity() > MOST_KEPT {
            *self = Batch::default();
        }
        self.text.clear();
        self.odd.clear();
        self.lines.clear();
        self.spans.clear();
        match (simdutf8::basic::from_utf8(carry), simdutf8::basic::from_utf8(rest)) {
            (Ok(carry), Ok(rest)) => {
                self.text.push_str(carry);
                self.text.push_str(rest);
            }
            _ => self.odd = [carry, rest].concat(),
        }
        self.split();
    }

    fn split(&mut self) {
        let is_text = self.odd.is_empty();
        let all = if is_text { self.text.as_bytes() } else { &self.odd };
        let mut begin = 0;
        while begin < all.len() {
            let feed = memchr::memchr(b'\n', &all[begin..]);
            let end = feed.map_or(all.len(), |feed| begin + feed);
            let outline =
                if is_text { outline(&self.text, begin..end, &mut self.spans) } else { None };
            self.lines.push(Prepared { line: begin..end, outline });
            begin = end + 1;
        }
    }
}

/// What the scanner makes of a line.
fn outline(text: &str, line: Range<usize>, spans: &mut Vec<Span>) -> Option<Outline> {
    let first = spans.len();
    let object = text[line.clone()].trim_ascii();
    let Some(has_surrogates) = Object::scan(object, spans) else {
        spans.truncate(first);
        return None;
    };
    let begin = line.start + text[line].find('{')?;
    Some(Outline { text: begin..begin + object.len(), spans: first..spans.len(), has_surrogates })
}

/// A walk over a part of an input, batch by batch.
#[derive(Debug)]
pub struct Batches {
    current: Batch,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Here(Reading),
    Ahead { full: Receiver<io::Result<Batch>>, empty: Sender<Batch> },
}

impl Batches {
    /// The batches of `part`. None of them is read yet.
    #[must_use]
    pub fn new(input: &Input, part: Range<u64>) -> Batches {
        let length = part.end.saturating_sub(part.start);
        let size = usize::try_from(length).unwrap_or(BLOCK).min(BLOCK);
        let reading = || Reading {
            input: input.clone(),
            part: part.clone(),
            block: Block::new(size),
            carry: Vec::new(),
        };
        let ahead = if length < MUCH { None } else { read_ahead(reading()) };
        let reader = ahead.unwrap_or_else(|| Reader::Here(reading()));
        Batches { current: Batch::default(), reader }
    }

    /// The batch that was read last.
    #[must_use]
    pub fn current(&self) -> &Batch {
        &self.current
    }

    /// Reads the next batch; says whether there was one.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn advance(&mut self) -> io::Result<bool> {
        match &mut self.reader {
            Reader::Here(reading) => reading.next(&mut self.current)?,
            Reader::Ahead { full, empty } => {
                // The reader is gone after the last batch.
                let Ok(next) = full.recv() else { return Ok(false) };
                let used = std::mem::replace(&mut self.current, next?);
                let _ = empty.send(used);
            }
        }
        Ok(!self.current.is_empty())
    }
}

/// Starts a thread that makes batches as long as somebody takes them; `None` where no thread can be had.
fn read_ahead(mut reading: Reading) -> Option<Reader> {
    let ((give, full), (empty, take)) = (channel(), channel::<Batch>());
    (0..AHEAD).try_for_each(|_| empty.send(Batch::default())).ok()?;
    let read = move || {
        for mut batch in take {
            let outcome = reading.next(&mut batch);
            let is_last = outcome.is_err() || batch.is_empty();
            if give.send(outcome.map(|()| batch)).is_err() || is_last {
                break;
            }
        }
    };
    thread::Builder::new().spawn(read).ok()?;
    Some(Reader::Ahead { full, empty })
}

/// Blocks to batches.
#[derive(Debug)]
struct Reading {
    input: Input,
    part: Range<u64>,
    block: Block,
    /// A line that began in an earlier block.
    carry: Vec<u8>,
}

impl Reading {
    /// Reads on until there is a whole line. At the end what is left is one if it is anything at all, and
    /// then the batch is empty.
    fn next(&mut self, batch: &mut Batch) -> io::Result<()> {
        loop {
            self.block.read(&self.input, self.part.start, self.part.end)?;
            let bytes = self.block.bytes();
            self.part.start += bytes.len() as u64;
            if bytes.is_empty() {
                batch.fill(&std::mem::take(&mut self.carry), b"");
                return Ok(());
            }
            if let Some(last) = memchr::memrchr(b'\n', bytes) {
                let (whole, begun) = bytes.split_at(last + 1);
                // The line that was begun is one text with what it was begun by.
                let first = memchr::memchr(b'\n', whole).map_or(0, |first| first + 1);
                let (end, rest) =
                    if self.carry.is_empty() { whole.split_at(0) } else { whole.split_at(first) };
                self.carry.extend_from_slice(end);
                batch.fill(&self.carry, rest);
                self.carry.clear();
                self.carry.extend_from_slice(begun);
                return Ok(());
            }
            self.carry.extend_from_slice(bytes);
        }
    }
}
