//! A run of `claw-compact`: its options, and what follows from them for a conversation.

use clawutils::cli::budget::{Extras, RequestArgs};
use clawutils::cli::log::StageOutcome;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::{PauseArgs, SourceArgs};
use clawutils::cli::summary::{CommandArgs, SummariserArgs, SummaryModel};
use clawutils::cli::{read_file, text};
use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::pieces::Pieces;
use clawutils::compact::request::{self, SummaryPrompt};
use clawutils::compact::{CutPlan, KEEP_USER, Task};
use clawutils::cost::policy::kept_for_cost;
use clawutils::estimate::{Budget, Model, Refused, Request};
use clawutils::exit::{Error, Exit, fail};
use clawutils::fault::Fault;
use clawutils::json::write::Members;
use clawutils::messages::Message;
use clawutils::settings::values::seconds;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options for making a compaction.
#[derive(Clone, Debug, clap::Args)]
pub struct CompactArgs {
    /// Write a compaction record instead of messages
    #[arg(long)]
    pub record: bool,
    /// Write the request for the summary, as messages, without calling a model
    #[arg(long, conflicts_with_all = ["record", "summary", "fallback", "emergency"])]
    pub plan: bool,
    /// Write what would be covered, kept and requested as one JSON object, without calling a model
    #[arg(long, conflicts_with_all = ["record", "plan"])]
    pub show: bool,
    /// Read transcripts and make their missing summaries
    #[arg(long, conflicts_with_all = ["record", "plan", "summary", "fallback", "emergency"])]
    pub retry: bool,
    /// Take the summary from FILE instead of a model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fallback", "emergency"])]
    pub summary: Option<PathBuf>,
    /// The sources of summaries.
    #[command(flatten)]
    pub sources: SourceArgs,
    /// The models to try before the conversation's own.
    #[command(flatten)]
    pub summarisers: SummariserArgs,
    /// The command that calls the model.
    #[command(flatten)]
    pub call: CommandArgs,
    /// The pause between attempts at a missing summary.
    #[command(flatten)]
    pub pause: PauseArgs,
    /// Use the prompt in FILE instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// Focus the summary on TEXT
    #[arg(long, value_name = "TEXT")]
    pub focus: Option<String>,
    /// Keep at most this many tokens of the user's words verbatim, and at most a quarter of the budget
    #[arg(long, value_name = "TOKENS", default_value_t = KEEP_USER)]
    pub keep_user: u64,
    /// Keep the newest messages that together have at least this many tokens, instead of the newest half
    #[arg(long, value_name = "TOKENS", conflicts_with = "classic")]
    pub keep_tokens: Option<u64>,
    /// Cut because that costs less than to go on: keep the newest 20000 tokens or a tenth of the window, and say so in the record
    #[arg(long, conflicts_with_all = ["classic", "keep_tokens"])]
    pub for_cost: bool,
    /// Choose the cut by the number of messages alone, as claw0 does
    #[arg(long)]
    pub classic: bool,
    /// Make at most N calls, over all models; 0 calls no model
    #[arg(long, value_name = "N", default_value = "16")]
    pub max_calls: u32,
    /// Time limit for all calls together, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
}

/// A run of `claw-compact`.
#[derive(Debug)]
pub struct CompactRun<'s> {
    /// The program's own options.
    pub args: &'s CompactArgs,
    /// The options for the model and its provider.
    pub model: &'s ModelArgs,
    /// The budget, if the context window is known.
    pub budget: Option<Budget>,
    /// The refusal of the request, from `--failure`.
    pub refused: Option<Refused>,
    /// The options for the system prompt and the tools.
    pub request: &'s RequestArgs,
    /// The system prompt and the tools.
    pub extras: Extras,
    /// The conversation's model.
    pub known_model: Option<Model<'s>>,
}

impl CompactRun<'_> {
    pub(crate) fn task<'r, 'a>(&'r self, messages: &'r [Message<'a>]) -> Task<'r, 'a> {
        let (system, tools) = (self.extras.system.as_deref(), self.extras.tools.as_deref());
        let model = self.known_model;
        let request = Request { messages, system, tools, model };
        let rule = match self.args.keep_tokens {
            Some(tokens) => CutRule::Tail(tokens),
            None if self.args.for_cost => {
                let window = self.budget.map_or(u64::MAX, |budget| budget.window);
                CutRule::Tail(kept_for_cost(window))
            }
            None if self.args.classic => CutRule::Classic,
            // Any message may contain the block, so as many as possible are covered.
            None if self.fault() == Fault::Block => CutRule::Fifth,
            None => CutRule::Half,
        };
        Task {
            messages,
            system,
            tools,
            model,
            gauge: Refused::gauge(self.refused.as_ref(), request),
            target: self.budget.map(|budget| budget.target()),
            keep_user: self.args.keep_user,
            rule,
            limits: CutLimits::default(),
        }
    }

    pub(crate) fn fault(&self) -> Fault {
        self.refused.as_ref().map_or(Fault::Tokens, |refused| refused.fault)
    }

    /// Returns the limits on the cut after a refusal because of bytes or of a block.
    pub(crate) fn limits(&self, task: &Task<'_, '_>) -> anyhow::Result<CutLimits> {
        let bytes = match self.fault() {
            Fault::Bytes => {
                let body = self.model.refused_body(self.refused.as_ref())?;
                Some(body.target(task.bytes(task.messages)))
            }
            _ => None,
        };
        let places = self.refused.iter().flat_map(|refused| &refused.places);
        let covers = places.map(|place| place.message).max();
        Ok(CutLimits { bytes, covers: covers.filter(|_| self.fault() == Fault::Block) })
    }

    /// Returns true if the request was refused, or if its estimate exceeds the budget.
    pub(crate) fn is_too_long(&self, task: &Task<'_, '_>, planned: &CutPlan) -> bool {
        self.refused.is_some() || task.target.is_some_and(|target| planned.before > target)
    }

    pub(crate) fn prompt(&self) -> anyhow::Result<String> {
        self.args.prompt.as_ref().map_or_else(|| Ok(request::PROMPT.to_owned()), |p| read_text(p))
    }

    /// Divides the covered part into pieces for a model, one for each call.
    pub(crate) fn pieces(
        &self,
        summariser: &SummaryModel,
        task: &Task<'_, '_>,
        planned: &CutPlan,
        prompt: SummaryPrompt<'_>,
    ) -> anyhow::Result<Pieces> {
        let calls = self.args.max_calls.max(1) as usize;
        let limits = summariser.limits(task.gauge, task.summary_tokens(), calls);
        let covered = &task.messages[planned.from..planned.at];
        match Pieces::new(covered, prompt, planned.earlier.as_deref(), limits) {
            Some(pieces) => Ok(pieces),
            None => fail(
                Exit::NoGain,
                "even the shortest summary request does not fit the context window",
            ),
        }
    }
}

/// Returns the outcome that an error carries, else `failed`.
pub(crate) fn outcome_of(error: &anyhow::Error) -> Members {
    let own = error.downcast_ref::<Error>().map(Error::members).filter(|own| !own.is_empty());
    own.cloned().unwrap_or_else(|| StageOutcome::Failed.member())
}

pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    Ok(text(&path.display().to_string(), &read_file(path)?)?.to_owned())
}
