//! export: write a session in the form of another program.

use crate::place::SessionPlace;
use anyhow::Context;
use clawutils::cli::Output;
use clawutils::exit::Exit;
use clawutils::session::export::{self, ExportForm, export};
use std::io::Write;

/// Write a session in the form of another program.
#[derive(Clone, Debug, clap::Args)]
pub struct Export {
    /// Id, key or label of the session, or the beginning of one; or the path of a transcript
    pub name: String,
    /// The form to write
    #[arg(long, value_name = "FORM")]
    pub to: ExportForm,
}

impl Export {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let input = place.open(&self.name)?;
        let directory = std::env::current_dir().context("cannot find the current directory")?;
        let exported = export(input, self.to, &directory.to_string_lossy(), 0)?;
        note_losses(place, &exported);
        let mut out = Output::open();
        out.write_all(exported.text.as_bytes()).context("cannot write '<stdout>'")?;
        out.finish()?;
        Ok(Exit::Done)
    }
}

/// Reports the parts of a session that the other program does not get.
pub(crate) fn note_losses(place: &SessionPlace, exported: &export::Export) {
    for loss in &exported.losses {
        place.log.note(loss);
    }
}
