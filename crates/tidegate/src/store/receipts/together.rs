//! Several tracked takes that stand or fall together.

use super::shard::Shard;
use super::{OpenReceipt, Receipts, StateId, TrackedDecisions};
use crate::receipt::Receipt;
use crate::store::together::{Bid, take_with_receipts};
use crate::sync::MutexGuard;

/// Spends on all, or on none; with a receipt for each take.
pub(crate) fn take_all_tracked(bids: &[Bid<'_>]) -> TrackedDecisions {
    let mut locks = Locks::of(bids);
    let (decisions, receipts) = take_with_receipts(bids);
    let open = bids
        .iter()
        .zip(receipts)
        .map(|(bid, receipt)| OpenReceipt::of(bid.account, receipt?, |receipt| locks.enter(bid, receipt)));
    let receipts = open.collect();
    TrackedDecisions { decisions, receipts }
}

/// A part of the table of some store.
type Part = (usize, usize);

/// The receipts of all bids, locked in one order for everybody.
struct Locks<'a> {
    parts: Vec<(Part, MutexGuard<'a, Shard>)>,
}

impl<'a> Locks<'a> {
    fn of(bids: &[Bid<'a>]) -> Locks<'a> {
        let mut places: Vec<_> = bids.iter().filter_map(place).collect();
        places.sort_unstable_by_key(|(part, ..)| *part);
        places.dedup_by_key(|(part, ..)| *part);
        let lock =
            |(part, receipts, _): (Part, &'a Receipts, StateId)| (part, receipts.shards[part.1].0.lock());
        Locks { parts: places.into_iter().map(lock).collect() }
    }

    fn enter(&mut self, bid: &Bid<'a>, receipt: &Receipt) -> Option<super::Ticket> {
        let (part, receipts, id) = place(bid)?;
        let found = self.parts.binary_search_by_key(&part, |(part, _)| *part).ok()?;
        let shard = &mut self.parts[found].1;
        Some(receipts.enter(shard, (part.1, id), bid.account.terms(), receipt))
    }
}

/// Where the receipt of a bid is kept, if a table keeps it.
fn place<'a>(bid: &Bid<'a>) -> Option<(Part, &'a Receipts, StateId)> {
    let receipts = bid.holder.receipts().filter(|_| bid.account.terms().queues_debts())?;
    let id = receipts.id(bid.account.digest(), bid.account.name().bytes());
    let (index, _) = receipts.shard(id);
    Some(((std::ptr::from_ref(receipts) as usize, index), receipts, id))
}
