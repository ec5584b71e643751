//! A limiter for one key, the fastest path: no key, no map.
//!
//! The state of the first limit, if it fits in one word, is updated by compare-and-swap. All other states are
//! behind a lock. After the limit was replaced, the first state is there, too, because a state belongs to one limit
//! and the lock names that limit.

mod builder;
mod states;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::algorithm::{Decide, State};
use crate::ask::{Adjusted, Adjustment, Ask, Cost, ask_for};
use crate::decision::Decision;
use crate::limit::{AlgorithmParams, Limit};
use crate::store::receipts::Receipts;
use crate::store::state_key::{EncodedKey, Namespace, StateKey};
use crate::store::{OpenReceipt, nonce_for};
use crate::sync::{AtomicU64, CachePadded, Mutex, MutexGuard, Ordering};
use crate::time::{Clock, CounterClock, Source, Timestamp};
use crate::trace;
use crate::wait::{
    Acquire, KeyFifo, KeyRequest, MAX_WAITERS, TrackedTake, Untracked, WaitQueue, WaitTarget, WaiterAsk,
};
pub use builder::DirectLimiterBuilder;
use states::States;

/// One limit for one key; clones share its state.
///
/// ```
/// use tidegate::{Limit, DirectLimiter};
///
/// let limiter = DirectLimiter::new(Limit::per_second(10).burst(2));
/// assert!(limiter.admit().is_allowed());
/// assert!(limiter.admit().is_allowed());
/// assert!(!limiter.admit().is_allowed());
/// ```
///
/// Use it for a limit of a whole process, such as calls to one upstream. For one limit per user or address, use
/// [`Limiter`](crate::Limiter). Under a token bucket or a leaky bucket, a decision is one compare-and-swap: no hash, no
/// lock, no allocation.
#[doc(alias("rate limiter", "throttle", "GCRA", "token bucket", "leaky bucket as a meter", "governor"))]
#[derive(Clone)]
pub struct DirectLimiter {
    inner: Arc<Inner>,
}

struct Inner {
    /// The first limit.
    first: AlgorithmParams,
    /// The state of the first limit if it fits in one word, else [`MOVED`].
    word: CachePadded<AtomicU64>,
    states: Mutex<States>,
    clock: Source,
    queue: WaitQueue<KeyFifo>,
    receipts: Receipts,
}

/// The word of a state that is behind the lock. A state whose word has this value moves there, too.
const MOVED: u64 = u64::MAX;

impl DirectLimiter {
    /// Creates a limiter of one key.
    pub fn new(limit: Limit) -> DirectLimiter {
        DirectLimiter::of(limit, Source::default())
    }

    /// Creates a limiter of one key that reads another clock.
    ///
    /// With a [`ManualClock`](crate::ManualClock), time moves only when a test advances it:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidegate::{DirectLimiter, Limit, ManualClock, SECOND};
    ///
    /// let clock = Arc::new(ManualClock::new());
    /// let limiter = DirectLimiter::with_clock(Limit::per_second(1), clock.clone());
    /// assert!(limiter.admit().is_allowed() && !limiter.admit().is_allowed());
    /// clock.advance(SECOND);
    /// assert!(limiter.admit().is_allowed());
    /// ```
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> DirectLimiter {
        DirectLimiter::of(limit, Source::Given(clock))
    }

    /// Sets the largest number of waiters at a time, for this limiter and all its clones. The default is 65,536.
    ///
    /// An `acquire` that finds the queue full is denied at once; `Denied::is_queue_full` is then true.
    #[doc(alias("backpressure", "load shedding"))]
    pub fn set_max_waiters(&self, most: usize) {
        self.inner.queue.lock(|state| state.set_max_waiters(most));
    }

    /// Creates a limiter. The word is in use only if the first limit has a one-word state.
    fn of(limit: Limit, clock: Source) -> DirectLimiter {
        let first = *limit.terms();
        let has_moved = !is_one_word(&first);
        let inner = Inner {
            first,
            word: CachePadded(AtomicU64::new(if has_moved { MOVED } else { 0 })),
            states: Mutex::new(States::new(limit, has_moved)),
            clock,
            queue: WaitQueue::new(KeyFifo, MAX_WAITERS),
            receipts: Receipts::of_one(),
        };
        DirectLimiter { inner: Arc::new(inner) }
    }

    /// Returns the limiter with a state that starts now: a pacer has no saved permits.
    pub(crate) fn begun(self) -> DirectLimiter {
        self.inner.touch(None, None, |terms, state, now| *state = terms.state_begun_at(now));
        self
    }

    /// Returns the limit in force.
    pub fn limit(&self) -> Limit {
        self.inner.states.lock().limit()
    }

    /// Decides about one unit, and spends it if allowed.
    ///
    /// While waiters are queued ([`DirectLimiter::acquire`]), the ask is denied, so that it cannot overtake them.
    #[must_use = "a decision that is not read limits nothing"]
    #[inline]
    pub fn admit(&self) -> Decision {
        self.admit_with(Ask::ONE)
    }

    /// Decides about an ask, and spends if allowed; see [`DirectLimiter::admit`].
    ///
    /// An ask with a max wait can be allowed with a [`Decision::delay`]. The units are then reserved, and the caller
    /// waits itself. [`DirectLimiter::acquire`] waits in FIFO order instead.
    #[must_use = "a decision that is not read limits nothing"]
    #[inline]
    pub fn admit_with(&self, ask: Ask) -> Decision {
        trace::decided("", || match self.inner.queue.is_empty() {
            true => self.inner.spend(ask),
            false => self.admit_behind(ask),
        })
    }

    /// Decides about this many units, and spends them if allowed.
    #[inline]
    pub(crate) fn admit_units(&self, units: u64) -> Decision {
        ask_for(units, None).map_or_else(|| self.peek().asking_nothing(), |ask| self.admit_with(ask))
    }

    /// Decides like [`DirectLimiter::admit_with`]. If allowed, it also returns a [`TrackedTake`], which refunds exactly
    /// that take.
    ///
    /// Use it where the cost may be returned, for example if the call behind the limit fails. It takes a lock, which
    /// `admit` does not.
    #[doc(alias("idempotent refund", "reservation"))]
    pub fn admit_tracked(&self, ask: Ask) -> (Decision, Option<TrackedTake>) {
        if let Some(decision) = self.inner.put_off(ask) {
            trace::observed("", &decision);
            return (decision, None);
        }
        let account = self.inner.account(&only_key());
        let asked = WaiterAsk { ask, is_tracked: true };
        let (decision, receipt) = self.inner.take(&account, asked, None, AlgorithmParams::decide);
        let take = decision.is_allowed().then(|| TrackedTake::new(self.target(), account, receipt));
        trace::observed("", &decision);
        (decision, take)
    }

    /// Decides again while waiters are queued: they may all have left meanwhile.
    #[cold]
    fn admit_behind(&self, ask: Ask) -> Decision {
        self.inner.put_off(ask).unwrap_or_else(|| self.inner.spend_by_any(ask))
    }

    /// Returns the decision that [`DirectLimiter::admit`] would return, without spending.
    ///
    /// Another caller may spend between a peek and an admit, so a peek is for display and metrics.
    #[must_use = "a decision that is not read limits nothing"]
    pub fn peek(&self) -> Decision {
        self.peek_with(Ask::ONE)
    }

    /// Returns the decision that [`DirectLimiter::admit_with`] would return, without spending.
    #[must_use = "a decision that is not read limits nothing"]
    pub fn peek_with(&self, ask: Ask) -> Decision {
        self.inner.put_off(ask).unwrap_or_else(|| self.inner.peek(ask))
    }

    /// Gives unused units back, at most the debt.
    ///
    /// Returns [`Adjusted::Capped`] if the debt was smaller. Waiters are served at once. A refund of 0 units has no
    /// effect.
    pub fn refund(&self, units: u64) -> Adjusted {
        self.adjust(units, Adjustment::Refund)
    }

    /// Charges units after the fact, whether or not the limit allows them, up to the limit's `max_debt`.
    ///
    /// For a cost that is known only afterwards, such as the bytes of a response. Later asks wait until the debt is
    /// repaid. Returns [`Adjusted::Capped`] if the debt reached its bound.
    #[doc(alias("debit", "post-paid"))]
    pub fn charge(&self, units: u64) -> Adjusted {
        self.adjust(units, Adjustment::Charge)
    }

    /// Adjusts the state of the limit in force, and then serves the waiters.
    fn adjust(&self, units: u64, adjustment: impl FnOnce(Cost) -> Adjustment) -> Adjusted {
        let Ok(cost) = Cost::new(units) else { return Adjusted::Whole };
        let adjustment = adjustment(cost);
        let adjust =
            || self.inner.touch(None, None, |terms, state, now| terms.adjust(state, now, adjustment));
        let adjusted = match adjustment {
            Adjustment::Charge(_) => adjust(),
            Adjustment::Refund(_) => self.inner.receipts.without(&self.inner.account(&only_key()), adjust),
        };
        self.inner.queue.serve_key(&self.target(), &only_key());
        adjusted
    }

    /// Removes the state: the limiter is full again.
    ///
    /// Takes made before it can no longer be refunded. Waiters stay queued, and are served from the full state.
    pub fn reset(&self) {
        let mut receipts = self.inner.receipts.lock(0, &[]);
        receipts.forget_all();
        let mut states = self.inner.states.lock();
        states.forget_all();
        if !states.has_moved {
            self.inner.word.0.store(0, Ordering::Release);
        }
        drop(states);
        drop(receipts);
        self.inner.queue.begin_anew(&self.target(), &only_key());
    }

    /// Replaces the limit; used units stay used.
    ///
    /// Every ask is decided under either the old limit or the new one. Waiters are decided again under the new one. A
    /// limit that comes back continues with its own state while that state is live.
    #[doc(alias("reload", "dynamic limit"))]
    pub fn set_limit(&self, limit: Limit) {
        let Ok(()) = self.change_limit(|_| Ok::<_, Infallible>(limit));
    }

    /// Replaces the limit by a function of the current one, in one step; a failure leaves it in force.
    pub(crate) fn change_limit<E>(&self, change: impl FnOnce(Limit) -> Result<Limit, E>) -> Result<(), E> {
        self.inner.queue.replace_limit(&self.target(), || self.inner.replace_limit(change))
    }

    /// Waits until one unit is allowed. The future runs on any runtime; it can also block a thread.
    ///
    /// Waiters pass in FIFO order. A dropped future leaves the queue and spends nothing.
    ///
    /// ```
    /// use tidegate::{DirectLimiter, Limit, SECOND};
    ///
    /// let limiter = DirectLimiter::new(Limit::per_second(100).burst(1));
    /// limiter.acquire().blocking()?; // or `.await`, on any runtime
    /// let second = limiter.acquire().max_wait(SECOND).blocking()?;
    /// assert!(second.decision.is_allowed()); // about 10 ms later
    /// # Ok::<(), tidegate::Denied>(())
    /// ```
    pub fn acquire(&self) -> Acquire {
        self.acquire_units(1)
    }

    /// Waits until this many units are allowed together.
    pub fn acquire_units(&self, units: u64) -> Acquire {
        Acquire::new(KeyRequest::new(self.target(), only_key(), ask_for(units, None), Untracked), None)
    }

    fn target(&self) -> Arc<dyn WaitTarget> {
        self.inner.clone()
    }
}

/// Returns the only key of a queue that has just one.
fn only_key() -> EncodedKey {
    EncodedKey::new(&Namespace::none(), "")
}

/// Returns true for the limits whose state is updated by compare-and-swap.
fn is_one_word(terms: &AlgorithmParams) -> bool {
    matches!(terms, AlgorithmParams::TokenBucket(_) | AlgorithmParams::LeakyBucket(_))
}

impl Inner {
    /// Spends, with a fast path for a token bucket on the process clock. The fast path is small and always inlined,
    /// so the caller computes only those figures of the decision that it reads. The other cases are large, and
    /// would prevent the inlining.
    #[inline(always)]
    fn spend(&self, ask: Ask) -> Decision {
        if let (AlgorithmParams::TokenBucket(bucket), Source::Process) = (&self.first, &self.clock) {
            let now = || CounterClock::new().now();
            if let Some(decision) = exchange(&self.word.0, now, |state, now| bucket.decide(state, now, ask)) {
                return decision;
            }
        }
        self.spend_by_any(ask)
    }

    /// Spends under any limit and any clock.
    #[inline(never)]
    fn spend_by_any(&self, ask: Ask) -> Decision {
        self.touch(None, None, |terms, state, now| terms.decide(state, now, ask, nonce_for(terms)))
    }

    /// Locks the states, after the state of the first limit was moved there.
    fn moved(&self) -> MutexGuard<'_, States> {
        let mut states = self.states.lock();
        if !states.has_moved {
            let word = self.word.0.swap(MOVED, Ordering::AcqRel);
            states.begin_with(self.first.state_of(Timestamp::from_ticks(word)));
        }
        states
    }

    /// Replaces the limit. Used units are carried over as of now.
    fn replace_limit<E>(&self, change: impl FnOnce(Limit) -> Result<Limit, E>) -> Result<(), E> {
        let mut receipts = self.receipts.lock(0, &[]);
        let mut states = self.moved();
        let limit = change(states.limit())?;
        if states.replace(limit, self.clock.now()) {
            receipts.forget_every_order();
        }
        Ok(())
    }

    /// Takes as `decide` decides, with a receipt. A tracked take runs under the lock of the open receipts.
    fn take(
        &self,
        account: &StateKey,
        WaiterAsk { ask, is_tracked }: WaiterAsk,
        at: Option<Timestamp>,
        decide: impl Fn(&AlgorithmParams, &mut State, Timestamp, Ask, u64) -> Decision,
    ) -> (Decision, Option<OpenReceipt>) {
        let take = || {
            self.touch(Some(account.terms()), at, |terms, state, now| {
                let decision = decide(terms, state, now, ask, nonce_for(terms));
                (decision, terms.receipt(state, now, ask, &decision))
            })
        };
        let now = || self.clock.now();
        match is_tracked {
            true => self.receipts.tracking(account, now, take),
            false => self.receipts.noting(account, now, take),
        }
    }

    /// Returns the denial of an ask because waiters are queued; `None` if there are none.
    fn put_off(&self, ask: Ask) -> Option<Decision> {
        if self.queue.is_empty() {
            return None;
        }
        let wait = self.queue.wait_behind(self, &only_key(), ask)?;
        Some(self.peek(ask).denied_for(wait))
    }

    /// Decides without spending, and without regard to waiters.
    fn peek(&self, ask: Ask) -> Decision {
        self.touch(None, None, |terms, state, now| terms.peek(state, now, ask))
    }

    /// Changes a state, now or as of the given time. It is the state of the account's limit, which may have been
    /// replaced since. Without an account, or if that state is no longer kept, it is the state of the limit in
    /// force.
    fn touch<R>(
        &self,
        account: Option<&AlgorithmParams>,
        at: Option<Timestamp>,
        mut change: impl FnMut(&AlgorithmParams, &mut State, Timestamp) -> R,
    ) -> R {
        let now = || at.unwrap_or_else(|| self.clock.now());
        if is_one_word(&self.first) {
            // While the state is in the word, no limit but the first was ever in force.
            let changed = exchange(&self.word.0, now, |clear_at, now| {
                let mut state = self.first.state_of(*clear_at);
                let answer = change(&self.first, &mut state, now);
                *clear_at = self.first.clear_at(&state);
                answer
            });
            if let Some(answer) = changed {
                return answer;
            }
        }
        let mut states = self.moved();
        let now = now();
        let (terms, state) = match account {
            Some(terms) if states.knows(terms) => states.of(terms),
            _ => states.in_force(),
        };
        change(&terms, state, now)
    }

    /// Changes the state of the limit of a take, for a refund; `None` if that state is no longer kept.
    fn touch_taken<R>(
        &self,
        terms: &AlgorithmParams,
        change: impl FnMut(&AlgorithmParams, &mut State, Timestamp) -> R,
    ) -> Option<R> {
        let is_kept = self.word.0.load(Ordering::Acquire) != MOVED || self.states.lock().knows(terms);
        is_kept.then(|| self.touch(Some(terms), None, change))
    }
}

/// Updates a word by compare-and-swap, and retries until no other thread interferes; `None` if the state has moved.
/// The clock is read after the word, and again at each retry, so that the state never sees time go back.
#[inline(always)]
fn exchange<R>(
    word: &AtomicU64,
    now: impl Fn() -> Timestamp,
    mut change: impl FnMut(&mut Timestamp, Timestamp) -> R,
) -> Option<R> {
    let mut seen = word.load(Ordering::Acquire);
    loop {
        if seen == MOVED {
            return None;
        }
        let mut state = Timestamp::from_ticks(seen);
        let answer = change(&mut state, now());
        if state.ticks() == seen {
            return Some(answer);
        }
        match word.compare_exchange_weak(seen, state.ticks(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(answer),
            Err(other) => seen = other,
        }
    }
}

impl WaitTarget for Inner {
    fn queue(&self) -> &WaitQueue<KeyFifo> {
        &self.queue
    }

    fn clock(&self) -> &Source {
        &self.clock
    }

    fn account(&self, name: &EncodedKey) -> StateKey {
        let is_first = self.word.0.load(Ordering::Acquire) != MOVED;
        let terms = if is_first { self.first } else { *self.states.lock().limit().terms() };
        name.clone().under_any(terms)
    }

    fn take_if_free(&self, account: &StateKey, ask: Ask) -> Decision {
        self.touch(Some(account.terms()), None, |terms, state, now| {
            terms.decide_if_free(state, now, ask, nonce_for(terms))
        })
    }

    fn take_for_waiter(
        &self,
        account: &StateKey,
        asked: WaiterAsk,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        self.take(account, asked, at, AlgorithmParams::decide_if_free)
    }

    fn refund(&self, account: &StateKey, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted {
        let terms = account.terms();
        receipt.settle(
            terms,
            cost,
            || self.clock.now(),
            |receipt| {
                let give_back = |terms: &AlgorithmParams, state: &mut State, now| {
                    terms.give_back(state, now, receipt.copy())
                };
                self.touch_taken(terms, give_back).unwrap_or(Adjusted::Capped)
            },
            |claim, units| {
                let take_off = |terms: &AlgorithmParams, state: &mut State, now| {
                    terms.take_off(state, now, &claim, units)
                };
                self.touch_taken(terms, take_off).flatten()
            },
        )
    }

    fn look(&self, account: &StateKey, ask: Ask) -> Decision {
        self.touch(Some(account.terms()), None, |terms, state, now| terms.peek(state, now, ask))
    }

    fn state(&self, account: &StateKey) -> State {
        self.touch(Some(account.terms()), None, |_, state, _| state.clone())
    }
}

impl fmt::Debug for DirectLimiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DirectLimiter").field("limit", &self.limit()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Threads meet in the word by chance. Here they do so on every machine.
    #[test]
    fn a_change_during_another_one_is_counted() {
        let (word, was_changed) = (AtomicU64::new(0), Cell::new(false));
        let now = || {
            if !was_changed.replace(true) {
                word.fetch_add(5, Ordering::AcqRel);
            }
            Timestamp::EPOCH
        };
        let changed = exchange(&word, now, |state, _| *state = Timestamp::from_ticks(state.ticks() + 1));
        assert_eq!((changed, word.load(Ordering::Acquire)), (Some(()), 6));
    }
}
