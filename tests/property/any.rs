//! Laws for any bytes that are read as a transcript. The fuzz targets also use these laws.

use super::rules;
use clawutils::input::Input;
use clawutils::json::quote;
use clawutils::messages::Message;
use clawutils::messages::fold::INTERRUPTED;
use clawutils::messages::rebuild::{RebuildOptions, Rebuilt, from_inputs};
use clawutils::rules::violations;

/// The result of a law: nothing, or a description of what broke it.
pub type Law = Result<(), String>;

/// Rebuilds a transcript.
pub fn rebuild(bytes: &[u8]) -> Result<Rebuilt, String> {
    rebuild_all(&[Input::memory("t", bytes.to_vec())])
}

/// Rebuilds several inputs.
pub fn rebuild_all(inputs: &[Input]) -> Result<Rebuilt, String> {
    from_inputs(inputs, &RebuildOptions::default())
        .map_err(|error| format!("rebuild failed: {error:#}"))
}

/// Returns messages as they are sent.
pub fn lines(messages: &[Message<'_>]) -> Vec<String> {
    messages.iter().map(Message::to_json).collect()
}

/// Checks that two lists of lines are equal. Reports the first difference.
pub fn same(what: &str, one: &[String], other: &[String]) -> Law {
    if one == other {
        return Ok(());
    }
    let at = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "nothing".to_owned());
    Err(format!("{what}: message {at} is\n  {}\nand not\n  {}", line(one), line(other)))
}

// ---- a provider accepts it ------------------------------------------------------------------

/// Checks that a provider accepts finished messages, and accepts unfinished messages once a user message is appended,
/// and that [`violations`] agrees. [`judge`] stands for the provider; it shares no code with rebuild.
pub fn is_accepted(messages: &[Message<'_>], bytes: &[u8]) -> Law {
    is_sound(messages)?;
    let broken = violations(messages);
    match (judge(messages), broken.is_empty()) {
        (Ok(()), true) => return Ok(()),
        (Ok(()), false) => {
            return Err(format!("accepted, but refused by our own check: {}", broken[0]));
        }
        (Err(why), true) => return Err(format!("refused, but not by our own check: {why:?}")),
        (Err(why), false) if messages.is_empty() || ["A1", "A6"].contains(&why.rule) => {}
        (Err(why), false) => return Err(format!("refused: {why:?}")),
    }
    let more = [bytes, b"\n{\"type\":\"user\",\"content\":\"w0 go on\"}"].concat();
    let refused = |why| format!("refused with a user message after it: {why:?}");
    judge(&rebuild(&more)?.messages).map_err(refused)
}

/// Checks that our own check finds no violation, except that the conversation may be unfinished.
pub fn is_sound(messages: &[Message<'_>]) -> Law {
    match violations(messages).iter().find(|broken| !broken.unfinished) {
        Some(broken) => Err(format!("our own check: {broken}")),
        None => Ok(()),
    }
}

/// Returns the verdict of the fake provider's rules on a request with these messages.
pub fn judge(messages: &[Message<'_>]) -> rules::Verdict {
    let raw =
        format!(r#"{{"model":"m","max_tokens":1,"messages":[{}]}}"#, lines(messages).join(","));
    rules::parse(raw.as_bytes()).and_then(|body| rules::check(&body, raw.as_bytes()))
}

// ---- appended records extend only the end ---------------------------------------------------

/// Checks that `now` begins with the messages of `then`, unchanged except that the last of them may be extended. The
/// only exception is that the real result of an interrupted call may replace its placeholder.
pub fn only_grows(then: &[Message<'_>], now: &[Message<'_>]) -> Law {
    let Some((last, settled)) = then.split_last() else { return Ok(()) };
    let mut now = now.to_vec();
    now.iter_mut().zip(then).for_each(|(now, then)| interrupt_again(now, then));
    let of_now = &now[..settled.len().min(now.len())];
    same("earlier messages changed", &lines(of_now), &lines(settled))?;
    match now.get(settled.len()) {
        Some(grown) if holds_all_of(grown, last) => Ok(()),
        grown => {
            let grown = grown.map(Message::to_json);
            Err(format!("the last message\n  {}\nbecame\n  {grown:?}", last.to_json()))
        }
    }
}

/// Puts the placeholder results of interrupted calls in `then` back into `now`.
fn interrupt_again<'a>(now: &mut Message<'a>, then: &Message<'a>) {
    let stand_in = quote(INTERRUPTED);
    let interrupted = then.blocks().filter(|block| block.member("content") == Some(&stand_in));
    for block in interrupted.filter(|block| block.is_result()) {
        let mut results = now.content.blocks_mut().iter_mut();
        if let Some(result) = results.find(|result| result.kind == block.kind) {
            *result = block.clone();
        }
    }
}

/// Returns true if `grown` has all blocks of `last`, in the same order, and the first block inserted before one of
/// them, if any, is a result. (Results are in the order of their calls, so a late result may precede older results.)
/// Any blocks may follow those of `last`.
fn holds_all_of(grown: &Message<'_>, last: &Message<'_>) -> bool {
    let (short, long) = (last.content.clone().into_blocks(), grown.content.clone().into_blocks());
    let mut rest = long.iter();
    let has_all = short.iter().all(|block| rest.any(|other| other == block));
    let added = long.iter().zip(&short).find(|(long, short)| long != short);
    let is_result = added.is_none_or(|(long, _)| long.is_result());
    last.role == grown.role && has_all && is_result
}
