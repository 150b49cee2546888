//! The tools that the server offers: what the commands of claw-index do, with limits on the length of the results.

use crate::query;
use crate::search::{Search, session, to_second};
use crate::stats::Stats;
use clawutils::exit::{Error, Exit, fail};
use clawutils::json::Object;
use clawutils::json::write::{Members, list};
use clawutils::printable::printable_json;
use rusqlite::{Connection, Row, params};
use std::io::{self, Write};

/// The longest result, in bytes.
pub const MAX_RESULT: usize = 64 << 10;
/// The maximum number of characters of a message.
const MAX_TEXT: usize = 4000;
/// The maximum number of characters of a tool's input or result, unless it is wanted in full.
const FOLDED: usize = 400;
/// The maximum number of sessions in a list.
pub const MAX_SESSIONS: u32 = 100;
/// The maximum number of search results.
const MAX_HITS: u32 = 50;

/// A parameter: its name, its JSON type, its description, and whether it is required.
type Parameter = (&'static str, &'static str, &'static str, bool);

/// A tool: its name, its description and its parameters.
type Tool = (&'static str, &'static str, &'static [Parameter]);

/// All tools.
const TOOLS: [Tool; 5] = [
    (
        "search",
        "Search the messages, tool inputs and tool results of past sessions for words.",
        &[
            (
                "words",
                "string",
                "Words that results contain: \"a phrase\", a beginning*, -excluded",
                true,
            ),
            ("session", "string", "Search only this session: its path, id, key or label", false),
            (
                "role",
                "string",
                "Search only this role: user, assistant, tool_use or tool_result",
                false,
            ),
            (
                "since",
                "string",
                "Search only messages since this day or time, in UTC: 2026-11-23",
                false,
            ),
            ("limit", "integer", "Maximum number of results, at most 50 (default: 20)", false),
        ],
    ),
    (
        "list_sessions",
        "List past sessions, the most recent first, with the beginning of the first prompt.",
        &[
            ("limit", "integer", "Maximum number of sessions, at most 100 (default: 20)", false),
            ("skip", "integer", "Number of sessions to skip", false),
        ],
    ),
    (
        "read_turns",
        "Read turns of a past session. Long texts, and inputs and results of tools, are shortened.",
        &[
            ("session", "string", "Session: its path, id, key or label", true),
            ("first", "integer", "First turn, counted from 1 (default: 1)", false),
            ("count", "integer", "Number of turns (default: 1)", false),
            (
                "full",
                "boolean",
                "Do not shorten inputs and results of tools to 400 characters",
                false,
            ),
        ],
    ),
    (
        "statistics",
        "Show tokens by day and model, the longest sessions, tools and errors.",
        &[("limit", "integer", "Maximum number of lines of each list (default: 10)", false)],
    ),
    (
        "query",
        "Run an SQL query that reads the index. The tables are in sqlite_schema.",
        &[("sql", "string", "A SELECT statement of SQLite", true)],
    ),
];

/// Returns the definitions of all tools as a list.
pub fn definitions() -> String {
    list(TOOLS.iter().map(|(name, description, parameters)| {
        let property = |all: Members, (name, kind, description, _): &Parameter| {
            all.object(name, |it| it.string("type", kind).string("description", description))
        };
        let required = parameters.iter().filter(|it| it.3).map(|it| clawutils::json::quote(it.0));
        let schema = |it: Members| {
            it.string("type", "object")
                .object("properties", |all| parameters.iter().fold(all, property))
                .list("required", required)
                .bool("additionalProperties", false)
        };
        let hints = |it: Members| it.bool("readOnlyHint", true).bool("openWorldHint", false);
        Members::new()
            .string("name", name)
            .string("description", description)
            .object("inputSchema", schema)
            .object("annotations", hints)
            .into_json()
    }))
}

/// Returns true if there is a tool with this name.
pub fn exists(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.0 == name)
}

/// Runs a tool, and returns its result as text.
///
/// # Errors
/// Fails if an argument is wrong, or the database cannot be read.
pub fn call(name: &str, arguments: &str, database: &Connection) -> anyhow::Result<String> {
    let arguments = &Object::parse(arguments)?;
    check(name, arguments)?;
    let mut out = Bounded::default();
    let number =
        |name: &str| arguments.number(name).map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let text = |name: &str| arguments.string(name).map(|text| text.into_owned());
    let written = match name {
        "search" => {
            let since = text("since").map(|text| crate::search::since(&text)).transpose();
            let search = Search {
                words: text("words").into_iter().collect(),
                session: text("session"),
                role: text("role"),
                since: since.map_err(|why| Error::new(Exit::Usage, why))?,
                limit: number("limit").unwrap_or(20).min(MAX_HITS),
                json: true,
            };
            search.write(database, &mut out).map(drop)
        }
        "list_sessions" => {
            let limit = number("limit").unwrap_or(20).min(MAX_SESSIONS);
            sessions(database, (limit, number("skip").unwrap_or(0)), &mut out)
        }
        "read_turns" => {
            let number_of = session(database, &text("session").unwrap_or_default())?;
            let first = number("first").unwrap_or(1).max(1);
            let last = first.saturating_add(number("count").unwrap_or(1).max(1) - 1);
            turns(database, number_of, (first, last), arguments.is_true("full"), &mut out)
        }
        "statistics" => Stats { limit: number("limit").unwrap_or(10) }.write(database, &mut out),
        _ => {
            query::write(&text("sql").unwrap_or_default(), query::Format::Json, database, &mut out)
        }
    };
    if !out.is_full {
        written?;
    }
    Ok(out.into_text())
}

/// Checks the names and the types of arguments.
fn check(tool: &str, arguments: &Object<'_>) -> anyhow::Result<()> {
    let parameters = TOOLS.iter().find(|it| it.0 == tool).map_or(&[][..], |it| it.2);
    for member in arguments.members() {
        let name = member.name();
        let Some((_, kind, ..)) = parameters.iter().find(|it| it.0 == name) else {
            return fail(Exit::Usage, format!("unknown argument '{name}'"));
        };
        let fits = match *kind {
            "string" => member.value.starts_with('"'),
            "integer" => member.value.parse::<u64>().is_ok(),
            _ => ["true", "false"].contains(&member.value),
        };
        if !fits {
            return fail(Exit::Usage, format!("the argument '{name}' must be of the type {kind}"));
        }
    }
    match parameters.iter().find(|it| it.3 && arguments.get(it.0).is_none()) {
        Some((name, ..)) => fail(Exit::Usage, format!("the argument '{name}' is missing")),
        None => Ok(()),
    }
}

/// A session of a list: its path, and its description as JSON.
pub fn listed(
    database: &Connection,
    (limit, skip): (u32, u32),
) -> anyhow::Result<Vec<(String, String, Members)>> {
    let mut select = database.prepare(
        "SELECT key, coalesce(label, header_key, id), dialect, model, turn_count, message_count, total_tokens, \
        updated_at, (SELECT substr(content, 1, 160) FROM messages WHERE row BETWEEN number << 23 AND \
        ((number + 1) << 23) - 1 AND role = 'user' AND NOT retracted ORDER BY row LIMIT 1) \
        FROM sessions ORDER BY updated_at DESC, key LIMIT ?1 OFFSET ?2",
    )?;
    let read = |row: &Row<'_>| {
        let text = |index: usize| row.get::<_, Option<String>>(index);
        let number = |index: usize| row.get::<_, i64>(index);
        let updated = row.get::<_, Option<f64>>(7)?.and_then(to_second);
        let (key, name) = (text(0)?.unwrap_or_default(), text(1)?.unwrap_or_default());
        let members = Members::new()
            .string("session", &key)
            .string("name", &name)
            .optional(Members::string, "program", text(2)?.as_deref())
            .optional(Members::string, "model", text(3)?.as_deref())
            .number("turns", number(4)?)
            .number("messages", number(5)?)
            .number("tokens", number(6)?)
            .optional(Members::string, "updated", updated.as_deref())
            .optional(Members::string, "first_prompt", text(8)?.as_deref());
        Ok((key, name, members))
    };
    let rows = select.query_map([limit, skip], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn sessions(database: &Connection, page: (u32, u32), out: &mut Bounded) -> anyhow::Result<()> {
    for (_, _, members) in listed(database, page)? {
        writeln!(out, "{}", printable_json(&members.into_json()))?;
    }
    Ok(())
}

/// Writes the messages of some turns of a session.
pub fn turns(
    database: &Connection,
    session: i64,
    (first, last): (u32, u32),
    is_full: bool,
    out: &mut Bounded,
) -> anyhow::Result<()> {
    let [low, high] = crate::session::rows_of(session);
    let mut select = database.prepare(
        "SELECT turn, role, id, timestamp, content, tool_name, tool_input, tool_result FROM messages \
        WHERE row BETWEEN ?1 AND ?2 AND turn BETWEEN ?3 AND ?4 AND NOT retracted ORDER BY row",
    )?;
    let mut rows = select.query(params![low, high, first, last])?;
    let folded = if is_full { usize::MAX } else { FOLDED };
    while let Some(row) = rows.next()? {
        let text = |index: usize, most: usize| -> rusqlite::Result<Option<String>> {
            let text = row.get::<_, Option<String>>(index)?.filter(|text| !text.is_empty());
            Ok(text.map(|text| cut(&text, most)))
        };
        let time = row.get::<_, Option<f64>>(3)?.and_then(to_second);
        let line = Members::new()
            .number("turn", row.get::<_, i64>(0)?)
            .string("role", &row.get::<_, String>(1)?)
            .string("id", &row.get::<_, String>(2)?)
            .optional(Members::string, "time", time.as_deref())
            .optional(Members::string, "content", text(4, MAX_TEXT)?.as_deref())
            .optional(Members::string, "tool", text(5, FOLDED)?.as_deref())
            .optional(Members::string, "input", text(6, folded)?.as_deref())
            .optional(Members::string, "result", text(7, folded)?.as_deref());
        writeln!(out, "{}", printable_json(&line.into_json()))?;
    }
    Ok(())
}

/// Cuts a text after `most` characters, and says how many follow.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let more = text[at..].chars().count();
            format!("{}… ({more} more characters)", &text[..at])
        }
    }
}

/// A result that ends at [`MAX_RESULT`].
#[derive(Default)]
pub struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Bounded {
    /// Returns the text, with a note if it is not the whole result.
    pub fn into_text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.is_full {
            text.push_str("(the rest is left out; ask for less)\n");
        }
        match text.is_empty() {
            true => "(nothing found)\n".to_owned(),
            false => text,
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RESULT {
            self.is_full = true;
            // Lines are left out as a whole.
            let end = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
            self.bytes.truncate(end);
            return Err(io::Error::other("the result is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
