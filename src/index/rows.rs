//! Converts a record to rows of the tables in the database of claw-index.
//!
//! Each prompt and each reply is a row of `messages`, and so is each tool call and each tool result, even if it is
//! stored as a block in the content of a prompt or reply, as other programs do.

use crate::compact::details::{self, Access};
use crate::injected::{self, Part};
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::record::content::{Block, BlockKind, Content};
use crate::record::{Body, Record};
use crate::session::time;
use crate::usage::{Call, Counts};
use std::borrow::Cow;

/// The rows of a record.
#[derive(Clone, Debug, Default)]
pub struct Rows<'a> {
    /// The time of the record in Unix seconds.
    pub timestamp: Option<f64>,
    /// The messages, in order.
    pub messages: Vec<MessageRow<'a>>,
    /// The tokens that a provider counted.
    pub usage: Option<UsageRow>,
    /// The row for a record that is not a message.
    pub other: Option<OtherRow>,
}

/// The role of text that a program put into a message of the user.
pub const PROGRAM: &str = "program";

/// A message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageRow<'a> {
    /// `user`, `assistant`, `tool_use` or `tool_result`; `program` for text that a program put into a message of the user.
    pub role: &'static str,
    /// Its text.
    pub content: Cow<'a, str>,
    /// The model's thinking.
    pub thinking: Option<String>,
    /// The id of a tool call, or of the call that a result answers.
    pub tool_call_id: Option<Cow<'a, str>>,
    /// The name of the tool.
    pub tool_name: Option<Cow<'a, str>>,
    /// The input of the tool, as JSON.
    pub tool_input: Option<Cow<'a, str>>,
    /// The text of a result.
    pub tool_result: Option<Cow<'a, str>>,
    /// True if the tool failed.
    pub is_error: bool,
    /// True if the reply broke off.
    pub is_interrupted: bool,
    /// The model.
    pub model: Option<Cow<'a, str>>,
    /// The other members of the record, as JSON.
    pub raw: Option<String>,
}

/// The file that a tool call names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRow {
    /// Its path.
    pub path: String,
    /// The kind of access: reading or writing.
    pub access: Access,
}

/// The tokens of a call to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// `reply`, `compaction` or `checkpoint`; `aside` for a call that is not part of the conversation.
    pub kind: &'static str,
    /// An id that the same call has in every copy of its transcript.
    pub call: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The counts.
    pub counts: Counts,
}

/// A record that is not a message.
#[derive(Clone, Debug)]
pub enum OtherRow {
    /// The header of a session.
    Session(SessionRow),
    /// A new label of the session.
    Label(String),
    /// A compaction, a checkpoint or a failed call to the provider: a row of the table of its type.
    Row(TableRow),
    /// A retraction of the record with this id.
    Retraction(String),
}

/// A row for a record in the table of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The name of the table.
    pub table: &'static str,
    /// The columns after those that say where and when the record was written, in the order of the table.
    pub columns: Vec<Column>,
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// A text, or null.
    Text(Option<String>),
    /// A number, or null.
    Number(Option<u64>),
    /// True or false.
    Flag(bool),
}

/// The header of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionRow {
    /// The session's id.
    pub id: Option<String>,
    /// The key.
    pub key: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// The time of its creation in Unix seconds.
    pub created: Option<f64>,
    /// The program that wrote the original, if another program did.
    pub dialect: Option<String>,
    /// The id of the session that this one was copied from.
    pub parent: Option<String>,
}

impl MessageRow<'_> {
    /// Returns the text that a search looks at: that of the message, the call's name and input, or the result.
    #[must_use]
    pub fn searched(&self) -> String {
        let MessageRow { content, thinking, tool_name, tool_input, tool_result, .. } = self;
        let parts = [Some(&**content), thinking.as_deref(), tool_name.as_deref()];
        searched(parts, tool_input.as_deref(), tool_result.as_deref())
    }

    /// Returns the file that the call names.
    #[must_use]
    pub fn file(&self) -> Option<FileRow> {
        let (name, input) = (self.tool_name.as_ref()?, self.tool_input.as_ref()?);
        let access = details::access(name)?;
        Some(FileRow { path: details::path(input)?, access })
    }
}

/// Returns the text of a message that a search looks at: `parts`, and the input and the result of a tool.
#[must_use]
pub fn searched(parts: [Option<&str>; 3], input: Option<&str>, result: Option<&str>) -> String {
    let without = result.and_then(injected::without_reminders);
    let result = without.as_deref().or(result);
    let parts = parts.into_iter().chain([result]).flatten().filter(|text| !text.is_empty());
    let mut text = parts.collect::<Vec<_>>().join("\n");
    if let Some(input) = input {
        text.push('\n');
        text.push_str(&json::unescaped(input));
    }
    text
}

impl<'a> Rows<'a> {
    /// Returns the rows of a record.
    #[must_use]
    pub fn of(record: &'a Record<'a>) -> Rows<'a> {
        let Ok(object) = Object::parse(&record.text) else { return Rows::default() };
        let timestamp = object.get("ts").and_then(time::of_ts).map(seconds);
        let mut messages = messages(&record.body);
        if matches!(record.body, Body::User { .. }) {
            separate(&mut messages, &object);
        }
        if let Some(first) = messages.first_mut() {
            first.model = string(&object, "model").map(Cow::Owned);
            first.raw = others(&object);
            let reasoning = object.string("reasoning").filter(|text| !text.trim().is_empty());
            first.thinking = reasoning.map(Cow::into_owned).or(first.thinking.take());
        }
        Rows { timestamp, messages, usage: usage(record, &object), other: other(record, &object) }
    }
}

/// Returns the messages of a record.
fn messages<'a>(body: &'a Body<'a>) -> Vec<MessageRow<'a>> {
    match body {
        Body::User { content, .. } => in_content("user", content),
        Body::Assistant { content, .. } => in_content("assistant", content),
        Body::Interrupted { content } => {
            let mut rows = in_content("assistant", content);
            rows.iter_mut().for_each(|row| row.is_interrupted = true);
            rows
        }
        Body::ToolUse { id, name, input } => {
            vec![call(id.as_ref().into(), name, input.as_ref().into())]
        }
        Body::ToolResult { id, content, is_error, .. } => {
            vec![result(id.as_ref().into(), content, *is_error)]
        }
        _ => Vec::new(),
    }
}

/// Gives text that a program put into a message of the user a row of its own, after that of the person's words.
fn separate(rows: &mut Vec<MessageRow<'_>>, object: &Object<'_>) {
    let Some(own) = rows.first_mut().filter(|row| row.role == "user") else { return };
    if object.get("injected").is_some() {
        let typed = object.string("typed").map(|text| Cow::Owned(text.into_owned()));
        let program = MessageRow { role: PROGRAM, ..own.clone() };
        match typed {
            Some(content) => {
                own.content = content;
                rows.insert(1, program);
            }
            None => own.role = PROGRAM,
        }
        return;
    }
    let parts = injected::parts(&own.content);
    let texts = parts.iter().filter_map(|part| match part {
        Part::Program { text, .. } => Some(*text),
        Part::Typed(_) => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return;
    }
    let typed = injected::typed(&own.content).into_owned();
    if typed.is_empty() {
        own.role = PROGRAM;
        return;
    }
    own.content = Cow::Owned(typed);
    let program = MessageRow { role: PROGRAM, content: Cow::Owned(text), ..MessageRow::default() };
    rows.insert(1, program);
}

/// Returns a message with the text of `content`, and one for each call and each result in it. If a prompt consists only
/// of results, there is no message besides theirs.
fn in_content<'a>(role: &'static str, content: &'a Content<'a>) -> Vec<MessageRow<'a>> {
    let mut own = MessageRow { role, ..MessageRow::default() };
    let blocks = match content {
        Content::Text(raw) => {
            own.content = json::string(raw).unwrap_or_default();
            return vec![own];
        }
        Content::Blocks(blocks) => blocks,
    };
    let (mut rows, mut texts, mut thinking) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match &block.kind {
            BlockKind::ToolUse { id, .. } => {
                let (name, input) = (block.member("name"), block.member("input"));
                let input = input.unwrap_or("{}").into();
                rows.push(call(id.to_string().into(), name.unwrap_or("\"\""), input));
            }
            BlockKind::ToolResult { id } => {
                let is_error = block.member("is_error") == Some("true");
                let content = block.member("content").unwrap_or("\"\"");
                rows.push(result(id.to_string().into(), content, is_error));
            }
            BlockKind::Thinking { .. } => thinking.extend(block.thinking()),
            _ => texts.extend(shown(block)),
        }
    }
    if rows.is_empty() || role == "assistant" || !texts.is_empty() {
        own.content = Cow::Owned(texts.join("\n"));
        own.thinking = (!thinking.is_empty()).then(|| thinking.join("\n"));
        rows.insert(0, own);
    }
    rows
}

/// Returns the text of a text block, or the type of any other block in brackets, such as `[image]`.
fn shown(block: &Block<'_>) -> Option<String> {
    match block.kind {
        BlockKind::Text | BlockKind::Blank => block.text(),
        _ => block.member("type").and_then(json::string).map(|kind| ["[", &kind, "]"].concat()),
    }
}

fn call<'a>(id: Cow<'a, str>, name: &str, input: Cow<'a, str>) -> MessageRow<'a> {
    let name = json::string(name).map(|name| Cow::Owned(name.into_owned()));
    let (tool_call_id, tool_input) = (Some(id), Some(input));
    MessageRow {
        role: "tool_use",
        tool_call_id,
        tool_name: name,
        tool_input,
        ..MessageRow::default()
    }
}

fn result<'a>(id: Cow<'a, str>, content: &'a str, is_error: bool) -> MessageRow<'a> {
    let text = match Content::parse(content) {
        Ok(Content::Text(_)) => json::string(content).unwrap_or_default(),
        Ok(Content::Blocks(blocks)) => {
            Cow::Owned(blocks.iter().filter_map(shown).collect::<Vec<_>>().join("\n"))
        }
        Err(_) => Cow::default(),
    };
    let (tool_call_id, tool_result) = (Some(id), Some(text));
    MessageRow { role: "tool_result", tool_call_id, tool_result, is_error, ..MessageRow::default() }
}

/// The members of messages that are not repeated in the column `raw_json`, because other columns have them.
const COLUMNS: [&str; 12] = [
    "type",
    "id",
    "ts",
    "content",
    "output",
    "input",
    "tool_use_id",
    "name",
    "is_error",
    "model",
    "reasoning",
    "interrupted",
];

/// Returns the members of a record that are not in [`COLUMNS`], as JSON.
fn others(object: &Object<'_>) -> Option<String> {
    let rest = object.members().filter(|member| !COLUMNS.contains(&&*member.name()));
    let rest = rest.fold(Members::new(), Members::member);
    (!rest.is_empty()).then(|| rest.into_json())
}

fn usage(record: &Record<'_>, object: &Object<'_>) -> Option<UsageRow> {
    let kind = match record.body {
        Body::Assistant { .. } | Body::Interrupted { .. } => "reply",
        Body::Compaction { .. } => "compaction",
        Body::Checkpoint(_) => "checkpoint",
        _ => return None,
    };
    // An id that is only an address, such as `@0`, can belong to a different record in another file.
    let own = Some(&*record.id).filter(|id| !id.starts_with('@')).map(str::to_owned);
    let Call { model, counts } = Call::of(object)?;
    let call = string(object, "request_id").or(own);
    Some(UsageRow { kind, call, model, provider: string(object, "provider"), counts })
}

fn other(record: &Record<'_>, object: &Object<'_>) -> Option<OtherRow> {
    let string = |name: &str| string(object, name);
    let text = |name: &str| Column::Text(string(name));
    let list = |name: &str| Column::Text(object.get(name).map(str::to_owned));
    let number = |name: &str| Column::Number(object.number(name));
    let or_else = |name: &str, other: &str| Column::Text(string(name).or(Some(other.to_owned())));
    let (table, columns) = match &record.body {
        Body::Session => return Some(OtherRow::Session(session(object))),
        Body::Label => return string("label").map(OtherRow::Label),
        Body::Retract { target } => return Some(OtherRow::Retraction(target.clone())),
        Body::Compaction { summary, first_kept, retry_of, .. } => {
            let strategy = object.string("strategy");
            let columns = vec![
                Column::Text(Some(summary.text.clone())),
                Column::Text(Some(first_kept.clone())),
                number("tokens_before"),
                number("tokens_after"),
                Column::Flag(strategy.as_deref() == Some("checkpoint")),
                text("strategy"),
                text("model"),
                Column::Flag(summary.needs_retry),
                Column::Text(retry_of.clone()),
                Column::Flag(false),
            ];
            ("compactions", columns)
        }
        Body::Checkpoint(_) => {
            let columns = vec![
                or_else("summary", ""),
                number("tokens_at_checkpoint"),
                number("message_count_at_checkpoint"),
                list("topics"),
                list("key_decisions"),
                list("open_questions"),
                text("generated_by"),
                text("covers_up_to"),
                Column::Flag(false),
            ];
            ("checkpoints", columns)
        }
        Body::Error => {
            let (class, message) = (or_else("class", "unknown"), or_else("message", ""));
            ("errors", vec![class, number("status"), text("model"), message])
        }
        _ => return None,
    };
    Some(OtherRow::Row(TableRow { table, columns }))
}

fn session(object: &Object<'_>) -> SessionRow {
    let inside =
        |name: &str, member: &str| object.object(name).and_then(|inner| string(&inner, member));
    let created = string(object, "created").and_then(|text| time::of_text(&text));
    SessionRow {
        id: string(object, "id"),
        key: string(object, "key"),
        label: string(object, "label"),
        created: created.map(seconds),
        dialect: inside("source", "dialect"),
        parent: inside("parent", "session"),
    }
}

/// Converts microseconds to seconds.
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

fn string(object: &Object<'_>, name: &str) -> Option<String> {
    object.string(name).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Input;
    use crate::input::lines::Lines;

    /// Passes the rows of one record to `check`.
    fn with(text: &str, check: impl FnOnce(Rows<'_>)) {
        let input = Input::memory("t", text.as_bytes().to_vec());
        let mut lines = Lines::of(&input);
        let line = lines.batch().unwrap().unwrap().next().unwrap().unwrap();
        check(Rows::of(&Record::new(line).unwrap()));
    }

    #[test]
    fn prompts_replies_calls_and_results_become_messages() {
        let reply = r#"{"type":"assistant","id":"a1","ts":5.5,"model":"m","request_id":"r","usage":{"input_tokens":3,"output_tokens":2},"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"see"},{"type":"tool_use","id":"t","name":"read","input":{"path":"a\nb"}},{"type":"image","source":{}}]}"#;
        with(reply, |rows| {
            assert_eq!(rows.timestamp, Some(5.5));
            let [own, call] = &rows.messages[..] else { panic!("{rows:?}") };
            assert_eq!((own.role, &*own.content), ("assistant", "see\n[image]"));
            assert_eq!(own.thinking.as_deref(), Some("hm"));
            assert_eq!(own.model.as_deref(), Some("m"));
            let raw = r#"{"request_id":"r","usage":{"input_tokens":3,"output_tokens":2}}"#;
            assert_eq!(own.raw.as_deref(), Some(raw));
            assert_eq!((call.role, call.tool_name.as_deref()), ("tool_use", Some("read")));
            assert_eq!(call.searched(), "read\n{\"path\":\"a\nb\"}");
            assert_eq!(call.file(), Some(FileRow { path: "a\nb".into(), access: Access::Read }));
            let usage = rows.usage.unwrap();
            assert_eq!((usage.call.as_deref(), usage.counts.output), (Some("r"), 2));
        });
        let results = r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"no"}]}]}"#;
        with(results, |rows| {
            let [row] = &rows.messages[..] else { panic!("{rows:?}") };
            assert_eq!(
                (row.role, row.tool_result.as_deref(), row.is_error),
                ("tool_result", Some("no"), true)
            );
        });
        with(r#"{"type":"user","content":"hi"}"#, |rows| {
            assert_eq!((&*rows.messages[0].content, rows.messages[0].raw.as_deref()), ("hi", None));
        });
    }

    #[test]
    fn other_records_are_not_messages() {
        for (text, is_expected) in [
            (
                r#"{"type":"retract","target":"x"}"#,
                (|row| matches!(row, OtherRow::Retraction(_))) as fn(_) -> _,
            ),
            (r#"{"type":"label","label":"x"}"#, |row| matches!(row, OtherRow::Label(_))),
            (r#"{"type":"error","class":"auth","status":401,"message":"no"}"#, |row| {
                matches!(row, OtherRow::Row(TableRow { table: "errors", columns })
                    if columns[1] == Column::Number(Some(401)))
            }),
            (
                r#"{"type":"session","id":"s","created":"1970-01-01T00:00:02Z","source":{"dialect":"codex"}}"#,
                |row| {
                    matches!(
                        row,
                        OtherRow::Session(SessionRow { created: Some(2.0), dialect: Some(_), .. })
                    )
                },
            ),
        ] {
            with(text, |rows| {
                assert!(rows.messages.is_empty() && rows.other.is_some_and(is_expected), "{text}");
            });
        }
    }
}
