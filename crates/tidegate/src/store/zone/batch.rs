//! Several subjects of one limit, one after the other.

use super::change::Spend;
use super::core::{Core, Who};
use super::subjects::Prefixes;
use super::table::Spot;
use super::{WhenFull, Zone};
use crate::algorithm::OneWord;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::key::IntoKey;
use crate::limit::Terms;
use crate::time::Timestamp;

/// An ask whose subject's cells are on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    spot: Spot,
    ask: Ask,
}

impl Placed {
    /// Hashes the name, and asks for the cells.
    #[inline]
    pub(crate) fn new(
        zone: &Zone,
        prefixes: &Prefixes,
        (terms, key): (&Terms, &(impl IntoKey + ?Sized)),
        ask: Ask,
    ) -> Placed {
        let table = &zone.inner.core.table;
        let spot = table.spot(prefixes.hash(terms.algorithm(), key));
        table.prefetch(&spot);
        Placed { spot, ask }
    }
}

impl Zone {
    /// Decides about each, in order, and spends if allowed; the clock is read once.
    pub(crate) fn spend_each(
        &self,
        placed: &[Option<Placed>],
        (terms, when_full): (&Terms, WhenFull),
        decided: &mut [Option<Decision>],
    ) {
        let core = &self.inner.core;
        let now = core.clock.now();
        super::subjects::with_word!(terms, terms => {
            for (placed, decided) in placed.iter().flatten().zip(decided) {
                let who = Who { spot: &placed.spot, terms, when_full, at: None };
                *decided = Some(core.settle_as_of(now, &who, placed.ask));
            }
        });
    }
}

impl Zone {
    /// Decides about one whose cells were asked for, by a reading of the clock from a moment ago.
    #[inline]
    pub(crate) fn spend_placed(
        &self,
        now: Timestamp,
        placed: &Placed,
        (terms, when_full): (&Terms, WhenFull),
    ) -> Decision {
        super::subjects::with_word!(terms, terms => {
            let who = Who { spot: &placed.spot, terms, when_full, at: None };
            self.inner.core.settle_as_of(now, &who, placed.ask)
        })
    }
}

impl Core {
    /// Decides by a reading of the clock from a moment ago. Only a debt that looks too large is not judged by it:
    /// that may be because the reading is old.
    #[inline(always)]
    fn settle_as_of<W: OneWord>(&self, now: Timestamp, who: &Who<'_, W>, ask: Ask) -> Decision {
        if let Some((cell, content)) = self.table.find(who.spot) {
            if content.is_state() && content.clear_at().since(now) <= who.terms.never_cut() {
                if let Some(decision) = self.change_in(cell, content, who, now, &Spend(ask)) {
                    return decision;
                }
            }
        }
        self.settle_slowly(who, &Spend(ask))
    }
}
