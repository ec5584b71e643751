//! The socket of a connection, as hyper sees it.
//!
//! It notes when something arrives and when an answer has left. What hyper would answer by itself, when a head is not
//! one, has no body; it is held back, and [`End`](super::end::End) says what was wrong.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::link::{Link, Stage};
use super::opening::Opening;

#[derive(Debug)]
pub(super) struct Wire {
    stream: TokioIo<TcpStream>,
    /// What was read before hyper was there.
    opening: Opening,
    link: Arc<Link>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, opening: Opening, link: Arc<Link>) -> Wire {
        Wire { stream: TokioIo::new(stream), opening, link }
    }

    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// Whether hyper answers although it was given no answer.
    fn is_unasked(&self, bytes: &[u8]) -> bool {
        matches!(self.link.stage(), Stage::Fresh | Stage::Idle | Stage::Head)
            && bytes.starts_with(b"HTTP/1.1 4")
    }
}

impl Read for Wire {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        if wire.opening.is_empty() {
            ready!(Pin::new(&mut wire.stream).poll_read(cx, buffer))?;
        } else {
            wire.opening.take(buffer.remaining(), |bytes| buffer.put_slice(bytes));
        }
        if matches!(wire.link.stage(), Stage::Fresh | Stage::Idle) {
            wire.link.enter(Stage::Head);
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wire = self.get_mut();
        if wire.is_unasked(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(Pin::new(&mut wire.stream).poll_write(cx, bytes))?;
        if written == bytes.len() && wire.link.stage() == Stage::Answer {
            wire.link.answered();
        }
        Poll::Ready(Ok(written))
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Nothing: there may be something left to say.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
