//! A checkpoint: a structured summary that was made ahead of need, and how it reads as one text.

use crate::json::{Object, quote};
use crate::messages::Message;
use crate::messages::summary::{list, strings};

/// What a checkpoint record says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The summary itself.
    pub summary: String,
    /// What was talked about.
    pub topics: Vec<String>,
    /// What was decided.
    pub key_decisions: Vec<String>,
    /// What is still open.
    pub open_questions: Vec<String>,
    /// The request's tokens when it was made.
    pub tokens: u64,
    /// The request's messages then.
    pub messages: u64,
    /// The id of the first record in the last message that it covers. Without one nobody knows what it
    /// stands for, and it is not used.
    pub covers_up_to: Option<String>,
    /// The model that wrote it.
    pub generated_by: Option<String>,
    /// What the provider counted for it, as it was sent.
    pub usage: Option<String>,
}

/// A checkpoint as `_meta` has it: which record it is, and how that stands to the summary that governs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Known {
    /// The id of its record.
    pub id: String,
    /// No compaction has come into force since it was made.
    pub is_current: bool,
    /// What it says.
    pub checkpoint: Checkpoint,
}

impl Checkpoint {
    /// Reads the members of a checkpoint record.
    ///
    /// # Errors
    /// Says why when the summary is missing or a list holds something that is no string.
    pub fn parse_object(object: &Object<'_>) -> Result<Checkpoint, String> {
        let string = |name: &str| object.string(name).map(|text| text.into_owned());
        let strings = |name: &str| strings(object, name, "a checkpoint");
        Ok(Checkpoint {
            summary: string("summary").ok_or("no 'summary'")?,
            topics: strings("topics")?,
            key_decisions: strings("key_decisions")?,
            open_questions: strings("open_questions")?,
            tokens: object.number("tokens_at_checkpoint").unwrap_or(0),
            messages: object.number("message_count_at_checkpoint").unwrap_or(0),
            covers_up_to: string("covers_up_to").filter(|id| !id.is_empty()),
            generated_by: string("generated_by"),
            usage: object.get("usage").filter(|usage| usage.starts_with('{')).map(str::to_owned),
        })
    }

    /// Whether it can stand for something: it says something, and up to where.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.covers_up_to.is_some() && !self.summary.trim().is_empty()
    }

    /// Its members as JSON, without braces.
    #[must_use]
    pub fn members(&self) -> String {
        let mut members = vec![
            format!(r#""summary":{}"#, quote(&self.summary)),
            format!(r#""topics":{}"#, list(&self.topics)),
            format!(r#""key_decisions":{}"#, list(&self.key_decisions)),
            format!(r#""open_questions":{}"#, list(&self.open_questions)),
            format!(r#""tokens_at_checkpoint":{}"#, self.tokens),
            format!(r#""message_count_at_checkpoint":{}"#, self.messages),
        ];
        for (name, value) in
            [("covers_up_to", &self.covers_up_to), ("generated_by", &self.generated_by)]
        {
            members.extend(value.as_ref().map(|value| format!(r#""{name}":{}"#, quote(value))));
        }
        members.extend(self.usage.as_ref().map(|usage| format!(r#""usage":{usage}"#)));
        members.join(",")
    }

    /// The checkpoint record, without id and time.
    #[must_use]
    pub fn record(&self) -> String {
        format!(r#"{{"type":"checkpoint",{}}}"#, self.members())
    }

    /// All that it says, as one text that can stand for what it covers.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.summary.trim().to_owned();
        if !self.topics.is_empty() {
            text.push_str(&format!("\n\nTopics: {}", self.topics.join(", ")));
        }
        for (heading, items) in
            [("Key decisions", &self.key_decisions), ("Open questions", &self.open_questions)]
        {
            if !items.is_empty() {
                text.push_str(&format!("\n\n{heading}:\n- {}", items.join("\n- ")));
            }
        }
        text
    }
}

impl Known {
    /// Reads `_meta.checkpoint`.
    ///
    /// # Errors
    /// As [`Checkpoint::parse_object`], and when it is no object.
    pub fn parse(raw: &str) -> Result<Known, String> {
        let object =
            Object::parse(raw).map_err(|_| "'_meta.checkpoint' is no object".to_owned())?;
        let checkpoint = Checkpoint::parse_object(&object)
            .map_err(|why| format!("'_meta.checkpoint': {why}"))?;
        let id = object.string("id").unwrap_or_default().into_owned();
        Ok(Known { id, is_current: object.is_true("is_current"), checkpoint })
    }

    /// `_meta.checkpoint` as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (id, members) = (quote(&self.id), self.checkpoint.members());
        format!(r#"{{"id":{id},"is_current":{},{members}}}"#, self.is_current)
    }

    /// The checkpoint that messages know of.
    #[must_use]
    pub fn among<'m>(messages: &'m [Message<'_>]) -> Option<&'m Known> {
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
    let place = Known::among(messages).and_then(|known| known.place(messages));
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
        let known = Known { id: "a".into(), is_current: true, checkpoint };
        assert_eq!(Known::parse(&known.to_json()), Ok(known));
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
