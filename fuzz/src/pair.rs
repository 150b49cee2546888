//! Tests short transcripts: messages, calls, results and view records in any order, with few ids.
//!
//! Two bytes make a record, so a change of one byte changes one record. The first byte selects the kind of the record
//! and its id. The second selects the id of a call, the text, and the record that this record refers to, as far as
//! records of this kind have these members.

use super::any::is_accepted;
use super::{expect, laws};
use clawutils::record::digest;

/// Ids of calls. Providers refuse the third and the fourth. The second and the third become equal when invalid
/// characters are replaced.
const CALLS: [&str; 4] = ["a", "a_2", "a:2", "日"];

/// A result that is long enough to be shortened.
const LONG: &str = "many words on one line, which is long enough that a truncation can keep a part of its \
    beginning and a part of its end, and can leave out the middle of it, and the middle is longer than the \
    notice which takes its place and gives the number of bytes left out, and then some more words.";

/// Tests `bytes` as records.
pub fn run(bytes: &[u8]) {
    let transcript = transcript(bytes);
    let rebuilt = laws::check(&transcript).and_then(|rebuilt| match rebuilt {
        Some(rebuilt) => is_accepted(&rebuilt.messages, &transcript),
        None => Err("a transcript in our own format is read as another dialect".to_owned()),
    });
    if let Err(why) = rebuilt {
        panic!("{why}\n---\n{}\n---", String::from_utf8_lossy(&transcript));
    }
    expect(laws::check_each_option(&transcript));
}

/// Returns the transcript that `bytes` select.
fn transcript(bytes: &[u8]) -> Vec<u8> {
    let mut transcript = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for (index, pair) in bytes.chunks_exact(2).enumerate() {
        let id = match pair[0] >> 4 {
            0..4 => None,
            4 => Some("r0".to_owned()),
            _ => Some(format!("r{index}")),
        };
        ids.push(id.clone().unwrap_or_else(|| format!("@{}", transcript.len())));
        let Some(members) = members(pair[0] & 15, pair[1], &ids) else {
            // Torn: the next record begins on the same line.
            transcript.extend(br#"{"type":"user","content":[{"type":"text","te"#);
            continue;
        };
        let id = id.map_or_else(String::new, |id| format!(r#""id":"{id}","#));
        transcript.extend(format!("{{{id}{members}}}\n").bytes());
    }
    transcript
}

/// Returns the members of a record except its id; `None` for a torn record.
fn members(kind: u8, about: u8, ids: &[String]) -> Option<String> {
    let call = CALLS[usize::from(about & 3)];
    let words = format!("w{about}");
    // The id of this record or of one of the fifteen records before it, or "nowhere" if that record does not exist.
    let target = ids.iter().rev().nth(usize::from(about >> 4)).map_or("nowhere", String::as_str);
    Some(match kind {
        0 | 1 => user(&format!(r#""{words}""#)),
        2 => user(&format!("[{},{}]", result(call, &words), text(&words))),
        3 => user(&format!("[{}]", result(call, LONG))),
        4 => assistant(&format!(r#""{words}""#)),
        5 => assistant(&format!("[{},{}]", text(&words), tool_use(call))),
        6 => {
            assistant(&format!("[{},{}]", tool_use(call), tool_use(CALLS[usize::from(about >> 6)])))
        }
        7 => assistant(
            r#"[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":" "}]"#,
        ),
        8 | 9 => format!(
            r#""type":"tool_use","tool_use_id":"{call}","name":"f","input":{{"n":{about}}}"#
        ),
        10 => record_of_result(call, &words),
        11 => record_of_result(call, LONG),
        12 => {
            format!(r#""type":"compaction","summary":"{words}","first_kept_entry_id":"{target}""#)
        }
        13 => truncation(target, call),
        14 => format!(r#""type":"retract","target":"{target}""#),
        _ => return None,
    })
}

fn text(words: &str) -> String {
    format!(r#"{{"type":"text","text":"{words}"}}"#)
}

fn user(content: &str) -> String {
    format!(r#""type":"user","content":{content}"#)
}

fn assistant(content: &str) -> String {
    format!(r#""type":"assistant","content":{content}"#)
}

fn tool_use(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#)
}

fn result(id: &str, words: &str) -> String {
    format!("{{{}}}", record_of_result(id, words))
}

fn record_of_result(id: &str, words: &str) -> String {
    format!(r#""type":"tool_result","tool_use_id":"{id}","content":"{words}""#)
}

fn truncation(record: &str, call: &str) -> String {
    let (bytes, sha256) = (LONG.len(), digest(LONG));
    format!(
        r#""type":"truncation","tool_use_id":"{call}","record_id":"{record}","head":12,"tail":5,"bytes":{bytes},"sha256":"{sha256}""#
    )
}
