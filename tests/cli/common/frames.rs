//! Frames of the Model Context Protocol with small changes to values and bytes: some are still requests, most are nearly.

use serde_json::{Value, json};

use crate::choices::Choices;

/// Values that replace any value, as JSON.
#[rustfmt::skip]
const VALUES: [&str; 34] = [
    "null", "true", "false", "0", "-1", "1.5", "-0.0e-1", "1e999", "4294967295", "4294967296", "9223372036854775808",
    "18446744073709551616", r#""""#, r#""a""#, r#""2.0""#, r#""2026-07-28""#, r#""\u0000\ud800""#, r#""\u001b[31m\r\n\u2028""#,
    r#""é日😀""#, r#""%""#, r#""%zz%e9""#, r#""claw-session:%""#, r#""claw-session:d%2Fa.jsonl""#, r#""é%é""#, r#""\"needle\" -*""#,
    r#""NEAR(a""#, r#""2026-11-23""#, "[]", "{}", "[[[]]]", "[1,{}]", r#"{"a":null,"a":1}"#, r#"{"":{"":[]}}"#, r#"{"_meta":7}"#,
];
/// Bytes that are inserted anywhere.
#[rustfmt::skip]
const BYTES: [&[u8]; 20] = [
    b"{", b"}", b"[", b"]", b":", b",", b"\"", b"\\", b"\\ud83d", b"0", b"-", b" ", b"\t", b"\r", b"\0", b"\x1b", b"\xff", b"\xc3",
    b"\xef\xbb\xbf", b"null",
];
/// The names of members that frames have.
#[rustfmt::skip]
const NAMES: [&str; 18] = [
    "jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data", "_meta", "name", "arguments", "cursor",
    "nextCursor", "requestId", "progressToken", "content", "",
];

/// Returns a frame with one or more changes. It is one line, without its end.
pub fn changed(frame: &Value, choices: &mut Choices) -> Vec<u8> {
    let mut frame = frame.clone();
    for _ in 0..choices.below(3) {
        let count = values_in(&frame);
        change(&mut frame, &mut choices.below(count), choices);
    }
    let mut bytes = frame.to_string().into_bytes();
    if choices.one_in(2) {
        (0..=choices.below(3)).for_each(|_| change_bytes(&mut bytes, choices));
    }
    bytes.retain(|byte| *byte != b'\n');
    bytes
}

/// Returns the number of values in a value, including itself.
fn values_in(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(values_in).sum(),
        Value::Object(members) => members.values().map(values_in).sum(),
        _ => 0,
    }
}

/// Changes the value before which `skip` others are.
fn change(value: &mut Value, skip: &mut usize, choices: &mut Choices) -> bool {
    if *skip == 0 {
        change_here(value, choices);
        return true;
    }
    *skip -= 1;
    match value {
        Value::Array(list) => list.iter_mut().any(|it| change(it, skip, choices)),
        Value::Object(members) => members.values_mut().any(|it| change(it, skip, choices)),
        _ => false,
    }
}

fn change_here(value: &mut Value, choices: &mut Choices) {
    match (value, choices.below(6)) {
        (Value::Object(members), 0 | 1) if !members.is_empty() => {
            let name = members.keys().nth(choices.below(members.len())).cloned();
            let taken = name.and_then(|name| members.remove(&name));
            if choices.one_in(2) {
                members.insert(choices.of_these(&NAMES).to_owned(), taken.unwrap_or_default());
            }
        }
        (Value::Object(members), 2 | 3) => {
            members.insert(choices.of_these(&NAMES).to_owned(), odd(choices));
        }
        (Value::Array(list), 0..=3) => match choices.below(3) {
            0 => list.push(odd(choices)),
            1 => drop(list.pop()),
            _ => *list = list.iter().chain(&*list).cloned().collect(),
        },
        (Value::String(text), 0..=3) => {
            let at = choices.below(text.chars().count() + 1);
            let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            match choices.below(3) {
                0 => text.truncate(at),
                1 => text
                    .insert_str(at, choices.of_these(&["%", "\0", "\u{1b}", "é", "\"", "*", " -"])),
                _ => *text = text.repeat(choices.of_these(&[0, 2, 300])),
            }
        }
        (value, 4) => {
            for _ in 0..choices.of_these(&[1, 2, 60, 130]) {
                *value = json!([value.take()]);
            }
        }
        (value, _) => *value = odd(choices),
    }
}

fn odd(choices: &mut Choices) -> Value {
    let text = choices.of_these(&VALUES);
    // Not all of them can be a `Value`.
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn change_bytes(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let (from, to) = (choices.below(bytes.len() + 1), choices.below(bytes.len() + 1));
    let (from, to) = (from.min(to), from.max(to));
    match choices.below(6) {
        0 => drop(bytes.splice(from..from, choices.of_these(&BYTES).iter().copied())),
        1 => drop(bytes.splice(from..from, choices.of_these(&VALUES).bytes())),
        2 => drop(bytes.drain(from..to.min(from + 4))),
        3 => bytes.truncate(to),
        // Members come twice.
        4 => bytes.extend_from_within(from..to),
        _ => {
            let part = bytes[from..to].to_vec();
            bytes.splice(from..from, part);
        }
    }
}
