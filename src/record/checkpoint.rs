//! Checkpoints: structured summaries that are made before they are needed, and their form as plain text.

use super::compaction::strings;
use crate::json::Object;
use crate::json::write::Members;

/// The content of a checkpoint record.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The summary itself.
    pub summary: String,
    /// The topics of the conversation.
    pub topics: Vec<String>,
    /// The decisions that were made.
    pub key_decisions: Vec<String>,
    /// The questions that are still open.
    pub open_questions: Vec<String>,
    /// The size of the conversation's request, in tokens, when the checkpoint was made.
    pub tokens: u64,
    /// The number of messages in the conversation's request when the checkpoint was made.
    pub messages: u64,
    /// The id of the first record in the last message that the checkpoint covers. Without it the checkpoint cannot be
    /// used.
    pub covers_up_to: Option<String>,
    /// The model that wrote the checkpoint.
    pub generated_by: Option<String>,
    /// The token usage of the request for the checkpoint, as the provider sent it.
    pub usage: Option<String>,
}

impl Checkpoint {
    /// Parses the members of a checkpoint record.
    ///
    /// # Errors
    /// Returns the reason if the summary is missing or a list contains something other than strings.
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

    /// Returns true if the checkpoint can replace messages: it has a summary, and states which messages it covers.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.covers_up_to.is_some() && !self.summary.trim().is_empty()
    }

    /// Adds the checkpoint's members to a record or to `_meta`.
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

    /// Returns the checkpoint record, without id and time.
    #[must_use]
    pub fn record(&self) -> String {
        self.add_to(Members::of_type("checkpoint")).into_json()
    }

    /// Returns the checkpoint as one text that can replace the messages it covers.
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
