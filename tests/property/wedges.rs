//! No session is wedged: whatever poisons are in it, a turn ends with a reply, and the next turn is not refused.

use serde_json::Value;

use super::any::Law;
use super::choices::Choices;
use super::guarded::{self, Provider, Turn};
use super::poisons::{SIGNED, session, written};
use super::strict::{Broken, FORMS, Form};
use super::views::File;

/// The most characters of a request.
const WINDOW: usize = 60_000;

/// Tries two turns in a session with poisons.
pub fn no_session_is_wedged(seed: u64) -> Law {
    let choices = &mut Choices::seeded(seed);
    let (session, names) = session(choices);
    let form: Form = choices.of_these(&FORMS);
    let told = |why: String| format!("{form:?}, {names:?}: {why}");
    let bytes = written(&session);
    let mut file = File::new(bytes.clone());
    let mut provider = Provider {
        form,
        signed: vec![SIGNED],
        window: WINDOW,
        way: choices.below(60),
        tools: Some(Value::Array(session.tools.clone()).to_string()),
        accepted: None,
    };
    file.append(r#"{"type":"user","content":"What now?"}"#)?;
    let Turn { calls, refused } = guarded::turn(&mut file, &mut provider).map_err(told)?;
    if calls > 8 {
        return Err(told(format!("{calls} calls; refused: {refused:?}")));
    }
    file.append(r#"{"type":"user","content":"And now?"}"#)?;
    let next = guarded::turn(&mut file, &mut provider).map_err(told)?;
    // A session just below the window grows beyond it with the first turn.
    let was_cut = refused.iter().any(|broken| broken.rule == "window");
    let is_wedge = |broken: &Broken| was_cut || broken.rule != "window";
    if next.refused.iter().any(is_wedge) {
        return Err(told(format!(
            "the second turn is refused: {:?}; the first was by {refused:?}",
            next.refused
        )));
    }
    match file.bytes.starts_with(&bytes) {
        true => Ok(()),
        false => Err(told("the transcript was changed".to_owned())),
    }
}
