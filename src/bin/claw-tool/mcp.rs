//! mcp: the tools of a server of the Model Context Protocol, as a directory of tools.
//!
//! Each tool becomes an executable that calls it: it starts the server, and ends it afterwards. The server has neither a
//! terminal nor this program's standard error.

mod answer;
mod client;
mod definition;
mod directory;

use crate::mcp::client::Server;
use crate::mcp::definition::Definition;
use crate::mcp::directory::Directory;
use anyhow::Context;
use clawutils::cli::{Log, Output, diagnostics, read_stdin, stdin_name, survive_file_limits, text};
use clawutils::exec::environment;
use clawutils::exit::{Error, Exit, fail};
use clawutils::printable::printable_lines;
use clawutils::settings::values::seconds;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Write the tools of an MCP server to a directory
#[derive(Debug, clap::Args)]
pub struct Mcp {
    /// Directory to write the tools to; created if missing
    #[arg(long, value_name = "DIR", required_unless_present = "call")]
    output: Option<PathBuf>,
    /// Text before the name of each tool
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// Pass this variable to the server even if it looks like a credential; may be repeated
    #[arg(long, value_name = "NAME", env = "CLAW_PASS_ENV")]
    pass_env: Vec<OsString>,
    /// Call this tool of the server, with input from standard input, instead of writing tools
    #[arg(long, value_name = "NAME", conflicts_with_all = ["output", "prefix"])]
    call: Option<String>,
    /// Time limit for the server to start and to list its tools, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    start_timeout: Duration,
    /// Command that starts the server, without a shell
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

impl Mcp {
    /// Writes the tools, or calls one.
    ///
    /// # Errors
    /// Status 1 if the tool reports a failure, 2 if a file that is not from this server is in the way, 65 if the input is not
    /// an object, 69 if the server does not answer as it should, and 74 if it cannot be started or a file not be written.
    pub fn run(self, log: Log) -> anyhow::Result<Exit> {
        match &self.call {
            Some(name) => self.call(name),
            None => self.write(log),
        }
    }

    /// Calls a tool. The environment is that of this program, from which claw-exec has removed credentials.
    fn call(&self, name: &str) -> anyhow::Result<Exit> {
        let input = read_stdin()?;
        let input = text(&stdin_name(), &input)?.trim();
        let bad = |error| Error::new(Exit::Data, format!("cannot read the input: {error}"));
        let input = if input.is_empty() { "{}" } else { input };
        let input = serde_json::from_str(input).map_err(bad)?;
        let server = Server::start(&self.command, None, self.start_timeout)?;
        let (answer, is_error) = server.call(name.to_owned(), input)?;
        if is_error {
            diagnostics::write_lines(&printable_lines(&answer::cut(&answer)));
            return Ok(Exit::Failed);
        }
        let mut out = Output::open();
        out.write_all(answer.as_bytes()).context("cannot write '<stdout>'")?;
        out.finish()?;
        Ok(Exit::Done)
    }

    fn write(&self, log: Log) -> anyhow::Result<Exit> {
        survive_file_limits()?;
        let visible = environment::visible(std::env::vars_os(), &self.pass_env);
        let server = Server::start(&self.command, Some(visible), self.start_timeout)?;
        let mut tools = Vec::<Definition>::new();
        for tool in server.tools()? {
            let tool = tool.and_then(|tool| Definition::new(tool, &self.prefix));
            let tool =
                tool.and_then(|tool| match tools.iter().find(|kept| kept.has_name_of(&tool)) {
                    Some(kept) => Err(format!(
                        "'{}': '{}' is kept, which has the same name here",
                        tool.original, kept.original
                    )),
                    None => Ok(tool),
                });
            match tool {
                Ok(tool) => tools.push(tool),
                Err(why) => log.note(&format!("leaving out a tool: {why}")),
            }
        }
        let Some(path) = &self.output else { return Ok(Exit::Done) };
        if tools.is_empty() {
            return fail(Exit::Unavailable, "cannot write tools: the server offers none");
        }
        Directory::open(path, &self.command)?.write(&tools)?;
        Output::lines(tools.iter().map(Definition::line))
    }
}
