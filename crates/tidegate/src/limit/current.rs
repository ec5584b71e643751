//! The limit that is in force: read at every decision, replaced now and then.

use super::{Limit, Terms};
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

    /// Puts another limit in force, made from the one that is; `before` sees both just before that.
    pub(crate) fn replace<E>(
        &self,
        change: impl FnOnce(Limit) -> Result<Limit, E>,
        before: impl FnOnce(&Terms, &Terms),
    ) -> Result<(), E> {
        let mut limit = self.limit.lock();
        let next = change(*limit)?;
        before(limit.terms(), next.terms());
        self.terms.replace(|_| next.terms().pack());
        *limit = next;
        Ok(())
    }
}
