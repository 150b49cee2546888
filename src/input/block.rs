//! Batches of scanned lines, in the order of an input.
//!
//! Reading bytes from the kernel, splitting them into lines and scanning the lines takes as long as all later
//! work on them. For a large input a separate thread therefore reads the next batches while the caller works on
//! the current one. The thread also splits batches into lines as long as another batch is ready for the caller;
//! otherwise the caller splits them.

use crate::input::Input;
use crate::input::line::MAX_DEPTH;
use crate::json::outline::{Outline, Value};
use crate::json::{Object, Span};
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The maximum number of bytes requested by one read.
pub const BLOCK: usize = 256 * 1024;
/// The page size in bytes. Reads into a page-aligned buffer are several times faster on some processors.
pub const PAGE: usize = 4096;
/// The smallest size, in bytes, at which reading with threads is faster.
pub(super) const LARGE: u64 = 4 * 1024 * 1024;
/// The number of batches that the reading thread prepares ahead of the caller.
const AHEAD: usize = 3;
/// The largest buffer that is reused for the next batch, in bytes. A single long line can need a larger one.
const MAX_KEPT: usize = 4 * BLOCK;

/// Bytes of an input: a part of an input that is in memory, or a buffer.
#[derive(Debug, Default)]
pub struct ReadBlock {
    /// The input, if it is in memory. `buffer` is not used then.
    shared: Option<Input>,
    buffer: Vec<u8>,
    held: Range<usize>,
}

impl ReadBlock {
    /// Replaces the content with `bytes`, placed so that the bytes read after them start on a page boundary.
    /// Makes room for `more` bytes after them.
    fn begin_with(&mut self, bytes: &[u8], more: usize) {
        let room = bytes.len().next_multiple_of(PAGE);
        self.make_room(PAGE + room + more);
        let end = self.buffer.as_ptr().align_offset(PAGE).min(PAGE) + room;
        let begin = end - bytes.len();
        self.buffer[begin..end].copy_from_slice(bytes);
        self.held = begin..end;
        self.shared = None;
    }

    /// Appends up to `size` bytes from offset `from` of the input, and returns how many were read.
    fn read_on(&mut self, input: &Input, from: u64, size: usize) -> io::Result<usize> {
        let (begin, end) = (self.held.end, self.held.end + size);
        self.make_room(end);
        let read = input.read_at(from, &mut self.buffer[begin..end])?;
        self.held.end += read;
        Ok(read)
    }

    fn make_room(&mut self, size: usize) {
        if self.buffer.is_empty() {
            // The kernel provides zeroed pages; `resize` on an empty vector would write each byte.
            self.buffer = vec![0; size];
        } else if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
    }

    /// Replaces the content with up to `size` bytes from offset `from` of the input; fewer at its end.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn read(&mut self, input: &Input, from: u64, size: usize) -> io::Result<()> {
        if let Some(all) = input.in_memory() {
            let from = usize::try_from(from).unwrap_or(all.len()).min(all.len());
            self.share(input, from..from + size.min(all.len() - from));
            return Ok(());
        }
        self.begin_with(b"", size);
        self.read_on(input, from, size)?;
        Ok(())
    }

    /// Replaces the content with a part of an input that is in memory. The bytes are not copied.
    fn share(&mut self, input: &Input, part: Range<usize>) {
        (self.shared, self.held) = (Some(input.clone()), part);
    }

    /// Returns the bytes that were read.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let all = self.shared.as_ref().and_then(Input::in_memory).unwrap_or(&self.buffer);
        &all[self.held.clone()]
    }
}

/// A batch of complete lines.
#[derive(Debug, Default)]
pub struct WholeLines {
    /// The lines, followed by the beginning of the next batch.
    block: ReadBlock,
    /// The length of the lines in bytes.
    length: usize,
    lines: Vec<Prepared>,
    /// The members of the objects of all lines.
    spans: Vec<Span>,
    /// The values in the objects of all lines.
    outline: Outline,
}

/// The parts of objects that a scan finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Their members.
    Members,
    /// Their members and the values in these.
    Values,
}

/// A line in a batch.
#[derive(Debug)]
struct Prepared {
    /// Its range in the block, without the line feed.
    line: Range<usize>,
    object: Option<Scanned>,
}

/// The positions of an object and its parts in a batch.
#[derive(Debug)]
struct Scanned {
    text: Range<usize>,
    parts: Range<usize>,
    has_surrogates: bool,
}

impl WholeLines {
    /// Returns the number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns a line's bytes, and true if a line feed follows them.
    #[must_use]
    pub fn line(&self, number: usize) -> (&[u8], bool) {
        let line = self.lines[number].line.clone();
        (&self.block.bytes()[line.clone()], line.end < self.length)
    }

    /// Returns the object in a line if the scanner found one object and only white space around it. The lines must
    /// have been scanned for [`Parts::Members`].
    #[must_use]
    pub fn object(&self, number: usize) -> Option<Object<'_>> {
        let object = self.lines[number].object.as_ref()?;
        let spans = &self.spans[object.parts.clone()];
        Some(Object::scanned(self.text(object), spans, object.has_surrogates))
    }

    /// Returns the object in a line, and its offset in the line, if the scanner found one object and only white space
    /// around it. The lines must have been scanned for [`Parts::Values`].
    #[must_use]
    pub fn value(&self, number: usize) -> Option<(Value<'_>, usize)> {
        let Prepared { line, object } = &self.lines[number];
        let object = object.as_ref()?;
        let value = self.outline.value(self.text(object), object.parts.clone());
        Some((value, object.text.start - line.start))
    }

    fn text(&self, object: &Scanned) -> &str {
        let bytes = &self.block.bytes()[object.text.clone()];
        // SAFETY: only `split` creates a `Scanned`. It checks the lines for UTF-8, and an object begins and ends with a
        // brace. The bytes do not change before the next `fill`, which first discards the objects.
        #[allow(unsafe_code, reason = "validating all text twice is slow, see CONTRIBUTING")]
        unsafe {
            std::str::from_utf8_unchecked(bytes)
        }
    }

    /// Reads complete lines: `carry`, then bytes from `reading`. At the end of the input the last line may lack
    /// its line feed. Returns the part of the next line that was read. Call [`WholeLines::split`] to find the
    /// lines.
    fn fill(&mut self, carry: &[u8], reading: &mut BlockReading) -> io::Result<&[u8]> {
        if self.block.buffer.len() > MAX_KEPT {
            *self = WholeLines::default();
        }
        self.lines.clear();
        self.spans.clear();
        self.outline.clear();
        self.length = 0;
        if let Some(length) = reading.share_lines(&mut self.block) {
            self.length = length;
            return Ok(b"");
        }
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

    /// Splits the bytes into lines and scans them for objects, unless that was done before.
    fn split(&mut self, parts: Parts) {
        if !self.lines.is_empty() {
            return;
        }
        let all = &self.block.bytes()[..self.length];
        let text = simdutf8::basic::from_utf8(all).ok();
        // Room for the lines of a small input, so that these are not reallocated several times.
        self.spans.reserve(64);
        self.lines.reserve(16);
        let mut scanner = Scanner { parts, spans: &mut self.spans, outline: &mut self.outline };
        let mut begin = 0;
        while begin < all.len() {
            let object = text.and_then(|text| scanner.object_at(text, begin));
            let prepared = object.unwrap_or_else(|| {
                let feed = memchr::memchr(b'\n', &all[begin..]);
                let end = feed.map_or(all.len(), |feed| begin + feed);
                Prepared { line: begin..end, object: None }
            });
            begin = prepared.line.end + 1;
            self.lines.push(prepared);
        }
    }
}

/// A scanner for objects, and the memory for the parts that it finds.
struct Scanner<'s> {
    parts: Parts,
    spans: &'s mut Vec<Span>,
    outline: &'s mut Outline,
}

impl Scanner<'_> {
    /// Returns the line that begins at `begin` if there is one object in it and only white space around the object. The
    /// scan stops at line feeds, so the end of the line need not be known.
    fn object_at(&mut self, text: &str, begin: usize) -> Option<Prepared> {
        let after_white = |at: usize| {
            let is_white = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
            at + text.as_bytes()[at..].iter().take_while(is_white).count()
        };
        let start = after_white(begin);
        let (length, parts, has_surrogates) = self.scan(&text[start..])?;
        let end = after_white(start + length);
        let is_line = matches!(text.as_bytes().get(end), None | Some(b'\n'));
        let object = Scanned { text: start..start + length, parts, has_surrogates };
        is_line.then_some(Prepared { line: begin..end, object: Some(object) })
    }

    /// Returns the length of the object at the beginning of `text`, its parts, and true if it may have an escaped
    /// surrogate.
    fn scan(&mut self, text: &str) -> Option<(usize, Range<usize>, bool)> {
        if self.parts == Parts::Values {
            let (length, nodes) =
                self.outline.add(text, MAX_DEPTH).filter(|_| text.starts_with('{'))?;
            return Some((length, nodes, true));
        }
        let first = self.spans.len();
        let Some((length, has_surrogates)) = Object::scan(text, self.spans) else {
            self.spans.truncate(first);
            return None;
        };
        Some((length, first..self.spans.len(), has_surrogates))
    }
}

/// Reads a part of an input, batch by batch.
#[derive(Debug)]
pub struct Batches {
    current: WholeLines,
    parts: Parts,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Here(BlockReading),
    Ahead {
        full: Receiver<io::Result<WholeLines>>,
        /// The number of batches in `full`, or about to be sent to it.
        waiting: Arc<AtomicUsize>,
        empty: Sender<WholeLines>,
    },
}

impl Batches {
    /// Creates a reader of the batches in `range`, a range of byte offsets, whose lines are scanned for `parts`
    /// of objects.
    #[must_use]
    pub fn new(input: &Input, range: Range<u64>, parts: Parts) -> Batches {
        let is_large = range.end.saturating_sub(range.start) >= LARGE && processors() > 1;
        let reading =
            || BlockReading { input: input.clone(), part: range.clone(), carry: Vec::new() };
        let ahead = if is_large { read_ahead(reading(), parts) } else { None };
        let reader = ahead.unwrap_or_else(|| Reader::Here(reading()));
        Batches { current: WholeLines::default(), parts, reader }
    }

    /// Returns the batch that was read last.
    #[must_use]
    pub fn current(&self) -> &WholeLines {
        &self.current
    }

    /// Reads the next batch. Returns false at the end.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn advance(&mut self) -> io::Result<bool> {
        match &mut self.reader {
            Reader::Here(reading) => reading.next(&mut self.current)?,
            Reader::Ahead { full, empty, waiting } => {
                // The reading thread ends after the last batch.
                let Ok(next) = full.recv() else { return Ok(false) };
                waiting.fetch_sub(1, Ordering::Relaxed);
                let used = std::mem::replace(&mut self.current, next?);
                let _ = empty.send(used);
            }
        }
        self.current.split(self.parts);
        Ok(!self.current.is_empty())
    }
}

/// Returns the number of threads that can run at the same time.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Starts a thread that prepares batches until the end of the part, or until the receiver is dropped. Returns `None` if
/// no thread can be started.
fn read_ahead(mut reading: BlockReading, parts: Parts) -> Option<Reader> {
    let ((send_full, full), (empty, receive_empty)) = (channel(), channel::<WholeLines>());
    (0..AHEAD).try_for_each(|_| empty.send(WholeLines::default())).ok()?;
    let waiting = Arc::new(AtomicUsize::new(0));
    let own_waiting = Arc::clone(&waiting);
    let read = move || {
        for mut batch in receive_empty {
            let outcome = reading.next(&mut batch);
            let is_last = outcome.is_err() || batch.length == 0;
            // Split the batch here only if another one is ready for the caller. Otherwise the caller is waiting for
            // this one, and might as well split it.
            if own_waiting.fetch_add(1, Ordering::Relaxed) > 0 {
                batch.split(parts);
            }
            if send_full.send(outcome.map(|()| batch)).is_err() || is_last {
                break;
            }
        }
    };
    thread::Builder::new().spawn(read).ok()?;
    Some(Reader::Ahead { full, waiting, empty })
}

/// The state of reading: the input and the part that is not read yet.
#[derive(Debug)]
struct BlockReading {
    input: Input,
    part: Range<u64>,
    /// The beginning of the next line, which was read with the last batch.
    carry: Vec<u8>,
}

impl BlockReading {
    /// Reads the next batch. At the end of the input, remaining bytes are the last line; after that, batches are
    /// empty.
    fn next(&mut self, batch: &mut WholeLines) -> io::Result<()> {
        let carry = std::mem::take(&mut self.carry);
        self.carry = batch.fill(&carry, self)?.to_vec();
        Ok(())
    }

    /// If the input is in memory, makes `block` refer to the next complete lines, and returns their length.
    fn share_lines(&mut self, block: &mut ReadBlock) -> Option<usize> {
        let all = self.input.in_memory()?;
        let at = |offset: u64| usize::try_from(offset).unwrap_or(all.len()).min(all.len());
        let (from, end) = (at(self.part.start), at(self.part.end));
        let rest = &all[from.min(end)..end];
        let near = rest.len().min(BLOCK);
        let length = if near == rest.len() {
            near
        } else {
            let last = memchr::memrchr(b'\n', &rest[..near]);
            let next = || memchr::memchr(b'\n', &rest[near..]).map(|feed| near + feed);
            last.or_else(next).map_or(rest.len(), |feed| feed + 1)
        };
        block.share(&self.input, from..from + length);
        self.part.start += length as u64;
        self.input.set_position(self.part.start);
        Some(length)
    }

    /// Returns the number of bytes to read next.
    fn size(&self) -> usize {
        usize::try_from(self.part.end.saturating_sub(self.part.start)).unwrap_or(BLOCK).min(BLOCK)
    }

    /// Appends the next bytes to `block`, and returns how many were read.
    fn read_on(&mut self, block: &mut ReadBlock) -> io::Result<usize> {
        let read = block.read_on(&self.input, self.part.start, self.size())?;
        self.part.start += read as u64;
        self.input.set_position(self.part.start);
        Ok(read)
    }
}
