//! Index: the rows of a database that is made from transcripts.
//!
//! [`rows`] turns a record into rows, [`words`] prepares texts and queries for the full-text search. The database itself
//! belongs to claw-index, which is the only program that is linked with SQLite.

pub mod rows;
pub mod snippet;
pub mod words;
