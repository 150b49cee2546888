//! The model that a transcript names.

use crate::input::backward::{Backward, Needles};
use crate::input::{self, Input};
use crate::json;
use crate::record::{self, Body};

/// The number of bytes at the end that are searched first. The newest reply is usually there.
const NEAR: u64 = 32 * 1024;

/// Returns the model of the newest reply that names one; `None` if there is none.
///
/// # Errors
/// Fails if an input cannot be read.
pub fn newest_model(inputs: &[Input]) -> anyhow::Result<Option<String>> {
    let (end, needle) = (input::total(inputs), Needles::quoted(&["\"model\""]));
    for floor in [end.saturating_sub(NEAR), 0] {
        let mut lines = Backward::new(inputs, end, &needle);
        lines.stop_at(floor);
        while let Some(line) = lines.next_line()? {
            for record in record::in_line(&line).iter().rev() {
                if let Body::Assistant { model: Some(model), .. } = &record.body
                    && let Some(name) = json::string(model).filter(|name| !name.is_empty())
                {
                    return Ok(Some(name.into_owned()));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_reply_that_names_a_model_counts() {
        let reply =
            |members: &str| format!("{{\"type\":\"assistant\",\"content\":\"a\"{members}}}\n");
        let named = |name: &str| reply(&format!(",\"model\":\"{name}\""));
        let prompt = "{\"type\":\"user\",\"content\":\"\\\"model\\\"\",\"model\":\"x\"}\n";
        let long = prompt.replace("content\":\"", &format!("content\":\"{}", "y".repeat(40_000)));
        for (text, model) in [
            (String::new(), None),
            (prompt.to_owned() + &reply(""), None),
            (named("a") + &named("b") + prompt, Some("b")),
            (named("a") + &named("") + &reply(",\"model\":5") + &reply(""), Some("a")),
            (named("a") + &reply(",\"model\":\"b\",\"interrupted\":true"), Some("a")),
            (named("a") + &named("b") + &long, Some("b")),
        ] {
            let input = Input::memory("t", text.clone().into_bytes());
            assert_eq!(newest_model(&[input]).unwrap().as_deref(), model, "{text}");
        }
    }
}
