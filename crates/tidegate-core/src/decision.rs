//! The decision about one ask: the verdict is stored, the other figures are computed on demand.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::time::Ticks;

/// The `retry_after` of a denial because the store is full.
const WHEN_STORE_FULL: Ticks = Ticks::saturating_from(Duration::from_secs(1));

/// The decision about one ask: the verdict, the remaining quota of the key, and the time until the key is full.
///
/// The verdict is stored. `remaining` and the spans in nanoseconds are computed by their methods, because most
/// callers read only the verdict.
///
/// ```
/// use tidegate::{Limit, Limiter, Verdict};
///
/// let limiter = Limiter::new(Limit::per_hour(2));
/// let first = limiter.admit("ana");
/// assert_eq!((first.is_allowed(), first.limit(), first.remaining()), (true, 2, 1));
/// assert!(limiter.admit("ana").is_allowed());
/// assert!(matches!(limiter.admit("ana").verdict(), Verdict::Denied { .. }));
/// ```
///
/// # Serialized form
///
/// With the feature `serde`, a decision is a structure. `verdict` is `{"allowed": {"delay": …}}`,
/// `{"denied": {"retry_after": …}}` or `"impossible"`, and spans are written as `serde` writes a `Duration`. The field
/// `permit`, in hexadecimal digits, is present only if there is a permit, and `ban` only if the key is banned.
///
/// ```
/// # #[cfg(feature = "serde")] {
/// use serde_json::{json, to_value};
/// use tidegate::{Decision, Limit, SECOND, Ticks, Verdict};
///
/// let span = Ticks::saturating_from;
/// let denied = Verdict::Denied { retry_after: span(SECOND) };
/// let decision = Decision::from_remote(denied, 20, 0, span(2 * SECOND));
/// let fields = json!({
///     "verdict": { "denied": { "retry_after": { "secs": 1, "nanos": 0 } } },
///     "limit": 20,
///     "remaining": 0,
///     "reset_after": { "secs": 2, "nanos": 0 },
///     "store_full": false,
/// });
/// assert_eq!(to_value(decision).ok(), Some(fields));
///
/// // A limit is its text, and so are a rate, an algorithm and a permit.
/// assert_eq!(to_value(Limit::per_second(10).burst(20)).ok(), Some(json!("10/s burst 20")));
/// # }
/// ```
#[doc(alias("rate limit response", "quota"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    verdict: Verdict<Ticks>,
    limit: u64,
    room: Remaining,
    reset_after: Ticks,
    permit: Option<PermitId>,
    store_full: bool,
    ban: Option<Ban>,
}

/// The ban by which a decision denied; see [`PreparedPenalty`](crate::PreparedPenalty).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Ban {
    /// The limit denied, and this denial began a ban.
    Begun,
    /// A ban was in force.
    InForce,
}

impl Decision {
    /// Creates a decision without a permit.
    #[inline]
    pub(crate) const fn new(
        verdict: Verdict<Ticks>,
        limit: u64,
        room: Remaining,
        reset_after: Ticks,
    ) -> Decision {
        Decision { verdict, limit, room, reset_after, permit: None, store_full: false, ban: None }
    }

    /// Returns the decision with this permit, for a store that numbers its permits itself.
    #[inline]
    #[must_use]
    pub const fn with_permit(self, permit: PermitId) -> Decision {
        Decision { permit: Some(permit), ..self }
    }

    /// Returns a denial because the store has no room for another key.
    #[inline]
    pub(crate) const fn store_full(self) -> Decision {
        let verdict = Verdict::Denied { retry_after: WHEN_STORE_FULL };
        Decision { verdict, permit: None, store_full: true, ..self }
    }

    /// Creates the decision of a remote store.
    #[inline]
    pub const fn from_remote(
        verdict: Verdict<Ticks>,
        limit: u64,
        remaining: u64,
        reset_after: Ticks,
    ) -> Decision {
        Decision::new(verdict, limit, Remaining::of_units(remaining), reset_after)
    }

    /// Turns the decision into a denial with this `retry_after` and no remaining quota, because other callers wait
    /// for the key. An impossible ask stays impossible.
    #[must_use]
    #[inline]
    pub const fn denied_for(self, retry_after: Ticks) -> Decision {
        if matches!(self.verdict, Verdict::Impossible) {
            return self;
        }
        Decision {
            verdict: Verdict::Denied { retry_after },
            room: Remaining::of_units(0),
            permit: None,
            ..self
        }
    }

    /// Returns a denial with this `retry_after` in place of the verdict.
    #[must_use]
    pub(crate) const fn with_retry_after(self, retry_after: Ticks) -> Decision {
        Decision { verdict: Verdict::Denied { retry_after }, permit: None, ..self }
    }

    /// Returns [`Verdict::Impossible`] in place of the verdict, because no wait is long enough.
    #[must_use]
    pub(crate) const fn impossible(self) -> Decision {
        Decision { verdict: Verdict::Impossible, permit: None, ..self }
    }

    /// Turns the decision about one unit into the decision about a cost of 0, which is always allowed.
    #[must_use]
    pub(crate) const fn asking_nothing(self) -> Decision {
        Decision { verdict: Verdict::NOW, permit: None, store_full: false, ban: None, ..self }
    }

    /// Caps `retry_after` and `reset_after` at `wait`, for a key that is full after `wait` whatever the limit
    /// allows.
    #[must_use]
    pub(crate) fn at_most(self, wait: Ticks) -> Decision {
        let verdict = match self.verdict {
            Verdict::Denied { retry_after } => Verdict::Denied { retry_after: retry_after.min(wait) },
            other => other,
        };
        Decision { verdict, reset_after: self.reset_after.min(wait), ..self }
    }

    /// Returns the sort key of decisions about one ask: the larger key is the stricter decision.
    pub(crate) fn strictness(&self) -> (u8, Ticks, Reverse<u64>, Ticks) {
        let (rank, span) = match self.verdict {
            Verdict::Allowed { delay } => (0, delay),
            Verdict::Denied { retry_after } => (1, retry_after),
            Verdict::Impossible => (2, Ticks::ZERO),
        };
        (rank, span, Reverse(self.remaining()), self.reset_after)
    }

    /// Combines two decisions about one ask: the stricter verdict, the smaller quota, the longer reset time.
    pub(crate) fn stricter(&self, other: &Decision) -> Decision {
        let (stricter, milder) =
            if other.strictness() > self.strictness() { (other, self) } else { (self, other) };
        let room = if milder.remaining() < stricter.remaining() { milder.room } else { stricter.room };
        Decision { room, reset_after: stricter.reset_after.max(milder.reset_after), ..*stricter }
    }

    /// Returns the decision of a key for which `then` decides after the span `after`.
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

    /// Returns the verdict, with spans rounded up to nanoseconds.
    #[inline]
    pub const fn verdict(&self) -> Verdict {
        match self.verdict {
            Verdict::Allowed { delay } => Verdict::Allowed { delay: delay.to_duration() },
            Verdict::Denied { retry_after } => Verdict::Denied { retry_after: retry_after.to_duration() },
            Verdict::Impossible => Verdict::Impossible,
        }
    }

    /// Returns the verdict, exact to the tick.
    #[inline]
    pub const fn verdict_in_ticks(&self) -> Verdict<Ticks> {
        self.verdict
    }

    /// Returns true if the action may happen, now or after [`Decision::delay`].
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed { .. })
    }

    /// Returns the wait before an allowed action may happen; `None` if it was denied.
    ///
    /// It is above zero only if the ask accepted a max wait. The units are spent already: the caller waits this
    /// long, and then acts.
    #[inline]
    pub const fn delay(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Allowed { delay } => Some(delay.to_duration()),
            _ => None,
        }
    }

    /// Returns the wait after which the same ask is allowed, if no other caller spends meanwhile.
    ///
    /// `None` if the ask was allowed, or can never be allowed.
    ///
    /// Without queued waiters it is exact: the same ask a nanosecond earlier is denied. Under a concurrency limit it
    /// is an upper bound, the end of leases. For an HTTP `Retry-After` field, round it up to whole seconds.
    #[doc(alias("Retry-After", "backoff"))]
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Denied { retry_after } => Some(retry_after.to_duration()),
            _ => None,
        }
    }

    /// Returns the largest cost that a full key allows at one instant; for a pacer, the largest number of permits
    /// that it can save.
    ///
    /// For a leaky bucket that is `queue + 1`, for a concurrency limit the maximum in flight.
    #[doc(alias("X-RateLimit-Limit"))]
    #[inline]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the remaining quota: the largest cost that is allowed at this instant without delay. For a leaky
    /// bucket, delayed units count; for a pacer, it is the number of saved permits.
    ///
    /// It describes the state after the decision. Another caller of the same key may spend it first.
    #[doc(alias("X-RateLimit-Remaining", "quota"))]
    #[inline]
    pub const fn remaining(&self) -> u64 {
        self.room.units()
    }

    /// Returns true if [`Decision::remaining`] is at most `units`, without the division that `remaining` costs.
    #[inline]
    pub const fn has_at_most(&self, units: u64) -> bool {
        (self.room.amount as u128) < (units as u128 + 1) * self.room.price.get() as u128
    }

    /// Returns the time until the key is full; for a pacer, until the next caller does not have to wait.
    ///
    /// Except under a pacer, the key is then indistinguishable from a key never seen.
    #[doc(alias("X-RateLimit-Reset"))]
    #[inline]
    pub const fn reset_after(&self) -> Duration {
        self.reset_after.to_duration()
    }

    /// Returns [`Decision::reset_after`], exact to the tick.
    #[inline]
    pub const fn reset_after_in_ticks(&self) -> Ticks {
        self.reset_after
    }

    /// Returns true if the ask was denied only because the store had no room for another key. `retry_after` is then
    /// a guess (1 s), because the store cannot predict when a key expires.
    #[inline]
    pub const fn is_store_full(&self) -> bool {
        self.store_full
    }

    /// Returns the denial of a key that is banned for this span, for which nothing remains. The longer wait counts; an
    /// impossible ask stays impossible.
    #[must_use]
    pub(crate) fn banned_for(self, span: Ticks, ban: Ban) -> Decision {
        let wait = match self.verdict {
            Verdict::Denied { retry_after } => retry_after.max(span),
            Verdict::Allowed { .. } | Verdict::Impossible => span,
        };
        let denied = self.denied_for(wait);
        let (room, reset_after) = (Remaining::of_units(0), self.reset_after.max(span));
        Decision { ban: Some(ban), store_full: false, room, reset_after, ..denied }
    }

    /// Returns the decision with this ban.
    #[cfg(feature = "serde")]
    pub(crate) const fn with_ban(self, ban: Option<Ban>) -> Decision {
        Decision { ban, ..self }
    }

    /// Returns the ban by which the ask was denied, if its key is banned.
    ///
    /// `retry_after` is then the end of the ban, or a longer wait for the limit.
    #[doc(alias("penalty", "blocked", "fail2ban"))]
    #[inline]
    pub const fn ban(&self) -> Option<Ban> {
        self.ban
    }

    /// Returns the permit of the units in flight; `Some` only under a concurrency limit.
    #[inline]
    pub const fn permit(&self) -> Option<PermitId> {
        self.permit
    }
}

/// The verdict about one ask. Spans are durations, or [`Ticks`] where every tick counts.
///
/// The set of variants is closed, so a `match` needs no fallback arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Verdict<Span = Duration> {
    /// Allowed after this delay, which is zero unless the ask accepts a max wait.
    Allowed {
        /// The wait before the action may happen.
        delay: Span,
    },
    /// Denied; the same ask is allowed after this wait if no other caller spends meanwhile.
    Denied {
        /// The wait before the next attempt.
        retry_after: Span,
    },
    /// Denied, and no wait helps: the cost exceeds the limit, or cannot be paid within the max wait even by a full
    /// key. A pacer can still allow a later ask, once other callers have warmed it up.
    Impossible,
}

impl Verdict<Ticks> {
    pub(crate) const NOW: Verdict<Ticks> = Verdict::Allowed { delay: Ticks::ZERO };

    #[inline]
    pub(crate) const fn is_allowed(self) -> bool {
        matches!(self, Verdict::Allowed { .. })
    }

    /// Returns the verdict about `units` of a limit that counts. The ask is denied until `wait` has passed. It is
    /// impossible if `units` exceeds `limit`, or if `wait` exceeds the range of [`Ticks`].
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

/// The remaining quota: an amount and the price of one unit. The division is deferred until the number is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Remaining {
    amount: u64,
    price: NonZeroU64,
}

impl Remaining {
    /// Creates a quota of this many units.
    #[inline]
    pub(crate) const fn of_units(units: u64) -> Remaining {
        Remaining { amount: units, price: NonZeroU64::MIN }
    }

    /// Creates a quota of as many whole units as `amount` buys at this price.
    #[inline]
    pub(crate) const fn of_amount(amount: u64, price: NonZeroU64) -> Remaining {
        Remaining { amount, price }
    }

    /// Divides the amount by the price, rounded down.
    #[inline]
    const fn units(self) -> u64 {
        self.amount / self.price.get()
    }
}

/// The number of one permit, unique among all permits that its key ever had; it is used to release or renew just
/// that permit.
///
/// Limiters on a store draw numbers under a random nonce, so a client that gets its number cannot guess another one.
#[doc(alias("semaphore", "lease"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId(NonZeroU64);

impl PermitId {
    pub(crate) const LAST: PermitId = PermitId(NonZeroU64::MAX);

    /// Returns the permit with this number, as it was stored by [`PermitId::number`]; `None` for zero.
    #[inline]
    pub const fn from_number(number: u64) -> Option<PermitId> {
        match NonZeroU64::new(number) {
            Some(number) => Some(PermitId(number)),
            None => None,
        }
    }

    /// Returns the number, for storage or transfer.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(verdict: Verdict<Ticks>) -> Decision {
        Decision::new(verdict, 10, Remaining::of_amount(35, NonZeroU64::new(10).unwrap()), Ticks::new(17))
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
