//! Gets a summary from a model, in as many calls as necessary. Each call runs `claw-call`.

use crate::cli::log::StageOutcome;
use crate::cli::summary::SummaryModel;
use crate::cli::{Log, diagnostics, progress};
use crate::compact::accept::SummaryReply;
use crate::compact::call_budget::CallBudget;
use crate::compact::pieces::{self, Pieces};
use crate::compact::request::SummaryPrompt;
use crate::exit::{Error, Exit, fail};
use crate::json::write::Members;
use crate::messages::Message;
use crate::process::{self, ChildLimits};
use crate::record::content::Role;
use crate::settings::groups::{PROVIDER, REQUEST};
use crate::usage;

/// A model that writes a summary, within limits.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'s> {
    /// The model.
    pub summariser: &'s SummaryModel,
    /// The command that calls it.
    pub command: &'s str,
    /// The limits on calls and time.
    pub call_budget: &'s CallBudget,
    /// The log for diagnostics.
    pub log: Log,
}

impl Writer<'_> {
    /// Gets a summary of `covered`, in pieces if necessary. `earlier` is the summary of the messages before them. If a
    /// request does not fit, the rest is sent in requests of half the size. No request is sent twice unchanged.
    ///
    /// # Errors
    /// Fails with 5 if no request fits or no calls are left, 69 if the reply is not usable or the time limit is
    /// reached, and otherwise with the status of the command.
    pub fn write(
        &self,
        covered: &[Message<'_>],
        earlier: Option<&str>,
        prompt: SummaryPrompt<'_>,
        mut limits: pieces::PieceLimits,
    ) -> anyhow::Result<SummaryReply> {
        let text = earlier.unwrap_or_default().to_owned();
        let mut so_far = SummaryReply { text, ..SummaryReply::default() };
        let (mut rest, mut refused) = (covered, None);
        loop {
            self.call_budget.check()?;
            if refused.is_some() {
                self.log.note("the summary request does not fit; retrying with half of it");
            }
            limits.calls = self.call_budget.left();
            let too_long =
                self.ask_pieces(rest, &mut so_far, prompt, limits, refused.as_deref())?;
            let Some(TooLong { first, request }) = too_long else { return Ok(so_far) };
            let size = limits.gauge.text(&request);
            let room = limits.room.unwrap_or(size).min(size) / 2;
            (limits.room, limits.summary) = (Some(room), limits.summary.min(room / 4));
            (rest, refused) = (&rest[first..], Some(request));
        }
    }

    /// Gets a summary of each piece of `rest` in turn, and replaces `so_far` with each reply. Returns the first
    /// request that does not fit. `refused` is the request that did not fit before.
    fn ask_pieces(
        &self,
        rest: &[Message<'_>],
        so_far: &mut SummaryReply,
        prompt: SummaryPrompt<'_>,
        limits: pieces::PieceLimits,
        refused: Option<&str>,
    ) -> anyhow::Result<Option<TooLong>> {
        let Some(pieces) = Pieces::new(rest, prompt, summary_text(so_far), limits) else {
            let text = "even the shortest summary request does not fit the context window";
            return fail(Exit::NoGain, text);
        };
        self.report_left_out(&pieces);
        for (before, piece) in pieces.iter().enumerate() {
            let request = prompt.request(summary_text(so_far), &piece.text);
            if refused == Some(request.as_str()) {
                return fail(Exit::NoGain, "the summary request does not fit the context window");
            }
            self.report_piece(before + 1, pieces.calls());
            let Some(reply) = self.ask(&request, limits.summary)? else {
                return Ok(Some(TooLong { first: piece.first, request }));
            };
            let usage = usage::sum(so_far.usage.as_deref(), reply.usage.as_deref());
            *so_far = SummaryReply { usage, ..reply };
        }
        Ok(None)
    }

    /// Reports the number of the next call if several are needed.
    fn report_piece(&self, piece: usize, all: usize) {
        if all > 1 {
            let text = format!("asking for the summary, piece {piece} of {all}");
            self.log.outcome(&text, &Members::new().number("piece", piece).number("pieces", all));
        }
    }

    fn report_left_out(&self, pieces: &Pieces) {
        if pieces.left_out > 0 {
            let count = pieces.left_out;
            let text =
                format!("{count} messages do not fit in the summary requests and are left out");
            self.log.outcome(&text, &Members::new().number("left_out", count));
        }
    }

    /// Makes one call. Returns `None` if the request does not fit.
    ///
    /// # Errors
    /// Fails as [`Writer::write`] does.
    pub fn ask(&self, request: &str, most_tokens: u64) -> anyhow::Result<Option<SummaryReply>> {
        self.call_budget.take()?;
        let command = self.command;
        let line = Message::text(Role::User, request).to_line() + "\n";
        let is_other = self.summariser.attempts.is_some();
        let provider = PROVIDER.iter().filter(|_| is_other);
        let without: Vec<&str> = REQUEST.iter().chain(provider).copied().collect();
        let until = self.call_budget.until();
        let limits = ChildLimits { until, without: &without, with: &[NO_CACHE] };
        // The command shows its own progress.
        progress::stop();
        let ended = process::run(command, &self.arguments(most_tokens), line.into_bytes(), limits)?;
        match ended.exit() {
            Some(Exit::Done | Exit::CutOff) => read_reply(command, &ended.stdout).map(Some),
            Some(Exit::Overflow | Exit::TooLarge) => Ok(None),
            _ => Err(ended.failure(command, "cannot get a summary")),
        }
    }

    /// Returns the arguments of `claw-call`: the maximum length of the summary, the model, its window and timeout, and
    /// the format of diagnostics.
    fn arguments(&self, most_tokens: u64) -> Vec<String> {
        let mut arguments = vec!["--max-tokens".to_owned(), most_tokens.to_string()];
        arguments.extend(self.summariser.model.arguments());
        let numbers = [
            ("--window", self.summariser.window.map(|budget| budget.window)),
            ("--timeout", self.summariser.timeout),
        ];
        for (name, number) in numbers {
            let number = number.map(|number| [name.to_owned(), number.to_string()]);
            arguments.extend(number.into_iter().flatten());
        }
        if diagnostics::is_json() {
            arguments.extend(["--log", "json"].map(str::to_owned));
        }
        arguments
    }
}

/// A request for a summary is sent once, so that writing it to a prompt cache would cost more and bring nothing.
const NO_CACHE: (&str, &str) = ("CLAW_CACHE", "off");

/// A request that does not fit the model's context window.
struct TooLong {
    /// The index of its first message among those that were left to summarise.
    first: usize,
    request: String,
}

/// Returns the text of a summary, if there is one yet.
fn summary_text(reply: &SummaryReply) -> Option<&str> {
    Some(reply.text.as_str()).filter(|text| !text.is_empty())
}

fn read_reply(command: &str, stdout: &[u8]) -> anyhow::Result<SummaryReply> {
    let unusable = |why: String| {
        let text = format!("summary from '{command}' rejected: {why}");
        Error::new(Exit::Unavailable, text).with(StageOutcome::Refused.member())
    };
    let records = std::str::from_utf8(stdout).map_err(|error| unusable(error.to_string()))?;
    let reply = SummaryReply::read(records).map_err(unusable)?;
    reply.check().map_err(unusable)?;
    Ok(reply)
}
