//! The latest checkpoint, as messages know it.

use crate::json::Object;
use crate::json::write::Members;
use crate::messages::Message;
use crate::record::checkpoint::Checkpoint;

/// A checkpoint as `_meta` has it: which record it is, and how that stands to the summary that governs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LatestCheckpoint {
    /// The id of its record.
    pub id: String,
    /// No compaction has come into force since it was made.
    pub is_current: bool,
    /// What it says.
    pub checkpoint: Checkpoint,
}

impl LatestCheckpoint {
    /// Reads `_meta.checkpoint`.
    ///
    /// # Errors
    /// As [`Checkpoint::parse_object`], and when it is no object.
    pub fn parse(raw: &str) -> Result<LatestCheckpoint, String> {
        let object =
            Object::parse(raw).map_err(|_| "'_meta.checkpoint' is no object".to_owned())?;
        let checkpoint = Checkpoint::parse_object(&object)
            .map_err(|why| format!("'_meta.checkpoint': {why}"))?;
        let id = object.string("id").unwrap_or_default().into_owned();
        Ok(LatestCheckpoint { id, is_current: object.is_true("is_current"), checkpoint })
    }

    /// Adds the members of `_meta.checkpoint`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        let members = members.string("id", &self.id).bool("is_current", self.is_current);
        self.checkpoint.add_to(members)
    }

    /// The checkpoint that messages know of.
    #[must_use]
    pub fn among<'m>(messages: &'m [Message<'_>]) -> Option<&'m LatestCheckpoint> {
        messages.iter().find_map(|message| message.meta.as_ref()?.checkpoint.as_deref())
    }

    /// Which of the messages is the last one that it covers; none of them, if that is not there.
    #[must_use]
    pub fn place(&self, messages: &[Message<'_>]) -> Option<usize> {
        let last = self.checkpoint.covers_up_to.as_deref()?;
        let is_it =
            |message: &Message<'_>| message.meta.as_ref().is_some_and(|meta| &*meta.id == last);
        messages.iter().position(is_it)
    }
}

/// So many turns begin in the first `end` messages, or before them, that no checkpoint covers.
///
/// Turns that a compaction took away are in its record, so the count goes on after it.
#[must_use]
pub fn open_turns(messages: &[Message<'_>], end: usize) -> u64 {
    let begins = |message: &&Message<'_>| message.is_said_by_user() && !message.is_summary();
    let place = LatestCheckpoint::among(messages).and_then(|known| known.place(messages));
    let earlier = || messages.iter().find_map(|m| m.meta.as_ref()?.summary.as_ref());
    let (start, before) = match place {
        Some(last) => (last + 1, 0),
        None => (0, earlier().map_or(0, |summary| summary.turns)),
    };
    let shown = messages.get(start..end).unwrap_or_default();
    before + shown.iter().filter(begins).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_as_it_was_written() {
        let checkpoint = Checkpoint {
            summary: "s \"x\"".into(),
            topics: vec!["t".into(), "u".into()],
            key_decisions: vec!["d".into()],
            open_questions: vec![],
            tokens: 5000,
            messages: 7,
            covers_up_to: Some("@0".into()),
            generated_by: Some("m".into()),
            usage: Some(r#"{"input_tokens":5}"#.into()),
        };
        let record = checkpoint.record();
        let read = Checkpoint::parse_object(&Object::parse(&record).unwrap());
        assert_eq!(read.as_ref(), Ok(&checkpoint));
        let known = LatestCheckpoint { id: "a".into(), is_current: true, checkpoint };
        assert_eq!(LatestCheckpoint::parse(&known.add_to(Members::new()).into_json()), Ok(known));
    }

    #[test]
    fn what_an_older_record_lacks_is_empty() {
        let read = |text: &str| Checkpoint::parse_object(&Object::parse(text).unwrap());
        assert!(read(r#"{"summary":"s","covers_up_to":"a"}"#).unwrap().is_usable());
        assert!(!read(r#"{"summary":"s"}"#).unwrap().is_usable());
        assert!(!read(r#"{"summary":" ","covers_up_to":"a"}"#).unwrap().is_usable());
        assert_eq!(read("{}"), Err("no 'summary'".to_owned()));
        let why = "'topics' of a checkpoint is no list of strings".to_owned();
        assert_eq!(read(r#"{"summary":"s","topics":"x"}"#), Err(why));
    }

    #[test]
    fn all_of_it_is_one_text() {
        let checkpoint = Checkpoint {
            summary: "They built it.\n".into(),
            topics: vec!["a".into(), "b".into()],
            key_decisions: vec!["c".into(), "d".into()],
            ..Checkpoint::default()
        };
        let text = "They built it.\n\nTopics: a, b\n\nKey decisions:\n- c\n- d";
        assert_eq!(checkpoint.render(), text);
    }
}
