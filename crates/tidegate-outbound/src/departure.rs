//! The state that all clones of a layer share, and a call in flight.
//!
//! A released call passes three stages: it may leave, it has left, it has ended. Each stage ends by a method or by a
//! drop, so a call that is cancelled at any point is taken back or counted as a call without a response.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tidegate_core::wait_queue::{WaitQueue, Waiter};
use tidegate_core::{Clock, Ticks};
use tidegate_tower::ResponseHead;

use crate::hints::ServerHints;
use crate::hold_state::PaceConfig;
use crate::origin_state::Exit;
use crate::origins::{self, Origins, QUEUES};

/// The settings of a layer.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) terms: PaceConfig,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) most_waiting: usize,
    pub(crate) clock: Arc<dyn Clock>,
    /// The wall clock, for dates of servers that send no `Date`.
    pub(crate) wall: fn() -> SystemTime,
}

impl Settings {
    /// Returns the max wait in ticks; `None` if calls wait as long as necessary.
    pub(crate) fn max_wait(&self) -> Option<Ticks> {
        self.max_wait.map(Ticks::saturating_from)
    }
}

/// The settings and the queue of a layer and of all its clones.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) queue: WaitQueue<Origins>,
    /// The key of the numbers for the jitter: other processes draw others.
    random: RandomState,
    /// The number of numbers drawn so far.
    drawn: AtomicU64,
}

impl Shared {
    /// Returns an empty queue with these settings.
    pub(crate) fn new(settings: Settings) -> Shared {
        let queue = WaitQueue::new(Origins::default(), settings.most_waiting.saturating_mul(QUEUES));
        Shared { settings, queue, random: RandomState::new(), drawn: AtomicU64::new(0) }
    }

    /// Returns the number of waiting calls, and the number of stored origins.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.queue.lock(|state| (state.waiting(), origins::count(state)))
    }

    /// Returns an unpredictable number.
    fn chance(&self) -> u64 {
        self.random.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, keys) = self.counts();
        out.debug_struct("Shared").field("waiting", &waiting).field("keys", &keys).finish_non_exhaustive()
    }
}

/// A call that may leave, and then a call in flight. Dropping it ends the call without a response.
pub(crate) struct Departure {
    shared: Arc<Shared>,
    /// The permission to leave. `None` once the end of the call was recorded.
    exit: Option<Exit>,
    /// True once the call was sent.
    has_left: bool,
}

impl Departure {
    /// Returns a call that has the permission to leave.
    pub(crate) fn new(shared: &Arc<Shared>, exit: Exit) -> Departure {
        Departure { shared: Arc::clone(shared), exit: Some(exit), has_left: false }
    }

    /// Leaves now; or waits again at its old place, if a response has arrived since it was released.
    pub(crate) fn leave(mut self) -> Result<Departure, Waiter<Origins>> {
        let Some(exit) = self.exit.take() else { return Ok(self) };
        match self.shared.queue.with(&self.shared, |state, turn| origins::confirm(state, turn, exit)) {
            Ok(exit) => self.exit = Some(exit),
            Err(ticket) => return Err(Waiter::new(&self.shared, ticket)),
        }
        self.has_left = true;
        Ok(self)
    }

    /// Updates the state from the response to the call.
    pub(crate) fn answered(mut self, head: ResponseHead<'_>) {
        self.end(&ServerHints::by(head, self.shared.settings.wall));
    }

    /// Records the end: of a call that was sent, by the hints of its response; else its release is taken back.
    fn end(&mut self, hints: &ServerHints) {
        let Some(exit) = self.exit.take() else { return };
        let (shared, id) = (&self.shared, exit.ticket.queue);
        let (terms, chance) = (&shared.settings.terms, shared.chance());
        shared.queue.with(shared, |state, turn| {
            let Some(queue) = state.queue(id) else { return };
            match self.has_left {
                true => queue.state.ended(terms, turn.now, &exit, hints, chance),
                false => queue.state.take_back(terms, turn.now, exit),
            }
            state.serve(turn, id);
        });
    }
}

impl Drop for Departure {
    /// Ends the call without a response, if it has not ended yet.
    fn drop(&mut self) {
        self.end(&ServerHints::default());
    }
}
