//! Transcripts of other programs.
//!
//! The dialect is detected from the content, never from a file name, and once per file. claw0's two formats ([`claw0`])
//! are read record by record, like the format of clawutils. All other formats are translated: a reader writes records
//! of clawutils, each with the id or the offset of the line from which it was made, and the result is an [`Input`] like
//! any other. Code that reads records therefore needs no knowledge of dialects.
//!
//! Each line is scanned once, in file order: it is translated, and its id and parent go into the index of the tree. Then
//! the translations of the lines on the path to the chosen leaf are put in order. The few lines whose translation depends
//! on others are read again at that time. Memory holds the index, the translated text without its long values, and the
//! longest line; the long values stay in the file.

pub mod blocks;
pub mod chat;
pub mod claude_code;
pub mod claw0;
pub mod codex;
pub mod copilot;
pub mod draft;
pub mod gemini_cli;
pub mod ids;
pub mod joined;
pub mod looks;
pub mod pi;
pub mod program;
pub mod source;
pub mod time;
pub mod translation;
pub mod tree;
pub mod writer;

use crate::exit::{Exit, fail};
use crate::finding::rules;
use crate::input::Input;
use crate::input::origin::Remark;
use crate::json::Object;
use clap::ValueEnum;
use looks::Looks;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use translation::Translation;
use tree::{Node, Path, PathEnd, Tree};

/// A format of another program that is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Dialect {
    /// Sessions of pi, OpenClaw and GoClaw
    #[value(alias = "openclaw", alias = "goclaw")]
    Pi,
    /// Project files of Claude Code
    ClaudeCode,
    /// Rollout files of Codex CLI
    Codex,
    /// Messages for OpenAI's API or a compatible one
    Openai,
    /// Contents for Gemini's API
    Gemini,
    /// Chats of Gemini CLI
    GeminiCli,
    /// Sessions of GitHub Copilot CLI
    Copilot,
}

impl Dialect {
    /// Returns the name in options and in the header of a translation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Pi => "pi",
            Dialect::ClaudeCode => "claude-code",
            Dialect::Codex => "codex",
            Dialect::Openai => "openai",
            Dialect::Gemini => "gemini",
            Dialect::GeminiCli => "gemini-cli",
            Dialect::Copilot => "copilot",
        }
    }

    /// Returns the dialect with this name, which is not that of one of its programs.
    #[must_use]
    pub fn named(name: &str) -> Option<Dialect> {
        Dialect::value_variants().iter().copied().find(|dialect| dialect.name() == name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Pi => "pi, OpenClaw or GoClaw",
            Dialect::ClaudeCode => "Claude Code",
            Dialect::Codex => "Codex",
            Dialect::Openai => "a program that calls OpenAI's API",
            Dialect::Gemini => "a program that calls Gemini's API",
            Dialect::GeminiCli => "Gemini CLI",
            Dialect::Copilot => "Copilot CLI",
        })
    }
}

/// The options for reading an input that another program may have written.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The dialect, if it is not to be detected.
    pub from: Option<Dialect>,
    /// The id of the record at the end of the branch to read, if it is not the one that the other program would
    /// continue.
    pub leaf: Option<String>,
    /// True if lines that are not part of the conversation are kept as records that readers ignore.
    pub keeps_all: bool,
    /// The directory for a temporary file, if the translation is long.
    pub directory: PathBuf,
}

impl Choice {
    /// Refuses a leaf, because this input has only one branch.
    fn require_no_leaf(&self, input: &Input) -> anyhow::Result<()> {
        let name = &input.name;
        match self.leaf {
            Some(_) => {
                fail(Exit::Data, format!("cannot choose a leaf in '{name}': it has no branches"))
            }
            None => Ok(()),
        }
    }
}

/// Returns the input itself if it has records of clawutils or claw0, or else its translation.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if it holds no transcript, or the
/// leaf does not exist in it.
pub fn open(input: Input, choice: &Choice) -> anyhow::Result<Input> {
    let dialect = match choice.from {
        Some(dialect) => dialect,
        None => match looks::of(&input)? {
            Looks::Dialect(dialect) => dialect,
            looks => {
                choice.require_no_leaf(&input)?;
                return looks.require_records(&input).map(|()| input);
            }
        },
    };
    match dialect {
        Dialect::Pi => pi::read(&input, choice),
        Dialect::ClaudeCode => claude_code::read(&input, choice),
        Dialect::Codex => codex::read(&input, choice),
        Dialect::GeminiCli => gemini_cli::read(&input, choice),
        Dialect::Copilot => copilot::read(&input, choice),
        Dialect::Openai | Dialect::Gemini => chat::read(&input, dialect, choice),
    }
}

/// Returns [`Dialect::Pi`] if pi, OpenClaw or GoClaw wrote the record. They write `message` records, and their session
/// headers have `timestamp` where the headers of clawutils and claw0 have `created`.
#[must_use]
pub fn foreign_tree(object: &Object<'_>) -> Option<Dialect> {
    let kind = object.string("type")?;
    let tree = match kind.as_ref() {
        "message" => object.get("message").is_some_and(|message| message.starts_with('{')),
        "session" => object.get("timestamp").is_some() && object.get("created").is_none(),
        _ => false,
    };
    tree.then_some(Dialect::Pi)
}

/// Returns the text of a file that another program keeps beside its sessions; `None` if it is not a regular file of at most
/// `most` bytes.
fn text_beside(file: &std::path::Path, most: u64) -> Option<String> {
    let file = File::open(file).ok()?;
    let is_small = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= most);
    if is_small { std::io::read_to_string(file).ok() } else { None }
}

/// Returns the leaf to read: the chosen one, or else `last`.
///
/// # Errors
/// Status 65 if no record has the chosen id or offset.
fn choose_leaf<K: Copy>(
    tree: &Tree<K>,
    input: &Input,
    choice: &Choice,
    last: Option<Node>,
) -> anyhow::Result<Option<Node>> {
    let Some(id) = &choice.leaf else { return Ok(last) };
    let by_address = || {
        let offset = id.strip_prefix('@')?.parse::<u64>().ok()?;
        tree.nodes().find(|node| tree.entry(*node).place.offset == offset)
    };
    match tree.find(id).or_else(by_address) {
        Some(leaf) => Ok(Some(leaf)),
        None => {
            let name = &input.name;
            fail(
                Exit::Data,
                format!("cannot find leaf '{id}' in '{name}'; claw-check lists branches"),
            )
        }
    }
}

/// Adds remarks for the records with the id of an earlier one, and orders the remarks as the lines.
fn remark_twins<K: Copy>(tree: &Tree<K>, twins: &[Node], out: &mut Translation<'_>) {
    let message = "an earlier record has the same id; its children are read as this one's";
    for node in twins {
        let (rule, place) = (&rules::DUPLICATE_ID, tree.entry(*node).place);
        let (id, message) = (Some(tree.id(*node).to_owned()), message.to_owned());
        out.remark(Remark { rule, place, id, message });
    }
    out.sort_remarks();
}

/// Adds a remark if the walk from the leaf ended at a missing parent or in a cycle.
fn remark_path<K: Copy>(tree: &Tree<K>, path: &Path, out: &mut Translation<'_>) {
    let (Some(first), false) = (path.nodes.first(), path.end == PathEnd::Root) else { return };
    let parent_node = if let PathEnd::Cycle(parent) = path.end { Some(parent) } else { None };
    let names = tree.names([Some(*first), parent_node].into_iter().flatten());
    let id = names.get(first).map(|id| (*id).to_owned());
    let (rule, message) = match &path.end {
        PathEnd::Root => return,
        PathEnd::Missing(parent) => (
            &rules::MISSING_PARENT,
            format!("its parent '{parent}' is not in the file; reading begins here"),
        ),
        PathEnd::Cycle(parent) => {
            let parent = names.get(parent).copied().unwrap_or_default();
            let message =
                format!("its parent '{parent}' is also its descendant; reading begins here");
            (&rules::PARENT_CYCLE, message)
        }
    };
    out.remark(Remark { rule, place: tree.entry(*first).place, id, message });
}

/// Adds a note for each branch that does not end on `path`; see [`Tree::other_branches`].
fn note_branches<K: Copy>(
    tree: &Tree<K>,
    path: &[Node],
    is_member: impl Fn(Node) -> bool,
    counts: impl Fn(Node) -> bool,
    out: &mut Translation<'_>,
) {
    let branches = tree.other_branches(path, is_member, counts);
    let ends = branches.iter().flat_map(|(leaf, _, from)| [Some(*leaf), *from]).flatten();
    let names = tree.names(ends);
    for (leaf, count, from) in &branches {
        let place = tree.entry(*leaf).place;
        let address = || crate::id::address(place.offset);
        let id = names.get(leaf).map_or_else(address, |id| (*id).to_owned());
        let records = if *count == 1 { "1 record" } else { &format!("{count} records") };
        let (rule, origin) = match from.and_then(|from| names.get(&from)) {
            Some(from) => (&rules::OTHER_BRANCH, format!("after '{from}'")),
            None => (&rules::OTHER_ROOT, "with its own first record".to_owned()),
        };
        let message = format!("another branch, {records} {origin}; --leaf {id} reads it");
        out.note(Remark { rule, place, id: Some(id), message });
    }
}

#[cfg(test)]
mod tests;
