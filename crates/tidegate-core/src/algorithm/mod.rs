//! The algorithms. Each is a pure function of a limit, a small state, the time and an ask.
//!
//! [`Algorithm`] lists them, and each module describes one: its guarantee, and the reasons for it. The module [`debt`]
//! describes the state of token buckets and leaky buckets.
//!
//! [`Limit::decide`](crate::Limit::decide) runs the algorithm of a limit on a [`State`]. For code that keeps states of
//! one algorithm only, each algorithm has a type that implements [`Decide`], such as [`TokenBucket`]. A
//! [`Limit`](crate::Limit) is converted to it by `TryFrom`.
//!
//! No function here reads a clock, takes a lock or fails. The store that keeps the state chooses the synchronization.

pub mod calendar;
pub(crate) mod carry;
pub mod concurrency;
pub mod debt;
pub mod fixed_window;
pub(crate) mod journal;
pub mod leaky_bucket;
pub mod pacer;
pub(crate) mod refund;
pub mod sliding_log;
pub mod sliding_window;
pub(crate) mod state;
pub mod token_bucket;
pub(crate) mod word;

pub use calendar::Calendar;
pub use concurrency::Concurrency;
pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use pacer::PacerParams;
pub(crate) use refund::{Claim, DebtQueue, Interval, TakenOff};
pub use sliding_log::SlidingLog;
pub use sliding_window::SlidingWindow;
pub use state::State;
pub use token_bucket::TokenBucket;
pub(crate) use word::{OneWord, worst_word};

use std::fmt;

use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::time::Timestamp;

/// The operations that every algorithm provides on the state of one key.
///
/// The default state is that of a key never seen.
///
/// An implementation is deterministic: the same numbers, state, time and ask give the same decision. So states can be
/// recorded, replayed and compared across stores.
#[doc(alias("rate limiting algorithm"))]
pub trait Decide {
    /// The state of one key.
    type State: Clone + Default + fmt::Debug + PartialEq;

    /// Decides, and spends the cost if the ask is allowed.
    ///
    /// A denial leaves the state unchanged, with one exception. A debt larger than the limit can hold (the clock
    /// stepped back, or the limit was lowered) is written back as a full one.
    ///
    /// A store that shares a state reads the clock after it loads the state, and again after a lost compare-and-swap.
    /// The times that one state receives then never go back, except by steps of the clock itself.
    #[must_use = "a decision that is not read limits nothing"]
    fn decide(&self, state: &mut Self::State, now: Timestamp, ask: Ask) -> Decision;

    /// Returns the decision that [`Decide::decide`] would make now. `remaining` and `reset_after` describe the
    /// unchanged state.
    #[must_use = "a decision that is not read limits nothing"]
    fn peek(&self, state: &Self::State, now: Timestamp, ask: Ask) -> Decision;

    /// Charges additional cost, or refunds unused cost.
    fn adjust(&self, state: &mut Self::State, now: Timestamp, adjustment: Adjustment) -> Adjusted;

    /// Returns the time from which the state equals that of a key never seen, and may be dropped.
    fn clear_at(&self, state: &Self::State) -> Timestamp;

    /// Returns the receipt of the take that produced this state.
    fn receipt(&self, state: &Self::State, now: Timestamp, cost: Cost) -> Receipt {
        Receipt::new(cost, now, self.clear_at(state))
    }

    /// Refunds one take, as far as it is certainly still owed.
    fn give_back(&self, state: &mut Self::State, now: Timestamp, receipt: Receipt) -> Adjusted;
}

/// Enough words for the numbers of any algorithm.
pub(crate) type Words = [u64; 5];

/// An algorithm, named as in the text of a limit.
///
/// | algorithm | state per key | bursts | choose it for |
/// |---|---|---|---|
/// | token-bucket | 1 word | up to the burst | most rates |
/// | leaky-bucket | 1 word | queued and spaced out | an upstream that needs even load |
/// | fixed-window | 1 word | up to twice the limit around a boundary | quotas per minute, hour or day |
/// | sliding-log | 16 bytes per action | up to the limit | small limits that must be exact |
/// | sliding-window | 8 bytes per slot | up to the limit | large limits in every trailing period |
/// | pacer | 4 words | from saved idle time, one second unless set; none with a warm-up | spaced calls, warm-up |
/// | concurrency | one entry per holder | not a rate | calls in flight |
/// | calendar | 1 word | up to twice the limit around a boundary | quotas per calendar day, month or year |
#[doc(alias("GCRA", "token bucket", "leaky bucket as a meter", "sliding window", "semaphore"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// `token-bucket`: bursts from saved tokens, then the rate. A GCRA meter.
    TokenBucket,
    /// `leaky-bucket`: a bounded queue that drains at the rate.
    LeakyBucket,
    /// `fixed-window`: a counter per period.
    FixedWindow,
    /// `sliding-log`: every trailing period, exactly, with an entry for each action.
    SlidingLog,
    /// `sliding-window`: every trailing period, in constant memory.
    SlidingWindow,
    /// `pacer`: spaces permits, and saves idle time for bursts, as Guava's `RateLimiter` does.
    Pacer,
    /// `concurrency`: a maximum number in flight.
    Concurrency,
    /// `calendar`: a counter per hour, day, week, month or year of a time zone.
    Calendar,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 8] = [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
        Algorithm::Pacer,
        Algorithm::Concurrency,
        Algorithm::Calendar,
    ];

    /// Returns the name in the text of a limit.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::TokenBucket => "token-bucket",
            Algorithm::LeakyBucket => "leaky-bucket",
            Algorithm::FixedWindow => "fixed-window",
            Algorithm::SlidingLog => "sliding-log",
            Algorithm::SlidingWindow => "sliding-window",
            Algorithm::Pacer => "pacer",
            Algorithm::Concurrency => "concurrency",
            Algorithm::Calendar => "calendar",
        }
    }

    /// Returns the algorithm of this name, or `None` if the name is unknown. Names are case-sensitive.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
