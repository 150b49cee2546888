//! The log of a program: notes, outcomes and findings on standard error.

use crate::cli::config::ConfigArgs;
use crate::cli::diagnostics;
use crate::cli::progress::{self, Progress};
use crate::estimate::Unused;
use crate::exit::{Exit, fail};
use crate::finding::{Findings, MAX_LISTED};
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
    /// The configuration file, which supplies defaults for the other options.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// The outcome of a stage that makes a request smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageOutcome {
    /// The stage succeeded, and the request is within its budget.
    Applied,
    /// Nothing was changed, because there was nothing to do or too little to gain.
    Skipped,
    /// The result, such as a summary, was rejected.
    Refused,
    /// The stage failed, or the request still exceeds its budget.
    Failed,
}

impl StageOutcome {
    /// Returns the members of a diagnostic: this outcome, and the tokens of the request before and after.
    #[must_use]
    pub fn members(self, before: u64, after: u64) -> Members {
        self.member().number("before", before).number("after", after)
    }

    /// Returns the `outcome` member for a diagnostic.
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

/// The log of a program.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    name: &'static str,
}

impl LogArgs {
    /// Opens the log of program `name`, and selects the format of all later diagnostics.
    pub fn open(&self, name: &'static str) -> Log {
        if self.log == LogFormat::Json {
            diagnostics::log_json();
        }
        Log { name }
    }
}

impl Log {
    /// Writes a diagnostic.
    pub fn note(&self, text: &str) {
        diagnostics::say(self.name, text);
    }

    /// Writes the outcome of a stage: the text, and with `--log json` also the members.
    pub fn outcome(&self, text: &str, members: &Members) {
        diagnostics::say_with(self.name, text, members);
    }

    /// Shows on a terminal what the program is waiting for, and for how long, until the result is dropped.
    pub fn wait_for(&self, what: impl Into<String>) -> Progress {
        self.progress(progress::since(what.into()))
    }

    /// Shows on a terminal the text that `text` returns, until the result is dropped.
    pub fn progress(&self, text: impl FnMut() -> Option<String> + Send + 'static) -> Progress {
        Progress::new(self.name, text)
    }

    /// If the estimate did not use the provider's token count, reports that count and the reason.
    pub fn unused_count(&self, unused: Option<Unused>) {
        let Some(unused) = unused else { return };
        let members = Members::new().number("unused", unused.count());
        let members = members.string("unused_why", unused.why());
        self.outcome(&unused.to_string(), &members);
    }

    /// Reports the number of replaced lone surrogates, if there are any.
    pub fn replaced(&self, count: usize) {
        let what = match count {
            0 => return,
            1 => "lone surrogate",
            _ => "lone surrogates",
        };
        let text = format!("replaced {count} {what} with U+FFFD");
        self.outcome(&text, &Members::new().number("replaced", count));
    }
}

/// The maximum number of findings of one rule to write to a terminal.
const MAX_PER_RULE: u64 = 20;

/// Reports the listed findings (on a terminal, only the first ones of each rule), then for each rule the number of the
/// others, and finally the number of all findings.
///
/// # Errors
/// Fails with 65 if there are findings and `strict` is true.
pub fn report(log: Log, findings: &Findings, strict: bool) -> anyhow::Result<()> {
    let is_short = std::io::stderr().is_terminal() && !diagnostics::is_json();
    let most = if is_short { MAX_PER_RULE } else { MAX_LISTED };
    let mut counts = BTreeMap::new();
    let first = findings.iter().filter(|finding| {
        let count = counts.entry(finding.rule).or_insert(0);
        *count += 1;
        *count <= most
    });
    diagnostics::say_all(log.name, first, |finding| finding.add_to(Members::new()));
    for (rule, count) in findings.counts().filter(|(_, count)| *count > most) {
        let lists = match count {
            ..=MAX_LISTED => "; claw-check lists them".to_owned(),
            _ if most < MAX_LISTED => format!("; claw-check lists the first {MAX_LISTED}"),
            _ => String::new(),
        };
        log.note(&format!("{}: {} more{lists}", rule.name, count - most));
    }
    let count = match findings.count(|_| true) {
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
