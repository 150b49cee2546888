use super::*;
use crate::lint;
use crate::media::Kind;
use crate::media::encoded::encode;
use crate::media::scale::tests::picture;
use crate::messages::rebuild::{RebuildOptions, from_inputs};

/// A program whose sessions are damaged here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    ClaudeCode,
    Codex,
    Pi,
}

const ALL: [Whose; 3] = [Whose::ClaudeCode, Whose::Codex, Whose::Pi];
const SEAL: &str = "c2lnbmVk";

/// A sound session: a prompt, a reply with thinking and two calls, their results, a text, a prompt with an image, a reply.
fn session(whose: Whose) -> Vec<String> {
    let image = encode(&picture(Kind::Png, 4, 4));
    let lines = match whose {
        Whose::ClaudeCode => {
            let mut lines = Vec::new();
            let mut add = |kind: &str, message: String| {
                let at = lines.len();
                let parent = if at == 0 { "null".to_owned() } else { format!("\"u{}\"", at - 1) };
                lines.push(format!(
                    r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","message":{message},"uuid":"u{at}","timestamp":"2026-01-01T00:00:0{at}Z","sessionId":"s","cwd":"/w"}}"#
                ));
            };
            let reply = |id: &str, block: &str| {
                format!(
                    r#"{{"id":"{id}","role":"assistant","model":"claude-a","content":[{block}],"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
                )
            };
            let call = |id: &str| {
                format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{}}}}"#)
            };
            let result = |id: &str| {
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"result {id}"}}]}}"#
                )
            };
            add("user", r#"{"role":"user","content":"First prompt"}"#.to_owned());
            add(
                "assistant",
                reply(
                    "m1",
                    &format!(r#"{{"type":"thinking","thinking":"thought","signature":"{SEAL}"}}"#),
                ),
            );
            add("assistant", reply("m1", &call("c1")));
            add("assistant", reply("m1", &call("c2")));
            add("user", result("c1"));
            add("user", result("c2"));
            add("assistant", reply("m2", r#"{"type":"text","text":"First answer"}"#));
            add(
                "user",
                format!(
                    r#"{{"role":"user","content":[{{"type":"text","text":"Second prompt"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{image}"}}}}]}}"#
                ),
            );
            add("assistant", reply("m3", r#"{"type":"text","text":"Second answer"}"#));
            lines
        }
        Whose::Codex => {
            let item = |payload: String| {
                format!(
                    r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{payload}}}"#
                )
            };
            let message = |role: &str, kind: &str, text: &str| {
                item(format!(
                    r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
                ))
            };
            let call = |id: &str| {
                item(format!(
                    r#"{{"type":"function_call","name":"read","arguments":"{{}}","call_id":"{id}"}}"#
                ))
            };
            let output = |id: &str| {
                item(format!(
                    r#"{{"type":"function_call_output","call_id":"{id}","output":"result {id}"}}"#
                ))
            };
            vec![
                r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"00000000-0000-4000-8000-000000000000","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","originator":"codex_exec","cli_version":"0.169.0","source":"exec"}}"#.to_owned(),
                message("user", "input_text", "First prompt"),
                item(format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"{SEAL}"}}"#)),
                call("c1"),
                call("c2"),
                output("c1"),
                output("c2"),
                message("assistant", "output_text", "First answer"),
                item(format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"Second prompt"}},{{"type":"input_image","image_url":"data:image/png;base64,{image}"}}]}}"#)),
                message("assistant", "output_text", "Second answer"),
            ]
        }
        Whose::Pi => {
            let mut lines = vec![r#"{"type":"session","version":3,"id":"00000000-0000-4000-8000-000000000000","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}"#.to_owned()];
            let mut add = |message: String| {
                let at = lines.len();
                let parent = if at == 1 { "null".to_owned() } else { format!("\"e{}\"", at - 1) };
                lines.push(format!(r#"{{"type":"message","id":"e{at}","parentId":{parent},"timestamp":"2026-01-01T00:00:0{at}Z","message":{message}}}"#));
            };
            let reply = |blocks: &str| {
                format!(
                    r#"{{"role":"assistant","content":[{blocks}],"api":"anthropic-messages","provider":"anthropic","model":"claude-a","stopReason":"stop","timestamp":1}}"#
                )
            };
            let call = |id: &str| {
                format!(r#"{{"type":"toolCall","id":"{id}","name":"read","arguments":{{}}}}"#)
            };
            let result = |id: &str| {
                format!(
                    r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[{{"type":"text","text":"result {id}"}}],"isError":false,"timestamp":1}}"#
                )
            };
            add(r#"{"role":"user","content":[{"type":"text","text":"First prompt"}],"timestamp":1}"#.to_owned());
            add(reply(&format!(
                r#"{{"type":"thinking","thinking":"thought","thinkingSignature":"{SEAL}"}},{},{}"#,
                call("c1"),
                call("c2")
            )));
            add(result("c1"));
            add(result("c2"));
            add(reply(r#"{"type":"text","text":"First answer"}"#));
            add(format!(
                r#"{{"role":"user","content":[{{"type":"text","text":"Second prompt"}},{{"type":"image","data":"{image}","mimeType":"image/png"}}],"timestamp":1}}"#
            ));
            add(reply(r#"{"type":"text","text":"Second answer"}"#));
            lines
        }
    };
    lines.into_iter().map(|line| line + "\n").collect()
}

fn input(bytes: &[u8]) -> Input {
    Input::memory("rollout-00000000-0000-4000-8000-000000000000.jsonl", bytes.to_vec())
}

fn repaired(bytes: &[u8]) -> Repaired {
    repair(&input(bytes), Options::default()).unwrap()
}

/// Repairs a session, and returns the reasons by line.
///
/// # Errors
/// Describes what does not hold for every repair: nothing is left to repair, claw-check finds nothing, and the lines without
/// an edit keep their bytes and their order.
fn check(bytes: &[u8]) -> Result<Vec<String>, String> {
    let Repaired { edits, text, .. } = repaired(bytes);
    let lines: Vec<String> = edits
        .iter()
        .map(|edit| format!("{} {}: {}", edit.line, edit.change.name(), edit.why))
        .collect();
    let shown = format!("{lines:#?}\n{}", String::from_utf8_lossy(&text));
    let again = repaired(&text).edits;
    if !again.is_empty() {
        return Err(format!("a second repair changes it: {again:#?}\n{shown}"));
    }
    let source = crate::dialect::open(input(&text), &crate::dialect::Choice::default());
    let findings = source.and_then(lint::lint).map_err(|error| format!("{error:#}\n{shown}"))?;
    let known = ["other-branch", "other-root", "unknown-type", "open-at-end", "late-result"];
    let found = findings.iter().filter(|found| !known.contains(&found.rule.name));
    let found: Vec<String> = found.map(ToString::to_string).collect();
    if !found.is_empty() {
        return Err(format!("claw-check finds {found:#?}\n{shown}"));
    }
    if applied(bytes, &edits) != text {
        return Err(format!("the edits do not give the text\n{shown}"));
    }
    Ok(lines)
}

/// Applies edits to a file.
fn applied(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut add = |text: &[u8]| out.extend([text, b"\n"].concat());
    let insert = |line: u64, add: &mut dyn FnMut(&[u8])| {
        for edit in edits.iter().filter(|edit| edit.line == line) {
            if let Change::InsertAfter(text) = &edit.change {
                add(text.as_bytes());
            }
        }
    };
    insert(0, &mut add);
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    for (number, line) in (1..).zip(whole.split(|byte| *byte == b'\n')) {
        let own = edits
            .iter()
            .find(|edit| edit.line == number && !matches!(edit.change, Change::InsertAfter(_)));
        match own.map(|edit| &edit.change) {
            None => add(line),
            Some(Change::Replace(text)) => add(text.as_bytes()),
            _ => {}
        }
        insert(number, &mut add);
    }
    out
}

fn texts(bytes: &[u8]) -> String {
    let inputs = [crate::dialect::open(input(bytes), &crate::dialect::Choice::default()).unwrap()];
    let messages = from_inputs(&inputs, &RebuildOptions::default()).unwrap().messages;
    messages.iter().map(|message| message.to_json()).collect::<Vec<_>>().join("\n")
}

/// A damage: what it does to the lines of a session. It returns nothing if the program cannot have it.
type Damage = fn(Whose, &mut Vec<String>) -> bool;

/// Returns the line with `needle`.
fn find(lines: &[String], needle: &str) -> usize {
    lines.iter().position(|line| line.contains(needle)).unwrap()
}

fn swap(lines: &mut [String], from: &str, to: &str) -> bool {
    let at = find(lines, from);
    lines[at] = lines[at].replace(from, to);
    true
}

/// Removes a line; in a tree, its child becomes the child of its parent.
fn take(lines: &mut Vec<String>, at: usize) -> String {
    let line = lines.remove(at);
    let object = crate::json::Object::parse(line.trim()).unwrap();
    for (id, parent) in [("uuid", "parentUuid"), ("id", "parentId")] {
        let (Some(id), Some(new)) = (object.get(id), object.get(parent)) else { continue };
        let old = format!("\"{parent}\":{id}");
        for line in lines.iter_mut() {
            *line = line.replace(&old, &format!("\"{parent}\":{new}"));
        }
    }
    drop(object);
    line
}

/// Inserts a line; in a tree, it becomes the child of the line before, and the parent of its children.
fn put(lines: &mut Vec<String>, at: usize, line: &str, name: &str) {
    let mut line = line.to_owned();
    for (id, parent) in [("uuid", "parentUuid"), ("id", "parentId")] {
        let before = crate::json::Object::parse(lines[at - 1].trim()).unwrap();
        let (Some(own), true) = (before.get(id).map(str::to_owned), before.get(parent).is_some())
        else {
            continue;
        };
        let old = format!("\"{parent}\":{own}");
        let new = format!("\"{parent}\":\"{name}\"");
        lines.iter_mut().for_each(|line| *line = line.replace(&old, &new));
        let object = crate::json::Object::parse(line.trim()).unwrap();
        let with_id = object.with(id, &format!("\"{name}\""));
        line = crate::json::Object::parse(&with_id).unwrap().with(parent, &own) + "\n";
    }
    lines.insert(at, line);
}

/// Damages with their names. The reports that they come from are in docs/repair.md.
const DAMAGES: &[(&str, Damage)] = &[
    ("call-without-result", |_, lines| {
        let at = find(lines, "result c1");
        take(lines, at);
        true
    }),
    ("result-without-call", |whose, lines| match whose {
        Whose::Pi => {
            swap(lines, r#"{"type":"toolCall","id":"c1","name":"read","arguments":{}},"#, "")
        }
        _ => {
            let at = find(lines, "\"c1\"");
            take(lines, at);
            true
        }
    }),
    ("second-result", |_, lines| {
        let at = find(lines, "result c1");
        let line = lines[at].clone();
        put(lines, at + 1, &line, "n1");
        true
    }),
    ("result-after-the-next-prompt", |whose, lines| {
        let at = find(lines, "result c2");
        let line = take(lines, at);
        let at = find(lines, "Second prompt");
        put(lines, at + 1, &line, "n1");
        whose != Whose::Codex
    }),
    ("result-before-its-call", |_, lines| {
        let at = find(lines, "result c1");
        let line = take(lines, at);
        let at = find(lines, "First prompt");
        put(lines, at + 1, &line, "n1");
        true
    }),
    ("same-call-id-twice", |_, lines| {
        for line in lines.iter_mut() {
            *line = line.replace("\"c2\"", "\"c1\"");
        }
        true
    }),
    ("call-id-with-odd-characters", |_, lines| {
        for line in lines.iter_mut() {
            *line = line.replace("\"c2\"", "\"functions.read:2\"");
        }
        true
    }),
    ("tool-name-with-dots", |_, lines| {
        swap(lines, "\"name\":\"read\"", "\"name\":\"mcp.server/read\"")
    }),
    ("input-is-a-string", |whose, lines| {
        whose != Whose::Codex && swap(lines, ":{}}", r#":"{\"a\":1}"}"#)
    }),
    ("signature-of-no-one", |_, lines| swap(lines, SEAL, "signed elsewhere")),
    ("thinking-without-signature", |whose, lines| {
        whose == Whose::ClaudeCode && swap(lines, SEAL, "")
    }),
    ("thinking-of-another-model", |whose, lines| {
        let at = find(lines, "thought".get(..if whose == Whose::Codex { 0 } else { 7 }).unwrap());
        lines[at] = lines[at].replace("claude-a", "glm-5");
        whose == Whose::ClaudeCode
    }),
    ("reply-ends-in-thinking", |whose, lines| {
        let thinking = format!(
            r#"{{"type":"thinking","thinking":"t","signature":"{SEAL}","thinkingSignature":"{SEAL}"}}"#
        );
        whose != Whose::Codex
            && swap(
                lines,
                r#"{"type":"text","text":"First answer"}"#,
                &format!(r#"{{"type":"text","text":"First answer"}},{thinking}"#),
            )
    }),
    ("image-of-wrong-type", |_, lines| swap(lines, "image/png", "image/jpeg")),
    ("image-that-is-torn", |_, lines| {
        let data = encode(&picture(Kind::Png, 4, 4));
        swap(lines, &data, &data[..40])
    }),
    ("image-that-is-text", |_, lines| swap(lines, &encode(&picture(Kind::Png, 4, 4)), "aGVsbG8=")),
    ("image-of-9000-pixels", |_, lines| {
        swap(lines, &encode(&picture(Kind::Png, 4, 4)), &encode(&picture(Kind::Png, 9000, 2)))
    }),
    ("half-a-surrogate-pair", |_, lines| swap(lines, "First answer", r"First answer \ud83d")),
    ("nul-bytes", |_, lines| {
        let at = find(lines, "First answer");
        lines[at].insert_str(0, "\0\0\0\0");
        true
    }),
    ("torn-last-line", |_, lines| {
        let last = lines.pop().unwrap();
        lines.push(last[..last.len() / 2].to_owned());
        true
    }),
    ("torn-line-inside", |_, lines| {
        let at = find(lines, "First answer");
        lines[at] = lines[at][..60].to_owned() + "\n";
        true
    }),
    ("torn-call", |_, lines| {
        let at = find(lines, "\"c1\"");
        lines[at] = lines[at][..60].to_owned() + "\n";
        true
    }),
    ("torn-line-with-the-next-one", |_, lines| {
        let at = find(lines, "First answer");
        lines[at].truncate(60);
        true
    }),
    ("two-records-on-a-line", |_, lines| {
        let at = find(lines, "First answer");
        lines[at].pop();
        true
    }),
    ("no-line-feed-at-the-end", |_, lines| lines.last_mut().unwrap().pop().is_some()),
    ("byte-order-mark", |_, lines| {
        lines[0].insert(0, '\u{feff}');
        true
    }),
    ("torn-header", |whose, lines| {
        lines[0].truncate(90);
        lines[0].push('\n');
        whose != Whose::ClaudeCode
    }),
    ("missing-parent", |whose, lines| {
        let at = find(lines, "First answer");
        lines.remove(at);
        whose != Whose::Codex
    }),
    ("circle", |whose, lines| {
        let at = find(lines, "First prompt");
        let (name, id) = if whose == Whose::Pi { ("parentId", "e5") } else { ("parentUuid", "u6") };
        lines[at] = lines[at].replace(&format!("\"{name}\":null"), &format!("\"{name}\":\"{id}\""));
        whose != Whose::Codex
    }),
    ("same-record-twice", |whose, lines| {
        let at = find(lines, "First answer");
        let line = lines[at].clone();
        lines.insert(at + 1, line);
        whose != Whose::Codex
    }),
    ("same-record-id-twice", |whose, lines| {
        let at = find(lines, "Second answer");
        let (old, new) =
            if whose == Whose::Pi { ("\"e7\"", "\"e5\"") } else { ("\"u8\"", "\"u6\"") };
        lines[at] = lines[at].replace(old, new);
        whose != Whose::Codex
    }),
    ("empty-text", |whose, lines| {
        whose == Whose::ClaudeCode
            && swap(
                lines,
                r#"{"type":"text","text":"Second prompt"}"#,
                r#"{"type":"text","text":""}"#,
            )
    }),
    ("empty-prompt", |whose, lines| {
        whose == Whose::ClaudeCode && swap(lines, r#""content":"First prompt""#, r#""content":"""#)
    }),
    ("text-of-another-api", |whose, lines| {
        whose == Whose::ClaudeCode
            && swap(
                lines,
                r#"{"type":"text","text":"Second prompt"}"#,
                r#"{"type":"input_text","text":"Second prompt"}"#,
            )
    }),
    ("image-of-the-assistant", |whose, lines| {
        let image = r#"{"type":"image","source":{"type":"url","url":"http://x"}}"#;
        whose == Whose::ClaudeCode
            && swap(
                lines,
                r#"{"type":"text","text":"First answer"}"#,
                &format!(r#"{image},{{"type":"text","text":"First answer"}}"#),
            )
    }),
];

#[test]
fn a_sound_session_is_not_changed_by_a_byte() {
    for whose in ALL {
        let bytes = session(whose).concat().into_bytes();
        assert_eq!(check(&bytes), Ok(Vec::new()), "{whose:?}");
        assert_eq!(repaired(&bytes).text, bytes);
    }
}

#[test]
fn each_damage_is_repaired_for_each_program() {
    let (mut counts, mut faults) = ([0; 3], Vec::new());
    for (name, damage) in DAMAGES {
        for (count, whose) in counts.iter_mut().zip(ALL) {
            let mut lines = session(whose);
            if !damage(whose, &mut lines) {
                continue;
            }
            *count += 1;
            let damaged = lines.concat();
            let texts = texts(&repaired(damaged.as_bytes()).text);
            let known = ["First prompt", "First answer", "Second prompt", "Second answer"];
            let lost =
                known.into_iter().find(|text| damaged.contains(text) && !texts.contains(text));
            match check(damaged.as_bytes()) {
                Ok(edits) if edits.is_empty() => {
                    faults.push(format!("{whose:?} {name}: not found"))
                }
                Ok(_) => faults
                    .extend(lost.map(|text| format!("{whose:?} {name}: loses '{text}'\n{texts}"))),
                Err(why) => faults.push(format!("{whose:?} {name}: {why}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(counts.iter().all(|count| *count >= 12), "{counts:?}");
}

#[test]
fn a_reason_says_what_becomes_of_the_block() {
    let block = |data: &str| {
        format!(
            r#"{{"type":"document","source":{{"type":"base64","media_type":"application/pdf","data":"{data}"}}}}"#
        )
    };
    let (text, prompt) = (block("aGVsbG8="), r#"{"type":"text","text":"Second prompt"}"#);
    let wide = encode(&picture(Kind::Png, 9000, 9));
    let png = encode(&picture(Kind::Png, 4, 4));
    for (from, to, why) in [
        (SEAL, "!", "the signature of a thinking block is not base64; left out"),
        (SEAL, "", "a thinking block has no signature; left out"),
        (
            ":{}}",
            r#":"{\"a\":1}"}"#,
            "the input of a call is not an object; it is the object in its string now",
        ),
        (
            ":{}}",
            r#":["ls"]}"#,
            "the input of a call is not an object; it is the member 'input' of one now",
        ),
        (prompt, r#"{"type":"text","text":" "}"#, "a text is empty; left out"),
        (prompt, &text, "media: it is text, not 'application/pdf'; corrected"),
        ("image/png", "image/gif", "media: it is PNG, not 'image/gif'; corrected"),
        (&png, &wide, "media: it has 9000 x 9 pixels; written with 2000 x 2 pixels"),
        (&png, "iVBOR", "media: it is not base64; left out"),
    ] {
        let mut lines = session(Whose::ClaudeCode);
        swap(&mut lines, from, to);
        let edits = repaired(lines.concat().as_bytes()).edits;
        let reasons: Vec<&str> = edits.iter().map(|edit| edit.why.as_str()).collect();
        assert_eq!(reasons, [why]);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    for whose in ALL {
        let mut bytes = session(whose).concat().into_bytes();
        let at = memchr::memmem::find(&bytes, b"First answer").unwrap();
        bytes.insert(at + 5, 0xFF);
        assert_eq!(check(&bytes).unwrap().len(), 1, "{whose:?}");
        assert!(texts(&repaired(&bytes).text).contains("First\u{fffd} answer"), "{whose:?}");
    }
}

#[test]
fn the_last_good_part_ends_before_the_damage() {
    for whose in ALL {
        let mut lines = session(whose);
        let at = find(&lines, "Second prompt");
        swap(&mut lines, "image/png", "image/jpeg");
        let damaged = lines.concat().into_bytes();
        let input = input(&damaged);
        let length = last_good(&input, &repaired(&damaged)).unwrap().unwrap();
        assert_eq!(damaged[..length], *lines[..at].concat().as_bytes(), "{whose:?}");
        // Nothing is good before a call whose result is missing but the header and the prompt.
        let mut lines = session(whose);
        let at = find(&lines, "result c1");
        take(&mut lines, at);
        let damaged = lines.concat().into_bytes();
        assert_eq!(
            last_good(&super::tests::input(&damaged), &repaired(&damaged)).unwrap(),
            None,
            "{whose:?}"
        );
    }
}

/// Numbers by a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count.max(1)
    }
}

/// Parts of sessions, and what damage makes of them.
const SWAPS: [(&str, &str); 18] = [
    ("\"c2\"", "\"c1\""),
    ("\"c1\"", "\"a b\""),
    ("\"read\"", "\"a.b\""),
    ("First", "\\ud83d"),
    ("Second answer", " "),
    ("First answer", ""),
    ("image/png", "image/webp"),
    ("iVBOR", "iVB"),
    (SEAL, "!"),
    ("claude-a", "glm"),
    ("\"u3\"", "\"u5\""),
    ("\"e2\"", "\"e4\""),
    ("\"u0\"", "\"u8\""),
    ("\"e1\"", "\"e7\""),
    (":null", ":\"x\""),
    ("{}", "[]"),
    ("\"user\"", "\"assistant\""),
    ("\"isError\":false", "\"isError\":true"),
];

fn harm(lines: &mut Vec<Vec<u8>>, dice: &mut Dice) {
    let at = dice.below(lines.len());
    match dice.below(9) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let other = dice.below(lines.len());
            lines.swap(at, other);
        }
        3 => {
            let length = dice.below(lines[at].len());
            lines[at].truncate(length);
        }
        4 => drop(lines[at].pop()),
        5 => {
            let place = dice.below(lines[at].len());
            lines[at].splice(place..place, [0, 0, 0]);
        }
        6 => {
            // In the name of a member, it would make another record.
            if let Some(place) = memchr::memmem::find(&lines[at], b" answer") {
                lines[at].insert(place, 0x80 + dice.below(0x80) as u8);
            }
        }
        _ => {
            let (from, to) = SWAPS[dice.below(SWAPS.len())];
            if let Ok(text) = String::from_utf8(lines[at].clone()) {
                lines[at] = text.replace(from, to).into_bytes();
            }
        }
    }
}

/// Whatever happened to a session, a repair leaves nothing to repair or to find, and changes no line without a reason.
#[test]
fn property_any_damage_is_repaired_at_once() {
    let rounds = if cfg!(debug_assertions) { 150 } else { 4000 };
    let mut faults = Vec::new();
    for round in 0..rounds {
        for whose in ALL {
            let mut dice = Dice(round * 3 + whose as u64);
            let mut lines: Vec<Vec<u8>> =
                session(whose).into_iter().map(String::into_bytes).collect();
            for _ in 0..=dice.below(4) {
                if lines.len() > 1 {
                    harm(&mut lines, &mut dice);
                }
            }
            let bytes = lines.concat();
            if program_of(&input(&bytes)).is_err() {
                continue;
            }
            if let Err(why) = check(&bytes) {
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                faults.push(format!("{whose:?} {round}: {why}\n---\n{shown}"));
            }
        }
    }
    let heads: Vec<&str> = faults.iter().map(|fault| fault.get(..150).unwrap_or(fault)).collect();
    assert!(faults.is_empty(), "{}\n\n{}", heads.join("\n\n"), faults[0]);
}
