//! Prepares the rows of the database that claw-index makes from transcripts.
//!
//! [`rows`] turns a record into rows, [`words`] prepares text and queries for the full-text search, and [`snippet`]
//! cuts the part around a match out of a message. The database itself belongs to claw-index, the only program that is
//! linked with SQLite.

pub mod rows;
pub mod snippet;
pub mod words;
