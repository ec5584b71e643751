//! The receipt of one tracked take.

use std::any::Any;
use std::fmt;

use super::ReceiptEntry;
use crate::ask::Cost;
use crate::receipt::Receipt;

/// A receipt of one take, by which its units can be refunded, in parts and in any order among other takes.
///
/// A refund gives back at most the units of that take that are still owed: quota that time has restored is not given
/// back. If a receipt is dropped, the take stays charged, and its store removes the entry. Stores keep a bounded number
/// of receipts; the oldest beyond that become invalid.
#[doc(alias = "idempotent refund")]
#[doc(alias = "reservation")]
#[doc(alias = "receipt")]
#[must_use = "a receipt that is dropped cannot be refunded"]
pub struct OpenReceipt {
    units: u64,
    pub(crate) whereabouts: Whereabouts,
}

/// The location of the units of a take.
pub(crate) enum Whereabouts {
    /// The units are in a window, an entry or a slot that the receipt locates, while its ticket is open.
    Named(Receipt, ReceiptEntry),
    /// The units are in flight, identified by the permit.
    Held(Receipt),
    /// The units are a debt, whose place in the queue is in a table.
    Queued(ReceiptEntry),
    /// The units are a debt in a queue that other processes use as well, while its ticket is open.
    Unordered(Receipt, ReceiptEntry),
    /// The units cannot be found again.
    Lost,
    /// The data of a store outside of this crate.
    Remote(Box<dyn Any + Send + Sync>),
}

impl OpenReceipt {
    pub(crate) fn new(cost: Cost, whereabouts: Whereabouts) -> OpenReceipt {
        OpenReceipt { units: cost.get(), whereabouts }
    }

    /// Creates the receipt of a store that keeps its data about the take in `proof`.
    pub fn remote(cost: Cost, proof: impl Any + Send + Sync) -> OpenReceipt {
        OpenReceipt::new(cost, Whereabouts::Remote(Box::new(proof)))
    }

    /// Returns the `proof` of [`OpenReceipt::remote`], if it has this type.
    pub fn proof<T: Any>(&self) -> Option<&T> {
        match &self.whereabouts {
            Whereabouts::Remote(proof) => proof.downcast_ref(),
            _ => None,
        }
    }

    /// Returns the `proof` of [`OpenReceipt::remote`] for a change, if it has this type.
    pub fn proof_mut<T: Any>(&mut self) -> Option<&mut T> {
        match &mut self.whereabouts {
            Whereabouts::Remote(proof) => proof.downcast_mut(),
            _ => None,
        }
    }

    /// Returns the units that were not refunded yet.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Uses up `cost` units, or as many as are left. Returns their number, or `None` if none are left. A store calls
    /// this before it gives the units back.
    pub fn use_up(&mut self, cost: Cost) -> Option<Cost> {
        let used = Cost::new(cost.get().min(self.units)).ok()?;
        self.units -= used.get();
        Some(used)
    }
}

impl fmt::Debug for OpenReceipt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OpenReceipt").field("units", &self.units).finish_non_exhaustive()
    }
}
