//! Tests that run the programs and scripts as users do. Most modules test one program, or one aspect of several
//! programs; the first lines of each module say what it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "tests and their helpers report failures by panicking"
)]

mod append;
mod attach;
mod bench;
#[cfg(feature = "http")]
mod broken;
mod bytes;
#[cfg(feature = "http")]
mod cache;
#[cfg(feature = "http")]
mod call;
mod cases;
#[cfg(feature = "http")]
mod chaos;
#[cfg(feature = "http")]
mod chat;
mod check;
/// Choices by a seed, as in the property tests.
#[cfg(any(feature = "http", feature = "mcp"))]
#[allow(dead_code, reason = "the property tests use the rest")]
#[path = "../property/choices.rs"]
mod choices;
mod checkpoint;
#[cfg(feature = "http")]
mod classify;
mod common;
mod compact;
mod completions;
mod config;
mod counts;
#[cfg(feature = "http")]
mod damage;
#[cfg(feature = "http")]
mod deadlines;
mod dialects;
mod estimate;
mod exec;
mod export;
#[cfg(feature = "http")]
mod fake;
mod fallbacks;
mod figures;
mod filled;
mod help;
mod hosted;
mod hostile;
mod house;
#[cfg(feature = "http")]
mod hostile_servers;
#[cfg(feature = "http")]
mod own_guard;
#[cfg(feature = "http")]
mod own_summary;
#[cfg(feature = "index")]
mod index;
#[cfg(feature = "http")]
mod interrupts;
#[cfg(feature = "http")]
mod keys;
#[cfg(feature = "http")]
mod ladder;
#[cfg(feature = "http")]
mod live;
mod lock;
mod man;
#[cfg(feature = "http")]
mod mistakes;
#[cfg(feature = "http")]
mod offered;
mod ollama;
#[cfg(feature = "http")]
mod options;
mod omissions;
mod paired;
mod pipes;
/// Sessions with something in them that a provider refuses, as in the property tests.
#[cfg(feature = "http")]
#[allow(dead_code, reason = "the property tests use the rest")]
#[path = "../property/poisons.rs"]
mod poisons;
mod progress;
#[cfg(feature = "http")]
mod protocols;
mod provider;
mod rebuild;
#[cfg(all(feature = "http", feature = "index"))]
mod readme;
mod recall;
#[cfg(feature = "http")]
mod recorded;
#[cfg(feature = "http")]
mod refusals;
mod repair;
mod replay;
mod retry;
#[cfg(feature = "http")]
mod rounds;
mod schema;
mod session;
#[cfg(feature = "http")]
mod shapes;
mod shell;
mod show;
mod sources;
#[cfg(feature = "http")]
mod spent;
mod strangers;
#[cfg(feature = "http")]
mod stream;
mod summaries;
mod conversations;
mod terminal;
mod tools;
#[cfg(feature = "http")]
mod training;
mod transport;
mod truncate;
#[cfg(feature = "http")]
mod turn;
#[cfg(feature = "http")]
mod unattended;
#[cfg(feature = "http")]
mod wedges;

#[cfg(feature = "http")]
use common::media;
