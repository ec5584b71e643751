//! The algorithms: each a pure function of a limit, a small state, the time and an ask.
//!
//! A file holds one algorithm, opens with what it promises and why it is so, and implements [`Decide`].
//! Nothing here reads a clock, takes a lock or fails; whoever keeps the state decides how.

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

pub use concurrency::Concurrency;
pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use pacer::Pacer;
pub(crate) use refund::{Claim, Interval, Queue, TakenOff};
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

/// What every algorithm can do with the state of one subject.
///
/// The default state is that of a subject never seen.
pub trait Decide {
    /// What is remembered about one subject.
    type State: Clone + Default + fmt::Debug + PartialEq;

    /// Decides, and spends if allowed. A refusal leaves the state as it was, except that a debt larger than
    /// the limit can hold (a clock stepped back, a limit was lowered) is written back as a full one.
    ///
    /// Whoever shares a state reads the clock after loading it, and again after losing it to another: the
    /// times that one state sees then never go back, except by steps of the clock itself.
    #[must_use = "a decision that nobody reads limits nobody"]
    fn decide(&self, state: &mut Self::State, now: Timestamp, ask: Ask) -> Decision;

    /// What [`Decide::decide`] would say now; `remaining` and `reset_after` are those of the state as it is.
    #[must_use = "a decision that nobody reads limits nobody"]
    fn peek(&self, state: &Self::State, now: Timestamp, ask: Ask) -> Decision;

    /// Charges what turned out to be more, or gives back what was not used.
    fn adjust(&self, state: &mut Self::State, now: Timestamp, adjustment: Adjustment) -> Adjusted;

    /// When the state will be worth nothing: from then on it may be forgotten.
    fn clear_at(&self, state: &Self::State) -> Timestamp;

    /// Proof of the take that has just left this state.
    fn receipt(&self, state: &Self::State, now: Timestamp, cost: Cost) -> Receipt {
        Receipt::new(cost, now, self.clear_at(state))
    }

    /// Gives one take back, as far as it is surely still there.
    fn give_back(&self, state: &mut Self::State, now: Timestamp, receipt: Receipt) -> Adjusted;
}

/// As many words as the numbers of any algorithm need.
pub(crate) type Words = [u64; 5];

/// The name of an algorithm, as it is written in a limit's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// `token-bucket`: bursts from savings, then the rate.
    TokenBucket,
    /// `leaky-bucket`: a bounded queue that drains at the rate.
    LeakyBucket,
    /// `fixed-window`: a counter per period.
    FixedWindow,
    /// `sliding-log`: every trailing period, exactly, by remembering each action.
    SlidingLog,
    /// `sliding-window`: every trailing period, in constant memory.
    SlidingWindow,
    /// `pacer`: spaces permits as Guava's `RateLimiter` does.
    Pacer,
    /// `concurrency`: so many in flight.
    Concurrency,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
        Algorithm::Pacer,
        Algorithm::Concurrency,
    ];

    /// The name in a limit's text.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::TokenBucket => "token-bucket",
            Algorithm::LeakyBucket => "leaky-bucket",
            Algorithm::FixedWindow => "fixed-window",
            Algorithm::SlidingLog => "sliding-log",
            Algorithm::SlidingWindow => "sliding-window",
            Algorithm::Pacer => "pacer",
            Algorithm::Concurrency => "concurrency",
        }
    }

    /// The algorithm of this name.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
