//! The programs and scripts, run as users run them. One module a command, and what concerns them all.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic, and so may what helps it")]

/// claw-append: the file keeps every byte it had, and every record that was acknowledged.
mod append;
mod attach;
/// claw-call --stream: what is cut, refused or wrong is never taken for a reply.
#[cfg(feature = "http")]
mod broken;
/// All programs: odd bytes, depth and length, each with its outcome.
mod bytes;
/// claw-call: one call and what comes of it.
#[cfg(feature = "http")]
mod call;
/// The numbers in test names, and what they stand for.
mod cases;
/// claw-turn: failures in any order, and still an end.
#[cfg(feature = "http")]
mod chaos;
/// claw-chat: a talk on a terminal, and the same without one.
#[cfg(feature = "http")]
mod chat;
/// claw-check: every damage found once, where it is.
mod check;
/// claw-checkpoint: due when it should be, made of any reply, and known to whoever asks.
mod checkpoint;
/// claw-call --classify: the failure table, row by row.
#[cfg(feature = "http")]
mod classify;
mod common;
/// claw-compact: an old part summarised, legally and for a gain.
mod compact;
mod config;
/// All programs: which counts of a provider's still hold, and one size of a session.
mod counts;
/// claw-turn: sessions as faults left them.
#[cfg(feature = "http")]
mod damage;
/// All programs: deadlines and signals, and nothing that is left running.
#[cfg(feature = "http")]
mod deadlines;
/// claw-estimate: how many tokens, of which window, and does it fit.
mod estimate;
/// claw-exec: calls run as executables, each with one result.
mod exec;
/// claw-config export: settings for the programs that a shell runs.
mod export;
/// The fake provider in every shape: does it answer as asked, and refuse what it should?
#[cfg(feature = "http")]
mod fake;
/// claw-turn: no model makes a summary, and the turn carries on.
mod fallbacks;
mod help;
/// All that read transcripts: files that are made to take long take no longer than others of their size.
mod hostile;
mod house;
/// claw-call: servers that break off, stay open, drip and flood.
#[cfg(feature = "http")]
mod hostile_servers;
/// Signals in the middle of an answer: nothing by halves.
#[cfg(feature = "http")]
mod interrupts;
/// The key: where it comes from, where it goes, and that it is nowhere else.
#[cfg(feature = "http")]
mod keys;
/// claw-turn: every branch and every shape, and again from its recording.
#[cfg(feature = "http")]
mod ladder;
/// claw-turn --stream: the reply is shown as it comes, once.
#[cfg(feature = "http")]
mod live;
/// claw-session lock: a command that holds a session's turn, and the signals it gets.
mod lock;
/// The manual: does it say what the programs do?
mod man;
/// All programs: what users type wrong, and the line that says what to do next.
#[cfg(feature = "http")]
mod mistakes;
/// Ollama: nothing of a prompt is dropped without a word.
#[cfg(feature = "http")]
mod ollama;
/// claw-call: what is asked beside the reply.
#[cfg(feature = "http")]
mod options;
/// claw-rebuild: thinking that nothing follows, and results of calls whose ids are used again.
mod paired;
/// All programs: in pipes, with closed, missing and bad input, and readers that are slow or gone.
mod pipes;
/// What programs wait for, on a terminal: said after a second, and gone without a trace.
mod progress;
/// The fake provider: does it refuse what a strict one refuses?
#[cfg(feature = "http")]
mod provider;
/// claw-rebuild: messages that a provider takes, from whatever stands in the file.
mod rebuild;
/// README.md: its commands do what it says.
#[cfg(feature = "http")]
mod readme;
/// scripts/dev/recall: what survives ten compactions, and the table of docs/recall.md.
mod recall;
/// claw-call: what a real server answered, once more.
#[cfg(feature = "http")]
mod recorded;
/// claw-retry: summaries that are made later, once, and for what they stand for.
mod retry;
/// claw-turn --tools: rounds of calls, and none that is run twice.
#[cfg(feature = "http")]
mod rounds;
/// The JSON Schema: does it take what is written, and nothing that is wrong?
mod schema;
/// claw-session: sessions by name, whatever became of the index, and nothing lost.
mod session;
/// claw-call in every shape: one talk with all providers, and one form of what comes back.
#[cfg(feature = "http")]
mod shapes;
mod shell;
/// claw-show: everything is shown, in three formats, and nothing of it is obeyed.
mod show;
/// claw-compact: one source after another, what each is asked, and what it costs.
mod sources;
/// claw-call: what replies cost, and limits on it.
#[cfg(feature = "http")]
mod spent;
/// Inputs that hold no record: every reader says what they look like, and what to do.
mod strangers;
/// claw-call --stream: the same records, and the text as it comes.
#[cfg(feature = "http")]
mod stream;
/// A program whose summaries are files, for claw-compact and claw-retry.
mod summaries;
/// Sessions to test the guard's stages with.
mod talks;
/// All programs: no text of somebody else's makes a terminal do something.
mod terminal;
/// Tools: the three that come along, and what a model is told of a folder.
mod tools;
/// claw-call: TLS, redirects, proxies, and which address a base URL means.
#[cfg(feature = "http")]
mod transport;
/// claw-truncate: long results shortened until the request fits.
mod truncate;
/// claw-turn: a turn through the guard.
#[cfg(feature = "http")]
mod turn;
/// claw-turn: hundreds of turns that nobody looks after.
#[cfg(feature = "http")]
mod unattended;
