//! Standard input and output as a transport: the number and the length of messages are limited, a request is answered even
//! if the input ends meanwhile, and an error of standard output ends the server.

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncWrite, Stdin, Stdout, stdin, stdout};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The longest message that is read, in bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// The number of requests that are answered or wait. The client then waits, too.
const MAX_REQUESTS: u32 = 256;

/// The transport.
pub struct Stdio {
    lines: AsyncRwTransport<RoleServer, Stdin, Watched>,
    /// A permit for each request that may still be read.
    room: Arc<Semaphore>,
    /// The permit for the next request.
    next: Option<Arc<OwnedSemaphorePermit>>,
    /// The error of standard output, if there was one.
    failed: watch::Receiver<Option<io::ErrorKind>>,
}

impl Stdio {
    /// Returns the transport, and the place of the error of standard output.
    pub fn open() -> (Self, watch::Receiver<Option<io::ErrorKind>>) {
        let (failure, failed) = watch::channel(None);
        let out = Watched { stdout: stdout(), failure };
        let lines = AsyncRwTransport::new(stdin(), out).with_max_line_length(MAX_MESSAGE);
        let room = Arc::new(Semaphore::new(MAX_REQUESTS as usize));
        (Self { lines, room, next: None, failed: failed.clone() }, failed)
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
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut failed = self.failed.clone();
        tokio::select! {
            _ = failed.wait_for(Option::is_some) => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

/// Standard output. Its errors are kept here, because the SDK also writes answers of its own, whose errors it does not return.
struct Watched {
    stdout: Stdout,
    failure: watch::Sender<Option<io::ErrorKind>>,
}

impl Watched {
    /// Does something with standard output, and keeps the error.
    fn watch<T>(
        &mut self,
        work: impl FnOnce(Pin<&mut Stdout>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let done = work(Pin::new(&mut self.stdout));
        if let Poll::Ready(Err(error)) = &done {
            self.failure.send_replace(Some(error.kind()));
        }
        done
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.watch(|out| out.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch(|out| out.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch(|out| out.poll_shutdown(context))
    }
}
