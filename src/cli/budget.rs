//! The window and how it is divided, from options, environment and configuration.

use crate::cli::config::ConfigArgs;
use crate::cli::model::ModelArgs;
use crate::cli::read_file;
use crate::estimate::{Budget, Gauge, Request};
use crate::exec::tools::Folder;
use crate::exit::{Error, Exit, fail};
use crate::json::{self, Object};
use crate::record;
use std::path::PathBuf;

/// The option group for the window.
#[derive(Clone, Debug, clap::Args)]
pub struct BudgetArgs {
    /// Window in tokens, prompt and answer (CLAW_WINDOW, else the table of models)
    #[arg(long, value_name = "TOKENS")]
    pub window: Option<u64>,
    /// Room for the answer in tokens (8096, at most a quarter of the window)
    #[arg(long, value_name = "TOKENS")]
    pub max_tokens: Option<u64>,
    /// Tokens that a prompt leaves free before compaction (30000, at most 15 % of the window)
    #[arg(long, value_name = "TOKENS")]
    pub reserve: Option<u64>,
    /// The configuration, which may have the reserve.
    #[command(flatten)]
    pub config: ConfigArgs,
}

impl BudgetArgs {
    /// The division of the window, if a window is known.
    ///
    /// # Errors
    /// 78 when something is malformed or nothing is left for the prompt.
    pub fn budget(
        &self,
        model: &ModelArgs,
        refused: Option<&Refused>,
    ) -> anyhow::Result<Option<Budget>> {
        let configured = self.config.read()?.compaction.reserve;
        let reserve = self.reserve.or(configured);
        let known = model.window(self.window)?;
        let limit = refused.and_then(|refused| refused.limit);
        let Some(window) = known.into_iter().chain(limit).min() else { return Ok(None) };
        let budget = Budget::new(window, self.max_tokens, reserve);
        Ok(Some(budget.map_err(|why| Error::new(Exit::Config, why))?))
    }

    /// The same, where there is no going on without a window.
    ///
    /// # Errors
    /// 78 also when no window is known: it is never guessed.
    pub fn known_budget(
        &self,
        model: &ModelArgs,
        refused: Option<&Refused>,
    ) -> anyhow::Result<Budget> {
        match self.budget(model, refused)? {
            Some(budget) => Ok(budget),
            None => fail(Exit::Config, "the window is not known; give --window or set CLAW_WINDOW"),
        }
    }
}

/// What goes with the messages in a request.
#[derive(Clone, Debug, clap::Args)]
pub struct RequestArgs {
    /// File with the system prompt
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// File with the tools, a JSON array; or folder of tools
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
}

/// The system prompt and the tools, read.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The system prompt; none if it would be blank.
    pub system: Option<String>,
    /// The tools, as a JSON array.
    pub tools: Option<String>,
}

impl RequestArgs {
    /// Reads both files, or what a folder of tools says of them.
    ///
    /// # Errors
    /// 74 when one cannot be read, 65 when it is not what it has to be, 78 when a folder has no tool.
    pub fn read(&self) -> anyhow::Result<Extras> {
        let text = |path: &PathBuf| -> anyhow::Result<String> {
            String::from_utf8(read_file(path)?).map_err(|error| {
                Error::new(Exit::Data, format!("cannot read '{}': {error}", path.display())).into()
            })
        };
        let system = self.system.as_ref().map(text).transpose()?;
        let tools = |path: &PathBuf| match path.is_dir() {
            true => Folder::open(path)?.definitions(),
            false => text(path),
        };
        let tools = self.tools.as_ref().map(tools).transpose()?;
        if let (Some(tools), Some(path)) = (&tools, &self.tools)
            && let Some(why) = why_no_tools(tools.trim())
        {
            return fail(Exit::Data, format!("cannot use tools '{}': {why}", path.display()));
        }
        Ok(Extras {
            system: system.filter(|text| !text.trim().is_empty()),
            tools: tools.map(|text| text.trim().to_owned()),
        })
    }
}

/// Why a text is no list of tools, if it is none.
fn why_no_tools(text: &str) -> Option<String> {
    if json::elements(text).is_none() {
        return Some("not a JSON array; give a list of tools, or a folder of them".to_owned());
    }
    let is_too_deep = json::is_deeper(text, record::MOST_DEPTH);
    is_too_deep.then(|| format!("nested more than {} deep", record::MOST_DEPTH))
}

/// What the `error` record of a refused request says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    /// The window that it named, in tokens.
    pub limit: Option<u64>,
    /// The prompt's tokens as the provider counted them.
    pub actual: Option<u64>,
    /// The provider stopped counting there.
    pub is_floor: bool,
}

/// The option that names such a record.
#[derive(Clone, Debug, clap::Args)]
pub struct RefusedArgs {
    /// File with the error record of the refused request: its numbers are used
    #[arg(long, value_name = "FILE")]
    pub failure: Option<PathBuf>,
}

impl RefusedArgs {
    /// Reads the record, the last line of the file.
    ///
    /// # Errors
    /// 74 when it cannot be read, 65 when it is no record.
    pub fn read(&self) -> anyhow::Result<Option<Refused>> {
        let Some(path) = &self.failure else { return Ok(None) };
        let bytes = read_file(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let object = Object::parse(line).map_err(|_| {
            Error::new(
                Exit::Data,
                format!(
                    "cannot use '{}': not an error record; give what claw-call --failure wrote",
                    path.display()
                ),
            )
        })?;
        let positive = |name: &str| object.number(name).filter(|number| *number > 0);
        Ok(Some(Refused {
            limit: positive("limit"),
            actual: positive("actual"),
            is_floor: object.is_true("actual_is_floor"),
        }))
    }
}

impl Refused {
    /// A gauge for the request that was refused.
    #[must_use]
    pub fn gauge(refused: Option<&Refused>, request: Request<'_, '_>) -> Gauge {
        let plain = Gauge::new(request, None);
        let Some(Refused { actual: Some(actual), is_floor, .. }) = refused else { return plain };
        if *is_floor && plain.tokens(request) > *actual {
            return plain;
        }
        Gauge::new(request, Some(*actual))
    }
}
