//! The limit that is in force: read at every decision, replaced now and then.

use super::{Limit, LimitError, Terms};
use crate::published::Published;
use crate::sync::Mutex;

/// A limit that can be replaced while others decide by it.
#[derive(Debug)]
pub(crate) struct CurrentLimit {
    terms: Published<6>,
    limit: Mutex<Limit>,
}

impl CurrentLimit {
    pub(crate) fn new(limit: Limit) -> CurrentLimit {
        CurrentLimit { terms: Published::new(limit.terms().pack()), limit: Mutex::new(limit) }
    }

    /// What to decide by.
    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        Terms::unpack(self.terms.read())
    }

    /// The limit as it was given.
    pub(crate) fn limit(&self) -> Limit {
        *self.limit.lock()
    }

    /// Puts another limit in force.
    pub(crate) fn set(&self, limit: Limit) {
        let mut current = self.limit.lock();
        self.terms.replace(|_| limit.terms().pack());
        *current = limit;
    }

    /// Puts another limit in force, made from the one that is, if it holds.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(Limit) -> Result<Limit, LimitError>,
    ) -> Result<(), LimitError> {
        let mut current = self.limit.lock();
        let limit = change(*current)?;
        self.terms.replace(|_| limit.terms().pack());
        *current = limit;
        Ok(())
    }
}
