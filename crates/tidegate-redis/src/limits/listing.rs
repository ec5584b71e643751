//! The table entries that this process has written, and the limits under which it has written states since.
//!
//! The cache prevents that a table is written or read by decisions. It is lost with the process; limits are then listed
//! again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::Timestamp;
use tokio::sync::Notify;

use crate::link::MemoryId;
use crate::script::{InForce, LimitName, ListedEntry, TableEntry};

/// The maximum number of cached listings, and of limits that are checked at once.
const MAX_LISTINGS: usize = 8192;

/// The limits that this process has listed.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    /// All listings, by the name of the limit.
    known: Mutex<HashMap<LimitName, Arc<Listing>>>,
    /// The limits under which states were written since their tables were read.
    written: Mutex<Vec<Arc<Listing>>>,
    /// Notified when the first of them is added.
    has_written: Notify,
}

/// A limit that this process has listed, or will list.
#[derive(Debug)]
pub(super) struct Listing {
    /// The table and the field of the limit.
    pub(super) entry: TableEntry,
    /// The slot of its table.
    pub(super) slot: u16,
    /// The FIFO queue of requests that wait for the limit to be listed.
    pub(super) turns: tokio::sync::Mutex<()>,
    /// The entry as last written; `None` before the first time.
    listed: Mutex<Option<Listed>>,
    /// True while the listing is in `written`.
    is_written: AtomicBool,
}

/// An entry that this process has written, and the identity of the memory that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    /// The memory that has the entry.
    pub(super) seat: MemoryId,
    /// The position and the end that were written.
    pub(super) entry: ListedEntry,
}

impl Listings {
    /// Returns the listing of a limit. The same name always yields the same listing, so concurrent requests list a
    /// limit once.
    pub(super) fn of(&self, name: &LimitName, entry: impl FnOnce() -> TableEntry) -> Arc<Listing> {
        let mut known = lock(&self.known);
        if let Some(listing) = known.get(name) {
            return Arc::clone(listing);
        }
        if known.len() >= MAX_LISTINGS {
            // Limits that are used again are listed once more.
            known.clear();
        }
        Arc::clone(known.entry(name.clone()).or_insert_with(|| Arc::new(Listing::new(entry()))))
    }

    /// Records that a state was written under this limit, so that its table is read within a second. Beyond the
    /// maximum, nothing is recorded; the next take of the limit records it again.
    pub(super) fn wrote(&self, listing: &Arc<Listing>) {
        if listing.is_written.load(Ordering::Relaxed) || listing.is_written.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut written = lock(&self.written);
        if written.len() >= MAX_LISTINGS {
            listing.is_written.store(false, Ordering::Relaxed);
            return;
        }
        written.push(Arc::clone(listing));
        if written.len() == 1 {
            self.has_written.notify_one();
        }
    }

    /// Resolves when a state was written since the last [`Listings::take_written`].
    pub(super) async fn written(&self) {
        self.has_written.notified().await;
    }

    /// Removes and returns the limits under which states were written.
    pub(super) fn take_written(&self) -> Vec<Arc<Listing>> {
        let written = std::mem::take(&mut *lock(&self.written));
        written.iter().for_each(|listing| listing.is_written.store(false, Ordering::Relaxed));
        written
    }

    /// Leaves tables alone until further states are written, because they are about to be deleted.
    pub(crate) fn forget_written(&self) {
        drop(self.take_written());
    }
}

impl Listing {
    fn new(entry: TableEntry) -> Listing {
        let (slot, turns) = (entry.slot(), tokio::sync::Mutex::default());
        Listing { entry, slot, turns, listed: Mutex::default(), is_written: AtomicBool::new(false) }
    }

    /// Returns the entry as last written.
    pub(super) fn listed(&self) -> Option<Listed> {
        *lock(&self.listed)
    }

    /// Returns true if the table in this memory lists the limit at this position and until this time. An entry in
    /// another memory does not count: it may be lost.
    pub(super) fn covers(&self, seat: Option<MemoryId>, force: InForce, until: Timestamp) -> bool {
        let is_there = |Listed { seat: written, entry }: Listed| {
            seat == Some(written) && until <= entry.until && force.order <= entry.force.order
        };
        self.listed().is_some_and(is_there)
    }

    /// Records that the entry was written. An entry in another memory replaces it as a whole.
    pub(super) fn note(&self, mut new: Listed) {
        let mut listed = lock(&self.listed);
        // An existing entry is never shortened, and keeps its position.
        if let Some(known) = listed.filter(|known| known.seat == new.seat) {
            new.entry.until = new.entry.until.max(known.entry.until);
            if known.entry.force.order > new.entry.force.order {
                new.entry.force = known.entry.force;
            }
        }
        *listed = Some(new);
    }
}

/// Locks a mutex. Its data is valid after a panic, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Limit, PreparedLimit};

    use super::*;

    fn listing(listings: &Listings, amount: u64) -> Arc<Listing> {
        let limit = PreparedLimit::dynamic("user", Limit::per_day(amount));
        let name = LimitName::of(&limit);
        listings.of(&name, || TableEntry::new(b"tg:", &limit, &name))
    }

    fn at(ticks: u64) -> Timestamp {
        Timestamp::from_ticks(ticks)
    }

    fn listed(seat: MemoryId, order: u64, until: u64) -> Listed {
        let force = InForce { order, since: Timestamp::EPOCH };
        Listed { seat, entry: ListedEntry { force, until: at(until) } }
    }

    #[test]
    fn an_entry_is_in_one_memory_only() {
        let (listings, seat) = (Listings::default(), MemoryId::for_tests(1, 0));
        let (one, same) = (listing(&listings, 1), listing(&listings, 1));
        let covers = |seat, until| same.covers(seat, InForce::default(), at(until));
        assert!(!covers(Some(seat), 0), "it was never listed");
        one.note(listed(seat, 0, 9));
        assert!(covers(Some(seat), 9) && !covers(Some(seat), 10));
        for other in [None, Some(MemoryId::for_tests(2, 0)), Some(MemoryId::for_tests(1, 1))] {
            assert!(!covers(other, 0), "{other:?}");
        }
        one.note(listed(MemoryId::for_tests(1, 1), 0, 3));
        assert!(covers(Some(MemoryId::for_tests(1, 1)), 3) && !covers(Some(MemoryId::for_tests(1, 1)), 4));
    }

    #[test]
    fn an_entry_of_one_memory_keeps_its_place_and_its_end() {
        let (listings, seat) = (Listings::default(), MemoryId::for_tests(1, 0));
        let one = listing(&listings, 1);
        let covers =
            |order, until| one.covers(Some(seat), InForce { order, since: Timestamp::EPOCH }, at(until));
        one.note(listed(seat, 0, 9));
        assert!(covers(0, 9) && !covers(2, 9), "it was listed beside the rule");
        one.note(listed(seat, 2, 5));
        one.note(listed(seat, 0, 6));
        assert!(covers(2, 9) && !covers(3, 9) && !covers(2, 10));
    }

    #[test]
    fn no_more_are_looked_after_than_there_is_room_for() {
        let listings = Listings::default();
        let all: Vec<_> = (1..=MAX_LISTINGS as u64 + 1).map(|amount| listing(&listings, amount)).collect();
        for _ in 0..2 {
            all[..MAX_LISTINGS].iter().for_each(|listing| listings.wrote(listing));
            listings.wrote(&all[0]);
            assert_eq!(lock(&listings.written).len(), MAX_LISTINGS, "each is in it once");
            listings.wrote(&all[MAX_LISTINGS]);
            assert_eq!(listings.take_written().len(), MAX_LISTINGS);
            listings.wrote(&all[MAX_LISTINGS]);
            assert_eq!(listings.take_written().len(), 1, "one that found no room comes back");
        }
        assert!(listings.take_written().is_empty());
    }
}
