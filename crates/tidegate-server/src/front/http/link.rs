//! How far a connection has come: what its socket, its service and its watch tell each other.
//!
//! ```text
//!   Fresh --> Head --> Body --> Answer --> Idle
//!               ^                            |
//!               `----------------------------'
//! ```
//!
//! All of them run in one task; the words are atomic because the task may be handed to its thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::front::Scope;
use crate::permit::Permits;
use crate::worker::Post;

const STAGE_BITS: u32 = 3;

/// What is shared by those who serve one connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) post: Arc<Post>,
    /// What the connection may ask for.
    pub(super) scope: Scope,
    /// The stage, and above it how many stages there were.
    mark: AtomicU64,
    is_late: AtomicBool,
    is_more_coming: AtomicBool,
    /// Whether there is a token, and the client has not shown it.
    is_unauthenticated: AtomicBool,
    /// Places in flight of which an answer tells that the client has not taken yet.
    untold: Mutex<Vec<Permits>>,
    has_untold: AtomicBool,
}

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// Nothing has arrived yet.
    Fresh,
    /// All that was asked is answered.
    Idle,
    /// Part of a head has arrived.
    Head,
    /// A request has begun, and its body may still be on its way.
    Body,
    /// There is an answer that the client has not taken yet.
    Answer,
}

/// One stay in a stage; the next stay in the same stage is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Link {
    pub(super) fn new(post: Arc<Post>, scope: Scope) -> Link {
        let has_token = post.engine.token().is_some();
        Link {
            post,
            scope,
            mark: AtomicU64::new(Stage::Fresh as u64),
            is_late: AtomicBool::new(false),
            is_more_coming: AtomicBool::new(false),
            is_unauthenticated: AtomicBool::new(has_token),
            untold: Mutex::default(),
            has_untold: AtomicBool::new(false),
        }
    }

    /// The next answer tells of these places. Unless it is written, they are given back: whoever is gone before does not
    /// know their permits, and would hold them until their leases are over.
    #[inline]
    pub(super) fn tell_of(&self, permits: Vec<Permits>) {
        if !permits.is_empty() {
            self.untold.lock().unwrap_or_else(PoisonError::into_inner).extend(permits);
            self.has_untold.store(true, Ordering::Relaxed);
        }
    }

    /// The answer is written.
    #[inline]
    pub(super) fn answered(&self) {
        if self.has_untold.swap(false, Ordering::Relaxed) {
            self.untold.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self.enter(Stage::Idle);
    }

    #[inline]
    pub(super) fn enter(&self, stage: Stage) {
        let turns = self.mark.load(Ordering::Relaxed) >> STAGE_BITS;
        self.mark.store((turns.wrapping_add(1) << STAGE_BITS) | stage as u64, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark(self.mark.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn stage(&self) -> Stage {
        self.mark().stage()
    }

    /// The body has taken too long to arrive. Whether nobody has said so before.
    pub(super) fn be_late(&self) -> bool {
        !self.is_late.swap(true, Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.is_unauthenticated.load(Ordering::Relaxed)
    }

    /// The client has shown the token.
    pub(super) fn authenticate(&self) {
        self.is_unauthenticated.store(false, Ordering::Relaxed);
    }

    /// Whether the connection is served one request, and no body of it.
    #[inline]
    pub(super) fn serves_one_request(&self) -> bool {
        self.scope == Scope::Health || self.is_unauthenticated()
    }

    /// The client is answered before it has sent everything.
    pub(super) fn expect_more(&self) {
        self.is_more_coming.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_more_coming(&self) -> bool {
        self.is_more_coming.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for permits in self.untold.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            permits.release_later(&self.post.engine);
        }
    }
}

impl Mark {
    #[inline]
    pub(super) fn stage(self) -> Stage {
        match self.0 & ((1 << STAGE_BITS) - 1) {
            0 => Stage::Fresh,
            1 => Stage::Idle,
            2 => Stage::Head,
            3 => Stage::Body,
            _ => Stage::Answer,
        }
    }
}
