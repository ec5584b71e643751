//! What stands before the simulated service: places on a clock that the simulation sets.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{ManualClock, Outcome, Place, Places, Timestamp};

use super::simulation::Time;

/// Lets calls in, or not.
pub(super) struct Gate {
    clock: Arc<ManualClock>,
    places: Places,
}

/// A place that a simulated call holds.
pub(super) struct Held(Place);

impl Gate {
    pub(super) fn new(places: Places) -> Gate {
        let clock = Arc::new(ManualClock::new());
        let places = places.with_clock(Arc::clone(&clock) as _);
        Gate { clock, places }
    }

    pub(super) fn set_time(&self, now: Time) {
        self.clock.set(Timestamp::after_epoch(Duration::from_nanos(now)));
    }

    pub(super) fn enter(&self) -> Option<Held> {
        self.places.enter(0).ok().map(Held)
    }

    /// The limit and how many are in flight.
    pub(super) fn look(&self) -> (u64, u64) {
        (self.places.limit(), self.places.in_flight())
    }
}

impl Held {
    pub(super) fn answered(self) {
        self.0.done(Outcome::Done);
    }

    pub(super) fn timed_out(self) {
        self.0.done(Outcome::Overloaded);
    }
}
