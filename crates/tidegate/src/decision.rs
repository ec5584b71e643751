//! The answer: a verdict at once, the other figures only when somebody asks for them.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::time::Ticks;

/// When to try again after a store was full.
const WHEN_STORE_FULL: Ticks = Ticks::saturating_from(Duration::from_secs(1));

/// What was decided about one ask, and what the subject has left.
///
/// The verdict is known; `remaining` and the spans in nanoseconds are computed by the calls that ask for
/// them, because most callers look at the verdict only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    verdict: Verdict<Ticks>,
    limit: u64,
    room: Room,
    reset_after: Ticks,
    permit: Option<PermitId>,
    store_full: bool,
}

impl Decision {
    #[inline]
    pub(crate) const fn new(verdict: Verdict<Ticks>, limit: u64, room: Room, reset_after: Ticks) -> Decision {
        Decision { verdict, limit, room, reset_after, permit: None, store_full: false }
    }

    /// The same with another number for the place in flight, for a store that numbers them itself.
    #[inline]
    #[must_use]
    pub const fn with_permit(self, permit: PermitId) -> Decision {
        Decision { permit: Some(permit), ..self }
    }

    /// A refusal because the store has no room for another subject.
    #[inline]
    pub(crate) const fn store_full(self) -> Decision {
        let verdict = Verdict::Denied { retry_after: WHEN_STORE_FULL };
        Decision { verdict, permit: None, store_full: true, ..self }
    }

    /// What a store elsewhere has decided.
    #[inline]
    pub const fn elsewhere(
        verdict: Verdict<Ticks>,
        limit: u64,
        remaining: u64,
        reset_after: Ticks,
    ) -> Decision {
        Decision::new(verdict, limit, Room::of_units(remaining), reset_after)
    }

    /// A refusal in place of what was decided, because of others: nothing passes before this wait is over.
    /// What can never pass stays so.
    #[must_use]
    #[inline]
    pub const fn put_off(self, retry_after: Ticks) -> Decision {
        if matches!(self.verdict, Verdict::Impossible) {
            return self;
        }
        Decision { verdict: Verdict::Denied { retry_after }, room: Room::of_units(0), permit: None, ..self }
    }

    /// A denial in place of what was decided.
    #[must_use]
    pub(crate) const fn denied_for(self, retry_after: Ticks) -> Decision {
        Decision { verdict: Verdict::Denied { retry_after }, permit: None, ..self }
    }

    /// A denial in place of what was decided, because no wait is long enough.
    #[must_use]
    pub(crate) const fn impossible(self) -> Decision {
        Decision { verdict: Verdict::Impossible, permit: None, ..self }
    }

    /// The answer to an ask of nothing, in place of what was decided about one unit.
    #[must_use]
    pub(crate) const fn asking_nothing(self) -> Decision {
        Decision { verdict: Verdict::NOW, permit: None, store_full: false, ..self }
    }

    /// The same decision of a key that is full after this time, whatever the limit says: no wait is longer.
    #[must_use]
    pub(crate) fn at_most(self, wait: Ticks) -> Decision {
        let verdict = match self.verdict {
            Verdict::Denied { retry_after } => Verdict::Denied { retry_after: retry_after.min(wait) },
            other => other,
        };
        Decision { verdict, reset_after: self.reset_after.min(wait), ..self }
    }

    /// The order of answers to one ask: the larger, the less it gives.
    pub(crate) fn strictness(&self) -> (u8, Ticks, Reverse<u64>, Ticks) {
        let (rank, span) = match self.verdict {
            Verdict::Allowed { delay } => (0, delay),
            Verdict::Denied { retry_after } => (1, retry_after),
            Verdict::Impossible => (2, Ticks::ZERO),
        };
        (rank, span, Reverse(self.remaining()), self.reset_after)
    }

    /// The answer to one ask where both of these hold: the stricter verdict, the fewer units, the longer time.
    pub(crate) fn stricter(&self, other: &Decision) -> Decision {
        let (stricter, milder) =
            if other.strictness() > self.strictness() { (other, self) } else { (self, other) };
        let room = if milder.remaining() < stricter.remaining() { milder.room } else { stricter.room };
        Decision { room, reset_after: stricter.reset_after.max(milder.reset_after), ..*stricter }
    }

    /// The same decision of a key that is decided by something else after this time.
    pub(crate) fn followed_by(self, then: &Decision, after: Ticks) -> Decision {
        let verdict = match (self.verdict, then.verdict) {
            (Verdict::Denied { retry_after }, Verdict::Denied { retry_after: more })
                if retry_after >= after =>
            {
                Verdict::Denied { retry_after: after.saturating_add(more) }
            }
            (verdict, _) => verdict,
        };
        let reset_after = match then.reset_after {
            Ticks::ZERO => self.reset_after,
            more => after.saturating_add(more).max(self.reset_after),
        };
        Decision { verdict, reset_after, ..self }
    }

    /// The verdict, with spans rounded up to nanoseconds.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        match self.verdict {
            Verdict::Allowed { delay } => Verdict::Allowed { delay: delay.to_duration() },
            Verdict::Denied { retry_after } => Verdict::Denied { retry_after: retry_after.to_duration() },
            Verdict::Impossible => Verdict::Impossible,
        }
    }

    /// The verdict to the tick.
    #[inline]
    pub const fn verdict_in_ticks(&self) -> Verdict<Ticks> {
        self.verdict
    }

    /// Whether the action may happen, now or after [`Decision::delay`].
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed { .. })
    }

    /// How long an allowed action has to wait before it happens; `None` if it was refused.
    #[inline]
    pub const fn delay(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Allowed { delay } => Some(delay.to_duration()),
            _ => None,
        }
    }

    /// The wait after which the same ask would pass, if nobody else spends meanwhile.
    ///
    /// `None` if it was allowed, or can never pass.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Denied { retry_after } => Some(retry_after.to_duration()),
            _ => None,
        }
    }

    /// The most that can pass at one instant from rest; for a pacer, the most that it can save.
    #[inline]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The largest cost that would pass at this instant, at once; in a leaky bucket, at once or delayed; of a
    /// pacer, the permits that are saved.
    #[inline]
    pub const fn remaining(&self) -> u64 {
        self.room.units()
    }

    /// Returns true if [`Decision::remaining`] is at most this, without the division that it takes to know it.
    #[inline]
    pub const fn has_at_most(&self, units: u64) -> bool {
        (self.room.amount as u128) < (units as u128 + 1) * self.room.price.get() as u128
    }

    /// The time until the subject is like new; for a pacer, until the next one does not have to wait.
    #[inline]
    pub const fn reset_after(&self) -> Duration {
        self.reset_after.to_duration()
    }

    /// [`Decision::reset_after`] to the tick.
    #[inline]
    pub const fn reset_after_in_ticks(&self) -> Ticks {
        self.reset_after
    }

    /// Whether it was refused only because the store had no room to remember another subject. Nobody knows
    /// when there will be room: `retry_after` is then a guess.
    #[inline]
    pub const fn is_store_full(&self) -> bool {
        self.store_full
    }

    /// The place in flight that was taken, to be released or renewed; only under a concurrency limit.
    #[inline]
    pub const fn permit(&self) -> Option<PermitId> {
        self.permit
    }
}

/// May it happen: now, later, or not at all. Spans are durations, or ticks where every tick counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<Span = Duration> {
    /// Yes, after this delay (zero unless the asker showed patience).
    Allowed {
        /// How long to wait before acting.
        delay: Span,
    },
    /// No; the same ask passes after this wait if nobody else spends meanwhile.
    Denied {
        /// How long to wait before asking again.
        retry_after: Span,
    },
    /// Not by waiting: the cost is more than the limit can hold, or more than this patience can be met with
    /// (a pacer that others warm up may meet it yet).
    Impossible,
}

impl Verdict<Ticks> {
    pub(crate) const NOW: Verdict<Ticks> = Verdict::Allowed { delay: Ticks::ZERO };

    #[inline]
    pub(crate) const fn is_allowed(self) -> bool {
        matches!(self, Verdict::Allowed { .. })
    }

    /// The verdict about so many units of a limit that counts: refused until a known wait has passed, and for ever if that
    /// wait outlasts time itself or the limit never holds so many.
    #[inline]
    pub(crate) fn by_count(
        units: u64,
        limit: u64,
        remaining: u64,
        wait: impl FnOnce() -> Option<Ticks>,
    ) -> Verdict<Ticks> {
        if units <= remaining {
            return Verdict::NOW;
        }
        let wait = if units <= limit { wait() } else { None };
        wait.map_or(Verdict::Impossible, |retry_after| Verdict::Denied { retry_after })
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
    #[inline]
    pub(crate) const fn of_units(units: u64) -> Room {
        Room { amount: units, price: NonZeroU64::MIN }
    }

    /// As many units as fit into `amount` at this price.
    #[inline]
    pub(crate) const fn of_amount(amount: u64, price: NonZeroU64) -> Room {
        Room { amount, price }
    }

    #[inline]
    const fn units(self) -> u64 {
        self.amount / self.price.get()
    }
}

/// Names one holder of places in flight among all that a subject ever had: to release or renew just that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(NonZeroU64);

impl PermitId {
    pub(crate) const LAST: PermitId = PermitId(NonZeroU64::MAX);

    /// The permit with this number, as it was written down elsewhere; zero names none.
    #[inline]
    pub const fn from_number(number: u64) -> Option<PermitId> {
        match NonZeroU64::new(number) {
            Some(number) => Some(PermitId(number)),
            None => None,
        }
    }

    /// The number to write down.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(verdict: Verdict<Ticks>) -> Decision {
        Decision::new(verdict, 10, Room::of_amount(35, NonZeroU64::new(10).unwrap()), Ticks::new(17))
    }

    #[test]
    fn each_verdict_answers_only_its_own_questions() {
        let allowed = decision(Verdict::Allowed { delay: Ticks::new(33) });
        assert!(allowed.is_allowed());
        assert_eq!(allowed.delay(), Some(Duration::from_nanos(3)));
        assert_eq!(allowed.retry_after(), None);
        assert_eq!(allowed.verdict(), Verdict::Allowed { delay: Duration::from_nanos(3) });

        let denied = decision(Verdict::Denied { retry_after: Ticks::new(1) });
        assert!(!denied.is_allowed());
        assert_eq!(denied.delay(), None);
        assert_eq!(denied.verdict(), Verdict::Denied { retry_after: Duration::from_nanos(1) });
        assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)));

        let never = decision(Verdict::Impossible);
        assert!(!never.is_allowed());
        assert_eq!((never.delay(), never.retry_after()), (None, None));
        assert_eq!(never.verdict(), Verdict::Impossible);
    }

    #[test]
    fn remaining_is_the_room_divided_by_the_price_of_a_unit() {
        let decision = decision(Verdict::NOW);
        assert_eq!(decision.remaining(), 3);
        assert_eq!(decision.limit(), 10);
        assert_eq!(decision.reset_after(), Duration::from_nanos(2));
        assert_eq!(decision.reset_after_in_ticks(), Ticks::new(17));
    }

    #[test]
    fn a_permit_is_never_numbered_zero() {
        assert_eq!(PermitId::from_number(0), None);
        assert_eq!(PermitId::from_number(7).map(PermitId::number), Some(7));
    }
}
