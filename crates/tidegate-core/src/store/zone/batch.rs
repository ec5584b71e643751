//! A batch of asks, decided one after the other, as of one reading of the clock.
//!
//! A batch returns the decisions of single asks at one instant. A new key is therefore decided and charged as of the
//! reading of all others, though its cell is searched as of a later one (`docs/zone.md` explains why that is safe).
//! Only a reading that is no longer recent is replaced; then the rest of the batch is decided as of the later one as
//! well. Nothing is carried here: while counts of earlier limits matter, asks are decided by their names.
//!
//! ```text
//!   place    hash every key and prefetch its cells: the memory accesses overlap
//!   spend    decide each ask in order
//! ```
//!
//! For a large zone most of the time of a single decision is the wait for memory. A batch of sixteen pays that wait
//! about once.

use super::change::{Spend, SpendAsOf};
use super::core::{CellOp, Core};
use super::table::BucketPair;
use super::{WhenFull, Zone};
use crate::algorithm::OneWord;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::key::IntoKey;
use crate::limit::AlgorithmParams;
use crate::store::bound::BoundLimit;
use crate::time::Timestamp;

/// An ask whose cells are prefetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    /// The buckets and the fingerprint of the key.
    spot: BucketPair,
    /// The ask; `None` if its cost is 0.
    ask: Option<Ask>,
}

impl Placed {
    /// Hashes the key, and prefetches its cells.
    #[inline]
    pub(crate) fn new(
        zone: &Zone,
        limit: &BoundLimit,
        key: &(impl IntoKey + ?Sized),
        ask: Option<Ask>,
    ) -> Placed {
        let table = &zone.inner.core.table;
        let spot = table.spot(limit.name().prefix.hash(key));
        table.prefetch(&spot);
        Placed { spot, ask }
    }
}

impl Zone {
    /// Decides each ask in order, and spends if allowed, all as of one instant. `decided` gets one decision per ask.
    pub(crate) fn spend_each(
        &self,
        placed: &[Option<Placed>],
        limit: &BoundLimit,
        when_full: WhenFull,
        decided: &mut [Option<Decision>],
    ) {
        let core = &self.inner.core;
        let mut at = core.clock.now();
        super::subjects::with_word!(limit.terms(), terms => {
            for (placed, decided) in placed.iter().flatten().zip(decided) {
                let who = CellOp { spot: &placed.spot, terms, limit, key: None, when_full, at: None };
                *decided = Some(core.settle_placed(&mut at, &who, placed.ask));
            }
        });
    }

    /// Decides an ask whose cells were prefetched, as of `at`, a recent reading of the clock. Sets `at` to a later
    /// reading if it is too old. It is for a caller that consumes decisions one by one and may stop early.
    #[inline]
    pub(crate) fn spend_placed(
        &self,
        at: &mut Timestamp,
        placed: &Placed,
        limit: &BoundLimit,
        when_full: WhenFull,
    ) -> Decision {
        super::subjects::with_word!(limit.terms(), terms => {
            let who = CellOp { spot: &placed.spot, terms, limit, key: None, when_full, at: None };
            self.inner.core.settle_placed(at, &who, placed.ask)
        })
    }
}

impl Core {
    /// Decides like [`Core::settle_as_of`]. An ask of cost 0 only peeks.
    #[inline(always)]
    fn settle_placed<W: OneWord>(
        &self,
        at: &mut Timestamp,
        who: &CellOp<'_, W>,
        ask: Option<Ask>,
    ) -> Decision {
        match ask {
            Some(ask) => self.settle_as_of(at, who, ask),
            None => self.look(&CellOp { at: Some(*at), ..*who }, Ask::ONE).asking_nothing(),
        }
    }

    /// Decides as of `at`, a recent reading of the clock. A debt that looks too large is decided on the slow path,
    /// because `at` may be too old. Any other debt is decided as of `at` even if it was written later, because an
    /// earlier time only makes a decision stricter.
    #[inline(always)]
    pub(super) fn settle_as_of<W: OneWord>(
        &self,
        at: &mut Timestamp,
        who: &CellOp<'_, W>,
        ask: Ask,
    ) -> Decision {
        if let Some((cell, content)) = self.table.find(who.spot) {
            let is_own = content.is_state() && !who.limit.may_carry_to(content.word);
            if is_own && content.clear_at().since(*at) <= who.terms.never_cut() {
                if let Some(decision) = self.change_in(cell, content, who, *at, &Spend(ask)) {
                    return decision;
                }
            }
        }
        self.settle_newcomer_as_of(at, who, ask)
    }

    /// Decides for a key whose cell was not found, or was changed by another thread. `at` becomes the time by which the
    /// decision was made, for the asks after it.
    #[inline(never)]
    fn settle_newcomer_as_of<W: OneWord>(
        &self,
        at: &mut Timestamp,
        who: &CellOp<'_, W>,
        ask: Ask,
    ) -> Decision {
        let who = CellOp { at: Some(*at), ..*who };
        let (decision, decided_at) = self.settle_slowly(&who, &SpendAsOf(ask));
        *at = decided_at;
        decision
    }
}
