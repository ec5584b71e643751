//! Many asks of one limiter, decided in order with their states fetched together.
//!
//! One by one, each decision would wait for a cache miss on its cell. Here the names of a group are hashed first
//! and their cells are prefetched. Then the clock is read, and all asks of the group are decided as of that
//! instant.

use std::fmt;

use super::Limiter;
use crate::ask::{IntoAsk, ask_for};
use crate::decision::Decision;
use crate::store::LimitStore;
use crate::store::zone::Placed;

/// The number of asks in a group: more cells would evict each other from the L1 cache.
const TOGETHER: usize = if cfg!(tidegate_models) { 2 } else { 32 };

/// An iterator over the decisions about many asks, in order; created by [`Limiter::admit_each`].
///
/// It is lazy: a group of asks is taken from the input, and spent, only when a decision of it is requested. Dropping
/// the iterator does not undo the asks of a group that was started.
#[doc(alias("batch"))]
#[must_use = "nothing is decided until it is asked for"]
pub struct AdmitEach<'a, I> {
    limiter: &'a Limiter,
    asks: I,
    decided: [Option<Decision>; TOGETHER],
    next: usize,
}

impl<'a, I: Iterator<Item: IntoAsk>> AdmitEach<'a, I> {
    pub(super) fn new(limiter: &'a Limiter, asks: I) -> AdmitEach<'a, I> {
        AdmitEach { limiter, asks, decided: [None; TOGETHER], next: TOGETHER }
    }

    /// Decides about the next group.
    /// A store without cells, or a limit that carries counts, decides one ask after the other, as of one instant.
    fn decide(&mut self) {
        let inner = &*self.limiter.inner;
        self.next = 0;
        self.decided = [None; TOGETHER];
        let limit = inner.limit.bound();
        // Counts of previous limits are looked up by name.
        let carries = !limit.history().is_empty();
        let Some(zone) = inner.straight_to(&limit).filter(|_| !carries) else {
            let mut at = inner.memory.clock().now();
            for (decided, ask) in self.decided.iter_mut().zip(&mut self.asks) {
                let (account, ask) = inner.read(ask);
                let spend = |holder: LimitStore<'_>, ask| holder.spend_as_of(&account, ask, &mut at);
                *decided = Some(inner.decide(&account, ask, spend));
            }
            return;
        };
        let mut placed = [None; TOGETHER];
        for (placed, ask) in placed.iter_mut().zip(&mut self.asks) {
            let (key, units, max_wait) = ask.into_parts();
            *placed = Some(Placed::new(zone, &limit, &key, ask_for(units, max_wait)));
        }
        zone.spend_each(&placed, &limit, inner.when_full(), &mut self.decided);
    }
}

impl<I: Iterator<Item: IntoAsk>> Iterator for AdmitEach<'_, I> {
    type Item = Decision;

    #[inline]
    fn next(&mut self) -> Option<Decision> {
        if self.next == TOGETHER {
            self.decide();
        }
        let decision = self.decided[self.next].take();
        self.next += usize::from(decision.is_some());
        decision
    }
}

impl<I> fmt::Debug for AdmitEach<'_, I> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AdmitEach").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}
