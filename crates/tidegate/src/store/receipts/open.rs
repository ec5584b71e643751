//! The receipt of one tracked take.

use std::any::Any;
use std::fmt;

use super::Ticket;
use crate::ask::Cost;
use crate::receipt::Receipt;

/// Proof of one take, by which its units can be refunded, in parts and in any order among other takes.
///
/// A refund gives back at most what of that take is still owed: what time has repaid does not come back. A receipt that is
/// dropped leaves the take charged, and its store forgets it. Stores keep a bounded number of them; a receipt beyond that
/// is worthless.
#[must_use = "a receipt that is dropped cannot be refunded"]
pub struct OpenReceipt {
    units: u64,
    pub(crate) whereabouts: Whereabouts,
}

/// What a store knows about the units of a take.
pub(crate) enum Whereabouts {
    /// Where the receipt says, in a window, an entry or a slot, as long as its ticket is open.
    Named(Receipt, Ticket),
    /// They are places in flight, which the permit names.
    Held(Receipt),
    /// They are a debt whose place in the queue a table knows.
    Queued(Ticket),
    /// They are a debt in a queue that other processes use as well, as long as its ticket is open.
    Unordered(Receipt, Ticket),
    /// They cannot be found again.
    Lost,
    /// What a store outside of this crate has to know.
    Remote(Box<dyn Any + Send + Sync>),
}

impl OpenReceipt {
    pub(crate) fn new(cost: Cost, whereabouts: Whereabouts) -> OpenReceipt {
        OpenReceipt { units: cost.get(), whereabouts }
    }

    /// The receipt of a store that keeps what it has to know about the take in `proof`.
    pub fn remote(cost: Cost, proof: impl Any + Send + Sync) -> OpenReceipt {
        OpenReceipt::new(cost, Whereabouts::Remote(Box::new(proof)))
    }

    /// What [`OpenReceipt::remote`] was given, if it was of this type.
    pub fn proof<T: Any>(&self) -> Option<&T> {
        match &self.whereabouts {
            Whereabouts::Remote(proof) => proof.downcast_ref(),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn proof_mut<T: Any>(&mut self) -> Option<&mut T> {
        match &mut self.whereabouts {
            Whereabouts::Remote(proof) => proof.downcast_mut(),
            _ => None,
        }
    }

    /// The units that were not refunded yet.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Uses up so many units, or as many as are left; nothing if none are. For a store, before it gives them back.
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
