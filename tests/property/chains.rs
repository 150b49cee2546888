//! Laws of long sessions. After any sequence of operations on a transcript, a provider accepts the request, and all
//! operations can be undone. If a target size is set, each compaction stays within it and keeps all pinned text;
//! otherwise, all text of the user is kept.

use serde_json::json;

use super::any::{Law, is_accepted, lines, rebuild, same};
use super::laws::{has_plain_ids, has_unique_calls};
use super::records::Conversation;
use super::views::{File, with_plain_ids};
use clawutils::checkpoint;
use clawutils::checkpoint::reply::CheckpointReply;
use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::pending::Summaries;
use clawutils::compact::{CutPlan, KEEP_USER, MadeSummary, Strategy, Task, accept, local, stub};
use clawutils::estimate::{Gauge, Request};
use clawutils::finding::rules::DUPLICATE_RESULT;
use clawutils::input::Input;
use clawutils::messages::Message;
use clawutils::messages::rebuild::{RebuildOptions, from_inputs};
use clawutils::truncate;

/// The number of operations per conversation.
const STEPS: usize = 4;

/// A session and the operations on it.
struct Session {
    file: File,
    /// The same transcript without the operations.
    plain: File,
    /// The prompts of the added turns.
    user_texts: Vec<String>,
    /// The prompts in `user_texts` that are pinned.
    pinned: Vec<String>,
    /// True if compactions have a target size; then text that is not pinned may be dropped.
    has_target: bool,
    state: u64,
}

/// Applies truncations, compactions from every source, checkpoints, retries and retractions in a random order, and
/// checks the laws after each. Then undoes all of them and checks the messages.
pub fn of_chains(conversation: &Conversation) -> Law {
    let bytes = conversation.write().bytes;
    // Some conversations are skipped, as in `of_views`: if a compaction covers a call and its first result, a second
    // result of the call would be paired with another call.
    let has_seconds = || -> Result<bool, String> {
        let found = rebuild(&bytes)?.findings;
        Ok(found.iter().any(|found| *found.rule == DUPLICATE_RESULT))
    };
    if !has_plain_ids(conversation) || !has_unique_calls(conversation) && has_seconds()? {
        return Ok(());
    }
    let state = bytes.iter().fold(0x9e37_79b9_7f4a_7c15, |state: u64, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut session = Session {
        file: File::new(bytes.clone()),
        plain: File::new(bytes),
        user_texts: Vec::new(),
        pinned: Vec::new(),
        has_target: state.is_multiple_of(2),
        state,
    };
    session.turn()?;
    for step in 0..STEPS {
        session.step().map_err(|why| format!("step {step}: {why}"))?;
        session.holds().map_err(|why| format!("after step {step}: {why}"))?;
    }
    for view in session.file.views.clone().into_iter().rev() {
        session.file.append(&format!(r#"{{"type":"retract","target":"{view}"}}"#))?;
    }
    let now = rebuild(&session.file.bytes)?.messages;
    let then = rebuild(&session.plain.bytes)?.messages;
    same("all operations undone", &lines(&now), &lines(&then))
}

impl Session {
    /// Returns the next pseudo-random number below `most`.
    fn below(&mut self, most: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % most
    }

    fn step(&mut self) -> Law {
        match self.below(8) {
            0 => self.truncate(),
            1 => self.checkpoint(),
            2 => self.retract(),
            3 => self.retry(),
            _ => self.compact(),
        }?;
        self.turn()
    }

    /// Adds a turn: a prompt, a reply with a call, the result of the call, and an answer. About a third of the prompts
    /// are pinned.
    fn turn(&mut self) -> Law {
        let n = self.user_texts.len();
        let long = "many new words on a line ".repeat(1 + self.below(9) as usize);
        let (words, is_pinned) = (format!("Request number {n}, please."), self.below(3) == 0);
        let mut user = json!({"type": "user", "content": words});
        if is_pinned {
            user["pin"] = true.into();
            self.pinned.push(words.clone());
        }
        self.user_texts.push(words);
        let id = format!("new_{n}");
        for record in [
            user,
            json!({"type": "assistant", "content": [{"type": "text", "text": long}]}),
            json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": {}}),
            json!({"type": "tool_result", "tool_use_id": id, "content": long.repeat(3)}),
            json!({"type": "assistant", "content": "Done."}),
        ] {
            self.file.append(&record.to_string())?;
            self.plain.append(&record.to_string())?;
        }
        Ok(())
    }

    fn truncate(&mut self) -> Law {
        let mut messages = rebuild(&self.file.bytes)?.messages;
        let (gauge, tokens) = gauge(&messages);
        let options = truncate::TruncateOptions {
            max_chars: 300,
            floor_chars: 150,
            head_ratio: 0.7,
            min_gain: 0,
            budget: tokens * 9 / 10,
        };
        let outcome = truncate::truncate(&mut messages, Request::default(), gauge, options);
        outcome.records.iter().try_for_each(|record| self.file.append_view(record))
    }

    fn checkpoint(&mut self) -> Law {
        let messages = rebuild(&self.file.bytes)?.messages;
        let Some(plan) = checkpoint::plan(&messages) else { return Ok(()) };
        let reply =
            CheckpointReply { summary: "So far so good.".to_owned(), ..CheckpointReply::default() };
        let (_, tokens) = gauge(&messages);
        let record = plan.checkpoint(reply, messages.len(), tokens).record();
        let before = lines(&messages);
        self.file.append_view(&record)?;
        same("a checkpoint changes nothing", &lines(&rebuild(&self.file.bytes)?.messages), &before)
    }

    /// Retracts the newest view record.
    fn retract(&mut self) -> Law {
        let Some(view) = self.file.views.pop() else { return Ok(()) };
        self.file.append(&format!(r#"{{"type":"retract","target":"{view}"}}"#)).map(|_| ())
    }

    fn compact(&mut self) -> Law {
        let messages = rebuild(&self.file.bytes)?.messages;
        let (gauge, tokens) = gauge(&messages);
        let target = self.has_target.then_some(tokens * (5 + self.below(6)) / 10);
        let rules = [CutRule::Half, CutRule::Classic, CutRule::Tail(tokens / 4), CutRule::Fifth];
        let rule = rules[self.below(4) as usize];
        let task = task(&messages, gauge, target, rule);
        let Some(planned) = task.plan() else { return Ok(()) };
        let (planned, text, strategy) = match self.below(4) {
            0 => (planned.clone(), local::summary(&task, &planned), Strategy::Local),
            1 => (planned.clone(), stub::text(&planned), Strategy::Stub),
            2 => match task.by_checkpoint() {
                Some((planned, text)) => (planned, text, Strategy::Checkpoint),
                None => return Ok(()),
            },
            _ => (planned, "They talked.".to_owned(), Strategy::Llm),
        };
        let Ok(after) = accept::accept(&task, &planned, &text, strategy) else { return Ok(()) };
        let (_, place) = task.first_kept(&planned).ok_or("nothing kept has a record")?;
        let expected = task.apply(&planned, &text);
        self.file.append_view(&record(&task, &planned, &text, strategy, after, None)?)?;
        let rebuilt = rebuild(&self.file.bytes)?.messages;
        // The ids of calls may be mapped differently once the calls before them are covered.
        let (now, then) = (with_plain_ids(&rebuilt)?, with_plain_ids(&expected)?);
        same(&format!("compacted at {place}"), &now, &then)?;
        let is_within = target.is_none_or(|target| after <= target);
        if is_within { Ok(()) } else { Err(format!("{after} tokens, target {target:?}")) }
    }

    /// Makes the missing summary of each stub. The compaction that applies must still keep the same messages.
    fn retry(&mut self) -> Law {
        let inputs = [Input::memory("t", self.file.bytes.clone())];
        let mut summaries = Summaries::read(&inputs).map_err(|error| error.to_string())?;
        let before = rebuild(&self.file.bytes)?.messages;
        for one in summaries.pending() {
            let Some(at) = one.before.clone() else { continue };
            let options = RebuildOptions { at: Some(at), ..RebuildOptions::default() };
            let then = from_inputs(&inputs, &options).map_err(|error| error.to_string())?.messages;
            let (gauge, _) = gauge(&then);
            let task = task(&then, gauge, None, CutRule::Half);
            let planned = task.plan_from(&one.first_kept);
            let planned =
                planned.ok_or(format!("the messages that '{}' covers are not found", one.id))?;
            let text = "Made later.";
            let record = record(&task, &planned, text, Strategy::Llm, 1, Some(&one.id))?;
            self.file.append_view(&record)?;
            summaries.replace(&one.id, planned.summary(text));
        }
        let after = rebuild(&self.file.bytes)?.messages;
        let tail = |messages: &[Message<'_>]| lines(messages).split_off(1);
        same("kept after a retry", &tail(&after), &tail(&before))
    }

    /// Checks the laws that must hold after every operation.
    fn holds(&self) -> Law {
        let messages = rebuild(&self.file.bytes)?.messages;
        is_accepted(&messages, &self.file.bytes)?;
        let text = lines(&messages).concat();
        let words = if self.has_target { &self.pinned } else { &self.user_texts };
        match words.iter().find(|words| !text.contains(words.as_str())) {
            Some(words) => Err(format!("'{words}' is missing from {text}")),
            None => Ok(()),
        }
    }
}

fn task<'r, 'a>(
    messages: &'r [Message<'a>],
    gauge: Gauge,
    target: Option<u64>,
    rule: CutRule,
) -> Task<'r, 'a> {
    Task {
        messages,
        system: None,
        tools: None,
        model: None,
        gauge,
        target,
        keep_user: KEEP_USER,
        rule,
        limits: CutLimits::default(),
    }
}

fn gauge(messages: &[Message<'_>]) -> (Gauge, u64) {
    let request = Request { messages, ..Request::default() };
    let gauge = Gauge::new(request, None);
    (gauge, gauge.tokens(request))
}

fn record(
    task: &Task<'_, '_>,
    planned: &CutPlan,
    text: &str,
    strategy: Strategy,
    after: u64,
    retry_of: Option<&str>,
) -> Result<String, String> {
    let first_kept = task.first_kept(planned).ok_or("nothing kept has a record")?;
    let scale = task.gauge.scale();
    let source = MadeSummary { text, strategy, model: None, usage: None, retry_of, scale };
    Ok(planned.record(&source, &first_kept, after))
}
