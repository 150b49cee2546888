//! claw-check: report errors in transcripts.

mod check;

use crate::check::check_modes;
use clap::Parser;
use clawutils::cli::{self, DialectArgs, LogArgs, Operands, Output, arguments};
use clawutils::finding::rules;
use clawutils::json::write::Members;
use clawutils::lint;
use clawutils::printable::printable_json;
use std::io::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Check a transcript:
      claw-check s.jsonl
  List the rules:
      claw-check --rules";

/// Report errors in transcripts
#[derive(Parser)]
#[command(name = "claw-check", version, after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    dialect: DialectArgs,
    /// List the rules instead of checking files, one per line: name, severity, whether rebuild repairs it, meaning
    #[arg(long)]
    rules: bool,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-check", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-check");
        let mut out = Output::open();
        let mut findings = Vec::new();
        if args.rules {
            for rule in rules::ALL {
                writeln!(out, "{rule}")?;
            }
        } else {
            findings.push(check_modes(&args.operands.files)?);
            for input in args.operands.transcripts_of(&args.dialect)? {
                let _progress = log.wait_for(format!("checking {}", input.name));
                findings.push(lint::lint(input)?);
            }
        }
        let mut json = String::new();
        for finding in findings.iter().flatten() {
            let members = finding.add_to(Members::reusing(json));
            json = members.string("message", &finding.message).into_json();
            out.write_all(printable_json(&json).as_bytes())?;
            out.write_all(b"\n")?;
        }
        out.finish()?;
        Ok(lint::status(findings.iter().flatten()))
    })
}
