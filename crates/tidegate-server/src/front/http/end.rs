//! The end of a connection: why, and what is still to be said.

use bytes::BytesMut;
use hyper::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::link::{Link, Stage};
use super::problem::Problem;
use super::{MAX_HEAD_BYTES, service};

/// How much of what nobody wants is read, so that a client that is still sending gets to see the answer: a socket
/// that is closed with something unread in it takes back what was written.
const MAX_IGNORED_BYTES: u64 = 1 << 20;

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// As it should, or because the client is gone.
    Well,
    /// By something that is no request.
    NoRequest,
    /// By a head that is too long.
    HeadTooLong,
    /// Something took too long.
    TooSlow(Stage),
}

impl From<hyper::Result<()>> for End {
    fn from(served: hyper::Result<()>) -> End {
        match served {
            Err(error) if error.is_parse_too_large() => End::HeadTooLong,
            Err(error) if error.is_parse() => End::NoRequest,
            _ => End::Well,
        }
    }
}

impl End {
    /// Says what is left to say, and closes. `unread` is what has arrived and was not understood.
    pub(super) async fn close(self, mut stream: TcpStream, unread: BytesMut, link: &Link) {
        if !matches!(self, End::Well) {
            link.post.meter().cut_off.add(1);
        }
        let last_words = self.last_words(&unread);
        drop(unread);
        let is_more_coming = link.is_more_coming() || last_words.is_some();
        let close = async {
            if let Some(problem) = last_words {
                // Whoever does not hear it is gone.
                let _ = stream.write_all(&problem.whole_message()).await;
            }
            let _ = stream.shutdown().await;
            if is_more_coming {
                ignore_the_rest(&mut stream).await;
            }
        };
        let _ = timeout(link.post.engine.settings().bounds.unread, close).await;
    }

    fn last_words(&self, unread: &[u8]) -> Option<Problem> {
        match self {
            End::Well => None,
            End::NoRequest => Some(Problem::new(
                StatusCode::BAD_REQUEST,
                "this is no HTTP/1.1 request; it begins with a line such as POST /v1/take HTTP/1.1",
            )),
            End::HeadTooLong if has_long_uri(unread) => Some(service::uri_too_long()),
            End::HeadTooLong => Some(Problem::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                format!(
                    "the head of the request has more than {MAX_HEAD_BYTES} bytes or 100 fields; send less"
                ),
            )),
            End::TooSlow(Stage::Head) => Some(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "the head of the request took too long to arrive; send it at once",
            )),
            End::TooSlow(_) => None,
        }
    }
}

/// Whether it is the first line that makes a head too long.
fn has_long_uri(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').next().is_some_and(|line| line.len() > service::MAX_URI_BYTES)
}

async fn ignore_the_rest(stream: &mut TcpStream) {
    // On the heap, or every connection would carry it around from its beginning.
    let mut ignored = vec![0; 4096];
    let mut rest = stream.take(MAX_IGNORED_BYTES);
    while rest.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
}
