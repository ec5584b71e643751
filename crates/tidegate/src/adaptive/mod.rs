//! Limits that adapt to what a service can bear, by how admitted calls end.
//!
//! An [`Estimator`] finds how many may be in flight: calls that have ended go into a round, and each complete
//! round is settled by one of three algorithms. It is pure: no clock, no lock, no floating point, and it cannot fail.

mod adapt;
mod aimd;
mod base;
mod gradient2;
mod guard;
mod latency;
mod lengths;
mod level;
mod losses;
mod mean;
mod outcome;
mod round;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod vegas;

pub use adapt::Adapt;
pub use guard::{Guard, GuardState, Passage};
pub use outcome::Outcome;

use crate::time::{Ticks, Timestamp};
use adapt::Algorithm;
use aimd::Aimd;
use latency::ByLatency;
use round::{Round, Tally};

/// One call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it ended.
    pub now: Timestamp,
    /// How long it took, from when it entered.
    pub latency: Ticks,
    /// How many were in flight when it ended, itself included.
    pub in_flight: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// Finds how many may be in flight, by how calls end; always within the bounds that were set.
#[derive(Clone, Debug)]
pub struct Estimator {
    round: Round,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    ByLosses(Aimd),
    ByLatency(ByLatency),
}

/// Whether calls that began before a round was settled still tell about the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Smooth,
    Cut,
}

impl Estimator {
    /// The estimator that these settings describe.
    pub fn new(adapt: &Adapt) -> Estimator {
        let kind = match adapt.algorithm {
            Algorithm::Aimd => Kind::ByLosses(Aimd::new(adapt)),
            Algorithm::Vegas => Kind::ByLatency(ByLatency::new(adapt, vegas::follow)),
            Algorithm::Gradient2 => Kind::ByLatency(ByLatency::new(adapt, gradient2::follow)),
        };
        Estimator { round: Round::default(), kind }
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u64 {
        match &self.kind {
            Kind::ByLosses(kind) => kind.limit(),
            Kind::ByLatency(kind) => kind.limit(),
        }
    }

    /// Learns from a call that has ended. How many may be in flight from now on.
    pub fn observe(&mut self, sample: Sample) -> u64 {
        if let Some(tally) = self.round.add(sample, self.limit()) {
            match (self.settle(&tally), &self.kind) {
                (Settled::Smooth, _) => {}
                (Settled::Cut, Kind::ByLosses(_)) => self.round.forget_before(sample.now),
                (Settled::Cut, Kind::ByLatency(_)) => self.round.forget_and_wait(sample.now),
            }
        }
        self.limit()
    }

    fn settle(&mut self, tally: &Tally) -> Settled {
        match &mut self.kind {
            Kind::ByLosses(kind) => kind.settle(tally),
            Kind::ByLatency(kind) => kind.settle(tally),
        }
    }
}
