//! Requests that take as long as thousands of others are executed a stretch at a time.
//!
//! Between two stretches the other connections of the thread are served. So neither an `EXEC` nor a `DEL` of many keys is
//! atomic; replies keep their order, since nothing else of the same connection is executed meanwhile.

use std::sync::Arc;

use tidegate_rules::Attributes;

use super::parse::{Arguments, Caller, Step};
use super::reply::Replies;
use super::session::{Call, ENOUGH_OUTPUT, Session};
use super::takes::Takes;
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
}

/// Requests between `MULTI` and `EXEC` that are being executed.
#[derive(Debug)]
struct Queued {
    bytes: Vec<u8>,
    /// Where the next of them begins.
    begin: usize,
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
        self.queued.is_some()
    }

    /// Returns the bytes of memory that the rest of long requests takes.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.queued.as_ref().map_or(0, |queued| queued.bytes.capacity())
    }

    /// Begins a turn of the connection.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.visited = 0;
    }

    /// Counts keys that a request visits in this turn.
    pub(super) fn visit(&mut self, keys: usize) {
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
}

impl Session {
    /// Goes on with what is left of a long request, for a stretch at most.
    pub(super) fn execute_stretch(
        &mut self,
        post: &Arc<Post>,
        takes: &mut Takes,
        out: &mut Vec<u8>,
    ) -> Executed {
        let Some(Queued { bytes, mut begin }) = self.stretch.queued.take() else { return Executed::Whole };
        let (mut arguments, attributes) = (Arguments::default(), &mut Attributes::new());
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
            Call { session: self, post, takes, attributes, input: &bytes, begin, words, replies }.answer();
            begin += read;
        };
        // Their keys are in these bytes.
        takes.settle(&bytes, post, &mut Replies::new(out, self.protocol), self);
        if executed != Executed::Whole {
            self.stretch.queued = Some(Queued { bytes, begin });
        }
        executed
    }
}
