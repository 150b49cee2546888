//! The conversations of llm before version 0.32: responses, with tables for what belongs to them.

use super::{Attachment, Message, Part, Turn};
use crate::values::{self, if_there, text_or_null};
use rusqlite::{Connection, Row};
use std::collections::HashSet;

/// The tables whose rows belong to a conversation or a response, and the columns that name it. They have no indices by it.
const OWNED: [(&str, &str); 3] = [
    ("responses", "conversation_id"),
    ("tool_calls", "response_id"),
    ("tool_results", "response_id"),
];

/// The older tables of a database.
pub struct Older<'d> {
    database: &'d Connection,
    has_tools: bool,
    has_fragments: bool,
}

impl<'d> Older<'d> {
    /// Makes indices of the tables, in temporary tables: the database itself is not changed.
    pub fn new(database: &'d Connection, tables: &HashSet<String>) -> rusqlite::Result<Older<'d>> {
        for (table, owner) in OWNED.into_iter().filter(|(table, _)| tables.contains(*table)) {
            database.execute_batch(&format!(
                "CREATE TEMP TABLE own_{table} AS SELECT {owner} AS owner, rowid AS own FROM {table};
                 CREATE INDEX temp.{table}_by_owner ON own_{table} (owner);"
            ))?;
        }
        let has_tools = tables.contains("tool_calls") && tables.contains("tool_results");
        Ok(Older { database, has_tools, has_fragments: tables.contains("prompt_fragments") })
    }

    /// Returns the messages of a conversation.
    pub fn messages(&self, conversation: &str) -> rusqlite::Result<Vec<Message>> {
        let responses = self.each("responses", conversation, |row| {
            // Versions differ in the columns that they have.
            let text = |name: &str| {
                let text = if_there(text_or_null(row, name))?;
                Ok::<_, rusqlite::Error>(text.filter(|text| !text.is_empty()))
            };
            let number = |name: &str| if_there(row.get(name));
            let turn = Turn {
                id: values::text(row, "id")?,
                model: text("resolved_model")?.or(text("model")?),
                input: number("input_tokens")?,
                output: number("output_tokens")?,
                details: text("token_details")?,
                time: text("datetime_utc")?,
            };
            let all = [text("system")?, text("prompt")?, text("reasoning")?, text("response")?];
            Ok((turn, all))
        })?;
        let mut messages = Vec::new();
        for (turn, [system, prompt, reasoning, answer]) in responses {
            let (calls, results) = (self.calls(&turn.id)?, self.results(&turn.id)?);
            let answer = reasoning.map(Part::Reasoning).into_iter().chain(answer.map(Part::Text));
            let all = [
                ("system", system.map(Part::Text).into_iter().collect()),
                ("tool", results),
                ("user", self.prompt(&turn.id, prompt)?),
                ("assistant", answer.chain(calls).collect()),
            ];
            for (role, parts) in
                all.into_iter().filter(|(_, parts): &(_, Vec<Part>)| !parts.is_empty())
            {
                let (id, turn) = (format!("{}/{role}", turn.id), Some(turn.clone()));
                messages.push(Message { id, role: role.to_owned(), parts, turn });
            }
        }
        Ok(messages)
    }

    /// Returns a value for each row of a table that belongs to `owner`.
    fn each<T>(
        &self,
        table: &str,
        owner: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let own = format!("SELECT own FROM own_{table} WHERE owner = ?");
        self.select(
            &format!("SELECT * FROM {table} WHERE rowid IN ({own}) ORDER BY id"),
            owner,
            read,
        )
    }

    fn select<T>(
        &self,
        sql: &str,
        owner: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.database.prepare(sql)?.query_map([owner], read)?.collect()
    }

    fn calls(&self, response: &str) -> rusqlite::Result<Vec<Part>> {
        if !self.has_tools {
            return Ok(Vec::new());
        }
        self.each("tool_calls", response, |row| {
            let [id, name, input] = texts(row, ["tool_call_id", "name", "arguments"])?;
            let input = input.unwrap_or_else(|| "{}".to_owned());
            let name = name.unwrap_or_default();
            Ok(Part::Call(id.unwrap_or_else(|| name.clone()), name, input))
        })
    }

    /// Returns the results that a response was sent.
    fn results(&self, response: &str) -> rusqlite::Result<Vec<Part>> {
        if !self.has_tools {
            return Ok(Vec::new());
        }
        self.each("tool_results", response, |row| {
            let [id, name, output] = texts(row, ["tool_call_id", "name", "output"])?;
            let has_failed = if_there(text_or_null(row, "exception"))?.is_some();
            let id = id.or(name).unwrap_or_default();
            Ok(Part::Result(id, output.unwrap_or_default(), Vec::new(), has_failed))
        })
    }

    /// Returns the parts of a prompt: its fragments and its text, and its attachments.
    fn prompt(&self, response: &str, text: Option<String>) -> rusqlite::Result<Vec<Part>> {
        let mut words: Vec<String> = Vec::new();
        if self.has_fragments {
            let sql =
                "SELECT content FROM prompt_fragments JOIN fragments ON fragments.id = fragment_id
                WHERE response_id = ? ORDER BY \"order\"";
            words = self.select(sql, response, |row| values::text(row, 0))?;
        }
        words.extend(text);
        let text = (!words.is_empty()).then(|| Part::Text(words.join("\n")));
        let sql = "SELECT id, type, path, url, content FROM prompt_attachments
            JOIN attachments ON id = attachment_id WHERE response_id = ? ORDER BY \"order\"";
        let files = self.select(sql, response, Attachment::read)?;
        Ok(text.into_iter().chain(files.into_iter().map(Part::Attachment)).collect())
    }
}

fn texts(row: &Row<'_>, names: [&str; 3]) -> rusqlite::Result<[Option<String>; 3]> {
    let [one, two, three] = names;
    Ok([text_or_null(row, one)?, text_or_null(row, two)?, text_or_null(row, three)?])
}
