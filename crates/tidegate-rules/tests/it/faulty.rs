//! A store that fails on request, which no real store does.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use tidegate::{
    Adjusted, Adjustment, Ask, Cost, Decision, Decisions, FallbackStore, Limit, ManualClock, Map,
    OpenReceipt, PermitId, Store, StoreError, StoreFuture, Subject, Zone,
};
use tidegate_rules::{Gate, ManualCalendar};

use crate::requests::policy;

/// A limit that it does not support, as a store with coarse time would not.
pub(crate) const TOO_FAST: &str = "5000000/s";

/// The behavior of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Health {
    Up,
    /// The store is not reached, and nothing was spent.
    Down,
    /// The store has spent, and its reply is lost.
    Silent,
    /// The store never replies.
    Stuck,
    /// The store has spent, and decides about all limits but the last.
    Short,
}

/// A map that fails on request.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) map: Map,
    health: AtomicU8,
    /// The number of takes.
    pub(crate) takes: AtomicU64,
    pub(crate) forgotten: AtomicU64,
    /// The number of limits that it decides together.
    pub(crate) most_together: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new(clock: Arc<ManualClock>) -> Arc<Faulty> {
        Arc::new(Faulty {
            map: Map::with_clock(clock),
            health: AtomicU8::new(Health::Up as u8),
            takes: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            most_together: AtomicUsize::new(usize::MAX),
        })
    }

    pub(crate) fn is(&self, health: Health) {
        self.health.store(health as u8, Ordering::SeqCst);
    }

    async fn answer<T>(&self, answer: impl FnOnce(&Map) -> T) -> Result<T, StoreError> {
        let health = self.health.load(Ordering::SeqCst);
        if health == Health::Down as u8 {
            return Err(StoreError::unavailable("the plug is out"));
        }
        if health == Health::Stuck as u8 {
            std::future::pending::<()>().await;
        }
        let answer = answer(&self.map);
        if health == Health::Silent as u8 {
            return Err(StoreError::outcome_unknown("the line went dead"));
        }
        Ok(answer)
    }
}

impl Store for Faulty {
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        self.takes.fetch_add(1, Ordering::SeqCst);
        StoreFuture::later(async move {
            if asks.len() > Store::most_together(self) {
                return Err(StoreError::unfit("too many limits"));
            }
            let decisions = self.answer(move |map| map.take_all(asks)).await?;
            let is_short = self.health.load(Ordering::SeqCst) == Health::Short as u8;
            match decisions.each() {
                [decided @ .., _] if is_short => Ok(decided.to_vec().into()),
                _ => Ok(decisions),
            }
        })
    }

    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision> {
        StoreFuture::later(self.answer(move |map| map.peek(subject, ask)))
    }

    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> StoreFuture<'a, Adjusted> {
        StoreFuture::later(self.answer(move |map| map.adjust(subject, adjustment)))
    }

    fn refund<'a>(
        &'a self,
        subject: Subject<'a>,
        receipt: &'a mut OpenReceipt,
        cost: Cost,
    ) -> StoreFuture<'a, Adjusted> {
        StoreFuture::later(self.answer(move |map| map.refund(subject, receipt, cost)))
    }

    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.answer(move |map| map.release(subject, permit)))
    }

    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.answer(move |map| map.renew(subject, permit)))
    }

    fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        StoreFuture::later(async move { self.answer(move |map| map.reset(subject)).await? })
    }

    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.answer(move |map| map.reset_limit(subject)))
    }

    fn supports(&self, limit: &Limit) -> Result<(), String> {
        if limit.to_string() == TOO_FAST {
            return Err("this is faster than can be counted; write at most \"1000000/s\"".to_owned());
        }
        Ok(())
    }

    fn most_together(&self) -> usize {
        self.most_together.load(Ordering::SeqCst)
    }

    fn forget_refusals(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

/// One of several nodes on a store that can fail. Every clock stands still until it is moved.
pub(crate) struct Node {
    pub(crate) gate: Gate,
    pub(crate) store: Arc<Faulty>,
    pub(crate) clock: Arc<ManualClock>,
}

/// Creates nodes with one policy on one store.
pub(crate) fn nodes(text: &str, count: u64) -> Vec<Node> {
    let (clock, calendar) = (Arc::new(ManualClock::new()), Arc::new(ManualCalendar::at(0)));
    let store = Faulty::new(clock.clone());
    let node = |_| {
        let local = Zone::with_clock(1 << 16, clock.clone());
        let of_all = NonZeroU64::new(count).expect("a node");
        let with_fallback = FallbackStore::new(store.clone(), &local).nodes(of_all);
        let gate = Gate::builder(policy(text), with_fallback)
            .calendar(calendar.clone())
            .build()
            .expect("the store supports the policy");
        Node { gate, store: store.clone(), clock: clock.clone() }
    };
    (0..count).map(node).collect()
}

/// Creates a single node that assumes a total of `count` nodes.
pub(crate) fn one_of(text: &str, count: u64) -> Node {
    nodes(text, count).swap_remove(0)
}
