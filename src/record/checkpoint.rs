//! A checkpoint: a structured summary that was made ahead of need, and how it reads as one text.

use super::compaction::strings;
use crate::json::Object;
use crate::json::write::Members;

/// What a checkpoint record says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The summary itself.
    pub summary: String,
    /// The topics of the conversation.
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

    /// Adds its members, for a record and for `_meta`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members
            .string("summary", &self.summary)
            .strings("topics", &self.topics)
            .strings("key_decisions", &self.key_decisions)
            .strings("open_questions", &self.open_questions)
            .number("tokens_at_checkpoint", self.tokens)
            .number("message_count_at_checkpoint", self.messages)
            .optional(Members::string, "covers_up_to", self.covers_up_to.as_deref())
            .optional(Members::string, "generated_by", self.generated_by.as_deref())
            .optional(Members::raw, "usage", self.usage.as_deref())
    }

    /// The checkpoint record, without id and time.
    #[must_use]
    pub fn record(&self) -> String {
        self.add_to(Members::of_type("checkpoint")).into_json()
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
