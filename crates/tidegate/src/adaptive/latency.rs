//! What Vegas and Gradient2 have in common: a limit that follows latency, with rests between.

use super::base::Base;
use super::level::Level;
use super::losses::Losses;
use super::round::Tally;
use super::{Adapt, Settled};
use crate::time::Ticks;

/// Moves a limit after a round, by the latencies with little in flight and now.
pub(super) type Follow = fn(&mut Level, Ticks, Ticks, &Tally) -> Settled;

/// The state of an algorithm that goes by latency.
#[derive(Clone, Debug)]
pub(super) struct ByLatency {
    level: Level,
    base: Base,
    losses: Losses,
    follow: Follow,
}

impl ByLatency {
    pub(super) fn new(adapt: &Adapt, follow: Follow) -> ByLatency {
        let (level, base) = (Level::new(adapt), Base::new(adapt.rest_every));
        ByLatency { level, base, losses: Losses::new(adapt), follow }
    }

    pub(super) fn limit(&self) -> u64 {
        if self.base.is_resting() { self.level.half() } else { self.level.places() }
    }

    pub(super) fn settle(&mut self, tally: &Tally) -> Settled {
        let base = self.base.learn(tally);
        let was_resting = self.base.is_resting();
        let settled = if self.losses.cut(&mut self.level, tally) {
            Settled::Cut
        } else if let (Some(base), Some(now), false) = (base, tally.latency, was_resting) {
            (self.follow)(&mut self.level, base, now.least, tally)
        } else {
            Settled::Smooth
        };
        let is_resting = self.base.end_round(self.level.places());
        // What begins under another limit than the round before is to be told apart from it.
        if is_resting || was_resting { Settled::Cut } else { settled }
    }
}
