//! Splits the bytes of a stream into events, no matter where the network splits the bytes.
//!
//! There are three framings. Server-sent events consist of lines that end in a line feed, a carriage return or both; a
//! line that begins with a colon is a comment, the `data` lines of an event are joined, and a blank line ends the
//! event. In the second framing, each line is one event in JSON. In the third, Amazon's, each event is a frame of bytes
//! that begins with its length. All are split as bytes before decoding, so a character may arrive in two pieces.

mod frames;

use crate::provider::extent::Extent;
use std::borrow::Cow;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// The event's name, or an empty string if it has none.
    pub name: String,
    /// The event's data. Invalid UTF-8 is replaced with U+FFFD.
    pub data: String,
}

/// The framing of events in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events, `text/event-stream`.
    Events,
    /// One JSON object per line, `application/x-ndjson`.
    Lines,
    /// Amazon's frames, `application/vnd.amazon.eventstream`.
    Frames,
}

impl Framing {
    /// Returns the framing announced by a content type.
    #[must_use]
    pub fn of(content_type: &str) -> Option<Framing> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" => Some(Framing::Events),
            "application/vnd.amazon.eventstream" => Some(Framing::Frames),
            "application/x-ndjson" | "application/jsonl" => Some(Framing::Lines),
            _ => None,
        }
    }
}

/// Splits bytes into events.
#[derive(Clone, Debug)]
pub struct Events {
    framing: Framing,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// True if the last byte was a carriage return. A line feed after it belongs to the same line end.
    after_return: bool,
    event: StreamEvent,
    has_data: bool,
    /// True until the first line ends. That line may begin with a byte order mark.
    is_new: bool,
    /// Finds the end of the value on the current line.
    value: Extent,
}

/// The size limit of an event or a line of JSON: 8 MiB.
pub const MAX_EVENT: usize = 8 << 20;

impl Events {
    /// Returns a splitter for this framing.
    #[must_use]
    pub fn new(framing: Framing) -> Events {
        let (line, event) = (Vec::new(), StreamEvent::default());
        Events {
            framing,
            line,
            after_return: false,
            event,
            has_data: false,
            is_new: true,
            value: Extent::default(),
        }
    }

    /// Takes the next piece and passes each event that is now complete to `each`.
    pub fn take(&mut self, piece: &[u8], mut each: impl FnMut(&StreamEvent)) {
        match self.framing {
            Framing::Events => {}
            Framing::Lines => return self.take_values(piece, each),
            Framing::Frames => return self.take_frames(piece, each),
        }
        let mut rest = piece;
        if rest.is_empty() {
            return;
        }
        if std::mem::take(&mut self.after_return) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.line.extend_from_slice(&rest[..end]);
            let is_pair = rest[end..].starts_with(b"\r\n");
            self.after_return = rest[end..] == *b"\r";
            rest = &rest[end + if is_pair { 2 } else { 1 }..];
            self.end_line(&mut each);
        }
        self.line.extend_from_slice(rest);
    }

    /// Takes a piece of a stream of JSON lines. An object or a list ends with its last bracket, so the line feed after
    /// it need not have arrived. Anything else ends with its line.
    fn take_values(&mut self, piece: &[u8], mut each: impl FnMut(&StreamEvent)) {
        let mut rest = piece;
        while !rest.is_empty() {
            let begun = self.line.len();
            let value_end = self.value.take(rest).map(|end| end - begun);
            let line_end = || memchr::memchr(b'\n', rest).map(|end| end + 1);
            let end = value_end.or_else(|| self.value.is_other().then(line_end).flatten());
            let (line, later) = rest.split_at(end.unwrap_or(rest.len()));
            self.line.extend_from_slice(line);
            rest = later;
            if end.is_some() {
                self.value = Extent::default();
                self.end_line(&mut each);
            }
        }
    }

    fn take_frames(&mut self, piece: &[u8], mut each: impl FnMut(&StreamEvent)) {
        self.line.extend_from_slice(piece);
        while let Some(event) = frames::next(&mut self.line) {
            each(&event);
        }
    }

    /// Returns true if the incomplete event is already larger than [`MAX_EVENT`].
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.line.len() + self.event.data.len() > MAX_EVENT
    }

    /// Returns the data of the incomplete event.
    #[must_use]
    pub fn begun(&self) -> String {
        let mut event = self.clone();
        event.end_line(&mut |_| {});
        event.event.data
    }

    /// Ends the stream. The last line of JSON needs no line feed; a server-sent event without its blank line is
    /// dropped.
    pub fn finish(mut self, mut each: impl FnMut(&StreamEvent)) {
        if self.framing == Framing::Lines {
            self.end_line(&mut each);
        }
    }

    fn end_line(&mut self, each: &mut impl FnMut(&StreamEvent)) {
        let bytes = std::mem::take(&mut self.line);
        let line = match String::from_utf8_lossy(&bytes) {
            Cow::Owned(repaired) => repaired,
            // Valid UTF-8 is converted without a copy.
            Cow::Borrowed(_) => String::from_utf8(bytes).unwrap_or_default(),
        };
        let line = match std::mem::take(&mut self.is_new) {
            true => line.trim_start_matches('\u{feff}').to_owned(),
            false => line,
        };
        match self.framing {
            // A frame is not a line.
            Framing::Frames => {}
            Framing::Lines if line.trim().is_empty() => {}
            Framing::Lines => {
                each(&StreamEvent { name: String::new(), data: line.trim().to_owned() });
            }
            Framing::Events if line.is_empty() => {
                let event = std::mem::take(&mut self.event);
                if std::mem::take(&mut self.has_data) {
                    each(&event);
                }
            }
            Framing::Events => self.field(&line),
        }
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event.name),
            // Older versions of llama.cpp's server send an error in an `error:` line.
            "data" | "error" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
                if name == "error" {
                    "error".clone_into(&mut self.event.name);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(framing: Framing, pieces: &[&[u8]]) -> Vec<StreamEvent> {
        let (mut stream, mut all) = (Events::new(framing), Vec::new());
        for piece in pieces {
            stream.take(piece, |event| all.push(event.clone()));
        }
        stream.finish(|event| all.push(event.clone()));
        all
    }

    const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: a\rdata: \u{65e5}\r\ndata:  b \n\n: ping\n\ndata\n\nevent: none\n\nid: 5\ndata: {\"x\":1}\n\ndata: cut";

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        let bytes = STREAM.as_bytes();
        let whole = events(Framing::Events, &[bytes]);
        let data: Vec<&str> = whole.iter().map(|event| event.data.as_str()).collect();
        assert_eq!(data, ["\u{65e5}\n b ", "", "{\"x\":1}"]);
        assert_eq!(whole[0].name, "a");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(events(Framing::Events, &pieces), whole, "{first} {second}");
            }
        }
    }

    #[test]
    fn lines_of_json_need_no_last_line_feed() {
        let bytes = "{\"a\":\"\u{65e5}\"}\r\n\n{\"b\":2}".as_bytes();
        let whole = events(Framing::Lines, &[bytes]);
        assert_eq!(whole.len(), 2);
        assert_eq!(whole[1].data, "{\"b\":2}");
        for at in 0..=bytes.len() {
            assert_eq!(events(Framing::Lines, &[&bytes[..at], &bytes[at..]]), whole, "{at}");
        }
    }
}
