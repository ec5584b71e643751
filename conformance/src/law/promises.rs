//! Facts about promises: weaker ones, and the bounds of their waits and debts.

use crate::extreme::OUT_OF_ORDER;
use crate::promise::{Promise, interval};

/// Returns a promise that never admits an ask that this one denies.
pub(crate) fn lower(promise: &Promise) -> Option<Promise> {
    Some(match *promise {
        Promise::TokenBucket { amount, period, burst, max_debt } if burst > 1 => {
            Promise::TokenBucket { amount, period, burst: burst - 1, max_debt }
        }
        Promise::LeakyBucket { amount, period, queue, delay_after, max_debt } if queue > 0 => {
            let delay_after = delay_after.map(|units| units.min(queue - 1));
            Promise::LeakyBucket { amount, period, queue: queue - 1, delay_after, max_debt }
        }
        Promise::FixedWindow { amount, period, first_hit, max_debt } if amount > 1 => {
            Promise::FixedWindow { amount: amount - 1, period, first_hit, max_debt }
        }
        Promise::Calendar { amount, calendar, max_debt } if amount > 1 => {
            Promise::Calendar { amount: amount - 1, calendar, max_debt }
        }
        Promise::SlidingLog { amount, period, count_denied } if amount > 1 => {
            Promise::SlidingLog { amount: amount - 1, period, count_denied }
        }
        Promise::SlidingWindow { amount, period, slots, max_debt } if amount > 1 => {
            Promise::SlidingWindow { amount: amount - 1, period, slots, max_debt }
        }
        Promise::Estimate { amount, period, max_debt } if amount > 1 => {
            Promise::Estimate { amount: amount - 1, period, max_debt }
        }
        Promise::Concurrency { max, lease } if max > 1 => Promise::Concurrency { max: max - 1, lease },
        _ => return None,
    })
}

/// The same promise with one more.
pub(crate) fn raise(promise: &Promise) -> Option<Promise> {
    let mut raised = *promise;
    match &mut raised {
        Promise::TokenBucket { burst, .. } => *burst += 1,
        Promise::LeakyBucket { queue, .. } => *queue += 1,
        Promise::FixedWindow { amount, .. }
        | Promise::SlidingLog { amount, .. }
        | Promise::SlidingWindow { amount, .. }
        | Promise::Estimate { amount, .. }
        | Promise::Calendar { amount, .. } => *amount += 1,
        Promise::Concurrency { max, .. } => *max += 1,
        Promise::Steady { .. } | Promise::WarmUp { .. } => return None,
    }
    Some(raised)
}

/// A span in which something changes.
pub(crate) fn unit_of(promise: &Promise) -> u64 {
    match *promise {
        Promise::TokenBucket { amount, period, .. }
        | Promise::LeakyBucket { amount, period, .. }
        | Promise::Steady { amount, period, .. }
        | Promise::WarmUp { amount, period, .. } => interval(amount, period),
        Promise::SlidingWindow { period, slots, .. } => period / slots,
        Promise::FixedWindow { period, .. } | Promise::SlidingLog { period, .. } => period / 2,
        Promise::Estimate { period, .. } => period / 3,
        Promise::Calendar { calendar, .. } => calendar.usual() / 2,
        Promise::Concurrency { lease, .. } => lease / 2,
    }
}

/// The most at once, the time from one to the next, and the period.
pub(super) fn bounds(promise: &Promise) -> (i128, i128, i128) {
    let burst = i128::from(promise.most_at_once());
    match *promise {
        Promise::TokenBucket { amount, period, .. }
        | Promise::LeakyBucket { amount, period, .. }
        | Promise::FixedWindow { amount, period, .. }
        | Promise::SlidingLog { amount, period, .. }
        | Promise::SlidingWindow { amount, period, .. }
        | Promise::Estimate { amount, period, .. }
        | Promise::Steady { amount, period, .. }
        | Promise::WarmUp { amount, period, .. } => (burst, interval(amount, period).into(), period.into()),
        Promise::Concurrency { lease, .. } => (burst, lease.into(), lease.into()),
        Promise::Calendar { amount, calendar, .. } => {
            (burst, interval(amount, calendar.usual()).into(), calendar.shortest().into())
        }
    }
}

/// I-4: no wait is longer than this, whatever the clock did.
pub(super) fn longest_wait(promise: &Promise, units: u64) -> u128 {
    let wait = |amount: u64, period: u64, units: u64| {
        u128::from(interval(amount, period)) * u128::from(units) + u128::from(OUT_OF_ORDER)
    };
    match *promise {
        Promise::TokenBucket { amount, period, max_debt, .. } => wait(amount, period, units + max_debt),
        Promise::LeakyBucket { amount, period, queue, max_debt, .. } => {
            wait(amount, period, queue + 1 + max_debt)
        }
        Promise::FixedWindow { period, .. } | Promise::SlidingLog { period, .. } => {
            u128::from(period) + u128::from(period.max(OUT_OF_ORDER))
        }
        Promise::SlidingWindow { period, slots, .. } => {
            let behind = u128::from(period.max(OUT_OF_ORDER));
            u128::from(period) + behind + 2 * u128::from(period / slots) + 64
        }
        Promise::Calendar { calendar, .. } => 2 * u128::from(calendar.longest()),
        Promise::Estimate { period, .. } => 2 * u128::from(period) + u128::from(period.max(OUT_OF_ORDER)),
        Promise::Concurrency { lease, .. } => u128::from(lease) + u128::from(OUT_OF_ORDER),
        Promise::Steady { .. } | Promise::WarmUp { .. } => u128::MAX,
    }
}
