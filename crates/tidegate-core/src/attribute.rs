//! Runtime parts of `#[rate_limit]` of `tidegate-macros`, and functions that `tidegate-support` shares with limits;
//! not a public API.
//!
//! The macro sees the tokens, not the types behind them. So its code calls a limiter through one of two traits,
//! with a key or without. If the limiter is of the wrong kind, the compiler prints the message of the trait.

use std::pin::Pin;
use std::sync::{Arc, LazyLock as Lazy};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::ask::ask;
use crate::denied::Denied;
use crate::direct::DirectLimiter;
use crate::key::{IntoKey, KeyPart};
use crate::limit::Limit;
use crate::limiter::Limiter;
use crate::pacer::Pacer;
use crate::permits::{AcquirePermit, Permit, Permits};
use crate::shaper::Shaper;
use crate::wait::{Acquire, block_on};

pub use std::sync::LazyLock;
pub use std::time::Duration as Span;

pub use crate::limit::{TIME_UNITS, distance, parse_span as span};

/// Parses a limit that the macro has already checked at compile time.
///
/// # Panics
/// If the text is not a valid limit.
pub fn limit(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A limiter that is called without a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no limiter that can be asked without a key",
    label = "without `key`, this has to be a limiter of one subject",
    note = "a `Limiter` and `Permits` hold many subjects: add `key = …`",
    note = "a `DirectLimiter`, a `Pacer` and a `Shaper` hold one; a constant `Limit` is given by `limit = …`"
)]
pub trait Keyless {
    /// Takes this many units now, or denies.
    fn admit(&self, units: u64) -> Result<CallPermit, Denied>;

    /// Waits for the units, at most this long.
    fn acquire(&self, units: u64, longest: Duration) -> Turn;
}

/// A limiter that is called with a key.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no limiter that can be asked with a key",
    label = "with `key`, this has to be a limiter of many subjects",
    note = "a `DirectLimiter`, a `Pacer` and a `Shaper` hold one subject: leave `key` out",
    note = "a `Limiter` and `Permits` hold many; a constant `Limit` is given by `limit = …`"
)]
pub trait Keyed {
    /// Takes this many units for a key now, or denies.
    fn admit<K: IntoKey + ?Sized>(&self, key: &K, units: u64) -> Result<CallPermit, Denied>;

    /// Waits for the units, at most this long.
    fn acquire<K: IntoKey + ?Sized>(&self, key: &K, units: u64, longest: Duration) -> Turn;
}

/// Returns one part of a key as a trait object, so that the compiler reports a wrong part once.
pub fn part<P: KeyPart>(part: &P) -> &dyn KeyPart {
    part
}

/// Takes without a key, and does not wait.
pub fn admit<L: Keyless + ?Sized>(limiter: &L, units: u64) -> Result<CallPermit, Denied> {
    limiter.admit(units)
}

/// Takes without a key, and waits.
pub fn acquire<L: Keyless + ?Sized>(limiter: &L, units: u64, longest: Duration) -> Turn {
    limiter.acquire(units, longest)
}

/// Takes with a key, and does not wait.
pub fn admit_key<L, K>(limiter: &L, key: &K, units: u64) -> Result<CallPermit, Denied>
where
    L: Keyed + ?Sized,
    K: IntoKey + ?Sized,
{
    limiter.admit(key, units)
}

/// Takes with a key, and waits.
pub fn acquire_key<L, K>(limiter: &L, key: &K, units: u64, longest: Duration) -> Turn
where
    L: Keyed + ?Sized,
    K: IntoKey + ?Sized,
{
    limiter.acquire(key, units, longest)
}

/// The permit that an admitted call holds while it runs; `Some` only under a concurrency limit.
pub type CallPermit = Option<Permit>;

/// A future that waits for its turn.
///
/// A `Limiter` under a concurrency limit yields a permit, any other limiter only a decision; the macro awaits both.
#[derive(Debug)]
#[must_use = "the wait begins only when this is awaited or blocked on"]
pub enum Turn {
    /// A wait for units.
    Acquire(Acquire),
    /// A wait for a permit.
    Entering(AcquirePermit),
}

impl Turn {
    /// Waits on this thread.
    pub fn blocking(self) -> Result<CallPermit, Denied> {
        block_on(self)
    }
}

impl Future for Turn {
    type Output = Result<CallPermit, Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Turn::Acquire(acquire) => Pin::new(acquire).poll(context).map_ok(|_| None),
            Turn::Entering(entering) => Pin::new(entering).poll(context).map_ok(Some),
        }
    }
}

/// The limiter of a function whose attribute names no key.
#[derive(Clone, Debug)]
pub enum One {
    /// A limit that counts units.
    Counted(DirectLimiter),
    /// A concurrency limit. It needs a [`Limiter`], because a `DirectLimiter` cannot release a permit.
    InFlight(Limiter),
}

impl One {
    /// Creates a limiter of one key under this limit.
    pub fn new(limit: Limit) -> One {
        match limit.algorithm() {
            Algorithm::Concurrency => One::InFlight(Limiter::new(limit)),
            Algorithm::Pacer => One::Counted(DirectLimiter::new(limit).begun()),
            _ => One::Counted(DirectLimiter::new(limit)),
        }
    }
}

impl Keyless for One {
    #[inline]
    fn admit(&self, units: u64) -> Result<CallPermit, Denied> {
        match self {
            One::Counted(single) => Keyless::admit(single, units),
            One::InFlight(limiter) => Keyed::admit(limiter, "", units),
        }
    }

    fn acquire(&self, units: u64, longest: Duration) -> Turn {
        match self {
            One::Counted(single) => Keyless::acquire(single, units, longest),
            One::InFlight(limiter) => Keyed::acquire(limiter, "", units, longest),
        }
    }
}

impl Keyless for DirectLimiter {
    #[inline]
    fn admit(&self, units: u64) -> Result<CallPermit, Denied> {
        self.admit_units(units).into_result().map(|_| None)
    }

    fn acquire(&self, units: u64, longest: Duration) -> Turn {
        Turn::Acquire(self.acquire_units(units).max_wait(longest))
    }
}

impl Keyless for Pacer {
    #[inline]
    fn admit(&self, units: u64) -> Result<CallPermit, Denied> {
        self.admit(units).into_result().map(|_| None)
    }

    fn acquire(&self, units: u64, longest: Duration) -> Turn {
        Turn::Acquire(self.acquire(units).max_wait(longest))
    }
}

/// A shaper has no call that does not wait; a max wait of zero has the same effect.
impl Keyless for Shaper {
    #[inline]
    fn admit(&self, units: u64) -> Result<CallPermit, Denied> {
        self.acquire_units(units).max_wait(Duration::ZERO).blocking().map(|_| None)
    }

    fn acquire(&self, units: u64, longest: Duration) -> Turn {
        Turn::Acquire(self.acquire_units(units).max_wait(longest))
    }
}

/// Under a concurrency limit, the admitted call holds its permit until it ends.
impl Keyed for Limiter {
    fn admit<K: IntoKey + ?Sized>(&self, key: &K, units: u64) -> Result<CallPermit, Denied> {
        let decision = self.admit(ask(By(key)).cost(units)).into_result()?;
        Ok(decision.permit().is_some().then(|| Permit::claimed(self, By(key), decision)))
    }

    fn acquire<K: IntoKey + ?Sized>(&self, key: &K, units: u64, longest: Duration) -> Turn {
        if self.limit().algorithm() == Algorithm::Concurrency {
            return Keyed::acquire(&Permits::over(self.clone()), key, units, longest);
        }
        Turn::Acquire(self.acquire(ask(By(key)).cost(units)).max_wait(longest))
    }
}

impl Keyed for Permits {
    fn admit<K: IntoKey + ?Sized>(&self, key: &K, units: u64) -> Result<CallPermit, Denied> {
        self.admit(ask(By(key)).cost(units)).map(Some)
    }

    fn acquire<K: IntoKey + ?Sized>(&self, key: &K, units: u64, longest: Duration) -> Turn {
        Turn::Entering(self.acquire(ask(By(key)).cost(units)).max_wait(longest))
    }
}

/// Implements both traits for pointers, because a shared limiter is a `static` or is behind an `Arc`.
macro_rules! asked_behind {
    ($($pointer:ty),+) => {$(
        impl<L: Keyless> Keyless for $pointer {
            fn admit(&self, units: u64) -> Result<CallPermit, Denied> {
                (**self).admit(units)
            }

            fn acquire(&self, units: u64, longest: Duration) -> Turn {
                (**self).acquire(units, longest)
            }
        }

        impl<L: Keyed> Keyed for $pointer {
            fn admit<K: IntoKey + ?Sized>(&self, key: &K, units: u64) -> Result<CallPermit, Denied> {
                (**self).admit(key, units)
            }

            fn acquire<K: IntoKey + ?Sized>(&self, key: &K, units: u64, longest: Duration) -> Turn {
                (**self).acquire(key, units, longest)
            }
        }
    )+};
}

asked_behind! { &L, Arc<L>, Lazy<L> }

/// A borrowed key of any type.
/// An ask takes its key by value, and the macro has only a reference.
struct By<'k, K: ?Sized>(&'k K);

impl<K: IntoKey + ?Sized> IntoKey for By<'_, K> {
    #[inline]
    fn each_part(&self, use_part: &mut dyn FnMut(&[u8])) {
        self.0.each_part(use_part);
    }

    #[inline]
    fn only_part(&self) -> Option<&[u8]> {
        self.0.only_part()
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::SECOND;

    #[test]
    fn a_span_is_read_as_in_a_limit() {
        assert_eq!(span("1m30s"), Ok(90 * SECOND));
        assert_eq!(span("0s"), Ok(Duration::ZERO));
        let error = span("1min").expect_err("no unit");
        assert_eq!((error.place(), error.column()), (1..4, 2));
        assert_eq!(error.what(), "unknown unit \"min\"; write something like \"4s\" or \"1m30s\"");
        for nonsense in ["", "s", "5", "1 s", "-1s", "1.5s", "99999999999999999999s", "9999999999999999w"] {
            assert!(span(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_key_is_the_same_behind_any_pointer() {
        let limiter = Limiter::new(Limit::per_hour(1));
        assert!(admit_key(&limiter, "ana", 1).is_ok());
        assert!(!limiter.peek("ana").is_allowed());
        assert!(admit_key(&limiter, &("ana", part(&7_u8)), 1).is_ok());
        assert!(!limiter.peek(("ana", "7")).is_allowed());
        assert!(admit_key(&&limiter, &String::from("ana"), 1).is_err());
    }
}
