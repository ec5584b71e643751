//! Pending replies: several commands ask a remote store at once, and are answered in the order of their requests.
//!
//! Each store future is polled once. A store in memory is ready by then, and the reply is written. For a remote store
//! the reply keeps its position. Pipelined takes are sent together. A command that peeks or changes something waits for
//! the replies of all commands before it, and those after it wait for its own. So a client sees its requests executed
//! in order. No more input is read meanwhile, and the store has a deadline, so the wait and the memory are bounded.
//!
//! ```text
//!   requests:  TAKE a   TAKE b   PEEK c   TAKE d      (a remote store)
//!   sent:      together-------  alone    after c
//!   replies:   a, b, c, d: in the order of the requests
//! ```

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate::StoreError;

use super::command::Spec;
use super::parse::Words;
use super::reply::{Protocol, Replies, UNDECIDED};
use super::session::{Call, Session};
use super::unsent::UnsentPermits;
use crate::engine::{Engine, not_available};
use crate::permit::Permits;
use crate::worker::WorkerContext;

/// The maximum number of replies that are pending at once.
pub(super) const MAX_WAITING: usize = 64;

/// A reply that a store is asked for.
type Coming = Pin<Box<dyn Future<Output = PendingReply> + Send>>;

/// The bytes of a reply, and the permits that it contains.
pub(super) struct PendingReply {
    /// The encoded reply.
    bytes: Vec<u8>,
    /// The permits in these bytes.
    unsent: UnsentPermits,
}

impl PendingReply {
    /// Builds the reply from the store's result; an error becomes an error reply. `tell` returns the permits it wrote.
    ///
    /// If the reply is never written, dropping it releases the permits.
    pub(super) fn new<T>(
        answer: Result<T, StoreError>,
        protocol: Protocol,
        engine: &Arc<Engine>,
        tell: impl FnOnce(&mut Replies<'_>, T) -> Option<Permits>,
    ) -> PendingReply {
        let mut unsent = UnsentPermits::default();
        let bytes = written(protocol, |replies| match answer {
            Ok(answer) => unsent.note(tell(replies, answer), engine),
            Err(error) => replies.error(&format!("ERR {}", not_available(&error))),
        });
        PendingReply { bytes, unsent }
    }

    /// Writes the reply. Returns the permits that it contains.
    fn write(self, replies: &mut Replies<'_>) -> UnsentPermits {
        if self.bytes.is_empty() {
            replies.error(UNDECIDED);
        }
        replies.append(&self.bytes);
        self.unsent
    }
}

/// Converts an encoded reply without permits.
impl From<Vec<u8>> for PendingReply {
    fn from(bytes: Vec<u8>) -> PendingReply {
        PendingReply { bytes, unsent: UnsentPermits::default() }
    }
}

/// The pending replies of one client.
///
/// At most [`MAX_WAITING`] replies are pending. The bytes of complete replies between them are bounded by one turn
/// of the connection.
#[derive(Default)]
pub(super) struct PendingReplies {
    /// Replies that are complete, before, between and after the pending ones.
    text: Vec<u8>,
    /// Pending replies, each with its position in `text`.
    slots: Vec<(usize, Slot)>,
    /// True if the last pending command makes later store commands wait.
    is_alone: bool,
    /// The bytes of keys that are not processed yet.
    held_bytes: usize,
}

/// The place of one pending reply.
enum Slot {
    /// The store has not replied yet.
    Coming(Coming),
    /// The store has replied; earlier replies may still be pending.
    There(PendingReply),
}

impl PendingReplies {
    /// Returns true while a reply is pending.
    pub(super) fn is_waiting(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Returns true if a command of this name has to wait for the pending replies.
    pub(super) fn holds_up(&self, name: &[u8]) -> bool {
        self.is_waiting()
            && Spec::named(name).and_then(|spec| spec.run.way()).is_some_and(|way| match way {
                CommandOrder::Together => self.is_alone || self.slots.len() >= MAX_WAITING,
                CommandOrder::Alone => true,
            })
    }

    /// Counts bytes of memory that pending commands hold; 0 if none is pending.
    ///
    /// Key names of a long `DEL` are such bytes. They count as part of an unfinished request.
    pub(super) fn hold(&mut self, bytes: usize) {
        self.held_bytes = if self.is_waiting() { bytes } else { 0 };
    }

    /// Returns the bytes of memory that pending commands hold.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Adds a pending reply at this position of `text`.
    fn put(&mut self, at: usize, way: CommandOrder, coming: Coming) {
        self.is_alone = way == CommandOrder::Alone;
        self.slots.push((at, Slot::Coming(coming)));
    }

    /// Keeps complete replies until the pending ones have arrived.
    pub(super) fn keep(&mut self, answered: &mut Vec<u8>) {
        self.text.extend_from_slice(answered);
        answered.clear();
    }

    /// Resolves when all replies have arrived. The futures are polled in order, so that the first request is sent
    /// first.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut are_there = true;
        for (_, slot) in &mut self.slots {
            if let Slot::Coming(coming) = slot {
                match coming.as_mut().poll(context) {
                    Poll::Ready(reply) => *slot = Slot::There(reply),
                    Poll::Pending => are_there = false,
                }
            }
        }
        if are_there { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Writes all kept and arrived replies in the order of their requests. Returns the permits that they contain.
    pub(super) fn tell(&mut self, out: &mut Vec<u8>) -> UnsentPermits {
        let mut all = UnsentPermits::default();
        self.held_bytes = 0;
        let (text, mut sent) = (std::mem::take(&mut self.text), 0);
        for (at, slot) in self.slots.drain(..) {
            out.extend_from_slice(&text[sent..at]);
            sent = at;
            // Errors are the same in both protocol versions.
            let replies = &mut Replies::new(out, Protocol::Resp2);
            match slot {
                Slot::There(reply) => all.append(reply.write(replies)),
                Slot::Coming(_) => replies.error(UNDECIDED),
            }
        }
        out.extend_from_slice(&text[sent..]);
        all
    }
}

impl Session {
    /// Returns true while replies of a remote store are pending.
    pub(super) fn is_waiting(&self) -> bool {
        self.later.is_waiting()
    }

    /// Returns true if a request has to wait for the replies to those before it.
    #[inline]
    pub(super) fn holds_up(&self, words: Words<'_>) -> bool {
        // A request that is queued for `EXEC` does not ask the store.
        self.is_waiting() && self.queue.is_none() && self.later.holds_up(words.get(0).unwrap_or_default())
    }

    /// Answers a command: at once if its reply is ready, else when it arrives.
    ///
    /// The future is polled once with a waker that does nothing. If it is pending, the connection polls it with its
    /// own waker.
    pub(super) fn answer_when_known(
        &mut self,
        replies: &mut Replies<'_>,
        way: CommandOrder,
        answer: impl Future<Output = PendingReply> + Send + 'static,
    ) {
        let mut answer: Coming = Box::pin(answer);
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reply) => self.unsent.append(reply.write(replies)),
            Poll::Pending => self.later.put(replies.len(), way, answer),
        }
    }
}

impl Call<'_, '_> {
    /// Asks the engine and writes its reply: at once if it is ready, else when it arrives.
    pub(super) fn ask<T, F>(
        &mut self,
        way: CommandOrder,
        question: impl FnOnce(Arc<WorkerContext>) -> F,
        tell: impl FnOnce(&mut Replies<'_>, T) -> Option<Permits> + Send + 'static,
    ) where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (worker, protocol) = (self.worker.clone(), self.session.protocol);
        let answer = question(worker.clone());
        self.session.answer_when_known(&mut self.replies, way, async move {
            PendingReply::new(answer.await, protocol, &worker.engine, tell)
        });
    }
}

/// The order of a store command relative to the pending commands of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandOrder {
    /// Sent together with other pending commands.
    Together,
    /// Sent when no reply is pending; later store commands wait for it.
    Alone,
}

/// Returns the bytes of a reply.
pub(super) fn written(protocol: Protocol, write: impl FnOnce(&mut Replies<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Replies::new(&mut out, protocol));
    out
}

impl fmt::Debug for PendingReplies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PendingReplies").field("waiting", &self.slots.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::task::Waker;

    use super::*;

    fn poll(later: &mut PendingReplies) -> Poll<()> {
        later.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn replies_keep_the_order_of_their_requests() {
        let mut later = PendingReplies::default();
        let mut is_second = false;
        let slow = poll_fn(move |_| {
            let is_there = std::mem::replace(&mut is_second, true);
            if is_there { Poll::Ready(b"slow ".to_vec().into()) } else { Poll::Pending }
        });
        later.put(2, CommandOrder::Together, Box::pin(slow));
        later.put(2, CommandOrder::Together, Box::pin(ready(b"fast ".to_vec().into())));
        later.keep(&mut b"a b ".to_vec());
        assert!(poll(&mut later).is_pending() && poll(&mut later).is_ready());
        let mut out = b"before ".to_vec();
        later.tell(&mut out);
        assert_eq!(out, b"before a slow fast b ");
        assert!(!later.is_waiting());
    }

    #[test]
    fn an_answer_that_is_empty_or_did_not_come_is_an_error_and_not_silence() {
        let mut later = PendingReplies::default();
        later.put(0, CommandOrder::Together, Box::pin(ready(Vec::new().into())));
        later.put(0, CommandOrder::Together, Box::pin(pending()));
        later.put(0, CommandOrder::Together, Box::pin(ready(b"+OK\r\n".to_vec().into())));
        assert!(poll(&mut later).is_pending());
        let mut out = Vec::new();
        later.tell(&mut out);
        assert_eq!(String::from_utf8(out), Ok(format!("-{UNDECIDED}\r\n-{UNDECIDED}\r\n+OK\r\n")));
    }

    #[test]
    fn takes_go_together_and_changes_alone() {
        let mut later = PendingReplies::default();
        let held_up =
            |later: &PendingReplies| [b"ping" as &[u8], b"TG.TAKE", b"del"].map(|name| later.holds_up(name));
        assert_eq!(held_up(&later), [false, false, false]);
        for _ in 0..MAX_WAITING {
            assert!(!later.holds_up(b"cl.throttle"));
            later.put(0, CommandOrder::Together, Box::pin(pending()));
            assert!(later.holds_up(b"tg.peek"));
        }
        assert_eq!(held_up(&later), [false, true, true]);
        let mut later = PendingReplies::default();
        later.put(0, CommandOrder::Alone, Box::pin(pending()));
        assert_eq!(held_up(&later), [false, true, true]);
    }
}
