//! Several tracked takes that are allowed or denied together.
//!
//! The receipts of all states are locked first, then the states themselves. Shards are sorted by the address of their
//! table and their index. All threads lock in this one order, and no shard twice.

use super::shard::ReceiptShard;
use super::{ReceiptEntry, Receipts, StateId};
use crate::algorithm::Interval;
use crate::decisions::Decisions;
use crate::store::together::{Bid, take_with_receipts};
use crate::sync::MutexGuard;

/// Spends on all, or on none, and returns a receipt for each take.
pub(crate) fn take_all_tracked(bids: &[Bid<'_>]) -> Decisions {
    let mut locks = Locks::of(bids);
    let (decisions, receipts) = take_with_receipts(bids);
    let open = bids.iter().zip(receipts).map(|(bid, receipt)| {
        let enter = |interval| locks.enter(bid, interval);
        bid.holder.receipts().open(bid.account, receipt?, enter)
    });
    let receipts = open.collect();
    decisions.with_receipts(receipts)
}

/// A shard of the table of some store.
type ReceiptPart = (usize, usize);

/// The receipts of all bids, which all threads lock in one order.
struct Locks<'a> {
    /// The locked shards, sorted, each once.
    parts: Vec<(ReceiptPart, MutexGuard<'a, ReceiptShard>)>,
}

impl<'a> Locks<'a> {
    /// Locks the shards of all bids.
    fn of(bids: &[Bid<'a>]) -> Locks<'a> {
        let mut places: Vec<_> = bids.iter().map(place).collect();
        places.sort_unstable_by_key(|(part, ..)| *part);
        places.dedup_by_key(|(part, ..)| *part);
        let lock = |(part, receipts, _): (ReceiptPart, &'a Receipts, StateId)| {
            (part, receipts.shards[part.1].0.lock())
        };
        Locks { parts: places.into_iter().map(lock).collect() }
    }

    /// Enters the take of a bid under the lock that is already held.
    fn enter(&mut self, bid: &Bid<'a>, interval: Option<Interval>) -> ReceiptEntry {
        let (part, receipts, id) = place(bid);
        let found = self.parts.binary_search_by_key(&part, |(part, _)| *part);
        let shard = &mut self.parts[found.expect("every bid is locked")].1;
        shard.see(bid.holder.clock().now());
        let number = shard.enter(id, bid.account.terms(), interval);
        receipts.ticket(part.1, number)
    }
}

/// Returns the location of a bid's receipt.
fn place<'a>(bid: &Bid<'a>) -> (ReceiptPart, &'a Receipts, StateId) {
    let receipts = bid.holder.receipts();
    let id = receipts.id(bid.account.digest(), bid.account.name().bytes());
    let (index, _) = receipts.shard(id);
    ((std::ptr::from_ref(receipts) as usize, index), receipts, id)
}
