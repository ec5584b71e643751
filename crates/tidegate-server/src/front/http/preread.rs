//! The first bytes of a client that has to authenticate, until the head of its request is complete.
//!
//! hyper has buffers of its own, and a client that sends half a head could make it hold them. If the server has a
//! token, hyper gets no bytes before it can decide; until then a connection holds only these bytes. A request without
//! the token is the last of its connection, so hyper never waits for an unauthenticated client.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::MAX_HEAD_BYTES;
use super::end::HttpEnd;
use super::link::{Link, Stage};
use super::watch::Watch;

/// The maximum number of bytes that an unauthenticated client can make the server hold: the longest head.
pub(super) const MAX_UNAUTHENTICATED_BYTES: usize = MAX_HEAD_BYTES;

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 4 << 10;

/// Bytes that were read and not yet passed to hyper.
///
/// At most [`MAX_UNAUTHENTICATED_BYTES`]; the capacity is not larger than the content.
#[derive(Debug, Default)]
pub(super) struct PrereadBytes {
    /// The bytes, without empty lines before the request.
    bytes: Vec<u8>,
    /// The number of bytes that were searched without a result.
    searched: usize,
    /// True if the first line is complete.
    has_line: bool,
}

impl PrereadBytes {
    /// Reads until hyper can decide, or the stream ends.
    ///
    /// Returns an end if the client is too slow, or if the server stops before the first byte.
    pub(super) async fn read(
        stream: &mut (impl AsyncRead + Unpin),
        link: &Link,
    ) -> Result<PrereadBytes, HttpEnd> {
        let mut opening = PrereadBytes::default();
        let mut stopped = pin!(link.worker.stopped());
        let (mut is_asked, mut watch) = (false, Watch::new(link));
        poll_fn(|cx: &mut Context<'_>| {
            if !is_asked {
                // One poll is enough to register the waker.
                is_asked = true;
                let _ = stopped.as_mut().poll(cx);
            }
            while let Poll::Ready(bytes) = opening.poll_read(stream, cx) {
                if bytes == 0 || opening.is_decisive() {
                    return Poll::Ready(Ok(()));
                }
                if link.stage() == Stage::Fresh {
                    link.enter(Stage::Head);
                }
            }
            if opening.bytes.is_empty() && link.worker.engine.is_stopping() {
                return Poll::Ready(Err(HttpEnd::Well));
            }
            watch.poll(link, cx).map(|stage| Err(HttpEnd::TooSlow(stage)))
        })
        .await?;
        Ok(opening)
    }

    /// Returns the number of bytes that were read; 0 at the end of the stream. The buffer grows by exactly these bytes.
    fn poll_read(&mut self, stream: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<usize> {
        let mut room = [0; READ_BYTES];
        let room = &mut room[..READ_BYTES.min(MAX_UNAUTHENTICATED_BYTES - self.bytes.len())];
        let mut read = ReadBuf::new(room);
        // hyper gets the same error from its own read.
        Pin::new(stream).poll_read(cx, &mut read).map(|_| {
            let read = read.filled();
            // Empty lines before a request are ignored.
            let blank = |byte: &u8| self.bytes.is_empty() && matches!(byte, b'\r' | b'\n');
            let kept = &read[read.iter().take_while(|byte| blank(byte)).count()..];
            self.bytes.reserve_exact(kept.len());
            self.bytes.extend_from_slice(kept);
            read.len()
        })
    }

    /// Returns true if these bytes are a complete head, too long for one, or not HTTP. The search
    /// continues where the last one stopped.
    fn is_decisive(&mut self) -> bool {
        let new = &self.bytes[self.searched..];
        if !self.has_line {
            let end = new.iter().position(|byte| *byte == b'\n');
            let is_line = |line: &[u8]| line.windows(VERSION.len()).any(|window| window == VERSION);
            let is_none = match end {
                Some(end) => !is_line(&self.bytes[..self.searched + end]),
                None => new.iter().any(|byte| byte.is_ascii_control() && *byte != b'\r'),
            };
            if is_none {
                return true;
            }
            self.has_line = end.is_some();
        }
        let has_end = |end: &[u8]| new.windows(end.len()).any(|window| window == end);
        let is_whole = has_end(b"\n\r\n") || has_end(b"\n\n");
        // The last two bytes may be a part of the end of the head.
        self.searched = self.bytes.len().saturating_sub(2);
        is_whole || self.bytes.len() >= MAX_UNAUTHENTICATED_BYTES
    }

    /// Moves at most `room` bytes. Returns how many were moved.
    ///
    /// The memory is freed with the last byte.
    pub(super) fn take(&mut self, room: usize, mut put: impl FnMut(&[u8])) -> usize {
        let count = room.min(self.bytes.len());
        put(&self.bytes[..count]);
        if count == self.bytes.len() {
            *self = PrereadBytes::default();
        } else {
            self.bytes.drain(..count);
        }
        count
    }

    /// Returns true if all bytes were moved.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// A part of the first line of every request.
const VERSION: &[u8] = b" HTTP/1.";

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::bench::{Bench, connected, turn};
    use crate::front::Scope;
    use crate::settings::{Bounds, Settings, Token};

    fn decides(bytes: &[u8]) -> bool {
        PrereadBytes { bytes: bytes.to_vec(), ..PrereadBytes::default() }.is_decisive()
    }

    #[test]
    fn hyper_gets_what_is_whole_what_is_none_and_what_is_too_long() {
        for whole in ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\n\n", "POST /x HTTP/1.1\r\na: b\r\n\r\nbody"]
        {
            assert!(decides(whole.as_bytes()), "{whole}");
        }
        for none in ["PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/2\r\n", "\x16\x03\x01", "GET \0"] {
            assert!(decides(none.as_bytes()), "{none:?}");
        }
        let head = |bytes: usize| format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(bytes - 19));
        assert!(decides(head(MAX_UNAUTHENTICATED_BYTES).as_bytes()));
        assert!(!decides(head(MAX_UNAUTHENTICATED_BYTES - 1).as_bytes()));
        for part in [
            "",
            "G",
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\na: b\r\n\r",
        ] {
            assert!(!decides(part.as_bytes()), "{part:?}");
        }
    }

    #[test]
    fn a_head_in_any_pieces_is_as_decisive_as_the_whole() {
        let head = "\r\n\r\nGET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let bench = Bench::new(Settings::default());
        let link = Link::new(bench.worker.clone(), Scope::All);
        bench.runtime.block_on(async {
            for size in 1..=head.len() {
                let (mut stream, mut client) = connected().await;
                let mut reading = Box::pin(PrereadBytes::read(&mut stream, &link));
                for piece in head.as_bytes().chunks(size) {
                    client.write_all(piece).await.expect("it fits into the socket");
                }
                let opening = reading.as_mut().await.expect("nothing ends it");
                assert_eq!(opening.bytes, head.trim_start().as_bytes());
            }
        });
    }

    #[test]
    fn an_unfinished_head_without_a_token_holds_16_kib_at_most_and_no_hyper() {
        assert_eq!(MAX_UNAUTHENTICATED_BYTES, 16 << 10);
        let bounds = Bounds { request_timeout: Duration::from_secs(3600), ..Bounds::default() };
        let bench = Bench::new(Settings { token: Token::new("sesame"), bounds, ..Settings::default() });
        let link = Arc::new(Link::new(bench.worker.clone(), Scope::All));
        let head = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(MAX_UNAUTHENTICATED_BYTES - 20));
        bench.runtime.block_on(async {
            let (mut stream, mut client) = connected().await;
            let mut opening = PrereadBytes::default();
            let mut waiting = Box::pin(PrereadBytes::read(&mut stream, &link));
            client.write_all(head.as_bytes()).await.expect("it fits into the socket");
            for _ in 0..100 {
                assert!(turn(&mut waiting).await.is_pending(), "it waits for the rest");
            }
            drop(waiting);
            let (mut stream, mut client) = connected().await;
            for piece in head.as_bytes().chunks(1000) {
                client.write_all(piece).await.expect("it fits into the socket");
                let read = poll_fn(|cx| opening.poll_read(&mut stream, cx)).await;
                assert!(read > 0 && !opening.is_decisive());
                assert!(opening.bytes.capacity() <= MAX_UNAUTHENTICATED_BYTES);
            }
        });
    }
}
