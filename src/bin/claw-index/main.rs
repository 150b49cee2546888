//! claw-index: search transcripts, and query them with SQL.

mod asides;
mod conversations;
mod database;
mod files;
mod follow;
mod foreign;
mod goclaw;
mod insert;
mod llm;
mod mcp;
mod openclaw;
mod opencode;
mod output;
mod prices;
mod query;
mod read_state;
mod reader;
mod retract;
mod search;
mod session;
mod stats;
mod transcript;
mod update;
mod updater;
mod values;

use clap::{Parser, Subcommand};
use clawutils::cli::options::{DatabaseArgs, WorkspaceArgs};
use clawutils::cli::{self, LogArgs, arguments};
use clawutils::exit::{Exit, fail};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Index the transcripts of a directory, and search them:
      claw-index --db sessions.db update .
      claw-index --db sessions.db search question
  Add up their tokens per day and model:
      claw-index --db sessions.db update .
      claw-index --db sessions.db query 'SELECT * FROM tokens_by_day'";

/// Search transcripts, and query them with SQL
#[derive(Parser)]
#[command(name = "claw-index", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// The options that locate the database.
#[derive(Clone, Debug, clap::Args)]
struct PlaceArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Subcommand)]
enum Command {
    Update(update::Update),
    Search(search::Search),
    Query(query::Query),
    Stats(stats::Stats),
    Schema(query::Schema),
    Mcp(mcp::Mcp),
    Records(foreign::Records),
}

impl PlaceArgs {
    /// Returns the path of the database.
    fn database(&self) -> anyhow::Result<PathBuf> {
        if let Some(path) = &self.database.store_path {
            return Ok(path.clone());
        }
        let sessions = self.workspace.workspace.join(".sessions");
        if sessions.is_dir() {
            return Ok(sessions.join("index.db"));
        }
        let workspace = self.workspace.workspace.display();
        fail(Exit::Usage, format!("no sessions in '{workspace}'; give --db FILE, or --workspace"))
    }
}

fn main() -> ExitCode {
    cli::run("claw-index", || {
        let Args { command, place, log } = arguments::parse::<Args>()?;
        let log = log.open("claw-index");
        let path = match &command {
            Command::Records(records) => records.file.clone(),
            _ => place.database()?,
        };
        let done = match command {
            Command::Update(update) => update.run(&path, &place.workspace.workspace, log),
            Command::Search(search) => search.run(&path),
            Command::Query(query) => query.run(&path),
            Command::Stats(stats) => stats.run(&path),
            Command::Schema(schema) => schema.run(&path),
            Command::Mcp(mcp) => mcp.run(&path),
            Command::Records(records) => records.run(log),
        };
        done.map_err(|error| database::explain(error, &path))
    })
}
