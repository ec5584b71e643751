//! What goes back: a status, header fields and bytes whose length is known.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};

use crate::permit::Permits;

/// The body of every answer.
pub(super) type Body = Full<Bytes>;
/// An answer as hyper wants it.
pub(super) type Response = hyper::Response<Body>;

/// What goes back, but for the header fields.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) kind: &'static str,
    pub(super) body: Bytes,
    /// The places in flight of which it tells.
    pub(super) permits: Vec<Permits>,
}

/// What a body is, as `Content-Type` has it.
pub(super) const JSON: &str = "application/json";
pub(super) const PROBLEM: &str = "application/problem+json";
pub(super) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
pub(super) const TOML: &str = "application/toml";

impl Reply {
    /// That all is well, in JSON.
    pub(super) fn json(body: impl Into<Bytes>) -> Reply {
        Reply::new(StatusCode::OK, JSON, body)
    }

    pub(super) fn new(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply { status, kind, body: body.into(), permits: Vec::new() }
    }

    /// The same, which tells of these places.
    pub(super) fn telling(self, permits: impl IntoIterator<Item = Permits>) -> Reply {
        Reply { permits: permits.into_iter().collect(), ..self }
    }

    /// The same for something that is written as JSON.
    pub(super) fn of(value: &impl serde::Serialize) -> Reply {
        Reply::json(serde_json::to_vec(value).expect("names are text, and numbers are numbers"))
    }

    /// With these header fields, and the one that says what the body is.
    #[inline]
    pub(super) fn response(self, mut headers: HeaderMap) -> Response {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        let mut response = Response::new(Body::new(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}

/// How much is set aside for answers at a time, in bytes.
const BLOCK_BYTES: usize = 16 << 10;
/// Answers are at most so long as a rule.
const USUAL_BYTES: usize = 1 << 10;

thread_local! {
    /// Where answers are written one after the other; what was sent makes room for what comes.
    static BLOCK: RefCell<BytesMut> = RefCell::new(BytesMut::new());
}

/// Bytes for an answer, written without an allocation of their own.
pub(super) fn written<R>(write: impl FnOnce(&mut BytesMut) -> R) -> R {
    BLOCK.with_borrow_mut(|block| {
        if block.capacity() < USUAL_BYTES {
            block.reserve(BLOCK_BYTES);
        }
        write(block)
    })
}
