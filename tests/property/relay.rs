//! A conversation that changes its protocol at every turn: each request is accepted, holds all that was said before, and
//! gives a signature to the model that wrote it and to no other.

use std::collections::HashSet;

use clawutils::json::Object;
use clawutils::provider::fit;
use clawutils::provider::protocol::Protocol;
use clawutils::provider::reasoning::Author;
use clawutils::provider::{ModelRequest, Reply};
use serde_json::{Value, json};

use super::any::{Law, rebuild};
use super::choices::Choices;
use super::media;
use super::strict::{self, Form};
use super::views::File;

/// The turns of a conversation.
const TURNS: usize = 30;
/// Most rounds of tool calls in a turn.
const MOST_ROUNDS: usize = 3;
/// What a call of another model has in the place of Gemini's signature, as Google's documentation of signatures says.
const PLACEHOLDER: &str = "skip_thought_signature_validator";

/// A model of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Speaker {
    protocol: Protocol,
    form: Form,
    model: &'static str,
}

const fn speaker(protocol: Protocol, form: Form, model: &'static str) -> Speaker {
    Speaker { protocol, form, model }
}

/// All protocols, some with two models.
const SPEAKERS: [Speaker; 11] = [
    speaker(Protocol::Anthropic, Form::Anthropic, "claude-opus-5-5"),
    speaker(Protocol::AnthropicOnVertex, Form::Anthropic, "claude-opus-5-5@20260901"),
    speaker(Protocol::AnthropicOnBedrock, Form::Anthropic, "anthropic.claude-opus-5-5"),
    speaker(Protocol::Chat, Form::Chat, "deepseek-reasoner"),
    speaker(Protocol::Chat, Form::Mistral, "mistral-large"),
    speaker(Protocol::Responses, Form::Responses, "gpt-6-astra"),
    speaker(Protocol::Responses, Form::Responses, "gpt-6.1-sol"),
    speaker(Protocol::Gemini, Form::Gemini, "gemini-3.5-flash"),
    speaker(Protocol::Gemini, Form::Gemini, "gemini-3.1-pro"),
    speaker(Protocol::GeminiOnVertex, Form::Gemini, "gemini-3.5-flash"),
    speaker(Protocol::Ollama, Form::Ollama, "qwen3"),
];

/// The conversation so far.
struct Relay {
    file: File,
    /// The words that each later request must hold.
    words: Vec<String>,
    /// Each signature with the one who wrote it.
    signatures: Vec<(String, Speaker)>,
    /// The data of the images.
    images: Vec<String>,
    /// The number of the next reply.
    next: usize,
}

/// Tries a conversation.
pub fn keeps_all(seed: u64) -> Law {
    let choices = &mut Choices::seeded(seed);
    let mut relay = Relay {
        file: File::new(Vec::new()),
        words: Vec::new(),
        signatures: Vec::new(),
        images: Vec::new(),
        next: 0,
    };
    let mut last = None;
    for turn in 0..TURNS {
        relay.ask(turn, choices)?;
        let mut speaker: Speaker = choices.of_these(&SPEAKERS);
        while last == Some(speaker) {
            speaker = choices.of_these(&SPEAKERS);
        }
        for round in 0..=MOST_ROUNDS {
            let calls = if round == MOST_ROUNDS { 0 } else { choices.below(3) };
            let told = |why| format!("turn {turn}, round {round}, {speaker:?}: {why}");
            let is_open = relay.answer(speaker, calls, choices).map_err(told)?;
            if !is_open {
                break;
            }
            // Sometimes another model goes on with the results.
            if choices.one_in(4) {
                speaker = choices.of_these(&SPEAKERS);
            }
        }
        last = Some(speaker);
    }
    Ok(())
}

impl Relay {
    /// Appends a prompt, sometimes with an image.
    fn ask(&mut self, turn: usize, choices: &mut Choices) -> Law {
        let word = format!("prompt{turn}x");
        let mut content = vec![json!({"type": "text", "text": format!("Please, {word}.")})];
        if choices.one_in(4) {
            content.push(self.image(turn));
        }
        self.words.push(word);
        self.append(&json!({"type": "user", "content": content}))
    }

    /// Returns an image of its own size, so that it can be told from the others.
    fn image(&mut self, number: usize) -> Value {
        let file = media::png(8, u32::try_from(8 + number).unwrap_or(8));
        self.images.push(media::base64(&file));
        media::image("image/png", &file)
    }

    fn append(&mut self, record: &Value) -> Law {
        self.file.append(&record.to_string()).map(drop)
    }

    /// Sends the conversation to a model, appends its reply with `calls` calls, and their results. Returns true if there were
    /// calls.
    fn answer(
        &mut self,
        speaker: Speaker,
        calls: usize,
        choices: &mut Choices,
    ) -> Result<bool, String> {
        let tools =
            json!([{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]);
        let tools = tools.to_string();
        let bytes = self.file.bytes.clone();
        let messages = rebuild(&bytes)?.messages;
        let fitted = fit::fit(speaker.protocol, speaker.model, &messages, Some(&tools));
        let author =
            Author::new(speaker.protocol.name(), &format!("{:?}", speaker.protocol), speaker.model);
        let body = speaker.protocol.body(&ModelRequest {
            model: speaker.model,
            max_tokens: 1000,
            max_tokens_name: "max_tokens",
            system: Some("Be brief."),
            tools: fitted.tools.as_deref(),
            messages: &fitted.messages,
            author: Some(&author),
            ..ModelRequest::default()
        });
        self.is_whole(speaker, &body)?;
        let reply = self.reply(speaker, calls);
        let object = reply.to_string();
        let object = Object::parse(&object).map_err(|error| error.to_string())?;
        let mut reply: Reply = speaker.protocol.api().read(&object)?;
        fitted.restore(std::slice::from_mut(&mut reply));
        let mut ids = Vec::new();
        for line in reply.take_records("test", &author).lines {
            let record: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            ids.extend(record["tool_use_id"].as_str().map(str::to_owned));
            self.append(&record)?;
        }
        if ids.len() != calls {
            return Err(format!("{calls} calls became {}", ids.len()));
        }
        // The results arrive in any order.
        if choices.one_in(2) {
            ids.reverse();
        }
        for (c, id) in ids.iter().enumerate() {
            let word = format!("result{}c{c}x", self.next);
            let mut content = vec![json!({"type": "text", "text": word})];
            if choices.one_in(6) {
                content.push(self.image(100 + self.next * 4 + c));
            }
            self.words.push(word);
            let is_error = choices.one_in(8);
            self.append(&json!({"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": content}))?;
        }
        self.next += 1;
        Ok(calls > 0)
    }

    /// Checks a request: the provider accepts it, all that was said is in it, and so are the signatures of its own model and
    /// no others.
    fn is_whole(&self, speaker: Speaker, body: &str) -> Law {
        let is_same = |other: &Speaker| *other == speaker;
        // A server knows the signatures of all its models.
        let known = self.signatures.iter().filter(|(_, other)| other.form == speaker.form);
        let mut signed: Vec<&str> = known.map(|(signature, _)| signature.as_str()).collect();
        signed.push(PLACEHOLDER);
        if let Some(broken) = strict::broken(speaker.form, body, &signed, usize::MAX) {
            return Err(format!("refused: {broken:?}\n{body}"));
        }
        let missing = |what: &str, text: &str| format!("{what} {text} is missing in\n{body}");
        if let Some(word) = self.words.iter().find(|word| !body.contains(*word)) {
            return Err(missing("word", word));
        }
        if let Some(image) = self.images.iter().find(|image| !body.contains(*image)) {
            return Err(missing("image", image));
        }
        for (signature, owner) in &self.signatures {
            let is_there = body.contains(signature.as_str());
            if is_same(owner) && !is_there {
                return Err(missing("signature", signature));
            }
            if is_there && owner.protocol.name() != speaker.protocol.name() {
                return Err(format!("signature {signature} of {owner:?} is in\n{body}"));
            }
        }
        Ok(())
    }

    /// Returns an answer of a model with thinking, text and calls, in the form of its API.
    fn reply(&mut self, speaker: Speaker, calls: usize) -> Value {
        let n = self.next;
        let (thought, text, signature) =
            (format!("thought{n}x"), format!("answer{n}x"), format!("signature{n}x"));
        let input = |c: usize| json!({"what": format!("input{n}c{c}x")});
        self.words.push(text.clone());
        self.words.extend((0..calls).map(|c| format!("input{n}c{c}x")));
        let has_signature =
            matches!(speaker.form, Form::Anthropic | Form::Responses | Form::Gemini);
        if has_signature {
            self.signatures.push((signature.clone(), speaker));
        }
        let calls = 0..calls;
        let is_open = !calls.is_empty();
        match speaker.form {
            Form::Anthropic => {
                let mut content = vec![
                    json!({"type": "thinking", "thinking": thought, "signature": signature}),
                    json!({"type": "text", "text": text}),
                ];
                content.extend(calls.map(|c| json!({"type": "tool_use", "id": format!("toolu_{n}_{c}"), "name": "look", "input": input(c)})));
                let stop = if is_open { "tool_use" } else { "end_turn" };
                json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop})
            }
            Form::Chat | Form::Mistral => {
                let calls: Vec<Value> = calls
                    .map(|c| json!({"id": format!("call_{n}_{c}"), "type": "function", "function": {"name": "look", "arguments": input(c).to_string()}}))
                    .collect();
                let mut message =
                    json!({"role": "assistant", "content": text, "reasoning_content": thought});
                if is_open {
                    message["tool_calls"] = json!(calls);
                }
                let stop = if is_open { "tool_calls" } else { "stop" };
                json!({"choices": [{"message": message, "finish_reason": stop}]})
            }
            Form::Responses => {
                let mut output = vec![
                    json!({"type": "reasoning", "id": format!("rs_{n}"), "summary": [{"type": "summary_text", "text": thought}], "encrypted_content": signature}),
                    json!({"type": "message", "id": format!("msg_{n}"), "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}),
                ];
                output.extend(calls.map(|c| json!({"type": "function_call", "id": format!("fc_{n}_{c}"), "call_id": format!("call_{n}_{c}"), "name": "look", "arguments": input(c).to_string(), "status": "completed"})));
                json!({"status": "completed", "output": output})
            }
            Form::Gemini => {
                let mut parts =
                    vec![json!({"text": thought, "thought": true}), json!({"text": text})];
                parts.extend(
                    calls.map(|c| json!({"functionCall": {"name": "look", "args": input(c)}})),
                );
                // The signature is at the first call, or at the text if there is none.
                let at = if is_open { 2 } else { 1 };
                parts[at]["thoughtSignature"] = json!(signature);
                json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
            }
            Form::Ollama => {
                let calls: Vec<Value> = calls
                    .map(|c| json!({"function": {"name": "look", "arguments": input(c)}}))
                    .collect();
                json!({"message": {"role": "assistant", "content": text, "thinking": thought, "tool_calls": calls}, "done": true, "done_reason": "stop"})
            }
        }
    }
}

/// Checks that the speakers have all protocols.
pub fn all_protocols_speak() -> bool {
    let names: HashSet<String> =
        SPEAKERS.iter().map(|speaker| format!("{:?}", speaker.protocol)).collect();
    names.len() == 8
}
