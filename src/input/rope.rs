//! Text that consists of parts of other inputs, in any order. The parts are not copied.

use super::Input;
use super::block::{PAGE, ReadBlock};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of bytes to read at once from an input. Parts that lie close together are read together.
const SIZE: usize = 256 * 1024;

/// Text that consists of parts of inputs.
#[derive(Debug, Default)]
pub struct Rope {
    inputs: Vec<Input>,
    slices: Vec<Slice>,
    length: u64,
    /// The windows on each input. A thread takes them while it reads; a thread that reads at the same time creates new
    /// ones.
    windows: Mutex<Vec<Windows>>,
}

/// A part of an input. It ends where the next one begins.
#[derive(Clone, Copy, Debug)]
struct Slice {
    /// The offset of its beginning in the text.
    begin: u64,
    /// The offset of its beginning in its input.
    from: u64,
    input: u32,
}

impl Rope {
    /// Creates an empty text, to which parts of `inputs` can be appended.
    #[must_use]
    pub fn new(inputs: Vec<Input>) -> Rope {
        Rope { inputs, ..Rope::default() }
    }

    /// Returns the length of the text in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends `length` bytes from offset `from` of the input with index `input`.
    pub fn push(&mut self, input: usize, from: u64, length: u64) {
        let (begin, input) = (self.length, input as u32);
        self.length += length;
        let continues =
            |last: &Slice| last.input == input && last.from + (begin - last.begin) == from;
        if length > 0 && !self.slices.last().is_some_and(continues) {
            self.slices.push(Slice { begin, from, input });
        }
    }

    /// Fills `buffer` with the bytes from `offset`, which must all be in the text.
    ///
    /// # Errors
    /// Fails if an input cannot be read, or has become shorter.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut windows = std::mem::take(&mut *self.windows());
        windows.resize_with(self.inputs.len(), Windows::default);
        let first = self.slices.partition_point(|slice| slice.begin <= offset).saturating_sub(1);
        let mut at = offset;
        let mut rest = buffer;
        for (index, slice) in self.slices.iter().enumerate().skip(first) {
            if rest.is_empty() {
                break;
            }
            let end = self.slices.get(index + 1).map_or(self.length, |next| next.begin);
            let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
            let (part, more) = rest.split_at_mut(length);
            let input = slice.input as usize;
            let from = slice.from + (at - slice.begin);
            match self.inputs[input].in_memory() {
                Some(bytes) => copy(bytes, from, part)?,
                None => windows[input].read(&self.inputs[input], from, part)?,
            }
            at += length as u64;
            rest = more;
        }
        *self.windows() = windows;
        Ok(())
    }

    fn windows(&self) -> MutexGuard<'_, Vec<Windows>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The windows on an input. There are two, because the text can alternate between two places in one input: parts that
/// were written while the source was read, and parts that were written later.
#[derive(Debug, Default)]
struct Windows {
    /// The most recently used window comes first.
    recent: [Window; 2],
}

impl Windows {
    /// Fills `buffer` with the bytes of `input` from `offset` on.
    fn read(&mut self, input: &Input, mut offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        for part in buffer.chunks_mut(SIZE / 2) {
            if !self.recent[0].has(offset, part.len()) {
                self.recent.swap(0, 1);
            }
            part.copy_from_slice(self.recent[0].bytes(input, offset, part.len())?);
            offset += part.len() as u64;
        }
        Ok(())
    }
}

/// A part of an input in memory. The memory is reused, because allocating it again would take as long as reading.
/// It begins on a page boundary of the input and in memory; see [`ReadBlock`].
#[derive(Debug, Default)]
pub struct Window {
    begin: u64,
    block: ReadBlock,
}

impl Window {
    /// Returns true if it has the `length` bytes from `offset` on.
    fn has(&self, offset: u64, length: usize) -> bool {
        let end = self.begin + self.block.bytes().len() as u64;
        self.begin <= offset && offset + length as u64 <= end
    }

    /// Returns `length` bytes of `input` from `offset` on.
    ///
    /// # Errors
    /// Fails if the input cannot be read, or has become shorter.
    pub fn bytes(&mut self, input: &Input, offset: u64, length: usize) -> io::Result<&[u8]> {
        if !self.has(offset, length) {
            self.begin = offset - offset % PAGE as u64;
            let lead = usize::try_from(offset - self.begin).unwrap_or(0);
            self.block.read(input, self.begin, (lead + length).max(SIZE))?;
        }
        let from = usize::try_from(offset - self.begin).unwrap_or(usize::MAX);
        let held = self.block.bytes().get(from..).unwrap_or_default();
        held.get(..length).ok_or_else(too_short)
    }
}

/// Fills `buffer` with the bytes from `offset` on.
fn copy(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let part = bytes.get(from..).and_then(|rest| rest.get(..buffer.len()));
    buffer.copy_from_slice(part.ok_or_else(too_short)?);
    Ok(())
}

fn too_short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file, which is read through windows, and bytes in memory, which are not.
    fn inputs() -> [Input; 2] {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..200_000).map(|n| b'a' + (n % 23) as u8).collect();
        io::Write::write_all(&mut file, &bytes).unwrap();
        [Input::file("f", file).unwrap(), Input::memory("m", b"0123456789".repeat(1000))]
    }

    #[test]
    fn a_part_of_the_text_is_the_same_as_in_the_whole() {
        let inputs = inputs();
        let bytes = inputs.each_ref().map(|input| input.bytes().unwrap().into_owned());
        let (mut rope, mut whole) = (Rope::new(inputs.to_vec()), Vec::new());
        for number in 0..500_usize {
            let (from, length) = (number * 7919 % 9000, number * 37 % 900);
            rope.push(number % 2, from as u64, length as u64);
            whole.extend_from_slice(&bytes[number % 2][from..from + length]);
        }
        rope.push(0, 50_000, 100_000);
        whole.extend_from_slice(&bytes[0][50_000..150_000]);
        assert_eq!(rope.length(), whole.len() as u64);
        for (from, length) in [(0, whole.len()), (0, 1), (17, 5000), (whole.len() - 3, 3), (9, 0)] {
            let mut part = vec![0; length];
            rope.read(from as u64, &mut part).unwrap();
            assert!(part == whole[from..from + length], "{from} {length}");
        }
    }

    #[test]
    fn adjacent_parts_are_merged() {
        let mut rope = Rope::new(inputs().to_vec());
        for (input, from, length) in [(0, 5, 3), (0, 8, 2), (0, 10, 0), (0, 10, 1), (1, 11, 1)] {
            rope.push(input, from, length);
        }
        assert_eq!((rope.slices.len(), rope.length()), (2, 7));
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let mut rope = Rope::new(inputs().to_vec());
        rope.push(0, 199_990, 20);
        let error = rope.read(0, &mut [0; 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
