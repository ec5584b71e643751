//! A limit as it was written, before it is validated.
//!
//! Texts, runtime numbers and literals all become a [`LimitBuilder`]. A draft becomes a [`Limit`] in one function
//! only, and every check of numbers is there.

use std::num::NonZeroU64;
use std::time::Duration;

use super::problem::{Field, LimitError, Problem};
use super::{AlgorithmParams, Limit};
use crate::algorithm::{
    Algorithm, Calendar, Concurrency, FixedWindow, LeakyBucket, PacerParams, SlidingLog, SlidingWindow,
    TokenBucket,
};
use crate::time::{CalendarPeriods, Ticks};

/// The shortest time from one unit to the next, in ticks: 10,000,000 units per second. At this rate, rounding an
/// interval up to a tick changes it by less than a thousandth.
const SHORTEST_INTERVAL: u64 = 1600;
const DEFAULT_SLOTS: u64 = 16;
const DEFAULT_COLD_FACTOR: u64 = 3;

/// A builder for a [`Limit`]: the numbers as written, not yet validated.
///
/// ```
/// use tidegate::{Algorithm, LimitBuilder, SECOND};
///
/// let builder = LimitBuilder::new(Algorithm::LeakyBucket, 10, SECOND).queue(50);
/// assert_eq!(builder.build()?.to_string(), "10/s queue 50 leaky-bucket");
/// let error = builder.burst(5).build().unwrap_err(); // a leaky bucket has a queue, not a burst
/// assert!(error.to_string().contains("leave it out"));
/// # Ok::<(), tidegate::LimitError>(())
/// ```
#[doc(alias("Draft", "quota builder"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitBuilder {
    pub(super) algorithm: Algorithm,
    pub(super) rate: WrittenRate,
    pub(super) burst: Option<Burst>,
    pub(super) queue: Option<u64>,
    pub(super) delay_after: Option<DelayAfter>,
    pub(super) slots: Option<u64>,
    pub(super) mode: Option<WindowMode>,
    pub(super) alignment: Option<Alignment>,
    pub(super) warm_up: Option<Duration>,
    pub(super) cold_factor: Option<u64>,
    pub(super) pay: Option<Pay>,
    pub(super) max_debt: Option<u64>,
    pub(super) count_denied: bool,
}

/// An amount per period or per period of a calendar, or unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WrittenRate {
    Per { amount: u64, period: Duration },
    Calendar { amount: u64, periods: CalendarPeriods },
    Unlimited,
}

/// Savings in units or, for a pacer, as the idle time that makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Burst {
    Units(u64),
    Span(Duration),
}

/// The number of units that a leaky bucket passes before it delays.
#[doc(alias("nodelay", "limit_req"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DelayAfter {
    /// Up to this many owed units, requests are not delayed.
    Units(u64),
    /// No request is delayed.
    All,
}

/// The counting of a sliding window's oldest, partly covered slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WindowMode {
    /// The slot counts as a whole: the limit is never exceeded.
    #[default]
    Strict,
    /// The slot counts by its covered share, with two slots of a whole period. Up to 2 * limit - 1 can pass within one
    /// period.
    Estimate,
}

/// The start of fixed windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// Multiples of the period since the epoch.
    #[default]
    Epoch,
    /// The first hit after the previous window.
    FirstHit,
}

/// The request that waits for the cost of a pacer's grant.
#[doc(alias("Guava"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pay {
    /// The next request, as in Guava: a large grant is made at once.
    #[default]
    Next,
    /// The request itself.
    Own,
}

/// Wraps the numbers of an algorithm as [`AlgorithmParams`]; `map` is not a `const fn`.
macro_rules! terms {
    ($algorithm:ident, $numbers:expr) => {
        match $numbers {
            Ok(numbers) => Ok(AlgorithmParams::$algorithm(numbers)),
            Err(problem) => Err(problem),
        }
    };
}

/// Returns the value that was set, or the default; `unwrap_or` is not a `const fn`.
const fn said_or<T: Copy>(said: Option<T>, meant: T) -> T {
    match said {
        Some(said) => said,
        None => meant,
    }
}

/// Defines each setter once: a draft only stores the value, a limit also validates it.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty)?) $field:ident = $value:expr;)+) => {
        /// Optional settings beside the rate. Nothing is validated before [`LimitBuilder::build`].
        impl LimitBuilder {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $name(mut self $(, $argument: $type)?) -> LimitBuilder {
                self.$field = $value;
                self
            }
        )+}

        /// Optional settings beside the rate, for literals.
        impl Limit {$(
            $(#[$doc])*
            ///
            /// # Panics
            /// Panics if the limit would be invalid, or if its algorithm has no such setting.
            #[must_use]
            pub const fn $name(self $(, $argument: $type)?) -> Limit {
                self.draft.$name($($argument)?).literal()
            }
        )+}
    };
}

setters! {
    /// Sets the total that may pass at one instant from rest (token-bucket), or be saved (pacer).
    burst(units: u64) burst = Some(Burst::Units(units));
    /// Sets the longest idle time that a pacer saves; one second unless set. Zero saves nothing, so that no burst
    /// follows idle time.
    burst_span(span: Duration) burst = Some(Burst::Span(span));
    /// Sets the number of units that may wait in a leaky bucket while one is served.
    queue(units: u64) queue = Some(units);
    /// Sets the number of units that a leaky bucket passes before it delays.
    delay_after(after: DelayAfter) delay_after = Some(after);
    /// Sets the number of slots in the period of a sliding window; 16 unless set.
    slots(slots: u64) slots = Some(slots);
    /// Sets the counting of a sliding window's oldest slot.
    mode(mode: WindowMode) mode = Some(mode);
    /// Sets the start of fixed windows.
    alignment(alignment: Alignment) alignment = Some(alignment);
    /// Sets the warm-up time of a pacer.
    warm_up(length: Duration) warm_up = Some(length);
    /// Sets the factor by which a cold pacer is slower than its rate; 3 unless set.
    cold_factor(times: u64) cold_factor = Some(times);
    /// Sets the request that waits for the cost of a pacer's grant.
    pay(pay: Pay) pay = Some(pay);
    /// Sets the largest debt, in units, that late charges may add below empty. Unless set, it is the burst
    /// (token-bucket), the queue + 1 (leaky-bucket) or the amount (windows, calendar).
    max_debt(units: u64) max_debt = Some(units);
    /// Makes a sliding log count denials too: a caller that retries without pause stays denied.
    count_denied() count_denied = true;
}

impl LimitBuilder {
    /// Creates a draft of so many per period. For concurrency, of so many in flight, each for at most that lease.
    pub const fn new(algorithm: Algorithm, amount: u64, period: Duration) -> LimitBuilder {
        LimitBuilder::with_rate(algorithm, WrittenRate::Per { amount, period })
    }

    /// Creates a draft of so many in each hour, day, week, month or year of a calendar.
    pub const fn calendar(amount: u64, periods: CalendarPeriods) -> LimitBuilder {
        LimitBuilder::with_rate(Algorithm::Calendar, WrittenRate::Calendar { amount, periods })
    }

    /// Creates a draft of a pacer without a rate: no request waits for it. A rate can be set later.
    pub const fn unlimited_pacer() -> LimitBuilder {
        LimitBuilder::with_rate(Algorithm::Pacer, WrittenRate::Unlimited)
    }

    /// Creates a draft without any setting beside the rate.
    pub(super) const fn with_rate(algorithm: Algorithm, rate: WrittenRate) -> LimitBuilder {
        LimitBuilder {
            algorithm,
            rate,
            burst: None,
            queue: None,
            delay_after: None,
            slots: None,
            mode: None,
            alignment: None,
            warm_up: None,
            cold_factor: None,
            pay: None,
            max_debt: None,
            count_denied: false,
        }
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Validates the draft. Fails if a number is out of range, contradicts another one, or does not apply to the
    /// algorithm.
    pub fn build(self) -> Result<Limit, LimitError> {
        self.valid().map_err(|problem| LimitError::of_numbers(&self, problem))
    }

    /// Validates a literal. In a constant, a problem is a compile error with its message.
    pub(super) const fn literal(self) -> Limit {
        match self.valid() {
            Ok(limit) => limit,
            Err(problem) => panic!("{}", problem.as_str()),
        }
    }

    /// Validates the draft, as a `const fn`. Settings of another algorithm are reported before contradictions, and
    /// contradictions before numbers out of range.
    pub(super) const fn valid(self) -> Result<Limit, Problem> {
        if let Some(field) = self.misplaced() {
            return Err(Problem::NotFor(field));
        }
        if let Some(problem) = self.contradiction() {
            return Err(problem);
        }
        if let Some(field) = self.finer_than_text() {
            return Err(Problem::NotWhole(field));
        }
        let terms = match self.rate {
            WrittenRate::Unlimited => self.pacer(None),
            WrittenRate::Per { amount, period } => self.terms(amount, period),
            WrittenRate::Calendar { amount, periods } => self.calendar_terms(amount, periods),
        };
        match terms {
            Ok(terms) => Ok(Limit { terms, draft: self }),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the first setting that does not apply to this algorithm.
    const fn misplaced(&self) -> Option<Field> {
        use Algorithm::{
            Calendar, Concurrency, FixedWindow, LeakyBucket, Pacer, SlidingLog, SlidingWindow, TokenBucket,
        };
        let algorithm = self.algorithm;
        if matches!(self.rate, WrittenRate::Unlimited) && !matches!(algorithm, Pacer) {
            Some(Field::Rate)
        } else if matches!(self.rate, WrittenRate::Calendar { .. }) != matches!(algorithm, Calendar) {
            Some(Field::Periods)
        } else if self.burst.is_some() && !matches!(algorithm, TokenBucket | Pacer) {
            Some(Field::Burst)
        } else if self.queue.is_some() && !matches!(algorithm, LeakyBucket) {
            Some(Field::Queue)
        } else if self.delay_after.is_some() && !matches!(algorithm, LeakyBucket) {
            Some(Field::DelayAfter)
        } else if self.mode.is_some() && !matches!(algorithm, SlidingWindow) {
            Some(Field::Mode)
        } else if self.slots.is_some() && !matches!(algorithm, SlidingWindow) {
            Some(Field::Slots)
        } else if self.alignment.is_some() && !matches!(algorithm, FixedWindow) {
            Some(Field::Alignment)
        } else if self.warm_up.is_some() && !matches!(algorithm, Pacer) {
            Some(Field::WarmUp)
        } else if self.cold_factor.is_some() && self.warm_up.is_none() {
            Some(Field::ColdFactor)
        } else if self.pay.is_some() && !matches!(algorithm, Pacer) {
            Some(Field::Pay)
        } else if self.max_debt.is_some() && matches!(algorithm, Pacer | SlidingLog | Concurrency) {
            Some(Field::MaxDebt)
        } else if self.count_denied && !matches!(algorithm, SlidingLog) {
            Some(Field::CountDenied)
        } else {
            None
        }
    }

    /// Returns the problem of two settings that contradict each other.
    const fn contradiction(&self) -> Option<Problem> {
        if matches!(self.burst, Some(Burst::Span(_))) && !matches!(self.algorithm, Algorithm::Pacer) {
            Some(Problem::BurstIsTime)
        } else if self.burst.is_some() && self.warm_up.is_some() {
            Some(Problem::BurstWithWarmUp)
        } else if self.slots.is_some() && matches!(self.mode, Some(WindowMode::Estimate)) {
            Some(Problem::SlotsWithEstimate)
        } else {
            None
        }
    }

    /// Returns the first time that is finer than the text of a limit can express: not a whole number of microseconds.
    const fn finer_than_text(&self) -> Option<Field> {
        const fn is_fine(span: Duration) -> bool {
            span.subsec_nanos() % 1000 != 0
        }
        match (self.rate, self.burst, self.warm_up) {
            (WrittenRate::Per { period, .. }, _, _) if is_fine(period) => Some(Field::Rate),
            (_, Some(Burst::Span(span)), _) if is_fine(span) => Some(Field::Burst),
            (_, _, Some(length)) if is_fine(length) => Some(Field::WarmUp),
            _ => None,
        }
    }

    /// Converts a rate and the settings into the numbers of the algorithm.
    const fn terms(&self, amount: u64, period: Duration) -> Result<AlgorithmParams, Problem> {
        let (period, interval) = match self.checked_rate(amount, period) {
            Ok(rate) => rate,
            Err(problem) => return Err(problem),
        };
        let max_debt = said_or(self.max_debt, amount);
        match self.algorithm {
            Algorithm::TokenBucket => self.token_bucket(amount, interval),
            Algorithm::LeakyBucket => self.leaky_bucket(interval),
            Algorithm::FixedWindow => {
                let alignment = said_or(self.alignment, Alignment::Epoch);
                terms!(FixedWindow, FixedWindow::new(amount, period, alignment, max_debt))
            }
            Algorithm::SlidingLog => terms!(SlidingLog, SlidingLog::new(amount, period, self.count_denied)),
            Algorithm::SlidingWindow => self.sliding_window(amount, period, max_debt),
            Algorithm::Pacer => self.pacer(Some(interval)),
            Algorithm::Concurrency => terms!(Concurrency, Concurrency::new(amount, period)),
            // A calendar has its own kind of rate.
            Algorithm::Calendar => Err(Problem::NotFor(Field::Periods)),
        }
    }

    const fn calendar_terms(
        &self,
        amount: u64,
        periods: CalendarPeriods,
    ) -> Result<AlgorithmParams, Problem> {
        if amount == 0 {
            return Err(Problem::ZeroAmount);
        }
        terms!(Calendar, Calendar::new(amount, periods, said_or(self.max_debt, amount)))
    }

    /// Returns the period in ticks, and the interval: period / amount, rounded **up** to a tick, once and for all.
    const fn checked_rate(&self, amount: u64, period: Duration) -> Result<(Ticks, NonZeroU64), Problem> {
        let Some(period) = Ticks::from_duration(period) else { return Err(Problem::PeriodTooLong) };
        if period.get() > Ticks::TEN_YEARS.get() {
            return Err(Problem::PeriodTooLong);
        }
        if amount == 0 {
            return Err(Problem::ZeroAmount);
        }
        let Some(interval) = NonZeroU64::new(period.get().div_ceil(amount)) else {
            return Err(Problem::ZeroPeriod);
        };
        let is_rate = !matches!(self.algorithm, Algorithm::Concurrency);
        if is_rate && period.get() / amount < SHORTEST_INTERVAL {
            return Err(Problem::TooFast);
        }
        Ok((period, interval))
    }

    const fn token_bucket(&self, amount: u64, interval: NonZeroU64) -> Result<AlgorithmParams, Problem> {
        let burst = match self.burst {
            Some(Burst::Units(units)) => units,
            _ => amount,
        };
        terms!(TokenBucket, TokenBucket::new(interval, burst, said_or(self.max_debt, burst)))
    }

    const fn leaky_bucket(&self, interval: NonZeroU64) -> Result<AlgorithmParams, Problem> {
        let delay_after = said_or(self.delay_after, DelayAfter::Units(0));
        terms!(LeakyBucket, LeakyBucket::new(interval, said_or(self.queue, 0), delay_after, self.max_debt))
    }

    const fn sliding_window(
        &self,
        amount: u64,
        period: Ticks,
        max_debt: u64,
    ) -> Result<AlgorithmParams, Problem> {
        let (mode, slots) = match self.mode {
            Some(WindowMode::Estimate) => (WindowMode::Estimate, 1),
            _ => (WindowMode::Strict, said_or(self.slots, DEFAULT_SLOTS)),
        };
        terms!(SlidingWindow, SlidingWindow::new(amount, period, slots, mode, max_debt))
    }

    const fn pacer(&self, interval: Option<NonZeroU64>) -> Result<AlgorithmParams, Problem> {
        let pay = said_or(self.pay, Pay::Next);
        let pacer = match self.warm_up {
            None => match self.savings(interval) {
                Ok(most) => PacerParams::steady(interval, most, pay),
                Err(problem) => Err(problem),
            },
            Some(length) => {
                let cold_factor = said_or(self.cold_factor, DEFAULT_COLD_FACTOR);
                PacerParams::warming_up(interval, Ticks::saturating_from(length), cold_factor, pay)
            }
        };
        terms!(Pacer, pacer)
    }

    /// Returns the maximum savings of a steady pacer, as a span.
    const fn savings(&self, interval: Option<NonZeroU64>) -> Result<Ticks, Problem> {
        let savings = match (self.burst, interval) {
            (None, _) => Ticks::from_duration(Duration::from_secs(1)),
            (Some(Burst::Span(span)), _) => Ticks::from_duration(span),
            (Some(Burst::Units(units)), Some(interval)) => Ticks::new(interval.get()).checked_mul(units),
            (Some(Burst::Units(_)), None) => return Err(Problem::UnlimitedBurst),
        };
        match savings {
            Some(savings) => Ok(savings),
            None => Err(Problem::BurstTooLong),
        }
    }
}
