//! How a number of places adapts: the algorithm, its bounds and its settings.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::time::Ticks;

/// The most places that an adaptive number may have: its fixed point has room for that.
const MOST: u64 = 1 << 32;

/// How a number of places adapts, always within its bounds.
///
/// The defaults fit most services; [`Adapt::slow_after`] is worth setting where nobody reports time-outs.
///
/// ```
/// use tidegate::{Adapt, MILLISECOND};
///
/// let adapt = Adapt::gradient2(4..=500).starting_at(20).slow_after(800 * MILLISECOND);
/// # let _ = adapt;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapt {
    pub(super) algorithm: Algorithm,
    pub(super) min: u64,
    pub(super) max: u64,
    start: Option<u64>,
    /// Above this share of a round, what was lost says that there is too much in flight.
    pub(super) lost_percent: u64,
    /// What is left of the limit after a loss.
    pub(super) cut_percent: u64,
    /// Answers that usually take longer are too late.
    pub(super) slow_after: Ticks,
    /// So many rounds between two looks at the latency with little in flight.
    pub(super) rest_every: u64,
}

/// By what a number of places is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Aimd,
    Vegas,
    Gradient2,
}

impl Adapt {
    /// More, step by step, while nothing is lost; a tenth less when something is.
    ///
    /// It goes by time-outs and refusals, and by [`Adapt::slow_after`], which it should be given: time-outs tell
    /// late. Where there is neither, it ends at its upper bound.
    ///
    /// # Panics
    /// If the lower bound is 0 or above the upper one, or the upper one is above 2³².
    pub fn aimd(bounds: RangeInclusive<u64>) -> Adapt {
        Adapt::new(Algorithm::Aimd, &bounds)
    }

    /// So many that a few wait inside of the service, by how much longer answers take than with little in flight.
    ///
    /// # Panics
    /// Like [`Adapt::aimd`].
    pub fn vegas(bounds: RangeInclusive<u64>) -> Adapt {
        Adapt::new(Algorithm::Vegas, &bounds)
    }

    /// As many as keep answers within one and a half times what they usually take.
    ///
    /// # Panics
    /// Like [`Adapt::aimd`].
    pub fn gradient2(bounds: RangeInclusive<u64>) -> Adapt {
        Adapt::new(Algorithm::Gradient2, &bounds)
    }

    fn new(algorithm: Algorithm, bounds: &RangeInclusive<u64>) -> Adapt {
        let (min, max) = (*bounds.start(), *bounds.end());
        assert!(
            0 < min && min <= max && max <= MOST,
            "places {min}..={max}: the bounds are out of order or out of range; write 1..=100, at most {MOST}"
        );
        Adapt {
            algorithm,
            min,
            max,
            start: None,
            lost_percent: 5,
            cut_percent: 90,
            slow_after: Ticks::MAX,
            rest_every: 40,
        }
    }

    /// Starts with so many, or with the bound that is nearest; 20 unless set.
    #[must_use]
    pub fn starting_at(self, places: u64) -> Adapt {
        Adapt { start: Some(places), ..self }
    }

    /// Lets so many in a hundred be lost before anything is cut; 5 unless set, at most 99.
    #[must_use]
    pub fn tolerating(self, percent: u64) -> Adapt {
        Adapt { lost_percent: percent.min(99), ..self }
    }

    /// Leaves so much of what was answered when more was lost than is tolerated; 90 in a hundred unless set, from
    /// 10 to 99. However much was lost, a third of the limit is left, or this, if it is less.
    #[must_use]
    pub fn cutting_to(self, percent: u64) -> Adapt {
        Adapt { cut_percent: percent.clamp(10, 99), ..self }
    }

    /// Cuts the limit also when answers usually take longer than this, though nothing is lost. Half of the time
    /// that callers are ready to wait is a good choice.
    #[must_use]
    pub fn slow_after(self, longest: Duration) -> Adapt {
        Adapt { slow_after: Ticks::saturating_from(longest), ..self }
    }

    /// Halves the limit for one round in so many, to see how long answers take with little in flight; 40 unless
    /// set, at least 4. Where short and long calls are mixed a rest lasts until the long ones have ended, and is
    /// rarer by as much. AIMD, which does not go by latency, has no use for it.
    #[must_use]
    pub fn resting_every(self, rounds: u64) -> Adapt {
        Adapt { rest_every: rounds.max(4), ..self }
    }

    /// How many it starts with.
    pub(super) fn start(&self) -> u64 {
        self.start.unwrap_or(20).clamp(self.min, self.max)
    }
}
