//! The parts of the command line that several programs share. In the library, only this module uses standard input and
//! output, the environment and the arguments, except that `provider::http` names the proxy variable in an error.

pub mod arguments;
pub mod attach;
pub mod budget;
pub mod closed;
pub mod config;
pub mod diagnostics;
pub mod endpoint;
pub mod input;
pub mod log;
pub mod model;
pub mod options;
pub mod output_file;
pub mod progress;
pub mod summary;

pub use diagnostics::run;
pub use input::{
    DialectArgs, Operands, Output, messages, open_stdin, open_transcript, prices, read_file,
    read_stdin, require_meta, stdin_name, text, walk_error,
};
pub use log::{Log, LogArgs, StageOutcome, report};

use crate::exit::{Exit, fail};
use crate::process::signals;
use crate::settings::Variables;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// The environment of this process.
pub const ENVIRONMENT: Variables<'static> = Variables(&|name| std::env::var_os(name));

/// Returns a variable of the environment. An empty one counts as unset.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    ENVIRONMENT.text(name)
}

/// Returns the time in Unix seconds, with a fraction. If `SOURCE_DATE_EPOCH` is set, returns that instead.
///
/// # Errors
/// Fails with 78 if `SOURCE_DATE_EPOCH` is not a number.
pub fn now() -> anyhow::Result<f64> {
    if let Some(fixed) = variable("SOURCE_DATE_EPOCH") {
        let text =
            format!("SOURCE_DATE_EPOCH is not a number of seconds: '{fixed}'; correct or unset it");
        let seconds = fixed.parse::<f64>().ok().filter(|ts| ts.is_finite());
        return seconds.map_or_else(|| fail(Exit::Config, text), Ok);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A double holds the time to the microsecond for some centuries to come.
    Ok((since.as_secs_f64() * 1e6).round() / 1e6)
}

/// Keeps SIGHUP, SIGINT, SIGQUIT and SIGTERM from ending the program, as `tee -i` does with SIGINT.
///
/// # Errors
/// Fails if a signal cannot be caught.
pub fn survive_signals() -> anyhow::Result<()> {
    signals::leave();
    for signal in signals::ENDING {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Catches SIGXFSZ, so that a write past the file size limit fails with an error instead of ending the process, and the
/// program can undo it.
///
/// # Errors
/// Fails if the signal cannot be caught.
pub fn survive_file_limits() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}
