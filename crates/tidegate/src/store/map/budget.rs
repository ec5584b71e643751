//! How much a map may hold, and how much it does.
//!
//! An eighth of the bytes is kept for tables that move to another size, so that a full map can always shrink.

use crate::sync::{AtomicUsize, Ordering};

/// The bounds of a map and what counts towards them.
#[derive(Debug)]
pub(super) struct Budget {
    max_keys: usize,
    max_bytes: usize,
    keys: AtomicUsize,
    bytes: AtomicUsize,
}

impl Budget {
    pub(super) fn new(max_keys: usize, max_bytes: usize) -> Budget {
        Budget { max_keys, max_bytes, keys: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    pub(super) fn max_keys(&self) -> usize {
        self.max_keys
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts one more key of this size, if there is room for it.
    pub(super) fn add_key(&self, bytes: usize) -> bool {
        if !add_up_to(&self.keys, 1, self.max_keys) {
            return false;
        }
        let fits = self.grow(bytes);
        if !fits {
            self.keys.fetch_sub(1, Ordering::Relaxed);
        }
        fits
    }

    /// Counts a key of this size no longer.
    pub(super) fn remove_key(&self, bytes: usize) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of keys and states, if there is room for them.
    pub(super) fn grow(&self, bytes: usize) -> bool {
        add_up_to(&self.bytes, bytes, self.max_bytes - self.max_bytes / 8)
    }

    /// Counts the bytes of a table, if there is room for it.
    pub(super) fn add_table(&self, bytes: usize) -> bool {
        add_up_to(&self.bytes, bytes, self.max_bytes)
    }

    /// Counts a state of `after` bytes where `before` were counted.
    pub(super) fn settle(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(0) => {}
            // Only a limit that was changed can do this, by cutting its window into more slots.
            Some(more) => {
                self.bytes.fetch_add(more, Ordering::Relaxed);
            }
            None => self.shrink(before - after),
        }
    }

    /// Counts these bytes no longer.
    pub(super) fn shrink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Adds to a sum unless it would exceed this.
fn add_up_to(sum: &AtomicUsize, more: usize, most: usize) -> bool {
    let added = |held: usize| held.checked_add(more).filter(|held| *held <= most);
    more == 0 || sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added).is_ok()
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_and_the_last_byte_fit_and_one_more_does_not() {
        let budget = Budget::new(2, 800);
        assert!(budget.add_key(300));
        assert!(!budget.add_key(401), "700 of the 800 bytes are for keys and states");
        assert!(budget.add_key(400));
        assert_eq!((budget.keys(), budget.bytes()), (2, 700));
        assert!(!budget.add_key(0), "two keys are the most");
        assert!(!budget.grow(1));
        assert!(budget.grow(0));
        assert!(budget.add_table(100));
        assert!(!budget.add_table(1));
        assert!(!budget.add_table(usize::MAX));
        budget.remove_key(300);
        budget.shrink(100);
        assert_eq!((budget.keys(), budget.bytes()), (1, 400));
        assert!(budget.add_key(300));
    }
}
