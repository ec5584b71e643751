//! A take for one who waits, which goes back if it is not picked up.

use super::Venue;
use crate::ask::{Ask, Cost};
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::store::OpenReceipt;
use crate::store::name::Account;
use crate::time::Timestamp;

/// A take, and from where.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) decision: Decision,
    pub(super) account: Account,
    proof: Proof,
}

/// What a take can be given back with.
#[derive(Debug)]
enum Proof {
    Plain(Option<Receipt>),
    Tracked(Option<OpenReceipt>),
}

impl Taken {
    /// Takes if it passes, now or as of the given time; if not, there is only a decision.
    pub(super) fn take(
        venue: &dyn Venue,
        account: &Account,
        (ask, is_tracked): (Ask, bool),
        at: Option<Timestamp>,
    ) -> Taken {
        let (decision, proof) = if is_tracked {
            let (decision, receipt) = venue.take_if_free_tracked(account, ask, at);
            (decision, Proof::Tracked(receipt))
        } else {
            let (decision, receipt) = venue.take_if_free(account, ask, at);
            (decision, Proof::Plain(receipt))
        };
        Taken { decision, account: account.clone(), proof }
    }

    pub(super) fn give_back(self, venue: &dyn Venue) {
        match self.proof {
            Proof::Plain(Some(receipt)) => venue.give_back(&self.account, receipt),
            Proof::Tracked(Some(mut receipt)) => {
                if let Ok(all) = Cost::new(receipt.units()) {
                    venue.refund(&self.account, &mut receipt, all);
                }
            }
            Proof::Plain(None) | Proof::Tracked(None) => {}
        }
    }

    /// The account and the receipt of a tracked take.
    pub(super) fn into_tracked(self) -> (Account, Option<OpenReceipt>) {
        let receipt = match self.proof {
            Proof::Plain(_) => None,
            Proof::Tracked(receipt) => receipt,
        };
        (self.account, receipt)
    }
}
