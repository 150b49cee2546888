//! Runs `claw-show` for a site: finds the transcripts, and updates the pages.

use crate::args::ShowArgs;
use crate::file;
use anyhow::Context;
use clawutils::cli::{Log, diagnostics, read_file, survive_file_limits, walk_error};
use clawutils::exit::{Exit, fail};
use clawutils::json::write::Members;
use clawutils::record::digest;
use clawutils::session::probe::Stamp;
use clawutils::session::transcript_name;
use clawutils::show::{Format, ShowOptions};
use clawutils::site::{Site, SiteOptions, SiteReport, Source};
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Returns true if the output is a site: the name is that of a directory, or has no extension; or an operand is a
/// directory.
pub fn is_wanted(output: &Path, format: Option<Format>, operands: &[PathBuf]) -> bool {
    let has_directory = operands.iter().any(|path| path.is_dir());
    is_directory(output) || has_directory || (format.is_none() && output.extension().is_none())
}

/// Returns true if the output is a directory, or named like one.
fn is_directory(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().to_string_lossy().ends_with('/')
}

/// Updates the site in `directory` from the transcripts in `operands`.
///
/// # Errors
/// Fails with 2 if options cannot be combined, there is no operand, the name is that of a page, or the directory holds
/// other files; with the status of the first source that cannot be read, after all others were read; 74, 75 or 77 if
/// the site cannot be written.
pub fn run(
    args: &ShowArgs,
    directory: &Path,
    operands: &[PathBuf],
    options: ShowOptions,
    log: Log,
) -> anyhow::Result<Exit> {
    let refuse = |what: &str| fail(Exit::Usage, format!("cannot make a site {what}"));
    if !is_directory(directory) && file::format(directory).is_ok() {
        let name = directory.display();
        return refuse(&format!("in '{name}', which is the name of a page; name a directory"));
    }
    if args.format.is_some_and(|format| format != Format::Html) {
        return refuse("in another format than html; omit --format");
    }
    if args.limit_turns.is_some() || args.turn.is_some() || args.dialect.leaf.is_some() {
        return refuse("of some turns or a branch; omit --limit-turns, --turn and --leaf");
    }
    if operands.is_empty() || operands.iter().any(|path| path.as_os_str() == "-") {
        return refuse("of standard input; name transcripts, or directories with transcripts");
    }
    survive_file_limits()?;
    let (sources, mut errors) = find(operands);
    let choice = args.dialect.choice();
    let digest = digest_of(args, &options)?;
    // What cannot be read may still exist, as on a disk that is not mounted.
    let is_whole = errors.is_empty();
    let options = SiteOptions { digest, show: options, choice, is_whole };
    let mut site = Site::open(directory)?;
    if site.is_damaged() {
        let shown = directory.display();
        log.note(&format!(
            "the state of the site in '{shown}' is damaged; all pages are made again"
        ));
    }
    let mut report = site.update(&sources, &options)?;
    errors.append(&mut report.errors);
    let SiteReport { sessions, written, removed, findings, .. } = report;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = format!(
        "{sessions} session{}, {written} file{} written, {removed} removed",
        plural(sessions),
        plural(written)
    );
    if findings > 0 {
        text.push_str(&format!("; {findings} findings, which claw-check lists"));
    }
    let members = Members::new().number("sessions", sessions).number("written", written);
    log.outcome(&text, &members.number("removed", removed).number("findings", findings));
    let mut exit = Exit::Done;
    for error in errors {
        let own = diagnostics::report("claw-show", &error);
        exit = if exit == Exit::Done { own } else { exit };
    }
    Ok(exit)
}

/// Finds the transcripts, and returns the errors about what cannot be read.
fn find(operands: &[PathBuf]) -> (Vec<Source>, Vec<anyhow::Error>) {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for operand in operands {
        let found = operand.canonicalize().and_then(|path| Ok((fs::metadata(&path)?, path)));
        match found.with_context(|| format!("cannot read '{}'", operand.display())) {
            Err(error) => errors.push(error),
            Ok((meta, path)) if meta.is_dir() => walk(&path, &mut sources, &mut errors),
            Ok((meta, path)) if meta.is_file() => {
                sources.push(Source { path, stamp: Stamp::of(&meta), is_given: true });
            }
            Ok(_) => {
                let why = format!("cannot read '{}': not a regular file", operand.display());
                errors.push(anyhow::Error::msg(why));
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path).then(b.is_given.cmp(&a.is_given)));
    sources.dedup_by(|later, earlier| later.path == earlier.path);
    (sources, errors)
}

fn walk(directory: &Path, sources: &mut Vec<Source>, errors: &mut Vec<anyhow::Error>) {
    for entry in WalkDir::new(directory) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                errors.push(walk_error(error, directory));
                continue;
            }
        };
        let is_hidden = entry.file_name().as_encoded_bytes().first() == Some(&b'.');
        let is_transcript = transcript_name::is_transcript(entry.path())
            && !transcript_name::is_old_copy(entry.path());
        if is_hidden || !is_transcript || !entry.file_type().is_file() {
            continue;
        }
        match entry.metadata() {
            Ok(meta) => {
                let (stamp, path) = (Stamp::of(&meta), entry.into_path());
                sources.push(Source { path, stamp, is_given: false });
            }
            Err(error) => errors.push(walk_error(error, directory)),
        }
    }
}

/// Returns a digest of everything but the sources that decides what the pages contain.
fn digest_of(args: &ShowArgs, options: &ShowOptions) -> anyhow::Result<String> {
    let mut parts = vec![env!("CARGO_PKG_VERSION").to_owned()];
    parts.push(options.language.code().to_owned());
    parts.push(options.full.to_string());
    parts.push(format!("{:?}", options.zone));
    parts.push(format!("{:?}", args.dialect.from));
    for path in [&args.redact.redact, &args.prices, &args.models] {
        let text = path.as_deref().map(read_file).transpose()?;
        parts.push(text.map_or(String::new(), |text| digest(&String::from_utf8_lossy(&text))));
    }
    Ok(digest(&parts.join("\n")))
}
