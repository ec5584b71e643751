//! Refunds: what of one take is still owed, and so comes back.
//!
//! The debts of a bucket or a pacer form a queue. A take moves the clear time from the later of now and the clear time
//! to its end, by its price: that interval is its debt. Time repays the oldest interval first.
//!
//! ```text
//!             now
//!   ..........|####A####|####B####|##C##|      A, B, C: debts of three takes
//!             |    |<-->|                      a refund of half of A, or of all of A when half is repaid
//!             |####|####B####|##C##|           B and C move forward by what came back
//! ```
//!
//! The part of an interval after now comes back; of a partial refund, the end of it. The work that stays in the queue is
//! never served later than without the cancelled work, so the takes that are kept obey the limit by themselves.
//!
//! A request that was allowed for a later time keeps that time. A refund in front of it would let two act at the same
//! moment, so while any request may still wait, only the last take comes back; as a whole, unless it has acted already,
//! because one that still waits would have company as well.
//!
//! Other processes may share the state, and then the order of the debts is not known. But time cannot have repaid more
//! of a take than has passed since it: the price less that time is still owed, whatever the order.

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
    /// The part that time has not repaid, at most this price.
    fn owed(&self, now: Timestamp, price: Ticks) -> Ticks {
        price.min(self.end.since(self.begin.max(now)))
    }
}

/// What is known about the take that a refund speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Its interval, where the order of the debts is known.
    Queued {
        own: Interval,
        /// The end of the last interval that is known.
        last_end: Timestamp,
        /// The latest time at which the queue was seen.
        seen: Timestamp,
    },
    /// The time of the take and what of it was not refunded, where other processes use the same state.
    Unordered { at: Timestamp, paid: Ticks },
}

/// What a refund took off a debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenOff {
    /// How far the clear time moved back.
    pub(crate) back: Ticks,
    /// Whether that is all that was asked for.
    pub(crate) adjusted: Adjusted,
}

impl TakenOff {
    pub(crate) const NOTHING: TakenOff = TakenOff { back: Ticks::ZERO, adjusted: Adjusted::Capped };
}

/// An algorithm whose debts form a queue.
pub(crate) trait Queue: Decide {
    /// Takes the price of so many units off the debt of one take, as far as they are still owed. `None` if the state owes
    /// less than the claim says: then debt was taken off without this queue, and its intervals are not known any more.
    fn take_off(
        &self,
        state: &mut Self::State,
        now: Timestamp,
        claim: &Claim,
        units: Cost,
    ) -> Option<TakenOff>;
}

impl<M: Metered + std::fmt::Debug> Queue for M {
    fn take_off(
        &self,
        clear_at: &mut Timestamp,
        now: Timestamp,
        claim: &Claim,
        units: Cost,
    ) -> Option<TakenOff> {
        let price = self.debt().time_of(units.get());
        let may_wait = clear_at.since(now) > self.nobody_waits_within();
        let waiting = if may_wait { Waiting::Perhaps { acts_at_begin: true } } else { Waiting::None };
        let back = still_owed(claim, *clear_at, now, price, waiting)?;
        *clear_at = clear_at.saturating_sub(back);
        Some(TakenOff { back, adjusted: Adjusted::whole_if(back == price) })
    }
}

/// Whether some request may have been allowed for a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    None,
    /// Perhaps; and whether a request has surely acted by the time at which its debt begins to be repaid.
    Perhaps {
        acts_at_begin: bool,
    },
}

impl Waiting {
    /// Whether a take may come back by this price.
    fn permits(self, own: Interval, clear_at: Timestamp, now: Timestamp, price: Ticks) -> bool {
        let Waiting::Perhaps { acts_at_begin } = self else { return true };
        let is_whole = price >= own.end.since(own.begin);
        own.end == clear_at && (is_whole || (acts_at_begin && own.begin <= now))
    }
}

/// What of a price is still owed, by a state that is clear at this time.
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
            // A reading that is only out of order must not find more than the one before it.
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
