//! export: write a session in the form of another program, or sessions as examples or spans.

use crate::place::SessionPlace;
use crate::select::Selection;
use anyhow::Context;
use clawutils::cli::options::RedactArgs;
use clawutils::cli::{Output, diagnostics, open_transcript, report};
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::session::export::{self, ExportForm, export};
use clawutils::show::ShowOptions;
use clawutils::{spans, training};
use std::io::Write;

/// Write a session in the form of another program, or sessions as examples or spans.
#[derive(Clone, Debug, clap::Args)]
pub struct Export {
    #[command(flatten)]
    selection: Selection,
    /// The form to write
    #[arg(long, value_name = "FORM")]
    pub to: Form,
    /// Include the text of the conversation in spans
    #[arg(long)]
    pub content: bool,
    #[command(flatten)]
    redact: RedactArgs,
}

/// The form to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A session of pi, OpenClaw or GoClaw, in version 3
    Pi,
    /// A project file of Claude Code
    ClaudeCode,
    /// A rollout file of Codex CLI
    Codex,
    /// A chat of Gemini CLI
    GeminiCli,
    /// A session for opencode to import
    Opencode,
    /// The body of a request to OpenAI's API, without a model
    Openai,
    /// Examples for OpenAI's fine-tuning, one for each session
    OpenaiJsonl,
    /// Examples in ShareGPT's form, one for each session
    Sharegpt,
    /// Spans of OpenTelemetry, a line for each turn
    Otel,
}

impl Form {
    /// Returns the program that reads the form; `None` if it is not that of a program.
    fn program(self) -> Option<ExportForm> {
        match self {
            Form::Pi => Some(ExportForm::Pi),
            Form::ClaudeCode => Some(ExportForm::ClaudeCode),
            Form::Codex => Some(ExportForm::Codex),
            Form::GeminiCli => Some(ExportForm::GeminiCli),
            Form::Opencode => Some(ExportForm::Opencode),
            Form::Openai | Form::OpenaiJsonl | Form::Sharegpt | Form::Otel => None,
        }
    }
}

impl Export {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        if self.content && self.to != Form::Otel {
            return fail(Exit::Usage, "--content is only for --to otel; omit it");
        }
        let mut out = Output::open();
        let exit = match self.to {
            Form::OpenaiJsonl => self.examples(place, training::Form::Openai, &mut out)?,
            Form::Sharegpt => self.examples(place, training::Form::ShareGpt, &mut out)?,
            Form::Otel => self.spans(place, &mut out)?,
            _ if self.redact.redact.is_some() => {
                return fail(Exit::Usage, "--redact is only for examples and spans; omit it");
            }
            form => session(place, self.selection.only()?, form, &mut out)?,
        };
        out.finish()?;
        Ok(exit)
    }

    fn options(&self) -> anyhow::Result<ShowOptions> {
        Ok(ShowOptions { redact: self.redact.patterns()?, ..ShowOptions::default() })
    }

    /// Calls `write` with each selected session. If one cannot be read, the others are written, and the result is its
    /// status.
    fn each(
        &self,
        place: &SessionPlace,
        write: &mut dyn FnMut(Input) -> anyhow::Result<()>,
    ) -> anyhow::Result<Exit> {
        let paths = self.selection.paths(place)?;
        let mut exit = Exit::Done;
        for path in &paths {
            match open_transcript(path) {
                Ok(input) => write(input)?,
                Err(error) if paths.len() > 1 => {
                    let own = diagnostics::report("claw-session", &error);
                    exit = if exit == Exit::Done { own } else { exit };
                }
                Err(error) => return Err(error),
            }
        }
        Ok(exit)
    }

    /// Writes sessions as spans, and reports those that have no times.
    fn spans(&self, place: &SessionPlace, out: &mut Output) -> anyhow::Result<Exit> {
        let options = self.options()?;
        let (mut turns, mut untimed) = (0, 0);
        let exit = self.each(place, &mut |input| {
            let name = input.name.clone();
            let written = spans::write(&[input], self.content, &options, out)?;
            report(place.log, &written.notes.findings, false)?;
            if written.untimed > 0 {
                place.log.note(&format!("left out: '{name}', because no record in it has a time"));
            }
            turns += written.turns;
            untimed += written.untimed;
            Ok(())
        })?;
        if turns == 0 && untimed > 0 {
            return fail(Exit::Data, "cannot export spans: no record has a time");
        }
        Ok(exit)
    }

    /// Writes sessions as examples, and reports what is left out.
    fn examples(
        &self,
        place: &SessionPlace,
        form: training::Form,
        out: &mut Output,
    ) -> anyhow::Result<Exit> {
        let options = self.options()?;
        let (mut left_out, mut examples, mut turns) = (training::LeftOut::default(), 0, 0);
        let exit = self.each(place, &mut |input| {
            let (example, notes) = training::example(&[input], form, &options)?;
            report(place.log, &notes.findings, false)?;
            left_out.append(&example.left_out);
            examples += usize::from(!example.line.is_empty());
            turns += example.turns;
            out.write_all(example.line.as_bytes()).context("cannot write '<stdout>'")
        })?;
        out.flush().context("cannot write '<stdout>'")?;
        left_out.lines().iter().for_each(|line| place.log.note(line));
        if examples == 0 {
            return fail(Exit::Data, "cannot export examples: no turn is accepted");
        }
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (one, other) = (plural(examples), plural(turns));
        place.log.note(&format!("{examples} example{one} with {turns} turn{other}"));
        Ok(exit)
    }
}

/// Writes a session in the form of another program, or as the body of a request.
fn session(place: &SessionPlace, name: &str, form: Form, out: &mut Output) -> anyhow::Result<Exit> {
    let directory = std::env::current_dir().context("cannot find the current directory")?;
    let input = place.open(name)?;
    let text = match form.program() {
        Some(program) => {
            let exported = export(input, program, &directory.to_string_lossy(), 0)?;
            note_losses(place, &exported);
            exported.text
        }
        None => export::request(input)?,
    };
    out.write_all(text.as_bytes()).context("cannot write '<stdout>'")?;
    Ok(Exit::Done)
}

/// Reports the parts of a session that the other program does not get.
pub(crate) fn note_losses(place: &SessionPlace, exported: &export::Export) {
    for loss in &exported.losses {
        place.log.note(loss);
    }
}
