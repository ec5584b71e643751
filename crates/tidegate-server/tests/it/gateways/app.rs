//! The service behind a gateway: it replies with the method and the path of each request.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A service on a free port. `/status/N` replies with the status N, and `/broken` closes the connection without a reply.
pub(super) struct App {
    address: SocketAddr,
    seen: Arc<Mutex<String>>,
}

impl App {
    pub(super) fn start() -> App {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::<Mutex<String>>::default();
        let all = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = all.clone();
                // An error means that the gateway has closed the connection.
                thread::spawn(move || serve(stream, &all));
            }
        });
        App { address, seen }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns true if the head of any request contains this text.
    pub(super) fn has_seen(&self, text: &str) -> bool {
        self.times_seen(text) > 0
    }

    /// Returns how often the heads of all requests contain this text.
    pub(super) fn times_seen(&self, text: &str) -> usize {
        self.seen.lock().expect("no test panics while it holds this").matches(text).count()
    }
}

/// Replies to all requests of a connection.
fn serve(stream: TcpStream, seen: &Mutex<String>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        seen.lock().expect("no test panics while it holds this").push_str(&head);
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if path == "/broken" {
            return Ok(());
        }
        let status = path.strip_prefix("/status/").and_then(|status| status.parse().ok()).unwrap_or(200_u16);
        let body = format!("{method} {path}");
        let length = body.len();
        write!(reader.get_mut(), "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}")?;
    }
}
