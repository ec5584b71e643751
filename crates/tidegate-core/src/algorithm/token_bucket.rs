//! Token bucket: bursts from saved tokens, then the rate.
//!
//! ```text
//!   one token per interval           asks take tokens
//!        o  o  o                          ^
//!        v  v  v                          |
//!      +----------+   full: new ones  +---+---+
//!      | o o o o  |-> are not saved   |  ask  |  not enough tokens: denied,
//!      +----------+                   +-------+  or promised for later
//!         burst
//! ```
//!
//! From rest `burst` units pass at one instant; over any time t at most `burst + rate * t`. The state is a debt (see
//! [`debt`](super::debt)). A token bucket, a leaky bucket used as a meter and GCRA are the same algorithm seen from
//! three sides, and one word holds the state.
//!
//! A caller with a max wait can be promised a later time: the units are taken now, and the action waits until they
//! exist. No reservation reaches further ahead than `max_debt`, because a deeper debt looks like a clock that stepped
//! back.

use std::num::NonZeroU64;

use super::Words;
use super::debt::{Debt, Metered};
use crate::decision::Verdict;
use crate::limit::Problem;
use crate::time::Ticks;

/// The numbers of a token bucket.
#[doc(alias("GCRA", "leaky bucket as a meter", "TAT", "burst"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    burst: u64,
    debt: Debt,
}

impl TokenBucket {
    pub(crate) const fn new(interval: NonZeroU64, burst: u64, max_debt: u64) -> Result<TokenBucket, Problem> {
        if burst == 0 {
            return Err(Problem::ZeroBurst);
        }
        match Debt::new(interval, burst, max_debt) {
            Ok(debt) => Ok(TokenBucket { burst, debt }),
            Err(problem) => Err(problem),
        }
    }
}

impl Metered for TokenBucket {
    #[inline]
    fn debt(&self) -> &Debt {
        &self.debt
    }

    #[inline]
    fn limit(&self) -> u64 {
        self.burst
    }

    #[inline]
    fn numbers(&self) -> Words {
        self.debt.pack(self.burst, Ticks::ZERO)
    }

    #[inline]
    fn all_acted_within(&self) -> Ticks {
        self.debt.capacity()
    }

    #[inline]
    fn verdict(&self, _owed: Ticks, after: Ticks, max_wait: Ticks) -> Verdict<Ticks> {
        let delay = after.saturating_sub(self.debt.capacity());
        let max_wait = max_wait.min(self.debt.max_debt());
        if delay <= max_wait {
            Verdict::Allowed { delay }
        } else {
            Verdict::Denied { retry_after: delay.saturating_sub(max_wait) }
        }
    }
}
