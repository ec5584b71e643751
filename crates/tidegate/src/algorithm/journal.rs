//! The holders of permits that changed since a store wrote them down.
//!
//! A store that writes holders one by one has to know which of them came and which left: a walk over all of them would
//! cost more than the decision. Other stores keep no journal, and it costs them a comparison.

use std::mem;

use hashbrown::HashTable;

use crate::decision::PermitId;

/// The changes since the last call of [`Journal::take`], and the place of each holder in the store. It is no part of the
/// state: a copy has none, and two states are equal whatever their journals say.
#[derive(Debug, Default)]
pub(crate) struct Journal(Option<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// The place of each holder that is written down.
    places: HashTable<(PermitId, u32)>,
    /// Places that became free.
    free: Vec<u32>,
    /// The first place that was never used.
    unused: u32,
    changes: Changes,
}

/// Holders that came and holders that left.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Those who left, with their places.
    pub(crate) left: Vec<(PermitId, u32)>,
    /// Those who came and have no place yet.
    pub(crate) entered: Vec<PermitId>,
}

impl Journal {
    /// Begins anew, for a store in which nothing is written down.
    pub(crate) fn begin(&mut self) {
        self.0 = Some(Box::default());
    }

    /// Returns true if it is kept.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// The changes, to be written down and handed back.
    pub(crate) fn take(&mut self) -> Changes {
        self.0.as_mut().map(|kept| mem::take(&mut kept.changes)).unwrap_or_default()
    }

    /// Keeps the memory of changes that were written down.
    pub(crate) fn put_back(&mut self, mut changes: Changes) {
        if let Some(kept) = &mut self.0 {
            changes.left.clear();
            changes.entered.clear();
            kept.changes = changes;
        }
    }

    /// A place for a holder.
    pub(crate) fn place(&mut self, permit: PermitId) -> u32 {
        let Some(kept) = &mut self.0 else { return 0 };
        let place = kept.free.pop().unwrap_or_else(|| {
            kept.unused += 1;
            kept.unused - 1
        });
        kept.put(permit, place);
        place
    }

    /// Gives a holder the place that it had before.
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

    #[inline]
    pub(super) fn entered(&mut self, permit: PermitId) {
        if let Some(kept) = &mut self.0 {
            kept.changes.entered.push(permit);
        }
    }

    #[inline]
    pub(super) fn left(&mut self, permit: PermitId) {
        if let Some(kept) = &mut self.0 {
            kept.left(permit);
        }
    }
}

impl Kept {
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

impl Clone for Journal {
    fn clone(&self) -> Journal {
        Journal(None)
    }
}

impl PartialEq for Journal {
    fn eq(&self, _: &Journal) -> bool {
        true
    }
}

impl Eq for Journal {}
