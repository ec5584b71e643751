//! A body that keeps a place until it has ended.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf as _;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tidegate::{Outcome, Place};

use super::outcome::outcome_of_grpc;

pin_project! {
    /// The body of a service's answer. Where the layer says [`until_body_ends`](super::InFlight::until_body_ends), it
    /// keeps the place in flight until then; dropped before, it says nothing about how the call went.
    pub struct Kept<B>
    where
        B: Body,
    {
        #[pin]
        body: B,
        kept: Option<Keeping>,
    }

    impl<B> PinnedDrop for Kept<B>
    where
        B: Body,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let Some(kept) = this.kept.take() else { return };
            if kept.is_being_read {
                kept.place.done(Outcome::Failed);
            } else if kept.is_whole() || this.body.is_end_stream() {
                // Who reads a body may stop as soon as it knows that nothing more will come, by the body or by its length.
                kept.done();
            }
        }
    }
}

/// A place, and what will be said of its call when it has ended.
struct Keeping {
    place: Place,
    outcome: Outcome,
    /// Whether the status in the trailers counts: in gRPC it is there.
    reads_trailers: bool,
    /// How many bytes are still to come, if that was said.
    to_come: Option<u64>,
    /// Whether the body is being read now, in a call that has to return.
    is_being_read: bool,
}

impl Keeping {
    fn is_whole(&self) -> bool {
        self.to_come == Some(0)
    }

    fn done(self) {
        self.place.done(self.outcome);
    }
}

impl<B: Body> Kept<B> {
    /// A body that keeps nothing.
    pub(super) fn nothing(body: B) -> Kept<B> {
        Kept { body, kept: None }
    }

    /// A body that keeps this place, unless it has ended already.
    pub(super) fn place(
        body: B,
        place: Place,
        outcome: Outcome,
        reads_trailers: bool,
        length: Option<u64>,
    ) -> Kept<B> {
        let to_come = length.or_else(|| body.size_hint().exact());
        let kept = Keeping { place, outcome, reads_trailers, to_come, is_being_read: false };
        if body.is_end_stream() {
            kept.done();
            return Kept::nothing(body);
        }
        Kept { body, kept: Some(kept) }
    }
}

impl<B: Body> Body for Kept<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        // A body that panics has failed, also where somebody catches the panic before this is dropped.
        let set_being_read = |kept: &mut Option<Keeping>, is_being_read| {
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

impl<B: Body> fmt::Debug for Kept<B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Kept").field("keeps_place", &self.kept.is_some()).finish_non_exhaustive()
    }
}
