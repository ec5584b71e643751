//! The settings of a circuit breaker, apart from its live handles.

use std::sync::Arc;
use std::time::Duration;

use super::{BreakerSettings, CircuitBreaker, SLOTS};
use crate::time::{Clock, MILLISECOND, Source, Ticks};

/// A builder for a [`CircuitBreaker`]: its window, its thresholds, its probes and its clock.
///
/// Each [`build`](CircuitBreakerBuilder::build) creates a breaker of its own, without history.
///
/// ```
/// use tidegate::{BreakerState, CircuitBreaker, SECOND};
///
/// let breaker = CircuitBreaker::builder().window(30 * SECOND).percent(20).pause(SECOND).build();
/// assert_eq!(breaker.state(), BreakerState::Clear);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct CircuitBreakerBuilder {
    settings: BreakerSettings,
    clock: Source,
}

impl CircuitBreaker {
    /// Creates a builder with the defaults of [`CircuitBreaker::new`].
    pub fn builder() -> CircuitBreakerBuilder {
        CircuitBreakerBuilder { settings: BreakerSettings::DEFAULT, clock: Source::default() }
    }
}

impl CircuitBreakerBuilder {
    /// Sets the window: calls that ended within this time are judged. Ten seconds unless set, at least a millisecond.
    pub fn window(mut self, window: Duration) -> CircuitBreakerBuilder {
        let window = Ticks::saturating_from(window.max(MILLISECOND));
        self.settings.slot = Ticks::new(window.get() / SLOTS);
        self
    }

    /// Sets the least number of judged calls before the breaker starts to limit; 20 unless set, at least one.
    pub fn at_least(mut self, calls: u64) -> CircuitBreakerBuilder {
        self.settings.at_least = calls.max(1);
        self
    }

    /// Sets the percentage of failures above which the breaker starts to limit; 50 unless set. With 100 it never does.
    pub fn percent(mut self, percent: u64) -> CircuitBreakerBuilder {
        self.settings.percent = percent.min(100);
        self
    }

    /// Sets the number of concurrent probes after a pause, which is also the number of judged calls for each further
    /// step; 3 unless set, at least one.
    pub fn probes(mut self, probes: u64) -> CircuitBreakerBuilder {
        self.settings.probes = probes.max(1);
        self
    }

    /// Sets the pause: the time for which the breaker is open. Five seconds unless set, at least a millisecond.
    pub fn pause(mut self, pause: Duration) -> CircuitBreakerBuilder {
        self.settings.pause = Ticks::saturating_from(pause.max(MILLISECOND));
        self
    }

    /// Sets the clock; a [`CounterClock`](crate::CounterClock) unless set.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> CircuitBreakerBuilder {
        self.clock = Source::Given(clock);
        self
    }

    /// Creates the breaker, closed and without history.
    pub fn build(&self) -> CircuitBreaker {
        CircuitBreaker::of(self.settings, self.clock.clone())
    }
}
