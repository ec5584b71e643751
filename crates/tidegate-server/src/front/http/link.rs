//! The state of a connection that its socket, its service and its watch share.
//!
//! ```text
//!   Fresh --> Head --> Body --> Answer --> Idle
//!            ^                          |
//!            `--------------------------'
//! ```
//!
//! All of them run in one task. The fields are atomic because the future has to be `Send`.
//!
//! ```text
//!             writes the stage             reads the stage
//!   Wire, service ----------------> Link <---------------- Watch
//! ```
//!
//! The socket sees bytes, the service sees requests, and the watch sees time. Only together they know which timeout
//! applies.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::front::Scope;
use crate::permit::Permits;
use crate::worker::WorkerContext;

/// The low bits of the mark that hold the stage.
const STAGE_BITS: u32 = 3;

/// The shared state of one connection.
#[derive(Debug)]
pub(super) struct Link {
    /// The worker that serves the connection.
    pub(super) worker: Arc<WorkerContext>,
    /// The address of the client, if the system knows it.
    peer: Option<SocketAddr>,
    /// The requests that the connection may send.
    pub(super) scope: Scope,
    /// The stage in the low bits, and above it the number of stages so far.
    mark: AtomicU64,
    /// True if the body of the current request has timed out.
    is_late: AtomicBool,
    /// True if the client may still be sending what was answered already.
    is_more_coming: AtomicBool,
    /// True if the server has a token and the client has not sent it.
    is_unauthenticated: AtomicBool,
    /// Permits of responses that are not written yet.
    unsent: Mutex<Vec<Permits>>,
    /// True if `unsent` is not empty, so that most responses do not lock it.
    has_unsent: AtomicBool,
}

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// No bytes have arrived yet.
    Fresh,
    /// All requests are answered.
    Idle,
    /// A part of a head has arrived.
    Head,
    /// A request has begun, and its body may still be arriving.
    Body,
    /// A response is not written completely yet.
    Answer,
    /// The reply is held back for the delay of an allowed request. No timeout runs.
    Held,
}

/// One stay in a stage; the next stay in the same stage has another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Link {
    /// Returns the state of a new connection, without any bytes.
    pub(super) fn new(worker: Arc<WorkerContext>, scope: Scope) -> Link {
        let has_token = worker.engine.token().is_some();
        Link {
            worker,
            peer: None,
            scope,
            mark: AtomicU64::new(Stage::Fresh as u64),
            is_late: AtomicBool::new(false),
            is_more_coming: AtomicBool::new(false),
            is_unauthenticated: AtomicBool::new(has_token),
            unsent: Mutex::default(),
            has_unsent: AtomicBool::new(false),
        }
    }

    /// Sets the address of the client.
    pub(super) fn of_client(mut self, peer: Option<SocketAddr>) -> Link {
        self.peer = peer;
        self
    }

    /// Returns the address of the client.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Adds the permits of the next response. They are released if it is not written: the client does not have their
    /// text, and they would stay in flight until their leases expire.
    ///
    /// [`Link::answered`] forgets them again.
    #[inline]
    pub(super) fn tell_of(&self, permits: Vec<Permits>) {
        if !permits.is_empty() {
            self.unsent.lock().unwrap_or_else(PoisonError::into_inner).extend(permits);
            self.has_unsent.store(true, Ordering::Relaxed);
        }
    }

    /// Records that the response is written.
    ///
    /// The permits of the response belong to the client from now on.
    #[inline]
    pub(super) fn answered(&self) {
        if self.has_unsent.swap(false, Ordering::Relaxed) {
            self.unsent.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self.enter(Stage::Idle);
    }

    /// Enters a stage. The timeout of the stage starts anew, also if it is the same stage as before.
    #[inline]
    pub(super) fn enter(&self, stage: Stage) {
        let turns = self.mark.load(Ordering::Relaxed) >> STAGE_BITS;
        self.mark.store((turns.wrapping_add(1) << STAGE_BITS) | stage as u64, Ordering::Relaxed);
    }

    /// Returns the current stay.
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark(self.mark.load(Ordering::Relaxed))
    }

    /// Returns the current stage.
    #[inline]
    pub(super) fn stage(&self) -> Stage {
        self.mark().stage()
    }

    /// Records that the body has timed out. Returns true the first time.
    pub(super) fn be_late(&self) -> bool {
        !self.is_late.swap(true, Ordering::Relaxed)
    }

    /// Returns true if the body has timed out.
    #[inline]
    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Returns true until the client of a server with a token has sent the token once.
    #[inline]
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.is_unauthenticated.load(Ordering::Relaxed)
    }

    /// Records that the client has sent the token.
    pub(super) fn authenticate(&self) {
        self.is_unauthenticated.store(false, Ordering::Relaxed);
    }

    /// Returns true if the connection may send one request only, without a body.
    #[inline]
    pub(super) fn serves_one_request(&self) -> bool {
        self.scope == Scope::Health || self.is_unauthenticated()
    }

    /// Records that the client is answered before it has sent everything.
    ///
    /// The connection then discards input before it closes, so that the client can read the response.
    pub(super) fn expect_more(&self) {
        self.is_more_coming.store(true, Ordering::Relaxed);
    }

    /// Returns true after [`Link::expect_more`].
    pub(super) fn is_more_coming(&self) -> bool {
        self.is_more_coming.load(Ordering::Relaxed)
    }
}

/// Releases the permits of responses that were never written.
impl Drop for Link {
    fn drop(&mut self) {
        for permits in self.unsent.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            permits.release_later(&self.worker.engine);
        }
    }
}

impl Mark {
    /// Returns the stage of this stay.
    #[inline]
    pub(super) fn stage(self) -> Stage {
        match self.0 & ((1 << STAGE_BITS) - 1) {
            0 => Stage::Fresh,
            1 => Stage::Idle,
            2 => Stage::Head,
            3 => Stage::Body,
            4 => Stage::Answer,
            _ => Stage::Held,
        }
    }
}
