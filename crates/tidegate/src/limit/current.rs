//! The limit that is in force: read at every decision, replaced now and then.

use super::{Limit, LimitError, Terms};
use crate::published::Published;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// A limit that can be replaced while others decide by it.
#[derive(Debug)]
pub(crate) struct CurrentLimit {
    /// The one that it began with, which is read plainly as long as it was never replaced.
    first: Terms,
    replaced: AtomicUsize,
    terms: Published<6>,
    limit: Mutex<Limit>,
}

impl CurrentLimit {
    pub(crate) fn new(limit: Limit) -> CurrentLimit {
        CurrentLimit {
            first: *limit.terms(),
            replaced: AtomicUsize::new(0),
            terms: Published::new(limit.terms().pack()),
            limit: Mutex::new(limit),
        }
    }

    /// What to decide by.
    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        match self.unreplaced() {
            Some(terms) => *terms,
            None => self.published(),
        }
    }

    /// The same without a copy, as long as it was never replaced.
    #[inline]
    pub(crate) fn unreplaced(&self) -> Option<&Terms> {
        (self.replaced.load(Ordering::Acquire) == 0).then_some(&self.first)
    }

    #[inline(never)]
    fn published(&self) -> Terms {
        Terms::unpack(self.terms.read())
    }

    /// The limit as it was given.
    pub(crate) fn limit(&self) -> Limit {
        *self.limit.lock()
    }

    /// Puts another limit in force.
    pub(crate) fn set(&self, limit: Limit) {
        self.put(&mut self.limit.lock(), limit);
    }

    /// Puts another limit in force, made from the one that is, if it holds.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(Limit) -> Result<Limit, LimitError>,
    ) -> Result<(), LimitError> {
        let mut current = self.limit.lock();
        let limit = change(*current)?;
        self.put(&mut current, limit);
        Ok(())
    }

    fn put(&self, current: &mut Limit, limit: Limit) {
        self.terms.replace(|_| limit.terms().pack());
        self.replaced.store(1, Ordering::Release);
        *current = limit;
    }
}
