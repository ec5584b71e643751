//! The figures of a limit: rate, period, interval, burst and lease.
//!
//! The setters of a limit have the plain names ([`Limit::burst`] returns a limit with another burst). So the figure
//! that belongs to `burst` is [`Limit::burst_size`].

use std::time::Duration;

use super::builder::WrittenRate;
use super::{Limit, Rate};
use crate::algorithm::Algorithm;
use crate::time::Ticks;

/// The figures of a limit. An algorithm that has no such figure returns `None`. *As written* means not reduced: see
/// [`Limit::rate`].
///
/// | algorithm | `rate`, `period` | `interval` | `burst_size` | `lease` |
/// |---|---|---|---|---|
/// | token-bucket | as written | yes | burst | |
/// | leaky-bucket | as written | yes | queue + 1 | |
/// | fixed-window, sliding-log, sliding-window | as written | | amount | |
/// | pacer | as written; no period if unlimited | yes, unless unlimited | | |
/// | concurrency | | | maximum in flight | as written |
/// | calendar | as written; no period, because its length varies | | amount | |
impl Limit {
    /// Returns the rate as written, not reduced. `None` for a concurrency limit.
    ///
    /// For `30/60s` it is 30 per 60 seconds, not 1 per 2 seconds. `Display`, of the rate and of the limit, prints these
    /// numbers in the canonical unit: `30/m`.
    ///
    /// ```
    /// use tidegate::{Limit, Rate, SECOND};
    ///
    /// let limit: Limit = "30/60s burst 5".parse()?;
    /// assert_eq!(limit.rate(), Some(Rate::new(30, 60 * SECOND)?));
    /// assert_ne!(limit.rate(), Some(Rate::new(1, 2 * SECOND)?));
    /// assert_eq!(limit.to_string(), "30/m burst 5");
    /// assert_eq!(Limit::concurrency(8, SECOND).rate(), None);
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    pub const fn rate(&self) -> Option<Rate> {
        match self.algorithm() {
            Algorithm::Concurrency => None,
            _ => Some(Rate(self.draft.rate)),
        }
    }

    /// Returns the period of the rate, as written. `None` for an unlimited pacer, a calendar and a concurrency limit.
    pub const fn period(&self) -> Option<Duration> {
        match self.rate() {
            Some(rate) => rate.period(),
            None => None,
        }
    }

    /// Returns the time in which one unit is regained: the period divided by the amount, rounded up to a tick.
    ///
    /// The limit decides by exactly this interval. [`Ticks::to_duration`] rounds it up to a nanosecond. `None` for
    /// windows and calendars, which regain units together, for an unlimited pacer and for a concurrency limit.
    ///
    /// ```
    /// use tidegate::{Limit, SECOND, Ticks};
    ///
    /// assert_eq!(Limit::per_second(10).interval(), Some(Ticks::saturating_from(SECOND / 10)));
    /// let third = Limit::per_second(3).interval().expect("a token bucket has an interval");
    /// assert_eq!(third.to_duration().as_nanos(), 333_333_334); // rounded up
    /// assert_eq!(Limit::fixed_window(10, SECOND).interval(), None);
    /// ```
    pub fn interval(&self) -> Option<Ticks> {
        let [first, second, ..] = self.numbers();
        match self.algorithm() {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => Some(Ticks::new(second)),
            Algorithm::Pacer => (first > 0).then_some(Ticks::new(first)),
            _ => None,
        }
    }

    /// Returns the largest cost that an unused key admits at one instant, delayed or not. It is exact.
    ///
    /// A leaky bucket delays all but the units of its `delay_after`. `None` for a pacer, which grants any cost.
    ///
    /// ```
    /// use tidegate::{Limit, SECOND};
    ///
    /// assert_eq!(Limit::per_second(10).burst(20).burst_size(), Some(20));
    /// assert_eq!(Limit::leaky_bucket(10, SECOND).queue(4).burst_size(), Some(5));
    /// assert_eq!(Limit::pacer(10, SECOND).burst_size(), None);
    /// ```
    pub fn burst_size(&self) -> Option<u64> {
        let [first, ..] = self.numbers();
        (self.algorithm() != Algorithm::Pacer).then_some(first)
    }

    /// Returns the lease of a concurrency limit: the time after which a permit ends. `None` for other algorithms.
    pub const fn lease(&self) -> Option<Duration> {
        match (self.algorithm(), self.draft.rate) {
            (Algorithm::Concurrency, WrittenRate::Per { period, .. }) => Some(period),
            _ => None,
        }
    }
}

impl Rate {
    /// Returns the number of units per period, as written; `None` if the rate is unlimited.
    pub const fn amount(&self) -> Option<u64> {
        match self.0 {
            WrittenRate::Per { amount, .. } | WrittenRate::Calendar { amount, .. } => Some(amount),
            WrittenRate::Unlimited => None,
        }
    }

    /// Returns the period, as written; `None` if the rate is unlimited, or per period of a calendar.
    pub const fn period(&self) -> Option<Duration> {
        match self.0 {
            WrittenRate::Per { period, .. } => Some(period),
            WrittenRate::Calendar { .. } | WrittenRate::Unlimited => None,
        }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, SECOND, State, Timestamp};

    fn limit(text: &str) -> Limit {
        text.parse().expect(text)
    }

    #[test]
    fn each_algorithm_has_the_figures_of_the_table() {
        let tick = Ticks::new(1);
        let ticks = |span: Duration| Some(Ticks::saturating_from(span));
        for (text, rate, interval, burst, lease) in [
            ("30/60s burst 15", Some("30/m"), ticks(2 * SECOND), Some(15), None),
            ("10/s queue 9 leaky-bucket", Some("10/s"), ticks(SECOND / 10), Some(10), None),
            ("7/60s fixed-window", Some("7/m"), None, Some(7), None),
            ("7/60s sliding-log", Some("7/m"), None, Some(7), None),
            ("7/60s sliding-window", Some("7/m"), None, Some(7), None),
            ("7/60s sliding-window mode estimate", Some("7/m"), None, Some(7), None),
            ("5/s pacer", Some("5/s"), ticks(SECOND / 5), None, None),
            ("5/s pacer warm-up 4s", Some("5/s"), ticks(SECOND / 5), None, None),
            ("unlimited pacer", Some("unlimited"), None, None, None),
            ("8/30s concurrency", None, None, Some(8), Some(30 * SECOND)),
            ("7/day calendar", Some("7/day"), None, Some(7), None),
        ] {
            let limit = limit(text);
            assert_eq!(limit.rate().map(|rate| rate.to_string()).as_deref(), rate, "{text}");
            assert_eq!(limit.period(), limit.rate().and_then(|rate| rate.period()), "{text}");
            assert_eq!(
                (limit.interval(), limit.burst_size(), limit.lease()),
                (interval, burst, lease),
                "{text}"
            );
        }
        let uneven = limit("3/s").interval().expect("a token bucket");
        let second = Ticks::saturating_from(SECOND);
        assert!(uneven.get() * 3 >= second.get() && (uneven.get() - tick.get()) * 3 < second.get());
        assert_eq!((Rate::UNLIMITED.amount(), Rate::UNLIMITED.period()), (None, None));
        assert_eq!(limit("60/m").rate().and_then(|rate| rate.amount()), Some(60));
    }

    #[test]
    fn burst_size_is_the_largest_cost_that_an_unused_key_admits() {
        let texts =
            ["30/60s burst 15", "10/s queue 9 leaky-bucket", "7/60s sliding-log", "8/30s concurrency"];
        for text in texts.into_iter().chain(["7/month calendar"]) {
            let limit = limit(text);
            let burst = limit.burst_size().expect(text);
            let admits = |units| {
                let ask = Ask::new(Cost::of(units)).max_wait(Duration::MAX);
                limit.peek(&State::default(), Timestamp::EPOCH, ask).is_allowed()
            };
            assert!(admits(burst) && !admits(burst + 1), "{text}");
        }
    }
}
