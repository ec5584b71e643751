//! Refunds: the part of one take that is still owed, and can be returned.
//!
//! The debts of a bucket or a pacer form a queue. A take moves the clear time from the later of now and the clear time
//! to its end, by its price: that interval is its debt. Time repays the oldest interval first.
//!
//! ```text
//!             now
//!   ..........|####A####|####B####|##C##|      A, B, C: debts of three takes
//!             |    |<-->|                      a refund of half of A, or of all of A when half is repaid
//!             |####|####B####|##C##|           B and C move forward by the refund
//! ```
//!
//! The part of an interval after now is refunded; a partial refund returns its end. The work that stays in the queue is
//! never served later than without the cancelled work, so the remaining takes obey the limit by themselves.
//!
//! A request that was allowed for a later time keeps that time. A refund in front of it would let two requests act at
//! the same moment. So while any request may still wait, only the last take is refunded. That refund must be whole,
//! unless the take has acted already: after a partial refund, a request that still waits would act together with the
//! next one.
//!
//! Other processes may share the state; then the order of the debts is unknown. But time cannot have repaid more of a
//! take than has passed since it: the price less that time is still owed, whatever the order.

use super::Decide;
use super::debt::Metered;
use crate::ask::{Adjusted, Cost};
use crate::time::{OUT_OF_ORDER, Ticks, Timestamp};

/// The debt of one take, as a part of the queue that ends with the clear time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) begin: Timestamp,
    pub(crate) end: Timestamp,
}

impl Interval {
    /// Returns the part that time has not repaid, at most this price.
    fn owed(&self, now: Timestamp, price: Ticks) -> Ticks {
        price.min(self.end.since(self.begin.max(now)))
    }
}

/// The known facts about the take that is to be refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Its interval, if the order of the debts is known.
    Queued {
        own: Interval,
        /// The end of the last known interval.
        last_end: Timestamp,
        /// The latest time at which the queue was read.
        seen: Timestamp,
    },
    /// The time of the take and the price of it that was not refunded, if other processes use the same state.
    Unordered { at: Timestamp, paid: Ticks },
}

/// The result of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenOff {
    /// The span by which the clear time moved back.
    pub(crate) back: Ticks,
    /// Whole or capped: a capped refund returned less than was requested.
    pub(crate) adjusted: Adjusted,
}

impl TakenOff {
    pub(crate) const NOTHING: TakenOff = TakenOff { back: Ticks::ZERO, adjusted: Adjusted::Capped };
}

/// An algorithm whose debts form a queue.
pub(crate) trait DebtQueue: Decide {
    /// Takes the price of so many units off the debt of one take, as far as they are still owed.
    ///
    /// Returns `None` if the intervals of this queue are unknown: the state owes less than the claim implies, because
    /// debt was removed without this queue, or the clock stepped back.
    fn take_off(
        &self,
        state: &mut Self::State,
        now: Timestamp,
        claim: &Claim,
        units: Cost,
    ) -> Option<TakenOff>;
}

impl<M: Metered + std::fmt::Debug> DebtQueue for M {
    fn take_off(
        &self,
        clear_at: &mut Timestamp,
        now: Timestamp,
        claim: &Claim,
        units: Cost,
    ) -> Option<TakenOff> {
        let price = self.debt().time_of(units.get());
        let may_wait = clear_at.since(now) > self.all_acted_within();
        let waiting = if may_wait { Waiting::Perhaps { acts_at_begin: true } } else { Waiting::None };
        let back = still_owed(claim, *clear_at, now, price, waiting)?;
        *clear_at = clear_at.saturating_sub(back);
        Some(TakenOff { back, adjusted: Adjusted::whole_if(back == price) })
    }
}

/// The possibility that some request was allowed for a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    None,
    /// Some request may wait. `acts_at_begin` is true if each has acted by the time at which its debt begins to be
    /// repaid.
    Perhaps {
        acts_at_begin: bool,
    },
}

impl Waiting {
    /// Returns true if a take may be refunded by this price.
    fn permits(self, own: Interval, clear_at: Timestamp, now: Timestamp, price: Ticks) -> bool {
        let Waiting::Perhaps { acts_at_begin } = self else { return true };
        let is_whole = price >= own.end.since(own.begin);
        own.end == clear_at && (is_whole || (acts_at_begin && own.begin <= now))
    }
}

/// Returns the part of a price that is still owed by a state that is clear at this time.
pub(super) fn still_owed(
    claim: &Claim,
    clear_at: Timestamp,
    now: Timestamp,
    price: Ticks,
    waiting: Waiting,
) -> Option<Ticks> {
    match *claim {
        Claim::Queued { own, last_end, seen } => {
            let has_stepped_back = seen.since(now) > OUT_OF_ORDER;
            if clear_at < last_end || has_stepped_back {
                return None;
            }
            let is_permitted = waiting.permits(own, clear_at, now, price);
            // A clock reading that is merely out of order must not find a larger debt than the reading before it.
            Some(if is_permitted { own.owed(now.max(seen), price) } else { Ticks::ZERO })
        }
        Claim::Unordered { at, paid } => {
            if at.since(now) > OUT_OF_ORDER {
                return None;
            }
            let unpaid = paid.saturating_sub(now.since(at)).min(clear_at.since(now));
            Some(if waiting == Waiting::None { price.min(unpaid) } else { Ticks::ZERO })
        }
    }
}

#[cfg(test)]
mod tests;
