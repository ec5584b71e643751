//! The body of a request: complete, or an error.
//!
//! A body has a length bound per route, a timeout, and a share of the common bound for unfinished requests. After
//! any of these errors the rest of the body is unread, so the connection is closed.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header;

use super::link::Link;
use super::problem::Problem;
use crate::unfinished::TooMuch;

/// The longest body, in bytes: the longest permit, and the JSON around it.
pub(super) const MAX_BODY_BYTES: usize = 160 << 10;
/// The longest body of a batch, in bytes.
/// It has room for thousands of short requests.
pub(super) const MAX_BATCH_BYTES: usize = 1 << 20;
/// The longest rules file, in bytes.
pub(super) const MAX_FILE_BYTES: usize = 4 << 20;

/// Reads the whole body, of at most `at_most` bytes. A body that arrived in one piece is not copied.
///
/// A `Content-Length` above the bound is rejected before any byte is read. A chunked body is rejected at the first
/// byte above it. `Expect: 100-continue` is answered by hyper with the first read.
#[inline]
pub(super) async fn whole(mut body: Incoming, at_most: usize, link: &Link) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > at_most as u64 {
        return Err(too_long(at_most, link));
    }
    let Some(first) = next(&mut body, link).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() {
        return Ok(first);
    }
    let (mut whole, mut share) = (BytesMut::from(first), link.worker.engine.unfinished().share());
    while let Some(more) = next(&mut body, link).await? {
        if whole.len() + more.len() > at_most {
            return Err(too_long(at_most, link));
        }
        whole.extend_from_slice(&more);
        share.hold(whole.capacity()).map_err(|too_much| too_much_held(too_much, link))?;
    }
    Ok(whole.freeze())
}

/// Reads and discards a body that the route does not use. Returns false if it is too long, late or invalid.
pub(super) async fn is_ignored(mut body: Incoming, link: &Link) -> bool {
    let mut ignored = 0;
    while let Ok(piece) = next(&mut body, link).await {
        let Some(piece) = piece else { return true };
        ignored += piece.len();
        if ignored > MAX_BODY_BYTES {
            link.expect_more();
            return false;
        }
    }
    false
}

/// Returns the next piece; `None` at the end.
///
/// The timeout is checked at each poll: the watch of the connection wakes the task when the body is late.
async fn next(body: &mut Incoming, link: &Link) -> Result<Option<Bytes>, Problem> {
    poll_fn(|cx| {
        if link.is_late() {
            let detail = "the body took too long to arrive; send it at once";
            return Poll::Ready(Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail).and_close()));
        }
        loop {
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Ok(Some(piece)));
                    }
                }
                Some(Err(_)) => {
                    let detail = "the body ended early, or its chunks are not as HTTP has them";
                    return Poll::Ready(Err(Problem::bad_request(detail).and_close()));
                }
                None => return Poll::Ready(Ok(None)),
            }
        }
    })
    .await
}

/// Returns the problem of a body above the bound of its route.
#[cold]
fn too_long(at_most: usize, link: &Link) -> Problem {
    link.expect_more();
    let detail = format!("the body has more than {at_most} bytes; send less");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).and_close()
}

/// Returns the problem of a body for which the common bound has no room. A later retry can succeed.
#[cold]
fn too_much_held(TooMuch { at_most }: TooMuch, link: &Link) -> Problem {
    link.expect_more();
    let detail = format!(
        "unfinished requests of all connections hold more than {at_most} bytes; send requests at once, or try again in a second"
    );
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(header::RETRY_AFTER, "1").and_close()
}
