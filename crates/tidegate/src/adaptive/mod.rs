//! Limits that adapt to what a service can bear, by how admitted calls end.
//!
//! An [`Estimator`] finds how many may be in flight: calls that have ended go into a round, and each complete
//! round is settled by one of three algorithms. It is pure: no clock, no lock, no floating point, and it cannot fail.

mod adapt;
mod aimd;
mod base;
mod gradient2;
mod guard;
mod lengths;
mod level;
mod losses;
mod mean;
mod round;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod vegas;

pub use adapt::Adapt;
pub use guard::{Guard, GuardState, Passage};

use crate::time::{Ticks, Timestamp};
use adapt::Algorithm;
use aimd::Aimd;
use base::Base;
use level::Level;
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

/// How an admitted call ended, as far as that says something about load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was answered; how long that took counts.
    Done,
    /// It failed for a reason that says nothing about load, such as an HTTP 500.
    Failed,
    /// It was refused or came too late for want of capacity: a 503, a time-out.
    Overloaded,
    /// It says nothing: the caller went away, or was refused for its own doing.
    Ignored,
}

/// Finds how many may be in flight, by how calls end; always within the bounds that were set.
#[derive(Clone, Debug)]
pub struct Estimator {
    adapt: Adapt,
    round: Round,
    level: Level,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    ByLosses(Aimd),
    /// Vegas and Gradient2: a limit that follows latency, with rests between.
    ByLatency(Base, Follow),
}

/// Moves a limit after a round, by the latencies with little in flight and now.
type Follow = fn(&mut Level, Ticks, Ticks, &Tally) -> Settled;

/// Whether calls that began before a round was settled still tell about the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Smooth,
    Cut,
}

impl Estimator {
    /// The estimator that these settings describe.
    pub fn new(adapt: &Adapt) -> Estimator {
        let base = Base::new(adapt.rest_every);
        let kind = match adapt.algorithm {
            Algorithm::Aimd => Kind::ByLosses(Aimd::START),
            Algorithm::Vegas => Kind::ByLatency(base, vegas::follow),
            Algorithm::Gradient2 => Kind::ByLatency(base, gradient2::follow),
        };
        Estimator { adapt: adapt.clone(), round: Round::default(), level: Level::new(adapt), kind }
    }

    /// How many may be in flight now.
    pub fn limit(&self) -> u64 {
        match &self.kind {
            Kind::ByLatency(base, _) if base.is_resting => self.level.half(),
            _ => self.level.places(),
        }
    }

    /// Learns from a call that has ended. How many may be in flight from now on.
    pub fn observe(&mut self, sample: Sample) -> u64 {
        if let Some(tally) = self.round.add(sample, self.limit()) {
            match (self.settle(&tally), &self.kind) {
                (Settled::Smooth, _) => {}
                (Settled::Cut, Kind::ByLosses(_)) => self.round.forget_before(sample.now),
                (Settled::Cut, Kind::ByLatency(..)) => self.round.forget_and_wait(sample.now),
            }
        }
        self.limit()
    }

    fn settle(&mut self, tally: &Tally) -> Settled {
        let before = self.level.places();
        let is_cut = losses::cut(&self.adapt, &mut self.level, tally);
        match &mut self.kind {
            Kind::ByLosses(aimd) => aimd.settle(&mut self.level, is_cut.then_some(before), tally),
            Kind::ByLatency(base, follow) => {
                let (known, was_resting) = (base.learn(tally), base.is_resting);
                let settled = match (known, tally.latency) {
                    _ if is_cut => Settled::Cut,
                    (Some(base), Some(now)) if !was_resting => {
                        follow(&mut self.level, base, now.least, tally)
                    }
                    _ => Settled::Smooth,
                };
                let is_resting = base.end_round(self.level.places());
                // What begins under another limit than the round before is to be told apart from it.
                if is_resting || was_resting { Settled::Cut } else { settled }
            }
        }
    }
}
