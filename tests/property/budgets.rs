//! Laws of budgets: a request whose results are shortened to a budget, and a conversation that is compacted to one, have
//! at most that many tokens when they are rebuilt and estimated again. If a budget cannot be reached, the results are as
//! short as possible, and no cut with any summary would do.

use super::any::{Law, rebuild};
use super::choices::Choices;
use super::views::File;
use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::{KEEP_USER, MadeSummary, Strategy, Task, accept, local, stub};
use clawutils::estimate::{Estimate, Gauge, Method, Model, Request};
use clawutils::messages::Message;
use clawutils::truncate::{TruncateOptions, truncate};
use serde_json::{Value, json};

/// A model of each tokenizer family.
const MODELS: [&str; 10] = [
    "gpt-5",
    "gpt-4",
    "claude-sonnet-4-5",
    "claude-opus-5",
    "llama-3.3-70b",
    "qwen3-32b",
    "deepseek-v3",
    "mistral-nemo",
    "gemini-3-pro",
    "my-model",
];

/// Pieces of text whose weights differ, also at the places where they meet.
const PIECES: [&str; 10] = [
    "The parser reads a line and returns its tokens. ",
    "2026-01-02T03:04:05Z ERROR 0x7ffe12 took 18 ms\n",
    "{\"path\":\"src/main.rs\",\"line\":120},",
    "        return None;\n",
    "9f86d081884c7d659a2feaa0c55ad015",
    "fpfpfpfpfpfpfpfp",
    "日本語の文字",
    "😀🎉",
    "----------------\r\n",
    " ",
];

/// A request without its messages.
struct Frame {
    model: Option<&'static str>,
    system: Option<String>,
    tools: Option<&'static str>,
}

impl Frame {
    fn request<'r, 'a>(&'r self, messages: &'r [Message<'a>]) -> Request<'r, 'a> {
        let (system, model) = (self.system.as_deref(), self.model.map(Model::named));
        Request { messages, system, tools: self.tools, model }
    }

    fn tokens(&self, messages: &[Message<'_>]) -> u64 {
        Estimate::of(self.request(messages), Method::Script).tokens
    }
}

/// The cases in which there was something to shorten or to compact.
#[derive(Default)]
pub struct Tried {
    /// The shortened requests within their budget.
    pub shortened: u64,
    /// The requests that are over their budget with the shortest results.
    pub shortest: u64,
    /// The compacted conversations.
    pub compacted: u64,
    /// The conversations that no compaction brings within the budget.
    pub too_large: u64,
}

/// Shortens the results of a random session to a random budget, and compacts another copy of it to the same budget.
pub fn are_kept(seed: u64, tried: &mut Tried) -> Law {
    let choices = &mut Choices::seeded(seed);
    let frame = Frame {
        model: (!choices.one_in(11)).then(|| choices.of_these(&MODELS)),
        system: choices.one_in(2).then(|| text(choices, 4)),
        tools: choices.one_in(2).then_some(r#"[{"name":"f","input_schema":{"type":"object"}}]"#),
    };
    let file = session(choices, &frame)?;
    let tokens = frame.tokens(&rebuild(&file.bytes)?.messages);
    let budget = tokens * (1 + choices.below(99) as u64) / 100;
    shortened(&file, choices, &frame, budget, tried).map_err(|why| format!("shortened: {why}"))?;
    compacted(&file, choices, &frame, budget, tried).map_err(|why| format!("compacted: {why}"))
}

fn text(choices: &mut Choices, most: usize) -> String {
    (0..1 + choices.below(most))
        .map(|_| choices.of_these(&PIECES).repeat(1 + choices.below(12)))
        .collect()
}

/// Returns a session. In a third of them, the provider counts each prompt, differently from the estimate.
fn session(choices: &mut Choices, frame: &Frame) -> Result<File, String> {
    let mut file = File::new(Vec::new());
    let per_cent = choices.one_in(3).then(|| 60 + choices.below(120) as u64);
    for turn in 0..1 + choices.below(6) {
        let prompt = json!({"type": "user", "content": text(choices, 3), "pin": choices.one_in(9)});
        file.append(&prompt.to_string())?;
        for call in 0..choices.below(3) {
            let id = format!("call_{turn}_{call}");
            let input = json!({"path": text(choices, 1)});
            let call = json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": input});
            file.append(&call.to_string())?;
            let content = content(choices);
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            file.append(&result.to_string())?;
        }
        let mut reply =
            json!({"type": "assistant", "content": [{"type": "text", "text": text(choices, 4)}]});
        if let Some(per_cent) = per_cent {
            let counted = frame.tokens(&rebuild(&file.bytes)?.messages) * per_cent / 100;
            reply["usage"] = json!({"input_tokens": counted, "output_tokens": 40});
            reply["model"] = frame.model.into();
        }
        file.append(&reply.to_string())?;
    }
    Ok(file)
}

fn content(choices: &mut Choices) -> Value {
    if choices.one_in(2) {
        return text(choices, 12).into();
    }
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a"}});
    json!([{"type": "text", "text": text(choices, 12)}, image])
}

fn shortened(
    file: &File,
    choices: &mut Choices,
    frame: &Frame,
    budget: u64,
    tried: &mut Tried,
) -> Law {
    let mut messages = rebuild(&file.bytes)?.messages;
    let mut shortest = messages.clone();
    let gauge = Gauge::new(frame.request(&messages), None);
    let options = TruncateOptions {
        max_chars: usize::MAX,
        floor_chars: choices.below(300),
        head_ratio: 0.7,
        min_gain: 0,
        budget,
    };
    let outcome = truncate(&mut messages, frame.request(&[]), gauge, options);
    let mut file = File::new(file.bytes.clone());
    outcome.records.iter().try_for_each(|record| file.append_view(record))?;
    let tokens = frame.tokens(&rebuild(&file.bytes)?.messages);
    if tokens != outcome.after {
        return Err(format!("{tokens} tokens instead of {outcome:?}"));
    }
    if tokens <= budget {
        tried.shortened += 1;
        return Ok(());
    }
    tried.shortest += 1;
    let none = TruncateOptions { budget: 0, ..options };
    let least = truncate(&mut shortest, frame.request(&[]), gauge, none).after;
    // A result is shortened further only if that saves a token of this result. A marker with larger numbers can have more
    // tokens than the few characters that it replaces, and the sum is rounded once, so each result can differ by a token.
    let most = least + outcome.records.len() as u64;
    match least > budget && tokens <= most {
        true => Ok(()),
        false => {
            Err(format!("{tokens} tokens, budget {budget}, {least} with the shortest results"))
        }
    }
}

fn compacted(
    file: &File,
    choices: &mut Choices,
    frame: &Frame,
    budget: u64,
    tried: &mut Tried,
) -> Law {
    let messages = rebuild(&file.bytes)?.messages;
    let Request { system, tools, model, .. } = frame.request(&messages);
    let task = Task {
        messages: &messages,
        system,
        tools,
        model,
        gauge: Gauge::new(frame.request(&messages), None),
        target: Some(budget),
        keep_user: KEEP_USER,
        rule: choices.of_these(&[CutRule::Half, CutRule::Fifth, CutRule::Tail(budget / 4)]),
        limits: CutLimits::default(),
    };
    let Some(planned) = task.plan() else {
        tried.too_large += 1;
        let firsts = messages.iter().filter_map(|message| message.meta.as_ref());
        let plans = firsts.filter_map(|meta| task.plan_from(&meta.id));
        let mut sizes = plans.map(|planned| task.tokens(&task.apply(&planned, "")));
        return match sizes.find(|size| *size <= budget) {
            Some(size) => Err(format!("a cut leaves {size} tokens, budget {budget}")),
            None => within_limits(&task, [budget, budget + choices.below(2000) as u64]),
        };
    };
    let (text, strategy) = match choices.one_in(2) {
        true => (local::summary(&task, &planned), Strategy::Local),
        false => (stub::text(&planned), Strategy::Stub),
    };
    let Ok(after) = accept::accept(&task, &planned, &text, strategy) else { return Ok(()) };
    tried.compacted += 1;
    let scale = task.gauge.scale();
    let source =
        MadeSummary { text: &text, strategy, model: None, usage: None, retry_of: None, scale };
    let first_kept = task.first_kept(&planned).ok_or("nothing kept has a record")?;
    let mut file = File::new(file.bytes.clone());
    file.append_view(&planned.record(&source, &first_kept, after))?;
    let tokens = frame.tokens(&rebuild(&file.bytes)?.messages);
    match tokens == after && tokens <= budget {
        true => Ok(()),
        false => Err(format!("{tokens} tokens, reported {after}, budget {budget}")),
    }
}

/// Checks the plan for a request that no cut brings within the target: it is within a limit and has the first for which the
/// last cut leaves room for a summary of the greatest length.
fn within_limits(task: &Task<'_, '_>, limits: [u64; 2]) -> Law {
    let last = task.messages.iter().filter_map(|message| message.meta.as_ref());
    let last = last.filter_map(|meta| task.plan_from(&meta.id)).map(|planned| planned.at).max();
    let Some((planned, relaxed)) = task.plan_within(&limits, None) else {
        let bare = Task { keep_user: 0, target: Some(limits[1]), ..*task };
        let id = last.and_then(|at| Some(task.messages[at].meta.as_ref()?.id.to_string()));
        let Some(planned) = id.and_then(|id| bare.plan_from(&id)) else { return Ok(()) };
        let size = bare.tokens(&bare.apply(&planned, ""));
        return match size <= limits[1] && size < planned.before {
            true => Err(format!("the last cut leaves {size} tokens, limits {limits:?}")),
            false => Ok(()),
        };
    };
    let size = relaxed.tokens(&relaxed.apply(&planned, ""));
    let is_within = relaxed.target.is_some_and(|limit| limits.contains(&limit) && size <= limit);
    match is_within && size < planned.before && last == Some(planned.at) {
        true => Ok(()),
        false => {
            Err(format!("{size} tokens, cut at {} of {last:?}, limits {limits:?}", planned.at))
        }
    }
}
