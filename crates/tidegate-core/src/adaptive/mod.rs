//! Adaptive limits, derived from the results of admitted calls: the capacity of a service is measured, not configured.
//!
//! An [`Estimator`] finds the concurrency limit. Ended calls are collected in a round, and each complete round is
//! evaluated by one of three algorithms (AIMD, Vegas, Gradient2). It is pure: no clock, no lock, no floating point, and
//! it cannot fail.

mod aimd;
mod base;
mod breaker;
mod gradient2;
mod lengths;
mod level;
mod limit;
mod losses;
mod mean;
mod round;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod vegas;

pub use breaker::{BreakerPermit, BreakerState, CircuitBreaker, CircuitBreakerBuilder};
pub use limit::AdaptiveLimit;

use crate::time::{Ticks, Timestamp};
use aimd::Aimd;
use base::Base;
use level::Level;
use limit::AdaptiveAlgorithm;
use round::{Round, RoundTally};

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The time at which it ended.
    pub now: Timestamp,
    /// Its duration, from its admission.
    pub latency: Ticks,
    /// The number in flight when it ended, including itself.
    pub in_flight: u64,
    /// Its result.
    pub outcome: Outcome,
}

impl Sample {
    /// Creates a sample of a call that ended at `now`.
    pub const fn new(now: Timestamp, latency: Ticks, in_flight: u64, outcome: Outcome) -> Sample {
        Sample { now, latency, in_flight, outcome }
    }
}

/// The result of an admitted call, as a sign of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The service replied; the latency counts.
    Done,
    /// The call failed for a reason unrelated to load, such as an HTTP 500.
    Failed,
    /// The service lacked capacity: it denied the call or timed out, as with a 503.
    Overloaded,
    /// The call carries no information: the caller cancelled it, or it was rejected for a fault of the caller.
    Ignored,
}

/// An estimator of the concurrency limit from the results of calls; always within the configured bounds.
///
/// [`ConcurrencyLimiter::adaptive`](crate::ConcurrencyLimiter::adaptive) uses it. Use it directly to drive a limit of
/// your own, such as a pool size:
///
/// ```
/// use tidegate::{AdaptiveLimit, Estimator, Outcome, Sample, Ticks, Timestamp};
///
/// let mut estimator = Estimator::new(&AdaptiveLimit::aimd(1..=100).starting_at(10));
/// for call in 0..100 {
///     let (now, latency) = (Timestamp::from_ticks(1_000 + call), Ticks::ZERO);
///     estimator.observe(Sample::new(now, latency, 10, Outcome::Overloaded));
/// }
/// assert!(estimator.limit() < 10);
/// ```
#[doc(alias("AIMD", "Vegas", "Gradient2", "congestion control"))]
#[derive(Clone, Debug)]
pub struct Estimator {
    adapt: AdaptiveLimit,
    round: Round,
    level: Level,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// AIMD: a limit that follows losses.
    ByLosses(Aimd),
    /// Vegas and Gradient2: a limit that follows latency, with rests between.
    ByLatency(Base, Follow),
}

/// A function that moves a limit after a round, given the latencies with little in flight and now.
type Follow = fn(&mut Level, Ticks, Ticks, &RoundTally) -> Relevance;

/// The relevance of calls that began before a round was evaluated, for the limit after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relevance {
    /// They are comparable to later ones, and count.
    Smooth,
    /// They reflect another limit, and are ignored.
    Cut,
}

impl Estimator {
    /// Creates the estimator with these settings.
    pub fn new(adapt: &AdaptiveLimit) -> Estimator {
        let base = Base::new(adapt.rest_every);
        let kind = match adapt.algorithm {
            AdaptiveAlgorithm::Aimd => Kind::ByLosses(Aimd::START),
            AdaptiveAlgorithm::Vegas => Kind::ByLatency(base, vegas::follow),
            AdaptiveAlgorithm::Gradient2 => Kind::ByLatency(base, gradient2::follow),
        };
        Estimator { adapt: adapt.clone(), round: Round::default(), level: Level::new(adapt), kind }
    }

    /// Returns the current concurrency limit.
    pub fn limit(&self) -> u64 {
        match &self.kind {
            Kind::ByLatency(base, _) if base.is_resting => self.level.half(),
            _ => self.level.places(),
        }
    }

    /// Records a call that has ended. Returns the concurrency limit from now on.
    pub fn observe(&mut self, sample: Sample) -> u64 {
        if let Some(tally) = self.round.add(sample, self.limit()) {
            match (self.settle(&tally), &self.kind) {
                (Relevance::Smooth, _) => {}
                (Relevance::Cut, Kind::ByLosses(_)) => self.round.forget_before(sample.now),
                (Relevance::Cut, Kind::ByLatency(..)) => self.round.forget_and_wait(sample.now),
            }
        }
        self.limit()
    }

    /// Moves the limit by the tally of one round.
    fn settle(&mut self, tally: &RoundTally) -> Relevance {
        let before = self.level.places();
        let is_cut = losses::cut(&self.adapt, &mut self.level, tally);
        match &mut self.kind {
            Kind::ByLosses(aimd) => aimd.settle(&mut self.level, is_cut.then_some(before), tally),
            Kind::ByLatency(base, follow) => {
                let (known, was_resting) = (base.learn(tally), base.is_resting);
                let settled = match (known, tally.latency) {
                    _ if is_cut => Relevance::Cut,
                    (Some(base), Some(now)) if !was_resting => {
                        follow(&mut self.level, base, now.least, tally)
                    }
                    _ => Relevance::Smooth,
                };
                let is_resting = base.end_round(self.level.places());
                // Calls under a different limit than the previous round must not be mixed with it.
                if is_resting || was_resting { Relevance::Cut } else { settled }
            }
        }
    }
}
