//! The fast way through JSON text: where a value ends, strictly by the grammar, nothing decoded.
//!
//! It says yes only to what serde_json says yes to; where it is not sure (raw control characters,
//! nesting past 63 levels, anything wrong) it declines, and the caller asks serde_json. A string is
//! passed over with a vectorised search for its next quote or backslash, which is why this is several
//! times as fast as a reader that looks at every byte.

use memchr::memchr2;

/// A text that holds no control character, so a string in it needs no further look for one.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a>(&'a [u8]);

/// Nesting is remembered as bits of one word.
const MOST_DEPTH: u32 = 63;

impl<'a> Scan<'a> {
    /// A scan of `text`; `None` when it holds control characters.
    #[must_use]
    pub fn new(text: &'a str) -> Option<Scan<'a>> {
        let bytes = text.as_bytes();
        // Without an exit from the inner loop the compiler makes vector code of it.
        let is_control = |part: &[u8]| part.iter().fold(false, |any, byte| any | (*byte < 0x20));
        (!bytes.chunks(256).any(is_control)).then_some(Scan(bytes))
    }

    fn at(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// Passes over blanks from `at` on.
    #[must_use]
    pub fn blanks(self, mut at: usize) -> usize {
        while self.at(at) == Some(b' ') {
            at += 1;
        }
        at
    }

    /// Passes over `byte` and the blanks before it.
    #[must_use]
    pub fn token(self, at: usize, byte: u8) -> Option<usize> {
        let at = self.blanks(at);
        (self.at(at) == Some(byte)).then_some(at + 1)
    }

    /// The end of the string that begins with a quote at `at`.
    #[must_use]
    pub fn string(self, at: usize) -> Option<usize> {
        let mut at = self.at(at).filter(|byte| *byte == b'"').map(|_| at + 1)?;
        loop {
            at += memchr2(b'"', b'\\', self.0.get(at..)?)?;
            if self.0[at] == b'"' {
                return Some(at + 1);
            }
            at = match self.at(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at + 2,
                b'u' if self.0.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at + 6,
                _ => return None,
            };
        }
    }

    /// The end of the value that begins at `at` (no blanks before it).
    #[must_use]
    pub fn value(self, mut at: usize) -> Option<usize> {
        // One bit a level, the innermost lowest: 1 for an object.
        let (mut depth, mut kinds) = (0, 0_u64);
        loop {
            at = match self.at(at)? {
                b'"' => self.string(at)?,
                open @ (b'{' | b'[') => {
                    if depth == MOST_DEPTH {
                        return None;
                    }
                    let close = open + 2;
                    let inner = self.blanks(at + 1);
                    if self.at(inner) == Some(close) {
                        inner + 1
                    } else {
                        depth += 1;
                        kinds = kinds << 1 | u64::from(open == b'{');
                        at = if open == b'{' { self.key(inner)? } else { inner };
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number(at)?,
                b't' => self.word(at, b"true")?,
                b'f' => self.word(at, b"false")?,
                b'n' => self.word(at, b"null")?,
                _ => return None,
            };
            // A value has ended: go on inside its parent, or up.
            loop {
                if depth == 0 {
                    return Some(at);
                }
                at = self.blanks(at);
                let in_object = kinds & 1 == 1;
                match self.at(at)? {
                    b',' => {
                        let next = self.blanks(at + 1);
                        at = if in_object { self.key(next)? } else { next };
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return None,
                }
                at += 1;
                depth -= 1;
                kinds >>= 1;
            }
        }
    }

    /// Passes over a member's name, its colon and the blanks after it.
    fn key(self, at: usize) -> Option<usize> {
        let end = self.string(at)?;
        Some(self.blanks(self.token(end, b':')?))
    }

    fn word(self, at: usize, word: &[u8]) -> Option<usize> {
        self.0.get(at..)?.starts_with(word).then_some(at + word.len())
    }

    fn number(self, at: usize) -> Option<usize> {
        let digits = |from: usize| {
            let count = self.0[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            (count > 0).then_some(from + count)
        };
        let start = if self.at(at) == Some(b'-') { at + 1 } else { at };
        let mut end = if self.at(start) == Some(b'0') { start + 1 } else { digits(start)? };
        if self.at(end) == Some(b'.') {
            end = digits(end + 1)?;
        }
        if matches!(self.at(end), Some(b'e' | b'E')) {
            let signed = matches!(self.at(end + 1), Some(b'+' | b'-'));
            end = digits(end + 1 + usize::from(signed))?;
        }
        Some(end)
    }
}
