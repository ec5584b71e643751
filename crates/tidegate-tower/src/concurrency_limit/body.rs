//! A response body that holds a concurrency permit until it has ended.
//!
//! A service that streams is busy until the last byte, not until the head. The body holds the permit for that time and
//! reports the outcome at its end. It adds no frame and changes none; it counts bytes only if the length is known.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf as _;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tidegate_core::{ConcurrencyPermit, Outcome};

use super::outcome::outcome_of_grpc;

pin_project! {
    /// The body of a service's response. With [`until_body_ends`](super::ConcurrencyLimitLayer::until_body_ends) it
    /// holds the concurrency permit until it has ended. A body that is dropped earlier reports no outcome.
    pub struct PermitBody<B>
    where
        B: Body,
    {
        #[pin]
        body: B,
        kept: Option<BodyPermit>,
    }

    impl<B> PinnedDrop for PermitBody<B>
    where
        B: Body,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let Some(kept) = this.kept.take() else { return };
            if kept.is_being_read {
                kept.place.done(Outcome::Failed);
            } else if kept.is_whole() || this.body.is_end_stream() {
                // A reader may stop as soon as the body or its length shows that no more data follows.
                kept.done();
            }
        }
    }
}

/// A concurrency permit, with the outcome to report when the body has ended.
struct BodyPermit {
    place: ConcurrencyPermit,
    outcome: Outcome,
    /// True if the status in the trailers decides the outcome, as in gRPC.
    reads_trailers: bool,
    /// The number of bytes still to come, if the length is known.
    to_come: Option<u64>,
    /// True while the body is polled. It stays true after a panic.
    is_being_read: bool,
}

impl BodyPermit {
    /// Returns true if the announced length was read, after which a reader does not poll for the end.
    fn is_whole(&self) -> bool {
        self.to_come == Some(0)
    }

    /// Reports the outcome and releases the permit.
    fn done(self) {
        self.place.done(self.outcome);
    }
}

impl<B: Body> PermitBody<B> {
    /// Returns a body that holds no permit.
    pub(super) fn nothing(body: B) -> PermitBody<B> {
        PermitBody { body, kept: None }
    }

    /// Returns a body that holds this permit, unless the body has ended already.
    ///
    /// The length is that of `Content-Length`, or else the exact size of the body. A body of length 0 is over at once:
    /// servers do not poll it.
    pub(super) fn place(
        body: B,
        place: ConcurrencyPermit,
        outcome: Outcome,
        reads_trailers: bool,
        length: Option<u64>,
    ) -> PermitBody<B> {
        let to_come = length.or_else(|| body.size_hint().exact());
        let kept = BodyPermit { place, outcome, reads_trailers, to_come, is_being_read: false };
        if body.is_end_stream() {
            kept.done();
            return PermitBody::nothing(body);
        }
        PermitBody { body, kept: Some(kept) }
    }
}

impl<B: Body> Body for PermitBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    /// Polls the body of the service. An error reports [`Outcome::Failed`]; trailers of gRPC decide the outcome; the
    /// end reports it.
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        // A body that panics has failed, even if the panic is caught before this is dropped.
        let set_being_read = |kept: &mut Option<BodyPermit>, is_being_read| {
            kept.iter_mut().for_each(|kept| kept.is_being_read = is_being_read);
        };
        set_being_read(this.kept, true);
        let frame = this.body.poll_frame(context);
        set_being_read(this.kept, false);
        match &frame {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some(kept)) = (frame.data_ref(), this.kept.as_mut()) {
                    let read = data.remaining() as u64;
                    kept.to_come = kept.to_come.map(|bytes| bytes.saturating_sub(read));
                }
                if let (Some(trailers), Some(kept)) = (frame.trailers_ref(), this.kept.as_mut()) {
                    let status =
                        trailers.get("grpc-status").and_then(|status| status.to_str().ok()?.parse().ok());
                    if let Some(status) = status.filter(|_| kept.reads_trailers) {
                        kept.outcome = outcome_of_grpc(status);
                    }
                }
            }
            Poll::Ready(Some(Err(_))) => {
                if let Some(kept) = this.kept.take() {
                    kept.place.done(Outcome::Failed);
                }
            }
            Poll::Ready(None) => {
                if let Some(kept) = this.kept.take() {
                    kept.done();
                }
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: Body> fmt::Debug for PermitBody<B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PermitBody").field("keeps_place", &self.kept.is_some()).finish_non_exhaustive()
    }
}
