//! Calls and results in every possible order, not only in the orders that are generated from seeds.

use serde_json::Value;

use super::any::{Law, is_accepted, rebuild};
use super::laws::values;
use super::model::blocks;

/// Three calls, and their results.
const RECORDS: [&str; 6] = [
    r#"{"type":"tool_use","tool_use_id":"a","name":"f","input":{}}"#,
    r#"{"type":"tool_use","tool_use_id":"b","name":"f","input":{}}"#,
    r#"{"type":"tool_use","tool_use_id":"c","name":"f","input":{}}"#,
    r#"{"type":"tool_result","tool_use_id":"a","content":"of a"}"#,
    r#"{"type":"tool_result","tool_use_id":"b","content":"of b"}"#,
    r#"{"type":"tool_result","tool_use_id":"c","content":"of c"}"#,
];

/// Records that may stand between the calls and results.
const OTHERS: [&str; 3] = [
    r#"{"type":"user","content":"and"}"#,
    r#"{"type":"assistant","content":[{"type":"text","text":"so"}]}"#,
    r#"{"type":"error","class":"overloaded","status":529,"message":"busy","model":"m"}"#,
];

/// Checks all orders of the records, alone and with each of [`OTHERS`] at every position.
///
/// # Errors
/// Reports an order in which results are paired wrongly or a provider would refuse the messages.
pub fn in_every_order() -> Law {
    for order in permutations(RECORDS.to_vec()) {
        paired(&order)?;
        for other in OTHERS {
            for at in 0..=order.len() {
                let mut order = order.clone();
                order.insert(at, other);
                paired(&order)?;
            }
        }
    }
    Ok(())
}

/// Returns all orders of a list.
pub fn permutations<T: Clone>(list: Vec<T>) -> Vec<Vec<T>> {
    if list.is_empty() {
        return vec![list];
    }
    let mut all = Vec::new();
    for at in 0..list.len() {
        let mut rest = list.clone();
        let first = rest.remove(at);
        all.extend(permutations(rest).into_iter().map(|rest| [vec![first.clone()], rest].concat()));
    }
    all
}

/// Checks that a provider accepts the messages, that each call is followed by its own result, and that rebuild reports
/// nothing but late results.
fn paired(records: &[&str]) -> Law {
    let user = [r#"{"type":"user","content":"go"}"#];
    let text = [&user, records, &user].concat().join("\n");
    let with_text = |why: String| format!("{why}\n{text}");
    let rebuilt = rebuild(text.as_bytes()).map_err(with_text)?;
    is_accepted(&rebuilt.messages, text.as_bytes()).map_err(with_text)?;
    if let Some(found) = rebuilt.findings.iter().find(|found| found.rule.name != "late-result") {
        return Err(with_text(found.to_string()));
    }
    let messages = values(&rebuilt.messages)?;
    let mut calls: Vec<String> = Vec::new();
    for pair in messages.windows(2) {
        let of_kind = |message: &Value, kind: &str| -> Vec<Value> {
            blocks(message).into_iter().filter(|block| block["type"] == kind).collect()
        };
        let (called, results) = (of_kind(&pair[0], "tool_use"), of_kind(&pair[1], "tool_result"));
        let ids: Vec<&str> = called.iter().filter_map(|call| call["id"].as_str()).collect();
        let expected: Vec<String> = ids.iter().map(|id| format!("{id}: of {id}")).collect();
        let found: Vec<String> = results
            .iter()
            .map(|result| {
                let text = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
                format!("{}: {}", text("tool_use_id"), text("content"))
            })
            .collect();
        if found != expected {
            return Err(with_text(format!("{found:?} instead of {expected:?}")));
        }
        calls.extend(ids.into_iter().map(str::to_owned));
    }
    calls.sort();
    if calls == ["a", "b", "c"] { Ok(()) } else { Err(with_text(format!("calls: {calls:?}"))) }
}
