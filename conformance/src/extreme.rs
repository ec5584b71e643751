//! The same promises in integers that cannot overflow, for numbers at the edge of their range.
//!
//! Each model knows a subject that has taken at most once before; that is enough to meet every product and
//! every sum in the algorithms at their largest.

use num_bigint::BigInt;

use crate::promise::Promise;

/// Readings of a clock that are out of order by no more than a tenth of a second are no step back.
pub(crate) const OUT_OF_ORDER: u64 = 1_600_000_000;

/// The last instant that can be counted.
const LAST: u64 = u64::MAX;

/// Returns true if a one-word bucket with this raw state allows the units now, without waiting.
pub fn bucket_allows(promise: &Promise, clear_at: u64, now: u64, cost: u64) -> bool {
    let (amount, period, burst, max_debt) = match *promise {
        Promise::TokenBucket { amount, period, burst, max_debt } => (amount, period, big(burst), max_debt),
        Promise::LeakyBucket { amount, period, queue, max_debt, .. } => {
            (amount, period, big(queue) + 1, max_debt)
        }
        _ => panic!("only buckets have one word of state"),
    };
    let interval = (big(period) + big(amount) - 1) / big(amount);
    let capacity = &burst * &interval;
    let depth = &capacity + big(max_debt) * &interval;
    let owed = (big(clear_at) - big(now)).max(big(0));
    let owed = if owed > &depth + big(OUT_OF_ORDER) { depth } else { owed };
    let after = owed + big(cost) * interval;
    after <= capacity && big(now) + after <= big(LAST)
}

/// Returns true if a second take passes at `now` after a first one at `then`, without waiting.
pub fn second_allowed(promise: &Promise, then: u64, first: u64, now: u64, second: u64) -> bool {
    let sum = big(first) + big(second);
    match *promise {
        Promise::FixedWindow { amount, period, first_hit, .. } => {
            let same =
                if first_hit { big(now) < big(then) + big(period) } else { then / period == now / period };
            (if same { sum } else { big(second) }) <= big(amount)
        }
        Promise::Calendar { amount, calendar, .. } => {
            let periods = calendar.boundaries();
            let same = periods.number_of(then.into()) == periods.number_of(now.into());
            (if same { sum } else { big(second) }) <= big(amount)
        }
        Promise::SlidingLog { amount, period, .. } => {
            let counts = big(now) < big(then) + big(period);
            (if counts { sum } else { big(second) }) <= big(amount)
        }
        Promise::SlidingWindow { amount, period, slots, .. } => {
            let width = (big(period) + big(slots) - 1) / big(slots);
            let counts = big(now) < (big(then) / &width + 1 + big(slots)) * &width;
            (if counts { sum } else { big(second) }) <= big(amount)
        }
        Promise::Estimate { amount, period, .. } => {
            let windows = now / period - then / period;
            let covered = match windows {
                0 => big(period),
                1 => big(period) - big(now % period),
                _ => big(0),
            };
            big(first) * covered + big(second) * big(period) <= big(amount) * big(period)
        }
        Promise::Steady { amount, period, savings, own } => {
            let interval = (big(period) + big(amount) - 1) / big(amount);
            let balance: BigInt = big(then).min(big(savings)) - big(first) * &interval;
            let balance: BigInt = (balance + big(now) - big(then)).min(big(savings));
            let spent = if own { big(second) * interval } else { big(0) };
            balance >= spent
        }
        Promise::Concurrency { max, lease } => {
            let held = big(now) < big(then) + big(lease);
            (if held { sum } else { big(second) }) <= big(max)
        }
        _ => panic!("no model of two takes for {promise:?}"),
    }
}

fn big(number: u64) -> BigInt {
    BigInt::from(number)
}
