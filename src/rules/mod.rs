//! What providers accept: how messages follow each other ([`order`]), the names of tools ([`names`]), the inputs of calls
//! ([`inputs`]), blocks in the form of other APIs ([`parts`]), and images and documents ([`media`]). [`accepts`] has the limits as data.
//!
//! Rebuild repairs messages by these rules, claw-check reports what it repaired, and claw-call refuses to send what still
//! breaks one.

pub mod accepts;
pub mod inputs;
pub mod media;
pub mod names;
pub mod order;
pub mod parts;

pub use order::{Violation, check_ready, violations};
