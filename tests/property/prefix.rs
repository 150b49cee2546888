//! The prefix of a request's body. A provider's prompt cache is found again only if tools, system prompt and messages of a
//! request begin, byte for byte, with those of the request before it.

use super::any::{Law, lines, rebuild, same};
use super::choices::Choices;
use super::poisons;
use super::records::Conversation;
use clawutils::json::{Object, elements};
use clawutils::messages::Message;
use clawutils::messages::rebuild::Rebuilt;
use clawutils::provider::cache::{Cache, CacheChoice};
use clawutils::provider::fit;
use clawutils::provider::protocol::Protocol;
use clawutils::provider::reasoning::Author;
use clawutils::provider::{ModelRequest, Provider};
use clawutils::record::content::Role;
use clawutils::rules::check_ready;
use serde_json::Value;

/// The protocols, with a model and the names of the members for tools, system prompt and messages.
const PROTOCOLS: [(Protocol, &str, [&str; 3]); 5] = [
    (Protocol::Anthropic, "claude-sonnet-5", ["tools", "system", "messages"]),
    (Protocol::Chat, "gpt-5.2", ["tools", "", "messages"]),
    (Protocol::Responses, "gpt-6-astra", ["tools", "instructions", "input"]),
    (Protocol::Gemini, "gemini-3.5-flash", ["tools", "systemInstruction", "contents"]),
    (Protocol::Ollama, "llama", ["tools", "", "messages"]),
];

const TOOLS: &str = r#"[{"name":"f","input_schema":{"type":"object"}},{"name":"shot","input_schema":{"type":"object"}}]"#;

/// The parts of a body that a cache looks at.
struct Prompt {
    /// The tools and the system prompt.
    head: Vec<String>,
    /// The messages.
    items: Vec<String>,
}

/// Checks that each request of a conversation begins with the one before it, while the records are appended one by one. Where
/// a view record or a late result changes a message, the part before that message must be the same.
pub fn is_stable(conversation: &Conversation) -> Law {
    let mut prefix = Conversation { items: Vec::new(), ended: true, ..conversation.clone() };
    let mut files = Vec::new();
    for line in conversation.lines() {
        prefix.items.extend_from_slice(line);
        files.push(prefix.write().bytes);
    }
    let length = files.last().map_or(0, Vec::len) as u64;
    grows(files.iter().map(|bytes| &**bytes), false, &mut Choices::seeded(length))
}

/// Checks the same for a session with things that providers refuse, which requests have repaired.
pub fn is_stable_if_repaired(seed: u64) -> Law {
    let choices = &mut Choices::seeded(seed);
    let (session, _) = poisons::session(choices);
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for record in &session.records {
        bytes.extend(record.to_string().bytes().chain([b'\n']));
        ends.push(bytes.len());
    }
    grows(ends.into_iter().map(|end| &bytes[..end]), true, choices)
}

/// Checks a transcript at these stages of its growth. `is_plain` is true if it has no view records and no late results.
fn grows<'b>(stages: impl Iterator<Item = &'b [u8]>, is_plain: bool, choices: &mut Choices) -> Law {
    let mut before: Option<Rebuilt> = None;
    for bytes in stages {
        let now = rebuild(bytes)?;
        if now.messages.is_empty() || check_ready(&now.messages).is_err() {
            continue;
        }
        if let Some(then) = &before
            && now.messages.get(then.messages.len()).is_some_and(|it| it.role == Role::Assistant)
        {
            let common = common(&then.messages, &now.messages);
            if is_plain && common < then.messages.len() {
                same("messages", &lines(&now.messages), &lines(&then.messages))?;
            }
            let (protocol, model, names) = choices.of_these(&PROTOCOLS);
            let mut of =
                |messages: &[Message<'_>]| prompt(protocol, model, names, messages, choices);
            let (one, two) = (of(&then.messages[..common])?, of(&now.messages)?);
            same(&format!("{protocol:?}: tools and system"), &two.head, &one.head)?;
            let begin = &two.items[..one.items.len().min(two.items.len())];
            same(&format!("{protocol:?}: the prefix"), begin, &one.items)?;
        }
        before = Some(now);
    }
    Ok(())
}

/// Returns the number of messages at the start of both lists that are the same, up to the last one of a user.
fn common(then: &[Message<'_>], now: &[Message<'_>]) -> usize {
    let (then_lines, now_lines) = (lines(then), lines(now));
    let same = then_lines.iter().zip(&now_lines).take_while(|(a, b)| a == b).count();
    then[..same].iter().rposition(|it| it.role == Role::User).map_or(0, |at| at + 1)
}

/// Returns the prompt of a request, whose other settings are chosen anew.
fn prompt(
    protocol: Protocol,
    model: &str,
    names: [&str; 3],
    messages: &[Message<'_>],
    choices: &mut Choices,
) -> Result<Prompt, String> {
    let fitted = fit::fit(protocol, model, messages, Some(TOOLS));
    let author = Author::new(protocol.name(), "https://example.com", model);
    let mut request = ModelRequest {
        author: Some(&author),
        model,
        max_tokens: 1000 + choices.below(1000) as u64,
        max_tokens_name: "max_tokens",
        system: Some("Be brief."),
        tools: fitted.tools.as_deref(),
        messages: &fitted.messages,
        stream: choices.one_in(2),
        window: choices.one_in(2).then_some(100_000),
        ..ModelRequest::default()
    };
    let body = protocol.body(&request);
    let provider =
        if protocol == Protocol::Anthropic { Provider::Anthropic } else { Provider::Openai };
    request.cache =
        Cache::of(CacheChoice::Auto, (provider, protocol), "https://api.openai.com", model, None);
    let (plain, marked) = (values(&body)?, values(&protocol.body(&request))?);
    if plain != marked {
        return Err(format!("{protocol:?}: marks change the request: {marked}"));
    }
    let object = Object::parse(&body).map_err(|error| error.to_string())?;
    let [tools, system, list] = names;
    let member = |name: &str| object.get(name).unwrap_or_default().to_owned();
    let items = object.get(list).and_then(elements).ok_or("no messages")?;
    let items = items.into_iter().map(str::to_owned).collect();
    Ok(Prompt { head: vec![member(tools), member(system)], items })
}

/// Returns a body without its marks. A marked text is a list of one block, which means the same.
fn values(body: &str) -> Result<Value, String> {
    let mut value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    unmark(&mut value);
    Ok(value)
}

fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(unmark);
            for name in ["content", "system"] {
                let only =
                    members.get(name).and_then(|it| it.as_array()).filter(|it| it.len() == 1);
                let text = only.map(|it| &it[0]).filter(|it| it["type"] == "text");
                if let Some(text) = text.map(|it| it["text"].clone()) {
                    members.insert(name.to_owned(), text);
                }
            }
        }
        _ => {}
    }
}
