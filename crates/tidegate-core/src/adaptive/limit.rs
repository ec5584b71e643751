//! The settings of an adaptive concurrency limit: the algorithm, its bounds and its parameters.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::time::Ticks;

/// The largest adaptive limit that the fixed-point format can hold.
const MOST: u64 = 1 << 32;

/// The settings of an adaptive concurrency limit, always within its bounds.
///
/// The defaults fit most services. Set [`AdaptiveLimit::slow_after`] if timeouts are not reported.
///
/// ```
/// use tidegate::{AdaptiveLimit, MILLISECOND};
///
/// let adapt = AdaptiveLimit::gradient2(4..=500).starting_at(20).slow_after(800 * MILLISECOND);
/// # let _ = adapt;
/// ```
///
/// | algorithm | signal | choose it if |
/// |---|---|---|
/// | [AIMD](AdaptiveLimit::aimd) | losses, late replies | the service denies calls or times out when it is overloaded |
/// | [Vegas](AdaptiveLimit::vegas) | the number of calls that queue in the service | a short queue there is wanted, to keep all workers busy |
/// | [Gradient2](AdaptiveLimit::gradient2) | latency relative to that with little in flight | one and a half times the usual latency is acceptable |
#[doc(alias("adaptive concurrency", "congestion control"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdaptiveLimit {
    pub(super) algorithm: AdaptiveAlgorithm,
    pub(super) min: u64,
    pub(super) max: u64,
    start: Option<u64>,
    /// The share of lost calls in a round, in percent, above which too many are in flight.
    pub(super) lost_percent: u64,
    /// The remaining part of the limit after a loss, in percent.
    pub(super) cut_percent: u64,
    /// The usual latency above which replies are too late.
    pub(super) slow_after: Ticks,
    /// The number of rounds between two measurements of the latency with little in flight.
    pub(super) rest_every: u64,
}

/// The algorithm that derives the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdaptiveAlgorithm {
    Aimd,
    Vegas,
    Gradient2,
}

impl AdaptiveLimit {
    /// Creates an AIMD limit: it grows step by step while nothing is lost, and shrinks by a tenth after a loss.
    ///
    /// It uses timeouts and denials, and [`AdaptiveLimit::slow_after`], which should be set: timeouts come late.
    /// Without any of these signals, the limit ends at its upper bound.
    ///
    /// # Panics
    /// Panics if the lower bound is 0 or above the upper one, or the upper one is above 2³².
    pub fn aimd(bounds: RangeInclusive<u64>) -> AdaptiveLimit {
        AdaptiveLimit::new(AdaptiveAlgorithm::Aimd, &bounds)
    }

    /// Creates a Vegas limit: a few calls queue in the service, derived from the latency beyond that with little in
    /// flight.
    ///
    /// # Panics
    /// Panics like [`AdaptiveLimit::aimd`].
    pub fn vegas(bounds: RangeInclusive<u64>) -> AdaptiveLimit {
        AdaptiveLimit::new(AdaptiveAlgorithm::Vegas, &bounds)
    }

    /// Creates a Gradient2 limit: as many calls as keep the latency within one and a half times the usual.
    ///
    /// # Panics
    /// Panics like [`AdaptiveLimit::aimd`].
    pub fn gradient2(bounds: RangeInclusive<u64>) -> AdaptiveLimit {
        AdaptiveLimit::new(AdaptiveAlgorithm::Gradient2, &bounds)
    }

    fn new(algorithm: AdaptiveAlgorithm, bounds: &RangeInclusive<u64>) -> AdaptiveLimit {
        let (min, max) = (*bounds.start(), *bounds.end());
        assert!(
            0 < min && min <= max && max <= MOST,
            "places {min}..={max}: the bounds are out of order or out of range; write 1..=100, at most {MOST}"
        );
        AdaptiveLimit {
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

    /// Sets the initial limit, or the nearest bound; 20 unless set.
    #[must_use]
    pub fn starting_at(self, places: u64) -> AdaptiveLimit {
        AdaptiveLimit { start: Some(places), ..self }
    }

    /// Sets the percentage of calls that may be lost before the limit is cut; 5 unless set, at most 99.
    #[must_use]
    pub fn tolerating(self, percent: u64) -> AdaptiveLimit {
        AdaptiveLimit { lost_percent: percent.min(99), ..self }
    }

    /// Sets the percentage of the answered calls to which the limit is cut after too many losses; 90 unless set, from
    /// 10 to 99. However many were lost, a third of the limit remains, or this percentage if it is less.
    #[must_use]
    pub fn cutting_to(self, percent: u64) -> AdaptiveLimit {
        AdaptiveLimit { cut_percent: percent.clamp(10, 99), ..self }
    }

    /// Sets the usual latency above which the limit is cut too, even if nothing is lost. Half of the callers' timeout
    /// is a good choice. There is no such latency unless set.
    #[must_use]
    pub fn slow_after(self, longest: Duration) -> AdaptiveLimit {
        AdaptiveLimit { slow_after: Ticks::saturating_from(longest), ..self }
    }

    /// Sets the number of rounds between rests: for one round the limit is halved, to measure the latency with little
    /// in flight. 40 unless set, at least 4. If short and long calls are mixed, a rest lasts until the long ones have
    /// ended, and rests are less frequent in proportion. AIMD, which does not use latency, ignores this setting.
    #[must_use]
    pub fn resting_every(self, rounds: u64) -> AdaptiveLimit {
        AdaptiveLimit { rest_every: rounds.max(4), ..self }
    }

    /// Returns the initial limit.
    pub(super) fn start(&self) -> u64 {
        self.start.unwrap_or(20).clamp(self.min, self.max)
    }
}
