//! The spans of a turn.

use super::conventions::{self, attribute, finish_reason, operation, own};
use super::messages::{self, Messages};
use super::otlp::{Span, SpanKind};
use crate::record::content::Role;
use crate::record::digest;
use crate::show::outcome::Outcome;
use crate::show::totals::Totals;
use crate::show::{CallOutcome, Item, Refusal, ReplyFacts, ShownEntry};
use crate::usage::Counts;

/// Own attribute: the number of the turn, as in `claw-show --turn`.
const NUMBER: &str = "clawutils.turn";

/// What the spans of all turns of a session have.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The id of the session, if it has one.
    pub conversation: Option<String>,
    /// The name of the file, which stands for the id if there is none.
    pub file: String,
    /// The program.
    pub program: String,
    /// True if the spans have the text of the conversation.
    pub has_content: bool,
    /// True if a summary has replaced the beginning.
    pub is_compacted: bool,
}

/// The turn that is being read.
#[derive(Default)]
pub struct Turn {
    facts: Facts,
    number: u64,
    trace: String,
    start: i64,
    /// The time of the newest entry.
    now: i64,
    totals: Totals,
    outcome: Outcome,
    provider: Option<String>,
    model: Option<String>,
    prompt: Messages,
    /// What the model has not read yet.
    input: Messages,
    reply: Option<Reply>,
    /// The newest reply as messages.
    answer: String,
    /// The spans that have ended.
    spans: Vec<Span>,
    /// The calls without a result, with their ids.
    calls: Vec<(String, Span)>,
    /// The number of spans, without that of the turn.
    count: u64,
}

/// The reply that is being read.
struct Reply {
    span: Span,
    output: Messages,
    /// The reason why it ended; empty if it is unknown.
    finish: String,
    has_calls: bool,
}

impl Turn {
    /// Begins a turn. `id` is that of its first record.
    pub fn begin(facts: Facts, number: u64, id: &str, start: i64) -> Turn {
        let session = facts.conversation.as_ref().unwrap_or(&facts.file);
        let seed = format!("{session} {id} {start}");
        Turn {
            facts,
            number,
            trace: digest(&seed) + &digest(&format!("{seed} trace")),
            start,
            now: start,
            ..Turn::default()
        }
    }

    /// Adds an entry.
    pub fn take(&mut self, entry: &ShownEntry) {
        let before = self.now;
        self.now = entry.time.unwrap_or(before).max(before);
        self.totals.take(entry);
        self.outcome.take(entry);
        match &entry.item {
            Item::Reply(facts) => self.begin_reply(facts, before),
            Item::Text { role: Role::User, text } => {
                self.read("user", messages::text(text));
                if self.facts.has_content {
                    self.prompt.push("user", messages::text(text));
                }
            }
            Item::Injected { text, .. } => self.read("user", messages::text(text)),
            Item::Text { role: Role::Assistant, text } => self.write(messages::text(text)),
            Item::Thinking(text) => self.write(messages::reasoning(text)),
            Item::Call { id, name, input, .. } => {
                self.write(messages::call(id, name, input));
                self.call(id, name, input);
            }
            Item::Result(result) => self.result(result),
            Item::Error(refusal) => self.error(refusal, before),
            Item::Compaction(_) => self.facts.is_compacted = true,
            _ => {}
        }
    }

    /// Ends the turn, and returns its spans, that of the turn first.
    pub fn end(mut self) -> Vec<Span> {
        self.end_reply();
        let open = std::mem::take(&mut self.calls);
        self.spans.extend(open.into_iter().map(|(_, mut call)| {
            call.end = self.now;
            call
        }));
        let name = format!("{} {}", operation::TURN, self.facts.program);
        let mut span = self.span(0, None, name, SpanKind::Internal, operation::TURN, self.start);
        span.end = self.now;
        span.string(attribute::AGENT, &self.facts.program);
        self.model.iter().for_each(|model| span.string(attribute::REQUEST_MODEL, model));
        span.number(NUMBER, self.number);
        if self.totals.counts.prompt() > 0 {
            usage(&mut span, &self.totals.counts);
        }
        if self.facts.has_content {
            span.string(attribute::INPUT_MESSAGES, &self.prompt.to_json(None));
            if !self.answer.is_empty() {
                span.string(attribute::OUTPUT_MESSAGES, &self.answer);
            }
        }
        match self.outcome {
            Outcome::Failed => span.fail(own::FAILED),
            Outcome::Interrupted => span.fail(own::INTERRUPTED),
            _ => {}
        }
        self.spans.insert(0, span);
        self.spans
    }

    /// Returns a span that begins at a time.
    fn span(
        &self,
        number: u64,
        parent: Option<String>,
        name: String,
        kind: SpanKind,
        operation: &str,
        start: i64,
    ) -> Span {
        let mut span = Span {
            trace: self.trace.clone(),
            id: self.id(number),
            parent,
            name,
            kind,
            start,
            end: self.now,
            attributes: Vec::new(),
            has_failed: false,
        };
        span.string(attribute::OPERATION, operation);
        if operation != operation::TOOL {
            let provider = self.provider.as_deref().unwrap_or(own::PROVIDER);
            span.string(attribute::PROVIDER, provider);
        }
        self.facts.conversation.iter().for_each(|id| span.string(attribute::CONVERSATION, id));
        span
    }

    /// Returns a span in that of the turn.
    fn inner(&mut self, name: String, kind: SpanKind, operation: &str, start: i64) -> Span {
        self.count += 1;
        self.span(self.count, Some(self.id(0)), name, kind, operation, start)
    }

    fn id(&self, number: u64) -> String {
        digest(&format!("{} {number}", self.trace))
    }

    /// Adds to what the model reads.
    fn read(&mut self, role: &'static str, part: String) {
        if self.facts.has_content {
            self.input.push(role, part);
        }
    }

    /// Adds to what the model writes.
    fn write(&mut self, part: String) {
        let Some(reply) = &mut self.reply else { return };
        reply.span.end = self.now;
        if self.facts.has_content {
            reply.output.push("assistant", part);
        }
    }

    /// Begins a request to the model, which was sent at `start`.
    fn request(&mut self, provider: Option<&str>, model: Option<&str>, start: i64) -> Span {
        let name =
            [Some(operation::CHAT), model].into_iter().flatten().collect::<Vec<_>>().join(" ");
        self.provider = Some(conventions::provider(provider, model));
        let mut span = self.inner(name, SpanKind::Client, operation::CHAT, start);
        model.into_iter().for_each(|model| span.string(attribute::REQUEST_MODEL, model));
        if self.facts.is_compacted {
            span.flag(attribute::COMPACTED);
        }
        if self.facts.has_content {
            span.string(attribute::INPUT_MESSAGES, &self.input.to_json(None));
            self.input = Messages::default();
        }
        span
    }

    fn begin_reply(&mut self, facts: &ReplyFacts, start: i64) {
        self.end_reply();
        self.model = facts.model.clone().or(self.model.take());
        let mut span = self.request(facts.provider.as_deref(), facts.model.as_deref(), start);
        facts.model.iter().for_each(|model| span.string(attribute::RESPONSE_MODEL, model));
        let finish = match &facts.stop_reason {
            _ if facts.interrupted => "error",
            Some(reason) => finish_reason(reason),
            None => "",
        };
        if !finish.is_empty() {
            span.strings(attribute::FINISH_REASONS, &[finish]);
        }
        facts.counts.iter().for_each(|counts| usage(&mut span, counts));
        if facts.interrupted {
            span.fail(own::INTERRUPTED);
        }
        let (output, finish) = (Messages::default(), finish.to_owned());
        self.reply = Some(Reply { span, output, finish, has_calls: false });
    }

    fn end_reply(&mut self) {
        let Some(Reply { mut span, output, finish, has_calls }) = self.reply.take() else { return };
        if self.facts.has_content {
            let finish = match finish.as_str() {
                "" if has_calls => "tool_call",
                "" => "stop",
                known => known,
            };
            self.answer = output.to_json(Some(finish));
            span.string(attribute::OUTPUT_MESSAGES, &self.answer);
        }
        self.spans.push(span);
    }

    fn call(&mut self, id: &str, name: &str, input: &str) {
        self.reply.iter_mut().for_each(|reply| reply.has_calls = true);
        let title = format!("{} {name}", operation::TOOL);
        let mut span = self.inner(title, SpanKind::Internal, operation::TOOL, self.now);
        span.string(attribute::TOOL_NAME, name);
        span.string(attribute::TOOL_TYPE, "function");
        span.string(attribute::TOOL_CALL, id);
        if self.facts.has_content {
            span.string(attribute::TOOL_ARGUMENTS, input);
        }
        self.calls.push((id.to_owned(), span));
    }

    fn result(&mut self, result: &CallOutcome) {
        self.end_reply();
        self.read("tool", messages::response(&result.id, &result.text));
        let Some(at) = self.calls.iter().position(|(id, _)| *id == result.id) else { return };
        let (_, mut span) = self.calls.remove(at);
        span.end = self.now;
        if self.facts.has_content {
            span.string(attribute::TOOL_RESULT, &result.text);
        }
        if result.is_error {
            span.fail(own::TOOL_ERROR);
        }
        self.spans.push(span);
    }

    /// Adds a request that failed.
    fn error(&mut self, refusal: &Refusal, start: i64) {
        self.end_reply();
        let (input, model) = (self.input.clone(), self.model.clone());
        let mut span = self.request(None, model.as_deref(), start);
        // The next request has the same input again.
        self.input = input;
        span.fail(&refusal.class);
        self.spans.push(span);
    }
}

/// Adds the token counts, in which cached tokens are part of the input.
fn usage(span: &mut Span, counts: &Counts) {
    span.number(attribute::INPUT_TOKENS, counts.prompt());
    span.number(attribute::OUTPUT_TOKENS, counts.output);
    for (name, count) in
        [(attribute::CACHE_READ, counts.cache_read), (attribute::CACHE_WRITE, counts.cache_write)]
    {
        if count > 0 {
            span.number(name, count);
        }
    }
}
