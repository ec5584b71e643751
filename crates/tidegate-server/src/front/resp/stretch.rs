//! Requests that take as long as thousands of others are executed a stretch at a time.
//!
//! Between two stretches the other connections of the thread are served. So neither an `EXEC` nor a `DEL` of many keys is
//! atomic; replies keep their order, since nothing else of the same connection is executed meanwhile.

use std::sync::Arc;

use tidegate::{Key, StoreError};

use super::ask::not_deleted;
use super::parse::{Arguments, Caller, Step, Words};
use super::reply::Replies;
use super::session::{Call, ENOUGH_OUTPUT, Session};
use super::takes::Takes;
use crate::engine::at_once;
use crate::worker::Post;

/// Keys that are deleted before others are served. It takes about a millisecond.
pub(super) const STRETCH_KEYS: usize = 1024;

/// Words of a queued request that count as one key: those of one limit.
const WORDS_PER_KEY: usize = 4;

/// What is left of a long request, and of the stretch.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// Keys that were visited in this turn of the connection.
    visited: usize,
    /// Requests of an `EXEC` that were not executed yet.
    queued: Option<Queued>,
    /// Keys of a `DEL` that were not deleted yet.
    deleting: Option<Box<Deleting>>,
}

/// Requests between `MULTI` and `EXEC` that are being executed.
#[derive(Debug)]
struct Queued {
    bytes: Vec<u8>,
    /// Where the next of them begins.
    begin: usize,
}

/// The keys of a `DEL`.
#[derive(Debug)]
struct Deleting {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    /// The next key.
    next: usize,
    /// How many of those before it were known, or why one of them was not deleted.
    known: Result<i64, StoreError>,
}

/// How far a long request was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    /// To its end.
    Whole,
    /// To the end of a stretch: others come first.
    Stretch,
    /// To a request that waits for the replies of a remote store.
    Waiting,
}

impl Stretch {
    /// Whether something is left to be executed.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.queued.is_some() || self.deleting.is_some()
    }

    /// Returns the bytes of memory that the rest of long requests takes.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        let queued = self.queued.as_ref().map_or(0, |queued| queued.bytes.capacity());
        let deleting = self.deleting.as_ref();
        queued + deleting.map_or(0, |keys| keys.bytes.capacity() + keys.ends.capacity() * size_of::<usize>())
    }

    /// Begins a turn of the connection.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.visited = 0;
    }

    fn visit(&mut self, keys: usize) {
        self.visited = self.visited.saturating_add(keys);
    }

    /// Whether others come first.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.visited >= STRETCH_KEYS
    }

    /// Has these requests executed, which are arrays of bulk strings one behind the other.
    pub(super) fn queue(&mut self, bytes: Vec<u8>) {
        self.queued = Some(Queued { bytes, begin: 0 });
    }

    /// Has these keys deleted, and their number answered.
    pub(super) fn delete(&mut self, keys: Words<'_>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
        for key in keys.iter() {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        }
        self.deleting = Some(Box::new(Deleting { bytes, ends, next: 0, known: Ok(0) }));
    }
}

impl Deleting {
    /// Deletes so many keys at most; the number of those that were visited.
    fn delete(&mut self, post: &Post, at_most: usize) -> usize {
        let until = self.ends.len().min(self.next.saturating_add(at_most));
        let first = self.next;
        for index in first..until {
            let begin = index.checked_sub(1).map_or(0, |last| self.ends[last]);
            let key = Key::new(&self.bytes[begin..self.ends[index]]);
            match (at_once(post.engine.reset(&key)), &mut self.known) {
                (Ok(was_known), Ok(known)) => *known += i64::from(was_known),
                (Err(error), known) => *known = Err(error),
                (Ok(_), Err(_)) => {}
            }
        }
        self.next = until;
        until - first
    }
}

impl Session {
    /// Goes on with what is left of a long request, for a stretch at most.
    pub(super) fn execute_stretch(
        &mut self,
        post: &Arc<Post>,
        takes: &mut Takes,
        out: &mut Vec<u8>,
    ) -> Executed {
        if !self.delete_stretch(post, out) {
            return Executed::Stretch;
        }
        let Some(Queued { bytes, mut begin }) = self.stretch.queued.take() else { return Executed::Whole };
        let mut arguments = Arguments::default();
        let executed = loop {
            let Ok(Step::Request { bytes: read }) = arguments.parse(&bytes[begin..], Caller::Known) else {
                break Executed::Whole;
            };
            let words = arguments.of(&bytes[begin..]);
            if self.holds_up(words) {
                break Executed::Waiting;
            }
            if self.stretch.is_over() || out.len() >= ENOUGH_OUTPUT {
                break Executed::Stretch;
            }
            self.stretch.visit((words.len() / WORDS_PER_KEY).max(1));
            let replies = Replies::new(out, self.protocol);
            Call { session: self, post, takes, input: &bytes, begin, words, replies }.answer();
            begin += read;
            if !self.delete_stretch(post, out) {
                break Executed::Stretch;
            }
        };
        // Their keys are in these bytes.
        takes.settle(&bytes, post, &mut Replies::new(out, self.protocol), &mut self.untold);
        if executed != Executed::Whole {
            self.stretch.queued = Some(Queued { bytes, begin });
        }
        executed
    }

    /// Goes on with a `DEL`, for a stretch at most. Whether there is none, or it is whole.
    fn delete_stretch(&mut self, post: &Post, out: &mut Vec<u8>) -> bool {
        let Some(deleting) = &mut self.stretch.deleting else { return true };
        let visited = deleting.delete(post, STRETCH_KEYS.saturating_sub(self.stretch.visited));
        let is_whole = deleting.next == deleting.ends.len();
        if is_whole {
            let mut replies = Replies::new(out, self.protocol);
            match &deleting.known {
                Ok(known) => replies.integer(*known),
                Err(error) => replies.error(&not_deleted(error)),
            }
            self.stretch.deleting = None;
        }
        self.stretch.visit(visited);
        is_whole
    }
}
