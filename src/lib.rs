//! clawutils: an LLM agent's session as an append-only JSONL transcript, rebuilt into messages that a
//! provider accepts, and carried through a context overflow.
//!
//! The programs in `src/bin` are a page each; the work is here. A module uses only those that the list below has above
//! it, which a test holds. So the list is the architecture, read from the bytes up. A stage takes bytes and gives
//! bytes; only [`cli`] reads arguments and the environment, and writes to the standard streams.
//!
//! ```
//! use clawutils::estimate::{Estimate, Method, Request};
//! use clawutils::messages::rebuild::{RebuildOptions, from_inputs};
//! use clawutils::input::Input;
//!
//! let transcript = br#"{"type":"user","content":"What is 2 + 2?"}
//! {"type":"assistant","content":[{"type":"text","text":"4"}]}"#;
//! let inputs = [Input::memory("example", transcript.to_vec())];
//! let rebuilt = from_inputs(&inputs, &RebuildOptions::default())?;
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

mod simd; // what depends on the processor
pub mod json; // text that is inspected and written, not decoded
pub mod printable; // text made fit for a terminal
pub mod exit; // statuses, and errors that end in them
pub mod settings; // options, variables and the configuration file → the value of each setting
pub mod process; // other programs: started, and ended with all that they started
pub mod id; // ids of records and of calls
pub mod finding; // what is wrong at a place of an input
pub mod input; // bytes in, by name, from any place; bytes → lines
pub mod record; // lines → records
pub mod shorten; // how a shortened result reads
pub mod redact; // what is taken out of records before they are written
pub mod dialect; // what other programs wrote
pub mod transcript; // the file: records go to its end under a lock, whole or not at all
pub mod messages; // records → messages (rebuild)
pub mod rules; // what a provider accepts
pub mod lint; // a transcript → findings
pub mod usage; // what providers counted, and what it costs
pub mod estimate; // messages → tokens; the one place that counts
pub mod truncate; // messages → smaller messages, by shortening results
pub mod compact; // messages → a cut, a summary request, and messages with the summary in their place
pub mod checkpoint; // messages → whether a summary ahead of need is due, its request, and its reply
pub mod provider; // messages → a reply as records, or a failure of a known kind
pub mod exec; // calls → results, by running tools
pub mod session; // sessions by name: the store of transcripts and its index
pub mod show; // records → text, Markdown or HTML, for a person
pub mod cli; // what programs share on their command lines
