//! The share of one node, when several have one limit together and cannot talk to each other.
//!
//! Whatever is divided is rounded down, and the time from one unit to the next up, so all shares together stay within
//! the limit. Only what would be nothing is one: a share that lets nobody pass is no share.

use std::num::NonZeroU64;
use std::time::Duration;

use super::draft::{Burst, DelayAfter, Draft, Rate};
use super::{Limit, Problem};
use crate::algorithm::Algorithm;
use crate::time::Ticks;

/// The longest period that a limit may have.
const LONGEST: Duration = Ticks::TEN_YEARS.to_duration();

impl Limit {
    /// What one of so many nodes may let pass by itself, so that all of them together keep to this limit.
    ///
    /// | algorithm | share of one among n |
    /// |---|---|
    /// | token-bucket | rate ÷ n, burst max(1, ⌊burst ÷ n⌋) |
    /// | leaky-bucket | rate ÷ n, max(1, ⌊(queue + 1) ÷ n⌋) places |
    /// | fixed-window, sliding-log, sliding-window | ⌊amount ÷ n⌋ per period; 1 per ⌈n ÷ amount⌉ periods if that is 0 |
    /// | pacer | rate ÷ n; what is saved, too |
    /// | concurrency | max(1, ⌊max ÷ n⌋) in flight |
    ///
    /// How far late charges and undelayed units may go is divided likewise.
    ///
    /// With burst B and rate r, the buckets of all n together let at most max(B, n) + r · t pass within any time t, and
    /// windows and logs no more than [`Limit::most_in`] says of the limit: only where there are more nodes than units,
    /// each may still let one pass at once. No limit is slower than one in ten years; a share that had to be is that.
    /// An unlimited pacer stays so.
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
        let Rate::Per { amount, period } = self.draft.rate else { return *self };
        if nodes == NonZeroU64::MIN {
            return *self;
        }
        let share = Share { draft: self.draft, amount, period, nodes: nodes.get() };
        let shared = match self.draft.algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket | Algorithm::Pacer => share.of_rate(),
            Algorithm::FixedWindow | Algorithm::SlidingLog | Algorithm::SlidingWindow => {
                share.of_count(nodes.get().div_ceil(amount))
            }
            Algorithm::Concurrency => share.of_count(1),
        };
        // One in ten years holds whatever the algorithm, and nothing is stricter.
        shared.unwrap_or_else(|_| Draft::new(self.draft.algorithm, 1, LONGEST).literal())
    }
}

/// A limit about to be divided.
struct Share {
    draft: Draft,
    amount: u64,
    period: Duration,
    nodes: u64,
}

impl Share {
    /// The rate divided exactly, by a longer period, and what may be used at once.
    fn of_rate(&self) -> Result<Limit, Problem> {
        let common = common_divisor(self.amount, self.nodes);
        let exact = longer(self.period, self.nodes / common);
        let shared = match exact {
            Some(period) => self.at_rate(self.amount / common, period, u64::MAX),
            None => self.in_ten_years(),
        };
        match shared.valid() {
            // One that is too slow to warm up keeps its rate, and saves nothing.
            Err(Problem::TooSlowToWarmUp) => {
                let burst = Some(Burst::Span(Duration::ZERO));
                Draft { warm_up: None, cold_factor: None, burst, ..shared }.valid()
            }
            other => other,
        }
    }

    /// The rate as whole units in ten years, where the exact one needs a longer period than a limit may have.
    fn in_ten_years(&self) -> Draft {
        let (amount, nodes) = (u128::from(self.amount), u128::from(self.nodes));
        let units = (amount * LONGEST.as_micros() / self.period.as_micros() / nodes).max(1) as u64;
        // What may be used at once has to be regained in ten years as well, with intervals that were rounded up.
        let at_most = Ticks::TEN_YEARS.get() / Ticks::TEN_YEARS.get().div_ceil(units);
        self.at_rate(units, LONGEST, at_most)
    }

    fn at_rate(&self, amount: u64, period: Duration, at_most: u64) -> Draft {
        let part = |units: u64| (units / self.nodes).min(at_most);
        let draft = Draft {
            rate: Rate::Per { amount, period },
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
                Draft { burst: (burst != amount).then_some(Burst::Units(burst)), ..draft }
            }
            (Algorithm::LeakyBucket, _) => {
                // A queue that holds has a place less than can be counted.
                let places = part(self.draft.queue.unwrap_or(0) + 1).max(1);
                Draft { queue: self.draft.queue.map(|_| places - 1), ..draft }
            }
            (_, Some(Burst::Units(units))) => Draft { burst: Some(Burst::Units(part(units))), ..draft },
            // What is saved in the same time is worth less at a lower rate.
            _ => draft,
        }
    }

    /// Fewer per so many periods, or in flight, but at least one.
    fn of_count(&self, periods: u64) -> Result<Limit, Problem> {
        let amount = (self.amount / self.nodes).max(1);
        let period = longer(self.period, periods).unwrap_or(LONGEST);
        let max_debt = self.draft.max_debt.map(|units| units / self.nodes);
        Draft { rate: Rate::Per { amount, period }, max_debt, ..self.draft }.valid()
    }
}

/// A period so many times as long, if a limit may have it.
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

// Random limits are too much for miri.
#[cfg(all(test, not(tidegate_models), not(miri)))]
mod tests;
