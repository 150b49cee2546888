//! Records of the transcripts in `tests/data` with small changes to bytes and tokens: some are still valid JSON,
//! most are nearly valid.

use std::{env, fs};

use super::agree;
use super::choices::Choices;

/// The number of mutants without `CLAW_TEST_FULL`.
const MUTANTS: usize = 60_000;
/// The number of mutants in a full run, with `CLAW_TEST_FULL`.
const MUTANTS_IN_FULL: usize = 10_000_000;
/// The longest record to change, in bytes; longer records would only take more time.
const LONGEST: usize = 2000;

/// JSON with syntax that is rare in transcripts.
const ODD: &[&str] = &[
    "{}",
    " { \"a\" : [ ] , \"b\" : { } } ",
    r#"{"a":-0.0e-1,"\u0061":1E+2,"":12345678901234567890123,"a":[[],{},"",null,true,false]}"#,
    r#"{"\ud800":"\ud83d\ude00\udc00","\"\\\/\b\f\n\r\t":"\u00e9 é 日本 😀 \u2028"}"#,
    r#"[{"type":"text","text":"a"},{"type":"text","text":"[{\"b\":1}]"},[[[0]]],-1,1.5e300]"#,
];

/// Valid and invalid tokens.
#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "{", "}", "[", "]", ":", ",", "\"", "\"\"", "\"a\"", "\"a\":", "{}", "[]", "null", "true",
    "false", "nul", "True", "0", "-", "-0", "01", "1.", ".5", "1.5", "1e", "1e5", "1E-5", "1e+",
    "--1", "+1", "0x1", "1e999", "NaN", "\\", "\\\"", "\\u", "\\u12", "\\u12g4", "\\ud800",
    "\\udc00", "\\ud83d\\ude00", "\\x", "\\/", " ", "\t", "\r", "\n", "\0", "\u{1f}", "\u{7f}",
    "\u{85}", "\u{a0}", "\u{feff}", "\u{2028}", "é", "日", "😀", "//", "/**/", "'", ",,",
    "{\"a\":1}", "[1,2]",
];

/// Values that may replace any value.
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "\"\"", "\"a\"", "\"\\\\\"", "\"\\u0000\\ud800\"", "\"é日😀\u{2028}\"", "null", "true", "false",
    "0", "-0.0", "1e5", "12345678901234567890.5E-3", "{}", "[]", "[ ]", "{\"a\":[1,{}]}",
    "[{\"a\":null},\"]\"]", "[[[]]]",
];

/// The number of mutants of each kind, and the first disagreement between the scanner and serde_json.
#[derive(Debug, Default)]
struct Tally {
    objects: usize,
    others: usize,
    disagreed: usize,
    first: Option<String>,
}

#[test]
fn the_scanner_and_serde_json_agree_on_every_mutant() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let seed = env::var("CLAW_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = if is_full { MUTANTS_IN_FULL } else { MUTANTS };
    let tally = try_mutants(&records(), &mut Choices::seeded(seed), count);
    let Tally { objects, others, disagreed, first } = tally;
    #[allow(clippy::print_stderr, reason = "shown with --nocapture")]
    {
        eprintln!("{objects} mutants are objects, {others} are not, {disagreed} disagreements");
    }
    assert_eq!(first, None, "CLAW_TEST_SEED={seed}");
    let least = count / 10;
    assert!(objects > least && others > least, "{objects} objects, {others} other texts");
}

fn try_mutants(records: &[Vec<u8>], choices: &mut Choices, count: usize) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..count {
        let mutant = mutant(records, choices);
        match agree::on(&String::from_utf8_lossy(&mutant)) {
            Ok(true) => tally.objects += 1,
            Ok(false) => tally.others += 1,
            Err(why) => {
                tally.disagreed += 1;
                tally.first.get_or_insert(why);
            }
        }
    }
    tally
}

/// Returns [`ODD`], and the lines of all `.jsonl` files in `tests/data` that are not too long.
fn records() -> Vec<Vec<u8>> {
    let mut records: Vec<Vec<u8>> = ODD.iter().map(|text| text.as_bytes().to_vec()).collect();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    for entry in walkdir::WalkDir::new(data).sort_by_file_name() {
        let path = entry.expect("a readable directory").into_path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let bytes = fs::read(&path).expect("a readable file");
            let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            records.extend(lines.filter(|line| line.len() <= LONGEST).map(<[u8]>::to_vec));
        }
    }
    assert!(records.len() > 40, "no transcripts in {data}");
    records
}

/// Returns a record with one or more changes.
fn mutant(records: &[Vec<u8>], choices: &mut Choices) -> Vec<u8> {
    let mut bytes = records[choices.below(records.len())].clone();
    for _ in 0..=choices.below(2) * choices.below(4) {
        match choices.below(12) {
            0 => change_byte(&mut bytes, choices),
            1 => cut(&mut bytes, choices),
            2 => splice(&mut bytes, &records[choices.below(records.len())], choices),
            3 => swap_tokens(&mut bytes, choices),
            4 => put_token(&mut bytes, choices),
            5 => put_blank(&mut bytes, choices),
            6 | 7 => nest(&mut bytes, choices),
            _ => change_value(&mut bytes, choices),
        }
    }
    bytes
}

fn change_byte(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let at = choices.below(bytes.len() + 1);
    let any = choices.below(256) as u8;
    match (bytes.get_mut(at), choices.below(3)) {
        (Some(byte), 0) => *byte ^= 1 << (any % 8),
        (Some(byte), 1) => *byte = any,
        _ => bytes.insert(at, any),
    }
}

/// Removes a few bytes, or everything after a position.
fn cut(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let from = choices.below(bytes.len() + 1);
    let most = bytes.len() - from;
    let count = if choices.one_in(4) { most } else { most.min(1 + choices.below(4)) };
    bytes.drain(from..from + count);
}

/// Replaces some bytes with as many bytes of another record.
fn splice(bytes: &mut Vec<u8>, other: &[u8], choices: &mut Choices) {
    let from = choices.below(other.len() + 1);
    let part = &other[from..(from + choices.below(60)).min(other.len())];
    let at = choices.below(bytes.len() + 1);
    let end = (at + part.len()).min(bytes.len());
    bytes.splice(at..end, part.iter().copied());
}

/// Puts brackets around a value: one or two pairs, or about as many as the scanner's limit for nesting.
fn nest(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let (from, to) = value(bytes, choices);
    let depth = choices.of_these(&[1, 2, 61, 62, 63, 64, 65]);
    let (open, close) =
        choices.of_these(&[("[", "]"), ("{\"a\":", "}"), ("[0,", "]"), ("[", " ]")]);
    bytes.splice(to..to, close.repeat(depth).bytes());
    bytes.splice(from..from, open.repeat(depth).bytes());
}

fn change_value(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let (from, to) = value(bytes, choices);
    bytes.splice(from..to, choices.of_these(VALUES).bytes());
}

/// Returns the bounds of the first value that directly follows a colon, from a random token on. Objects, arrays and
/// values of one byte are skipped. If no value is found, returns the bounds of the random token.
fn value(bytes: &[u8], choices: &mut Choices) -> (usize, usize) {
    let tokens = tokens(bytes);
    let from = choices.below(tokens.len());
    let is_value = |at: &usize| {
        let (from, to) = tokens[*at];
        from > 0 && bytes[from - 1] == b':' && to - from > 1
    };
    tokens[(from..tokens.len()).find(is_value).unwrap_or(from)]
}

/// Inserts white space or a control character before a token.
fn put_blank(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let tokens = tokens(bytes);
    let (at, _) = tokens[choices.below(tokens.len())];
    bytes.insert(at, choices.of_these(b"   \t\n\r\x0b\0"));
}

fn swap_tokens(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let tokens = tokens(bytes);
    let one = choices.below(tokens.len());
    let other = choices.below(tokens.len());
    let ((from, to), (start, end)) = (tokens[one.min(other)], tokens[one.max(other)]);
    let swapped = match one == other {
        true => bytes[from..to].repeat(2),
        false => [&bytes[start..end], &bytes[to..start], &bytes[from..to]].concat(),
    };
    bytes.splice(from..end, swapped);
}

/// Removes a token, inserts another one before it, or replaces it.
fn put_token(bytes: &mut Vec<u8>, choices: &mut Choices) {
    let tokens = tokens(bytes);
    let (from, to) = tokens[choices.below(tokens.len())];
    let token = choices.of_these(TOKENS);
    match choices.below(3) {
        0 => drop(bytes.drain(from..to)),
        1 => drop(bytes.splice(from..from, token.bytes())),
        _ => drop(bytes.splice(from..to, token.bytes())),
    }
}

/// Returns the bounds of the tokens: strings, words, numbers, and other single bytes. The last one is empty and marks
/// the end.
fn tokens(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at + 1..];
        let more = match bytes[at] {
            b'"' => string_length(rest),
            first if is_word(first) => rest.iter().take_while(|byte| is_word(**byte)).count(),
            _ => 0,
        };
        tokens.push((at, at + 1 + more));
        at += 1 + more;
    }
    tokens.push((at, at));
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-._".contains(&byte)
}

/// Returns the number of bytes of a string after its opening quote, including the closing quote.
fn string_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len().min(at + 1)
}
