//! The settings of a limiter of one key, apart from its live handles.

use std::sync::Arc;

use super::DirectLimiter;
use crate::limit::Limit;
use crate::time::{Clock, Source};

/// A builder for a [`DirectLimiter`]: its clock and its queue.
///
/// ```
/// use tidegate::{DirectLimiter, Limit};
///
/// let limiter = DirectLimiter::builder(Limit::per_second(10)).max_waiters(100).build();
/// assert!(limiter.admit().is_allowed());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DirectLimiterBuilder {
    limit: Limit,
    clock: Source,
    max_waiters: Option<usize>,
}

impl DirectLimiter {
    /// Creates a builder for a limiter of one key.
    pub fn builder(limit: Limit) -> DirectLimiterBuilder {
        DirectLimiterBuilder { limit, clock: Source::default(), max_waiters: None }
    }
}

impl DirectLimiterBuilder {
    /// Sets the clock; a [`CounterClock`](crate::CounterClock) unless set.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> DirectLimiterBuilder {
        self.clock = Source::Given(clock);
        self
    }

    /// Sets the largest number of waiters at a time; see [`DirectLimiter::set_max_waiters`].
    #[doc(alias("backpressure", "load shedding"))]
    pub fn max_waiters(mut self, most: usize) -> DirectLimiterBuilder {
        self.max_waiters = Some(most);
        self
    }

    pub(crate) fn limit(mut self, change: impl FnOnce(Limit) -> Limit) -> DirectLimiterBuilder {
        self.limit = change(self.limit);
        self
    }

    /// Creates the limiter.
    pub fn build(self) -> DirectLimiter {
        let limiter = DirectLimiter::of(self.limit, self.clock);
        if let Some(most) = self.max_waiters {
            limiter.set_max_waiters(most);
        }
        limiter
    }
}
