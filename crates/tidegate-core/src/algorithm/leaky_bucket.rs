//! Leaky bucket: a bounded queue that drains at the rate.
//!
//! ```text
//!     asks
//!      | | |                 debt + cost > queue + 1: denied
//!      v v v
//!   +---------+  \
//!   |  |  |   |   |  queue: they wait their turn
//!   |  |  |   |  /
//!   +--+---+--+  \   delay-after: these pass at once
//!      |   |     /
//!      v   v
//!    one per interval
//! ```
//!
//! One unit is served while `queue` wait, so at most `queue + 1` are owed. An accepted ask is delayed until the earlier
//! debt beyond `delay-after` has drained. With `delay-after 0` departures are evenly spaced. With `delay-after all`
//! nothing waits, and the bucket is a meter. This is the arithmetic of nginx's `limit_req` without its rounding to
//! thousandths. The state is one clear time (see [`debt`](super::debt)).

use std::num::NonZeroU64;

use super::Words;
use super::debt::{Debt, Metered};
use crate::decision::Verdict;
use crate::limit::{DelayAfter, Problem};
use crate::time::Ticks;

/// The numbers of a leaky bucket.
#[doc(alias("limit_req", "nginx", "traffic shaping", "leaky bucket as a queue"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    places: u64,
    undelayed: Ticks,
    debt: Debt,
}

impl LeakyBucket {
    pub(crate) const fn new(
        interval: NonZeroU64,
        queue: u64,
        delay_after: DelayAfter,
        max_debt: Option<u64>,
    ) -> Result<LeakyBucket, Problem> {
        let Some(places) = queue.checked_add(1) else { return Err(Problem::QueueTooLong) };
        let max_debt = match max_debt {
            Some(units) => units,
            None => places,
        };
        let undelayed = match delay_after {
            DelayAfter::All => Ticks::MAX,
            DelayAfter::Units(units) => match Ticks::new(interval.get()).checked_mul(units) {
                Some(ticks) => ticks,
                None => Ticks::MAX,
            },
        };
        match Debt::new(interval, places, max_debt) {
            Ok(debt) => Ok(LeakyBucket { places, undelayed, debt }),
            Err(Problem::BurstTooLong) => Err(Problem::QueueTooLong),
            Err(problem) => Err(problem),
        }
    }

    /// Returns true if each unit leaves only after all earlier ones have drained.
    pub(crate) fn delays_all(&self) -> bool {
        self.undelayed == Ticks::ZERO
    }
}

impl Metered for LeakyBucket {
    #[inline]
    fn debt(&self) -> &Debt {
        &self.debt
    }

    #[inline]
    fn limit(&self) -> u64 {
        self.places
    }

    #[inline]
    fn numbers(&self) -> Words {
        self.debt.pack(self.places, self.undelayed)
    }

    #[inline]
    fn all_acted_within(&self) -> Ticks {
        self.undelayed.min(self.debt.capacity())
    }

    #[inline]
    fn verdict(&self, owed: Ticks, after: Ticks, max_wait: Ticks) -> Verdict<Ticks> {
        let delay = owed.saturating_sub(self.undelayed);
        let overfull = after.saturating_sub(self.debt.capacity());
        let retry_after = overfull.max(delay.saturating_sub(max_wait));
        if retry_after == Ticks::ZERO { Verdict::Allowed { delay } } else { Verdict::Denied { retry_after } }
    }
}
