//! A limit as plain numbers: the promise alone, without its implementation.

use std::time::Duration;

use tidegate::{Algorithm, Alignment, DelayAfter, Limit, LimitBuilder, Pay, WindowMode};

use crate::calendar::{Calendar, PLACES};
use crate::random::Random;

/// Ticks in a microsecond, in a second and in a day, stated here a second time on purpose.
const MICROSECOND: u64 = 16_000;
const SECOND: u64 = 1_000_000 * MICROSECOND;
const DAY: u64 = 86_400 * SECOND;
/// The largest debt of any key.
pub(crate) const TEN_YEARS: u64 = 3650 * DAY;

/// A limit as it is promised. Spans are in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the design")]
pub enum Promise {
    TokenBucket { amount: u64, period: u64, burst: u64, max_debt: u64 },
    LeakyBucket { amount: u64, period: u64, queue: u64, delay_after: Option<u64>, max_debt: u64 },
    FixedWindow { amount: u64, period: u64, first_hit: bool, max_debt: u64 },
    SlidingLog { amount: u64, period: u64, count_denied: bool },
    SlidingWindow { amount: u64, period: u64, slots: u64, max_debt: u64 },
    Estimate { amount: u64, period: u64, max_debt: u64 },
    Steady { amount: u64, period: u64, savings: u64, own: bool },
    WarmUp { amount: u64, period: u64, warm_up: u64, cold_factor: u64, own: bool },
    Concurrency { max: u64, lease: u64 },
    Calendar { amount: u64, calendar: Calendar, max_debt: u64 },
}

/// The kinds of promise, by name.
pub const KINDS: [&str; 10] = [
    "token-bucket",
    "leaky-bucket",
    "fixed-window",
    "sliding-log",
    "sliding-window",
    "sliding-window-estimate",
    "pacer",
    "pacer-warm-up",
    "concurrency",
    "calendar",
];

impl Promise {
    /// The product's limit for this promise.
    pub fn limit(&self) -> Limit {
        self.draft().build().expect("promises are made of numbers that hold")
    }

    /// The same, as it would be written.
    pub fn draft(&self) -> LimitBuilder {
        match *self {
            Promise::TokenBucket { amount, period, burst, max_debt } => {
                draft(Algorithm::TokenBucket, amount, period).burst(burst).max_debt(max_debt)
            }
            Promise::LeakyBucket { amount, period, queue, delay_after, max_debt } => {
                let after = delay_after.map_or(DelayAfter::All, DelayAfter::Units);
                draft(Algorithm::LeakyBucket, amount, period)
                    .queue(queue)
                    .delay_after(after)
                    .max_debt(max_debt)
            }
            Promise::FixedWindow { amount, period, first_hit, max_debt } => {
                let alignment = if first_hit { Alignment::FirstHit } else { Alignment::Epoch };
                draft(Algorithm::FixedWindow, amount, period).alignment(alignment).max_debt(max_debt)
            }
            Promise::SlidingLog { amount, period, count_denied } => {
                let log = draft(Algorithm::SlidingLog, amount, period);
                if count_denied { log.count_denied() } else { log }
            }
            Promise::SlidingWindow { amount, period, slots, max_debt } => {
                draft(Algorithm::SlidingWindow, amount, period).slots(slots).max_debt(max_debt)
            }
            Promise::Estimate { amount, period, max_debt } => {
                draft(Algorithm::SlidingWindow, amount, period).mode(WindowMode::Estimate).max_debt(max_debt)
            }
            Promise::Steady { amount, period, savings, own } => {
                draft(Algorithm::Pacer, amount, period).burst_span(span(savings)).pay(pay(own))
            }
            Promise::WarmUp { amount, period, warm_up, cold_factor, own } => {
                draft(Algorithm::Pacer, amount, period)
                    .warm_up(span(warm_up))
                    .cold_factor(cold_factor)
                    .pay(pay(own))
            }
            Promise::Concurrency { max, lease } => draft(Algorithm::Concurrency, max, lease),
            Promise::Calendar { amount, calendar, max_debt } => {
                LimitBuilder::calendar(amount, calendar.periods()).max_debt(max_debt)
            }
        }
    }

    /// A promise of this kind with numbers of every size that the design allows.
    pub fn random(kind: &str, random: &mut Random) -> Promise {
        let amount = random.sized(1, 1_000_000);
        let period = random_period(random, amount);
        match kind {
            "token-bucket" => {
                let burst = fitting(random.sized(1, 1000), amount, period);
                Promise::TokenBucket { amount, period, burst, max_debt: random.between(0, 2 * burst) }
            }
            "leaky-bucket" => {
                let queue = fitting(random.sized(0, 1000), amount, period);
                let delay_after = random.percent(80).then(|| random.between(0, queue));
                Promise::LeakyBucket { amount, period, queue, delay_after, max_debt: queue + 1 }
            }
            "fixed-window" => {
                Promise::FixedWindow { amount, period, first_hit: random.percent(50), max_debt: amount }
            }
            "sliding-log" => Promise::SlidingLog { amount, period, count_denied: random.percent(25) },
            "sliding-window" => {
                let most = (period / 16_000).min(40);
                Promise::SlidingWindow { amount, period, slots: random.sized(1, most), max_debt: amount }
            }
            "sliding-window-estimate" => Promise::Estimate { amount, period, max_debt: amount },
            "pacer" => {
                let savings = random.sized(0, 100).saturating_mul(interval(amount, period)).min(300 * DAY);
                let savings = savings / MICROSECOND * MICROSECOND;
                Promise::Steady { amount, period, savings, own: random.percent(30) }
            }
            "pacer-warm-up" => {
                let warm_up = random
                    .sized(1, 100)
                    .saturating_mul(interval(amount, period))
                    .clamp(MICROSECOND, 30 * DAY);
                Promise::WarmUp {
                    amount,
                    period: period.min((10 * DAY).saturating_mul(amount)),
                    warm_up: warm_up / MICROSECOND * MICROSECOND,
                    cold_factor: random.between(1, 10),
                    own: random.percent(30),
                }
            }
            "calendar" => Promise::Calendar { amount, calendar: random_calendar(random), max_debt: amount },
            _ => Promise::Concurrency { max: random.sized(1, 50), lease: period },
        }
    }

    /// A promise of this kind, of a size at which histories meet its edges.
    pub fn modest(kind: &str, random: &mut Random) -> Promise {
        let amount = random.between(1, 8);
        let period = random.pick(&[SECOND / 10, SECOND, 7 * SECOND, 86_400 * SECOND]);
        match kind {
            "token-bucket" => {
                let burst = random.between(1, 10);
                Promise::TokenBucket { amount, period, burst, max_debt: random.between(0, 12) }
            }
            "leaky-bucket" => {
                let queue = random.between(0, 10);
                let delay_after = random.percent(70).then(|| random.between(0, queue));
                Promise::LeakyBucket { amount, period, queue, delay_after, max_debt: random.between(0, 12) }
            }
            "fixed-window" => Promise::FixedWindow {
                amount,
                period,
                first_hit: random.percent(50),
                max_debt: random.between(0, 9),
            },
            "sliding-log" => Promise::SlidingLog { amount, period, count_denied: random.percent(20) },
            "sliding-window" => Promise::SlidingWindow {
                amount,
                period,
                slots: random.between(1, 9),
                max_debt: random.between(0, 9),
            },
            "sliding-window-estimate" => Promise::Estimate { amount, period, max_debt: random.between(0, 9) },
            "pacer" => Promise::Steady {
                amount,
                period,
                savings: random.between(0, 3) * period,
                own: random.percent(50),
            },
            "pacer-warm-up" => Promise::WarmUp {
                amount,
                period,
                warm_up: random.between(1, 9) * period,
                cold_factor: random.between(1, 7),
                own: random.percent(50),
            },
            "calendar" => Promise::Calendar {
                amount,
                calendar: random_calendar(random),
                max_debt: random.between(0, 9),
            },
            _ => Promise::Concurrency { max: amount, lease: period },
        }
    }

    /// The period, or the lease, in ticks.
    pub fn period(&self) -> u64 {
        match *self {
            Promise::TokenBucket { period, .. }
            | Promise::LeakyBucket { period, .. }
            | Promise::FixedWindow { period, .. }
            | Promise::SlidingLog { period, .. }
            | Promise::SlidingWindow { period, .. }
            | Promise::Estimate { period, .. }
            | Promise::Steady { period, .. }
            | Promise::WarmUp { period, .. }
            | Promise::Concurrency { lease: period, .. } => period,
            Promise::Calendar { calendar, .. } => calendar.usual(),
        }
    }

    /// The most that can pass at one instant, if one can say.
    pub fn most_at_once(&self) -> u64 {
        match *self {
            Promise::TokenBucket { burst, .. } => burst,
            Promise::LeakyBucket { queue, .. } => queue + 1,
            Promise::FixedWindow { amount, .. }
            | Promise::SlidingLog { amount, .. }
            | Promise::SlidingWindow { amount, .. }
            | Promise::Estimate { amount, .. }
            | Promise::Calendar { amount, .. } => amount,
            Promise::Steady { amount, period, savings, .. } => savings / interval(amount, period) + 1,
            Promise::WarmUp { .. } => 5,
            Promise::Concurrency { max, .. } => max,
        }
    }
}

/// The time from one unit to the next, rounded up to a tick.
pub fn interval(amount: u64, period: u64) -> u64 {
    period / amount + u64::from(period % amount != 0)
}

fn draft(algorithm: Algorithm, amount: u64, period: u64) -> LimitBuilder {
    LimitBuilder::new(algorithm, amount, span(period))
}

fn span(ticks: u64) -> Duration {
    assert_eq!(ticks % MICROSECOND, 0, "a written span is whole microseconds");
    Duration::from_micros(ticks / MICROSECOND)
}

fn pay(own: bool) -> Pay {
    if own { Pay::Own } else { Pay::Next }
}

/// A calendar of any unit, first day and place.
fn random_calendar(random: &mut Random) -> Calendar {
    let unit = random.between(0, 4) as usize;
    let first_day = match unit {
        2 => random.between(0, 6),
        3 => random.pick(&[1, 15, 28, 29, 30, 31]),
        4 => random.pick(&[1, 6, 31]),
        _ => 0,
    };
    Calendar { unit, first_day: first_day as i64, place: random.pick(&PLACES) }
}

/// A period from the shortest that this amount may have to a year.
fn random_period(random: &mut Random, amount: u64) -> u64 {
    let shortest = amount.div_ceil(10);
    let microseconds = random.sized(shortest, 365 * 86_400 * 1_000_000);
    // Most limits are written in round numbers.
    let round = random.pick(&[1, 1, 1000, 1_000_000]);
    (microseconds / round * round).max(shortest) * MICROSECOND
}

/// So many units, or as many as two years can earn.
fn fitting(units: u64, amount: u64, period: u64) -> u64 {
    units.min((730 * DAY / interval(amount, period)).max(1))
}
