//! Replies: a status, header fields and a body of known length.
//!
//! The body has a known length, so responses are never chunked. Most bodies are written into a block of memory that
//! the thread reuses.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};

use crate::permit::Permits;

/// The body of every response.
pub(super) type Body = Full<Bytes>;
/// A response as hyper takes it.
pub(super) type Response = hyper::Response<Body>;

/// A response without its header fields.
#[derive(Debug)]
pub(super) struct Reply {
    /// The status code.
    pub(super) status: StatusCode,
    /// The value of `Content-Type`.
    pub(super) kind: &'static str,
    /// The body.
    pub(super) body: Bytes,
    /// The permits that the body contains.
    pub(super) permits: Vec<Permits>,
}

/// The values of `Content-Type`.
pub(super) const JSON: &str = "application/json";
pub(super) const PROBLEM: &str = "application/problem+json";
pub(super) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
pub(super) const TOML: &str = "application/toml";

impl Reply {
    /// Returns a reply with status 200 and a JSON body.
    pub(super) fn json(body: impl Into<Bytes>) -> Reply {
        Reply::new(StatusCode::OK, JSON, body)
    }

    /// Returns a reply without permits.
    pub(super) fn new(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply { status, kind, body: body.into(), permits: Vec::new() }
    }

    /// Sets the permits that the body contains.
    pub(super) fn telling(self, permits: impl IntoIterator<Item = Permits>) -> Reply {
        Reply { permits: permits.into_iter().collect(), ..self }
    }

    /// Returns a reply with status 200 and this value as JSON.
    pub(super) fn of(value: &impl serde::Serialize) -> Reply {
        Reply::json(serde_json::to_vec(value).expect("names are text, and numbers are numbers"))
    }

    /// Returns the response with these header fields and `Content-Type`.
    #[inline]
    pub(super) fn response(self, mut headers: HeaderMap) -> Response {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        let mut response = Response::new(Body::new(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}

/// The size of a block of memory for bodies, in bytes.
const BLOCK_BYTES: usize = 16 << 10;
/// The length that bodies usually do not exceed, in bytes.
const USUAL_BYTES: usize = 1 << 10;

thread_local! {
    /// The block into which bodies are written one after another. Its memory is reused after they are sent.
    static BLOCK: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Writes a body into the thread's block, usually without an allocation of its own.
///
/// The closure has to split off its body: the next one is appended to the same block.
pub(super) fn written<R>(write: impl FnOnce(&mut BytesMut) -> R) -> R {
    BLOCK.with_borrow_mut(|block| {
        if block.capacity() < USUAL_BYTES {
            block.reserve(BLOCK_BYTES);
        }
        write(block)
    })
}
