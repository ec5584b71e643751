//! The holders of permits that changed since a store last wrote them.
//!
//! A store that writes holders individually needs the list of holders that entered and left: a walk over all of them
//! would cost more than the decision. Other stores keep no journal, which costs them one comparison.

use std::mem;

use hashbrown::HashTable;

use crate::decision::PermitId;

/// The changes since the last call of [`Journal::take`], and the place of each holder in the store. It is not part of
/// the state: a clone has none, and the equality of two states ignores it.
#[derive(Debug, Default)]
pub(crate) struct Journal(Option<Box<HolderChanges>>);

#[derive(Debug, Default)]
struct HolderChanges {
    /// The place of each holder that the store has written.
    places: HashTable<(PermitId, u32)>,
    /// The places that became free.
    free: Vec<u32>,
    /// The first place that was never used.
    unused: u32,
    changes: Changes,
}

/// The holders that entered and the holders that left.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Holders that left, with their places.
    pub(crate) left: Vec<(PermitId, u32)>,
    /// Holders that entered and have no place yet.
    pub(crate) entered: Vec<PermitId>,
}

impl Journal {
    /// Starts an empty journal, for a store in which no holder is written.
    pub(crate) fn begin(&mut self) {
        self.0 = Some(Box::default());
    }

    /// Returns true if a journal is kept.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the changes out. The caller writes them and returns the buffers with [`Journal::put_back`].
    pub(crate) fn take(&mut self) -> Changes {
        self.0.as_mut().map(|kept| mem::take(&mut kept.changes)).unwrap_or_default()
    }

    /// Keeps the allocations of changes that were written.
    pub(crate) fn put_back(&mut self, mut changes: Changes) {
        if let Some(kept) = &mut self.0 {
            changes.left.clear();
            changes.entered.clear();
            kept.changes = changes;
        }
    }

    /// Assigns a place to a holder, and returns it. A free place is reused first.
    pub(crate) fn place(&mut self, permit: PermitId) -> u32 {
        let Some(kept) = &mut self.0 else { return 0 };
        let place = kept.free.pop().unwrap_or_else(|| {
            kept.unused += 1;
            kept.unused - 1
        });
        kept.put(permit, place);
        place
    }

    /// Assigns the place that a holder had before.
    pub(crate) fn place_again(&mut self, permit: PermitId, place: u32) {
        if let Some(kept) = &mut self.0 {
            kept.put(permit, place);
        }
    }

    /// Frees the place of a holder that has left.
    pub(crate) fn free(&mut self, place: u32) {
        if let Some(kept) = &mut self.0 {
            kept.free.push(place);
        }
    }

    /// Records a holder that entered.
    #[inline]
    pub(super) fn entered(&mut self, permit: PermitId) {
        if let Some(kept) = &mut self.0 {
            kept.changes.entered.push(permit);
        }
    }

    /// Records a holder that left. If the store never wrote it, both changes cancel out.
    #[inline]
    pub(super) fn left(&mut self, permit: PermitId) {
        if let Some(kept) = &mut self.0 {
            kept.left(permit);
        }
    }
}

impl HolderChanges {
    fn put(&mut self, permit: PermitId, place: u32) {
        self.places.insert_unique(permit.number(), (permit, place), |(permit, _)| permit.number());
    }

    fn left(&mut self, permit: PermitId) {
        match self.places.find_entry(permit.number(), |(known, _)| *known == permit) {
            Ok(entry) => self.changes.left.push(entry.remove().0),
            Err(_) => self.changes.entered.retain(|entered| *entered != permit),
        }
    }
}

/// Returns an empty journal: a copy belongs to no store.
impl Clone for Journal {
    fn clone(&self) -> Journal {
        Journal(None)
    }
}

/// Returns true: a journal does not distinguish states.
impl PartialEq for Journal {
    fn eq(&self, _: &Journal) -> bool {
        true
    }
}

impl Eq for Journal {}
