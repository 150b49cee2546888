//! `claw-config stage`: chooses the next stage of the guard after a refusal.

use clap::Args;
use clawutils::cli::budget::RefusedArgs;
use clawutils::cli::{Output, diagnostics};
use clawutils::exit::Exit;
use clawutils::guard::{advice, fault, next};
use std::path::PathBuf;

/// Write the stage of the guard that may cure a refusal
#[derive(Clone, Debug, Args)]
pub struct StageArgs {
    /// Name of the program that the diagnostic is from
    program: String,
    /// Exit status of claw-call
    status: u8,
    /// File with the error record of the refused request
    failure: PathBuf,
    /// Stages that were tried, separated by spaces, with 'sent' for each request that was sent again
    tried: String,
}

impl StageArgs {
    /// Writes the stage.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file cannot be read, and with 65 if it is not an error record.
    pub fn run(&self) -> anyhow::Result<Exit> {
        let file = RefusedArgs { failure: Some(self.failure.clone()) };
        let refused = file.read()?;
        let Some(fault) = fault(self.status, refused.as_ref()) else { return Ok(Exit::NoGain) };
        let is_likely = refused.as_ref().is_some_and(|refused| refused.is_likely);
        let tried: Vec<&str> = self.tried.split_whitespace().collect();
        let Some(stage) = next(fault, is_likely, &tried) else {
            diagnostics::say(&self.program, advice(fault, &tried));
            return Ok(Exit::NoGain);
        };
        diagnostics::say(&self.program, &stage.announcement(fault, is_likely));
        Output::lines([stage.program()])
    }
}
