//! Project files of Claude Code: records that form a tree, in which each names its parent as `parentUuid`.
//!
//! They are read as versions 2.0.76, 2.1.330 and 2.1.332 read them. These versions were observed while they resumed sessions;
//! there is no public source. The types of records that the program of version 2.1.332 has are known by name.
//!
//! - The records of type `user`, `assistant`, `attachment` and `system` with a `uuid` form the chain of a conversation,
//!   from its root to its leaf. The leaf is the last record in the file that is neither in a sidechain, nor of type
//!   `system`, nor an API error.
//! - There is one record per block. The records of a reply share `message.id`, and each repeats the usage.
//! - With parallel calls, each result is a child of the record of its call, and the chain continues after only one of
//!   the results. A plain walk would lose the others. Therefore, if one record of a reply is on the path, all its
//!   records are read, and so are the results that are their children.
//! - A compaction consists of a `compact_boundary` record, which names the record before it as `logicalParentUuid`, and
//!   a summary. `preservedMessages` names earlier records that come right after the summary.
//! - Results can be replaced, see `replaced.rs`, and the file of a subagent can continue its session, see `base.rs`.

mod base;
pub mod record;
mod replaced;
pub mod sidechains;

use crate::dialect::joined::Joined;
use crate::dialect::source::SourceLine;
use crate::dialect::translation::{Chunk, Translation};
use crate::dialect::tree::{Node, ParentName, Tree};
use crate::dialect::{Choice, choose_leaf, note_branches, remark_path, remark_twins};
use crate::finding::rules;
use crate::input::Input;
use crate::input::origin::{Remark, SourcePlace};
use crate::json;
use crate::json::outline::Value;
use base::Base;
use foldhash::fast::RandomState;
use record::{Boundary, Facts, Record};
use replaced::Replacements;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The properties of a record in the index.
#[derive(Clone, Copy, Debug)]
struct Kind {
    role: Role,
    is_sidechain: bool,
    /// The number of the reply that it is part of, by `message.id`; 0 if there is none.
    reply: u32,
    /// Its translation. Summaries are translated later, because they depend on the boundary.
    chunk: Chunk,
    /// True if it is the first record of its reply in the file.
    begins_reply: bool,
    /// True if it has the same facts as the first record of its reply.
    has_facts_of_first: bool,
}

/// The role of a record in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Prompt,
    Results,
    Assistant,
    Attachment,
    Boundary,
    Summary,
    /// No role: the record is only a link of the chain.
    None,
}

/// The records of a file.
#[derive(Default)]
struct Project {
    tree: Tree<Kind>,
    /// The session that it continues, whose file comes first.
    base: Base,
    replacements: Replacements,
    /// The first record with a session's id; or the first such record with the working directory, if there is one.
    header: Option<SourcePlace>,
    /// True if that record has the working directory.
    has_directory: bool,
    /// What the program calls the session: for each of [`TITLES`], the newest one.
    titles: [Option<String>; TITLES.len()],
    /// The numbers of the replies, by `message.id`.
    replies: HashMap<Box<str>, u32, RandomState>,
    /// The number of the newest reply, and the facts of its first record.
    newest: (u32, Facts<'static>),
    boundaries: HashMap<Node, Boundary>,
}

/// A step of the translation, in the order of the conversation.
enum Step {
    /// Append a record.
    Record(Node),
    /// Translate the records of one reply.
    Reply(Vec<Node>),
    /// Translate a summary, which replaces everything before the boundary.
    Summary(Node, Node),
}

/// Translates a project file.
///
/// # Errors
/// Fails if it cannot be read, or the translation cannot be written; fails with 65 if the leaf does not exist.
pub fn read(input: &Input, choice: &Choice) -> anyhow::Result<Input> {
    let (Joined { source, files }, base, missing) = Base::of(input)?;
    let mut out = Translation::new(&source, choice);
    out.set_files(files);
    let mut project = Project { base, ..Project::default() };
    out.each_line(&mut |line, out| project.take(line, out))?;
    let twins = project.tree.finish();
    let missing = missing.or_else(|| project.base.remark_of(&project.tree));
    missing.into_iter().for_each(|remark| out.remark(remark));
    let tree = &project.tree;
    remark_twins(tree, &twins, &mut out);
    project.write_title(&mut out)?;
    if let Some(leaf) = choose_leaf(tree, input, choice, project.leaf())? {
        let path = tree.path(leaf, |node| project.before(node));
        remark_path(tree, &path, &mut out);
        let others = project.others_of_replies(&path.nodes);
        let members: Vec<Node> = path.nodes.iter().chain(&others).copied().collect();
        let is_sidechain = |node: Node| tree.entry(node).kind.is_sidechain;
        let is_in_sidechain = is_sidechain(leaf);
        let is_member = |node: Node| is_sidechain(node) == is_in_sidechain;
        let counts = |node: Node| {
            matches!(tree.entry(node).kind.role, Role::Prompt | Role::Results | Role::Assistant)
        };
        note_branches(tree, &members, is_member, counts, &mut out);
        let steps = project.steps(&path.nodes, &others, &mut out);
        project.write(steps, &mut out)?;
    }
    out.finish(&rules::UNKNOWN_TYPE)
}

impl Project {
    /// Reads a record that names the session.
    fn title(&mut self, kind: &str, record: Value<'_>) {
        for (title, (own, member)) in self.titles.iter_mut().zip(TITLES) {
            let text = record.string(member).filter(|text| kind == own && !text.trim().is_empty());
            *title = text.map(Cow::into_owned).or(title.take());
        }
    }

    /// Writes the header again if the session has a name, which stands after it in the file.
    fn write_title(&self, out: &mut Translation<'_>) -> anyhow::Result<()> {
        let title = self.titles.iter().flatten().next();
        let (Some(title), Some(place)) = (title, self.header) else { return Ok(()) };
        if let Some(line) = out.reader().line(place)? {
            out.header(place, |out| record::header(line, Some(title), out));
        }
        Ok(())
    }

    /// Adds a record to the index, and translates it if that does not depend on others.
    fn take(&mut self, line: SourceLine<'_>, out: &mut Translation<'_>) {
        let (record, place) = (Record::of(line), line.place);
        // Newer versions write records without a directory first.
        let has_directory = line.value.get("cwd").is_some();
        let is_own = place.offset >= self.base.begin;
        if is_own
            && record.has_session
            && (self.header.is_none() || has_directory && !self.has_directory)
        {
            self.header = Some(place);
            self.has_directory = has_directory;
            out.header(place, |out| record::header(line, None, out));
        }
        let source = record.source();
        out.keep(&source);
        let kind = record.kind.and_then(json::string).unwrap_or_default();
        let id = source.id.as_deref().filter(|_| !OUTSIDE.contains(&&*kind));
        let Some(id) = id else {
            match &*kind {
                replaced::KIND => self.replacements.take(line),
                base::KIND => {}
                kind if OUTSIDE.contains(&kind) => {
                    if is_own {
                        self.title(kind, line.value);
                    }
                }
                kind => out.unknown(format!("records of the unknown type '{kind}'"), place),
            }
            return;
        };
        let role = role(&record, &kind, line.value);
        if role == Role::None && !LINKS.contains(&&*kind) {
            out.unknown(format!("records of the unknown type '{kind}'"), place);
        }
        let reply = record.message.filter(|_| role == Role::Assistant).and_then(|it| it.id);
        let reply = reply.and_then(json::string);
        let (reply, begins_reply) = reply.map_or((0, false), |id| self.number_of_reply(&id));
        let parent = record.parent.and_then(json::string);
        let parent = parent.as_deref().map_or(ParentName::None, ParentName::Id);
        let node = self.tree.len() as Node;
        if role == Role::Boundary {
            self.boundaries.insert(node, Boundary::of(line.value));
        }
        let facts = if reply > 0 { Facts::of(&record) } else { Facts::default() };
        let chunk = out.chunk(|out| match reply {
            0 => record::write(&record, &source, out),
            _ => record::reply(&record, &source, begins_reply.then_some(&facts), out),
        });
        let is_newest = self.newest.0 == reply;
        let has_facts_of_first = begins_reply || is_newest && self.newest.1 == facts;
        if begins_reply {
            self.newest = (reply, facts.into_owned());
        }
        let kind = Kind {
            role,
            is_sidechain: record.is_sidechain,
            reply,
            chunk,
            begins_reply,
            has_facts_of_first,
        };
        self.tree.add(place, Some(id), parent, kind);
    }

    /// Appends the steps to the translation.
    fn write(&self, steps: Vec<Step>, out: &mut Translation<'_>) -> anyhow::Result<()> {
        let mut lines = out.reader();
        for step in steps {
            match step {
                Step::Record(node) => {
                    let entry = self.tree.entry(node);
                    out.add(entry.place, entry.kind.chunk);
                    if entry.kind.role == Role::Results {
                        self.replacements.write(entry.place, out)?;
                    }
                }
                Step::Reply(nodes) => {
                    let entries = || nodes.iter().map(|node| self.tree.entry(*node));
                    let (Some(first), Some(last)) = (entries().next(), entries().next_back())
                    else {
                        continue;
                    };
                    if first.kind.begins_reply && last.kind.has_facts_of_first {
                        out.add(first.place, first.kind.chunk);
                    } else {
                        let last = lines.line(last.place)?.map(Record::of);
                        let facts = last.map(|last| Facts::of(&last).into_owned());
                        if let Some(record) = lines.line(first.place)?.map(Record::of) {
                            let source = record.source();
                            out.append(first.place, |out| {
                                record::reply(&record, &source, facts.as_ref(), out)
                            });
                        }
                    }
                    entries().skip(1).for_each(|entry| out.add(entry.place, entry.kind.chunk));
                }
                Step::Summary(boundary, node) => {
                    let place = self.tree.entry(node).place;
                    let boundary = self.boundaries.get(&boundary);
                    if let (Some(line), Some(boundary)) = (lines.line(place)?, boundary) {
                        out.append(place, |out| record::summary(line, boundary, out));
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the number of a reply, and true if it is new.
    fn number_of_reply(&mut self, id: &str) -> (u32, bool) {
        if let Some(number) = self.replies.get(id) {
            return (*number, false);
        }
        let next = self.replies.len() as u32 + 1;
        self.replies.insert(id.into(), next);
        (next, true)
    }

    /// Returns the record that Claude Code would continue from.
    fn leaf(&self) -> Option<Node> {
        let is_leaf =
            |node: &Node| !matches!(self.tree.entry(*node).kind.role, Role::None | Role::Boundary);
        let is_main = |node: &Node| is_leaf(node) && !self.tree.entry(*node).kind.is_sidechain;
        let is_own = |node: &Node| self.tree.entry(*node).place.offset >= self.base.begin;
        let nodes = || self.tree.nodes().filter(is_own);
        nodes().rfind(is_main).or_else(|| nodes().rfind(is_leaf))
    }

    /// Returns the record with which a walk towards the root continues after a record without a parent: the one before a
    /// boundary, or the one after which a subagent began.
    fn before(&self, node: Node) -> Option<Node> {
        match self.boundaries.get(&node) {
            Some(boundary) => self.tree.find(boundary.before.as_ref()?),
            None => self.base.before(node, &self.tree),
        }
    }

    /// Returns the records that belong to replies on the path but are not on it: further blocks, and results of calls
    /// in them.
    fn others_of_replies(&self, path: &[Node]) -> Vec<Node> {
        let mut is_member = self.tree.flags(path);
        let kind = |node: Node| self.tree.entry(node).kind;
        let mut others = Vec::new();
        for node in self.tree.nodes() {
            let Some(parent) = self.tree.parent(node) else { continue };
            let is_apart = is_member[node as usize] || !is_member[parent as usize];
            if is_apart || kind(parent).reply == 0 {
                continue;
            }
            let is_other = match kind(node).role {
                Role::Assistant => kind(node).reply == kind(parent).reply,
                Role::Results => kind(parent).role == Role::Assistant,
                _ => false,
            };
            if is_other {
                is_member[node as usize] = true;
                others.push(node);
            }
        }
        others
    }

    /// Returns the steps of the translation, in the order of the conversation.
    fn steps(&self, path: &[Node], others: &[Node], out: &mut Translation<'_>) -> Vec<Step> {
        let kind = |node: Node| self.tree.entry(node).kind;
        // For each reply on the path, its records, and results that are not on the path.
        let mut replies = vec![(Vec::new(), Vec::new()); self.replies.len() + 1];
        let mut members: Vec<Node> = path.iter().chain(others).copied().collect();
        members.sort_unstable();
        let is_other = self.tree.flags(others);
        for node in members {
            if kind(node).reply > 0 {
                replies[kind(node).reply as usize].0.push(node);
            } else if is_other[node as usize] {
                let parent = self.tree.parent(node).map_or(0, |parent| kind(parent).reply);
                replies[parent as usize].1.push(node);
            }
        }
        let order = self.in_order(path, out);
        let (mut steps, mut done) = (Vec::new(), HashSet::new());
        let mut boundary = None;
        for (index, node) in order.iter().copied().enumerate() {
            match kind(node).role {
                // Attachments of a prompt are sent before it.
                Role::Prompt => {
                    let is_attached = |it: &Node| kind(*it).role == Role::Attachment;
                    let after = order[index + 1..].iter().copied().take_while(is_attached);
                    steps.extend(after.clone().chain([node]).map(Step::Record));
                    done.extend(after);
                }
                Role::Assistant if kind(node).reply > 0 => {
                    let (blocks, results) = std::mem::take(&mut replies[kind(node).reply as usize]);
                    if !blocks.is_empty() {
                        steps.push(Step::Reply(blocks));
                        steps.extend(results.into_iter().map(Step::Record));
                    }
                }
                Role::Boundary => {
                    boundary = Some(node);
                    steps.push(Step::Record(node));
                }
                Role::Summary if boundary.is_some() => {
                    steps.extend(boundary.take().map(|boundary| Step::Summary(boundary, node)));
                }
                _ if done.contains(&node) => {}
                _ => steps.push(Step::Record(node)),
            }
        }
        steps
    }

    /// Returns the path with preserved records moved to the place after their boundary.
    fn in_order(&self, path: &[Node], out: &mut Translation<'_>) -> Vec<Node> {
        if self.boundaries.is_empty() {
            return path.to_vec();
        }
        let mut moved: HashSet<Node> = HashSet::new();
        let mut preserved: HashMap<Node, Vec<Node>> = HashMap::new();
        for boundary in path.iter().rev() {
            let Some(own) = self.boundaries.get(boundary) else { continue };
            let mut nodes = Vec::new();
            for id in &own.preserved {
                match self.tree.find(id) {
                    Some(node) if moved.insert(node) => nodes.push(node),
                    Some(_) => {}
                    None => {
                        let place = self.tree.entry(*boundary).place;
                        let message =
                            format!("the compaction keeps record '{id}', which does not exist");
                        out.remark(Remark {
                            rule: &rules::UNKNOWN_FIRST_KEPT,
                            place,
                            id: None,
                            message,
                        });
                    }
                }
            }
            preserved.insert(*boundary, nodes);
        }
        let mut order = Vec::with_capacity(path.len());
        for node in path {
            // The translation has preserved records between the boundary and the summary, because a compaction keeps
            // only what follows the boundary.
            if !moved.contains(node) {
                order.push(*node);
            }
            order.extend(preserved.remove(node).unwrap_or_default());
        }
        order
    }
}

/// The records that name the session, the most important first: their types, and the members with the name. The last one is
/// what old versions wrote, a summary.
const TITLES: [(&str, &str); 3] =
    [("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")];

/// Types of records that are not part of the chain.
const OUTSIDE: [&str; 43] = [
    "queue-operation",
    "last-prompt",
    "mode",
    "permission-mode",
    "tools-used",
    "atis-latch",
    "cost-state",
    "file-history-snapshot",
    "file-history-delta",
    "attribution-snapshot",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "api-request-resumed",
    "summary",
    "custom-title",
    "ai-title",
    "agent-name",
    "agent-color",
    "agent-setting",
    "tag",
    "pr-link",
    "frame-link",
    "worktree-state",
    "relocated",
    "continued-in",
    "ended-by-model",
    "resume-head-vouch",
    "derived-from",
    "data-flow-records",
    "data-flow-incomplete",
    "artifact-comment-monitor",
    "artifact-autoreact-ledger",
    "bridge-session",
    "isolation-latch",
    "session-owner",
    "dev-mods",
    "memory-mode",
    "observer-ref",
    "repl-mode",
    "hybrid-organization",
    "host-row",
    // It is neither uploaded nor shown again, but sent.
    "history-suppression",
];

/// Types of records that can be links of the chain without being part of the conversation.
const LINKS: [&str; 4] = ["system", "progress", "attachment", "assistant"];

fn role(record: &Record<'_>, kind: &str, value: Value<'_>) -> Role {
    let message = record.message;
    let is_error = record.is_error || message.is_some_and(|it| it.model == Some("\"<synthetic>\""));
    let is_result = |block: Value<'_>| block.get("type") == Some("\"tool_result\"");
    let content = message.and_then(|it| it.content).and_then(Value::elements);
    match kind {
        "user" if record.is_summary => Role::Summary,
        "user" if content.into_iter().flatten().any(is_result) => Role::Results,
        "user" => Role::Prompt,
        "assistant" if is_error => Role::None,
        "assistant" => Role::Assistant,
        "attachment" => Role::Attachment,
        "system" if value.get("subtype") == Some("\"compact_boundary\"") => Role::Boundary,
        _ => Role::None,
    }
}

#[cfg(test)]
mod tests;
