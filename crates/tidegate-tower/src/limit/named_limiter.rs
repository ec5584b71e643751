//! A limiter with the parts of replies that depend on its limit.
//!
//! Two kinds of limiters are behind it. One state for all requests needs no key and no map. A state for each key is a
//! [`Limiter`], which other code may share and whose limit may be replaced while requests run.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_core::{
    Acquire, Ask, Cost, Decision, DirectLimiter, Key, Limit, Limiter, PermitId, TrackedTake, ask,
};

use super::settle::Settle;
use crate::answer::Promise;
use crate::body::Held;
use crate::event::{DecisionEvent, DecisionResult};
use crate::head::Head;
use crate::key::Parts;

/// A limiter with the parts of replies that depend on its limit.
pub(super) struct NamedLimiter {
    counter: LimiterStates,
    promise: Promise,
    /// The parts of replies for a limit that replaced the first one; made when it first decides.
    replaced: Mutex<Option<Replaced>>,
}

/// The states of a limiter.
#[derive(Clone)]
pub(super) enum LimiterStates {
    /// One state for all requests.
    Shared(DirectLimiter),
    /// A state for each key.
    PerKey(Limiter),
}

/// A limit that replaced the first one, with the parts of replies that depend on it.
type Replaced = (Limit, Arc<Promise>);

impl NamedLimiter {
    /// Formats the parts of replies once; `name` is made valid in header fields.
    pub(super) fn new(counter: LimiterStates, name: &str) -> NamedLimiter {
        let promise = Promise::new(name, &counter.limit());
        NamedLimiter { counter, promise, replaced: Mutex::default() }
    }

    /// Returns the same limiter under another name; both count together.
    pub(super) fn named(&self, name: &str) -> NamedLimiter {
        NamedLimiter::new(self.counter.clone(), name)
    }

    /// Returns the limit in force, which other code may have replaced.
    pub(super) fn limit(&self) -> Limit {
        self.counter.limit()
    }

    /// Returns the event of a request that this limiter has allowed.
    pub(super) fn event<'a>(
        &'a self,
        head: Head<'a>,
        decision: &Decision,
        result: DecisionResult,
    ) -> DecisionEvent<'a> {
        let (limit, remaining) = (Some(self.promise.name()), Some(decision.remaining()));
        DecisionEvent { limit, remaining, ..DecisionEvent::allowed(head, result) }
    }

    /// Returns true if all requests share one state, so that none needs a key.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.counter, LimiterStates::Shared(_))
    }

    /// Decides about a request of this cost, without a receipt.
    #[inline]
    pub(super) fn admit(&self, key: &Parts<'_>, cost: u64) -> Decision {
        match &self.counter {
            LimiterStates::Shared(single) => single.admit_with(one_ask(cost)),
            LimiterStates::PerKey(limiter) => limiter.admit(ask(key.written()).cost(cost)),
        }
    }

    /// Decides like `admit`, with a receipt that a response may refund.
    pub(super) fn admit_tracked(&self, key: &Parts<'_>, cost: u64) -> (Decision, Option<TrackedTake>) {
        match &self.counter {
            LimiterStates::Shared(single) => single.admit_tracked(one_ask(cost)),
            LimiterStates::PerKey(limiter) => limiter.admit_tracked(ask(key).cost(cost)),
        }
    }

    /// Returns a request for a turn in the queue of this key.
    pub(super) fn acquire(&self, key: &Parts<'_>, cost: u64) -> Acquire {
        match &self.counter {
            LimiterStates::Shared(single) => single.acquire_units(cost),
            LimiterStates::PerKey(limiter) => limiter.acquire(ask(key).cost(cost)),
        }
    }

    /// Returns a guard of the permit that a decision gave; dropping it releases the permit.
    pub(super) fn hold(&self, key: &Key, decision: &Decision) -> Option<Held> {
        let LimiterStates::PerKey(limiter) = &self.counter else { return None };
        let permit = decision.permit()?;
        Some(Box::new(HeldPermit { limiter: limiter.clone(), key: key.clone(), permit }))
    }

    /// Corrects the cost of a take, and returns the decision about a request after that.
    pub(super) fn settle(&self, key: &Key, settle: Settle, take: Option<TrackedTake>) -> Decision {
        match (settle, take) {
            (Settle::Refund, Some(take)) => drop(take.refund()),
            (Settle::RefundUnits(units), Some(mut take)) => drop(take.refund_units(units)),
            (Settle::Charge(units), _) => self.charge(key, units),
            (Settle::Keep, _) | (Settle::Refund | Settle::RefundUnits(_), None) => {}
        }
        match &self.counter {
            LimiterStates::Shared(single) => single.peek(),
            LimiterStates::PerKey(limiter) => limiter.peek(key),
        }
    }

    /// Spends units in addition, even beyond the limit, as far as its `max_debt` allows.
    fn charge(&self, key: &Key, units: u64) {
        match &self.counter {
            LimiterStates::Shared(single) => single.charge(units),
            LimiterStates::PerKey(limiter) => limiter.charge(ask(key).cost(units)),
        };
    }

    /// Passes on the parts of replies that depend on the limit in force.
    #[inline]
    pub(super) fn with_promise<T>(&self, use_it: impl FnOnce(&Promise) -> T) -> T {
        let replaced = match &self.counter {
            LimiterStates::Shared(_) => None,
            LimiterStates::PerKey(limiter) => limiter.replaced_limit(),
        };
        match replaced {
            None => use_it(&self.promise),
            Some(limit) => use_it(&self.promise_of(limit)),
        }
    }

    /// Returns the parts of replies that depend on a limit that replaced the first one.
    fn promise_of(&self, limit: Limit) -> Arc<Promise> {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        match &*replaced {
            Some((known, promise)) if *known == limit => Arc::clone(promise),
            _ => {
                let promise = Arc::new(Promise::new(self.promise.name(), &limit));
                Arc::clone(&replaced.insert((limit, promise)).1)
            }
        }
    }
}

impl LimiterStates {
    fn limit(&self) -> Limit {
        match self {
            LimiterStates::Shared(single) => single.limit(),
            LimiterStates::PerKey(limiter) => limiter.limit(),
        }
    }
}

/// A permit of a limiter, released when this is dropped.
struct HeldPermit {
    limiter: Limiter,
    key: Key,
    permit: PermitId,
}

impl Drop for HeldPermit {
    fn drop(&mut self) {
        self.limiter.release(&self.key, self.permit);
    }
}

#[inline]
fn one_ask(cost: u64) -> Ask {
    Ask::new(Cost::new(cost).unwrap_or_default())
}
