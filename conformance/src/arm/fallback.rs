//! Traces on a remote store with a fallback: one that always answers, or one that never does.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate::{
    Adjusted, Adjustment, Ask, DecidedBy, Decision, Decisions, FallbackStore, Key, Limit, Map, PermitId,
    PreparedLimit, Store, StoreError, StoreFuture as StoreAnswer, Subject, Timestamp,
};

use super::{Answer, Arm, of_rule};
use crate::clock::TickingClock;

/// One limit on a [`FallbackStore`] of one node.
#[derive(Debug)]
pub struct OnFallback {
    limit: PreparedLimit,
    clock: Arc<TickingClock>,
    store: FallbackStore,
    local: Map,
    decided_by: DecidedBy,
}

impl OnFallback {
    /// A remote store that always answers: a map.
    pub fn up() -> OnFallback {
        let clock = Arc::new(TickingClock::new());
        OnFallback::new(Arc::new(Map::with_clock(clock.clone())), clock, DecidedBy::Remote)
    }

    /// A remote store that never answers, and the policy `local`. A peek, an adjustment and a reset, which are errors
    /// then, are made in the local store.
    pub fn down() -> OnFallback {
        OnFallback::new(Arc::new(Down), Arc::new(TickingClock::new()), DecidedBy::Local)
    }

    fn new(remote: Arc<dyn Store>, clock: Arc<TickingClock>, decided_by: DecidedBy) -> OnFallback {
        let local = Map::with_clock(clock.clone());
        let store = FallbackStore::new(remote, &local);
        OnFallback { limit: of_rule(Limit::per_second(1)), clock, store, local, decided_by }
    }

    fn is_down(&self) -> bool {
        self.decided_by == DecidedBy::Local
    }

    /// The answer of the store, or that of the local store to what is an error while the remote one is down.
    fn known<T>(&self, answer: Result<T, StoreError>, in_local: impl FnOnce(&Map) -> T) -> T {
        assert_eq!(answer.is_err(), self.is_down());
        answer.unwrap_or_else(|_| in_local(&self.local))
    }
}

/// The answer of a store that answers at once.
fn now<T>(mut answer: StoreAnswer<'_, T>) -> Result<T, StoreError> {
    match std::pin::Pin::new(&mut answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("both stores answer at once"),
    }
}

impl Arm for OnFallback {
    fn name(&self) -> &str {
        if self.is_down() { "fallback of a store that is down" } else { "store with a fallback" }
    }

    fn can(&self, need: &str) -> bool {
        need != "give-back"
    }

    fn begin(&mut self, limit: Limit) {
        let new = if self.is_down() { OnFallback::down() } else { OnFallback::up() };
        *self = OnFallback { limit: of_rule(limit), ..new };
    }

    fn change(&mut self, limit: Limit) {
        self.limit = of_rule(limit);
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        let key = Key::new(key);
        let decisions =
            now(self.store.take(&[(self.limit.subject(&key), ask)])).expect("one of both decides");
        assert_eq!(decisions.decided_by(0), self.decided_by);
        decisions.each()[0].into()
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        let (key, share) = (Key::new(key), self.limit.share(std::num::NonZeroU64::MIN));
        let peeked = now(self.store.peek(self.limit.subject(&key), ask));
        self.known(peeked, |local| local.peek(share.subject(&key), ask)).into()
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        let (key, share) = (Key::new(key), self.limit.share(std::num::NonZeroU64::MIN));
        let adjusted = now(self.store.adjust(self.limit.subject(&key), adjustment));
        self.known(adjusted, |local| local.adjust(share.subject(&key), adjustment))
    }

    /// The key is forgotten in both stores, and only the remote one can say that it is down.
    fn reset(&mut self, key: &str) {
        let key = Key::new(key);
        assert_eq!(now(self.store.reset(self.limit.subject(&key))).is_err(), self.is_down());
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        let key = Key::new(key);
        let subject = self.limit.subject(&key).in_local_store(self.is_down());
        now(self.store.release(subject, permit)).expect("the store that gave it is there")
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        let key = Key::new(key);
        let subject = self.limit.subject(&key).in_local_store(self.is_down());
        now(self.store.renew(subject, permit)).expect("the store that gave it is there")
    }
}

/// A store that is never there.
#[derive(Debug)]
struct Down;

fn down<'a, T>() -> StoreAnswer<'a, T> {
    StoreAnswer::failed(StoreError::unavailable("it is down"))
}

impl Store for Down {
    fn take<'a>(&'a self, _: &'a [(Subject<'a>, Ask)]) -> StoreAnswer<'a, Decisions> {
        down()
    }

    fn peek<'a>(&'a self, _: Subject<'a>, _: Ask) -> StoreAnswer<'a, Decision> {
        down()
    }

    fn adjust<'a>(&'a self, _: Subject<'a>, _: Adjustment) -> StoreAnswer<'a, Adjusted> {
        down()
    }

    fn release<'a>(&'a self, _: Subject<'a>, _: PermitId) -> StoreAnswer<'a, bool> {
        down()
    }

    fn renew<'a>(&'a self, _: Subject<'a>, _: PermitId) -> StoreAnswer<'a, bool> {
        down()
    }

    fn reset<'a>(&'a self, _: Subject<'a>) -> StoreAnswer<'a, bool> {
        down()
    }

    fn reset_limit<'a>(&'a self, _: Subject<'a>) -> StoreAnswer<'a, bool> {
        down()
    }
}
