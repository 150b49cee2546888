//! A server that does, on each connection, what a table row lists: it sends exact bytes, pauses, or resets the
//! connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The time for which `Act::Hold` keeps a connection open.
const HELD: Duration = Duration::from_secs(20);

/// The pause before a reset. The client has to receive the data first, because a reset discards what is still in the
/// socket's buffer.
const BEFORE_RESET: Duration = Duration::from_millis(100);

/// An act of the server.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes one at a time, with this pause after each.
    Drip(Vec<u8>, Duration),
    /// Sends this piece repeatedly, up to this many bytes in total.
    Flood(Vec<u8>, usize),
    /// Keeps the connection open without sending anything.
    Hold,
    /// Resets the connection, as a crashed server does.
    Reset,
}

/// A server with a list of acts for each connection; the last list is repeated for all later connections.
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub fn new(connections: Vec<Vec<Act>>) -> Server {
        Server::resetting_after(1, connections)
    }

    /// Returns a server that waits so many times [`BEFORE_RESET`] before it resets a connection.
    pub fn resetting_after(times: u32, connections: Vec<Vec<Act>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the port");
        let stop = Arc::new(AtomicBool::new(false));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (stopped, count) = (Arc::clone(&stop), AtomicUsize::new(0));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let number = count.fetch_add(1, Ordering::SeqCst).min(connections.len() - 1);
                let (acts, stopped) = (connections[number].clone(), Arc::clone(&stopped));
                let seen = Arc::clone(&seen);
                // Errors are ignored: in several rows, the client closes the connection.
                thread::spawn(move || serve(&stream, &acts, BEFORE_RESET * times, &stopped, &seen));
            }
        });
        Server { address, requests, stop }
    }

    /// Returns the bodies of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("requests").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    mut stream: &TcpStream,
    acts: &[Act],
    before_reset: Duration,
    stop: &AtomicBool,
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let request = read_request(stream)?;
    seen.lock().expect("requests").push(request);
    let pause = |time: Duration| {
        let steps = time.as_millis().div_ceil(20);
        for _ in 0..steps {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            thread::sleep(Duration::from_millis(20).min(time));
        }
    };
    for act in acts {
        match act {
            Act::Send(bytes) => stream.write_all(bytes)?,
            Act::Drip(bytes, time) => {
                for byte in bytes {
                    stream.write_all(&[*byte])?;
                    pause(*time);
                }
            }
            Act::Flood(piece, total) => {
                for _ in 0..total / piece.len() {
                    stream.write_all(piece)?;
                }
            }
            Act::Hold => pause(HELD),
            Act::Reset => {
                thread::sleep(before_reset);
                rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
            }
        }
    }
    Ok(())
}

/// Reads a request up to its `Content-Length`, and returns the body.
fn read_request(mut stream: &TcpStream) -> io::Result<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.split("content-length:").nth(1).and_then(|rest| {
            rest.lines().next().and_then(|number| number.trim().parse::<usize>().ok())
        });
        if count == 0 || bytes.len() >= end + 4 + length.unwrap_or(0) {
            return Ok(String::from_utf8_lossy(&bytes[end + 4..]).into_owned());
        }
    }
}

/// Returns the head of an answer with these headers.
pub fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    (head + "\r\n").into_bytes()
}

/// Encodes a piece as a chunk of the chunked transfer encoding.
pub fn chunk(piece: &str) -> Vec<u8> {
    format!("{:x}\r\n{piece}\r\n", piece.len()).into_bytes()
}
