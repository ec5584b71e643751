//! One subject, the hottest path: no key, no map.
//!
//! The state of the first limit, if it is one word, is exchanged atomically. Other states are behind a lock, and so is
//! every state once the limit was replaced: a state belongs to one limit, and the lock names that limit.

mod states;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::algorithm::{Decide, State};
use crate::ask::{Adjusted, Adjustment, Ask, Cost, ask_for};
use crate::decision::Decision;
use crate::limit::{Limit, Terms};
use crate::store::name::{Account, Name, Namespace};
use crate::store::receipts::Receipts;
use crate::store::{OpenReceipt, nonce_for};
use crate::sync::{Apart, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::time::{Clock, CounterClock, Source, Timestamp};
use crate::wait::{
    Acquire, KeyFifo, KeyRequest, MAX_WAITERS, TrackedTake, Untracked, WaitQueue, WaitTarget, WaiterAsk,
};
use states::States;

/// One limit for one subject; clones share it.
///
/// ```
/// use tidegate::{Limit, Single};
///
/// let single = Single::new(Limit::per_second(10).burst(2));
/// assert!(single.admit().is_allowed());
/// assert!(single.admit().is_allowed());
/// assert!(!single.admit().is_allowed());
/// ```
#[derive(Clone)]
pub struct Single {
    inner: Arc<Inner>,
}

struct Inner {
    /// The limit that it began with.
    first: Terms,
    /// The state of the first limit if it is one word, else [`MOVED`].
    word: Apart<AtomicU64>,
    states: Mutex<States>,
    clock: Source,
    queue: WaitQueue<KeyFifo>,
    receipts: Receipts,
}

/// The word of a state that is behind the lock. A state that happens to be this word moves there, too.
const MOVED: u64 = u64::MAX;

impl Single {
    /// A limiter of one subject.
    pub fn new(limit: Limit) -> Single {
        Single::build(limit, Source::default())
    }

    /// A limiter of one subject that decides by another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Single {
        Single::build(limit, Source::Given(clock))
    }

    /// Lets at most so many wait at a time, here and in all clones; 65,536 unless set.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Single {
        self.inner.queue.lock(|state| state.set_max_waiters(most));
        self
    }

    fn build(limit: Limit, clock: Source) -> Single {
        let first = *limit.terms();
        let has_moved = !is_one_word(&first);
        let inner = Inner {
            first,
            word: Apart(AtomicU64::new(if has_moved { MOVED } else { 0 })),
            states: Mutex::new(States::new(limit, has_moved)),
            clock,
            queue: WaitQueue::new(KeyFifo, MAX_WAITERS),
            receipts: Receipts::of_one(),
        };
        Single { inner: Arc::new(inner) }
    }

    /// The same, as of now: a pacer has nothing saved.
    pub(crate) fn begun(self) -> Single {
        self.inner.touch(None, None, |terms, state, now| *state = terms.state_begun_at(now));
        self
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.inner.states.lock().limit()
    }

    /// Decides about one unit, and spends it if allowed.
    #[must_use = "a decision that nobody reads limits nobody"]
    #[inline]
    pub fn admit(&self) -> Decision {
        self.admit_with(Ask::ONE)
    }

    /// Decides about an ask, and spends if allowed.
    #[must_use = "a decision that nobody reads limits nobody"]
    #[inline]
    pub fn admit_with(&self, ask: Ask) -> Decision {
        if self.inner.queue.is_empty() { self.inner.spend(ask) } else { self.admit_behind(ask) }
    }

    /// Decides about so many units, and spends them if allowed.
    #[inline]
    pub(crate) fn admit_units(&self, units: u64) -> Decision {
        ask_for(units, None).map_or_else(|| self.peek().asking_nothing(), |ask| self.admit_with(ask))
    }

    /// Decides like [`Single::admit_with`]; with the take, if it was allowed, by which just that take can be refunded.
    pub fn admit_tracked(&self, ask: Ask) -> (Decision, Option<TrackedTake>) {
        if let Some(decision) = self.inner.put_off(ask) {
            return (decision, None);
        }
        let account = self.inner.account(&nobody());
        let asked = WaiterAsk { ask, is_tracked: true };
        let (decision, receipt) = self.inner.take(&account, asked, None, Terms::decide);
        let take = decision.is_allowed().then(|| TrackedTake::new(self.target(), account, receipt));
        (decision, take)
    }

    #[cold]
    fn admit_behind(&self, ask: Ask) -> Decision {
        self.inner.put_off(ask).unwrap_or_else(|| self.inner.spend_by_any(ask))
    }

    /// What [`Single::admit`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek(&self) -> Decision {
        self.peek_with(Ask::ONE)
    }

    /// What [`Single::admit_with`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek_with(&self, ask: Ask) -> Decision {
        self.inner.put_off(ask).unwrap_or_else(|| self.inner.peek(ask))
    }

    /// Gives back what was not used, at most what is owed.
    pub fn refund(&self, units: u64) -> Adjusted {
        self.adjust(units, Adjustment::Refund)
    }

    /// Charges what turned out to be more, allowed or not, as far as the limit's `max_debt`.
    pub fn charge(&self, units: u64) -> Adjusted {
        self.adjust(units, Adjustment::Charge)
    }

    fn adjust(&self, units: u64, adjustment: impl FnOnce(Cost) -> Adjustment) -> Adjusted {
        let Ok(cost) = Cost::new(units) else { return Adjusted::Whole };
        let adjustment = adjustment(cost);
        let adjust =
            || self.inner.touch(None, None, |terms, state, now| terms.adjust(state, now, adjustment));
        let adjusted = match adjustment {
            Adjustment::Charge(_) => adjust(),
            Adjustment::Refund(_) => self.inner.receipts.without(&self.inner.account(&nobody()), adjust),
        };
        self.inner.queue.serve_key(&self.target(), &nobody());
        adjusted
    }

    /// Forgets everything.
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
        self.inner.queue.begin_anew(&self.target(), &nobody());
    }

    /// Puts another limit in force; what was used stays used, in units.
    pub fn set_limit(&self, limit: Limit) {
        let Ok(()) = self.change_limit(|_| Ok::<_, Infallible>(limit));
    }

    pub(crate) fn change_limit<E>(&self, change: impl FnOnce(Limit) -> Result<Limit, E>) -> Result<(), E> {
        self.inner.queue.replace_limit(&self.target(), || self.inner.replace_limit(change))
    }

    /// Waits until one unit passes; to be awaited on any runtime, or to block a thread with.
    pub fn acquire(&self) -> Acquire {
        self.acquire_units(1)
    }

    /// Waits until so many units pass together.
    pub fn acquire_units(&self, units: u64) -> Acquire {
        Acquire::new(KeyRequest::new(self.target(), nobody(), ask_for(units, None), Untracked), None)
    }

    fn target(&self) -> Arc<dyn WaitTarget> {
        self.inner.clone()
    }
}

/// The only name in a queue for one key.
fn nobody() -> Name {
    Name::new(&Namespace::none(), "")
}

/// Returns true for the limits whose state is exchanged atomically.
fn is_one_word(terms: &Terms) -> bool {
    matches!(terms, Terms::TokenBucket(_) | Terms::LeakyBucket(_))
}

impl Inner {
    /// The common case is small, and always a part of the caller: there, nothing is computed of an answer but what
    /// the caller reads. What decides about the other cases is large, and would keep this from being inlined.
    #[inline(always)]
    fn spend(&self, ask: Ask) -> Decision {
        if let (Terms::TokenBucket(bucket), Source::Process) = (&self.first, &self.clock) {
            let now = || CounterClock::new().now();
            if let Some(decision) = exchange(&self.word.0, now, |state, now| bucket.decide(state, now, ask)) {
                return decision;
            }
        }
        self.spend_by_any(ask)
    }

    #[inline(never)]
    fn spend_by_any(&self, ask: Ask) -> Decision {
        self.touch(None, None, |terms, state, now| terms.decide(state, now, ask, nonce_for(terms)))
    }

    /// Locks the states, that of the first limit among them.
    fn moved(&self) -> MutexGuard<'_, States> {
        let mut states = self.states.lock();
        if !states.has_moved {
            let word = self.word.0.swap(MOVED, Ordering::AcqRel);
            states.begin_with(self.first.state_of(Timestamp::from_ticks(word)));
        }
        states
    }

    /// Puts another limit in force. What was used is carried over in units, as of now.
    fn replace_limit<E>(&self, change: impl FnOnce(Limit) -> Result<Limit, E>) -> Result<(), E> {
        let mut receipts = self.receipts.lock(0, &[]);
        let mut states = self.moved();
        let limit = change(states.limit())?;
        if states.replace(limit, self.clock.now()) {
            receipts.forget_every_order();
        }
        Ok(())
    }

    /// Takes as `decide` says, with a receipt; if the take is tracked, under the lock of the open receipts.
    fn take(
        &self,
        account: &Account,
        WaiterAsk { ask, is_tracked }: WaiterAsk,
        at: Option<Timestamp>,
        decide: impl Fn(&Terms, &mut State, Timestamp, Ask, u64) -> Decision,
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

    /// The denial of an ask that comes while others wait.
    fn put_off(&self, ask: Ask) -> Option<Decision> {
        if self.queue.is_empty() {
            return None;
        }
        let wait = self.queue.wait_behind(self, &nobody(), ask)?;
        Some(self.peek(ask).put_off(wait))
    }

    fn peek(&self, ask: Ask) -> Decision {
        self.touch(None, None, |terms, state, now| terms.peek(state, now, ask))
    }

    /// Changes a state, now or as of the given time: that of the limit of an account, which may have been replaced since,
    /// or that of the limit in force if there is none or that was long ago.
    fn touch<R>(
        &self,
        account: Option<&Terms>,
        at: Option<Timestamp>,
        mut change: impl FnMut(&Terms, &mut State, Timestamp) -> R,
    ) -> R {
        let now = || at.unwrap_or_else(|| self.clock.now());
        if is_one_word(&self.first) {
            // As long as the state is here, no limit but the first was ever in force.
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

    /// Changes the state of the limit of a take, to give something back; `None` if that state is not kept any more.
    fn touch_taken<R>(
        &self,
        terms: &Terms,
        change: impl FnMut(&Terms, &mut State, Timestamp) -> R,
    ) -> Option<R> {
        let is_kept = self.word.0.load(Ordering::Acquire) != MOVED || self.states.lock().knows(terms);
        is_kept.then(|| self.touch(Some(terms), None, change))
    }
}

/// Exchanges a word until nobody came in between; `None` if the state is not there any more. The clock is read after
/// the word, and again when it was lost to another, so that the times that it sees do not go back.
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

    fn account(&self, name: &Name) -> Account {
        let is_first = self.word.0.load(Ordering::Acquire) != MOVED;
        let terms = if is_first { self.first } else { *self.states.lock().limit().terms() };
        name.clone().under_any(terms)
    }

    fn take_if_free(&self, account: &Account, ask: Ask) -> Decision {
        self.touch(Some(account.terms()), None, |terms, state, now| {
            terms.decide_if_free(state, now, ask, nonce_for(terms))
        })
    }

    fn take_for_waiter(
        &self,
        account: &Account,
        asked: WaiterAsk,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        self.take(account, asked, at, Terms::decide_if_free)
    }

    fn refund(&self, account: &Account, receipt: &mut OpenReceipt, cost: Option<Cost>) -> Adjusted {
        let terms = account.terms();
        receipt.settle(
            terms,
            cost,
            || self.clock.now(),
            |receipt| {
                let give_back =
                    |terms: &Terms, state: &mut State, now| terms.give_back(state, now, receipt.copy());
                self.touch_taken(terms, give_back).unwrap_or(Adjusted::Capped)
            },
            |claim, units| {
                let take_off =
                    |terms: &Terms, state: &mut State, now| terms.take_off(state, now, &claim, units);
                self.touch_taken(terms, take_off).flatten()
            },
        )
    }

    fn look(&self, account: &Account, ask: Ask) -> Decision {
        self.touch(Some(account.terms()), None, |terms, state, now| terms.peek(state, now, ask))
    }

    fn state(&self, account: &Account) -> State {
        self.touch(Some(account.terms()), None, |_, state, _| state.clone())
    }
}

impl fmt::Debug for Single {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Single").field("limit", &self.limit()).finish_non_exhaustive()
    }
}
