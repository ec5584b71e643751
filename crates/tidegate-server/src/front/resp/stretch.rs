//! Execution of long requests a stretch at a time: those that take as long as thousands of others.
//!
//! A stretch is a bounded part of the work. Between two stretches the thread serves its other connections. So neither
//! an `EXEC` nor a `DEL` of many keys is atomic. Replies keep their order, since no other request of the same
//! connection is executed meanwhile.

use std::sync::Arc;

use tidegate_rules::Attributes;

use super::parse::{Arguments, Caller, Step};
use super::reply::Replies;
use super::session::{Call, ENOUGH_OUTPUT, Session};
use super::takes::Takes;
use crate::worker::WorkerContext;

/// The maximum number of keys of one stretch. Deleting them takes about a millisecond.
pub(super) const STRETCH_KEYS: usize = 1024;

/// The number of words of a queued request that count as one key: those of one limit.
const WORDS_PER_KEY: usize = 4;

/// The rest of a long request, and the work done in this turn.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// The keys that were processed in this turn of the connection.
    visited: usize,
    /// The requests of an `EXEC` that are not executed yet.
    queued: Option<Queued>,
}

/// The requests between `MULTI` and `EXEC` that are being executed.
#[derive(Debug)]
struct Queued {
    /// The requests one after another, each as an array of bulk strings.
    bytes: Vec<u8>,
    /// The index at which the next request begins.
    begin: usize,
}

/// The result of executing a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Executed {
    /// The request is complete.
    Whole,
    /// The stretch is over: other connections come first.
    Stretch,
    /// The next request waits for replies of a remote store.
    Waiting,
}

impl Stretch {
    /// Returns true if requests are left to be executed.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.queued.is_some()
    }

    /// Returns the bytes of memory that these requests hold.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.queued.as_ref().map_or(0, |queued| queued.bytes.capacity())
    }

    /// Begins a turn of the connection.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.visited = 0;
    }

    /// Counts keys that a request processes in this turn.
    ///
    /// A stretch ends after [`STRETCH_KEYS`] of them.
    pub(super) fn visit(&mut self, keys: usize) {
        self.visited = self.visited.saturating_add(keys);
    }

    /// Returns true if this turn has done its share, and other connections come first.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.visited >= STRETCH_KEYS
    }

    /// Queues requests for execution: arrays of bulk strings, one after another.
    pub(super) fn queue(&mut self, bytes: Vec<u8>) {
        self.queued = Some(Queued { bytes, begin: 0 });
    }
}

impl Session {
    /// Executes the rest of a long request, for one stretch at most.
    pub(super) fn execute_stretch(
        &mut self,
        worker: &Arc<WorkerContext>,
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
            Call { session: self, worker, takes, attributes, input: &bytes, begin, words, replies }.answer();
            begin += read;
        };
        // The keys of batched takes are ranges of these bytes.
        takes.settle(&bytes, worker, &mut Replies::new(out, self.protocol), self);
        if executed != Executed::Whole {
            self.stretch.queued = Some(Queued { bytes, begin });
        }
        executed
    }
}
