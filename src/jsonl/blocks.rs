//! Blocks of an input, in order.
//!
//! Copying a file out of the kernel takes about as long as reading its lines. So where there is much to
//! read, a thread of its own reads the next blocks while the caller looks through this one.

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
/// So many blocks may wait to be looked through.
const AHEAD: usize = 3;

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

/// A walk over a part of an input, block by block.
#[derive(Debug)]
pub struct Blocks<'i> {
    current: Block,
    reader: Reader<'i>,
}

#[derive(Debug)]
enum Reader<'i> {
    Here { input: &'i Input, part: Range<u64> },
    Ahead { full: Receiver<io::Result<Block>>, empty: Sender<Block> },
}

impl<'i> Blocks<'i> {
    /// The blocks of `part`. None of them is read yet.
    #[must_use]
    pub fn new(input: &'i Input, part: Range<u64>) -> Blocks<'i> {
        let length = part.end.saturating_sub(part.start);
        let size = usize::try_from(length).unwrap_or(BLOCK).min(BLOCK);
        let ahead = if length < MUCH { None } else { read_ahead(input.clone(), part.clone()) };
        Blocks { current: Block::new(size), reader: ahead.unwrap_or(Reader::Here { input, part }) }
    }

    /// The bytes of the block that was read last.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.current.bytes()
    }

    /// Reads the next block; says whether there was one.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn next(&mut self) -> io::Result<bool> {
        match &mut self.reader {
            Reader::Here { input, part } => {
                self.current.read(input, part.start, part.end)?;
                part.start += self.current.bytes().len() as u64;
            }
            Reader::Ahead { full, empty } => {
                // The reader is gone after the last block.
                let Ok(next) = full.recv() else { return Ok(false) };
                let used = std::mem::replace(&mut self.current, next?);
                let _ = empty.send(used);
            }
        }
        Ok(!self.current.bytes().is_empty())
    }
}

/// Starts a thread that reads the blocks of `part` as long as somebody takes them; `None` where no
/// thread can be had.
fn read_ahead<'i>(input: Input, mut part: Range<u64>) -> Option<Reader<'i>> {
    let ((give, full), (empty, take)) = (channel(), channel::<Block>());
    (0..AHEAD).try_for_each(|_| empty.send(Block::new(BLOCK))).ok()?;
    let read = move || {
        for mut block in take {
            let outcome = block.read(&input, part.start, part.end);
            let length = block.bytes().len() as u64;
            part.start += length;
            let is_last = outcome.is_err() || length == 0;
            if give.send(outcome.map(|()| block)).is_err() || is_last {
                break;
            }
        }
    };
    thread::Builder::new().spawn(read).ok()?;
    Some(Reader::Ahead { full, empty })
}
