//! export: write a session in the form of another program, or sessions as examples or spans.

use crate::place::SessionPlace;
use crate::select::Selection;
use anyhow::Context;
use clawutils::cli::options::RedactArgs;
use clawutils::cli::{Output, report};
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

/// What a form is for.
enum Kind {
    /// One session, as another program writes it.
    Session(ExportForm),
    Training(training::Form),
    Spans,
}

impl Form {
    fn kind(self) -> Kind {
        match self {
            Form::Pi => Kind::Session(ExportForm::Pi),
            Form::ClaudeCode => Kind::Session(ExportForm::ClaudeCode),
            Form::Codex => Kind::Session(ExportForm::Codex),
            Form::GeminiCli => Kind::Session(ExportForm::GeminiCli),
            Form::Opencode => Kind::Session(ExportForm::Opencode),
            Form::Openai => Kind::Session(ExportForm::Openai),
            Form::OpenaiJsonl => Kind::Training(training::Form::Openai),
            Form::Sharegpt => Kind::Training(training::Form::ShareGpt),
            Form::Otel => Kind::Spans,
        }
    }
}

impl Export {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let kind = self.to.kind();
        if self.content && !matches!(kind, Kind::Spans) {
            return fail(Exit::Usage, "--content is only for --to otel; omit it");
        }
        let is_session = matches!(kind, Kind::Session(_));
        if is_session && self.redact.redact.is_some() {
            return fail(Exit::Usage, "--redact is only for examples and spans; omit it");
        }
        let inputs = match is_session {
            true => vec![place.open(self.selection.only()?)?],
            false => self.selection.open(place)?,
        };
        let options = ShowOptions { redact: self.redact.patterns()?, ..ShowOptions::default() };
        match (kind, inputs) {
            (Kind::Session(form), inputs) => session(place, inputs, form),
            (Kind::Training(form), inputs) => examples(place, inputs, form, &options),
            (Kind::Spans, inputs) => {
                let mut out = Output::open();
                for input in inputs {
                    let notes = spans::write(&[input], self.content, &options, &mut out)?;
                    report(place.log, &notes.findings, false)?;
                }
                out.finish()?;
                Ok(Exit::Done)
            }
        }
    }
}

/// Writes a session in the form of another program.
fn session(place: &SessionPlace, inputs: Vec<Input>, form: ExportForm) -> anyhow::Result<Exit> {
    let directory = std::env::current_dir().context("cannot find the current directory")?;
    let mut out = Output::open();
    for input in inputs {
        let exported = export(input, form, &directory.to_string_lossy(), 0)?;
        note_losses(place, &exported);
        out.write_all(exported.text.as_bytes()).context("cannot write '<stdout>'")?;
    }
    out.finish()?;
    Ok(Exit::Done)
}

/// Writes sessions as examples, and reports what is left out.
fn examples(
    place: &SessionPlace,
    inputs: Vec<Input>,
    form: training::Form,
    options: &ShowOptions,
) -> anyhow::Result<Exit> {
    let mut out = Output::open();
    let (mut left_out, mut examples, mut turns) = (training::LeftOut::default(), 0, 0);
    for input in inputs {
        let (example, notes) = training::example(&[input], form, options)?;
        report(place.log, &notes.findings, false)?;
        left_out.append(&example.left_out);
        examples += usize::from(!example.line.is_empty());
        turns += example.turns;
        out.write_all(example.line.as_bytes()).context("cannot write '<stdout>'")?;
    }
    out.finish()?;
    left_out.lines().iter().for_each(|line| place.log.note(line));
    if examples == 0 {
        return fail(Exit::Data, "cannot export examples: no turn is accepted");
    }
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    place.log.note(&format!(
        "{examples} example{} with {turns} turn{}",
        plural(examples),
        plural(turns)
    ));
    Ok(Exit::Done)
}

/// Reports the parts of a session that the other program does not get.
pub(crate) fn note_losses(place: &SessionPlace, exported: &export::Export) {
    for loss in &exported.losses {
        place.log.note(loss);
    }
}
