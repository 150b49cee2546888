//! Finds the view of a transcript by reading every record. The library searches from the end and reads no more than
//! necessary; it must find the same view.

use super::any::Law;
use clawutils::finding::{Findings, Place};
use clawutils::input::Input;
use clawutils::input::line::LineObject;
use clawutils::input::lines::Lines;
use clawutils::json::Object;
use clawutils::messages::range::RebuildOptions;
use clawutils::messages::view::{self, EffectiveCompaction, View};
use clawutils::record::scale::Scale;
use clawutils::record::{Body, Record};
use memchr::memmem;
use std::collections::HashMap;
use std::fmt::Debug;

/// An object of the transcript.
struct PlacedObject {
    place: Place,
    id: String,
    text: String,
}

/// Checks that `view::find` finds the view that [`read`] finds.
pub fn is_found(bytes: &[u8]) -> Law {
    let inputs = [Input::memory("t", bytes.to_vec())];
    let mut findings = Findings::default();
    let Ok(found) = view::find(&inputs, &RebuildOptions::default(), false, &mut findings) else {
        return Ok(());
    };
    let expected = read(bytes);
    let id = |view: &View| view.compaction.as_ref().map(|compaction| compaction.id.clone());
    same("the compaction that applies", &id(&found), &id(&expected))?;
    same("the start of the view", &found.start, &expected.start)?;
    same("the retracted records", &found.retracted, &expected.retracted)?;
    same("the truncations", &found.truncations, &expected.truncations)?;
    same("the changed records", &found.changed_at, &expected.changed_at)?;
    same("the scale", &found.scale, &expected.scale)?;
    same("the offset from which counts apply", &found.counts_from, &expected.counts_from)
}

fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Law {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, expected {expected:?}")),
    }
}

/// Returns the objects of a transcript.
fn objects(bytes: &[u8]) -> Vec<PlacedObject> {
    let input = Input::memory("t", bytes.to_vec());
    let mut found = Vec::new();
    let mut lines = Lines::of(&input);
    while let Some(batch) = lines.batch().expect("memory can be read") {
        found.extend(batch.flatten().map(|LineObject { object, place, .. }| {
            let id = object.string("id").map(|id| id.into_owned());
            let id = id.unwrap_or_else(|| format!("@{}", place.offset));
            PlacedObject { place, id, text: object.text().to_owned() }
        }));
    }
    found
}

/// Returns the view of a transcript, from its view records, which are read from the last to the first.
fn read(bytes: &[u8]) -> View {
    let objects = objects(bytes);
    let mut view = View::default();
    let mut replacements: HashMap<String, EffectiveCompaction> = HashMap::new();
    for found in objects.iter().rev() {
        let object = Object::parse(&found.text).expect("an object");
        let (place, offset) = (found.place.clone(), found.place.offset);
        let record = Record::new(LineObject { object, place, offset });
        let Ok(record) = record.as_ref() else { continue };
        if record.offset < view.start || !record.body.is_view() {
            continue;
        }
        if view.retracted.contains(record.id.as_ref()) {
            continue;
        }
        match &record.body {
            Body::Retract { target } => {
                view.retracted.insert(target.clone());
                view.changed_at.entry(target.clone()).or_insert(record.offset);
            }
            Body::Truncation { tool_use_id, record_id, shown, scale } => {
                keep_scale(&mut view, *scale, record.offset);
                view.changed_at.entry(record_id.clone()).or_insert(record.offset);
                let key = (record_id.clone(), tool_use_id.clone());
                view.truncations.entry(key).or_insert_with(|| (**shown).clone());
            }
            Body::Compaction { summary, retry_of: Some(place), scale, .. } => {
                replacements
                    .entry(place.clone())
                    .or_insert(EffectiveCompaction::new(record, summary, *scale));
            }
            Body::Compaction { summary, first_kept, hint, retry_of: None, scale }
                if view.compaction.is_none() =>
            {
                let before = &bytes[..record.offset as usize];
                if let Some(start) = locate(first_kept, *hint, before, &objects) {
                    let own = EffectiveCompaction::new(record, summary, *scale);
                    let compaction = replacements.remove(record.id.as_ref()).unwrap_or(own);
                    keep_scale(&mut view, compaction.scale, compaction.at);
                    view.counts_from = view.counts_from.max(compaction.at);
                    view.compaction = Some(compaction);
                    view.start = start;
                }
            }
            _ => {}
        }
    }
    view
}

/// Stores `scale`, if there is one and none is stored yet. Token counts before offset `at` then no longer apply.
fn keep_scale(view: &mut View, scale: Option<Scale>, at: u64) {
    if view.scale.is_none() && scale.is_some() {
        view.scale = scale;
        view.counts_from = view.counts_from.max(at);
    }
}

/// Returns the offset of the record that a compaction names by `id`. The id itself (`@` and an offset) and the hint can
/// state the offset. A stated offset counts only if it is before the compaction and the record there has the id.
/// Otherwise the offset is that of the last record before the compaction that has the id.
fn locate(id: &str, hint: Option<u64>, before: &[u8], objects: &[PlacedObject]) -> Option<u64> {
    let address = id.strip_prefix('@').and_then(|offset| offset.parse().ok());
    let stated = address.into_iter().chain(hint).find(|offset| {
        let is_it = |found: &PlacedObject| found.place.offset == *offset && found.id == id;
        *offset < before.len() as u64 && objects.iter().any(is_it)
    });
    // An id that is spelled with escapes cannot be found by searching.
    let is_plain =
        |found: &&PlacedObject| memmem::find(found.text.as_bytes(), id.as_bytes()).is_some();
    let all = self::objects(before);
    let last = all.iter().filter(|found| found.id == id).rfind(is_plain);
    stated.or_else(|| last.map(|found| found.place.offset))
}
