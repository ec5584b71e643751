//! The input of a decision: a cost to spend, and the max wait that the caller accepts.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::key::IntoKey;
use crate::time::Ticks;

/// The cost of one request in units, at least 1.
///
/// A cost of zero units has no `Cost`. Handles take it as a number: [`ask(key).cost(0)`](KeyedAsk::cost) is allowed at
/// once, whatever the state of the key, and spends nothing. To read the state of a key without spending, use `peek`,
/// such as [`Limiter::peek`](crate::Limiter::peek).
///
/// A heavy request can weigh more than one unit: rows returned, kilobytes, tokens of a model. The limit is then an
/// amount of these units per period.
#[doc(alias("weight", "tokens", "quantity"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU64);

impl Cost {
    /// The cost of an ordinary request: one unit.
    pub const ONE: Cost = Cost(NonZeroU64::MIN);

    /// Creates a cost from a number known only at run time. Zero is a [`CostError`].
    #[inline]
    pub const fn new(units: u64) -> Result<Cost, CostError> {
        match NonZeroU64::new(units) {
            Some(units) => Ok(Cost(units)),
            None => Err(CostError),
        }
    }

    /// Creates a cost from a literal; in a constant, zero does not compile.
    ///
    /// # Panics
    /// If `units` is zero. For numbers known only at run time, use [`Cost::new`].
    #[inline]
    pub const fn of(units: u64) -> Cost {
        match Cost::new(units) {
            Ok(cost) => cost,
            Err(_) => panic!("a cost is at least 1; to look without spending use peek"),
        }
    }

    /// Returns the number of units.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl Default for Cost {
    #[inline]
    fn default() -> Cost {
        Cost::ONE
    }
}

/// The error of a cost of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CostError;

impl fmt::Display for CostError {
    #[inline]
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("cost 0: a cost is at least 1; to look without spending use peek")
    }
}

impl std::error::Error for CostError {}

/// One ask of a limit.
///
/// Handles with keys take [`ask`] instead, or a key alone.
#[doc(alias("request"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// The cost to spend.
    pub cost: Cost,
    /// The longest delay that the caller accepts.
    pub max_wait: Ticks,
}

impl Ask {
    /// One unit, now or not at all.
    pub const ONE: Ask = Ask::new(Cost::ONE);

    /// Creates an ask of this cost, now or not at all.
    #[inline]
    pub const fn new(cost: Cost) -> Ask {
        Ask { cost, max_wait: Ticks::ZERO }
    }

    /// Sets the longest delay that the caller accepts. An ask that would have to wait longer is denied at once.
    ///
    /// Only algorithms that can promise a later time use it: token-bucket, leaky-bucket and pacer.
    #[must_use]
    #[inline]
    pub const fn max_wait(self, longest: Duration) -> Ask {
        Ask { cost: self.cost, max_wait: Ticks::saturating_from(longest) }
    }

    /// Sets the longest delay that the caller accepts, exact to the tick; see [`Ask::max_wait`].
    ///
    /// ```
    /// use tidegate::{Ask, Cost, SECOND, Ticks};
    ///
    /// let ask = Ask::new(Cost::of(3)).max_wait_in_ticks(Ticks::saturating_from(SECOND));
    /// assert_eq!(ask, Ask::new(Cost::of(3)).max_wait(SECOND));
    /// ```
    #[must_use]
    #[inline]
    pub const fn max_wait_in_ticks(self, longest: Ticks) -> Ask {
        Ask { cost: self.cost, max_wait: longest }
    }

    #[inline]
    pub(crate) const fn units(self) -> u64 {
        self.cost.get()
    }
}

/// A correction after the fact, for a cost that is known only later or that was not used.
#[doc(alias("debit", "credit"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// Spends this much more, whether or not the limit allows it; the debt is capped at `max_debt`.
    Charge(Cost),
    /// Gives this much back, at most the debt.
    Refund(Cost),
}

/// The outcome of an [`Adjustment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjusted {
    /// All of it took effect.
    Whole,
    /// A part took effect: the debt reached `max_debt`, or was smaller than the refund.
    Capped,
    /// Nothing took effect: under a concurrency limit, units go back with their permit, by `release`.
    NeedsPermit,
}

impl Adjusted {
    #[inline]
    pub(crate) const fn whole_if(whole: bool) -> Adjusted {
        if whole { Adjusted::Whole } else { Adjusted::Capped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_of_zero_is_an_error_with_a_remedy() {
        let error = Cost::new(0).unwrap_err();
        assert_eq!(error.to_string(), "cost 0: a cost is at least 1; to look without spending use peek");
        assert_eq!(Cost::new(7), Ok(Cost::of(7)));
        assert_eq!(Cost::default().get(), 1);
    }

    #[test]
    fn a_max_wait_out_of_range_saturates() {
        assert_eq!(Ask::ONE.max_wait(Duration::MAX).max_wait, Ticks::MAX);
        assert_eq!(Ask::default(), Ask::ONE);
        assert_eq!(Ask::new(Cost::of(9)).units(), 9);
    }
}

/// Creates an ask of one key with more than the key: `ask("ana").cost(3)`.
///
/// ```
/// use tidegate::{Limit, Limiter, SECOND, ask};
///
/// let uploads = Limiter::new(Limit::per_minute(100)); // megabytes
/// assert!(uploads.admit(ask("ana").cost(60)).is_allowed());
/// assert!(!uploads.admit(ask("ana").cost(60)).is_allowed());
/// let later = uploads.admit(ask("ana").cost(60).max_wait(60 * SECOND));
/// assert!(later.delay().is_some_and(|delay| !delay.is_zero())); // allowed, after a delay
/// ```
pub const fn ask<K: IntoKey>(key: K) -> KeyedAsk<K> {
    KeyedAsk { key, units: 1, max_wait: None }
}

/// A key with a cost and a max wait; created by [`ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an ask does nothing until a limiter gets it"]
pub struct KeyedAsk<K> {
    key: K,
    units: u64,
    max_wait: Option<Duration>,
}

impl<K> KeyedAsk<K> {
    /// Sets the cost in units; 1 unless set. Here 0 is valid, unlike in a [`Cost`]: it is allowed at once, spends
    /// nothing, and does not wait behind queued waiters.
    pub fn cost(self, units: u64) -> KeyedAsk<K> {
        KeyedAsk { units, ..self }
    }

    /// Sets the longest delay that the caller accepts.
    ///
    /// `admit` then allows with a [`Decision::delay`](crate::Decision::delay), and the caller waits. `acquire` waits
    /// itself, at most this long.
    pub fn max_wait(self, longest: Duration) -> KeyedAsk<K> {
        KeyedAsk { max_wait: Some(longest), ..self }
    }
}

/// The input of a limiter: a key alone, or [`ask`] with a cost and a max wait.
///
/// It is implemented for every key and for [`ask`]; other types need no implementation.
pub trait IntoAsk {
    /// The type of the key.
    type Key: IntoKey;

    /// Returns the key, the cost in units, and the longest accepted delay, if one was set.
    fn into_parts(self) -> (Self::Key, u64, Option<Duration>);
}

impl<K: IntoKey> IntoAsk for K {
    type Key = K;

    #[inline]
    fn into_parts(self) -> (K, u64, Option<Duration>) {
        (self, 1, None)
    }
}

impl<K: IntoKey> IntoAsk for KeyedAsk<K> {
    type Key = K;

    #[inline]
    fn into_parts(self) -> (K, u64, Option<Duration>) {
        (self.key, self.units, self.max_wait)
    }
}

/// Returns the ask of this many units; `None` for 0 units.
#[inline]
pub(crate) fn ask_for(units: u64, max_wait: Option<Duration>) -> Option<Ask> {
    let max_wait = max_wait.map_or(Ticks::ZERO, Ticks::saturating_from);
    Cost::new(units).ok().map(|cost| Ask { cost, max_wait })
}
