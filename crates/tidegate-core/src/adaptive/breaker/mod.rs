//! An adaptive circuit breaker: while too many calls fail, only a share of them passes.
//!
//! A breaker that is either open or closed turns a service that fails half of its calls into one that fails all of
//! them. This breaker admits the share that the service can handle, opens only if no share helps, and never decides by
//! too few calls.

mod builder;
mod history;
#[cfg(all(test, not(tidegate_models)))]
mod tests;
mod window;

use std::sync::Arc;
use std::time::Duration;

pub use self::builder::CircuitBreakerBuilder;
use self::history::BreakerHistory;
use super::Outcome;
use crate::denied::Denied;
use crate::sync::Mutex;
use crate::time::{SECOND, Source, Ticks, Timestamp};

/// An adaptive circuit breaker: it watches the results of calls and, while too many fail, admits only a share of them.
/// Clones share their state.
///
/// Settings are made by a builder: [`CircuitBreaker::builder`].
///
/// ```
/// use tidegate::{CircuitBreaker, Outcome, SECOND};
///
/// let breaker = CircuitBreaker::builder().window(10 * SECOND).at_least(20).percent(50).build();
/// match breaker.admit() {
///     Ok(permit) => permit.done(Outcome::Done), // after the call, with its outcome
///     Err(denied) => println!("not now: {denied}"),
/// }
/// ```
///
/// # States
///
/// *Closed* (`Clear`): every call passes. The breaker starts to limit when the window contains at least
/// [`at_least`](CircuitBreakerBuilder::at_least) judged calls, and more than
/// [`percent`](CircuitBreakerBuilder::percent) of them failed or found the service overloaded.
///
/// *Limiting*: at first half of the calls pass, exactly, without randomness. A tenth of the window later, if calls
/// admitted since then have ended, the share changes: it is halved if too many still fail, otherwise it grows by an
/// eighth of the whole, until all calls pass.
///
/// *Open* (`Shut`): when the share would fall below 1/32, no call passes for the
/// [`pause`](CircuitBreakerBuilder::pause).
///
/// *Half-open*: after the pause a few probes pass. If they succeed, an eighth of the calls passes, and the share grows
/// from there. If one fails, the breaker opens for twice as long, at most for eight times the first pause.
///
/// # Few or slow calls
///
/// With too few results to decide, the share grows by an eighth per window. This growth is suspended for at most eight
/// windows, while a call admitted since the last change is in flight or has failed. So timeouts may be up to eight
/// windows long. Probes have no timeout. After eight pauses without a result, one more probe is admitted, and so on: a
/// probe that never ends does not keep a recovered service blocked.
#[doc(alias("circuit breaker", "Guard", "load shedding", "error rate", "outlier detection"))]
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    shared: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: BreakerSettings,
    clock: Source,
    course: Mutex<BreakerHistory>,
}

/// The number of slots in a window.
const SLOTS: u64 = 10;

/// The largest factor by which a pause grows.
const LONGEST_PAUSE: u64 = 8;

/// The settings of a breaker: the thresholds for limiting and for recovery.
#[derive(Clone, Copy, Debug)]
struct BreakerSettings {
    /// The length of one slot of the window, and of one step of the share.
    slot: Ticks,
    at_least: u64,
    percent: u64,
    probes: u64,
    pause: Ticks,
}

impl BreakerSettings {
    const DEFAULT: BreakerSettings = BreakerSettings {
        slot: Ticks::saturating_from(SECOND),
        at_least: 20,
        percent: 50,
        probes: 3,
        pause: Ticks::saturating_from(Duration::from_secs(5)),
    };

    /// Returns the whole window.
    fn window(&self) -> Ticks {
        Ticks::new(self.slot.get().saturating_mul(SLOTS))
    }

    /// Returns the longest pause.
    fn longest_pause(&self) -> Ticks {
        Ticks::new(self.pause.get().saturating_mul(LONGEST_PAUSE))
    }

    /// Returns the pause that follows this one.
    fn next_pause(&self, last: Option<Ticks>) -> Ticks {
        last.map_or(self.pause, |last| last.saturating_add(last).min(self.longest_pause()))
    }
}

/// The state of a circuit breaker.
#[doc(alias("closed", "open", "half-open"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Closed: every call passes.
    Clear,
    /// A share of the calls passes.
    Limiting {
        /// The percentage of calls that pass, rounded down.
        percent: u64,
    },
    /// Open: no call passes.
    Shut {
        /// The time until probes pass.
        left: Duration,
    },
    /// Half-open: only a few probes pass.
    HalfOpen,
}

impl CircuitBreaker {
    /// Creates a breaker with the defaults: a window of ten seconds with at least 20 judged calls, more than 50 percent
    /// of them failed or overloaded; three probes after a pause of five seconds.
    pub fn new() -> CircuitBreaker {
        CircuitBreaker::of(BreakerSettings::DEFAULT, Source::default())
    }

    fn of(settings: BreakerSettings, clock: Source) -> CircuitBreaker {
        let course = Mutex::new(BreakerHistory::new(clock.now()));
        CircuitBreaker { shared: Arc::new(Inner { settings, clock, course }) }
    }

    /// Admits one call. Fails with the time of the next attempt if the call is denied.
    ///
    /// `retry_after` is exact while the breaker is open, and one step of the share otherwise. Report the result with
    /// [`BreakerPermit::done`], also for calls that failed.
    pub fn admit(&self) -> Result<BreakerPermit, Denied> {
        let Inner { settings, clock, course } = &*self.shared;
        let (began, admitted) = {
            let mut course = course.lock();
            let now = clock.now();
            (now, course.admit(now, settings))
        };
        match admitted {
            Ok(epoch) => Ok(BreakerPermit {
                shared: Arc::clone(&self.shared),
                epoch,
                began,
                outcome: Outcome::Ignored,
            }),
            Err(retry_after) => Err(Denied::overloaded(0, retry_after)),
        }
    }

    /// Returns the current state.
    ///
    /// It applies changes that are due, such as the end of a pause. For metrics and health checks.
    pub fn state(&self) -> BreakerState {
        let Inner { settings, clock, course } = &*self.shared;
        course.lock().state(clock.now(), settings)
    }
}

impl Default for CircuitBreaker {
    fn default() -> CircuitBreaker {
        CircuitBreaker::new()
    }
}

/// The permit of an admitted call. Dropped without a result, it counts as [`Outcome::Ignored`].
#[must_use = "a breaker learns only from the outcomes of calls"]
#[derive(Debug)]
pub struct BreakerPermit {
    shared: Arc<Inner>,
    epoch: u64,
    began: Timestamp,
    outcome: Outcome,
}

impl BreakerPermit {
    /// Returns the time since the call was admitted.
    pub fn lasted(&self) -> Duration {
        self.shared.clock.now().since(self.began).to_duration()
    }

    /// Reports the result of the call.
    pub fn done(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        let Inner { settings, clock, course } = &*self.shared;
        let mut course = course.lock();
        course.end(self.epoch, self.outcome, clock.now(), settings);
    }
}
