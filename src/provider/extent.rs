//! Finds the end of a JSON value that arrives in pieces, and completes a value that was cut off.

/// Finds the end of an object or a list that arrives in pieces. Each byte is examined once.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    /// The number of bytes seen.
    seen: usize,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// True if the value does not begin with a brace or a bracket, so that its end cannot be found.
    is_other: bool,
    end: Option<usize>,
}

impl Extent {
    /// Takes the next piece. Returns the number of bytes up to the value's end, once that is known.
    pub(super) fn take(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while self.end.is_none() && !self.is_other && at < piece.len() {
            at = self.step(piece, at);
        }
        self.seen += piece.len();
        self.end
    }

    /// Returns the number of bytes up to the value's end, if that has arrived.
    pub(super) fn end(&self) -> Option<usize> {
        self.end
    }

    /// Returns true if the value is neither an object nor a list, so that its end cannot be found.
    pub(super) fn is_other(&self) -> bool {
        self.is_other
    }

    /// Looks at one byte, or skips the inside of a string. Returns the offset of the next byte to look at.
    fn step(&mut self, piece: &[u8], at: usize) -> usize {
        if self.in_string {
            return self.skip_string(piece, at);
        }
        match piece[at] {
            // White space or a byte order mark may precede the value.
            byte if self.depth == 0 && !matches!(byte, b'{' | b'[') => {
                self.is_other = !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(&byte);
            }
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.end = (self.depth == 0).then_some(self.seen + at + 1);
            }
            _ => {}
        }
        at + 1
    }

    fn skip_string(&mut self, piece: &[u8], at: usize) -> usize {
        if std::mem::take(&mut self.is_escaped) {
            return at + 1;
        }
        let Some(next) = memchr::memchr2(b'"', b'\\', &piece[at..]) else { return piece.len() };
        self.is_escaped = piece[at + next] == b'\\';
        self.in_string = self.is_escaped;
        at + next + 1
    }
}

/// Completes an object that was cut off: closes a string and the brackets. If the result is not an object because a
/// member has no value, drops everything after the last comma. The returned flag is true if the last value may have
/// been cut off: it is a string without its closing quote, or a number.
pub(super) fn completed(text: &str) -> (String, bool) {
    let (mut open, mut in_string, mut is_escaped) = (Vec::new(), false, false);
    // The end of the last complete member, and the number of brackets open there.
    let mut whole = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                open.pop();
            }
            b',' => whole = (at, open.len()),
            _ => {}
        }
    }
    let close = |begin: &str, count: usize| -> String {
        begin.chars().chain(open[..count.min(open.len())].iter().rev().copied()).collect()
    };
    let text = if is_escaped { &text[..text.len() - 1] } else { text };
    let quoted = if in_string { format!("{text}\"") } else { text.to_owned() };
    let all = close(&quoted, open.len());
    match crate::json::Object::parse(&all) {
        Ok(_) => (all, in_string || text.ends_with(|last: char| last.is_ascii_digit())),
        Err(_) => (close(&text[..whole.0.min(text.len())], whole.1), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    #[test]
    fn the_end_is_found_wherever_the_value_is_cut() {
        let value = r#" {"a":"}\"\\","b":[{},"é"],"c":{"d":1}}"#;
        let text = format!("{value} <html>{{");
        let bytes = text.as_bytes();
        for at in 0..=bytes.len() {
            let mut extent = Extent::default();
            let ends = [extent.take(&bytes[..at]), extent.take(&bytes[at..])];
            let first = (at >= value.len()).then_some(value.len());
            assert_eq!(ends, [first, Some(value.len())], "{at}");
        }
        assert_eq!(Extent::default().take(&bytes[..value.len() - 1]), None);
        assert_eq!(Extent::default().take(b"<style>a {}</style>"), None);
        assert_eq!(Extent::default().take("\u{feff}{}".as_bytes()), Some(5));
    }

    #[test]
    fn audit_09_an_object_that_was_cut_off_is_completed() {
        let whole =
            r#"{"error":{"type":"a","message":"too long: 2000 \"tokens\"","n":[1,{"x":2}]}}"#;
        for at in 40..whole.len() {
            let (text, _) = completed(&whole[..at]);
            let object = Object::parse(&text).unwrap();
            let error = Object::parse(object.get("error").unwrap()).unwrap();
            assert_eq!(error.string("type").as_deref(), Some("a"), "{text}");
        }
        assert!(completed(r#"{"error":"of 20"#).1, "a string was cut");
        assert!(!completed(r#"{"error":"of 20""#).1);
        assert!(completed(r#"{"error":{"n_ctx":40"#).1, "a number may have been cut");
        assert!(!completed(r#"{"error":{"n_ctx":40}"#).1);
    }
}
