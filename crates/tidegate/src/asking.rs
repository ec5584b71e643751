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
    /// How much it weighs. An action weighs at least 1: for admitting and acquiring, 0 counts as 1; charging
    /// or refunding 0 does nothing.
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

/// So many units, of which an action weighs at least one.
#[inline]
pub(crate) fn ask_for(units: u64, patience: Option<Duration>) -> Ask {
    let patience = patience.map_or(Ticks::ZERO, Ticks::saturating_from);
    Ask { cost: Cost::new(units).unwrap_or(Cost::ONE), patience }
}
