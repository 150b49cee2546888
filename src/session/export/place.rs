//! The places where other programs keep their sessions, and the commands that resume them.
//!
//! Seen in Claude Code 2.1.197, Codex 0.171.0, Gemini CLI 0.61.0 and pi 1.5.2 on 28 November 2026.

use super::{Export, ExportForm, opencode, timestamp};
use crate::exit::{Exit, fail};
use crate::new_file::{NewFile, directory_of};
use crate::process::quoted;
use crate::transcript::make_directory;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The longest name of a project's directory. Claude Code cuts longer ones off and appends a hash of its own.
const MOST_NAME: usize = 200;

/// Returns the path of a session's file, which opencode imports from there, below the home of the program that reads the form or, for Gemini CLI, below the
/// directory of the project.
///
/// # Errors
/// Status 65 if the name of the working directory is too long.
pub fn path(export: &Export, form: ExportForm) -> anyhow::Result<PathBuf> {
    let Export { id, directory, .. } = export;
    let time = timestamp(export.time);
    let path = match form {
        ExportForm::ClaudeCode => {
            let project = dashed(directory, |c| c.is_ascii_alphanumeric());
            if project.len() > MOST_NAME {
                let text = format!(
                    "cannot carry a session of '{directory}': the name is too long for Claude Code"
                );
                return fail(Exit::Data, text);
            }
            format!("projects/{project}/{id}.jsonl")
        }
        ExportForm::Codex => {
            let (day, time) = (time[..10].replace('-', "/"), time[..19].replace(':', "-"));
            format!("sessions/{day}/rollout-{time}-{id}.jsonl")
        }
        ExportForm::GeminiCli => {
            let time = time[..16].replace(':', "-");
            format!("chats/session-{time}-{}.jsonl", id.get(..8).unwrap_or(id))
        }
        ExportForm::Opencode => format!("carried/{id}.json"),
        ExportForm::Pi => {
            let name = directory.strip_prefix('/').unwrap_or(directory);
            let project = dashed(name, |c| !matches!(c, '/' | '\\' | ':'));
            let time = time.replace([':', '.'], "-");
            format!("sessions/--{project}--/{time}_{id}.jsonl")
        }
    };
    Ok(PathBuf::from(path))
}

/// Writes a new file at such a place, and makes the missing directories around it, which only their owner can use.
///
/// # Errors
/// If it exists or cannot be written.
pub fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let write = || {
        make_directory(directory_of(path))?;
        let mut file = NewFile::create(path, mode)?;
        file.write_all(text.as_bytes())?;
        file.finish(false)
    };
    write().with_context(|| format!("cannot write '{}'", path.display()))
}

/// Returns a name with each other character replaced by a dash, and by two if UTF-16 has two units for it.
fn dashed(name: &str, is_kept: impl Fn(char) -> bool) -> String {
    let dashes = |c: char| if is_kept(c) { c.to_string() } else { "-".repeat(c.len_utf16()) };
    name.chars().map(dashes).collect()
}

/// Returns the command that resumes a session in its working directory, without the path of the directory. `path` is the
/// path of its file.
#[must_use]
pub fn resume(export: &Export, form: ExportForm, path: &Path) -> String {
    let id = &export.id;
    match form {
        ExportForm::Opencode => {
            let path = quoted(path.as_os_str());
            let id = opencode::session_id(id);
            format!("opencode import {} && opencode --session {id}", path.to_string_lossy())
        }
        ExportForm::ClaudeCode => format!("claude --resume {id}"),
        ExportForm::Codex => format!("codex resume {id}"),
        ExportForm::GeminiCli => format!("gemini --resume {id}"),
        ExportForm::Pi => format!("pi --session {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_finds_the_file() {
        let export = Export {
            id: "ID".to_owned(),
            directory: "/home/é/my.app \u{1f600}".to_owned(),
            time: 1_767_225_600_250_000,
            ..Export::default()
        };
        for (form, expected) in [
            (ExportForm::ClaudeCode, "projects/-home---my-app---/ID.jsonl"),
            (ExportForm::GeminiCli, "chats/session-2026-01-01T00-00-ID.jsonl"),
            (ExportForm::Codex, "sessions/2026/01/01/rollout-2026-01-01T00-00-00-ID.jsonl"),
            (
                ExportForm::Pi,
                "sessions/--home-é-my.app \u{1f600}--/2026-01-01T00-00-00-250Z_ID.jsonl",
            ),
        ] {
            assert_eq!(path(&export, form).unwrap(), PathBuf::from(expected), "{form:?}");
        }
        let long = Export { directory: "/x".repeat(101), ..export };
        assert!(path(&long, ExportForm::ClaudeCode).is_err());
    }
}
