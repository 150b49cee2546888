//! Windows that refusals taught: one JSON object a line, in a file beside other state.
//!
//! A window belongs to an endpoint and a model together; the number in a refusal is the best source
//! of it there is. The newest line for both counts.

use crate::json::{Object, quote};

/// The line to add when a refusal by `endpoint` named the window of `model` (tokens).
#[must_use]
pub fn line(endpoint: &str, model: &str, window: u64, ts: f64) -> String {
    format!(
        "{{\"endpoint\":{},\"model\":{},\"window\":{window},\"ts\":{ts}}}\n",
        quote(endpoint),
        quote(model)
    )
}

/// The newest window in `text` for `endpoint` and `model` (tokens). Lines that say nothing of the kind
/// are passed over.
#[must_use]
pub fn lookup(text: &str, endpoint: &str, model: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| {
        let object = Object::parse(line).ok()?;
        let matches = object.string("endpoint")? == endpoint && object.string("model")? == model;
        object.number("window").filter(|window| matches && *window > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_line_for_both_counts() {
        let text =
            [line("a", "m", 100, 1.0), line("a", "n", 5, 2.5), line("b", "m", 7, 3.0)].concat();
        let text = text + "torn{\n" + &line("a", "m", 200, 4.0) + "{\"endpoint\":\"a\",";
        assert_eq!(lookup(&text, "a", "m"), Some(200));
        assert_eq!(lookup(&text, "b", "m"), Some(7));
        assert_eq!(lookup(&text, "b", "n"), None);
    }
}
