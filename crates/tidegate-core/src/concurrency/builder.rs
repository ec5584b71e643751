//! The settings of a concurrency limiter, apart from its live handles.

use std::sync::Arc;
use std::time::Duration;

use super::{Class, ConcurrencyLimiter, ConcurrencySettings, InFlightLimit};
use crate::adaptive::AdaptiveLimit;
use crate::time::{Clock, Source, Ticks};

/// A builder for a [`ConcurrencyLimiter`]: its classes, its queue and its clock.
///
/// Each [`build`](ConcurrencyLimiterBuilder::build) creates a limiter of its own, with class ids of its own.
///
/// ```
/// use tidegate::{AdaptiveLimit, ConcurrencyLimiter, SECOND};
///
/// let limiter = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(2..=200))
///     .max_waiters(100)
///     .newest_first_after(SECOND / 2)
///     .build();
/// assert_eq!(limiter.waiting(), 0);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ConcurrencyLimiterBuilder {
    settings: ConcurrencySettings,
}

impl ConcurrencyLimiter {
    /// Creates a builder for a limiter of at most `places` calls in flight.
    ///
    /// # Panics
    /// If `places` is 0 or more than 2³².
    pub fn builder(places: u64) -> ConcurrencyLimiterBuilder {
        ConcurrencyLimiterBuilder { settings: ConcurrencySettings::new(InFlightLimit::fixed(places)) }
    }

    /// Creates a builder for an adaptive limiter; see [`ConcurrencyLimiter::adaptive`].
    pub fn adaptive_builder(adapt: AdaptiveLimit) -> ConcurrencyLimiterBuilder {
        ConcurrencyLimiterBuilder { settings: ConcurrencySettings::new(InFlightLimit::Adaptive(adapt)) }
    }
}

impl ConcurrencyLimiterBuilder {
    /// Sets the largest number of waiters at a time. The default is 0: an `acquire` that finds no slot is denied at
    /// once.
    ///
    /// A short queue absorbs bursts; a long one only delays its callers beyond their timeouts.
    #[doc(alias("backpressure", "queue"))]
    pub fn max_waiters(mut self, waiters: usize) -> ConcurrencyLimiterBuilder {
        self.settings.line = waiters;
        self
    }

    /// Serves the newest waiter first after the queue has been non-empty for `busy`, until it is empty.
    ///
    /// A queue that is never empty delays all waiters so long that few are served in time. Serving the newest first
    /// serves at least those in time. Meanwhile, an arrival at a full queue evicts the oldest waiter of the lowest
    /// class that waits for more than its reserve. An arrival of a still lower class is denied, unless it is within
    /// its own reserve.
    #[doc(alias("adaptive LIFO", "overload"))]
    pub fn newest_first_after(mut self, busy: Duration) -> ConcurrencyLimiterBuilder {
        self.settings.newest_first_after = Some(Ticks::saturating_from(busy));
        self
    }

    /// Sets the classes in the order of their rank, the most important first. Without classes there is one.
    ///
    /// Each class is admitted to the slots that are reserved for it. All other slots go to the first class with a
    /// waiter. Within a class, waiters are served in FIFO order. When the queue is full, an arrival of a higher
    /// class evicts the newest waiter of the lowest class. A waiter that is entitled to a reserved slot of its
    /// class is never evicted.
    ///
    /// # Panics
    /// If there are none or more than 64, or if their shares exceed 100 percent together.
    #[doc(alias("priority", "criticality"))]
    pub fn classes(mut self, classes: impl IntoIterator<Item = Class>) -> ConcurrencyLimiterBuilder {
        self.settings.classes = Class::valid(classes.into_iter().collect());
        self
    }

    /// Sets the clock; a [`CounterClock`](crate::CounterClock) unless set.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> ConcurrencyLimiterBuilder {
        self.settings.clock = Source::Given(clock);
        self
    }

    /// Creates the limiter, with nothing in flight and no waiters.
    pub fn build(&self) -> ConcurrencyLimiter {
        let list = super::ClassList::new();
        ConcurrencyLimiter::new(ConcurrencySettings { list, ..self.settings.clone() })
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "class 1 of another limiter; use an id that this limiter gives out")]
    fn a_class_of_another_limiter_panics() {
        let builder = ConcurrencyLimiter::builder(4).classes(["a", "b"].map(Class::from));
        let (one, other) = (builder.build(), builder.build());
        let [_, low] = one.class_ids();
        assert!(one.clone().admit(low).is_ok(), "clones share the classes");
        drop(other.admit(low));
    }

    #[test]
    #[should_panic(expected = "3 ids of 2 classes")]
    fn another_number_of_ids_than_classes_panics() {
        let _: [_; 3] =
            ConcurrencyLimiter::builder(4).classes(["a", "b"].map(Class::from)).build().class_ids();
    }
}
