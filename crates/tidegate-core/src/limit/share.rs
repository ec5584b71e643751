//! The share of one node, when several nodes have one limit together and cannot communicate.
//!
//! Quotas are rounded down, and the time from one unit to the next is rounded up, so all shares together stay within
//! the limit. Only a share that would be zero becomes one, because a share of zero would deny every request.

use std::num::NonZeroU64;
use std::time::Duration;

use super::builder::{Burst, DelayAfter, LimitBuilder, WrittenRate};
use super::{Limit, Problem};
use crate::algorithm::Algorithm;
use crate::time::{CalendarPeriods, CalendarUnit, Ticks};

/// The longest period of a limit.
const LONGEST: Duration = Ticks::TEN_YEARS.to_duration();

impl Limit {
    /// Returns the limit that one of so many nodes may apply by itself, so that all of them together keep this limit.
    ///
    /// | algorithm | share of one among n |
    /// |---|---|
    /// | token-bucket | rate ÷ n, burst max(1, ⌊burst ÷ n⌋) |
    /// | leaky-bucket | rate ÷ n, max(1, ⌊(queue + 1) ÷ n⌋) units in the bucket |
    /// | fixed-window, sliding-log, sliding-window | ⌊amount ÷ n⌋ per period; 1 per ⌈n ÷ amount⌉ periods if that is 0 |
    /// | pacer | rate ÷ n; the savings likewise |
    /// | concurrency | max(1, ⌊max ÷ n⌋) in flight |
    /// | calendar | ⌊amount ÷ n⌋ per period; 1 per longer unit, at most a year, if that is 0 |
    ///
    /// The bounds of late charges and of undelayed units are divided likewise.
    ///
    /// With burst B and rate r, the buckets of all n nodes together admit at most max(B, n) + r · t within any time t.
    /// Windows, logs and calendars together admit at most [`Limit::worst_case`] of the limit. The exception is more nodes than units:
    /// then each node may still admit one at once. A share never gets slower than one in ten years. An unlimited pacer
    /// stays unlimited.
    ///
    /// ```
    /// use std::num::NonZeroU64;
    /// use tidegate::Limit;
    ///
    /// let limit: Limit = "30/s burst 10".parse()?;
    /// let three = NonZeroU64::new(3).expect("not zero");
    /// assert_eq!(limit.shared_among(three).to_string(), "10/s burst 3");
    /// assert_eq!(limit.shared_among(NonZeroU64::MIN), limit);
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    #[must_use]
    pub fn shared_among(&self, nodes: NonZeroU64) -> Limit {
        if nodes == NonZeroU64::MIN {
            return *self;
        }
        if let WrittenRate::Calendar { amount, periods } = self.draft.rate {
            return self.share_of_calendar(amount, periods, nodes);
        }
        let WrittenRate::Per { amount, period } = self.draft.rate else { return *self };
        let share = DividedLimit { draft: self.draft, amount, period, nodes: nodes.get() };
        let shared = match self.draft.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Pacer => share.of_rate(),
            Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::SlidingWindow => {
                share.of_count(nodes.get().div_ceil(amount))
            }
            Algorithm::Concurrency | Algorithm::Calendar => share.of_count(1),
        };
        // One in ten years is valid for every algorithm, and nothing is stricter.
        shared.unwrap_or_else(|_| LimitBuilder::new(self.draft.algorithm, 1, LONGEST).literal())
    }

    /// Returns a smaller amount per period of the calendar. A share below one is one per period of the first unit that
    /// is long enough, of the same zone.
    fn share_of_calendar(&self, amount: u64, periods: CalendarPeriods, nodes: NonZeroU64) -> Limit {
        let max_debt = self.draft.max_debt.map(|units| units / nodes);
        let longest = periods.nominal().get().saturating_mul(nodes.get().div_ceil(amount));
        let shared = match amount / nodes {
            0 => CalendarUnit::ALL
                .map(CalendarPeriods::new)
                .into_iter()
                .find(|longer| longer.nominal().get() >= longest)
                .unwrap_or(CalendarPeriods::new(CalendarUnit::Year)),
            _ => periods,
        };
        let draft = LimitBuilder::calendar((amount / nodes).max(1), shared.in_zone(periods.zone()));
        // The numbers are not larger than those of this limit, which are valid.
        LimitBuilder { max_debt, ..draft }.valid().unwrap_or(*self)
    }
}

/// A limit to be divided.
struct DividedLimit {
    draft: LimitBuilder,
    amount: u64,
    period: Duration,
    nodes: u64,
}

impl DividedLimit {
    /// Divides the rate exactly, by a longer period, and the quota that may be used at once.
    fn of_rate(&self) -> Result<Limit, Problem> {
        let common = common_divisor(self.amount, self.nodes);
        let exact = longer(self.period, self.nodes / common);
        let shared = match exact {
            Some(period) => self.at_rate(self.amount / common, period, u64::MAX),
            None => self.in_ten_years(),
        };
        match shared.valid() {
            // A share that is too slow to warm up keeps its rate, and saves nothing.
            Err(Problem::TooSlowToWarmUp) => {
                let burst = Some(Burst::Span(Duration::ZERO));
                LimitBuilder { warm_up: None, cold_factor: None, burst, ..shared }.valid()
            }
            other => other,
        }
    }

    /// Returns the rate as whole units in ten years, if the exact rate needs a longer period than a limit may have.
    fn in_ten_years(&self) -> LimitBuilder {
        let (amount, nodes) = (u128::from(self.amount), u128::from(self.nodes));
        let units = (amount * LONGEST.as_micros() / self.period.as_micros() / nodes).max(1) as u64;
        // The burst must be regained within ten years as well, with intervals that were rounded up.
        let at_most = Ticks::TEN_YEARS.get() / Ticks::TEN_YEARS.get().div_ceil(units);
        self.at_rate(units, LONGEST, at_most)
    }

    fn at_rate(&self, amount: u64, period: Duration, at_most: u64) -> LimitBuilder {
        let part = |units: u64| (units / self.nodes).min(at_most);
        let draft = LimitBuilder {
            rate: WrittenRate::Per { amount, period },
            max_debt: self.draft.max_debt.map(part),
            delay_after: self.draft.delay_after.map(|after| match after {
                DelayAfter::Units(units) => DelayAfter::Units(part(units)),
                DelayAfter::All => DelayAfter::All,
            }),
            ..self.draft
        };
        match (self.draft.algorithm, self.draft.burst) {
            (Algorithm::TokenBucket, burst) => {
                let whole = if let Some(Burst::Units(units)) = burst { units } else { self.amount };
                let burst = part(whole).max(1);
                LimitBuilder { burst: (burst != amount).then_some(Burst::Units(burst)), ..draft }
            }
            (Algorithm::LeakyBucket, _) => {
                // A valid queue is shorter than `u64::MAX`, so adding one cannot overflow.
                let places = part(self.draft.queue.unwrap_or(0) + 1).max(1);
                LimitBuilder { queue: self.draft.queue.map(|_| places - 1), ..draft }
            }
            (_, Some(Burst::Units(units))) => {
                LimitBuilder { burst: Some(Burst::Units(part(units))), ..draft }
            }
            // The same idle time is worth less at a lower rate.
            _ => draft,
        }
    }

    /// Returns a smaller amount per so many periods, or in flight; at least one.
    fn of_count(&self, periods: u64) -> Result<Limit, Problem> {
        let amount = (self.amount / self.nodes).max(1);
        let period = longer(self.period, periods).unwrap_or(LONGEST);
        let max_debt = self.draft.max_debt.map(|units| units / self.nodes);
        LimitBuilder { rate: WrittenRate::Per { amount, period }, max_debt, ..self.draft }.valid()
    }
}

/// Returns a period so many times as long, or `None` if it exceeds the longest period of a limit.
fn longer(period: Duration, times: u64) -> Option<Duration> {
    let micros = period.as_micros().checked_mul(times.into())?;
    let within = u64::try_from(micros).ok().map(Duration::from_micros);
    within.filter(|period| *period <= LONGEST)
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

// Random limits are too slow under miri.
#[cfg(all(test, not(tidegate_models), not(miri)))]
mod tests;
