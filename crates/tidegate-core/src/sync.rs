//! Locks and atomics of the library: the standard ones, or those of loom, which explores every thread interleaving.
//! The models therefore run the files that are shipped.

use std::fmt;
use std::sync::{PoisonError, TryLockError};

#[cfg(tidegate_models)]
use loom::sync as imp;
#[cfg(not(tidegate_models))]
use std::sync as imp;

pub(crate) use imp::MutexGuard;
pub(crate) use imp::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// A lock that ignores poisoning: no code that runs under it leaves its data half changed.
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    /// Waits for the lock.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lock, if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Prints no content, because that would take the lock.
impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Mutex")
    }
}

/// A value alone in its cache lines, which avoids false sharing. Some processors fetch lines of 64 bytes in pairs, so
/// it takes 128.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);
