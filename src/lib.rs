//! clawutils keeps an LLM agent's session as an append-only JSONL transcript, rebuilds the messages that a
//! provider accepts, and carries a turn through a context overflow.
//!
//! The programs in `src/bin` are short; this library does the work. A module uses only modules that are listed
//! above it (a test checks this), so the list below is the architecture, lowest layer first. Only [`cli`] reads
//! arguments and writes to the standard streams. It also reads the environment, except for the proxy variables,
//! which [`provider`] reads.
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

mod simd; // code that depends on the processor
mod system; // code that depends on the operating system
pub mod json; // JSON text, inspected and written without decoding it
pub mod printable; // control characters escaped for a terminal
pub mod exit; // exit statuses, and the errors that carry them
pub mod fault; // the fault of a refused request, by which the guard chooses a stage
pub mod new_file; // an output file that appears under its name only when it is complete
pub mod settings; // options, variables and the configuration file → the value of each setting
pub mod process; // child processes: started, and ended with all their descendants
pub mod id; // ids of records and of tool calls
pub mod media; // images and documents: their type, size and structure, and how an image is made smaller
pub mod finding; // problems in an input, with their positions
pub mod input; // named inputs that can be read from any offset; bytes → lines
pub mod injected; // text of programs in the messages of the user
pub mod hosted; // what the tools of providers did, as text
pub mod record; // lines → records
pub mod shorten; // the text of a shortened tool result; `truncate` decides which are shortened, and how much
pub mod redact; // secrets removed from records before they are written
pub mod usage; // the tokens that providers counted, and the prices of a model
pub mod dialect; // transcripts of other programs
pub mod transcript; // the file: a batch of records is appended under a lock, completely or not at all
pub mod rules; // what a provider accepts
pub mod messages; // records → messages (rebuild)
pub mod lint; // a transcript → findings
pub mod repair; // a session of another program → the edits that make it usable again
pub mod estimate; // messages → tokens; the only module that counts them
pub mod cost; // the prices of models, the bill for calls, and the moment at which a cut pays
pub mod truncate; // messages → smaller messages: which results are shortened, and what is left out
pub mod compact; // messages → a cut, a summary request, and messages with the summary in place of the old ones
pub mod guard; // a refusal → the stage that may cure it
pub mod checkpoint; // messages → a request for an early summary when one is due, and its reply → a record
pub mod provider; // messages → a reply as records, or a classified failure
pub mod exec; // tool calls → tool results, by running tools
pub mod session; // sessions by name: the store of transcripts and its index
pub mod index; // records → rows of a database, and text for its full-text search
pub mod show; // records → text, Markdown or HTML
pub mod site; // sessions → the pages of a site
pub mod training; // sessions → examples for fine-tuning
pub mod spans; // sessions → spans for a tracing backend
#[cfg(feature = "completions")]
pub mod completion; // the options of a program → completions for a shell
pub mod cli; // the parts of the command lines that programs share
