//! Runs `claw-show --diff`: compares two sessions, or two branches of one.

use crate::args::ShowArgs;
use crate::notes;
use clawutils::cli::{DialectArgs, Log, Operands, progress, read_stdin, stdin_name};
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::show::diff::{Operand, compare};
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

/// The number of columns from which text is written in two columns.
const BESIDE: usize = 80;

/// Compares the operands.
///
/// # Errors
/// Fails with 2 if there are not two of them, or options cannot be combined; 65 for a dialect that cannot be read; 74, 77
/// or 141 if reading or writing fails.
pub fn run(args: &ShowArgs, operands: &Operands, log: Log) -> anyhow::Result<Exit> {
    let (options, format) = (args.options()?, args.format()?);
    let [(one, a), (other, b)] = open(args, &operands.files)?;
    let (a, b) = ([a], [b]);
    let _progress = log.progress(progress::reading(&a));
    let sides = [Operand { name: &one, inputs: &a }, Operand { name: &other, inputs: &b }];
    let is_beside = args.output.is_none() && stdout().is_terminal() || args.width.is_some();
    let is_beside = is_beside && options.width >= BESIDE;
    notes::write(args, log, |out| compare(sides, format, is_beside, &options, out))
}

/// Opens both sessions, and names them.
fn open(args: &ShowArgs, files: &[PathBuf]) -> anyhow::Result<[(String, Input); 2]> {
    let refuse = |why: &str| fail(Exit::Usage, why);
    let dialect = &args.dialect;
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    let read = |path: &Path, dialect: &DialectArgs| match is_stdin(path) {
        true => dialect.open(Input::memory(&stdin_name(), read_stdin()?)),
        false => dialect.open(Input::open(path)?),
    };
    // Only the name of a file, so that a page does not reveal the author's directories.
    let name = |path: &Path| match is_stdin(path) {
        true => stdin_name(),
        false => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    match (files, &dialect.leaf) {
        ([a, b], _) if is_stdin(a) && is_stdin(b) => {
            refuse("cannot compare '<stdin>' with itself; name a file")
        }
        ([a, b], None) => Ok([(name(a), read(a, dialect)?), (name(b), read(b, dialect)?)]),
        ([file], Some(leaf)) if !is_stdin(file) => {
            let newest = DialectArgs { leaf: None, ..dialect.clone() };
            let branch = format!("{} ({leaf})", name(file));
            Ok([(name(file), read(file, &newest)?), (branch, read(file, dialect)?)])
        }
        (_, None) => {
            refuse("--diff takes two files; name them, or one and a branch of it with --leaf")
        }
        (_, Some(_)) => {
            refuse("--diff with --leaf takes one file that is not standard input; name it")
        }
    }
}
