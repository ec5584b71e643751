//! Replies that are there at once, or will come: several at once, in the order of their requests.
//!
//! Each answer is polled once. A store in memory has answered by then, and the reply is written. A remote store has begun,
//! and the reply is kept a place. Takes that were pipelined are asked together. What looks or changes waits until those before it are answered, and
//! has those behind it wait: a client sees its own requests happen one after the other. Nothing more is read
//! meanwhile, and the store has a deadline, so nobody waits for long and nothing piles up.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate::StoreError;

use super::command::Spec;
use super::parse::Words;
use super::reply::{Protocol, Replies, UNDECIDED};
use super::session::{Call, Session};
use super::untold::Untold;
use crate::engine::{Engine, not_available};
use crate::permit::Permits;
use crate::worker::Post;

/// How many answers are waited for at once, at most.
pub(super) const MAX_WAITING: usize = 64;

type Coming = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The bytes of a reply, and the places in flight of which it tells.
pub(super) struct Reply {
    bytes: Vec<u8>,
    untold: Untold,
}

impl Reply {
    /// What the store said, or that it said nothing. `tell` returns the places of which it tells.
    pub(super) fn new<T>(
        answer: Result<T, StoreError>,
        protocol: Protocol,
        engine: &Arc<Engine>,
        tell: impl FnOnce(&mut Replies<'_>, T) -> Option<Permits>,
    ) -> Reply {
        let mut untold = Untold::default();
        let bytes = written(protocol, |replies| match answer {
            Ok(answer) => untold.note(tell(replies, answer), engine),
            Err(error) => replies.error(&format!("ERR {}", not_available(&error))),
        });
        Reply { bytes, untold }
    }

    /// Writes the reply. Returns the places of which it tells.
    fn write(self, replies: &mut Replies<'_>) -> Untold {
        if self.bytes.is_empty() {
            replies.error(UNDECIDED);
        }
        replies.append(&self.bytes);
        self.untold
    }
}

impl From<Vec<u8>> for Reply {
    fn from(bytes: Vec<u8>) -> Reply {
        Reply { bytes, untold: Untold::default() }
    }
}

/// What one client waits for.
#[derive(Default)]
pub(super) struct Later {
    /// What is answered already, before, between and behind what is waited for.
    text: Vec<u8>,
    /// Answers to come, each with its place in the text.
    slots: Vec<(usize, Slot)>,
    /// Whether what is waited for has others wait.
    is_alone: bool,
    /// The bytes of keys that are not visited yet.
    held_bytes: usize,
}

enum Slot {
    Coming(Coming),
    There(Reply),
}

impl Later {
    /// Whether an answer is waited for.
    pub(super) fn is_waiting(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Whether a request has to wait for those before it.
    pub(super) fn holds_up(&self, name: &[u8]) -> bool {
        self.is_waiting()
            && Spec::named(name).and_then(|spec| spec.run.way()).is_some_and(|way| match way {
                Way::Together => self.is_alone || self.slots.len() >= MAX_WAITING,
                Way::Alone => true,
            })
    }

    /// Counts bytes that what is waited for holds, if anything is.
    pub(super) fn hold(&mut self, bytes: usize) {
        self.held_bytes = if self.is_waiting() { bytes } else { 0 };
    }

    /// Returns the bytes that what is waited for holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Has an answer come at this place of what is answered.
    fn put(&mut self, at: usize, way: Way, coming: Coming) {
        self.is_alone = way == Way::Alone;
        self.slots.push((at, Slot::Coming(coming)));
    }

    /// Keeps what was answered meanwhile, until the rest is there.
    pub(super) fn keep(&mut self, answered: &mut Vec<u8>) {
        self.text.extend_from_slice(answered);
        answered.clear();
    }

    /// Ready when all answers are there. All of them are asked in order, so that the first has begun first.
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

    /// Writes all that was kept and all that has come, in its order. Returns the places of which it tells.
    pub(super) fn tell(&mut self, out: &mut Vec<u8>) -> Untold {
        let mut all = Untold::default();
        self.held_bytes = 0;
        let (text, mut told) = (std::mem::take(&mut self.text), 0);
        for (at, slot) in self.slots.drain(..) {
            out.extend_from_slice(&text[told..at]);
            told = at;
            // The version of the protocol makes no difference to an error.
            let replies = &mut Replies::new(out, Protocol::Resp2);
            match slot {
                Slot::There(reply) => all.append(reply.write(replies)),
                Slot::Coming(_) => replies.error(UNDECIDED),
            }
        }
        out.extend_from_slice(&text[told..]);
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
        // What is put into a queue asks no store.
        self.is_waiting() && self.queue.is_none() && self.later.holds_up(words.get(0).unwrap_or_default())
    }

    /// Has a command answered: at once if the answer is there, else when it comes.
    pub(super) fn answer_when_known(
        &mut self,
        replies: &mut Replies<'_>,
        way: Way,
        answer: impl Future<Output = Reply> + Send + 'static,
    ) {
        let mut answer: Coming = Box::pin(answer);
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(reply) => self.untold.append(reply.write(replies)),
            Poll::Pending => self.later.put(replies.len(), way, answer),
        }
    }
}

impl Call<'_, '_> {
    /// Asks the engine, and tells its answer: at once if it is there, else when it comes.
    pub(super) fn ask<T, F>(
        &mut self,
        way: Way,
        question: impl FnOnce(Arc<Post>) -> F,
        tell: impl FnOnce(&mut Replies<'_>, T) -> Option<Permits> + Send + 'static,
    ) where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (post, protocol) = (self.post.clone(), self.session.protocol);
        let answer = question(post.clone());
        self.session.answer_when_known(&mut self.replies, way, async move {
            Reply::new(answer.await, protocol, &post.engine, tell)
        });
    }
}

/// How a command that asks the store gets on with others that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Together,
    Alone,
}

/// The bytes of a reply.
pub(super) fn written(protocol: Protocol, write: impl FnOnce(&mut Replies<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Replies::new(&mut out, protocol));
    out
}

impl fmt::Debug for Later {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Later").field("waiting", &self.slots.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::task::Waker;

    use super::*;

    fn poll(later: &mut Later) -> Poll<()> {
        later.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn answers_stand_where_their_requests_did_whoever_is_first() {
        let mut later = Later::default();
        let mut is_second = false;
        let slow = poll_fn(move |_| {
            let is_there = std::mem::replace(&mut is_second, true);
            if is_there { Poll::Ready(b"slow ".to_vec().into()) } else { Poll::Pending }
        });
        later.put(2, Way::Together, Box::pin(slow));
        later.put(2, Way::Together, Box::pin(ready(b"fast ".to_vec().into())));
        later.keep(&mut b"a b ".to_vec());
        assert!(poll(&mut later).is_pending() && poll(&mut later).is_ready());
        let mut out = b"before ".to_vec();
        later.tell(&mut out);
        assert_eq!(out, b"before a slow fast b ");
        assert!(!later.is_waiting());
    }

    #[test]
    fn an_answer_that_is_empty_or_did_not_come_is_an_error_and_not_silence() {
        let mut later = Later::default();
        later.put(0, Way::Together, Box::pin(ready(Vec::new().into())));
        later.put(0, Way::Together, Box::pin(pending()));
        later.put(0, Way::Together, Box::pin(ready(b"+OK\r\n".to_vec().into())));
        assert!(poll(&mut later).is_pending());
        let mut out = Vec::new();
        later.tell(&mut out);
        assert_eq!(String::from_utf8(out), Ok(format!("-{UNDECIDED}\r\n-{UNDECIDED}\r\n+OK\r\n")));
    }

    #[test]
    fn takes_go_together_and_changes_alone() {
        let mut later = Later::default();
        let held_up = |later: &Later| [b"ping" as &[u8], b"TG.TAKE", b"del"].map(|name| later.holds_up(name));
        assert_eq!(held_up(&later), [false, false, false]);
        for _ in 0..MAX_WAITING {
            assert!(!later.holds_up(b"cl.throttle"));
            later.put(0, Way::Together, Box::pin(pending()));
            assert!(later.holds_up(b"tg.peek"));
        }
        assert_eq!(held_up(&later), [false, true, true]);
        let mut later = Later::default();
        later.put(0, Way::Alone, Box::pin(pending()));
        assert_eq!(held_up(&later), [false, true, true]);
    }
}
