//! clawutils: an LLM agent's session as an append-only JSONL transcript, rebuilt into messages that a
//! provider accepts, and carried through a context overflow.
//!
//! The programs in `src/bin` are a page each; the work is here. The modules in the order of the flow:
//!
//! - [`json`], [`record`], [`jsonl`]: text that is looked into and not decoded; one line of a transcript;
//!   lines in. What is no record is a value, not an error. → records
//! - [`source`]: inputs that can be read from any place.
//! - [`redact`]: what is taken out of records before they are written.
//! - [`transcript`]: the file. Records go to its end under a lock, whole or not at all.
//! - [`dialect`]: what other programs wrote.
//! - [`messages`]: rebuild. Which records count, replies put together, calls paired with results. →
//!   messages
//! - [`check`]: the rules that messages must keep, and findings.
//! - [`estimate`]: messages → tokens. The one place that counts.
//! - [`truncate`]: messages → smaller messages, by shortening tool results.
//! - [`compact`]: messages → a cut, a summary request, and messages with the summary in the old part's
//!   place.
//! - [`checkpoint`]: messages → whether a summary ahead of need is due, its request, and what a reply says.
//! - [`provider`]: messages → a reply as records, or a failure of a known kind.
//! - [`exec`]: calls → results, by running tools.
//! - [`show`]: records → text, Markdown or HTML, for a person.
//! - [`usage`]: what providers counted, and what it costs.
//! - [`session`]: sessions by name: the store of transcripts and its index.
//! - [`cli`], [`exit`]: what programs share on their command lines, and how they end.
//!
//! A stage takes bytes and gives bytes; none but `cli` and `exit` touches standard input and output, the
//! environment or arguments.
//!
//! ```
//! use clawutils::estimate::{Estimate, Method, Request};
//! use clawutils::messages::rebuild::{Options, from_inputs};
//! use clawutils::source::Input;
//!
//! let transcript = br#"{"type":"user","content":"What is 2 + 2?"}
//! {"type":"assistant","content":[{"type":"text","text":"4"}]}"#;
//! let inputs = [Input::memory("example", transcript.to_vec())];
//! let rebuilt = from_inputs(&inputs, &Options::default())?;
//! assert_eq!(rebuilt.messages.len(), 2);
//! assert!(rebuilt.findings.is_empty());
//!
//! let request = Request { messages: &rebuilt.messages, ..Request::default() };
//! assert!(Estimate::of(request, Method::Script).tokens > 10);
//! # Ok::<(), anyhow::Error>(())
//! ```

// musl's own allocator makes a rebuild take three times as long.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

pub mod check;
pub mod checkpoint;
pub mod cli;
pub mod compact;
pub mod dialect;
pub mod estimate;
pub mod exec;
pub mod exit;
pub mod json;
pub mod jsonl;
pub mod messages;
pub mod printable;
pub mod provider;
pub mod record;
pub mod redact;
pub mod session;
pub mod show;
pub mod source;
pub mod transcript;
pub mod truncate;
pub mod usage;
mod vectors;
