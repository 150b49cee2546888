//! Parsers of option values.

use std::convert::Infallible;
use std::num::{NonZeroU64, ParseIntError};
use std::path::PathBuf;
use std::time::Duration;

/// A JSON object, or the path of a file with one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtraArg {
    /// The object itself.
    Members(String),
    /// A file.
    File(PathBuf),
}

impl ExtraArg {
    /// Parses an argument with [`ExtraArg::new`], in the form that clap requires.
    ///
    /// # Errors
    /// Never fails.
    pub fn parse(text: &str) -> Result<ExtraArg, Infallible> {
        Ok(ExtraArg::new(text))
    }

    /// Returns an object if the text begins with a brace, else a file.
    #[must_use]
    pub fn new(text: &str) -> ExtraArg {
        match text.trim_start().starts_with('{') {
            true => ExtraArg::Members(text.to_owned()),
            false => ExtraArg::File(text.into()),
        }
    }
}

/// Parses a whole number of at least 1.
///
/// # Errors
/// Fails if the text is anything else.
pub fn positive(text: &str) -> Result<u64, ParseIntError> {
    text.parse().map(NonZeroU64::get)
}

/// Parses a sampling temperature.
///
/// # Errors
/// Fails unless it is a number from 0 to 2.
pub fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=2.0).contains(number));
    number.ok_or_else(|| "not a number from 0 to 2; write a plain number, such as 0.7".to_owned())
}

/// Parses a length of time in seconds, which may have a fraction.
///
/// # Errors
/// Fails if the text is anything else.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| {
        "not a number of seconds; write a plain number, such as 90 or 0.5".to_owned()
    })
}

/// Parses a share from 0 to 1.
///
/// # Errors
/// Fails if the text is anything else.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a share from 0 to 1; write 0.3 for 30 %".to_owned())
}
