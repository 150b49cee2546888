//! A minimal HTTP/1.1 server: one request and one answer per connection.
//!
//! A whole body has a `content-length`. A stream is sent in chunks, one per piece; if it is cut off, the last,
//! empty chunk is missing, so that the client can tell.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

// ---- requests ------------------------------------------------------------------------------

/// A request as it was received.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Returns the first header with this lower-case name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }

    /// Returns the token of an `authorization` header.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// Returns the path without its query.
    pub(super) fn bare_path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Reads one request. Returns `None` if the client closed the connection without sending one, or if the first line
    /// is not a request line.
    pub(super) fn read(mut stream: &TcpStream) -> io::Result<Option<Request>> {
        let mut reader = BufReader::new(stream);
        let first = read_line(&mut reader)?;
        let mut words = first.split(' ');
        let (Some(method), Some(path), Some(_)) = (words.next(), words.next(), words.next()) else {
            return Ok(None);
        };
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: read_headers(&mut reader)?,
            body: Vec::new(),
        };
        if request.header("expect") == Some("100-continue") {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let length = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }
}

/// Returns the first header with this lower-case name.
pub(super) fn first<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok(headers);
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

// ---- answers -------------------------------------------------------------------------------

/// The body of an answer.
pub(super) enum Body {
    /// A whole body.
    Whole(Vec<u8>),
    /// The pieces of a stream, each sent as one chunk.
    Pieces(Vec<Vec<u8>>),
}

/// An answer to write.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

impl Answer {
    /// Returns a JSON answer with these additional headers.
    pub(super) fn json(status: u16, headers: Vec<(String, String)>, body: &Value) -> Answer {
        let body = Body::Whole(body.to_string().into());
        Answer { status, headers, body }.with("content-type", "application/json")
    }

    /// Adds a header unless it exists.
    pub(super) fn with(mut self, name: &str, value: &str) -> Answer {
        if !self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Writes the head and at most `limit` bytes of the body. With a limit, a stream never gets the empty
    /// chunk that ends it, even if the stream is shorter than the limit.
    pub(super) fn write(self, stream: &TcpStream, limit: Option<usize>) -> io::Result<()> {
        self.write_each(stream, limit, |_| {})
    }

    /// Writes the answer. Before each piece, calls `before` with the number of the piece, counted from 0.
    pub(super) fn write_slowly(
        self,
        stream: &TcpStream,
        before: impl FnMut(usize),
    ) -> io::Result<()> {
        self.write_each(stream, None, before)
    }

    fn write_each(
        self,
        mut stream: &TcpStream,
        limit: Option<usize>,
        before: impl FnMut(usize),
    ) -> io::Result<()> {
        let (name, value) = match &self.body {
            Body::Whole(bytes) => ("content-length", bytes.len().to_string()),
            Body::Pieces(_) => ("transfer-encoding", "chunked".to_owned()),
        };
        let answer = self.with(name, &value).with("connection", "close");
        let reason = if answer.status < 400 { "OK" } else { "Error" };
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", answer.status);
        for (name, value) in &answer.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        match answer.body {
            Body::Whole(body) => {
                let mut bytes = head.into_bytes();
                bytes.extend_from_slice(&body[..body.len().min(limit.unwrap_or(usize::MAX))]);
                stream.write_all(&bytes)
            }
            Body::Pieces(pieces) => {
                // Without this, the system delays small pieces.
                stream.set_nodelay(true)?;
                stream.write_all(head.as_bytes())?;
                write_pieces(&pieces, stream, limit, before)
            }
        }
    }
}

fn write_pieces(
    pieces: &[Vec<u8>],
    mut stream: &TcpStream,
    limit: Option<usize>,
    mut before: impl FnMut(usize),
) -> io::Result<()> {
    let mut left = limit.unwrap_or(usize::MAX);
    // An empty chunk would end the stream.
    for (n, piece) in pieces.iter().filter(|piece| !piece.is_empty()).enumerate() {
        before(n);
        let cut = left.min(piece.len());
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(&piece[..cut]);
        if cut == piece.len() {
            chunk.extend_from_slice(b"\r\n");
        }
        stream.write_all(&chunk)?;
        stream.flush()?;
        if cut < piece.len() {
            return Ok(());
        }
        left -= cut;
    }
    match limit {
        Some(_) => Ok(()),
        None => stream.write_all(b"0\r\n\r\n"),
    }
}
