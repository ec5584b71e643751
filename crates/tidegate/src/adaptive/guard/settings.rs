//! When a guard begins to limit, and how it finds out that it need not any longer.

use crate::time::{MILLISECOND, SECOND, Ticks};
use std::time::Duration;

/// A window has so many slots.
pub(super) const SLOTS: u64 = 10;

/// A pause grows to so many times the first one.
const LONGEST_PAUSE: u64 = 8;

/// All that is said about a guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// One slot of the window, and one step of the share.
    pub(super) slot: Ticks,
    pub(super) at_least: u64,
    pub(super) percent: u64,
    pub(super) probes: u64,
    pub(super) pause: Ticks,
}

impl Settings {
    pub(super) const DEFAULT: Settings = Settings {
        slot: Ticks::saturating_from(SECOND),
        at_least: 20,
        percent: 50,
        probes: 3,
        pause: Ticks::saturating_from(Duration::from_secs(5)),
    };

    pub(super) fn set_window(&mut self, window: Duration) {
        self.slot = Ticks::new(Ticks::saturating_from(window.max(MILLISECOND)).get() / SLOTS);
    }

    pub(super) fn set_pause(&mut self, pause: Duration) {
        self.pause = Ticks::saturating_from(pause.max(MILLISECOND));
    }

    pub(super) fn window(&self) -> Ticks {
        Ticks::new(self.slot.get().saturating_mul(SLOTS))
    }

    /// The longest pause there is.
    pub(super) fn longest_pause(&self) -> Ticks {
        Ticks::new(self.pause.get().saturating_mul(LONGEST_PAUSE))
    }

    /// The pause that follows this one.
    pub(super) fn next_pause(&self, last: Option<Ticks>) -> Ticks {
        last.map_or(self.pause, |last| last.saturating_add(last).min(self.longest_pause()))
    }
}
