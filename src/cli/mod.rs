//! What two or more programs share on their command lines, and the only place (with `exit`) that
//! touches standard input and output, the environment and arguments.

pub mod arguments;
pub mod attach;
pub mod budget;
pub mod config;
pub mod diagnostics;
pub mod endpoint;
pub mod input;
pub mod log;
pub mod model;
pub mod options;
pub mod progress;
pub mod summary;

pub use diagnostics::run;
pub use input::{
    Operands, Output, messages, open_stdin, open_transcript, prices, read_file, read_stdin,
    require_meta, stdin_name, text,
};
pub use log::{Log, LogArgs, StageOutcome, report};
pub use progress::Progress;

use crate::exit::{Error, Exit};
use crate::process::signals;
use crate::settings::Variables;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// The variables of this process.
pub const ENVIRONMENT: Variables<'static> = Variables(&|name| std::env::var_os(name));

/// A variable of the environment; empty counts as unset.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    ENVIRONMENT.text(name)
}

/// The time now in Unix seconds, with fraction; `SOURCE_DATE_EPOCH` fixes it.
///
/// # Errors
/// 78 when `SOURCE_DATE_EPOCH` is no number.
pub fn now() -> anyhow::Result<f64> {
    if let Some(fixed) = variable("SOURCE_DATE_EPOCH") {
        let why = || {
            Error::new(
                Exit::Config,
                format!(
                    "SOURCE_DATE_EPOCH is not a number of seconds: '{fixed}'; correct or unset it"
                ),
            )
        };
        return Ok(fixed.parse::<f64>().ok().filter(|ts| ts.is_finite()).ok_or_else(why)?);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Microseconds are what a double can hold for a few centuries to come.
    Ok((since.as_secs_f64() * 1e6).round() / 1e6)
}

/// Keeps SIGHUP, SIGINT, SIGQUIT and SIGTERM from ending the program, as `tee -i` does with SIGINT.
///
/// # Errors
/// When a signal cannot be caught.
pub fn survive_signals() -> anyhow::Result<()> {
    signals::leave();
    for signal in signals::ENDING {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Makes a write past the limit on file sizes an error that can be undone, instead of the end of the
/// process.
///
/// # Errors
/// When the signal cannot be caught.
pub fn survive_file_limits() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    Ok(())
}
