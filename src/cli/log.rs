//! What programs say on standard error.

use crate::cli::config::ConfigArgs;
use crate::cli::diagnostics;
use crate::cli::progress::{self, Progress};
use crate::estimate::Unused;
use crate::exit::{Exit, fail};
use crate::finding::Finding;
use crate::json::write::Members;
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// Form of the diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One line of text per diagnostic
    Text,
    /// One JSON object per diagnostic
    Json,
}

/// The option group for diagnostics.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// Format of the diagnostics on standard error
    #[arg(long, value_name = "FORMAT", env = "CLAW_LOG", default_value = "text", global = true)]
    pub log: LogFormat,
    /// The configuration file; its settings become those of the other options.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// What became of the work of a stage that makes a request smaller, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageOutcome {
    /// Done, and the request is within its budget.
    Applied,
    /// Nothing was changed: nothing was to be done, or too little was to be gained.
    Skipped,
    /// What was made is not used.
    Refused,
    /// It could not be done, or was not enough.
    Failed,
}

impl StageOutcome {
    /// The members that say so, with the request's tokens before and after.
    #[must_use]
    pub fn members(self, before: u64, after: u64) -> Members {
        self.member().number("before", before).number("after", after)
    }

    /// The member that says so.
    #[must_use]
    pub fn member(self) -> Members {
        Members::new().string(
            "outcome",
            match self {
                StageOutcome::Applied => "applied",
                StageOutcome::Skipped => "skipped",
                StageOutcome::Refused => "refused",
                StageOutcome::Failed => "failed",
            },
        )
    }
}

/// Where a program's diagnostics go.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    name: &'static str,
}

impl LogArgs {
    /// The log of program `name`; from here on, all its diagnostics have the chosen form.
    pub fn open(&self, name: &'static str) -> Log {
        if self.log == LogFormat::Json {
            diagnostics::log_json();
        }
        Log { name }
    }
}

impl Log {
    /// Says something.
    pub fn note(&self, text: &str) {
        diagnostics::say(self.name, text);
    }

    /// Says what a stage did: a sentence for people, members for programs.
    pub fn outcome(&self, text: &str, members: &Members) {
        diagnostics::say_with(self.name, text, members);
    }

    /// Shows on a terminal what is waited for, and for how long, until what this gives is dropped.
    pub fn wait_for(&self, what: impl Into<String>) -> Progress {
        self.progress(progress::since(what.into()))
    }

    /// Shows on a terminal what `text` gives, until what this gives is dropped.
    pub fn progress(&self, text: impl FnMut() -> Option<String> + Send + 'static) -> Progress {
        Progress::new(self.name, text)
    }

    /// Says which of a provider's counts is not used, and why, if one is not.
    pub fn unused_count(&self, unused: Option<Unused>) {
        let Some(unused) = unused else { return };
        let members = Members::new().number("unused", unused.count());
        let members = members.string("unused_why", unused.why());
        self.outcome(&unused.to_string(), &members);
    }

    /// Says how many lone surrogates were replaced, if any were.
    pub fn replaced(&self, count: usize) {
        let what = match count {
            0 => return,
            1 => "lone surrogate",
            _ => "lone surrogates",
        };
        let text = format!("replaced {count} {what} by U+FFFD");
        self.outcome(&text, &Members::new().number("replaced", count));
    }
}

/// The number of findings of one rule that a terminal gets.
const MOST_OF_A_RULE: usize = 20;

/// Reports each finding and their number. A terminal gets the first ones of each rule and the number of the others.
///
/// # Errors
/// 65 if there are any and `strict` is asked for.
pub fn report(log: Log, findings: &[Finding], strict: bool) -> anyhow::Result<()> {
    let is_short = std::io::stderr().is_terminal() && !diagnostics::is_json();
    let most = if is_short { MOST_OF_A_RULE } else { usize::MAX };
    let mut counts = BTreeMap::new();
    let first = findings.iter().filter(|finding| {
        let count = counts.entry(finding.rule.name).or_insert(0);
        *count += 1;
        *count <= most
    });
    diagnostics::say_all(log.name, first, |finding| finding.add_to(Members::new()));
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > most) {
        log.note(&format!("{name}: {} more, which claw-check lists", count - most));
    }
    let count = match findings.len() {
        0 => return Ok(()),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    if strict {
        return fail(Exit::Data, count);
    }
    log.note(&count);
    Ok(())
}
