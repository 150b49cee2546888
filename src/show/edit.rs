//! Extracts the changes that tool calls make to files, as the lines of a diff.
//!
//! Tools have different names for the old and the new text, and some tools take a patch. A call is recognised as an
//! edit by the members of its input, not by the name of the tool.

use crate::json::{self, Object};
use imara_diff::{Algorithm, Diff, InternedInput};

/// The number of lines of context around each change.
const CONTEXT: usize = 3;
/// The number of lines above which old and new text are not compared, because a comparison can take quadratic time.
const MAX_LINES: usize = 4000;
/// The names of the members that hold the old and the new text.
const PAIRS: [(&str, &str); 7] = [
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
    ("oldString", "newString"),
    ("old", "new"),
    ("search", "replace"),
];
/// The names of members that may hold a list of such pairs.
const LISTS: [&str; 2] = ["edits", "changes"];
/// The names of members that may hold a patch.
const PATCHES: [&str; 3] = ["patch", "diff", "input"];

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// The kind of the line.
    pub kind: DiffKind,
    /// The text without the sign.
    pub text: String,
}

/// The kind of a line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffKind {
    /// In both the old and the new text.
    Same,
    /// Only in the new text.
    Added,
    /// Only in the old text.
    Removed,
    /// The file or position of the following lines, or a gap before them.
    Place,
}

impl DiffKind {
    /// Returns the sign in front of a line of this kind.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            DiffKind::Same => " ",
            DiffKind::Added => "+",
            DiffKind::Removed => "-",
            DiffKind::Place => "",
        }
    }

    fn line(self, text: &str) -> DiffLine {
        DiffLine { kind: self, text: text.to_owned() }
    }
}

/// The changes that a tool call makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The other members of the input, such as the path, one per line.
    pub others: String,
    /// The lines of the diff.
    pub lines: Vec<DiffLine>,
}

/// Returns the changes that a call with this input makes, or `None` if it edits nothing.
pub fn read(input: &str) -> Option<Edit> {
    let object = Object::parse(input).ok()?;
    let (mut used, mut lines) = pair(&object).unwrap_or_default();
    for list in LISTS {
        let Some(elements) = object.get(list).and_then(json::elements) else { continue };
        let pairs = elements.into_iter().map(|raw| Some(pair(&Object::parse(raw).ok()?)?.1));
        // A list that also has other elements is not shown as a diff.
        if let Some(pairs) = pairs.collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty()) {
            pairs.into_iter().for_each(|pair| join(&mut lines, pair));
            used.push(list);
        }
    }
    for name in PATCHES {
        let patch = object.string(name).filter(|text| is_patch(text));
        if let Some(patch) = patch {
            join(&mut lines, patch.lines().map(of_patch).collect());
            used.push(name);
        }
    }
    let rest = object.members().filter(|member| !used.contains(&member.name().as_ref()));
    let others = rest.map(|member| super::facts::member(&member.name(), member.value)).collect();
    (!lines.is_empty()).then_some(Edit { others, lines })
}

/// Compares the old and the new text of an object. Returns the names of its members that hold them, and the lines.
fn pair(object: &Object<'_>) -> Option<(Vec<&'static str>, Vec<DiffLine>)> {
    PAIRS.into_iter().find_map(|(old, new)| {
        let lines = compare(&object.string(old)?, &object.string(new)?);
        Some((vec![old, new], lines))
    })
}

/// Compares old and new text. Returns the lines that differ and the lines around them, or all lines if there are too
/// many to compare.
#[must_use]
pub fn compare(old: &str, new: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() + new.len() > MAX_LINES {
        let removed = old.into_iter().map(|line| DiffKind::Removed.line(line));
        return removed.chain(new.into_iter().map(|line| DiffKind::Added.line(line))).collect();
    }
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let (mut lines, mut at) = (Vec::new(), 0);
    for hunk in diff.hunks() {
        let start = hunk.before.start as usize;
        let (removed, added) = (start..hunk.before.end as usize, hunk.after.start..hunk.after.end);
        lines.extend(old[at..start].iter().map(|line| DiffKind::Same.line(line)));
        at = removed.end;
        lines.extend(old[removed].iter().map(|line| DiffKind::Removed.line(line)));
        lines.extend(added.map(|index| DiffKind::Added.line(new[index as usize])));
    }
    lines.extend(old[at..].iter().map(|line| DiffKind::Same.line(line)));
    around_changes(&lines)
}

/// Removes the lines that are far from any change.
fn around_changes(all: &[DiffLine]) -> Vec<DiffLine> {
    let is_near = |at: usize| {
        let end = all.len().min(at + CONTEXT + 1);
        all[at.saturating_sub(CONTEXT)..end].iter().any(|line| line.kind != DiffKind::Same)
    };
    let (mut lines, mut is_left_out) = (Vec::new(), false);
    for (at, line) in all.iter().enumerate() {
        if !is_near(at) {
            is_left_out = !lines.is_empty();
            continue;
        }
        if std::mem::take(&mut is_left_out) {
            lines.push(DiffKind::Place.line("…"));
        }
        lines.push(line.clone());
    }
    lines
}

/// Appends the diff `more` to `lines`, after a separator.
fn join(lines: &mut Vec<DiffLine>, more: Vec<DiffLine>) {
    if !lines.is_empty() && !more.is_empty() {
        lines.push(DiffKind::Place.line("…"));
    }
    lines.extend(more);
}

/// Returns true if `text` is a patch: it names a file or a position, and a line starts with `+` or `-`.
fn is_patch(text: &str) -> bool {
    let has =
        |marks: &[&str]| text.lines().any(|line| marks.iter().any(|mark| line.starts_with(mark)));
    has(&["@@", "*** ", "--- "]) && has(&["+", "-"])
}

fn of_patch(line: &str) -> DiffLine {
    let kind = kind(line);
    kind.line(&line[kind.sign().len()..])
}

/// Returns the kind of a line of a patch.
pub fn kind(line: &str) -> DiffKind {
    let places = ["@@", "*** ", "--- ", "+++ ", "diff ", "index "];
    match line.as_bytes().first() {
        _ if places.iter().any(|mark| line.starts_with(mark)) => DiffKind::Place,
        Some(b'+') => DiffKind::Added,
        Some(b'-') => DiffKind::Removed,
        Some(b' ') => DiffKind::Same,
        _ => DiffKind::Place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(input: &str) -> String {
        let Some(edit) = read(input) else { return "no edit".to_owned() };
        let lines = edit.lines.iter().map(|line| format!("{}{}\n", line.kind.sign(), line.text));
        edit.others + &lines.collect::<String>()
    }

    #[test]
    fn audit_30_an_edit_is_shown_as_a_diff() {
        for (input, expected) in [
            (
                r#"{"path":"a.c","old_string":"one\ntwo\n","new_string":"one\nthree\n"}"#,
                "path: a.c\n one\n-two\n+three\n",
            ),
            (r#"{"old_str":"x","new_str":""}"#, "-x\n"),
            (
                r#"{"edits":[{"oldText":"a","newText":"b"},{"oldText":"c","newText":"d"}]}"#,
                "-a\n+b\n…\n-c\n+d\n",
            ),
            (
                r#"{"patch":"--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z"}"#,
                "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n",
            ),
            (
                r#"{"input":"*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch"}"#,
                "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\n",
            ),
            (r#"{"input":"- a list\n- of words"}"#, "no edit"),
            (r#"{"edits":[{"oldText":"a","newText":"b"},5]}"#, "no edit"),
            (r#"{"old_string":"x"}"#, "no edit"),
            (r#"{"command":"ls"}"#, "no edit"),
            (r#"[1]"#, "no edit"),
        ] {
            assert_eq!(shown(input), expected, "{input}");
        }
    }

    #[test]
    fn lines_far_from_a_change_are_left_out() {
        let old: String = (1..=30).map(|n| format!("{n}\\n")).collect();
        let new = old.replace("2\\n3\\n", "2\\nnew\\n").replace("29", "other");
        let shown = shown(&format!(r#"{{"old":"{old}","new":"{new}"}}"#));
        assert!(shown.contains("-29\n+other\n"), "{shown}");
        assert!(shown.contains("…\n") && !shown.contains(" 15\n"), "{shown}");
    }

    #[test]
    fn long_texts_are_not_compared() {
        let [old, new] = ["a", "b"].map(|last| "a\n".repeat(MAX_LINES / 2) + last);
        let lines = compare(&old, &new);
        assert_eq!(lines.len(), MAX_LINES + 2);
        assert_eq!(compare("a\n", "a\nb").len(), 2);
    }
}
