//! Repairs the session of another program where it lies: a file in, the changes of its lines out.
//!
//! A session is stuck if its program sends, after each resume, a request that a provider refuses. `repair` finds what
//! would be refused or lost, and changes as little as possible so that *that program* can go on: lines that are right keep
//! their bytes. The stages are the same for all programs; a file for each (`claude_code`, `codex`, `pi`, `claw0`)
//! knows its records.
//!
//! 1. `lines`: bytes and torn lines.
//! 2. The header, if the program needs one.
//! 3. `links`: ids and parents of a tree.
//! 4. `blocks`: texts, media, thinking and calls in the records that are sent.
//! 5. `pairs`: calls and their results.
//!
//! The stages are repeated until nothing changes, so a repaired session is never changed again.

mod blocks;
mod claude_code;
mod claw0;
mod codex;
mod last_good;
mod lines;
mod links;
mod pairs;
mod pi;
mod program;
mod salvage;
mod sheet;

pub use sheet::{Change, Edit};

use crate::dialect::Dialect;
use crate::dialect::looks::{self, Looks};
use crate::exit::{Error, Exit, fail};
use crate::input::Input;
use program::Program;
use sheet::Sheet;

/// The most rounds of the stages. Each round ends with fewer faults, and three are nearly always enough.
const MOST_ROUNDS: usize = 20;

/// What may be changed besides what is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Leave out all thinking. Whether a signature is valid is known only to the provider that wrote it.
    pub drops_thinking: bool,
}

/// A repaired session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The changes, in the order of the lines; empty if nothing is wrong.
    pub edits: Vec<Edit>,
    /// The text of the repaired file.
    pub text: Vec<u8>,
    /// True if the session is clawutils' own: claw-rebuild repairs it while reading, and nothing is changed.
    pub is_own: bool,
}

/// Repairs the session in `input`, which is read into memory.
///
/// # Errors
/// Status 65 if it is no session that can be repaired; 74 if it cannot be read.
pub fn repair(input: &Input, options: Options) -> anyhow::Result<Repaired> {
    let program = program_of(input)?;
    let bytes = input.bytes()?;
    if program.is_own() {
        return Ok(Repaired { edits: Vec::new(), text: bytes.into_owned(), is_own: true });
    }
    let cannot = |why| Error::new(Exit::Data, format!("cannot repair '{}': {why}", input.name));
    let sheet = mend(&*program, &bytes, &input.name, options).map_err(cannot)?;
    let mut text = Vec::with_capacity(bytes.len());
    sheet.write(&mut text)?;
    Ok(Repaired { edits: sheet.edits(), text, is_own: false })
}

/// Returns the length in bytes of the beginning of `input` before its damage: it ends where a prompt of the user would
/// follow, and nothing in it is wrong. `None` if there is no such beginning.
///
/// # Errors
/// As [`repair`].
pub fn last_good(input: &Input, repaired: &Repaired) -> anyhow::Result<Option<usize>> {
    let program = program_of(input)?;
    let Some(first) = repaired.edits.first() else { return Ok(None) };
    Ok(last_good::length(&*program, &input.bytes()?, &input.name, first.line))
}

/// Returns the program that wrote a session.
fn program_of(input: &Input) -> anyhow::Result<Box<dyn Program>> {
    Ok(match looks::of(input)? {
        looks @ Looks::Dialect(dialect) => match dialect {
            Dialect::ClaudeCode => Box::new(claude_code::ClaudeCode),
            Dialect::Codex => Box::new(codex::Codex),
            Dialect::Pi => Box::new(pi::Pi::of(&input.bytes()?)),
            Dialect::Openai | Dialect::Gemini | Dialect::GeminiCli | Dialect::Copilot => {
                return unknown(looks, input);
            }
        },
        Looks::Records => Box::new(claw0::Records::of(&input.bytes()?)),
        looks => return unknown(looks, input),
    })
}

fn unknown<T>(looks: Looks, input: &Input) -> anyhow::Result<T> {
    let name = &input.name;
    if let Looks::Dialect(dialect) = looks {
        let text = format!(
            "cannot repair '{name}': a session of {dialect} cannot be repaired in place; 'claw-session carry' continues it in another program"
        );
        return fail(Exit::Data, text);
    }
    let why = match looks {
        Looks::Empty if input.length == 0 => "it is empty".to_owned(),
        Looks::Empty if input.bytes()?.contains(&0) => {
            "its text is lost: it has NUL bytes and no record".to_owned()
        }
        Looks::Empty => "it has no record".to_owned(),
        looks => looks.problem().unwrap_or_default(),
    };
    fail(
        Exit::Data,
        format!(
            "cannot repair '{name}': {why}; give a session of Claude Code, Codex, pi, OpenClaw or claw0"
        ),
    )
}

/// Returns the lines as they should be, or why they cannot be repaired.
fn mend<'a>(
    program: &dyn Program,
    bytes: &'a [u8],
    name: &str,
    options: Options,
) -> Result<Sheet<'a>, String> {
    let mut sheet = Sheet::new(bytes, lines::read);
    sheet.terminate();
    program.begin(&mut sheet, name)?;
    for _ in 0..MOST_ROUNDS {
        let before = sheet.changes();
        let path = program.links().map(|links| links::mend(program, links, &mut sheet));
        let sent = program.sent(&sheet, path.as_deref().unwrap_or_default());
        blocks::mend(program, &mut sheet, &sent, options.drops_thinking);
        pairs::mend(program, &mut sheet, &sent);
        if sheet.changes() == before {
            break;
        }
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests;
