//! The options for the context window, the system prompt, the tools and the rest of a request.

use crate::cli::input::text_of;
use crate::cli::model::ModelArgs;
use crate::cli::read_file;
use crate::estimate::{Budget, Refused};
use crate::exec::tools::{Directory, why_invalid};
use crate::exit::{Error, Exit, fail};
use crate::json::Object;
use crate::provider::cache::CacheChoice;
use crate::provider::effort::Effort;
use crate::provider::sampling;
use crate::settings::values::{ExtraArg, positive, temperature};
use std::path::PathBuf;

/// The options for the context window and the maximum length of the answer.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WindowArgs {
    /// Context window in tokens, prompt and answer together (default: from the table of models)
    #[arg(long, value_name = "TOKENS", env = "CLAW_WINDOW")]
    pub window: Option<u64>,
    /// Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)
    #[arg(long, value_name = "TOKENS", env = "CLAW_MAX_TOKENS", value_parser = positive)]
    pub max_tokens: Option<u64>,
}

/// The options that divide the window between the prompt, the answer and a reserve.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct BudgetArgs {
    /// The window.
    #[command(flatten)]
    pub window: WindowArgs,
    /// Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of
    /// the window)
    #[arg(long, value_name = "TOKENS", env = "CLAW_RESERVE")]
    pub reserve: Option<u64>,
}

impl BudgetArgs {
    /// Returns the budget for the smaller of the model's window and the limit that the provider stated in the refusal,
    /// if either is known.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file of `--models` cannot be read, and with 78 if it is malformed or nothing is left
    /// for the prompt.
    pub fn budget(
        &self,
        model: &ModelArgs,
        refused: Option<&Refused>,
    ) -> anyhow::Result<Option<Budget>> {
        let WindowArgs { window, max_tokens } = self.window;
        let known = model.window(window)?.map(|window| window.tokens);
        let limit = refused.and_then(|refused| refused.limit);
        let Some(window) = known.into_iter().chain(limit).min() else { return Ok(None) };
        let budget = Budget::new(window, max_tokens, self.reserve);
        Ok(Some(budget.map_err(|why| Error::new(Exit::Config, why))?))
    }

    /// Returns the budget for a program that requires a window.
    ///
    /// # Errors
    /// Fails as [`BudgetArgs::budget`] does, and with 78 if the window is not known, because it is never guessed.
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

/// The options for the system prompt and the tools of a request.
#[derive(Clone, Debug, clap::Args)]
pub struct RequestArgs {
    /// File with the system prompt
    #[arg(long, value_name = "FILE", env = "CLAW_SYSTEM")]
    pub system: Option<PathBuf>,
    /// File with a JSON array of tool definitions, or directory of tools
    #[arg(long, value_name = "FILE", env = "CLAW_TOOLS")]
    pub tools: Option<PathBuf>,
}

/// Reads the JSON object in the argument of `--extra`, or in the file that the argument names.
///
/// # Errors
/// Fails with 74 or 77 if the file cannot be read, and with 65 if its content is not a JSON object.
pub fn read_extra(extra: &ExtraArg) -> anyhow::Result<String> {
    let (name, text) = match extra {
        ExtraArg::Members(text) => ("--extra".to_owned(), text.clone()),
        ExtraArg::File(path) => (path.display().to_string(), text_of(path)?),
    };
    let text = text.trim();
    match Object::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => fail(
            Exit::Data,
            format!("cannot use '{name}': not a JSON object: {error}; write the members in braces"),
        ),
    }
}

/// The options for the rest of the request body.
#[derive(Clone, Debug, clap::Args)]
pub struct BodyArgs {
    /// JSON object with further members of the request body, or a file with one
    #[arg(long, value_name = "FILE", env = "CLAW_EXTRA", value_parser = ExtraArg::parse)]
    pub extra: Option<ExtraArg>,
    /// Sampling temperature, from 0 to 2
    #[arg(long, value_name = "NUMBER", env = "CLAW_TEMPERATURE", value_parser = temperature)]
    pub temperature: Option<f64>,
    /// How much the model thinks before it answers
    #[arg(long, value_name = "LEVEL", env = "CLAW_EFFORT")]
    pub effort: Option<Effort>,
    /// The most tokens that the model thinks before it answers
    #[arg(long, value_name = "TOKENS", env = "CLAW_THINKING_BUDGET")]
    pub thinking_budget: Option<u64>,
    /// Use of the provider's prompt cache
    #[arg(long, value_name = "WHEN", env = "CLAW_CACHE", default_value = "auto")]
    pub cache: CacheChoice,
}

impl BodyArgs {
    /// Reads the further members of the request body.
    ///
    /// # Errors
    /// Fails as [`read_extra`] does, and with 78 if both options give a temperature.
    pub fn read(&self) -> anyhow::Result<Option<String>> {
        let extra = self.extra.as_ref().map(read_extra).transpose()?;
        let is_given = |extra: &String| sampling::values(extra, "temperature").next().is_some();
        if self.temperature.is_some() && extra.as_ref().is_some_and(is_given) {
            let text = "--extra and --temperature both give a temperature; give it once";
            return fail(Exit::Config, text);
        }
        Ok(extra)
    }
}

/// The content of the system prompt and of the tools.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The system prompt; `None` if it is blank.
    pub system: Option<String>,
    /// The tools, as a JSON array.
    pub tools: Option<String>,
}

impl RequestArgs {
    /// Reads both files, or the definitions in a directory of tools.
    ///
    /// # Errors
    /// Fails with 74 or 77 if one cannot be read, 65 if its content is invalid, and 78 if a directory has no tool.
    pub fn read(&self) -> anyhow::Result<Extras> {
        let text = |path: &PathBuf| -> anyhow::Result<String> {
            String::from_utf8(read_file(path)?).map_err(|error| {
                Error::new(Exit::Data, format!("cannot read '{}': {error}", path.display())).into()
            })
        };
        let system = self.system.as_ref().map(text).transpose()?;
        let tools = |path: &PathBuf| match path.is_dir() {
            true => Directory::open(path)?.definitions(),
            false => text(path),
        };
        let tools = self.tools.as_ref().map(tools).transpose()?;
        if let (Some(tools), Some(path)) = (&tools, &self.tools)
            && let Some(why) = why_invalid(tools.trim())
        {
            return fail(Exit::Data, format!("cannot use tools '{}': {why}", path.display()));
        }
        Ok(Extras {
            system: system.filter(|text| !text.trim().is_empty()),
            tools: tools.map(|text| text.trim().to_owned()),
        })
    }
}

/// The option for the record of a refused request.
#[derive(Clone, Debug, clap::Args)]
pub struct RefusedArgs {
    /// File with the error record of the refused request
    #[arg(long, value_name = "FILE")]
    pub failure: Option<PathBuf>,
}

impl RefusedArgs {
    /// Reads the record from the last non-blank line of the file.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file cannot be read, and with 65 if the line is not a JSON object.
    pub fn read(&self) -> anyhow::Result<Option<Refused>> {
        let Some(path) = &self.failure else { return Ok(None) };
        let text = text_of(path)?;
        let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
            return Ok(None);
        };
        let object = Object::parse(line).map_err(|_| {
            Error::new(
                Exit::Data,
                format!(
                    "cannot use '{}': not an error record; give the file that claw-call --failure wrote",
                    path.display()
                ),
            )
        })?;
        Ok(Some(Refused::of(&object)))
    }
}
