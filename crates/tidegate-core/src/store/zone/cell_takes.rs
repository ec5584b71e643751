//! Takes from several cells that are allowed or denied together, in the usual case: each state has a cell of its own,
//! and nothing is carried to it.
//!
//! ```text
//!   place    hash each name, and fetch its cells
//!   draft    decide about each state as it is; if all are denied, that is the answer
//!   write    exchange one cell after the other; a state that has changed meanwhile is decided again
//! ```
//!
//! If a state no longer allows its take when it is written, the caller undoes the takes before it. It then decides on
//! the general path (`store/together.rs`), as in every other case.
//!
//! It is the path of a gate whose rules all count in one zone: no name is encoded, no lock is taken, and nothing is
//! allocated.

use super::atomic::Cell;
use super::cell::Content;
use super::change::Spend;
use super::core::{CellOp, change_own};
use super::memo::LONGEST;
use super::subjects::with_word;
use super::table::BucketPair;
use super::{WhenFull, Zone};
use crate::algorithm::{Decide as _, OneWord as _};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::decisions::Decisions;
use crate::few::Few;
use crate::key::Key;
use crate::limit::AlgorithmParams;
use crate::receipt::Receipt;
use crate::store::Subject;
use crate::store::bound::BoundLimit;
use crate::time::Timestamp;

/// The most takes that are decided on this path.
pub(crate) const MAX_CELL_TAKES: usize = 4;

/// The takes that are allowed or denied together, whose cells are prefetched.
#[derive(Debug, Default)]
pub(crate) struct CellTakes<'a> {
    each: [Option<CellTake<'a>>; MAX_CELL_TAKES],
}

/// One of several takes.
#[derive(Clone, Copy, Debug)]
struct CellTake<'a> {
    /// The zone that holds the cell; takes of one request may be of several zones.
    zone: &'a Zone,
    /// The limit, bound to that zone.
    limit: &'a BoundLimit,
    /// The buckets and the fingerprint of the key.
    spot: BucketPair,
    when_full: WhenFull,
    ask: Ask,
}

/// A decision on a state, and the content of the cell before and after it.
#[derive(Clone, Copy, Debug)]
struct CellDecision<'a> {
    /// The cell of the key, found by the draft.
    cell: &'a Cell,
    before: Content,
    after: Content,
    decision: Decision,
    /// The era in which it was decided.
    era: u64,
}

impl<'a> CellTakes<'a> {
    /// Hashes a key, and prefetches its cells. Returns false if there is already a take of the same state, or of
    /// another one with the same fingerprint.
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        place: usize,
        zone: &'a Zone,
        limit: &'a BoundLimit,
        subject: &Subject<'a>,
        ask: Ask,
    ) -> bool {
        let table = &zone.inner.core.table;
        let spot = limit.name().prefix.spot_encoded(table, subject.key.as_bytes());
        let is_twin = |other: &CellTake<'_>| other.spot.fingerprint == spot.fingerprint;
        if self.each.iter().flatten().any(is_twin) {
            return false;
        }
        self.each[place] = Some(CellTake { zone, limit, spot, when_full: subject.when_full, ask });
        true
    }

    /// Spends on all, or on none. If nothing was decided, returns the receipts of the first takes, which the caller
    /// must undo. An `Err` without receipts means that nothing was spent. All drafts are as of one time.
    #[inline(always)]
    pub(crate) fn take(&self, at: Timestamp) -> Result<Decisions, Vec<Receipt>> {
        let mut drafts = [None; MAX_CELL_TAKES];
        let (mut passes, mut is_written) = (true, false);
        // In reverse order: a rule for all keys, whose cell is in the cache, mostly comes after the rules for one key
        // each.
        for (take, draft) in self.each.iter().zip(&mut drafts).rev() {
            let Some(take) = take else { continue };
            let drafted = take.draft(at).ok_or(Vec::new())?;
            passes &= drafted.decision.is_allowed();
            is_written |= drafted.after != drafted.before;
            *draft = Some(drafted);
        }
        if passes {
            for (place, take) in self.each.iter().flatten().enumerate() {
                if !drafts[place].as_mut().is_some_and(|draft| take.write(draft, at)) {
                    return Err(self.receipts(&drafts[..place], at));
                }
            }
        } else if is_written {
            // The general path is needed: a state that would allow must be reported unspent, and a debt that its denial
            // shortens must be written.
            return Err(Vec::new());
        }
        Ok(Decisions::new(drafts.iter().flatten().map(|draft| draft.decision).collect::<Few<_>>()))
    }

    /// Returns the receipts of drafts that were written.
    #[cold]
    fn receipts(&self, written: &[Option<CellDecision<'_>>], at: Timestamp) -> Vec<Receipt> {
        let drafts = self.each.iter().flatten().zip(written.iter().flatten());
        drafts.map(|(take, draft)| take.receipt(draft, at)).collect()
    }
}

impl Zone {
    /// Prefetches the cells of a key under a limit, if its hash can be cached until the decision. The cells of the key
    /// with no parts are in the cache anyway.
    #[inline]
    pub(crate) fn prefetch(&self, limit: &BoundLimit, key: &Key) {
        if (1..=LONGEST).contains(&key.as_bytes().len()) {
            limit.name().prefix.spot_encoded(&self.inner.core.table, key.as_bytes());
        }
    }
}

impl<'a> CellTake<'a> {
    /// Decides by the state in the key's own cell. Returns `None` if there is none, or if the clock may have been set
    /// back.
    #[inline(always)]
    fn draft(&self, at: Timestamp) -> Option<CellDecision<'a>> {
        let era = self.zone.inner.receipts.era();
        let (cell, before) = self.zone.inner.core.table.find(&self.spot)?;
        if !before.is_state() || self.limit.may_carry_to(before.word) {
            return None;
        }
        with_word!(self.limit.terms(), terms => {
            let is_sure = before.clear_at().since(at) <= terms.never_cut();
            let (decision, after) = change_own(before, &self.who(terms), at, &Spend(self.ask));
            is_sure.then_some(CellDecision { cell, before, after, decision, era })
        })
    }

    /// Decides again on a state that has changed meanwhile. Returns `None` if the take is no longer allowed.
    #[cold]
    fn draft_again(&self, at: Timestamp) -> Option<CellDecision<'a>> {
        self.draft(at).filter(|draft| draft.decision.is_allowed())
    }

    /// Writes a draft, and decides again if the state has changed. Returns false if the take is no longer allowed. Each
    /// retry follows a change by another thread, so the loop makes progress for the zone as a whole.
    #[inline(always)]
    fn write(&self, draft: &mut CellDecision<'a>, at: Timestamp) -> bool {
        let core = &self.zone.inner.core;
        loop {
            if self.limit.is_unnoted(draft.after.word) {
                with_word!(self.limit.terms(), terms => core.note(&self.who(terms), draft.after.word, at));
            }
            if core.table.replace(draft.cell, draft.before, draft.after) {
                return true;
            }
            match self.draft_again(at) {
                Some(again) => *draft = again,
                None => return false,
            }
        }
    }

    /// Returns the receipt of a draft that was written.
    fn receipt(&self, draft: &CellDecision<'_>, at: Timestamp) -> Receipt {
        let (algorithm, era) = (Some(self.limit.terms().algorithm()), draft.era);
        with_word!(self.limit.terms(), terms => {
            let state = terms.state_of_word(draft.after.word);
            Receipt { algorithm, era, ..terms.receipt(&state, at, self.ask.cost) }
        })
    }

    /// Returns the operation on the cell of this take, with nothing carried.
    #[inline(always)]
    fn who<'w, W>(&'w self, terms: &'w W) -> CellOp<'w, W> {
        CellOp { spot: &self.spot, terms, limit: self.limit, key: None, when_full: self.when_full, at: None }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Limit, ManualClock, PreparedLimit, Zones};

    /// Returns a zone and two limits, each of which allows two units per hour and key.
    fn zone_and_limits() -> (Zone, [PreparedLimit; 2]) {
        let zone = Zone::with_clock(1 << 16, Arc::new(ManualClock::new()));
        (zone, ["user", "site"].map(|name| PreparedLimit::dynamic(name, Limit::per_hour(2))))
    }

    #[test]
    fn a_state_that_no_longer_passes_when_it_is_written_leaves_the_others_to_be_undone() {
        let ((zone, limits), key) = (zone_and_limits(), Key::new("ana"));
        let asks = [0, 1].map(|place: usize| (limits[place].subject(&key), Ask::ONE));
        assert!(zone.take_all(&asks).is_allowed());
        let remaining = || asks.map(|(subject, ask)| zone.peek(subject, ask).remaining());
        assert_eq!(remaining(), [1, 1]);

        let bound = limits.each_ref().map(|limit| limit.bound_in(zone.limits()).expect("it was used"));
        let mut takes = CellTakes::default();
        for (place, (subject, ask)) in asks.iter().enumerate() {
            assert!(takes.place(place, &zone, bound[place], subject, *ask));
        }
        let at = zone.now();
        let [first, last] = [0, 1].map(|place: usize| takes.each[place].expect("it was placed"));
        let [mut of_first, mut of_last] = [first, last].map(|take| take.draft(at).expect("it has a cell"));
        assert!(zone.take_all(&asks[1..]).is_allowed(), "another thread is faster");
        assert!(first.write(&mut of_first, at) && !last.write(&mut of_last, at));
        assert_eq!(remaining(), [0, 0]);
        for receipt in takes.receipts(&[Some(of_first)], at) {
            let _ = zone.give_back(asks[0].0, receipt);
        }
        assert_eq!(remaining(), [1, 0]);
    }

    #[test]
    fn a_state_that_has_changed_is_decided_again() {
        let (zone, key) = (zone_and_limits().0, Key::new("ana"));
        let limit = PreparedLimit::dynamic("user", Limit::per_hour(3));
        let subject = limit.subject(&key);
        assert!(zone.take_all(&[(subject, Ask::ONE)]).is_allowed());
        let bound = limit.bound_in(zone.limits()).expect("it was used");
        let mut takes = CellTakes::default();
        assert!(takes.place(0, &zone, bound, &subject, Ask::ONE));
        assert!(!takes.place(1, &zone, bound, &subject, Ask::ONE), "one state is asked for once");
        let take = takes.each[0].expect("it was placed");
        let mut draft = take.draft(zone.now()).expect("it has a cell");
        assert!(zone.take_all(&[(subject, Ask::ONE)]).is_allowed(), "another thread is faster");
        assert!(take.write(&mut draft, zone.now()));
        assert_eq!((draft.decision.remaining(), zone.peek(subject, Ask::ONE).remaining()), (0, 0));
    }

    #[test]
    fn a_key_and_a_part_of_the_same_bytes_are_two_states() {
        let zone = Zone::with_clock(1 << 16, Arc::new(ManualClock::new()));
        let (zones, adhoc) = (Zones::new(&zone), crate::DynamicLimiter::on(&zone, "user"));
        let (limit, key) = (PreparedLimit::dynamic("user", Limit::per_hour(1)), Key::new("ana"));
        let ask = [(limit.subject(&key), Ask::ONE)];
        assert!(zones.take_all(&ask).is_allowed());
        zones.prefetch(&ask[0].0);
        assert!(
            adhoc.admit(key.as_bytes(), &limit, Ask::ONE).is_allowed(),
            "the encoded key is another name"
        );
        assert!(!zones.take_all(&ask).is_allowed() && !adhoc.admit("ana", &limit, Ask::ONE).is_allowed());
    }
}
