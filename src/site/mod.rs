//! A site of many sessions: pages without scripts that load nothing. It has an index, a page or several for each session,
//! and a page of statistics.
//!
//! All files are in one directory. Their names come from the ids of the sessions, made safe, and never from
//! paths. The directory also has the state of the site: the sources with their states, and what the index shows about
//! each. So an update reads only the sources that have changed, and writes only the pages that differ.
//!
//! An update has two stages. First, each changed source is read for its summary. Then all sessions are known, the
//! neighbours of each are, too, and the pages of the changed sources are written. Several threads share the sources;
//! each has one of them in memory, a record at a time.

mod build;
mod index;
mod name;
mod pages;
mod parts;
mod source;
mod state;
mod statistics;
mod summary;

pub use build::{Site, SiteReport};
pub use source::{SiteOptions, Source};
