//! Turns records into entries, in file order.

use super::{
    CallOutcome, Item, Refusal, ReplyFacts, ShowNotes, ShowOptions, ShownCompaction, ShownEntry,
    ShownPart, facts,
};
use crate::cost::PriceList;
use crate::estimate::{Estimate, Method, Request};
use crate::finding::{Finding, Place, rules};
use crate::hosted;
use crate::id::Id;
use crate::injected::{self, Part};
use crate::input::lines::Lines;
use crate::input::{self, Input};
use crate::json::{self, Object};
use crate::messages::range::Turns;
use crate::messages::reply::ReplyState;
use crate::messages::view::{self, View};
use crate::messages::{Message, rebuild};
use crate::record::content::{Block, BlockKind, Content, Role};
use crate::record::truncation::KeptSpan;
use crate::record::{Body, Record};
use crate::redact::Patterns;
use crate::session::time;
use crate::shorten;
use anyhow::Context;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// A limit on what a walk remembers: at least this many of the newest tool calls, to name them at their results; at
/// most this many records, to find the first record that a compaction keeps; and at most this many results that
/// precede their calls.
const KEPT: usize = 4096;
/// The length limit of the part of an input that identifies a call, in characters.
const MAX_INPUT: usize = 60;

/// A function that receives entries.
type Each<'e> = dyn FnMut(&ShownEntry) -> io::Result<()> + 'e;

/// Inputs whose entries are read, once or several times.
#[derive(Debug)]
pub struct Reading<'r> {
    inputs: &'r [Input],
    view: Rc<View>,
    options: &'r ShowOptions,
    part: ShownPart,
}

impl<'r> Reading<'r> {
    /// Prepares to read a part of the inputs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn new(
        inputs: &'r [Input],
        options: &'r ShowOptions,
        part: ShownPart,
    ) -> anyhow::Result<Reading<'r>> {
        Ok(Reading { inputs, view: Rc::new(view::whole(inputs)?), options, part })
    }

    /// Passes each entry to a function, and returns the diagnostics.
    ///
    /// # Errors
    /// See [`TranscriptWalk::read`].
    pub fn read(&self, each: &mut Each<'_>) -> anyhow::Result<ShowNotes> {
        let ShownPart { offset, end, .. } = self.part;
        let mut walk = TranscriptWalk::new(Rc::clone(&self.view), self.options, self.part);
        walk.read(self.inputs, offset..end.unwrap_or(u64::MAX), each)?;
        Ok(walk.notes(self.inputs))
    }

    /// Like [`Reading::read`], with a function that cannot fail.
    ///
    /// # Errors
    /// If an input cannot be read; 65 if it is in a dialect that cannot be read.
    pub fn visit(&self, each: &mut dyn FnMut(&ShownEntry)) -> anyhow::Result<ShowNotes> {
        self.read(&mut |entry| {
            each(entry);
            Ok(())
        })
    }
}

/// A walk through a transcript. It keeps its state between reads, so that a file can be shown while it grows.
#[derive(Debug)]
pub struct TranscriptWalk<'v> {
    view: Rc<View>,
    redact: Option<&'v Patterns>,
    /// The prices of models.
    prices: &'v PriceList,
    start: ShownPart,
    turns: Turns,
    /// The number of the current turn.
    number: u64,
    reply: OpenReply,
    /// The tool and the start of the input of each call, by id: the newest calls, and the ones before them.
    names: [HashMap<String, (String, String)>; 2],
    /// The call ids of results that came before their calls, as in claw0's first format.
    early: HashSet<String>,
    /// The ids of the newest records that become messages, and the number of such records before each.
    recent: VecDeque<(String, u64)>,
    count: u64,
    /// The items of the record that is being read.
    items: Vec<Item>,
    /// True if redaction has changed that record.
    is_redacted: bool,
    notes: ShowNotes,
}

/// The state of the reply that is being read.
#[derive(Debug, Default)]
struct OpenReply {
    /// True from the first record of the reply until a record that does not belong to it.
    is_open: bool,
    state: ReplyState,
    calls: HashSet<String>,
    /// The last call, if nothing follows it yet.
    last: Option<String>,
}

impl<'v> TranscriptWalk<'v> {
    /// Returns a walk from `start`. `view` has the truncations and retractions. Of the options, records are redacted before
    /// they are read, and replies have their prices.
    #[must_use]
    pub fn new(view: Rc<View>, options: &'v ShowOptions, start: ShownPart) -> TranscriptWalk<'v> {
        TranscriptWalk {
            view,
            redact: options.redact.as_ref(),
            prices: &options.prices,
            start,
            turns: Turns::default(),
            number: start.turns,
            reply: OpenReply::default(),
            names: Default::default(),
            early: HashSet::new(),
            recent: VecDeque::new(),
            count: 0,
            items: Vec::new(),
            is_redacted: false,
            notes: ShowNotes::default(),
        }
    }

    /// Returns the diagnostics so far, with the places in the original files, and clears them.
    pub fn notes(&mut self, inputs: &[Input]) -> ShowNotes {
        let ShowNotes { findings, replaced } = std::mem::take(&mut self.notes);
        ShowNotes { findings: input::with_origins(inputs, findings), replaced }
    }

    /// Reads the lines in a byte range over all inputs. The range begins at the start of a line.
    ///
    /// # Errors
    /// If an input cannot be read or an entry cannot be written; 65 if an input is in a dialect that cannot
    /// be read.
    pub fn read(
        &mut self,
        inputs: &[Input],
        range: Range<u64>,
        each: &mut Each<'_>,
    ) -> anyhow::Result<()> {
        let mut lines = Lines::new(inputs, range);
        while self.read_some(&mut lines, each)? {}
        Ok(())
    }

    /// Reads the next lines, some at a time. Returns false at the end.
    ///
    /// # Errors
    /// See [`TranscriptWalk::read`].
    pub fn read_some(
        &mut self,
        lines: &mut Lines<'_>,
        each: &mut Each<'_>,
    ) -> anyhow::Result<bool> {
        let Some(batch) = lines.batch()? else { return Ok(false) };
        for line in batch {
            match rebuild::read_record(line, &mut self.notes.replaced)? {
                Err(finding) => self.notes.findings.push(finding),
                Ok(record) => self.take(&record, each).context("cannot write '<stdout>'")?,
            }
        }
        Ok(true)
    }

    /// Handles the next record.
    fn take(&mut self, record: &Record<'_>, each: &mut Each<'_>) -> io::Result<()> {
        let redact = self.redact;
        Patterns::redacted(redact, record, |record, is_redacted| {
            self.is_redacted = is_redacted;
            self.put(record, each)
        })
    }

    fn put(&mut self, record: &Record<'_>, each: &mut Each<'_>) -> io::Result<()> {
        let Ok(object) = Object::parse(&record.text) else { return Ok(()) };
        if self.turns.begins_with(&record.body) {
            self.number += 1;
            self.items.push(Item::Turn(self.number));
        }
        self.pieces(record, &object);
        let id = record.id.clone().into_owned();
        let ts = object.get("ts").and_then(time::of_ts);
        let (retracted, pinned) = (self.view.retracted.contains(&id), object.is_true("pin"));
        let mut spent = facts::spent(&object, self.prices);
        for item in std::mem::take(&mut self.items) {
            let is_call =
                matches!(item, Item::Reply(_) | Item::Compaction(_) | Item::Checkpoint(_));
            let spent = spent.take_if(|_| is_call);
            each(&ShownEntry { id: id.clone(), time: ts, retracted, pinned, spent, item })?;
        }
        Ok(())
    }

    /// Adds the items of a record.
    fn pieces(&mut self, record: &Record<'_>, object: &Object<'_>) {
        if record.body.is_message_part() {
            self.note_place(record);
        }
        match &record.body {
            Body::User { content, .. } => {
                let text = object.string("typed").map(Cow::into_owned);
                self.items.extend(text.map(|text| Item::Text { role: Role::User, text }));
                let from = self.items.len();
                self.blocks(content, Role::User, record);
                if let Some(name) = object.string("injected") {
                    inject(&name, &mut self.items[from..]);
                }
            }
            Body::Interrupted { content } => {
                self.begin_reply(facts::reply(object, self.prices));
                self.blocks(content, Role::Assistant, record);
                self.reply = OpenReply::default();
            }
            Body::Assistant { content, usage, .. } => {
                if !self.reply.is_open || !self.reply.state.takes_text() || usage.is_some() {
                    self.begin_reply(facts::reply(object, self.prices));
                }
                let reasoning = object.string("reasoning").map(Cow::into_owned);
                let reasoning = reasoning.filter(|text| !text.trim().is_empty());
                self.items.extend(reasoning.map(Item::Thinking));
                self.blocks(content, Role::Assistant, record);
            }
            Body::ToolUse { id, name, input } => self.call(id, name, input),
            Body::ToolResult { id, content, is_error, .. } => {
                let content = Content::parse(content).unwrap_or(Content::nothing());
                self.result(id, content, *is_error, record);
            }
            body => self.items.extend(self.item(body, object)),
        }
    }

    /// Adds the items of the blocks of a message. Content from the user other than tool results ends the
    /// reply before it.
    fn blocks(&mut self, content: &Content<'_>, role: Role, record: &Record<'_>) {
        for block in content.clone().into_blocks() {
            if role == Role::User && !block.is_result() {
                self.reply = OpenReply::default();
            }
            self.block(block, role, record);
        }
    }

    /// Returns the item of a record that is not part of a message.
    fn item(&self, body: &Body<'_>, object: &Object<'_>) -> Option<Item> {
        let string = |name: &str| object.string(name).map(Cow::into_owned);
        Some(match body {
            Body::Session => Item::Session(facts::session(object)),
            Body::Truncation { tool_use_id, shown, .. } => Item::Truncation {
                name: self.known(tool_use_id).map(|known| known.0),
                call: tool_use_id.clone(),
                shown: (**shown).clone(),
            },
            Body::Omission { omission, .. } => Item::Omission(omission.clone()),
            Body::Compaction { summary, first_kept, retry_of, .. } => {
                let kept = self.recent.iter().rev().find(|(id, _)| id == first_kept);
                Item::Compaction(ShownCompaction {
                    summary: (**summary).clone(),
                    records: kept.filter(|_| self.start.offset == 0).map(|kept| kept.1),
                    before: object.number("tokens_before"),
                    strategy: string("strategy"),
                    model: string("model"),
                    retry_of: retry_of.clone(),
                })
            }
            Body::Checkpoint(checkpoint) => Item::Checkpoint(checkpoint.clone()),
            Body::Retract { target } => Item::Retract(target.clone()),
            Body::Error => Item::Error(Refusal {
                class: string("class").unwrap_or_else(|| "unknown".to_owned()),
                status: object.number("status"),
                message: string("message").unwrap_or_default(),
                limit: object.number("limit"),
                actual: object.number("actual"),
            }),
            Body::Label => Item::Label(string("label")?),
            _ => return None,
        })
    }

    /// Remembers the place of a record that becomes a message.
    fn note_place(&mut self, record: &Record<'_>) {
        self.recent.push_back((record.id.to_string(), self.count));
        self.count += 1;
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
    }

    fn begin_reply(&mut self, reply: ReplyFacts) {
        self.reply = OpenReply { is_open: true, ..OpenReply::default() };
        self.items.push(Item::Reply(reply));
    }

    fn block(&mut self, block: Block<'_>, role: Role, record: &Record<'_>) {
        let member = |name: &str| block.member(name);
        match &block.kind {
            BlockKind::Blank => return,
            BlockKind::Text if role == Role::User => {
                self.items.extend(parts(&block.text().unwrap_or_default()));
            }
            BlockKind::Text => {
                self.items.push(Item::Text { role, text: block.text().unwrap_or_default() });
                let cited = Object::parse(&block.raw).ok().and_then(|it| hosted::citations(&it));
                self.items.extend(cited.map(Box::new).map(Item::Hosted));
            }
            BlockKind::Thinking { .. } if block.thinking().is_some() => {
                let text = block.thinking().unwrap_or_default();
                if !text.trim().is_empty() {
                    self.items.push(Item::Thinking(text));
                }
            }
            BlockKind::ToolUse { id, .. } => {
                let (name, input) = (member("name"), member("input"));
                self.call(id, name.unwrap_or_default(), input.unwrap_or_default());
                return;
            }
            BlockKind::ToolResult { id } => {
                let is_error = member("is_error") == Some("true");
                self.result(id, block.result_content(), is_error, record);
                return;
            }
            BlockKind::Media => self.items.push(Item::Media { role, media: facts::media(&block) }),
            BlockKind::Thinking { .. } | BlockKind::Other => {
                let object = Object::parse(&block.raw).ok();
                let act = object.as_ref().and_then(hosted::act);
                let (kind, bytes) = (hosted::kind(object.as_ref()), block.raw.len());
                let other = Item::Other { role, kind, bytes };
                self.items.push(act.map_or(other, |act| Item::Hosted(Box::new(act))));
            }
        }
        self.reply.last = None;
    }

    /// Adds a tool call. claw0 writes each call twice; the second one is skipped.
    fn call(&mut self, id: &str, name: &str, input: &str) {
        if self.reply.calls.contains(id) {
            return;
        }
        if !self.reply.is_open || !self.reply.state.takes_calls() {
            self.begin_reply(ReplyFacts::default());
        }
        let name = json::string(name).unwrap_or_default().into_owned();
        self.reply.calls.insert(id.to_owned());
        self.reply.last = Some(id.to_owned());
        if self.names[0].len() >= KEPT {
            self.names[1] = std::mem::take(&mut self.names[0]);
        }
        let mut begin = json::on_one_line(&input.chars().take(MAX_INPUT).collect::<String>());
        if input.chars().nth(MAX_INPUT).is_some() {
            begin.push('…');
        }
        self.names[0].insert(id.to_owned(), (name.clone(), begin));
        let is_answered = self.early.remove(id);
        self.reply.state.add_call(is_answered);
        let (id, input) = (id.to_owned(), input.to_owned());
        self.items.push(Item::Call { id, name, input, is_answered });
    }

    /// Returns the tool of a call and the start of its input.
    fn known(&self, call: &str) -> Option<(String, String)> {
        self.names.iter().find_map(|names| names.get(call)).cloned()
    }

    fn result(&mut self, id: &str, content: Content<'_>, is_error: bool, record: &Record<'_>) {
        let (shown, saved) = self.shortened(id, &content, record);
        let is_media = |block: &&Block<'_>| block.kind == BlockKind::Media;
        let call = self.known(id);
        if call.is_none() && self.early.len() < KEPT {
            self.early.insert(id.to_owned());
        }
        let follows = self.reply.last.take().is_some_and(|last| last == id);
        self.items.push(Item::Result(CallOutcome {
            id: id.to_owned(),
            call,
            follows,
            text: shorten::text_of(&content),
            media: content.blocks().iter().filter(is_media).map(facts::media).collect(),
            is_error,
            shown,
            saved,
        }));
        match self.reply.calls.contains(id) {
            true => self.reply.state.end(),
            // The result belongs to another reply, so this reply gets a new heading when it continues.
            false => self.reply.is_open = false,
        }
    }

    /// Returns the part of a result that a truncation keeps, and the tokens that it saves. A truncation that
    /// does not match the result is reported and ignored, unless redaction has changed the record: then the
    /// truncation is assumed to match the original.
    fn shortened(
        &mut self,
        id: &str,
        content: &Content<'_>,
        record: &Record<'_>,
    ) -> (Option<KeptSpan>, u64) {
        let key = (record.id.to_string(), id.to_owned());
        let Some(shown) = self.view.truncations.get(&key) else { return (None, 0) };
        let text = shorten::ResultText::whole(&shorten::text_of(content));
        let short = shorten::show(content, &text, shown, Some(&record.id));
        if short.is_none() && !self.is_redacted {
            self.notes.findings.push(Finding {
                rule: &rules::TRUNCATION_MISMATCH,
                place: Place { ..record.place.clone() },
                id: Some(Id::from(record.id.as_ref())),
                message: "a truncation does not fit this result and is not applied".to_owned(),
            });
            return (None, 0);
        }
        let weigh = |content: Content<'_>| weigh(&Message::new(Role::User, content));
        let now = short.map_or(0, weigh);
        (Some(shown.clone()), weigh(content.clone()).saturating_sub(now))
    }
}

/// Returns the words of the person in a text, and the text of programs, in order.
fn parts(text: &str) -> impl Iterator<Item = Item> {
    injected::parts(text).into_iter().map(|part| match part {
        Part::Typed(text) => Item::Text { role: Role::User, text: text.into_owned() },
        Part::Program { name, text } => {
            Item::Injected { name: name.to_owned(), text: text.to_owned() }
        }
    })
}

/// Turns the text of a message, all of which a program wrote, into injected text.
fn inject(name: &str, items: &mut [Item]) {
    for item in items {
        match item {
            Item::Text { text, .. } | Item::Injected { text, .. } => {
                *item = Item::Injected { name: name.to_owned(), text: std::mem::take(text) };
            }
            _ => {}
        }
    }
}

/// Returns our estimate of a message in tokens.
pub(super) fn weigh(message: &Message<'_>) -> u64 {
    let messages = std::slice::from_ref(message);
    Estimate::of(Request { messages, ..Request::default() }, Method::Script).tokens
}
