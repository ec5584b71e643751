//! The settings of a limiter, apart from its live handles.

use std::sync::Arc;

use super::{Limiter, ZONE_BYTES};
use crate::limit::Limit;
use crate::store::{MemoryStore, WhenFull, Zone};
use crate::time::Clock;

/// A builder for a [`Limiter`]: its store, its clock and its queue.
///
/// ```
/// use tidegate::{Limit, Limiter, WhenFull, Zone};
///
/// let zone = Zone::new(1 << 20);
/// let limiter = Limiter::builder(Limit::per_second(10))
///     .on(&zone, "user")
///     .when_full(WhenFull::Forget)
///     .max_waiters(100)
///     .build();
/// assert!(limiter.admit("ana").is_allowed());
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct LimiterBuilder {
    limit: Limit,
    store: Option<(MemoryStore, String)>,
    clock: Option<Arc<dyn Clock>>,
    when_full: Option<WhenFull>,
    max_waiters: Option<usize>,
}

impl Limiter {
    /// Creates a builder for a limiter under this limit.
    pub fn builder(limit: Limit) -> LimiterBuilder {
        LimiterBuilder { limit, store: None, clock: None, when_full: None, max_waiters: None }
    }
}

impl LimiterBuilder {
    /// Sets the store and the name; see [`Limiter::on`]. The store has its own clock. Without a store, each limiter has
    /// a zone of its own.
    pub fn on(mut self, store: impl Into<MemoryStore>, name: &str) -> LimiterBuilder {
        self.store = Some((store.into(), name.to_owned()));
        self
    }

    /// Sets the clock of a limiter with a zone of its own. It has no effect on a store that was set by
    /// [`LimiterBuilder::on`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> LimiterBuilder {
        self.clock = Some(clock);
        self
    }

    /// Sets what a zone does with a new key when it has no free cell; see [`Limiter::set_when_full`].
    #[doc(alias("eviction"))]
    pub fn when_full(mut self, when_full: WhenFull) -> LimiterBuilder {
        self.when_full = Some(when_full);
        self
    }

    /// Sets the largest number of waiters at a time; see [`Limiter::set_max_waiters`].
    #[doc(alias("backpressure", "load shedding"))]
    pub fn max_waiters(mut self, most: usize) -> LimiterBuilder {
        self.max_waiters = Some(most);
        self
    }

    pub(crate) fn limit(mut self, limit: Limit) -> LimiterBuilder {
        self.limit = limit;
        self
    }

    /// Creates the limiter.
    pub fn build(self) -> Limiter {
        let limiter = match (&self.store, self.clock) {
            (Some((store, name)), _) => Limiter::on(store.clone(), name, self.limit),
            (None, Some(clock)) => Limiter::on(&Zone::with_clock(ZONE_BYTES, clock), "", self.limit),
            (None, None) => Limiter::new(self.limit),
        };
        if let Some(when_full) = self.when_full {
            limiter.set_when_full(when_full);
        }
        if let Some(most) = self.max_waiters {
            limiter.set_max_waiters(most);
        }
        limiter
    }
}
