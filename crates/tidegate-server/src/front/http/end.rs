//! The end of a connection: its reason, and the last response.
//!
//! hyper reports that a connection has ended, but sends no body with its own errors. This module sends a problem
//! instead, and closes so that the client can read it.

use bytes::BytesMut;
use hyper::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::link::{Link, Stage};
use super::problem::Problem;
use super::service::MAX_FIELDS;
use super::{MAX_HEAD_BYTES, service};

/// The maximum number of bytes that are discarded before the socket is closed. Closing a socket with unread input
/// resets the connection, and a client that is still sending could not read the response.
const MAX_IGNORED_BYTES: u64 = 1 << 20;

/// The reason for which a connection ended.
#[derive(Debug)]
pub(super) enum HttpEnd {
    /// It ended regularly, or the client closed it.
    Well,
    /// Invalid HTTP.
    NoRequest,
    /// A head that is too long.
    HeadTooLong,
    /// A timeout in this stage.
    TooSlow(Stage),
}

/// Classifies the result of hyper. I/O errors count as a regular end: the client is gone.
impl From<hyper::Result<()>> for HttpEnd {
    fn from(served: hyper::Result<()>) -> HttpEnd {
        match served {
            Err(error) if error.is_parse_too_large() => HttpEnd::HeadTooLong,
            Err(error) if error.is_parse() => HttpEnd::NoRequest,
            _ => HttpEnd::Well,
        }
    }
}

impl HttpEnd {
    /// Sends the last response, if there is one, and closes. `unread` is the input that hyper did not parse.
    ///
    /// Takes at most the write timeout. A regular end is not counted as cut off.
    pub(super) async fn close(self, mut stream: TcpStream, unread: BytesMut, link: &Link) {
        if !matches!(self, HttpEnd::Well) {
            link.worker.meter().cut_off.add(1);
        }
        let last_words = self.last_words(&unread);
        drop(unread);
        let is_more_coming = link.is_more_coming() || last_words.is_some();
        let close = async {
            if let Some(problem) = last_words {
                // An error means that the client is gone.
                let _ = stream.write_all(&problem.whole_message()).await;
            }
            let _ = stream.shutdown().await;
            if is_more_coming {
                ignore_the_rest(&mut stream).await;
            }
        };
        let _ = timeout(link.worker.engine.settings().bounds.write_timeout, close).await;
    }

    /// Returns the problem that ends the connection; `None` if nothing is wrong, or if no client reads it.
    fn last_words(&self, unread: &[u8]) -> Option<Problem> {
        match self {
            HttpEnd::Well => None,
            HttpEnd::NoRequest => Some(Problem::new(
                StatusCode::BAD_REQUEST,
                "this is no HTTP/1.1 request; it begins with a line such as POST /v1/take HTTP/1.1",
            )),
            HttpEnd::HeadTooLong if has_long_uri(unread) => Some(service::uri_too_long()),
            HttpEnd::HeadTooLong => Some(Problem::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                format!(
                    "the head of the request has more than {MAX_HEAD_BYTES} bytes or {MAX_FIELDS} fields; send less"
                ),
            )),
            HttpEnd::TooSlow(Stage::Head) => Some(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "the head of the request took too long to arrive; send it at once",
            )),
            HttpEnd::TooSlow(_) => None,
        }
    }
}

/// Returns true if the request line alone is longer than the longest URI.
fn has_long_uri(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').next().is_some_and(|line| line.len() > service::MAX_URI_BYTES)
}

/// Reads and discards input until the client closes its side, up to [`MAX_IGNORED_BYTES`].
async fn ignore_the_rest(stream: &mut TcpStream) {
    // On the heap: on the stack it would enlarge the future of every connection.
    let mut ignored = vec![0; 4096];
    let mut rest = stream.take(MAX_IGNORED_BYTES);
    while rest.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}
