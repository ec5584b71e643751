//! The limit of a limiter: read at every decision, replaced rarely.
//!
//! The first limit never changes, so a limiter whose limit is not replaced pays one atomic load per decision. After a
//! replacement, each thread caches the limit that it used last.

use std::cell::RefCell;
use std::sync::Arc;

use crate::limit::Limit;
use crate::store::MemoryStore;
use crate::store::bound::BoundLimit;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// A limit in a store, which can be replaced while other threads decide by it.
#[derive(Debug)]
pub(super) struct LimitInForce {
    /// The first limit, which is read without a lock until it is replaced.
    first: Arc<BoundLimit>,
    /// The number of replacements.
    version: AtomicUsize,
    latest: Mutex<(Limit, Arc<BoundLimit>)>,
}

/// A thread's cache of the replaced limit that it used last.
struct Remembered {
    /// The first limit of the handle, which identifies the handle.
    first: Arc<BoundLimit>,
    version: usize,
    bound: Arc<BoundLimit>,
}

thread_local! {
    static REPLACED: RefCell<Option<Remembered>> = const { RefCell::new(None) };
}

impl LimitInForce {
    /// Binds the first limit to the store.
    pub(super) fn new(memory: &MemoryStore, name: &str, limit: Limit) -> LimitInForce {
        let first = bind(memory, name, &limit);
        let latest = Mutex::new((limit, Arc::clone(&first)));
        LimitInForce { first, version: AtomicUsize::new(0), latest }
    }

    /// Returns the limit in force while it is the first one, else `None`.
    #[inline(always)]
    pub(super) fn unreplaced(&self) -> Option<&Arc<BoundLimit>> {
        (self.version.load(Ordering::Acquire) == 0).then_some(&self.first)
    }

    /// Calls `use_it` with the limit in force.
    #[inline]
    pub(super) fn with<R>(&self, use_it: impl FnOnce(&Arc<BoundLimit>) -> R) -> R {
        match self.version.load(Ordering::Acquire) {
            0 => use_it(&self.first),
            version => use_it(&self.replaced(version)),
        }
    }

    /// Returns a shared reference to the limit in force.
    pub(super) fn bound(&self) -> Arc<BoundLimit> {
        self.with(Arc::clone)
    }

    /// Returns the limit as it was given.
    pub(super) fn limit(&self) -> Limit {
        self.latest.lock().0
    }

    /// Replaces the limit.
    ///
    /// The store notes the time of the change, from which counts are carried. The version is incremented last, so a
    /// thread that sees it also sees the limit.
    pub(super) fn set(&self, memory: &MemoryStore, name: &str, limit: Limit) {
        let mut latest = self.latest.lock();
        *latest = (limit, bind(memory, name, &limit));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the limit in force after a replacement. A thread takes the lock only once per replacement, as long
    /// as it uses one limiter.
    #[inline(never)]
    fn replaced(&self, version: usize) -> Arc<BoundLimit> {
        let known = REPLACED.try_with(|known| match &*known.try_borrow().ok()? {
            Some(known) if Arc::ptr_eq(&known.first, &self.first) && known.version == version => {
                Some(Arc::clone(&known.bound))
            }
            _ => None,
        });
        if let Ok(Some(bound)) = known {
            return bound;
        }
        let latest = self.latest.lock();
        let (version, bound) = (self.version.load(Ordering::Acquire), Arc::clone(&latest.1));
        drop(latest);
        let remembered =
            Some(Remembered { first: Arc::clone(&self.first), version, bound: Arc::clone(&bound) });
        let before = REPLACED.try_with(|known| {
            known.try_borrow_mut().map(|mut known| std::mem::replace(&mut *known, remembered))
        });
        drop(before);
        bound
    }
}

/// Puts the limit of this name in force.
fn bind(memory: &MemoryStore, name: &str, limit: &Limit) -> Arc<BoundLimit> {
    Arc::new(BoundLimit::of_rule(memory.limits(), name, limit, memory.clock().now()))
}
