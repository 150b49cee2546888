//! Asks the provider for a token count, through claw-call.

use clawutils::cli::budget::RequestArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::summary::CommandArgs;
use clawutils::cli::{Log, progress};
use clawutils::exit::{Error, Exit};
use clawutils::json::write::Members;
use clawutils::messages::{self, Message};
use clawutils::process::{self, ChildLimits};

/// The program or service that counts the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Counter {
    /// This program, by its own rules
    Local,
    /// The provider, asked through claw-call
    Api,
}

/// The options for counting through the provider.
#[derive(Clone, Debug, clap::Args)]
pub struct CountArgs {
    /// Source of the count: this program or the provider
    #[arg(long, value_name = "WHO", default_value = "local")]
    pub count: Counter,
    /// The program that asks the provider.
    #[command(flatten)]
    pub call: CommandArgs,
}

impl CountArgs {
    /// Returns the provider's count, if `--count api` asks for it, and logs it together with `own`, the estimate.
    ///
    /// # Errors
    /// The failures of `claw-call`, with its statuses; 69 if its output is not a number.
    pub fn count(
        &self,
        messages: &[Message<'_>],
        request: &RequestArgs,
        model: &ModelArgs,
        own: u64,
        log: Log,
    ) -> anyhow::Result<Option<u64>> {
        if self.count == Counter::Local {
            return Ok(None);
        }
        let command = &self.call.command;
        let mut lines = Vec::new();
        messages::write(messages, &mut lines)?;
        // The command shows its own progress.
        progress::stop();
        let ended =
            process::run(command, &arguments(request, model), lines, ChildLimits::default())?;
        if ended.exit() != Some(Exit::Done) {
            return Err(ended.failure(command, "cannot count"));
        }
        let text = String::from_utf8_lossy(&ended.stdout);
        let counted: u64 = text.trim().parse().map_err(|_| {
            Error::new(
                Exit::Unavailable,
                format!("cannot read the token count of '{command}': not a number"),
            )
        })?;
        let text = format!("counted {counted} tokens, estimated {own}");
        log.outcome(&text, &Members::new().number("counted", counted).number("estimated", own));
        Ok(Some(counted))
    }
}

fn arguments(request: &RequestArgs, model: &ModelArgs) -> Vec<String> {
    let mut arguments = vec!["--count".to_owned()];
    arguments.extend(model.arguments());
    for (name, path) in [("--system", &request.system), ("--tools", &request.tools)] {
        let path = path.as_ref().map(|path| path.display().to_string());
        arguments.extend(path.into_iter().flat_map(|path| [name.to_owned(), path]));
    }
    arguments
}
