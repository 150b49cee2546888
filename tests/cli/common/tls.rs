//! TLS, other addresses and proxies in front of the fake provider.
//!
//! A [`Front`] passes requests on to a [`FakeProvider`]. It accepts one request per connection and records its
//! bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::provider::FakeProvider;

/// The timeout of each read.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

// ---- certificates --------------------------------------------------------------------------

/// A certificate authority that no system trusts.
pub struct Signer(CertifiedIssuer<'static, KeyPair>);

/// The certificate and key of a server.
pub type Identity = Arc<ServerConfig>;

impl Signer {
    /// Creates an authority with a new key.
    pub fn new() -> Signer {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // The name must be unique: if two authorities have the same name, a client that trusts one of them reports a
        // bad signature for a certificate from the other.
        let key = new_key();
        params.distinguished_name.push(DnType::CommonName, name_of(&key));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Signer(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Returns the certificate of the authority.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns the identity of a server with this name or address.
    pub fn server(&self, name: &str) -> Identity {
        self.signed(name, 2999)
    }

    /// Returns the identity of a server with this name whose certificate has expired.
    pub fn expired_server(&self, name: &str) -> Identity {
        self.signed(name, 2001)
    }

    fn signed(&self, name: &str, last_year: i32) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = new_key();
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        Arc::new(config.expect("a key that fits"))
    }
}

/// Returns a name that is unique to this key.
fn name_of(key: &KeyPair) -> String {
    let tail = key.public_key_raw().iter().rev().take(8);
    tail.map(|byte| format!("{byte:02x}")).collect()
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

// ---- servers -------------------------------------------------------------------------------

/// The bytes received, one entry per connection.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Vec<u8>>>>);

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener with one thread per connection. It stops when it is dropped.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Server {
    fn new(
        ip: IpAddr,
        serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind((ip, 0)).expect("a free port");
        let address = listener.local_addr().expect("the port");
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, serve) = (Arc::clone(&stop), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let serve = Arc::clone(&serve);
                // Errors are ignored, because in some tests the client closes the connection.
                thread::spawn(move || {
                    let limited = stream.set_read_timeout(Some(READ_TIMEOUT));
                    let _ = limited.and_then(|()| serve(stream));
                });
            }
        });
        Server { address, stop }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // A connection wakes the listener, so that it checks the flag.
        let _ = TcpStream::connect(self.address);
    }
}

/// A server in front of a fake provider.
pub struct Front {
    server: Server,
    seen: Seen,
}

impl Front {
    /// Listens with TLS on loopback.
    pub fn tls(provider: &FakeProvider, identity: Identity) -> Front {
        Front::new(provider, Ipv4Addr::LOCALHOST.into(), Some(identity))
    }

    /// Listens at this address of the machine: with TLS if `identity` is given, otherwise with plain HTTP.
    pub fn new(provider: &FakeProvider, ip: IpAddr, identity: Option<Identity>) -> Front {
        let seen = Seen::default();
        let (behind, kept) = (provider.address(), seen.clone());
        let server = Server::new(ip, move |stream| match &identity {
            Some(identity) => {
                let tls = ServerConnection::new(Arc::clone(identity)).map_err(io::Error::other)?;
                let mut tls = StreamOwned::new(tls, stream);
                pass_on(&mut tls, behind, &kept)?;
                tls.conn.send_close_notify();
                tls.flush()
            }
            None => pass_on(&mut &stream, behind, &kept),
        });
        Front { server, seen }
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Returns the https URL of the server with this host name.
    pub fn url(&self, name: &str) -> String {
        format!("https://{name}:{}", self.server.address.port())
    }

    /// Returns the number of bytes received, after decryption.
    pub fn bytes(&self) -> usize {
        self.seen.lock().iter().map(Vec::len).sum()
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.seen.lock().len()
    }
}

/// Passes a request on to the provider, and the answer back.
fn pass_on(client: &mut (impl Read + Write), behind: SocketAddr, seen: &Seen) -> io::Result<()> {
    let number = seen.lock().len();
    seen.lock().push(Vec::new());
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !is_whole(&request) {
        match client.read(&mut piece)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&piece[..count]),
        }
        if let Some(bytes) = seen.lock().get_mut(number) {
            bytes.clone_from(&request);
        }
    }
    let mut provider = TcpStream::connect(behind)?;
    provider.write_all(&request)?;
    io::copy(&mut provider, client)?;
    client.flush()
}

/// Returns true if the head is complete and the body has the announced length.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    request.len() >= head.len() + 4 + length
}

/// Returns an address of this machine other than loopback, if it has one.
pub fn own_address() -> Option<IpAddr> {
    // Connecting a UDP socket sends no packet; it only selects the local address.
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

// ---- proxies -------------------------------------------------------------------------------

/// A proxy on loopback that supports CONNECT.
pub struct Proxy {
    server: Server,
    seen: Seen,
}

impl Proxy {
    /// Connects to this address, whatever host is requested.
    pub fn to(address: SocketAddr) -> Proxy {
        Proxy::new(move |mut client| {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            join(client, TcpStream::connect(address)?)
        })
    }

    /// Refuses every request with this status.
    pub fn refusing(status: &'static str) -> Proxy {
        Proxy::new(move |mut client| {
            write!(client, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        })
    }

    fn new(act: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Proxy {
        let seen = Seen::default();
        let kept = seen.clone();
        let server = Server::new(Ipv4Addr::LOCALHOST.into(), move |mut client| {
            let head = read_head(&mut client)?;
            kept.lock().push(head);
            act(client)
        });
        Proxy { server, seen }
    }

    /// Returns the URL for `HTTPS_PROXY`.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Returns the head of each request.
    pub fn heads(&self) -> Vec<String> {
        self.seen.lock().iter().map(|head| String::from_utf8_lossy(head).into_owned()).collect()
    }
}

/// Reads the head of a request up to its empty line. The bytes after it stay unread, because [`join`] copies them.
fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if client.read(&mut byte)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        head.push(byte[0]);
    }
    Ok(head)
}

/// Copies bytes in both directions until both sides have closed.
fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let there = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = there.join();
    Ok(())
}
