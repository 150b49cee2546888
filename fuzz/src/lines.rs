//! Tests that lines are read the same forwards and backwards, and that they contain all bytes of the input.

use clawutils::finding::Place;
use clawutils::input::Input;
use clawutils::input::backward::{Backward, Needles};
use clawutils::input::block::{Batches, Parts};
use clawutils::input::line::{self, Line, LineObject};
use clawutils::input::lines::Lines;
use clawutils::json;
use memchr::memmem::{self, Finder};
use std::slice;

/// The size of the blocks in which inputs are read, in bytes. A block may end anywhere in a line.
const BLOCK: usize = 256 * 1024;

/// A line: its offset and its bytes.
type OffsetLine = (u64, Vec<u8>);

/// Tests `bytes` as an input. The last byte selects whether many blanks precede or follow the other bytes, so that a
/// block ends among the blanks.
pub fn run(bytes: &[u8]) {
    let input = Input::memory("t", with_blanks(bytes));
    let lines = split(&input, 0);
    let whole: Vec<&[u8]> = lines.iter().map(|(_, line)| line.as_slice()).collect();
    let whole = whole.join(&b'\n');
    let all = input.bytes().unwrap_or_default();
    assert_eq!(
        whole,
        all.strip_suffix(b"\n").unwrap_or(&all),
        "the lines do not contain all bytes"
    );
    let Some((middle, _)) = lines.get(lines.len() / 2) else { return };
    assert_eq!(split(&input, *middle), lines[lines.len() / 2..], "lines from byte {middle} on");
    for (offset, line) in &lines {
        check_places(line, place(&input, *offset, line));
    }
    check_scan_ahead(&input, 0, &lines);
    check_scan_ahead(&input, *middle, &lines[lines.len() / 2..]);
    check_backwards(&input, &lines, *middle);
}

/// Checks that lines that are scanned ahead in a batch give the same results as lines that are read one by one.
fn check_scan_ahead(input: &Input, from: u64, lines: &[OffsetLine]) {
    let (mut ahead, mut alone) = (Vec::new(), Vec::new());
    let mut reading = Lines::new(slice::from_ref(input), from..input.length);
    while let Some(batch) = reading.batch().expect("memory can be read") {
        ahead.extend(batch.map(described));
    }
    let mut number = (from == 0).then_some(0);
    for (offset, line) in lines {
        number = number.map(|number| number + 1);
        let place = Place { line: number, ..place(input, *offset, line) };
        alone.extend(line::read_line(line, place, 0).into_iter().map(described));
    }
    assert_eq!(ahead, alone, "lines from byte {from} on, scanned ahead and alone");
}

/// Describes a line completely, except for the object's `may_have_surrogates`, which can differ if the line was scanned
/// ahead.
fn described(line: Line<'_>) -> String {
    match line {
        Ok(LineObject { object, place, offset }) => {
            let members: Vec<_> = object.members().collect();
            format!("{place:?} {offset} {} {members:?}", object.text())
        }
        Err(finding) => format!("{finding:?}"),
    }
}

fn with_blanks(bytes: &[u8]) -> Vec<u8> {
    let Some((last, rest)) = bytes.split_last() else { return Vec::new() };
    let border = rest.len() * usize::from(last >> 3) / 32;
    let blanks = vec![b' '; BLOCK - border.min(BLOCK)];
    match last % 8 {
        7 => [&blanks, rest].concat(),
        6 => [rest, &blanks].concat(),
        _ => bytes.to_vec(),
    }
}

fn place(input: &Input, offset: u64, line: &[u8]) -> Place {
    Place { input: input.name.clone(), line: None, offset, length: line.len() as u64 }
}

fn split(input: &Input, from: u64) -> Vec<OffsetLine> {
    let mut out = Vec::new();
    let mut offset = from;
    let mut batches = Batches::new(input, from..input.length, Parts::Members);
    while batches.advance().expect("memory can be read") {
        for index in 0..batches.current().len() {
            let (line, has_feed) = batches.current().line(index);
            out.push((offset, line.to_vec()));
            offset += line.len() as u64 + u64::from(has_feed);
        }
    }
    out
}

/// Checks that each object in a line is inside its stated place, and that each finding is inside the line.
fn check_places(line: &[u8], place: Place) {
    let whole = place.offset..=place.offset + place.length;
    for found in line::read_line(line, place, 0) {
        match found {
            Ok(LineObject { object, place, .. }) => {
                let text = object.text();
                assert!(text.starts_with('{') && json::is_value(text), "not an object: {text:?}");
                let from = (place.offset - whole.start()) as usize;
                let own = &line[from..from + place.length as usize];
                let at = memmem::find(own, text.as_bytes());
                assert!(at.is_some(), "the object is not at {place:?}: {text:?}");
            }
            Err(finding) => {
                let place = &finding.place;
                let ends = [place.offset, place.offset + place.length];
                assert!(ends.iter().all(|end| whole.contains(end)), "outside the line: {place:?}");
            }
        }
    }
}

/// Checks that a backward search finds exactly the lines that contain a needle. Then checks a search that must stop at
/// `floor` once it has found a line.
fn check_backwards(input: &Input, lines: &[OffsetLine], floor: u64) {
    let words = ["\"type\"", "\"user\"", "\"content\"", "\"id\""];
    for count in 1..=words.len() {
        let texts: Vec<&[u8]> = words[..count].iter().map(|word| word.as_bytes()).collect();
        check_backwards_for(input, lines, floor, &texts, &Needles::quoted(&words[..count]));
    }
    let (_, line) = &lines[lines.len() / 2];
    let own = &line[line.len() / 2..line.len().min(line.len() / 2 + 5)];
    if !own.is_empty() {
        check_backwards_for(input, lines, floor, &[own], &Needles::one(own));
    }
}

fn check_backwards_for(
    input: &Input,
    lines: &[OffsetLine],
    floor: u64,
    texts: &[&[u8]],
    needles: &Needles,
) {
    let finders: Vec<Finder<'_>> = texts.iter().map(Finder::new).collect();
    let holds_one =
        |line: &&OffsetLine| finders.iter().any(|needle| needle.find(&line.1).is_some());
    let all: Vec<OffsetLine> = lines.iter().rev().filter(holds_one).cloned().collect();
    let count = all.iter().skip(1).take_while(|(offset, _)| *offset >= floor).count();
    for (floor, expected) in [(0, &all[..]), (floor, &all[..all.len().min(1 + count)])] {
        let mut found = Vec::new();
        let mut search = Backward::new(slice::from_ref(input), input.length, needles);
        while let Some(line) = search.next_line().expect("memory can be read") {
            assert_eq!(line.place.length, line.bytes.len() as u64, "the length of the line");
            found.push((line.place.offset, line.bytes));
            search.stop_at(floor);
        }
        assert_eq!(found, expected, "lines backwards to byte {floor}");
    }
}
