//! The socket of a connection, as hyper sees it.
//!
//! It records when bytes arrive and when a response is written. hyper's own response to an invalid head has no body. It
//! is discarded, and [`HttpEnd`](super::end::HttpEnd) sends a problem instead.
//!
//! While a reply is held for its delay, a client that closes its side is gone: the connection ends, and with it the
//! request. A client whose request is being decided may close its sending side, and gets its response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;

use super::link::{Link, Stage};
use super::preread::PrereadBytes;

/// The socket, with the stages of its connection.
#[derive(Debug)]
pub(super) struct Wire {
    /// The socket, with the traits of hyper.
    stream: TokioIo<TcpStream>,
    /// Bytes that were read before hyper got the socket.
    opening: PrereadBytes,
    /// The state that reads and writes are recorded in.
    link: Arc<Link>,
}

impl Wire {
    /// Wraps a socket. `opening` has the bytes that were read from it already.
    pub(super) fn new(stream: TcpStream, opening: PrereadBytes, link: Arc<Link>) -> Wire {
        Wire { stream: TokioIo::new(stream), opening, link }
    }

    /// Returns the socket, after hyper is done with it.
    pub(super) fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// Fails if the client has closed its side. Behind a pipelined request that is not visible yet.
    #[cold]
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut byte = [0];
        match self.stream.inner().poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    /// Returns true if these bytes are hyper's own error response, since the service has given none.
    ///
    /// hyper writes such a response before any request was passed to the service, so the stage is one without a
    /// request.
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

    /// Fails if the client of a held reply is gone. Apart from that it does nothing: the socket has no buffer of its own.
    ///
    /// hyper flushes whenever it is polled. It does not read before the response is written, so nothing else would find
    /// the end of the stream.
    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.link.stage() {
            Stage::Held => self.get_mut().poll_gone(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Does nothing: [`HttpEnd`](super::end::HttpEnd) may still send a response, and closes the socket.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
