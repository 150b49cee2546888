//! The window and how it is divided, from options, environment and configuration.

use crate::cli::model::ModelArgs;
use crate::cli::read_file;
use crate::estimate::{Budget, Refused};
use crate::exec::tools::Folder;
use crate::exit::{Error, Exit, fail};
use crate::input::lines;
use crate::json::write::Members;
use crate::json::{self, Object};
use crate::settings::values::{ExtraArg, positive};
use std::path::PathBuf;

/// The options for the context window and the room for the answer.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WindowArgs {
    /// Context window in tokens, prompt and answer together (default: from the table of models)
    #[arg(long, value_name = "TOKENS", env = "CLAW_WINDOW")]
    pub window: Option<u64>,
    /// Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)
    #[arg(long, value_name = "TOKENS", env = "CLAW_MAX_TOKENS", value_parser = positive)]
    pub max_tokens: Option<u64>,
}

/// The options that divide the window.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct BudgetArgs {
    /// The window.
    #[command(flatten)]
    pub window: WindowArgs,
    /// Tokens that a prompt leaves free before compaction (default: 30000, at most 15 % of the window)
    #[arg(long, value_name = "TOKENS", env = "CLAW_RESERVE")]
    pub reserve: Option<u64>,
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
        let WindowArgs { window, max_tokens } = self.window;
        let known = model.window(window)?;
        let limit = refused.and_then(|refused| refused.limit);
        let Some(window) = known.into_iter().chain(limit).min() else { return Ok(None) };
        let budget = Budget::new(window, max_tokens, self.reserve);
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

/// The options for the system prompt and the tools of a request.
#[derive(Clone, Debug, clap::Args)]
pub struct RequestArgs {
    /// File with the system prompt
    #[arg(long, value_name = "FILE", env = "CLAW_SYSTEM")]
    pub system: Option<PathBuf>,
    /// File with a JSON array of tool definitions, or folder of tools
    #[arg(long, value_name = "FILE", env = "CLAW_TOOLS")]
    pub tools: Option<PathBuf>,
}

/// Reads the object of an argument.
///
/// # Errors
/// 74 when the file cannot be read, 65 when it is not a JSON object.
pub fn read_extra(extra: &ExtraArg) -> anyhow::Result<String> {
    let (name, text) = match extra {
        ExtraArg::Members(text) => ("--extra".to_owned(), text.clone()),
        ExtraArg::File(path) => {
            let bytes = read_file(path)?;
            (path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned())
        }
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
}

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=2.0).contains(number));
    number.ok_or_else(|| "not a number from 0 to 2; write digits alone, such as 0.7".to_owned())
}

impl BodyArgs {
    /// Reads the members, the temperature among them.
    ///
    /// # Errors
    /// As [`read_extra`]; 78 when both have a temperature.
    pub fn read(&self) -> anyhow::Result<Option<String>> {
        let extra = self.extra.as_ref().map(read_extra).transpose()?;
        let Some(temperature) = self.temperature else { return Ok(extra) };
        let members = Members::new().decimal("temperature", temperature);
        let Some(extra) = extra else { return Ok(Some(members.into_json())) };
        if Object::parse(&extra).is_ok_and(|object| object.get("temperature").is_some()) {
            return fail(
                Exit::Config,
                "--extra has a temperature, and so has --temperature; give it once",
            );
        }
        Ok(Some(members.spread(&extra).into_json()))
    }
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
    let is_too_deep = json::is_deeper(text, lines::MOST_DEPTH);
    is_too_deep.then(|| format!("nested more than {} deep", lines::MOST_DEPTH))
}

/// The option for the record of a refused request.
#[derive(Clone, Debug, clap::Args)]
pub struct RefusedArgs {
    /// File with the error record of the refused request
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
        let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
            return Ok(None);
        };
        let object = Object::parse(line).map_err(|_| {
            Error::new(
                Exit::Data,
                format!(
                    "cannot use '{}': not an error record; give what claw-call --failure wrote",
                    path.display()
                ),
            )
        })?;
        Ok(Some(Refused::of(&object)))
    }
}
