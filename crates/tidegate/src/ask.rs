//! What is asked of a limit: a cost to spend, and how long the asker would wait.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::key::IntoKey;
use crate::time::Ticks;

/// How much one request weighs: at least 1. Looking without spending is `peek`, not a cost of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU64);

impl Cost {
    /// The cost of an ordinary request.
    pub const ONE: Cost = Cost(NonZeroU64::MIN);

    /// A cost from a number known only at run time.
    #[inline]
    pub const fn new(units: u64) -> Result<Cost, CostError> {
        match NonZeroU64::new(units) {
            Some(units) => Ok(Cost(units)),
            None => Err(CostError),
        }
    }

    /// A cost from a literal: in a constant, zero does not compile.
    ///
    /// # Panics
    /// If `units` is zero. For numbers from outside use [`Cost::new`].
    #[inline]
    pub const fn of(units: u64) -> Cost {
        match Cost::new(units) {
            Ok(cost) => cost,
            Err(_) => panic!("a cost is at least 1; to look without spending use peek"),
        }
    }

    /// The number of units.
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

/// A cost of zero was given where something is to be spent.
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

/// One question to a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// What is to be spent.
    pub cost: Cost,
    /// The longest delay that the asker accepts.
    pub patience: Ticks,
}

impl Ask {
    /// One unit, now or not at all.
    pub const ONE: Ask = Ask::new(Cost::ONE);

    /// So many units, now or not at all.
    #[inline]
    pub const fn new(cost: Cost) -> Ask {
        Ask { cost, patience: Ticks::ZERO }
    }

    /// The same, but the asker would wait as long as this. A longer wait is a refusal, decided at once.
    ///
    /// Only algorithms that can promise a later time make use of it: token-bucket, leaky-bucket and pacer.
    #[must_use]
    #[inline]
    pub const fn patience(self, longest: Duration) -> Ask {
        Ask { cost: self.cost, patience: Ticks::saturating_from(longest) }
    }

    #[inline]
    pub(crate) const fn units(self) -> u64 {
        self.cost.get()
    }
}

/// A correction after the fact: the real cost is known only now, or what was spent was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// Spend this much more, refused or not: a late charge may go below empty, as far as `max_debt`.
    Charge(Cost),
    /// Give this much back, at most what is owed.
    Refund(Cost),
}

/// What became of an [`Adjustment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjusted {
    /// All of it took effect.
    Whole,
    /// Part of it: the debt reached `max_debt`, or there was less to give back.
    Capped,
    /// Nothing: places in flight go back with their permit, by `release`.
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
    fn a_cost_of_zero_is_refused_with_the_remedy() {
        let error = Cost::new(0).unwrap_err();
        assert_eq!(error.to_string(), "cost 0: a cost is at least 1; to look without spending use peek");
        assert_eq!(Cost::new(7), Ok(Cost::of(7)));
        assert_eq!(Cost::default().get(), 1);
    }

    #[test]
    fn patience_that_cannot_be_counted_is_the_longest_there_is() {
        assert_eq!(Ask::ONE.patience(Duration::MAX).patience, Ticks::MAX);
        assert_eq!(Ask::default(), Ask::ONE);
        assert_eq!(Ask::new(Cost::of(9)).units(), 9);
    }
}

/// An ask of one subject, to say more than its key: `ask("ana").cost(3)`.
pub const fn ask<K: IntoKey>(key: K) -> KeyedAsk<K> {
    KeyedAsk { key, units: 1, patience: None }
}

/// A key with a cost and patience; made by [`ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an ask does nothing until a limiter gets it"]
pub struct KeyedAsk<K> {
    key: K,
    units: u64,
    patience: Option<Duration>,
}

impl<K> KeyedAsk<K> {
    /// How much it weighs. A cost of 0 asks nothing: it is allowed at once, spends nothing, and waits behind nobody.
    pub fn cost(self, units: u64) -> KeyedAsk<K> {
        KeyedAsk { units, ..self }
    }

    /// The longest delay that the asker accepts.
    pub fn patience(self, longest: Duration) -> KeyedAsk<K> {
        KeyedAsk { patience: Some(longest), ..self }
    }
}

/// What can be asked of a limiter: a key alone, or [`ask`] with more.
pub trait IntoAsk {
    /// What names the subject.
    type Key: IntoKey;

    /// The key, how much it weighs, and the longest delay that is accepted, if anything was said about it.
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
        (self.key, self.units, self.patience)
    }
}

/// The ask of so many units; none of 0 units, which ask nothing.
#[inline]
pub(crate) fn ask_for(units: u64, patience: Option<Duration>) -> Option<Ask> {
    let patience = patience.map_or(Ticks::ZERO, Ticks::saturating_from);
    Cost::new(units).ok().map(|cost| Ask { cost, patience })
}
