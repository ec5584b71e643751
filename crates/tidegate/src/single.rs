//! One subject, the hottest path: no key, no map.
//!
//! A state that is one word is exchanged atomically; the others are behind a lock.

mod states;

use std::fmt;
use std::sync::Arc;

use crate::algorithm::{Decide, State};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::limit::{CurrentLimit, Limit, LimitError, Terms};
use crate::receipt::Receipt;
use crate::store::name::{Account, Name, Namespace};
use crate::store::receipts::Receipts;
use crate::store::{OpenReceipt, nonce_for};
use crate::sync::{Apart, AtomicU64, Mutex, Ordering};
use crate::time::{Clock, CounterClock, Source, Timestamp};
use crate::wait::{Acquire, MAX_WAITERS, Room, TrackedTake, Venue, Visit};
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
    /// Each algorithm has its own state: a limit of another one finds another state.
    tokens: Apart<AtomicU64>,
    queue: AtomicU64,
    others: Mutex<States>,
    limit: CurrentLimit,
    clock: Source,
    room: Room,
    receipts: Receipts,
}

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
        self.inner.room.set_max_waiters(most);
        self
    }

    fn build(limit: Limit, clock: Source) -> Single {
        let inner = Inner {
            tokens: Apart(AtomicU64::new(0)),
            queue: AtomicU64::new(0),
            others: Mutex::new(Default::default()),
            limit: CurrentLimit::new(limit),
            clock,
            room: Room::new(MAX_WAITERS),
            receipts: Receipts::of_one(),
        };
        Single { inner: Arc::new(inner) }
    }

    /// The same, as of now: a pacer has nothing saved.
    pub(crate) fn begun(self) -> Single {
        let terms = self.inner.limit.terms();
        let begun = terms.state_begun_at(self.inner.clock.now());
        self.inner.others.lock().current[terms.algorithm() as usize] = begun;
        self
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.inner.limit.limit()
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
        if self.inner.room.is_empty() { self.inner.spend(ask) } else { self.admit_behind(ask) }
    }

    /// Decides like [`Single::admit_with`]; with the take, if it was allowed, by which just that take can be refunded.
    pub fn admit_tracked(&self, ask: Ask) -> (Decision, Option<TrackedTake>) {
        let account = self.inner.account(&nobody());
        if !self.inner.room.is_empty()
            && let Some(wait) = self.inner.room.wait_behind(&*self.inner, &nobody(), ask)
        {
            return (self.inner.peek(ask).put_off(wait), None);
        }
        let take = |terms: &Terms, state: &mut State, now| terms.decide(state, now, ask, nonce_for(terms));
        let (decision, receipt) = self.inner.take_tracked(&account, ask, None, take);
        let take = decision.is_allowed().then(|| TrackedTake::new(self.venue(), account, receipt));
        (decision, take)
    }

    #[cold]
    fn admit_behind(&self, ask: Ask) -> Decision {
        match self.inner.room.wait_behind(&*self.inner, &nobody(), ask) {
            Some(wait) => self.inner.peek(ask).put_off(wait),
            None => self.inner.spend_by_any(ask),
        }
    }

    /// What [`Single::admit`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek(&self) -> Decision {
        self.peek_with(Ask::ONE)
    }

    /// What [`Single::admit_with`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek_with(&self, ask: Ask) -> Decision {
        let decision = self.inner.peek(ask);
        if self.inner.room.is_empty() {
            return decision;
        }
        let wait = self.inner.room.wait_behind(&*self.inner, &nobody(), ask);
        wait.map_or(decision, |wait| decision.put_off(wait))
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
        let terms = self.inner.limit.terms();
        let adjust = || self.inner.touch(&terms, None, |state, now| terms.adjust(state, now, adjustment));
        let adjusted = match adjustment {
            Adjustment::Charge(_) => adjust(),
            Adjustment::Refund(_) => self.inner.without_receipt(&nobody().under_any(terms), adjust),
        };
        self.inner.room.look_again(&self.venue(), &nobody());
        adjusted
    }

    /// Forgets everything.
    pub fn reset(&self) {
        let mut receipts = self.inner.receipts.lock(0, &[]);
        receipts.forget_all();
        self.inner.tokens.0.store(0, Ordering::Release);
        self.inner.queue.store(0, Ordering::Release);
        *self.inner.others.lock() = Default::default();
        drop(receipts);
        self.inner.room.begin_anew(&self.venue(), &nobody());
    }

    /// Puts another limit in force; what was used stays used, in units.
    pub fn set_limit(&self, limit: Limit) {
        self.inner.replace_limit(|current| current.set(limit));
        self.inner.room.begin_all_anew(&self.venue());
    }

    pub(crate) fn change_limit(
        &self,
        change: impl FnOnce(Limit) -> Result<Limit, LimitError>,
    ) -> Result<(), LimitError> {
        self.inner.replace_limit(|current| current.change(change))?;
        self.inner.room.begin_all_anew(&self.venue());
        Ok(())
    }

    /// Waits until one unit passes; to be awaited on any runtime, or to block a thread with.
    pub fn acquire(&self) -> Acquire {
        self.acquire_units(1)
    }

    /// Waits until so many units pass together.
    pub fn acquire_units(&self, units: u64) -> Acquire {
        let ask = crate::asking::ask_for(units, None);
        Acquire::new(Visit::new(self.venue(), nobody(), ask, None))
    }

    fn venue(&self) -> Arc<dyn Venue> {
        self.inner.clone()
    }
}

/// The only name in a room for one subject.
fn nobody() -> Name {
    Name::new(&Namespace::none(), "")
}

impl Inner {
    /// The common case is small, and always a part of the caller: there, nothing is computed of an answer but what
    /// the caller reads. What decides about the other cases is large, and would keep this from being inlined.
    #[inline(always)]
    fn spend(&self, ask: Ask) -> Decision {
        match (self.limit.unreplaced(), &self.clock) {
            (Some(Terms::TokenBucket(bucket)), Source::Process) => {
                let now = || CounterClock::new().now();
                exchange(&self.tokens.0, now, |state, now| bucket.decide(state, now, ask))
            }
            _ => self.spend_by_any(ask),
        }
    }

    #[inline(never)]
    fn spend_by_any(&self, ask: Ask) -> Decision {
        match self.limit.terms() {
            Terms::TokenBucket(bucket) => {
                exchange(&self.tokens.0, || self.clock.now(), |state, now| bucket.decide(state, now, ask))
            }
            Terms::LeakyBucket(bucket) => {
                exchange(&self.queue, || self.clock.now(), |state, now| bucket.decide(state, now, ask))
            }
            terms => {
                let mut states = self.others.lock();
                let state = &mut states.current[terms.algorithm() as usize];
                terms.decide(state, self.clock.now(), ask, nonce_for(&terms))
            }
        }
    }

    /// Puts another limit in force. What was used is carried over in units, as of now.
    fn replace_limit<R>(&self, replace: impl FnOnce(&CurrentLimit) -> R) -> R {
        let mut receipts = self.receipts.lock(0, &[]);
        let mut states = self.others.lock();
        let old = self.limit.terms();
        let replaced = replace(&self.limit);
        let new = self.limit.terms();
        receipts.forget_all();
        if old == new {
            return replaced;
        }
        let word = |terms: &Terms| match terms {
            Terms::TokenBucket(_) => Some(&self.tokens.0),
            Terms::LeakyBucket(_) => Some(&self.queue),
            _ => None,
        };
        loop {
            let (now, mut tried) = (self.clock.now(), states.clone());
            let seen = word(&old).map(|word| word.load(Ordering::Acquire));
            let used = match seen {
                Some(seen) => old.state_of(Timestamp::from_ticks(seen)),
                None => tried.current[old.algorithm() as usize].clone(),
            };
            tried.replace(&old, used, now);
            let state = tried.begin(&new, now);
            let clear_at = new.clear_at(&state).ticks();
            match (word(&new), seen) {
                // A take came in between: it counts.
                (Some(word), Some(seen)) if old.algorithm() == new.algorithm() => {
                    if word.compare_exchange(seen, clear_at, Ordering::AcqRel, Ordering::Acquire).is_err() {
                        continue;
                    }
                }
                (Some(word), _) => word.store(clear_at, Ordering::Release),
                // Holders are one set, whatever the numbers.
                (None, _) if new.algorithm() == crate::Algorithm::Concurrency => {}
                (None, _) => tried.current[new.algorithm() as usize] = state,
            }
            *states = tried;
            break;
        }
        replaced
    }

    /// Takes as `take` says, under the lock of the open receipts.
    fn take_tracked(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
        take: impl Fn(&Terms, &mut State, Timestamp) -> Decision,
    ) -> (Decision, Option<OpenReceipt>) {
        let terms = account.terms();
        Receipts::tracking(Some(&self.receipts), account, || {
            self.touch(terms, at, |state, now| {
                let decision = take(terms, state, now);
                (decision, terms.receipt(state, now, ask, &decision))
            })
        })
    }

    fn without_receipt<R>(&self, account: &Account, change: impl FnOnce() -> R) -> R {
        Receipts::without(Some(&self.receipts), account, change)
    }

    fn peek(&self, ask: Ask) -> Decision {
        let terms = self.limit.terms();
        self.touch(&terms, None, |state, now| terms.peek(state, now, ask))
    }

    /// Changes the state of an algorithm, now or as of the given time.
    fn touch<R>(
        &self,
        terms: &Terms,
        at: Option<Timestamp>,
        mut change: impl FnMut(&mut State, Timestamp) -> R,
    ) -> R {
        let word = match terms {
            Terms::TokenBucket(_) => &self.tokens.0,
            Terms::LeakyBucket(_) => &self.queue,
            _ => {
                let mut states = self.others.lock();
                let now = at.unwrap_or_else(|| self.clock.now());
                return change(&mut states.current[terms.algorithm() as usize], now);
            }
        };
        let now = || at.unwrap_or_else(|| self.clock.now());
        exchange(word, now, |clear_at, now| {
            let mut state = terms.state_of(*clear_at);
            let answer = change(&mut state, now);
            *clear_at = terms.clear_at(&state);
            answer
        })
    }
}

/// Exchanges a word until nobody came in between. The clock is read after the word, and again when it was
/// lost to another, so that the times that it sees do not go back.
#[inline(always)]
fn exchange<R>(
    word: &AtomicU64,
    now: impl Fn() -> Timestamp,
    mut change: impl FnMut(&mut Timestamp, Timestamp) -> R,
) -> R {
    let mut seen = word.load(Ordering::Acquire);
    loop {
        let mut state = Timestamp::from_ticks(seen);
        let answer = change(&mut state, now());
        if state.ticks() == seen {
            return answer;
        }
        match word.compare_exchange_weak(seen, state.ticks(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return answer,
            Err(other) => seen = other,
        }
    }
}

impl Venue for Inner {
    fn room(&self) -> &Room {
        &self.room
    }

    fn clock(&self) -> &Source {
        &self.clock
    }

    fn account(&self, name: &Name) -> Account {
        name.clone().under_any(self.limit.terms())
    }

    fn take_if_free(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        let terms = account.terms();
        self.touch(terms, at, |state, now| {
            let decision = terms.decide_if_free(state, now, ask, nonce_for(terms));
            (decision, terms.receipt(state, now, ask, &decision))
        })
    }

    fn take_if_free_tracked(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<OpenReceipt>) {
        let take =
            |terms: &Terms, state: &mut State, now| terms.decide_if_free(state, now, ask, nonce_for(terms));
        self.take_tracked(account, ask, at, take)
    }

    fn refund(&self, account: &Account, receipt: &mut OpenReceipt, cost: Cost) -> Adjusted {
        let terms = account.terms();
        receipt.settle(
            (terms, cost),
            || self.clock.now(),
            |receipt| self.touch(terms, None, |state, now| terms.give_back(state, now, receipt.copy())),
            |claim, units| self.touch(terms, None, |state, now| terms.take_off(state, now, &claim, units)),
        )
    }

    fn look(&self, account: &Account, ask: Ask) -> Decision {
        self.touch(account.terms(), None, |state, now| account.terms().peek(state, now, ask))
    }

    fn give_back(&self, account: &Account, receipt: Receipt) {
        let terms = account.terms();
        let give_back = |state: &mut State, now| terms.give_back(state, now, receipt.copy());
        self.without_receipt(account, || self.touch(terms, None, give_back));
    }

    fn state(&self, account: &Account) -> State {
        self.touch(account.terms(), None, |state, _| state.clone())
    }
}

impl fmt::Debug for Single {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Single").field("limit", &self.limit()).finish_non_exhaustive()
    }
}
