//! The replies that a transcript records, turn by turn.

use crate::call::reply::Reply;
use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::messages::range::Turns;
use clawutils::messages::reply::ReplyState;
use clawutils::messages::view;
use clawutils::record::{Body, Record};
use std::collections::HashSet;

/// A turn: a prompt and all replies to it and to the results of its tool calls.
#[derive(Debug)]
pub struct Turn {
    /// Its number, counted from 1 as `claw-rebuild --to-turn` does.
    pub number: u64,
    /// The replies in order.
    pub replies: Vec<RecordedReply>,
    /// True if its prompt was retracted.
    is_retracted: bool,
}

/// A reply in a transcript.
#[derive(Debug)]
pub struct RecordedReply {
    /// The id of its first record.
    pub id: String,
    /// The offset of that record. The records before it are the conversation that the model replied to.
    pub offset: u64,
    /// The line of that record.
    pub line: Option<u64>,
    /// The reply.
    pub reply: Reply,
}

impl Turn {
    /// Returns the name under which the reply at `index` is reported.
    pub fn name(&self, index: usize) -> String {
        let number = self.number;
        match self.replies.len() {
            0 | 1 => format!("turn {number}"),
            _ => format!("turn {number}, call {}", index + 1),
        }
    }
}

/// Returns the turns of a transcript. Turns and replies that were undone, and interrupted replies, are left out.
///
/// # Errors
/// Fails if the transcript cannot be read.
pub fn read(input: &Input) -> anyhow::Result<Vec<Turn>> {
    let retracted = view::whole(std::slice::from_ref(input))?.retracted;
    let mut reader = Reader { retracted, ..Reader::default() };
    let line_of = |record: &Record<'_>| input.original(&record.place).line;
    let mut lines = Lines::of(input);
    while let Some(batch) = lines.batch()? {
        for record in batch.filter_map(|line| Record::new(line.ok()?).ok()) {
            reader.take(&record, line_of(&record));
        }
    }
    reader.turns.retain(|turn| !turn.is_retracted);
    Ok(reader.turns)
}

#[derive(Default)]
struct Reader {
    retracted: HashSet<String>,
    boundaries: Turns,
    turns: Vec<Turn>,
    /// The state of the reply that is being read, and the ids of its calls.
    open: Option<(ReplyState, HashSet<String>)>,
    /// The ids of the calls whose results came before the calls themselves.
    early: HashSet<String>,
}

impl Reader {
    /// Takes the next record. `line` is the number of its line in the file.
    fn take(&mut self, record: &Record<'_>, line: Option<u64>) {
        let is_retracted = self.retracted.contains(record.id.as_ref());
        if self.boundaries.begins_with(&record.body) {
            let number = self.turns.len() as u64 + 1;
            self.turns.push(Turn { number, replies: Vec::new(), is_retracted });
        }
        match &record.body {
            _ if is_retracted => {}
            Body::User { .. } => self.open = None,
            Body::Assistant { .. } => {
                let takes = |(state, _): &(ReplyState, _)| state.takes_text();
                if !self.open.as_ref().is_some_and(takes) {
                    self.begin(record, line);
                }
                self.add(record);
            }
            Body::ToolUse { id, .. } => {
                let takes = |(state, _): &(ReplyState, _)| state.takes_calls();
                if !self.open.as_ref().is_some_and(takes) {
                    self.begin(record, line);
                }
                if let Some((state, calls)) = &mut self.open {
                    state.add_call(self.early.remove(id.as_ref()));
                    calls.insert(id.to_string());
                }
                self.add(record);
            }
            Body::ToolResult { id, .. } => match &mut self.open {
                Some((state, calls)) if calls.contains(id.as_ref()) => state.end(),
                _ => drop(self.early.insert(id.to_string())),
            },
            _ => {}
        }
    }

    /// Begins a reply with this record.
    fn begin(&mut self, record: &Record<'_>, line: Option<u64>) {
        self.open = Some((ReplyState::default(), HashSet::new()));
        // A reply before the first prompt belongs to no turn.
        if let Some(turn) = self.turns.last_mut() {
            turn.replies.push(RecordedReply {
                id: record.id.to_string(),
                offset: record.offset,
                line,
                reply: Reply::default(),
            });
        }
    }

    /// Adds a record to the reply that is being read.
    fn add(&mut self, record: &Record<'_>) {
        let reply = self.turns.last_mut().and_then(|turn| turn.replies.last_mut());
        if let Some(reply) = reply {
            reply.reply.take(&record.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(lines: &[&str]) -> Vec<(String, String, Vec<String>, Option<u64>)> {
        let input = Input::memory("t", (lines.join("\n") + "\n").into_bytes());
        let read = read(&input).unwrap();
        let case = |turn: &Turn, index: usize, reply: &RecordedReply| {
            let calls = reply.reply.calls.iter().map(|call| call.name.clone() + &call.input);
            (turn.name(index), reply.reply.text.clone(), calls.collect(), reply.line)
        };
        let cases = read.iter().flat_map(|turn| {
            turn.replies.iter().enumerate().map(move |(index, reply)| case(turn, index, reply))
        });
        cases.collect()
    }

    const PROMPT: &str = r#"{"type":"user","content":"q"}"#;
    const TEXT: &str = r#"{"type":"assistant","content":[{"type":"text","text":"a"}]}"#;
    const CALL: &str = r#"{"type":"tool_use","tool_use_id":"c","name":"f","input":{"b":1,"a":2}}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"c","content":"r"}"#;

    #[test]
    fn replies_are_found_turn_by_turn() {
        let case = |name: &str, text: &str, calls: &[&str], line| {
            let calls = calls.iter().map(|call| (*call).to_owned()).collect::<Vec<_>>();
            (name.to_owned(), text.to_owned(), calls, Some(line))
        };
        assert_eq!(
            turns(&[TEXT, PROMPT, PROMPT, TEXT, CALL, RESULT, TEXT, TEXT, PROMPT, TEXT, PROMPT]),
            [
                case("turn 1, call 1", "a", &[r#"f{"a":2,"b":1}"#], 4),
                case("turn 1, call 2", "a\na", &[], 7),
                case("turn 2", "a", &[], 10),
            ]
        );
        // A result that an early version of claw0 wrote before its call.
        let early = [PROMPT, RESULT, CALL, TEXT];
        assert_eq!(turns(&early).len(), 2);
    }

    #[test]
    fn undone_and_interrupted_replies_are_left_out() {
        let begun =
            TEXT.replace("\"type\":\"assistant\"", "\"type\":\"assistant\",\"interrupted\":true");
        let prompt = PROMPT.replace('{', r#"{"id":"p","#);
        let reply = TEXT.replacen('{', r#"{"id":"r","#, 1);
        let undo = |id: &str| format!(r#"{{"type":"retract","target":"{id}"}}"#);
        assert_eq!(turns(&[PROMPT, &begun, TEXT]).len(), 1);
        assert_eq!(turns(&[&prompt, &reply, &undo("r"), TEXT]).len(), 1);
        let names = turns(&[&prompt, &reply, &undo("r"), &undo("p"), PROMPT, TEXT]);
        assert_eq!(names.iter().map(|case| &*case.0).collect::<Vec<_>>(), ["turn 2"]);
    }
}
