//! The newest checkpoint, in the `_meta` of the first message.

use crate::json::Object;
use crate::json::write::Members;
use crate::messages::Message;
use crate::record::checkpoint::Checkpoint;

/// The newest checkpoint, with the id of its record.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LatestCheckpoint {
    /// The id of its record.
    pub id: String,
    /// True if no compaction has taken effect since it was made.
    pub is_current: bool,
    /// The content of the record.
    pub checkpoint: Checkpoint,
}

impl LatestCheckpoint {
    /// Parses `_meta.checkpoint`.
    ///
    /// # Errors
    /// As [`Checkpoint::parse_object`], and if it is not an object.
    pub fn parse(raw: &str) -> Result<LatestCheckpoint, String> {
        let object =
            Object::parse(raw).map_err(|_| "'_meta.checkpoint' is not an object".to_owned())?;
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

    /// Returns the checkpoint in the `_meta` of `messages`.
    #[must_use]
    pub fn among<'m>(messages: &'m [Message<'_>]) -> Option<&'m LatestCheckpoint> {
        messages.iter().find_map(|message| message.meta.as_ref()?.checkpoint.as_deref())
    }

    /// Returns the index of the last message that the checkpoint covers; `None` if the message is not in `messages`.
    #[must_use]
    pub fn place(&self, messages: &[Message<'_>]) -> Option<usize> {
        let last = self.checkpoint.covers_up_to.as_deref()?;
        let is_it =
            |message: &Message<'_>| message.meta.as_ref().is_some_and(|meta| &*meta.id == last);
        messages.iter().position(is_it)
    }
}

/// Returns the number of turns in the first `end` messages that no checkpoint covers.
///
/// Turns that a compaction covers are included: its record states how many of them no checkpoint covers.
#[must_use]
pub fn open_turns(messages: &[Message<'_>], end: usize) -> u64 {
    let begins = |message: &&Message<'_>| message.is_from_user() && !message.is_summary();
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
    fn a_checkpoint_survives_writing_and_parsing() {
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
    fn missing_members_of_older_records_are_empty() {
        let read = |text: &str| Checkpoint::parse_object(&Object::parse(text).unwrap());
        assert!(read(r#"{"summary":"s","covers_up_to":"a"}"#).unwrap().is_usable());
        assert!(!read(r#"{"summary":"s"}"#).unwrap().is_usable());
        assert!(!read(r#"{"summary":" ","covers_up_to":"a"}"#).unwrap().is_usable());
        assert_eq!(read("{}"), Err("no 'summary'".to_owned()));
        let why = "'topics' of a checkpoint is not a list of strings".to_owned();
        assert_eq!(read(r#"{"summary":"s","topics":"x"}"#), Err(why));
    }

    #[test]
    fn a_checkpoint_is_rendered_with_its_topics_and_decisions() {
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
