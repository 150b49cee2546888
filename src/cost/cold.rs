//! Tells if the provider's prompt cache still holds a conversation, and how long it should.

use crate::messages::Message;
use crate::record::content::Role;
use crate::usage::Counts;

/// The lifetimes of a prompt cache in seconds. Anthropic's is five minutes or, if asked for, an hour
/// (platform.claude.com/docs/en/build-with-claude/prompt-caching, November 2026); OpenAI's is at least five minutes
/// (platform.openai.com/docs/guides/prompt-caching, November 2026), so the shorter one is taken for all.
pub const LIFETIMES: [f64; 2] = [300.0, 3600.0];

/// The newest turns whose pauses count. After a pause that the short lifetime does not cover, the whole prompt is written
/// again, which costs more than the longer lifetime does for the new text of so many turns.
const TURNS: usize = 8;

/// Returns the time of a reply with `_meta`, in seconds since 1970.
#[must_use]
pub fn time_of(message: &Message<'_>) -> Option<f64> {
    message.meta.as_ref().filter(|_| message.role == Role::Assistant)?.time
}

/// Returns the lifetime in seconds that a request asks for, or the longer one if the reply's usage says that it was written
/// with that.
#[must_use]
pub fn lifetime_of(reply: &Message<'_>, asked: f64) -> f64 {
    let usage = reply.meta.as_ref().and_then(|meta| meta.usage.as_deref());
    let is_long = usage.and_then(Counts::read).is_some_and(|counts| counts.cache_write_1h > 0);
    if is_long { asked.max(LIFETIMES[1]) } else { asked }
}

/// Returns true if the newest reply is older than the lifetime of the cache; false if there is none, or its time is unknown.
/// `asked` is the lifetime that requests ask for.
#[must_use]
pub fn is_cold(messages: &[Message<'_>], asked: f64, now: f64) -> bool {
    let newest = messages.iter().rev().find_map(|reply| Some((reply, time_of(reply)?)));
    newest.is_some_and(|(reply, time)| now - time > lifetime_of(reply, asked))
}

/// Returns true if the longer lifetime pays: one of the newest turns, the one that begins `now` included, began after a pause
/// that only the longer lifetime covers.
#[must_use]
pub fn has_long_pause(messages: &[Message<'_>], now: f64) -> bool {
    let (mut newest, mut begins, mut pauses) = (None, false, Vec::new());
    let mut pause = |from: Option<f64>, to: f64| pauses.extend(from.map(|from| to - from));
    for message in messages {
        if message.role == Role::User {
            begins |= message.results().count() < message.blocks().count().max(1);
        } else if let Some(time) = time_of(message) {
            if std::mem::take(&mut begins) {
                pause(newest, time);
            }
            newest = Some(time);
        }
    }
    if begins {
        pause(newest, now);
    }
    let is_long = |pause: &f64| (LIFETIMES[0]..=LIFETIMES[1]).contains(pause);
    pauses.iter().rev().take(TURNS).any(is_long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    /// Returns messages: for each turn, the seconds before it, a prompt, a call with its result 400 seconds later, and an answer.
    fn turns(pauses: &[f64]) -> String {
        let (mut text, mut time) = (String::new(), 0.0);
        for pause in pauses {
            time += pause;
            text += &format!(
                r#"{{"role":"user","content":"go on"}}
{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{}}}}],"_meta":{{"id":"x","time":{time}}}}}
{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"x"}}]}}
"#
            );
            time += 400.0;
            text += &format!(
                r#"{{"role":"assistant","content":"done","_meta":{{"id":"y","time":{time}}}}}
"#
            );
        }
        text
    }

    #[test]
    fn audit_40_a_pause_before_one_of_the_newest_turns_asks_for_an_hour() {
        let is_long = |pauses: &[f64]| {
            let text = turns(pauses) + r#"{"role":"user","content":"next"}"#;
            let messages = messages::read("t", text.as_bytes()).unwrap();
            let newest = messages.iter().rev().find_map(time_of).unwrap();
            has_long_pause(&messages, newest + 10.0)
        };
        // A tool that runs for long begins no turn.
        assert!(!is_long(&[0.0, 10.0, 200.0]));
        assert!(is_long(&[0.0, 10.0, 301.0, 10.0]));
        assert!(!is_long(&[0.0, 10.0, 4000.0, 10.0]));
        let mut many = vec![0.0, 900.0];
        many.extend([5.0; 6]);
        assert!(is_long(&many));
        many.push(5.0);
        assert!(!is_long(&many));
        // Before the first request of the turn, the pause up to now counts; without times, nothing does.
        let text = turns(&[0.0]) + r#"{"role":"user","content":"next"}"#;
        let messages = messages::read("t", text.as_bytes()).unwrap();
        assert!(has_long_pause(&messages, 900.0) && !has_long_pause(&messages, 500.0));
        let untimed = messages::read("t", br#"{"role":"user","content":"next"}"#).unwrap();
        assert!(!has_long_pause(&untimed, 1e12));
    }

    #[test]
    fn audit_40_a_reply_that_was_cached_for_an_hour_stays_warm() {
        let line = |hour: u64| {
            format!(
                r#"{{"role":"assistant","content":"a","_meta":{{"id":"x","time":100,"usage":{{"input_tokens":5,"cache_creation_input_tokens":9,"cache_creation":{{"ephemeral_1h_input_tokens":{hour}}}}}}}}}"#
            )
        };
        for (hour, now, is_it) in [
            (0, 500.0, true),
            (0, 400.0, false),
            (0, 401.0, true),
            (9, 500.0, false),
            (9, 4000.0, true),
        ] {
            let line = line(hour);
            let messages = messages::read("t", line.as_bytes()).unwrap();
            assert_eq!(is_cold(&messages, LIFETIMES[0], now), is_it, "{hour} {now}");
        }
    }
}
