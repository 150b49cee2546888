//! Request bodies of generated sessions, for the check of scripts/dev/body-types against the types of the official packages.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use clawutils::json::write::Members;
use clawutils::provider::cache::{Cache, CacheChoice};
use clawutils::provider::effort::Effort;
use clawutils::provider::fit;
use clawutils::provider::protocol::Protocol;
use clawutils::provider::refusal::Features;
use clawutils::provider::{ModelRequest, Provider};
use serde_json::Value;

use super::any::rebuild;
use super::choices::Choices;
use super::poisons::{session, written};
use super::views;

/// The protocols and a model of each.
const PROTOCOLS: [(Protocol, &str); 4] = [
    (Protocol::Anthropic, "claude-sonnet-5"),
    (Protocol::Chat, "gpt-5.2"),
    (Protocol::Responses, "gpt-6-astra"),
    (Protocol::Gemini, "gemini-3.5-flash"),
];

/// The size of a transcript in bytes up to which its bodies are written. Larger ones have large files in them, and nothing else
/// that smaller ones have not.
const LARGE: usize = 64 << 10;

/// Returns the prompt cache to ask for, at the address of the protocol's maker.
fn cache<'k>(protocol: Protocol, model: &str, choices: &mut Choices) -> Option<Cache<'k>> {
    let (provider, base) = match protocol {
        Protocol::Anthropic => (Provider::Anthropic, "https://api.anthropic.com"),
        Protocol::Gemini => (Provider::Gemini, "https://generativelanguage.googleapis.com"),
        _ => (Provider::Openai, "https://api.openai.com"),
    };
    let choice = [CacheChoice::Off, CacheChoice::Auto, CacheChoice::Hour][choices.below(3)];
    let cache = Cache::of(choice, (provider, protocol), base, model, Some("0123456789abcdef"));
    cache.map(|cache| cache.compared_with(Some("msg_1"), base))
}

/// Adds a request as a batch has it, and the body of the request that creates a batch of it alone.
fn in_batch(line: Members, protocol: Protocol, model: &str, body: &str) -> Members {
    let Some(service) = protocol.api().batches("https://x", model) else { return line };
    let entry = service.entry("claw-0", body);
    let create = service.create("claw", std::slice::from_ref(&entry), Some("file-1"));
    let create = create.body.map(|body| body.text).unwrap_or_default();
    line.raw("entry", &entry).raw("create", &create)
}

/// Writes the bodies for this many sessions, those for Anthropic without a temperature, which its older models take and its
/// package (anthropic 2.14.0) no longer knows, to a file in `directory` for each protocol, one on each line.
pub fn write(directory: &Path, sessions: u64) -> std::io::Result<()> {
    let open = |(protocol, _): &(Protocol, _)| {
        File::create(directory.join(format!("{}.jsonl", protocol.name()))).map(BufWriter::new)
    };
    let mut files = PROTOCOLS.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut seeds = 0..;
    let mut left = sessions;
    while let Some(seed) = seeds.next().filter(|_| left > 0) {
        let choices = &mut Choices::seeded(seed);
        let (session, _) = session(choices);
        let bytes = written(&session);
        if bytes.len() > LARGE {
            continue;
        }
        left -= 1;
        let mut file = views::File::new(bytes);
        let prompt = r#"{"type":"user","content":"What now?"}"#;
        let wrong = |why: String| std::io::Error::other(format!("session {seed}: {why}"));
        file.append(prompt).map_err(wrong)?;
        let messages = rebuild(&file.bytes).map_err(wrong)?.messages;
        let tools = Value::Array(session.tools).to_string();
        for ((protocol, model), out) in PROTOCOLS.iter().zip(&mut files) {
            let fitted = fit::fit(*protocol, model, &messages, Some(&tools));
            let request = ModelRequest {
                temperature: [None, Some(0.5)][choices.below(2)]
                    .filter(|_| *protocol != Protocol::Anthropic),
                effort: [None, Some(Effort::Low), Some(Effort::Max)][choices.below(3)],
                without: Features::default(),
                thinking_budget: [None, Some(0), Some(2000)][choices.below(3)],
                betas: "",
                author: None,
                container: None,
                cache: cache(*protocol, model, choices),
                model,
                max_tokens: 1000,
                max_tokens_name: "max_completion_tokens",
                system: Some("Be brief."),
                tools: fitted.tools.as_deref(),
                messages: &fitted.messages,
                stream: choices.below(2) == 1,
                window: None,
                extra: None,
            };
            let line = Members::new().number("seed", seed).raw("body", &protocol.body(&request));
            let body = protocol.body(&ModelRequest { stream: false, ..request });
            // What a batch adds to a body is always the same.
            let line = match seed % 25 {
                0 => in_batch(line, *protocol, model, &body),
                _ => line,
            };
            writeln!(out, "{}", line.into_json())?;
        }
    }
    files.iter_mut().try_for_each(Write::flush)
}
