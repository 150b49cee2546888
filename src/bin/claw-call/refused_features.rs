//! What the model is known to refuse, from the state directory.

use anyhow::Context;
use clawutils::cli::model::{ModelArgs, state_dir};
use clawutils::cli::{Log, now};
use clawutils::exit;
use clawutils::provider::address;
use clawutils::provider::refusal::{Feature, Features};
use clawutils::transcript;
use std::path::PathBuf;

fn path() -> Option<PathBuf> {
    state_dir().map(|dir| dir.join("refused.jsonl"))
}

/// Returns those features of a request that the model is known to refuse. A state file that cannot be read counts as empty.
///
/// # Errors
/// Fails if the clock cannot be read.
pub(super) fn known(features: Features, model: &ModelArgs) -> anyhow::Result<Features> {
    let (Some(name), Some(Ok(bytes))) = (model.model(), path().map(std::fs::read)) else {
        return Ok(Features::default());
    };
    let (text, place) = (String::from_utf8_lossy(&bytes), address::place(&model.endpoint()));
    let is_place = |endpoint: &str| address::place(endpoint) == place;
    Ok(features.known(&text, is_place, &name, now()?))
}

/// Stores that the model refuses this, in all requests or in those with the other feature.
///
/// # Errors
/// Fails if the state file cannot be written.
pub(super) fn learn(
    feature: Feature,
    with: Option<Feature>,
    model: &ModelArgs,
) -> anyhow::Result<()> {
    let (Some(name), Some(path)) = (model.model(), path()) else { return Ok(()) };
    let line = feature.line(with, &address::place(&model.endpoint()), &name, now()?);
    transcript::append_state(&path, &line)
        .with_context(|| format!("cannot store in '{}'", path.display()))
}

/// Reports an error that does not stop the program: what could not be stored will be learned again.
pub(super) fn note_error(outcome: anyhow::Result<()>, log: Log) {
    if let Err(error) = outcome {
        log.note(&exit::text(&error));
    }
}
