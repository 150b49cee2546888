//! Reads all calls to the provider in a transcript of a program that keeps more than the conversation. Those on abandoned
//! branches, those of subagents, those that wrote summaries and those that only kept a cache warm are not part of the
//! conversation, but they also cost tokens.

use clawutils::dialect::claude_code::record::call_id;
use clawutils::dialect::codex::calls::Calls;
use clawutils::dialect::copilot::Counted;
use clawutils::dialect::time::of_text;
use clawutils::dialect::{Dialect, gemini_cli, pi};
use clawutils::index::rows::UsageRow;
use clawutils::input::Input;
use clawutils::input::lines::{Lines, ValueLine};
use clawutils::json::Object;
use clawutils::json::outline::Value;
use clawutils::usage::Counts;
use std::borrow::Cow;
use std::collections::HashMap;

/// A call to the provider.
#[derive(Debug)]
pub struct SourceCall {
    /// Its time in Unix seconds.
    pub timestamp: Option<f64>,
    /// Its tokens.
    pub usage: UsageRow,
}

/// The calls of a file.
#[derive(Debug, Default)]
pub struct SourceCalls {
    /// The calls, in the order of their first lines.
    pub calls: Vec<SourceCall>,
    /// The index in `calls` of each call, by its id.
    by_id: HashMap<String, usize>,
}

impl SourceCalls {
    /// Reads the calls of `source`. Returns `None` if the header of its translation does not name one of these programs.
    pub fn read(source: &Input, translation: &Input) -> anyhow::Result<Option<SourceCalls>> {
        let mut codex = Codex::default();
        let Some(dialect) = dialect(translation)? else { return Ok(None) };
        let mut take: Box<dyn FnMut(Value<'_>) -> Option<UsageRow>> = match dialect {
            Dialect::ClaudeCode => Box::new(of_claude_code),
            Dialect::Codex => Box::new(move |line| codex.take(line)),
            Dialect::Copilot => Box::new(of_copilot),
            Dialect::GeminiCli => Box::new(of_gemini_cli),
            Dialect::Pi => Box::new(of_pi),
            // Their messages have no counts.
            Dialect::Openai | Dialect::Gemini => return Ok(None),
        };
        let mut found = SourceCalls::default();
        let mut lines = Lines::with_values(source);
        while let Some(mut batch) = lines.batch()? {
            while let Some((_, line)) = batch.next_value() {
                if let ValueLine::Object(line, _) = line
                    && let Some(usage) = take(line)
                {
                    let timestamp = line.get("timestamp").and_then(of_text);
                    found.add(timestamp.map(|micros| micros as f64 / 1e6), usage);
                }
            }
        }
        Ok(Some(found))
    }

    /// Adds a call. A reply can have several lines, of which the last one has the final counts.
    fn add(&mut self, timestamp: Option<f64>, usage: UsageRow) {
        let id = usage.call.clone().unwrap_or_default();
        let next = self.calls.len();
        match self.calls.get_mut(*self.by_id.entry(id).or_insert(next)) {
            Some(known) => {
                known.timestamp = known.timestamp.or(timestamp);
                known.usage = usage;
            }
            None => self.calls.push(SourceCall { timestamp, usage }),
        }
    }
}

/// Returns the dialect that the header of a translation names.
fn dialect(translation: &Input) -> anyhow::Result<Option<Dialect>> {
    let mut lines = Lines::of(translation);
    let Some(batch) = lines.batch()? else { return Ok(None) };
    let header = batch.flatten().next();
    let source = header.as_ref().and_then(|line| line.object.get("source"));
    let source = source.and_then(|raw| Object::parse(raw).ok());
    let name = source.as_ref().and_then(|it| it.string("dialect"));
    Ok(name.and_then(|name| Dialect::named(&name)))
}

fn aside(
    call: String,
    model: Option<String>,
    provider: Option<String>,
    counts: Counts,
) -> UsageRow {
    UsageRow { kind: "aside", call: Some(call), model, provider, counts }
}

fn string(value: Value<'_>, name: &str) -> Option<String> {
    value.string(name).map(Cow::into_owned)
}

/// Returns the call of a line of a reply.
fn of_claude_code(line: Value<'_>) -> Option<UsageRow> {
    let message = line.object("message")?;
    let counts = message.get("usage").and_then(Counts::read)?;
    let id = call_id(message.quoted("id"), line.quoted("requestId"))?;
    Some(aside(id, string(message, "model"), Some("anthropic".to_owned()), counts))
}

/// The calls of a rollout file.
#[derive(Default)]
struct Codex {
    calls: Calls,
    model: Option<String>,
}

impl Codex {
    fn take(&mut self, line: Value<'_>) -> Option<UsageRow> {
        let (kind, payload) = (line.string("type")?, line.object("payload")?);
        if kind == "turn_context" {
            self.model = string(payload, "model");
        }
        let call = self.calls.take(&kind, payload)?;
        let counts = whole(call.counts);
        (counts.prompt() > 0)
            .then(|| aside(call.id, self.model.clone(), Some("openai".to_owned()), counts))
    }
}

/// Returns the counts of a call from those of the whole prompt, of the part that was in the cache, and of the output.
fn whole([prompt, cached, output]: [u64; 3]) -> Counts {
    let cache_read = cached.min(prompt);
    Counts { input: prompt - cache_read, cache_read, output, ..Counts::default() }
}

/// Returns the call of a line with its counts.
fn of_copilot(line: Value<'_>) -> Option<UsageRow> {
    let Counted { id, model, counts, .. } = Counted::of(line)?;
    Some(aside(id, model, None, counts))
}

/// Returns the call of a reply, which a resume or a compression may have replaced.
fn of_gemini_cli(line: Value<'_>) -> Option<UsageRow> {
    let counts = whole(gemini_cli::counts(line.object("tokens")?));
    let call = aside(string(line, "id")?, string(line, "model"), Some("google".to_owned()), counts);
    (counts.prompt() > 0).then_some(call)
}

/// Returns the call of a reply, of a tool that used a model, of a summary, or of an operation such as warming a cache.
fn of_pi(line: Value<'_>) -> Option<UsageRow> {
    let holder = line.object("message").unwrap_or(line);
    let counts = pi::message::counts(holder.object("usage")?);
    let id = pi::message::call_id(line)?;
    (counts.all() > 0)
        .then(|| aside(id, string(holder, "model"), string(holder, "provider"), counts))
}
