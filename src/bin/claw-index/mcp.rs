//! mcp: a server of the Model Context Protocol on standard input and output, so that agents can search old sessions.
//!
//! The protocol is that of its Rust SDK. Requests are answered one after another.

mod bounds;
mod server;
mod tools;
mod transport;

use crate::mcp::server::Server;
use crate::mcp::transport::Stdio;
use anyhow::Context;
use clawutils::exit::{Exit, fail};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use std::path::Path;
use tokio::runtime;

/// Serve the index to agents with the Model Context Protocol, on standard input and output
#[derive(Debug, clap::Args)]
pub struct Mcp {}

impl Mcp {
    /// Answers requests until the input ends.
    ///
    /// # Errors
    /// If standard output cannot be written, or the client does not speak the protocol.
    pub fn run(self, path: &Path) -> anyhow::Result<Exit> {
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        let done = runtime.block_on(serve(path));
        // A thread may still wait for the next line, or be in a query that cannot be stopped.
        runtime.shutdown_background();
        done.map(|()| Exit::Done)
    }
}

async fn serve(path: &Path) -> anyhow::Result<()> {
    let (transport, failure) = Stdio::open();
    let served = match Server::new(path)?.serve(transport).await {
        Ok(server) => server.waiting().await.map(drop).map_err(anyhow::Error::from),
        // The input ended before the first request.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(_) => {
            fail(Exit::Data, "cannot serve the client: its first message is not 'initialize'")
        }
    };
    let failure = failure.borrow().map(std::io::Error::from);
    failure.map_or(Ok(()), Err).context("cannot write '<stdout>'")?;
    served
}
