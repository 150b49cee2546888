//! Standard input and output as a transport: the number and the length of messages are limited, a request is answered even
//! if the input ends meanwhile, and an error of standard output ends the server.

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use std::sync::Arc;
use tokio::io::{Stdin, Stdout, stdin, stdout};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The longest message that is read, in bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// The number of requests that are answered or wait. The client then waits, too.
const MAX_REQUESTS: u32 = 256;

/// The transport.
pub struct Stdio {
    lines: AsyncRwTransport<RoleServer, Stdin, Stdout>,
    /// A permit for each request that may still be read.
    room: Arc<Semaphore>,
    /// The permit for the next request.
    next: Option<Arc<OwnedSemaphorePermit>>,
    /// The error of standard output, if there was one.
    failure: watch::Sender<Option<io::ErrorKind>>,
}

impl Stdio {
    /// Returns the transport, and the place of the error of standard output.
    pub fn open() -> (Self, watch::Receiver<Option<io::ErrorKind>>) {
        let lines = AsyncRwTransport::new(stdin(), stdout()).with_max_line_length(MAX_MESSAGE);
        let room = Arc::new(Semaphore::new(MAX_REQUESTS as usize));
        let (failure, failed) = watch::channel(None);
        (Self { lines, room, next: None, failure }, failed)
    }

    /// Returns the next message; `None` at the end, when all requests are answered. The permit goes with the request, and
    /// returns with its answer. Nothing is lost if this is cancelled.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        if self.next.is_none() {
            self.next = self.room.clone().acquire_owned().await.ok().map(Arc::new);
        }
        let message = self.lines.receive().await;
        match message {
            Some(ClientJsonRpcMessage::Request(mut request)) => {
                if let Some(permit) = self.next.take() {
                    request.request.extensions_mut().insert(permit);
                }
                Some(ClientJsonRpcMessage::Request(request))
            }
            Some(message) => Some(message),
            None => {
                self.next = None;
                drop(self.room.acquire_many(MAX_REQUESTS).await);
                None
            }
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (sent, failure) = (self.lines.send(message), self.failure.clone());
        async move {
            let sent = sent.await;
            if let Err(error) = &sent {
                failure.send_replace(Some(error.kind()));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut failed = self.failure.subscribe();
        tokio::select! {
            _ = failed.wait_for(Option::is_some) => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}
