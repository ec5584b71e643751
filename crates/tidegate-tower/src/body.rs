//! The body of a response: that of the service, or that of a denial.
//!
//! A layer changes the body type of a service, because a denial has a body of its own. [`Answered`] is that type: an
//! enum of the two, which implements [`Body`] with the data and error types of the service.
//!
//! A permit that lasts until a response is over travels in the body. The body is the only part of a response that is
//! dropped exactly when the response has ended, or when the client has disconnected.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// A value that is held until a response is over. Dropping it releases what it holds.
pub(crate) type Held = Box<dyn Send + Sync>;

pin_project! {
    /// The body of a response from a layer of this crate: that of the service, or that of a denial.
    ///
    /// It implements [`Body`] for every body whose data can be made of [`Bytes`], such as those of axum, hyper and
    /// tonic. A denial is one frame without trailers, so it has an exact size.
    pub struct Answered<B> {
        #[pin]
        body: Kind<B>,
    }
}

pin_project! {
    /// Most responses are those of the service and hold nothing. They are moved several times, so the rare variants are
    /// boxed: around a boxed body this type is no larger than that body.
    #[project = KindProjection]
    enum Kind<B> {
        Theirs { #[pin] body: B },
        Rare { rare: Pin<Box<Rare<B>>> },
    }
}

pin_project! {
    #[project = RareProjection]
    enum Rare<B> {
        /// The body of a denial; empty once it was read.
        Ours { bytes: Bytes },
        /// A body of the service, with a value that is dropped when the body ends. `None` once it has ended.
        Holding { #[pin] body: B, held: Option<Held> },
    }
}

impl<B> Answered<B> {
    /// Returns a body of this crate.
    pub(crate) fn ours(bytes: Bytes) -> Answered<B> {
        Answered::rare(Rare::Ours { bytes })
    }

    /// Returns the body of the service.
    #[inline]
    pub(crate) fn theirs(body: B) -> Answered<B> {
        Answered { body: Kind::Theirs { body } }
    }

    /// Returns the body of the service, with a value that is held until the body has ended or is dropped.
    #[inline]
    pub(crate) fn theirs_holding(body: B, held: Option<Held>) -> Answered<B> {
        match held {
            None => Answered::theirs(body),
            held => Answered::rare(Rare::Holding { body, held }),
        }
    }

    /// Returns a boxed variant, which costs one allocation.
    fn rare(rare: Rare<B>) -> Answered<B> {
        Answered { body: Kind::Rare { rare: Box::pin(rare) } }
    }

    /// Returns the body of the service, or the bytes in its place.
    fn of_service(&self) -> Result<&B, &Bytes> {
        match &self.body {
            Kind::Theirs { body } => Ok(body),
            Kind::Rare { rare } => match &**rare {
                Rare::Ours { bytes } => Err(bytes),
                Rare::Holding { body, .. } => Ok(body),
            },
        }
    }

    /// Returns true if this is the body of a denial, for which the service was not called.
    ///
    /// An outer layer can use it, for example to log denials apart from errors of the service. An empty body that was
    /// made by `default` is one, too.
    pub fn is_denial(&self) -> bool {
        self.of_service().is_err()
    }
}

/// An extension of responses that a layer of this crate made without a call of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnDenial;

/// Returns a response of this crate. The extension [`OwnDenial`] marks it for outer layers.
pub(crate) fn denial<B>(mut response: Response<Bytes>) -> Response<Answered<B>> {
    response.extensions_mut().insert(OwnDenial);
    response.map(Answered::ours)
}

impl<B> Body for Answered<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    /// Polls the body. The end of the body, and an error of it, release the value that is held; so does a drop.
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

/// An empty body of this crate.
impl<B> Default for Answered<B> {
    fn default() -> Answered<B> {
        Answered::ours(Bytes::new())
    }
}

impl<B> fmt::Debug for Answered<B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Answered").field("is_denial", &self.is_denial()).finish_non_exhaustive()
    }
}
