//! Reads a complete answer.

use crate::json::{Object, elements};
use crate::provider::cache::CacheMiss;
use crate::provider::{Reply, container};
use std::borrow::Cow;

/// Reads a complete answer.
///
/// # Errors
/// Returns what is missing, phrased to follow "the answer".
pub fn read(answer: &Object<'_>) -> Result<Reply, String> {
    let content = answer.get("content").and_then(elements).ok_or("has no content")?;
    let string = |name: &str| answer.string(name).map(Cow::into_owned);
    Ok(Reply {
        blocks: content.into_iter().map(str::to_owned).collect(),
        model: string("model"),
        stop_reason: string("stop_reason"),
        container: container::of_answer(answer),
        id: string("id"),
        cache_miss: CacheMiss::of_answer(answer),
        usage: answer.get("usage").filter(|usage| usage.starts_with('{')).map(str::to_owned),
        ..Reply::default()
    })
}
