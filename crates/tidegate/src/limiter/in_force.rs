//! The limit of a limiter: read at every decision, replaced now and then.

use std::cell::RefCell;
use std::sync::Arc;

use crate::limit::Limit;
use crate::store::Memory;
use crate::store::bound::BoundLimit;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// A limit in a store, which can be replaced while others decide by it.
#[derive(Debug)]
pub(super) struct LimitInForce {
    /// The one that it began with, which is read plainly as long as it was never replaced.
    first: Arc<BoundLimit>,
    /// How often it was replaced.
    version: AtomicUsize,
    latest: Mutex<(Limit, Arc<BoundLimit>)>,
}

/// The limit that a thread has used last, of those that were replaced.
struct Remembered {
    /// The first limit of the handle, which tells handles apart.
    first: Arc<BoundLimit>,
    version: usize,
    bound: Arc<BoundLimit>,
}

thread_local! {
    static REPLACED: RefCell<Option<Remembered>> = const { RefCell::new(None) };
}

impl LimitInForce {
    pub(super) fn new(memory: &Memory, name: &str, limit: Limit) -> LimitInForce {
        let first = bind(memory, name, &limit);
        let latest = Mutex::new((limit, Arc::clone(&first)));
        LimitInForce { first, version: AtomicUsize::new(0), latest }
    }

    /// The limit in force, as long as it is the first one.
    #[inline(always)]
    pub(super) fn unreplaced(&self) -> Option<&Arc<BoundLimit>> {
        (self.version.load(Ordering::Acquire) == 0).then_some(&self.first)
    }

    /// Uses the limit in force.
    #[inline]
    pub(super) fn with<R>(&self, use_it: impl FnOnce(&Arc<BoundLimit>) -> R) -> R {
        match self.version.load(Ordering::Acquire) {
            0 => use_it(&self.first),
            version => use_it(&self.replaced(version)),
        }
    }

    /// The limit in force, for as long as the caller wants.
    pub(super) fn bound(&self) -> Arc<BoundLimit> {
        self.with(Arc::clone)
    }

    /// The limit as it was given.
    pub(super) fn limit(&self) -> Limit {
        self.latest.lock().0
    }

    /// Puts another limit in force.
    pub(super) fn set(&self, memory: &Memory, name: &str, limit: Limit) {
        let mut latest = self.latest.lock();
        *latest = (limit, bind(memory, name, &limit));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// A thread asks for the lock only once after each change.
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

/// The limit of this name comes into force.
fn bind(memory: &Memory, name: &str, limit: &Limit) -> Arc<BoundLimit> {
    Arc::new(BoundLimit::of_rule(memory.limits(), name, limit, memory.clock().now()))
}
