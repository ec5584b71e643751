//! The body of a response: the service's, or ours in its place.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// Something that is held until a response is over; dropping it gives it back.
pub(crate) type Held = Box<dyn Send + Sync>;

pin_project! {
    /// The body of a response that came through a layer: the service's own, or that of a refusal.
    pub struct Answered<B> {
        #[pin]
        body: Either<B>,
        held: Option<Held>,
    }
}

pin_project! {
    #[project = EitherProjection]
    enum Either<B> {
        Ours { bytes: Bytes },
        Theirs { #[pin] body: B },
    }
}

impl<B> Answered<B> {
    /// A body of our own.
    pub(crate) fn ours(bytes: Bytes) -> Answered<B> {
        Answered { body: Either::Ours { bytes }, held: None }
    }

    /// The body of the service.
    #[inline]
    pub(crate) fn theirs(body: B) -> Answered<B> {
        Answered { body: Either::Theirs { body }, held: None }
    }

    /// The body of the service, and what is held until it has ended or was dropped.
    #[inline]
    pub(crate) fn theirs_holding(body: B, held: Option<Held>) -> Answered<B> {
        Answered { body: Either::Theirs { body }, held }
    }

    /// Whether it is not the service's, which was never asked.
    pub fn is_refusal(&self) -> bool {
        matches!(self.body, Either::Ours { .. })
    }
}

/// On a response that a layer of ours gave in place of the service's, which was never asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OurRefusal;

/// A response of our own, which layers further out tell from the service's by what it carries.
pub(crate) fn refusal<B>(mut response: Response<Bytes>) -> Response<Answered<B>> {
    response.extensions_mut().insert(OurRefusal);
    response.map(Answered::ours)
}

impl<B> Body for Answered<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = match this.body.project() {
            EitherProjection::Ours { bytes } if bytes.is_empty() => Poll::Ready(None),
            EitherProjection::Ours { bytes } => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes).into()))))
            }
            EitherProjection::Theirs { body } => body.poll_frame(context),
        };
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            *this.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Ours { bytes } => bytes.is_empty(),
            Either::Theirs { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Ours { bytes } => SizeHint::with_exact(bytes.len() as u64),
            Either::Theirs { body } => body.size_hint(),
        }
    }
}

/// Empty, and ours.
impl<B> Default for Answered<B> {
    fn default() -> Answered<B> {
        Answered::ours(Bytes::new())
    }
}

impl<B> fmt::Debug for Answered<B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Answered").field("is_refusal", &self.is_refusal()).finish_non_exhaustive()
    }
}
