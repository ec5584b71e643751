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
        body: Kind<B>,
    }
}

pin_project! {
    /// Most responses are the service's and hold nothing. They are moved several times on their way out, so what is rare is
    /// in a box: around a boxed body this is no larger than that body.
    #[project = KindProjection]
    enum Kind<B> {
        Theirs { #[pin] body: B },
        Rare { rare: Pin<Box<Rare<B>>> },
    }
}

pin_project! {
    #[project = RareProjection]
    enum Rare<B> {
        Ours { bytes: Bytes },
        Holding { #[pin] body: B, held: Option<Held> },
    }
}

impl<B> Answered<B> {
    /// A body of our own.
    pub(crate) fn ours(bytes: Bytes) -> Answered<B> {
        Answered::rare(Rare::Ours { bytes })
    }

    /// The body of the service.
    #[inline]
    pub(crate) fn theirs(body: B) -> Answered<B> {
        Answered { body: Kind::Theirs { body } }
    }

    /// The body of the service, and what is held until it has ended or was dropped.
    #[inline]
    pub(crate) fn theirs_holding(body: B, held: Option<Held>) -> Answered<B> {
        match held {
            None => Answered::theirs(body),
            held => Answered::rare(Rare::Holding { body, held }),
        }
    }

    fn rare(rare: Rare<B>) -> Answered<B> {
        Answered { body: Kind::Rare { rare: Box::pin(rare) } }
    }

    /// The body of the service, or the bytes in its place.
    fn of_service(&self) -> Result<&B, &Bytes> {
        match &self.body {
            Kind::Theirs { body } => Ok(body),
            Kind::Rare { rare } => match &**rare {
                Rare::Ours { bytes } => Err(bytes),
                Rare::Holding { body, .. } => Ok(body),
            },
        }
    }

    /// Whether it is not the service's, which was never asked.
    pub fn is_refusal(&self) -> bool {
        self.of_service().is_err()
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
        let rare = match self.project().body.project() {
            KindProjection::Theirs { body } => return body.poll_frame(context),
            KindProjection::Rare { rare } => rare.as_mut().project(),
        };
        match rare {
            RareProjection::Ours { bytes } if bytes.is_empty() => Poll::Ready(None),
            RareProjection::Ours { bytes } => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes).into()))))
            }
            RareProjection::Holding { body, held } => {
                let frame = body.poll_frame(context);
                if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
                    *held = None;
                }
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.of_service() {
            Ok(body) => body.is_end_stream(),
            Err(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.of_service() {
            Ok(body) => body.size_hint(),
            Err(bytes) => SizeHint::with_exact(bytes.len() as u64),
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
