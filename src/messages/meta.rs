//! `_meta`: the records behind a message.
//!
//! `claw-rebuild --meta` writes it, filters pass it through, and `claw-call` removes it from the request. Programs that
//! write view records need it, because it has the ids of the records that a view record can refer to.

mod results;
mod sources;

use crate::id::Id;
use crate::json::Object;
use crate::json::write::Members;
use crate::messages::checkpoint::LatestCheckpoint;
use crate::record::compaction::Summary;
use crate::record::scale::Scale;
pub use results::{LeftOut, ResultMeta};
pub use sources::{BlockOrigin, BlockSource};
use std::borrow::Cow;

/// The records behind a message.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Meta {
    /// The id of the first record in the message, in file order.
    pub id: Id,
    /// The byte offset at which that record begins, in the concatenated inputs.
    pub offset: u64,
    /// The byte offset at which the last record in the message ends.
    pub end: u64,
    /// The provider's token count for the reply, as the provider sent it. `None` if a message that it covers has
    /// changed since.
    pub usage: Option<String>,
    /// The model that wrote the counted reply.
    pub model: Option<String>,
    /// The time of the reply in seconds since 1970.
    pub time: Option<f64>,
    /// True if a record in the message is pinned.
    pub pin: bool,
    /// The tool results in the message.
    pub results: Vec<ResultMeta>,
    /// The records of the other blocks; see [`Meta::origin_of`].
    pub sources: Vec<BlockSource>,
    /// In the message of a compaction: its summary.
    pub summary: Option<Box<Summary>>,
    /// In the first message: the newest checkpoint.
    pub checkpoint: Option<Box<LatestCheckpoint>>,
    /// In the first message: the factor by which to correct our token estimates. It comes from a provider's count that
    /// no longer matches the messages, but still shows how far off our estimates are.
    pub scale: Option<Scale>,
}

impl Meta {
    /// Adds the records of `other`. If its blocks were merged into the same message already, they follow the first `at`
    /// ones.
    pub fn join(&mut self, other: Meta, at: Option<usize>) {
        if !other.id.is_empty() && other.offset < self.offset {
            self.keep_sources();
        }
        if let Some(at) = at {
            self.join_sources(&other, at);
        }
        if self.id.is_empty() || (!other.id.is_empty() && other.offset < self.offset) {
            self.id = other.id;
            self.offset = other.offset;
        }
        self.end = self.end.max(other.end);
        if other.usage.is_some() {
            (self.usage, self.model) = (other.usage, other.model);
        }
        self.time = other.time.or(self.time);
        self.pin |= other.pin;
        self.results.extend(other.results);
        self.summary = self.summary.take().or(other.summary);
        self.checkpoint = self.checkpoint.take().or(other.checkpoint);
        self.scale = self.scale.or(other.scale);
    }

    /// Removes the provider's count, because it is not valid for the message as it is shown.
    pub fn drop_count(&mut self) {
        (self.usage, self.model) = (None, None);
    }

    /// Parses `_meta`.
    ///
    /// # Errors
    /// Returns the reason if it does not have the form that [`Meta::add_to`] writes.
    pub fn parse(raw: &str) -> Result<Meta, String> {
        let object = Object::parse(raw).map_err(|_| "'_meta' is not an object".to_owned())?;
        let id = object.string("id").ok_or("'_meta' has no 'id'")?.into();
        Ok(Meta {
            id,
            offset: object.number("offset").unwrap_or(0),
            end: object.number("end").unwrap_or(0),
            usage: object.get("usage").map(str::to_owned),
            model: object.string("model").map(Cow::into_owned),
            time: object
                .get("time")
                .and_then(|it| it.parse().ok())
                .filter(|it: &f64| it.is_finite()),
            pin: object.is_true("pin"),
            results: results::parse(&object)?,
            sources: sources::parse(&object)?,
            summary: object.get("compaction").map(Summary::parse).transpose()?.map(Box::new),
            checkpoint: object
                .get("checkpoint")
                .map(LatestCheckpoint::parse)
                .transpose()?
                .map(Box::new),
            scale: Scale::read(&object),
        })
    }

    /// Adds the members of `_meta`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        let mut members = members
            .string("id", &self.id)
            .number("offset", self.offset)
            .number("end", self.end)
            .optional(Members::raw, "usage", self.usage.as_deref())
            .optional(Members::string, "model", self.model.as_deref())
            .optional(Members::decimal, "time", self.time)
            .flag("pin", self.pin);
        members = results::add(&self.results, members);
        members = sources::add(&self.sources, members);
        if let Some(summary) = &self.summary {
            members = members.object("compaction", |it| summary.add_to(it));
        }
        if let Some(checkpoint) = &self.checkpoint {
            members = members.object("checkpoint", |it| checkpoint.add_to(it));
        }
        Scale::add_to(self.scale, members)
    }
}

/// Adds the records of `other` to `meta`, as [`Meta::join`] does.
pub fn join(meta: &mut Option<Box<Meta>>, other: Option<Box<Meta>>, at: Option<usize>) {
    match (meta, other) {
        (Some(meta), Some(other)) => meta.join(*other, at),
        (meta @ None, other) => *meta = other,
        (Some(_), None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::scale::Basis;
    use crate::record::truncation::KeptSpan;

    #[test]
    fn meta_survives_writing_and_parsing() {
        let meta = Meta {
            id: "0123456789abcdef".into(),
            offset: 12,
            end: 99,
            usage: Some(r#"{"input_tokens":5}"#.into()),
            model: Some("m".into()),
            time: Some(1_767_225_600.5),
            pin: true,
            results: vec![ResultMeta {
                tool_use_id: "t_2".into(),
                original_id: Some("t".into()),
                record: "@40".into(),
                shown: Some(KeptSpan {
                    head: 1,
                    tail: 2,
                    bytes: 30,
                    sha256: "ab".into(),
                    media: vec!["cd".into(), "ef".into()],
                }),
                left_out: LeftOut::Parts(vec![0, 2]),
                parts: vec![0, 2, 3],
            }],
            sources: vec![
                BlockSource { at: 1, record: "a".into(), block: 0 },
                BlockSource { at: 2, record: "b".into(), block: 4 },
            ],
            summary: Some(Box::new(Summary {
                text: "s".into(),
                kept_user: vec!["u".into()],
                turns: 3,
                tokens_after: Some(9),
                ..Summary::default()
            })),
            checkpoint: Some(Box::default()),
            scale: Some(Scale::new(7, 9, Basis::new("claude/2"))),
        };
        assert_eq!(Meta::parse(&meta.add_to(Members::new()).into_json()), Ok(meta));
    }

    #[test]
    fn a_joined_meta_spans_the_records_of_both() {
        let mut a = Meta { id: "b".into(), offset: 50, end: 60, ..Meta::default() };
        a.join(Meta { id: "a".into(), offset: 10, end: 20, ..Meta::default() }, Some(1));
        assert_eq!((&*a.id, a.offset, a.end), ("a", 10, 60));
    }
}
