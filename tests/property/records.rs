//! Transcripts as lists of records with known content, and their bytes.
//!
//! Each piece of content has its own mark (`w12`, `r7`), so that it can be found in the messages. Records refer to
//! each other by key, not by id or offset, so any record can be dropped without changing the meaning of the
//! others.

use clawutils::json::quote;
use clawutils::record::digest;

/// A transcript.
#[derive(Clone)]
pub struct Conversation {
    /// True if the transcript begins with a byte order mark.
    pub bom: bool,
    /// True if the last line has a line feed.
    pub ended: bool,
    /// The items, in order.
    pub items: Vec<Item>,
}

/// A record, or a line that is not a record.
#[derive(Clone)]
pub struct Item {
    /// The name by which other records refer to it; unique in a conversation.
    pub key: usize,
    /// Its id.
    pub id: Id,
    /// Its content.
    pub body: Body,
    /// The bytes before it on its line.
    pub before: Before,
    /// The bytes after it, which are written only if it is the last item on its line.
    pub after: &'static str,
}

/// The id of a record.
#[derive(Clone, Copy, PartialEq)]
pub enum Id {
    /// None: the record is identified by its position.
    Place,
    /// A unique id.
    Own,
    /// The id of another record.
    Same(usize),
}

/// The bytes before a record on its line.
#[derive(Clone, Copy, PartialEq)]
pub enum Before {
    /// Nothing, or bytes that are ignored.
    Bytes(&'static str),
    /// The beginning of an unfinished record.
    Torn(&'static [u8]),
    /// The record before it, without a line feed between them.
    Record,
}

/// The content of a record.
#[derive(Clone)]
pub enum Body {
    User(Content),
    Assistant(Content),
    Call(Call),
    Result(Answer),
    Compaction {
        kept: usize,
        hint: Hint,
    },
    Truncation {
        of: usize,
        call: String,
        text: String,
        is_right: bool,
    },
    Retract {
        target: usize,
    },
    /// The members of a record that adds nothing to the messages.
    Silent(&'static str),
    /// A line that is not a record.
    Junk(&'static [u8]),
}

/// The position that a compaction states for its first kept record.
#[derive(Clone, Copy, PartialEq)]
pub enum Hint {
    None,
    Right,
    Wrong,
}

/// The content of a user or an assistant record.
#[derive(Clone)]
pub struct Content {
    /// True if the content is written as a string when its first piece is text. The other pieces are then left out.
    pub is_string: bool,
    pub pieces: Vec<Piece>,
}

/// A block.
#[derive(Clone)]
pub enum Piece {
    /// A mark, and JSON text that follows it.
    Text(usize, &'static str),
    /// A blank text, as JSON.
    Blank(&'static str),
    /// A mark, and true if it is signed.
    Thinking(usize, bool),
    Redacted(usize),
    Image(usize),
    Call(Call),
    Result(Answer),
}

/// A call.
#[derive(Clone)]
pub struct Call {
    pub mark: usize,
    pub id: String,
}

/// A result.
#[derive(Clone)]
pub struct Answer {
    pub mark: usize,
    /// The id of its call.
    pub id: String,
    pub form: Form,
    pub is_error: bool,
    pub pin: bool,
}

/// The form of a result.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Short,
    /// A string under claw0's earlier member name.
    Output,
    Long,
    /// A list with blank, short and long text and an image.
    List,
    /// Only an image.
    Image,
    /// One of the empty contents, as JSON.
    Empty(&'static str),
}

/// A transcript as bytes, and the position and id of each item in it.
pub struct Written {
    pub bytes: Vec<u8>,
    /// For each item, the position that identifies it.
    pub places: Vec<u64>,
    /// For each item, its id, or `@` and its position.
    pub ids: Vec<String>,
}

impl Conversation {
    /// Writes the transcript.
    pub fn write(&self) -> Written {
        let mut out = Written { bytes: Vec::new(), places: Vec::new(), ids: Vec::new() };
        if self.bom {
            out.bytes.extend("\u{feff}".bytes());
        }
        for (index, item) in self.items.iter().enumerate() {
            let place = out.begin(self, index);
            let id = match item.id {
                Id::Place => format!("@{place}"),
                Id::Own => own_id(item.key),
                Id::Same(other) => own_id(other),
            };
            let text = item.text(&id, |key| out.reference(self, key));
            out.bytes.extend(text);
            out.places.push(place);
            out.ids.push(id);
            let after = if self.shares_line(index + 1) { "" } else { item.after };
            out.bytes.extend(after.bytes());
        }
        if self.ended && !out.bytes.is_empty() {
            out.bytes.push(b'\n');
        }
        out
    }

    /// Returns true if an item is written on the same line as the item before it. Two items share a line only where
    /// rebuild can recover both: the first of them must be a complete record that does not follow a torn one.
    fn shares_line(&self, index: usize) -> bool {
        let Some([before, item]) = index.checked_sub(1).and_then(|at| self.items.get(at..=index))
        else {
            return false;
        };
        let is_whole = !matches!(before.body, Body::Junk(_) | Body::Silent(_));
        let is_torn = matches!(before.before, Before::Torn(_)) && !self.shares_line(index - 1);
        item.before == Before::Record && is_whole && !is_torn
    }

    /// Returns the items, grouped by line.
    pub fn lines(&self) -> Vec<&[Item]> {
        let starts = (0..self.items.len()).filter(|index| !self.shares_line(*index));
        let starts: Vec<usize> = starts.chain([self.items.len()]).collect();
        starts.windows(2).map(|line| &self.items[line[0]..line[1]]).collect()
    }

    /// Returns the index of the item with this key.
    pub fn position(&self, key: usize) -> Option<usize> {
        self.items.iter().position(|item| item.key == key)
    }
}

fn own_id(key: usize) -> String {
    format!("record{key}")
}

impl Written {
    /// Writes the bytes before an item. Returns the position that identifies it.
    fn begin(&mut self, conversation: &Conversation, index: usize) -> u64 {
        let here = |out: &Written| out.bytes.len() as u64;
        if conversation.shares_line(index) {
            return here(self);
        }
        if index > 0 {
            self.bytes.push(b'\n');
        }
        // A record alone on its line is identified by the position of the line, a recovered record by its own position.
        let line = if index == 0 { 0 } else { here(self) };
        match conversation.items[index].before {
            Before::Torn(torn) => {
                self.bytes.extend(torn);
                return here(self);
            }
            Before::Bytes(bytes) => self.bytes.extend(bytes.bytes()),
            Before::Record => {}
        }
        if conversation.shares_line(index + 1) { here(self) } else { line }
    }

    /// Returns the id and the position of a record, or an id that no record has if the record is not written yet.
    fn reference(&self, conversation: &Conversation, key: usize) -> (String, u64) {
        let at = conversation.position(key).filter(|at| *at < self.ids.len());
        at.map_or_else(|| ("nowhere".to_owned(), 0), |at| (self.ids[at].clone(), self.places[at]))
    }
}

impl Item {
    /// Returns the assistant's calls in the record.
    pub fn calls(&self) -> Vec<&Call> {
        match &self.body {
            Body::Call(call) => vec![call],
            Body::Assistant(content) => content.held().iter().filter_map(Piece::call).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns true if the record has text or images of the user, apart from results.
    pub fn is_from_user(&self) -> bool {
        let is_word = |piece: &Piece| matches!(piece, Piece::Text(..) | Piece::Image(_));
        matches!(&self.body, Body::User(content) if content.held().iter().any(is_word))
    }

    /// Returns the bytes of the record, with `id` as its id.
    fn text(&self, id: &str, reference: impl Fn(usize) -> (String, u64)) -> Vec<u8> {
        let members = match &self.body {
            Body::Junk(bytes) => return bytes.to_vec(),
            Body::User(content) => format!(r#""type":"user","content":{}"#, content.text()),
            Body::Assistant(content) => format!(
                r#""type":"assistant","content":{},"usage":{{"input_tokens":9,"output_tokens":1}}"#,
                content.text()
            ),
            Body::Call(call) => format!(
                r#""type":"tool_use","tool_use_id":{},"name":"f","input":{{"n":{}}}"#,
                quote(&call.id),
                call.mark
            ),
            Body::Result(answer) => answer.members(),
            Body::Compaction { kept, hint } => compaction(self.key, reference(*kept), *hint),
            Body::Truncation { of, call, text, is_right } => {
                truncation(&reference(*of).0, call, text, *is_right)
            }
            Body::Retract { target } => {
                format!(r#""type":"retract","target":"{}""#, reference(*target).0)
            }
            Body::Silent(members) => (*members).to_owned(),
        };
        match self.id {
            Id::Place => format!("{{{members}}}").into_bytes(),
            _ => format!(r#"{{"id":"{id}",{members}}}"#).into_bytes(),
        }
    }
}

fn compaction(key: usize, (kept, place): (String, u64), hint: Hint) -> String {
    let hint = match hint {
        Hint::None => String::new(),
        Hint::Right => format!(r#","first_kept_offset":{place}"#),
        Hint::Wrong => format!(r#","first_kept_offset":{}"#, place + 3),
    };
    format!(
        r#""type":"compaction","summary":"s{key} so far","first_kept_entry_id":"{kept}"{hint},"kept_user":["kept"]"#
    )
}

fn truncation(record: &str, call: &str, text: &str, is_right: bool) -> String {
    let bytes = text.len() + usize::from(!is_right);
    format!(
        r#""type":"truncation","tool_use_id":{},"record_id":"{record}","head":12,"tail":4,"bytes":{bytes},"sha256":"{}""#,
        quote(call),
        digest(text)
    )
}

impl Body {
    /// Returns true if the record is a view record, which changes how other records are sent.
    pub fn is_view(&self) -> bool {
        matches!(self, Body::Compaction { .. } | Body::Truncation { .. } | Body::Retract { .. })
    }
}

impl Content {
    /// Returns the pieces that are written: only the first one if the content is written as a string.
    pub fn held(&self) -> &[Piece] {
        match self.pieces.first() {
            Some(Piece::Text(..) | Piece::Blank(_)) if self.is_string => &self.pieces[..1],
            _ => &self.pieces,
        }
    }

    fn text(&self) -> String {
        match self.held() {
            [Piece::Text(mark, tail)] if self.is_string => format!(r#""w{mark} {tail}""#),
            [Piece::Blank(text)] if self.is_string => format!(r#""{text}""#),
            pieces => {
                let blocks: Vec<String> = pieces.iter().map(Piece::text).collect();
                format!("[{}]", blocks.join(","))
            }
        }
    }
}

impl Piece {
    fn call(&self) -> Option<&Call> {
        match self {
            Piece::Call(call) => Some(call),
            _ => None,
        }
    }

    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Piece::Result(answer) => Some(answer),
            _ => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Piece::Text(mark, tail) => format!(r#"{{"type":"text","text":"w{mark} {tail}"}}"#),
            Piece::Blank(text) => format!(r#"{{"type":"text","text":"{text}"}}"#),
            Piece::Thinking(mark, is_signed) => {
                let signature = if *is_signed { r#","signature":"c2ln""# } else { "" };
                format!(r#"{{"type":"thinking","thinking":"w{mark} "{signature}}}"#)
            }
            Piece::Redacted(mark) => format!(r#"{{"type":"redacted_thinking","data":"w{mark} "}}"#),
            Piece::Image(mark) => image(&format!("w{mark} ")),
            Piece::Call(Call { mark, id }) => format!(
                r#"{{"type":"tool_use","id":{},"name":"f","input":{{"n":{mark}}}}}"#,
                quote(id)
            ),
            Piece::Result(answer) => format!("{{{}}}", answer.members()),
        }
    }
}

fn image(data: &str) -> String {
    format!(r#"{{"type":"image","source":{{"type":"url","url":"{data}"}}}}"#)
}

impl Answer {
    /// Returns the text of the result if it is a string that is not empty.
    pub fn string(&self) -> Option<String> {
        match self.form {
            Form::Short | Form::Output => Some(format!("r{} is it", self.mark)),
            Form::Long => {
                Some(format!("r{} {}end", self.mark, "many words on a line\n".repeat(20)))
            }
            Form::List | Form::Image | Form::Empty(_) => None,
        }
    }

    fn members(&self) -> String {
        let name = if self.form == Form::Output { "output" } else { "content" };
        let content = match self.form {
            Form::Empty(content) => content.to_owned(),
            Form::Image => format!("[{}]", image(&format!("r{} ", self.mark))),
            Form::List => format!(
                r#"[{{"type":"text","text":" "}},{{"type":"text","text":"r{} in \ud83d a list"}},{},{{"type":"text","text":"{}"}}]"#,
                self.mark,
                image("x"),
                "more ".repeat(60)
            ),
            _ => quote(&self.string().unwrap_or_default()),
        };
        let error = if self.is_error { r#","is_error":true"# } else { "" };
        // Only records have pins; a provider does not accept them in blocks.
        let pin = if self.pin { r#","pin":true"# } else { "" };
        format!(
            r#""type":"tool_result","tool_use_id":{},"{name}":{content}{error}{pin}"#,
            quote(&self.id)
        )
    }
}
