//! The answer: a verdict at once, the other figures only when somebody asks for them.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::time::Ticks;

/// What was decided about one ask, and what the subject has left.
///
/// The verdict is known; `remaining` and the spans in nanoseconds are computed by the calls that ask for
/// them, because most callers look at the verdict only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a decision that nobody reads limits nobody"]
pub struct Decision {
    outcome: Outcome,
    limit: u64,
    room: Room,
    reset_after: Ticks,
    permit: Option<Permit>,
}

impl Decision {
    pub(crate) const fn new(outcome: Outcome, limit: u64, room: Room, reset_after: Ticks) -> Decision {
        Decision { outcome, limit, room, reset_after, permit: None }
    }

    pub(crate) const fn with_permit(self, permit: Permit) -> Decision {
        Decision { permit: Some(permit), ..self }
    }

    /// The verdict, with spans rounded up to nanoseconds.
    pub const fn verdict(&self) -> Verdict {
        match self.outcome {
            Outcome::Allowed { delay } => Verdict::Allowed { delay: delay.to_duration() },
            Outcome::Denied { retry_after } => Verdict::Denied { retry_after: retry_after.to_duration() },
            Outcome::Impossible => Verdict::Impossible,
        }
    }

    /// The verdict to the tick.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the action may happen, now or after [`Decision::delay`].
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allowed { .. })
    }

    /// How long an allowed action has to wait before it happens; `None` if it was refused.
    pub const fn delay(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Allowed { delay } => Some(delay.to_duration()),
            _ => None,
        }
    }

    /// The wait after which the same ask would pass, if nobody else spends meanwhile.
    ///
    /// `None` if it was allowed, or can never pass.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.outcome {
            Outcome::Denied { retry_after } => Some(retry_after.to_duration()),
            _ => None,
        }
    }

    /// The most that can pass at one instant from rest.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The largest cost that would pass at this instant.
    pub const fn remaining(&self) -> u64 {
        self.room.units()
    }

    /// The time until the subject is like new.
    pub const fn reset_after(&self) -> Duration {
        self.reset_after.to_duration()
    }

    /// [`Decision::reset_after`] to the tick.
    pub const fn reset_after_in_ticks(&self) -> Ticks {
        self.reset_after
    }

    /// The place in flight that was taken, to be released or renewed; only under a concurrency limit.
    pub const fn permit(&self) -> Option<Permit> {
        self.permit
    }
}

/// May it happen: now, later, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, after this delay (zero unless the asker showed patience).
    Allowed {
        /// How long to wait before acting.
        delay: Duration,
    },
    /// No; the same ask passes after this wait if nobody else spends meanwhile.
    Denied {
        /// How long to wait before asking again.
        retry_after: Duration,
    },
    /// Never: the cost is more than the limit can hold, or more than this patience can ever be met with.
    Impossible,
}

/// A [`Verdict`] to the tick, as the algorithms decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Yes, after this delay.
    Allowed {
        /// How long to wait before acting.
        delay: Ticks,
    },
    /// No, not before this much time has passed.
    Denied {
        /// How long to wait before asking again.
        retry_after: Ticks,
    },
    /// Never.
    Impossible,
}

impl Outcome {
    pub(crate) const NOW: Outcome = Outcome::Allowed { delay: Ticks::ZERO };

    pub(crate) const fn is_allowed(self) -> bool {
        matches!(self, Outcome::Allowed { .. })
    }

    /// A refusal until a known wait has passed; for ever if that wait outlasts time itself.
    pub(crate) const fn denied_for(wait: Option<Ticks>) -> Outcome {
        match wait {
            Some(retry_after) => Outcome::Denied { retry_after },
            None => Outcome::Impossible,
        }
    }
}

/// What is left: an amount and the price of one unit, divided only when somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    amount: u64,
    price: NonZeroU64,
}

impl Room {
    /// So many units.
    pub(crate) const fn of_units(units: u64) -> Room {
        Room { amount: units, price: NonZeroU64::MIN }
    }

    /// As many units as fit into `amount` at this price.
    pub(crate) const fn of_amount(amount: u64, price: NonZeroU64) -> Room {
        Room { amount, price }
    }

    const fn units(self) -> u64 {
        self.amount / self.price.get()
    }
}

/// Names one place in flight under a concurrency limit, so that only its holder can return or renew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permit(NonZeroU64);

impl Permit {
    /// The permit with this number, as it was written down elsewhere; zero names none.
    pub const fn from_number(number: u64) -> Option<Permit> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Permit(number)),
            None => None,
        }
    }

    /// The number to write down.
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(outcome: Outcome) -> Decision {
        Decision::new(outcome, 10, Room::of_amount(35, NonZeroU64::new(10).unwrap()), Ticks::new(17))
    }

    #[test]
    fn each_verdict_answers_only_its_own_questions() {
        let allowed = decision(Outcome::Allowed { delay: Ticks::new(33) });
        assert!(allowed.is_allowed());
        assert_eq!(allowed.delay(), Some(Duration::from_nanos(3)));
        assert_eq!(allowed.retry_after(), None);
        assert_eq!(allowed.verdict(), Verdict::Allowed { delay: Duration::from_nanos(3) });

        let denied = decision(Outcome::Denied { retry_after: Ticks::new(1) });
        assert!(!denied.is_allowed());
        assert_eq!(denied.delay(), None);
        assert_eq!(denied.verdict(), Verdict::Denied { retry_after: Duration::from_nanos(1) });
        assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)));

        let never = decision(Outcome::Impossible);
        assert!(!never.is_allowed());
        assert_eq!((never.delay(), never.retry_after()), (None, None));
        assert_eq!(never.verdict(), Verdict::Impossible);
    }

    #[test]
    fn remaining_is_the_room_divided_by_the_price_of_a_unit() {
        let decision = decision(Outcome::NOW);
        assert_eq!(decision.remaining(), 3);
        assert_eq!(decision.limit(), 10);
        assert_eq!(decision.reset_after(), Duration::from_nanos(2));
        assert_eq!(decision.reset_after_in_ticks(), Ticks::new(17));
    }

    #[test]
    fn a_permit_is_never_numbered_zero() {
        assert_eq!(Permit::from_number(0), None);
        assert_eq!(Permit::from_number(7).map(Permit::number), Some(7));
    }
}
