//! How a program asks: a key, or a key with what else there is to say.

use std::time::Duration;

use crate::ask::{Ask, Cost};
use crate::key::IntoKey;
use crate::time::Ticks;

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
