//! carry: write a session where another program keeps its own.

use crate::export::note_losses;
use crate::gemini;
use crate::paths::print_line;
use crate::place::SessionPlace;
use anyhow::Context;
use clawutils::cli::{ENVIRONMENT, Output, survive_file_limits};
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::json::write::Members;
use clawutils::new_file::{PRIVATE, directory_of};
use clawutils::process::quoted;
use clawutils::session::export::{Export, ExportForm, export, place};
use clawutils::session::time;
use clawutils::transcript::make_directory;
use std::fs::{File, OpenOptions, canonicalize, read};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most copies of a session in another program.
const MOST_COPIES: u32 = 1000;

/// Write a session for another program, and print the command that resumes it.
#[derive(Clone, Debug, clap::Args)]
pub struct Carry {
    /// Id, key or label of the session, or the beginning of one; or the path of a transcript
    pub name: String,
    /// Program that is to go on with it
    #[arg(long, value_name = "PROGRAM")]
    pub to: ExportForm,
}

/// Returns the home of a program.
fn home(program: ExportForm) -> anyhow::Result<PathBuf> {
    let (variable, usual, inside) = match program {
        ExportForm::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude", ""),
        ExportForm::Codex => ("CODEX_HOME", ".codex", ""),
        ExportForm::GeminiCli => ("GEMINI_CLI_HOME", ".gemini", ".gemini"),
        ExportForm::Opencode => ("XDG_DATA_HOME", ".local/share/opencode", "opencode"),
        ExportForm::Pi => ("PI_CODING_AGENT_DIR", ".pi/agent", ""),
    };
    let get = |name| ENVIRONMENT.get(name).filter(|value| !value.is_empty());
    match (get(variable), get("HOME")) {
        (Some(home), _) => Ok(Path::new(&home).join(inside)),
        (None, Some(home)) => Ok(Path::new(&home).join(usual)),
        (None, None) => fail(Exit::Usage, format!("cannot find '{usual}': set {variable}")),
    }
}

impl Carry {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        survive_file_limits()?;
        let input = place.open(&self.name)?;
        let here = std::env::current_dir().context("cannot find the current directory")?;
        let home = home(self.to)?;
        let (export, path, is_new) = self.copy(input, &here.to_string_lossy(), &home)?;
        note_losses(place, &export);
        if is_new {
            if self.to == ExportForm::GeminiCli {
                gemini::own(&path, &export.directory)?;
            }
            if let (ExportForm::Codex, Some(title)) = (self.to, &export.title) {
                let index = home.join("session_index.jsonl");
                add_title(&index, &export, title)
                    .with_context(|| format!("cannot write '{}'", index.display()))?;
            }
            // The session comes last, because one that exists counts as complete.
            place::write(&path, &export.text, PRIVATE)?;
        }
        place.log.note(&format!("the session is in '{}'", path.display()));
        let mut out = Output::open();
        let mut command = std::ffi::OsString::from("cd ");
        command.push(quoted(export.directory.as_ref()));
        command.push(" && ");
        command.push(place::resume(&export, self.to, &path));
        print_line(&mut out, &command, "")?;
        out.finish()?;
        Ok(Exit::Done)
    }

    /// Returns the session in the form of the other program, its path, and true if there is no such file. A session that
    /// was carried before and has changed since, here or there, becomes a new one.
    fn copy(
        &self,
        input: Input,
        here: &str,
        home: &Path,
    ) -> anyhow::Result<(Export, PathBuf, bool)> {
        for copy in 0..MOST_COPIES {
            let mut export = export(input.clone(), self.to, here, copy)?;
            // The program is told its working directory without symbolic links.
            if let Ok(directory) = canonicalize(&export.directory) {
                export.directory = directory.to_string_lossy().into_owned();
            }
            let root = match self.to {
                ExportForm::GeminiCli => gemini::project(home, &export.directory)?,
                _ => home.to_owned(),
            };
            let path = root.join(place::path(&export, self.to)?);
            match read(&path) {
                Ok(text) if text == export.text.as_bytes() => return Ok((export, path, false)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Ok((export, path, true));
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read '{}'", path.display()));
                }
            }
        }
        let text = format!("cannot carry '{}': it was carried {MOST_COPIES} times", self.name);
        fail(Exit::Failed, text)
    }
}

/// Appends a title to Codex's list of titles.
fn add_title(index: &Path, export: &Export, title: &str) -> io::Result<()> {
    let line = Members::new()
        .string("id", &export.id)
        .string("thread_name", title)
        .string("updated_at", &time::to_text(export.time).replace("+00:00", "Z"))
        .into_line();
    make_directory(directory_of(index))?;
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(index)?;
    let feed = if ends_line(&mut file)? { "" } else { "\n" };
    file.write_all([feed, &line].concat().as_bytes())
}

/// Returns true if a file is empty or ends with a line feed.
fn ends_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
