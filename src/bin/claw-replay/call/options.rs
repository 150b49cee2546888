//! The options of `claw-replay call`.

use crate::call::Call;
use crate::call::batch::{Batch, BatchArgs};
use crate::call::client::Client;
use crate::call::compare::Comparison;
use crate::call::limits::RunLimits;
use crate::call::turns::Turn;
use crate::run::RunArgs;
use crate::state::hash_file;
use anyhow::Context;
use clawutils::cli::budget::{BodyArgs, RequestArgs, WindowArgs};
use clawutils::cli::endpoint::ConnectionArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::{
    CassetteArgs, FailuresArgs, LimitArgs, LimitTurnsArgs, PatienceArgs,
};
use clawutils::cli::walk_error;
use clawutils::exit::{Exit, fail};
use clawutils::messages::rebuild::RebuildOptions;
use clawutils::provider::cassette::Cassette;
use clawutils::settings::values::{positive, seconds, share};
use clawutils::settings::{Setting, SettingValue};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use walkdir::WalkDir;

/// The turns whose replies are requested again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnChoice {
    /// All turns.
    All,
    /// The last turn with a reply, or the last turn if none has one.
    Last,
    /// The turns with these numbers.
    Numbers(BTreeSet<u64>),
}

impl TurnChoice {
    fn parse(text: &str) -> Result<TurnChoice, &'static str> {
        match text {
            "all" => Ok(TurnChoice::All),
            "last" => Ok(TurnChoice::Last),
            list => {
                let numbers = list.split(',').map(positive).collect::<Result<BTreeSet<_>, _>>();
                numbers
                    .map(TurnChoice::Numbers)
                    .map_err(|_| "use all, last, or numbers separated by commas")
            }
        }
    }

    /// Returns the chosen turns. For a number without a turn, the element is `Err` with that number.
    pub fn choose<'t>(&self, turns: &'t [Turn]) -> Vec<Result<&'t Turn, u64>> {
        match self {
            TurnChoice::All => turns.iter().map(Ok).collect(),
            TurnChoice::Last => {
                let last = turns.iter().rfind(|turn| !turn.replies.is_empty());
                last.or(turns.last()).into_iter().map(Ok).collect()
            }
            TurnChoice::Numbers(numbers) => {
                let find =
                    |number: &u64| turns.iter().find(|turn| turn.number == *number).ok_or(*number);
                numbers.iter().map(find).collect()
            }
        }
    }
}

/// The options of `claw-replay call`.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// Turns whose replies to request again: all, last, or numbers separated by commas
    #[arg(long, value_name = "TURNS", default_value = "all", value_parser = TurnChoice::parse)]
    pub turns: TurnChoice,
    /// Comparison: exact, calls, calls-and-inputs, or a shell command that gets both replies
    #[arg(long, value_name = "HOW", default_value = "exact", value_parser = Comparison::parse)]
    pub compare: Comparison,
    /// Request each reply N times
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub repeat: u64,
    /// Share of the N replies that must pass, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    pub pass_rate: f64,
    /// Make the new replies the expected ones; those that differ are written to a file beside each transcript
    #[arg(long, conflicts_with_all = ["repeat", "pass_rate"])]
    pub update: bool,
    /// The batch service.
    #[command(flatten)]
    pub batch: BatchArgs,
    /// Request streamed answers, as a turn with --stream does
    #[arg(long, env = "CLAW_STREAM")]
    pub stream: bool,
    /// The system prompt and the tools.
    #[command(flatten)]
    pub request: RequestArgs,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// The window, and the maximum length of the answer.
    #[command(flatten)]
    pub window: WindowArgs,
    /// The rest of the request body.
    #[command(flatten)]
    pub body: BodyArgs,
    /// The part of the conversation that is sent.
    #[command(flatten)]
    pub limit_turns: LimitTurnsArgs,
    /// The directories of recordings to write or to replay.
    #[command(flatten)]
    pub cassette: CassetteArgs,
    /// The limits on tokens and cost.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The failure table.
    #[command(flatten)]
    pub failures: FailuresArgs,
    /// The connection to the provider and its key.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// The timeouts and retries.
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Time limit for each call, in seconds, with all retries and waits; with --batch, for all answers together
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
    /// The options that check, guard and call share.
    #[command(flatten)]
    pub run: RunArgs,
}

impl CallArgs {
    /// Returns the mode. `settings` are the settings of this process.
    ///
    /// # Errors
    /// Fails with 65 if the tools are not JSON or the recordings cannot be used, 74 or 77 if a file cannot be read, 77
    /// if there is no key, and 78 if a setting is missing or invalid.
    pub fn mode(&self, settings: &[(Setting, SettingValue)]) -> anyhow::Result<Call> {
        let recordings = self.check()?;
        let extras = self.request.read()?;
        let state = self.run.state.as_ref().filter(|_| self.batch.batch);
        let batch = state.map(|state| Batch::beside(state, &self.batch, self.deadline));
        let batch = batch.transpose()?;
        let mut arguments = Vec::new();
        // The answers of a batch are whole, and its deadline is not that of a call.
        if self.stream && batch.is_none() {
            arguments.push("--stream=/dev/null".to_owned());
        }
        if let Some(deadline) = self.deadline.filter(|_| batch.is_none()) {
            arguments.push(format!("--deadline={}", deadline.as_secs_f64()));
        }
        let required = (self.pass_rate * self.repeat as f64 - 1e-9).ceil();
        let limit_turns = self.limit_turns.limit_turns;
        Ok(Call {
            options: self.describe(settings)?,
            turns: self.turns.clone(),
            comparison: self.compare.clone(),
            repeat: self.repeat,
            required: required as u64,
            update: self.update,
            recordings,
            rebuild: RebuildOptions { limit_turns, ..RebuildOptions::default() },
            extras,
            model: self.model.clone(),
            limits: self.run_limits()?,
            batch,
            client: Client::new(settings, arguments),
        })
    }

    /// Returns the limits. Those of batches apply when they are sent; then nothing more is spent.
    fn run_limits(&self) -> anyhow::Result<RunLimits> {
        let limits = RunLimits::new(&self.limits, &self.model)?;
        Ok(if self.batch.batch { limits.without_limit() } else { limits })
    }

    /// Checks everything that would otherwise make each call fail. Returns the maximum number of calls for one
    /// repetition: in a replay the number of recordings, else 1.
    fn check(&self) -> anyhow::Result<u64> {
        let endpoint = self.connection.endpoint(&self.model)?;
        endpoint.check()?;
        if self.batch.batch {
            endpoint.batches(&self.model.model().unwrap_or_default())?;
            self.check_batch()?;
        }
        let recordings = match &self.cassette.replay {
            Some(directory) => Cassette::open(directory)?.check()?.max(1),
            None => endpoint.require_key().map(|()| 1)?,
        };
        if self.model.model().is_none() {
            return fail(Exit::Config, "no model is named; give --model or set CLAW_MODEL");
        }
        Ok(recordings)
    }

    /// Checks that the paths can be read again: once to ask for the answers, and once for the reports.
    fn check_batch(&self) -> anyhow::Result<()> {
        if self.run.paths.files_from.as_deref() == Some(Path::new("-")) {
            let text = "--batch reads the list of paths several times; give --files-from a file";
            return fail(Exit::Usage, text);
        }
        // clap does not compare an option with the variable of another one.
        if self.cassette.record.is_some() || self.cassette.replay.is_some() {
            let text = "--batch keeps its own recordings; unset CLAW_RECORD and CLAW_REPLAY";
            return fail(Exit::Usage, text);
        }
        Ok(())
    }

    /// Describes the options and files that the reports depend on.
    fn describe(&self, settings: &[(Setting, SettingValue)]) -> anyhow::Result<String> {
        let CallArgs { turns, compare, repeat, pass_rate, update, .. } = self;
        let deadline = self.deadline.filter(|_| !self.batch.batch);
        let values = settings
            .iter()
            .filter(|(setting, _)| !matches!(setting.key.as_str(), "log" | "config" | "profile"));
        let values: Vec<_> = values.map(|(setting, value)| (&setting.key, &value.texts)).collect();
        let files = [
            &self.cassette.replay,
            &self.limits.prices,
            &self.model.models,
            &self.failures.failures,
        ];
        let files = files.into_iter().flatten().map(|path| version(path));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let (request, body) = (self.request.read()?, self.body.read()?);
        Ok(format!(
            "{turns:?} {compare:?} {repeat} {pass_rate} {update} {deadline:?} {values:?} \
             {files:?} {request:?} {body:?}"
        ))
    }
}

/// Returns a hash of the paths, sizes and modification times of a file, or of all files in a directory. It changes when
/// one of them changes.
///
/// # Errors
/// Fails with 74 or 77 if one cannot be read.
fn version(path: &Path) -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    for entry in WalkDir::new(path).sort_by_file_name() {
        let entry = entry.map_err(|error| walk_error(error, path))?;
        let meta = entry.path().metadata();
        let meta = meta.with_context(|| format!("cannot read '{}'", entry.path().display()))?;
        hash_file(&mut hash, entry.path(), &meta);
    }
    Ok(format!("{:x?}", hash.finalize()))
}
