//! One RESP connection: each turn reads what is available, answers all complete requests and writes once.
//!
//! A thread has one pair of buffers for all of its connections. The connection itself keeps only an incomplete request
//! and replies that could not be written. An idle connection keeps no buffer.
//!
//! ```text
//!   poll: write the rest --> replies of the store --> read --> session.run --> write
//!                  ^                                                           |
//!                  '------ has_more: yield to other connections first <--------'
//! ```
//!
//! No request is executed before the socket has accepted all earlier replies. A client
//! that does not read its replies stops being read, so its memory is bounded by one turn.

use std::cell::RefCell;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop::has_budget_remaining;
use tokio::task::yield_now;
use tokio::time::{Instant, Sleep, sleep};

use super::parse::{Caller, MAX_UNAUTHENTICATED_REQUEST_BYTES};
use super::reply::{Protocol, Replies};
use super::session::{Next, Scratch, Session};
use crate::unfinished::Share;
use crate::worker::WorkerContext;

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// The bytes of replies for which a thread's buffer keeps its capacity.
const WRITE_BYTES: usize = 64 << 10;

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::new());
}

/// The buffers of a thread, used by one connection at a time.
struct Buffers {
    /// The bytes of one read.
    input: Box<[u8]>,
    /// The replies of one turn.
    output: Vec<u8>,
    /// The reusable memory of sessions.
    scratch: Scratch,
    /// True while a connection is served. Still true afterwards if serving it panicked.
    is_in_use: bool,
}

impl Buffers {
    /// Allocates the buffers. A thread does so once, unless a panic replaces them.
    fn new() -> Buffers {
        let input = vec![0; READ_BYTES].into_boxed_slice();
        Buffers {
            input,
            output: Vec::with_capacity(WRITE_BYTES),
            scratch: Scratch::default(),
            is_in_use: false,
        }
    }

    /// Serves one connection. Replaces the buffers if serving another connection panicked, so that none of its data is
    /// left.
    #[inline]
    fn serve<R>(&mut self, serve: impl FnOnce(&mut Buffers) -> R) -> R {
        if self.is_in_use {
            *self = Buffers::new();
        }
        self.is_in_use = true;
        let served = serve(self);
        self.is_in_use = false;
        served
    }
}

/// A future that serves one client and resolves when the connection has ended.
///
/// It owns everything that one client makes the server hold. Dropping it closes the socket, returns its share of
/// the bytes of unfinished requests, and releases the permits of unwritten replies. It is polled by one task, and
/// never moves to another thread.
pub(super) struct Connection {
    /// The socket.
    stream: TcpStream,
    /// The worker that serves the connection.
    worker: Arc<WorkerContext>,
    /// The state of the client.
    session: Session,
    /// Input that is not executed yet: an incomplete request, or requests that wait until earlier replies are sent.
    input: Vec<u8>,
    /// This connection's share of the bytes of unfinished requests.
    share: Share,
    /// The length of `input` below which it cannot contain a complete request.
    needed: usize,
    /// Replies that are not written yet, from `written` on.
    output: Vec<u8>,
    /// The number of bytes of `output` that are written.
    written: usize,
    /// The end that follows once all replies are written.
    ending: Option<ConnectionEnd>,
    /// True if more input may be available and the connection yields to others first.
    has_more: bool,
    /// True if `input` is executed again before the next read, even if it is empty: replies of the store have arrived.
    goes_on: bool,
    /// The timer of the client's current timeout.
    timer: Pin<Box<Sleep>>,
    /// True if the timer wakes this task; one poll is enough for that.
    is_timer_set: bool,
    /// The step that the timeout is for.
    waits_for: ClientWait,
    /// True if a request was answered, or all replies were written, since the timer was set.
    is_active: bool,
    /// Resolves when the server stops; `None` after that.
    stopped: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// True if the stop signal wakes this task.
    is_stop_awaited: bool,
}

/// The way in which a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// The client or the server closed it regularly.
    Closed,
    /// The server cut it off: a protocol error, wrong tokens, a timeout, or too many bytes of unfinished requests.
    CutOff,
}

/// The step that the client has to take before its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientWait {
    /// Authenticate, whatever else it sends meanwhile.
    Token,
    /// Send a request.
    Request,
    /// Send the rest of a request.
    Rest,
    /// Read its replies.
    Reading,
}

impl Connection {
    /// Creates a connection. The timeout of its first step starts now, and it allocates no buffers before the first
    /// incomplete request.
    pub(super) fn new(stream: TcpStream, worker: &Arc<WorkerContext>) -> Connection {
        let mut session = Session::new(worker);
        if worker.engine.audit().is_on() {
            session.address = stream.peer_addr().ok();
        }
        // A client of a server with a token has to authenticate within the request timeout.
        let first = if worker.engine.token().is_some() { ClientWait::Token } else { ClientWait::Request };
        Connection {
            stream,
            timer: Box::pin(sleep(client_timeout(worker, first))),
            is_timer_set: false,
            stopped: Some(Box::pin(worker.stopped())),
            is_stop_awaited: false,
            worker: worker.clone(),
            session,
            input: Vec::new(),
            share: worker.engine.unfinished().share(),
            needed: 0,
            output: Vec::new(),
            written: 0,
            ending: None,
            has_more: false,
            goes_on: false,
            waits_for: first,
            is_active: false,
        }
    }

    /// Writes the replies that could not be written before.
    ///
    /// A write of 0 bytes counts as a closed connection. The buffer is freed once it is written, since idle
    /// connections keep none.
    fn poll_write_rest(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionEnd>> {
        while self.written < self.output.len() {
            let rest = &self.output[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest)) {
                Ok(bytes) if bytes > 0 => self.written += bytes,
                _ => return Poll::Ready(Err(ConnectionEnd::Closed)),
            }
        }
        if self.written > 0 {
            self.output = Vec::new();
            self.written = 0;
            self.is_active = true;
            self.session.unsent.sent();
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and answers all complete requests.
    ///
    /// If nothing was kept before, requests are parsed in the buffer of the thread, and only the incomplete rest is
    /// copied. If the read filled the buffer, more input is assumed, and the connection yields first.
    fn poll_read_and_answer(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut Buffers,
    ) -> Poll<Result<(), ConnectionEnd>> {
        let room = self.room();
        let mut read = ReadBuf::new(&mut buffers.input[..room]);
        if ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)).is_err() {
            return Poll::Ready(Err(ConnectionEnd::Closed));
        }
        let bytes = read.filled().len();
        if bytes == 0 {
            return Poll::Ready(Err(ConnectionEnd::Closed));
        }
        self.has_more = bytes == room;
        if self.input.is_empty() {
            let Buffers { input, output, scratch, .. } = buffers;
            let rest = self.answer(&input[..bytes], scratch, output);
            self.keep(&input[bytes - rest..bytes]);
        } else {
            self.keep(&buffers.input[..bytes]);
            self.answer_kept(buffers);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns how many bytes are read at once. For an unauthenticated client, the bytes that it may still hold.
    #[inline]
    fn room(&self) -> usize {
        match self.session.caller {
            Caller::Known => READ_BYTES,
            // Never more than one request is kept, so at least one byte fits.
            Caller::Unauthenticated => {
                MAX_UNAUTHENTICATED_REQUEST_BYTES.saturating_sub(self.input.len()).max(1)
            }
        }
    }

    /// Keeps bytes of an unfinished request. The buffer doubles, but grows by at most one read; for an unauthenticated
    /// client it grows by exactly these bytes.
    ///
    /// Doubling keeps the cost of copying linear in the length of the request.
    fn keep(&mut self, bytes: &[u8]) {
        if self.input.capacity() - self.input.len() < bytes.len() {
            let growth = match self.session.caller {
                Caller::Known => self.input.len().min(READ_BYTES),
                Caller::Unauthenticated => 0,
            };
            self.input.reserve_exact(growth.max(bytes.len()));
        }
        self.input.extend_from_slice(bytes);
    }

    /// Counts the memory of this connection's unfinished requests. Ends the connection if all together exceed the
    /// bound.
    #[inline]
    fn count_kept(&mut self, output: &mut Vec<u8>) {
        // Pending replies have to be sent before an error.
        if self.session.is_waiting() {
            return;
        }
        let kept = self.input.capacity() + self.session.held_bytes();
        if let Err(too_much) = self.share.hold(kept) {
            let text = format!(
                "ERR unfinished requests of all connections hold more than {} bytes; send whole requests, or try again later",
                too_much.at_most
            );
            Replies::new(output, Protocol::Resp2).error(&text);
            self.input = Vec::new();
            self.ending = Some(ConnectionEnd::CutOff);
        }
    }

    /// Answers the complete requests in `input`.
    ///
    /// Does nothing while the input is shorter than the parser asked for: it could not contain a complete request.
    fn answer_kept(&mut self, buffers: &mut Buffers) {
        if self.input.len() < self.needed {
            return;
        }
        let kept = mem::take(&mut self.input);
        let rest = self.answer(&kept, &mut buffers.scratch, &mut buffers.output);
        self.input = match rest {
            0 => Vec::new(),
            all if all == kept.len() => kept,
            _ => kept[kept.len() - rest..].to_vec(),
        };
    }

    /// Answers the complete requests. Returns how many bytes are left.
    ///
    /// After the end of the session the rest of the input is dropped.
    fn answer(&mut self, input: &[u8], scratch: &mut Scratch, output: &mut Vec<u8>) -> usize {
        let progress = self.session.run(input, &self.worker, scratch, output);
        self.is_active |= progress.bytes > 0;
        self.needed = 0;
        match progress.next {
            Next::Read { bytes } => self.needed = bytes,
            Next::Send => {
                self.has_more = true;
                self.goes_on |= self.session.stretch.is_open();
            }
            Next::Wait => self.goes_on = true,
            Next::End => self.ending = Some(ConnectionEnd::Closed),
            Next::CutOff => self.ending = Some(ConnectionEnd::CutOff),
        }
        if self.ending.is_some() { 0 } else { input.len() - progress.bytes }
    }

    /// Writes the thread's replies, and keeps the bytes that the socket does not accept now.
    ///
    /// In the usual case the socket accepts everything, and nothing is copied.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        output: &mut Vec<u8>,
    ) -> Poll<Result<(), ConnectionEnd>> {
        let mut written = 0;
        let result = loop {
            if written == output.len() {
                self.session.unsent.sent();
                break Poll::Ready(Ok(()));
            }
            match Pin::new(&mut self.stream).poll_write(context, &output[written..]) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => written += bytes,
                Poll::Ready(_) => break Poll::Ready(Err(ConnectionEnd::Closed)),
                Poll::Pending => {
                    self.output.extend_from_slice(&output[written..]);
                    break Poll::Pending;
                }
            }
        };
        output.clear();
        output.shrink_to(WRITE_BYTES);
        result
    }

    /// Reads, answers and writes until it has to wait for the socket or the store, or its turn is over.
    ///
    /// One turn executes at most one read of input. A connection with more input lets the other tasks of the thread
    /// run first, so that one fast client cannot starve the others.
    fn poll_serve(&mut self, context: &mut Context<'_>) -> Poll<ConnectionEnd> {
        loop {
            if let Err(end) = ready!(self.poll_write_rest(context)) {
                return Poll::Ready(end);
            }
            if let Some(end) = self.ending {
                return Poll::Ready(end);
            }
            self.has_more = false;
            let serve = |buffers: &mut Buffers| {
                if self.session.is_waiting() {
                    // The remote store has a deadline. A client that closes its side meanwhile is noticed after that:
                    // it may have sent all of its requests, and still read the replies.
                    ready!(self.session.later.poll(context));
                    self.session.unsent.append(self.session.later.tell(&mut buffers.output));
                } else if mem::take(&mut self.goes_on) {
                    self.answer_kept(buffers);
                } else if self.input.is_empty() || self.input.len() < self.needed {
                    if let Err(end) = ready!(self.poll_read_and_answer(context, buffers)) {
                        return Poll::Ready(Err(end));
                    }
                } else {
                    self.answer_kept(buffers);
                }
                self.count_kept(&mut buffers.output);
                self.poll_write(context, &mut buffers.output)
            };
            let went = BUFFERS.with_borrow_mut(|buffers| buffers.serve(serve));
            if let Err(end) = ready!(went) {
                return Poll::Ready(end);
            }
            if self.has_more && self.ending.is_none() {
                // Other tasks of the thread run before this one is woken again.
                let _ = pin!(yield_now()).poll(context);
                return Poll::Pending;
            }
        }
    }

    /// Resolves when the client's current timeout has expired.
    ///
    /// A request that is complete, or replies that are written, count as activity and start the timeout anew.
    /// Single bytes of a request do not: a client cannot extend its request timeout by sending slowly. The timeout
    /// of authentication is never extended.
    fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let waits_for = match () {
            () if self.session.caller == Caller::Unauthenticated => ClientWait::Token,
            () if !self.output.is_empty() => ClientWait::Reading,
            () if !self.input.is_empty() => ClientWait::Rest,
            () => ClientWait::Request,
        };
        if waits_for != self.waits_for {
            self.waits_for = waits_for;
            self.reset_timer();
        }
        while self.poll_timer(context).is_ready() {
            if !self.is_active || self.waits_for == ClientWait::Token {
                return Poll::Ready(());
            }
            self.reset_timer();
        }
        Poll::Pending
    }

    /// Resolves when the timer has expired. Usually it costs one comparison.
    #[inline]
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_timer_set && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        // A task without coop budget gets `Pending` before the timer registers its waker.
        self.is_timer_set = has_budget_remaining();
        self.timer.as_mut().poll(context)
    }

    /// Starts the timeout of the current step anew.
    fn reset_timer(&mut self) {
        self.is_active = false;
        self.is_timer_set = false;
        let until = Instant::now() + client_timeout(&self.worker, self.waits_for);
        self.timer.as_mut().reset(until);
    }

    /// Resolves when the server stops. One poll is enough to be woken then.
    ///
    /// Afterwards the connection closes as soon as its requests are answered.
    fn poll_stop(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(stopped) = &mut self.stopped {
            if self.is_stop_awaited && !self.worker.engine.is_stopping() {
                return Poll::Pending;
            }
            self.is_stop_awaited = true;
            ready!(stopped.as_mut().poll(context));
            self.stopped = None;
        }
        Poll::Ready(())
    }
}

impl Future for Connection {
    type Output = ConnectionEnd;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let connection = self.get_mut();
        // Check the authentication timeout first: a client that pipelines without pause could postpone it for ever.
        if connection.waits_for == ClientWait::Token && connection.poll_timer(context).is_ready() {
            return Poll::Ready(ConnectionEnd::CutOff);
        }
        if let Poll::Ready(end) = connection.poll_serve(context) {
            return Poll::Ready(end);
        }
        // While store replies are pending, no client timeout runs and shutdown waits for them.
        if connection.session.is_waiting() {
            return Poll::Pending;
        }
        // All input that was read is answered. Unwritten replies keep their write timeout during shutdown.
        let is_done = connection.output.is_empty() && !connection.has_more;
        if connection.poll_stop(context).is_ready() && is_done {
            return Poll::Ready(ConnectionEnd::Closed);
        }
        connection.poll_time(context).map(|()| ConnectionEnd::CutOff)
    }
}

/// Returns the client's timeout for a step.
fn client_timeout(worker: &WorkerContext, wait: ClientWait) -> Duration {
    let bounds = &worker.engine.settings().bounds;
    match wait {
        ClientWait::Request => bounds.idle_timeout,
        ClientWait::Token | ClientWait::Rest => bounds.request_timeout,
        ClientWait::Reading => bounds.write_timeout,
    }
}

#[cfg(test)]
mod tests;
