//! Asking the provider how many tokens a request has, through the program that has a network.

use clawutils::cli::budget::RequestArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::summary::CommandArgs;
use clawutils::cli::{Log, progress};
use clawutils::exit::{Error, Exit};
use clawutils::json::write::Members;
use clawutils::messages::{self, Message};
use clawutils::process::{self, Limits};

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Counter {
    /// This program, by its own rules
    Local,
    /// The provider, asked through claw-call
    Api,
}

/// The option group for it.
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
    /// The provider's number, if it is to be asked; says what our own would have been.
    ///
    /// # Errors
    /// Those of `claw-call`, under its own statuses; 69 when what it writes is no number.
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
        // The command shows what it waits for.
        progress::stop();
        let ended = process::run(command, &arguments(request, model), lines, Limits::default())?;
        if ended.exit() != Some(Exit::Done) {
            return Err(ended.failure(command, "cannot count"));
        }
        let text = String::from_utf8_lossy(&ended.stdout);
        let counted: u64 = text.trim().parse().map_err(|_| {
            Error::new(Exit::Unavailable, format!("what '{command}' wrote is no number of tokens"))
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
