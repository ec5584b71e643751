//! Takes from several cells that stand or fall together, in the usual case: each state has a cell of its own, and nothing
//! is carried to it.
//!
//! ```text
//!   place    hash each name, and fetch its cells
//!   draft    decide about each state as it is; if one is denied, that is the answer
//!   write    exchange one cell after the other; a state that has changed meanwhile is decided again
//! ```
//!
//! If a state no longer passes when its turn comes, the takes before it are undone by the caller, which decides in the
//! general way (`store/together.rs`), as in every other case.

use super::atomic::Cell;
use super::cell::Content;
use super::change::Spend;
use super::core::{Who, change_own};
use super::subjects::with_word;
use super::table::Spot;
use super::{WhenFull, Zone};
use crate::algorithm::{Decide as _, OneWord as _};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::few::Few;
use crate::key::Key;
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::store::bound::BoundLimit;
use crate::time::Timestamp;

/// One of several takes, whose cells are fetched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellTake<'a> {
    zone: &'a Zone,
    limit: &'a BoundLimit,
    spot: Spot,
    when_full: WhenFull,
    ask: Ask,
}

/// A decision about a state, and what it leaves in the cell.
#[derive(Clone, Copy, Debug)]
struct Draft<'a> {
    cell: &'a Cell,
    before: Content,
    after: Content,
    decision: Decision,
    /// The era in which it was decided.
    era: u64,
}

/// Why several takes were not decided.
#[derive(Debug)]
pub(crate) struct Undecided {
    /// The receipts of the first of them, which are to be undone.
    pub(crate) written: Few<Receipt>,
}

/// Spends on all, or on none. The states of all have to be different ones.
pub(crate) fn take_cells(takes: &[CellTake<'_>], at: Timestamp) -> Result<Few<Decision>, Undecided> {
    let drafts: Option<Few<_>> = takes.iter().map(|take| take.draft(at)).collect();
    let mut drafts = drafts.ok_or(Undecided { written: Few::Zero })?;
    if !drafts.iter().all(|draft| draft.decision.is_allowed()) {
        // A debt that is cut by its denial, or a denial that counts, is written in the general way.
        let is_written = |draft: &Draft<'_>| !draft.decision.is_allowed() && draft.after != draft.before;
        if drafts.iter().any(is_written) {
            return Err(Undecided { written: Few::Zero });
        }
        return Ok(drafts.iter().map(|draft| draft.decision).collect());
    }
    for place in 0..takes.len() {
        if !takes[place].write(&mut drafts[place], at) {
            let written = takes.iter().zip(drafts.iter()).take(place);
            return Err(Undecided { written: written.map(|(take, draft)| take.receipt(draft, at)).collect() });
        }
    }
    Ok(drafts.iter().map(|draft| draft.decision).collect())
}

impl<'a> CellTake<'a> {
    /// Hashes the name, and asks for the cells.
    #[inline]
    pub(crate) fn new(zone: &'a Zone, limit: &'a BoundLimit, key: &Key) -> CellTake<'a> {
        let table = &zone.inner.core.table;
        let spot = table.spot(limit.name().prefix.hash_encoded(key.as_bytes()));
        table.prefetch(&spot);
        CellTake { zone, limit, spot, when_full: WhenFull::Share, ask: Ask::ONE }
    }

    /// The same for a zone without a cell, and with this ask.
    #[inline]
    pub(crate) fn asking(self, when_full: WhenFull, ask: Ask) -> CellTake<'a> {
        CellTake { when_full, ask, ..self }
    }

    /// Returns true if both may be of one state.
    #[inline]
    pub(crate) fn is_same_state(&self, other: &CellTake<'_>) -> bool {
        self.spot.fingerprint == other.spot.fingerprint
    }

    /// Decides by the state in the cell of its own; nothing if it has none, or if its clock may have been set back.
    #[inline]
    fn draft(&self, at: Timestamp) -> Option<Draft<'a>> {
        let era = self.zone.inner.receipts.era();
        let (cell, before) = self.zone.inner.core.table.find(&self.spot)?;
        if !before.is_state() || self.limit.may_carry_to(before.word) {
            return None;
        }
        with_word!(self.limit.terms(), terms => {
            let is_sure = before.clear_at().since(at) <= terms.never_cut();
            let (decision, after) = change_own(before, &self.who(terms), at, &Spend(self.ask));
            is_sure.then_some(Draft { cell, before, after, decision, era })
        })
    }

    /// Writes what a draft leaves; decides again if the state has changed. Returns false if it no longer passes.
    #[inline]
    fn write(&self, draft: &mut Draft<'a>, at: Timestamp) -> bool {
        let core = &self.zone.inner.core;
        loop {
            if self.limit.is_unnoted(draft.after.word) {
                with_word!(self.limit.terms(), terms => core.note(&self.who(terms), draft.after.word, at));
            }
            if core.table.replace(draft.cell, draft.before, draft.after) {
                return true;
            }
            match self.draft(at).filter(|draft| draft.decision.is_allowed()) {
                Some(again) => *draft = again,
                None => return false,
            }
        }
    }

    /// The receipt of a draft that was written.
    #[cold]
    fn receipt(&self, draft: &Draft<'_>, at: Timestamp) -> Receipt {
        let (algorithm, era) = (Some(self.limit.terms().algorithm()), draft.era);
        with_word!(self.limit.terms(), terms => {
            let state = terms.state_of_word(draft.after.word);
            Receipt { algorithm, era, ..terms.receipt(&state, at, self.ask.cost) }
        })
    }

    #[inline(always)]
    fn who<'w, W>(&'w self, terms: &'w W) -> Who<'w, W> {
        Who { spot: &self.spot, terms, limit: self.limit, key: None, when_full: self.when_full, at: None }
    }
}
