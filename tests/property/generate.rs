//! Conversations generated from choices: turns in our own format, in both formats of claw0, and as messages. Then
//! records are dropped, repeated and moved, and view records and damage are added.

use super::choices::Choices;
use super::records::{
    Answer, Before, Body, Call, Content, Conversation, Form, Hint, Id, Item, Piece,
};

/// Generates a conversation.
pub fn conversation(choices: &mut Choices) -> Conversation {
    let mut generator = Generator { choices, last: 0, calls: Vec::new(), bodies: Vec::new() };
    for _ in 0..1 + generator.choices.below(6) {
        generator.add_turn_or_records();
    }
    generator.disorder();
    generator.add_views();
    generator.finish()
}

/// A conversation under construction.
struct Generator<'c> {
    choices: &'c mut Choices,
    /// The last key or mark that was assigned.
    last: usize,
    /// The ids of the calls made so far.
    calls: Vec<String>,
    bodies: Vec<(usize, Body)>,
}

/// Parts of JSON strings that follow a mark.
const TAILS: &[&str] = &[
    "",
    "words",
    "\\ud83d\\ude00",
    "half \\ud83d",
    "\\udc00\\ud83d",
    "\u{2028}\u{85}",
    "日本語",
    "a\\n{\\\"type\\\":\\\"user\\\"}",
    "\\\\ud800 \\u0000",
];

const BLANKS: &[&str] = &["", " ", "\\n\\t", "\\u00a0\u{3000}"];

/// Call ids that are reused often. A provider rejects some of these ids.
const IDS: &[&str] = &["t1", "t2", "t:1", "t.1", "t_1", "t_1_2", "日本", " ", "\u{2028}\"\\"];

/// Contents of empty results, as JSON.
const EMPTY: &[&str] = &[r#""""#, r#"" ""#, "[]", "null", r#"[{"type":"text","text":"\n"}]"#];

/// Members of records that add nothing to the messages, because of their type or because they are incomplete or
/// invalid.
const SILENT: &[&str] = &[
    r#""type":"session","key":"a:b:c","label":"","created":"x","version":1"#,
    r#""type":"error","class":"overloaded","status":529,"message":"busy","model":"m""#,
    r#""type":"checkpoint","summary":"so far""#,
    r#""type":"progress","content":5,"deep":[[[[]]]]"#,
    r#""type":"user""#,
    r#""type":"user","content":[{"type":"text"}]"#,
    r#""type":"tool_use","name":"f","input":{}"#,
    r#""type":"tool_use","tool_use_id":5,"name":"f","input":{}"#,
    r#""type":"tool_result","tool_use_id":"t1","content":5"#,
    r#""type":"compaction","first_kept_entry_id":"record0""#,
    r#""type":"truncation","tool_use_id":"t1","record_id":"record0""#,
    r#""type":"retract","target":7"#,
    r#""content":"no type""#,
];

/// Lines that are not records.
const JUNK: &[&[u8]] = &[
    b"",
    b"  ",
    b"\0\0\0",
    b"[1,2]",
    b"5",
    b"{",
    br#"{"type":"user","content":"to"#,
    br#"{"type":"user","content":nul}"#,
    b"{\"type\":\"user\",\"content\":\"\xff\"}",
    b"\xe6\x97",
];

/// Beginnings of records.
const TORN: &[&[u8]] = &[
    br#"{"#,
    br#"{"id":"x","type":"user","content":"to"#,
    br#"{"id":"x","type":"user","content":[{"type":"text","text":"\"#,
    b"{\"type\":\"user\",\"content\":\"\xe6\x97",
];

impl Generator<'_> {
    fn mark(&mut self) -> usize {
        self.last += 1;
        self.last
    }

    fn add(&mut self, body: Body) {
        let key = self.mark();
        self.bodies.push((key, body));
    }

    /// Adds a turn in one of the formats that rebuild reads, or a few unrelated records.
    fn add_turn_or_records(&mut self) {
        match self.choices.below(6) {
            0 => self.own_turn(),
            1 => self.current_turn(),
            2 => self.first_turn(),
            3 => self.message_turn(),
            _ => {
                for _ in 0..1 + self.choices.below(4) {
                    self.add_any_record();
                }
            }
        }
    }

    /// Adds a turn in our own format: a prompt, a reply, its calls as records, their results in any order, and an
    /// answer.
    fn own_turn(&mut self) {
        let (ask, look, end) = (self.words(true), self.words(false), self.words(false));
        self.add(Body::User(ask));
        self.add(Body::Assistant(look));
        let mut answers = Vec::new();
        for _ in 0..self.choices.below(4) {
            let call = self.call();
            answers.push(self.answer(&call.id));
            self.add(Body::Call(call));
        }
        while !answers.is_empty() {
            let answer = answers.remove(self.choices.below(answers.len()));
            self.add(Body::Result(answer));
        }
        self.add(Body::Assistant(end));
    }

    /// Adds a turn in claw0's current format: every call twice, as a block of the reply and as a record before its
    /// result.
    fn current_turn(&mut self) {
        let (ask, mut look, end) = (self.words(true), self.words(false), self.words(false));
        look.is_string = false;
        let calls: Vec<Call> = (0..1 + self.choices.below(3)).map(|_| self.call()).collect();
        look.pieces.extend(calls.iter().cloned().map(Piece::Call));
        self.add(Body::User(ask));
        self.add(Body::Assistant(look));
        for call in calls {
            let answer = self.answer(&call.id);
            // The copy has its own mark, which shows whether it was kept.
            let mark = self.mark();
            self.add(Body::Call(Call { mark, ..call }));
            self.add(Body::Result(answer));
        }
        self.add(Body::Assistant(end));
    }

    /// Adds a turn in claw0's first format: the results of its calls come first, then the rest of the turn.
    fn first_turn(&mut self) {
        let calls: Vec<Call> = (0..1 + self.choices.below(3)).map(|_| self.call()).collect();
        for call in &calls {
            let answer = Answer { form: Form::Output, ..self.answer(&call.id) };
            self.add(Body::Result(answer));
        }
        let ask = self.words(true);
        self.add(Body::User(ask));
        for call in calls {
            let look = self.words(false);
            self.add(Body::Assistant(look));
            self.add(Body::Call(call));
        }
        let end = self.words(false);
        self.add(Body::Assistant(end));
    }

    /// Adds a turn of messages written as records: calls and results are blocks in lists.
    fn message_turn(&mut self) {
        let (ask, mut look) = (self.words(true), self.words(false));
        look.is_string = false;
        let mut back = Content { is_string: false, pieces: Vec::new() };
        for _ in 0..1 + self.choices.below(2) {
            let call = self.call();
            back.pieces.push(Piece::Result(Answer { pin: false, ..self.block_answer(&call.id) }));
            look.pieces.push(Piece::Call(call));
        }
        if self.choices.one_in(3) {
            let mark = self.mark();
            back.pieces.push(Piece::Text(mark, ""));
        }
        self.add(Body::User(ask));
        self.add(Body::Assistant(look));
        self.add(Body::User(back));
    }

    fn add_any_record(&mut self) {
        let body = match self.choices.below(10) {
            0 | 1 => Body::User(self.content(true)),
            2 | 3 => Body::Assistant(self.content(false)),
            4 | 5 => Body::Call(self.call()),
            6 | 7 => {
                let id = self.some_call();
                Body::Result(self.answer(&id))
            }
            8 => Body::Silent(self.choices.of_these(SILENT)),
            _ => Body::Junk(self.choices.of_these(JUNK)),
        };
        self.add(body);
    }

    /// Returns content with one piece of text.
    fn words(&mut self, is_string: bool) -> Content {
        let mark = self.mark();
        Content { is_string, pieces: vec![Piece::Text(mark, self.choices.of_these(TAILS))] }
    }

    /// Returns random content, which may be invalid in a record of this role.
    fn content(&mut self, of_user: bool) -> Content {
        let pieces = (0..self.choices.below(4)).map(|_| self.piece(of_user)).collect();
        Content { is_string: self.choices.one_in(3), pieces }
    }

    fn piece(&mut self, of_user: bool) -> Piece {
        let mark = self.mark();
        match (self.choices.below(10), of_user) {
            (0, _) => Piece::Blank(self.choices.of_these(BLANKS)),
            (1, _) => Piece::Thinking(mark, self.choices.one_in(2)),
            (2, false) => Piece::Redacted(mark),
            (2 | 3, true) => Piece::Image(mark),
            (3 | 4, false) => Piece::Call(self.call()),
            (4 | 5, true) => {
                let id = self.some_call();
                Piece::Result(self.block_answer(&id))
            }
            (5, false) if self.choices.one_in(4) => Piece::Image(mark),
            (6, true) if self.choices.one_in(4) => Piece::Call(self.call()),
            (6, false) if self.choices.one_in(4) => {
                let id = self.some_call();
                Piece::Result(self.block_answer(&id))
            }
            _ => Piece::Text(mark, self.choices.of_these(TAILS)),
        }
    }

    fn call(&mut self) -> Call {
        let mark = self.mark();
        let id = match self.choices.below(5) {
            0 | 1 => self.choices.of_these(IDS).to_owned(),
            2 if self.choices.one_in(4) => "x".repeat(60 + self.choices.below(10)),
            _ => format!("call_{mark}"),
        };
        self.calls.push(id.clone());
        Call { mark, id }
    }

    /// Returns the id of an earlier call, or one of [`IDS`], which may belong to any call or to none.
    fn some_call(&mut self) -> String {
        match self.choices.below(self.calls.len().min(200) + 1) {
            0 => self.choices.of_these(IDS).to_owned(),
            number => self.calls[self.calls.len() - number].clone(),
        }
    }

    fn answer(&mut self, id: &str) -> Answer {
        let mark = self.mark();
        let form = match self.choices.below(7) {
            0 => Form::Empty(self.choices.of_these(EMPTY)),
            1 => Form::List,
            2 => Form::Image,
            3 => Form::Long,
            4 => Form::Output,
            _ => Form::Short,
        };
        let (is_error, pin) = (self.choices.one_in(5), self.choices.one_in(8));
        Answer { mark, id: id.to_owned(), form, is_error, pin }
    }

    /// Returns a result for a list of blocks, without the members that only records have.
    fn block_answer(&mut self, id: &str) -> Answer {
        let answer = self.answer(id);
        let form = if answer.form == Form::Output { Form::Short } else { answer.form };
        Answer { form, pin: false, ..answer }
    }

    /// Drops, repeats and moves records.
    fn disorder(&mut self) {
        for _ in 0..self.choices.below(5) {
            let (from, to) =
                (self.choices.below(self.bodies.len()), self.choices.below(self.bodies.len()));
            match self.choices.below(4) {
                0 if self.bodies.len() > 1 => drop(self.bodies.remove(from)),
                1 => self.bodies.swap(from, to),
                2 => {
                    let body = self.bodies.remove(from);
                    self.bodies.insert(to, body);
                }
                _ => self.repeat(from, to),
            }
        }
    }

    /// If the body at `from` is a call or a result, inserts a copy with its own mark at `to`.
    fn repeat(&mut self, from: usize, to: usize) {
        let mark = self.mark();
        let body = match &self.bodies[from].1 {
            Body::Call(call) => Body::Call(Call { mark, ..call.clone() }),
            Body::Result(answer) => Body::Result(Answer { mark, ..answer.clone() }),
            _ => return,
        };
        let key = self.mark();
        self.bodies.insert(to, (key, body));
    }

    /// Inserts view records. Each refers to a record before it, or, in some compactions, to a missing record.
    fn add_views(&mut self) {
        for _ in 0..self.choices.below(5) {
            let at = 1 + self.choices.below(self.bodies.len());
            let about = self.choices.below(at);
            let body = match self.choices.below(3) {
                0 => self.compaction(about),
                1 => self.truncation(at).unwrap_or_else(|| self.compaction(about)),
                _ => Body::Retract { target: self.bodies[about].0 },
            };
            let key = self.mark();
            self.bodies.insert(at, (key, body));
        }
    }

    fn compaction(&mut self, about: usize) -> Body {
        let kept = if self.choices.one_in(6) { usize::MAX } else { self.bodies[about].0 };
        Body::Compaction {
            kept,
            hint: self.choices.of_these(&[Hint::None, Hint::Right, Hint::Wrong]),
        }
    }

    /// Returns a truncation of the last long result before a position, if there is one.
    fn truncation(&mut self, before: usize) -> Option<Body> {
        let is_right = !self.choices.one_in(4);
        self.bodies[..before].iter().rev().find_map(|(of, body)| match body {
            Body::Result(answer) if answer.form == Form::Long => {
                let (call, text) = (answer.id.clone(), answer.string()?);
                Some(Body::Truncation { of: *of, call, text, is_right })
            }
            _ => None,
        })
    }

    /// Assigns ids to the records, and adds the bytes before and after each record on its line.
    fn finish(mut self) -> Conversation {
        let has_ids = self.choices.below(3) > 0;
        let is_tidy = self.choices.below(2) > 0;
        let bodies = std::mem::take(&mut self.bodies);
        let mut items: Vec<Item> = Vec::new();
        for (key, body) in bodies {
            let id = match self.choices.below(20) {
                0 if !items.is_empty() => Id::Same(items[self.choices.below(items.len())].key),
                1..4 => Id::Place,
                _ if has_ids => Id::Own,
                _ => Id::Place,
            };
            let before = if is_tidy { Before::Bytes("") } else { self.before(&body) };
            let after = self.choices.of_these(&["", "", "", "\r", " ", "\0"]);
            items.push(Item { key, id, body, before, after });
        }
        Conversation { bom: self.choices.one_in(10), ended: !self.choices.one_in(4), items }
    }

    /// Returns the bytes before a record on its line.
    fn before(&mut self, body: &Body) -> Before {
        if matches!(body, Body::Junk(_) | Body::Silent(_)) {
            return Before::Bytes("");
        }
        match self.choices.below(12) {
            0 => Before::Record,
            1 => Before::Torn(self.choices.of_these(TORN)),
            2 => Before::Bytes("\0\0"),
            3 => Before::Bytes(" \t"),
            _ => Before::Bytes(""),
        }
    }
}
