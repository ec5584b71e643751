//! Atomic takes under several limits: all limits are peeked, and only if every one allows, all are taken from.
//!
//! Maps are locked meanwhile, so no other take interferes there. A zone cannot be locked. Its takes come first, and if
//! one of them finds that another thread was faster, the takes before it are undone. Another caller may be denied in
//! that moment; no caller is admitted too much.
//!
//! One key under two limits is two states. One state that is asked for twice is decided as one ask (`twins.rs`).
//!
//! A bid that is only a peek, at a ban, has to be allowed like the others, and nothing is spent on it. Its state is in a
//! map, and stays locked until the others are taken.
//!
//! ```text
//!   1 peek   every bid; the last one of a zone alone needs none
//!   2 spend  bids of zones one by one, then bids of maps under their locks
//!   3 undo   if a take of a zone was denied after its peek: the takes before it, in reverse order
//!   4 deny   if a peek was denied: apply the denial to each limit that denies by itself
//! ```

use super::LimitStore;
use super::map::{self, LockedShards};
use super::state_key::StateKey;
use super::twins::Twins;
use super::zone::Zone;
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::decisions::Decisions;
use crate::few::Few;
use crate::receipt::Receipt;
use crate::time::Timestamp;

/// One of several asks that are allowed or denied together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bid<'a> {
    /// The store that holds the state: a zone, or a map for states of more than one word.
    pub(crate) holder: LimitStore<'a>,
    /// The name and the limit of the state.
    pub(crate) account: &'a StateKey,
    /// The cost and the longest delay of this bid.
    pub(crate) ask: Ask,
    /// True if nothing is spent on it. Its state is in a map.
    pub(crate) is_peek: bool,
}

impl<'a> Bid<'a> {
    /// Returns the bid for a map; `None` if its state is in a zone.
    fn of_map(&self) -> Option<map::MapBid<'a>> {
        let LimitStore::Map(map) = self.holder else { return None };
        Some(map::MapBid { map, account: self.account, ask: self.ask, is_peek: self.is_peek })
    }
}

/// Spends on all, or on none. Without bids it is allowed. No receipt is computed.
pub(crate) fn take_all(bids: &[Bid<'_>]) -> Decisions {
    take(None, bids, None)
}

/// Undoes `taken`, the takes of the first bids of zones, and then spends on all or on none. Decides as of a recent
/// reading of the clock, if one is given.
pub(crate) fn take_again(at: Option<Timestamp>, bids: &[Bid<'_>], taken: Vec<Receipt>) -> Decisions {
    let undone: Few<_> = bids.iter().filter_map(|bid| ZoneBid::of(bid, at)).zip(taken).collect();
    // In reverse order: each undo finds the state as its take has left it.
    undone.into_iter().rev().for_each(|(bid, receipt)| bid.undo(receipt));
    take(at, bids, None)
}

/// Spends on all or on none, and returns a receipt of each take. The caller has locked the open receipts of all bids.
pub(crate) fn take_with_receipts(bids: &[Bid<'_>]) -> (Decisions, Vec<Option<Receipt>>) {
    let mut receipts = Vec::new();
    let decisions = take(None, bids, Some(&mut receipts));
    (decisions, receipts)
}

/// Decides all bids. The decisions are returned in the order of the bids; inside, bids of zones come before bids of
/// maps, because takes of zones can be denied after their peek.
fn take(at: Option<Timestamp>, bids: &[Bid<'_>], receipts: Option<&mut Vec<Option<Receipt>>>) -> Decisions {
    let zone_bids: Few<_> = bids.iter().filter_map(|bid| ZoneBid::of(bid, at)).collect();
    let map_bids: Few<_> = bids.iter().filter_map(Bid::of_map).collect();
    // Everything below is in this order: bids of zones, then bids of maps.
    let mut order: Few<_> = (0..bids.len()).collect();
    order.sort_by_key(|place| matches!(bids[*place].holder, LimitStore::Map(_)));
    let zones = zone_bids.len();
    let mut held = LockedShards::lock(at, &map_bids);
    if receipts.is_some() {
        held.keep_receipts();
    }
    let twins = Twins::of(order.iter().map(|place| {
        let Bid { account, ask, is_peek, .. } = &bids[*place];
        (!is_peek).then_some((*account, *ask))
    }));
    let peek = |held: &LockedShards<'_>, bid: usize, ask| match zone_bids.get(bid) {
        Some(zone_bid) => ZoneBid { ask, ..*zone_bid }.peek(),
        None => held.peek_as(bid - zones, ask),
    };
    let peek_own = |held: &LockedShards<'_>, bid: usize| peek(held, bid, bids[order[bid]].ask);
    let deny_twins = |held: &LockedShards<'_>, decisions: &mut [Decision]| {
        let state = |bid: usize| match zone_bids.get(bid) {
            Some(zone_bid) => zone_bid.state(),
            None => held.state_of(bid - zones),
        };
        twins.deny(decisions, |bid, ask| peek(held, bid, ask), state);
    };
    // The first take needs no peek: if it is denied, nothing is spent yet.
    let is_alone = map_bids.is_empty() && twins.is_empty();
    let looked_at = bids.len().saturating_sub(usize::from(is_alone));
    let mut decisions: Few<_> = (0..looked_at).map(|bid| peek_own(&held, bid)).collect();
    let mut passes = decisions.iter().all(Decision::is_allowed);
    if passes && !twins.is_empty() {
        let mut decisions = decisions.clone();
        deny_twins(&held, &mut decisions);
        passes = decisions.iter().all(Decision::is_allowed);
    }
    let taken = if passes {
        spend(&mut held, &zone_bids, &mut decisions)
    } else {
        decisions.extend((looked_at..bids.len()).map(|bid| peek_own(&held, bid)));
        ZoneTakes::Nothing
    };
    match taken {
        ZoneTakes::All(_) => twins.report_last(&mut decisions),
        ZoneTakes::Nothing => {
            record_refusals(&mut held, &zone_bids, &mut decisions);
            // A limit to which the denial of one ask was applied reports the wait of that ask.
            deny_twins(&held, &mut decisions);
        }
        ZoneTakes::Some { .. } => {}
    }
    let of_map_takes = held.tend();
    match (taken, receipts) {
        // A take that is undone under the lock of its state leaves those before it where they were.
        (ZoneTakes::Some { receipts, first }, wanted) => {
            let undo_one = if wanted.is_some() { ZoneBid::undo_locked } else { ZoneBid::undo };
            undo(receipts, first, &zone_bids, &mut decisions[..zones], undo_one);
        }
        (ZoneTakes::All(of_zone_takes), Some(receipts)) => {
            receipts.extend(bids.iter().map(|_| None));
            let of_takes = of_zone_takes.into_iter().map(Some).chain(of_map_takes);
            order.iter().zip(of_takes).for_each(|(place, receipt)| receipts[*place] = receipt);
        }
        (ZoneTakes::All(_) | ZoneTakes::Nothing, _) => {}
    }
    if map_bids.is_empty() {
        return Decisions::new(decisions);
    }
    let mut decisions: Few<_> = order.into_iter().zip(decisions).collect();
    decisions.sort_unstable_by_key(|(place, _)| *place);
    Decisions::new(decisions.into_iter().map(|(_, decision)| decision).collect::<Few<_>>())
}

/// The takes from zones. The first bid without a peek is kept apart, because it was taken before all others.
enum ZoneTakes {
    /// None: a peek was denied.
    Nothing,
    /// From all zones, and from all maps.
    All(Few<Receipt>),
    /// From the first of them, because a later one was denied: these are to be undone.
    Some { receipts: Few<Receipt>, first: Option<Receipt> },
}

/// Applies the denial to each limit that denies by itself. A denial may shorten a debt that a backward clock step left
/// too large. Without the write, the reported wait would be false again at the next ask.
fn record_refusals(held: &mut LockedShards<'_>, zone_bids: &[ZoneBid<'_>], decisions: &mut [Decision]) {
    let (of_zones, of_maps) = decisions.split_at_mut(zone_bids.len());
    held.record_denials(of_maps);
    for (bid, decision) in zone_bids.iter().zip(of_zones) {
        if !decision.is_allowed() {
            *decision = bid.refuse(*decision);
        }
    }
}

/// Spends on one bid after the other, first on the bid that was not peeked, if it is of a zone. Spending on the bid
/// without a peek first means that its denial has nothing to undo.
fn spend(held: &mut LockedShards<'_>, zone_bids: &[ZoneBid<'_>], decisions: &mut Few<Decision>) -> ZoneTakes {
    let looked_at = zone_bids.len().min(decisions.len());
    let mut first = None;
    if let Some(bid) = zone_bids.get(looked_at) {
        let (taken, receipt) = bid.take();
        decisions.push(taken);
        first = receipt;
        if !taken.is_allowed() {
            return ZoneTakes::Nothing;
        }
    }
    let (of_zones, of_maps) = decisions.split_at_mut(zone_bids.len());
    // A denied take has no receipt, and ends the loop.
    let takes = zone_bids[..looked_at].iter().zip(of_zones).map_while(|(bid, decision)| {
        let (taken, receipt) = bid.take();
        *decision = taken;
        receipt
    });
    let mut receipts: Few<_> = takes.collect();
    if receipts.len() == looked_at && held.spend(of_maps) {
        receipts.extend(first);
        return ZoneTakes::All(receipts);
    }
    ZoneTakes::Some { receipts, first }
}

/// Undoes takes, and corrects the decisions. No map may be locked here, because an undo locks the receipts first. The
/// bid that was denied keeps its denial. Each of the others reports what it would be allowed now.
fn undo<'b>(
    taken: Few<Receipt>,
    first: Option<Receipt>,
    zone_bids: &[ZoneBid<'b>],
    of_zones: &mut [Decision],
    undo: impl Fn(&ZoneBid<'b>, Receipt),
) {
    let looked_at = zone_bids.len() - usize::from(first.is_some());
    let lost = (taken.len() < looked_at).then_some(taken.len());
    // In reverse order: each undo finds the state as its take has left it.
    let undone: Vec<_> = zone_bids.iter().zip(taken).collect();
    for (bid, receipt) in undone.into_iter().rev() {
        undo(bid, receipt);
    }
    zone_bids.last().zip(first).into_iter().for_each(|(bid, receipt)| undo(bid, receipt));
    for (index, (bid, decision)) in zone_bids.iter().zip(of_zones).enumerate() {
        if lost != Some(index) {
            *decision = bid.peek();
        }
    }
}

/// An ask whose state is in a zone. A zone is not locked, so each method decides on the cell as it is at that moment.
#[derive(Clone, Copy, Debug)]
struct ZoneBid<'a> {
    /// The zone that holds the cell.
    zone: &'a Zone,
    account: &'a StateKey,
    ask: Ask,
    /// The time to decide as of; `None` for the current time.
    at: Option<Timestamp>,
}

impl<'a> ZoneBid<'a> {
    /// Returns the bid for a zone; `None` if its state is in a map.
    fn of(bid: &Bid<'a>, at: Option<Timestamp>) -> Option<ZoneBid<'a>> {
        let LimitStore::Zone(zone) = bid.holder else { return None };
        Some(ZoneBid { zone, account: bid.account, ask: bid.ask, at })
    }

    /// Returns the decision on this bid alone, without spending.
    fn peek(&self) -> Decision {
        self.zone.look(self.account, self.ask, self.at)
    }

    /// Returns the state of the ask, and the time that it is decided as of.
    fn state(&self) -> (State, Timestamp) {
        let now = self.at.unwrap_or_else(|| self.zone.clock().now());
        (self.zone.state_of(self.account), now)
    }

    /// Spends if allowed. The era is read before the take, so that a reset in between makes the receipt invalid.
    fn take(&self) -> (Decision, Option<Receipt>) {
        let era = self.zone.receipts().era();
        let (decision, receipt) = self.zone.take_if_free(self.account, self.ask, self.at);
        (decision, receipt.map(|receipt| Receipt { era, ..receipt }))
    }

    /// Gives the take back under the lock of its receipts, unless the state was reset since.
    fn undo(&self, receipt: Receipt) {
        let era = receipt.era;
        self.zone.receipts().out_of_order(self.account, era, || self.undo_locked(receipt));
    }

    /// Gives the take back for a caller that holds that lock.
    fn undo_locked(&self, receipt: Receipt) {
        self.zone.undo(self.account, receipt);
    }

    /// Applies the denial to the limit. If the limit would now allow, returns the given denial.
    fn refuse(&self, refused: Decision) -> Decision {
        let again = self.zone.deny(self.account, self.ask, self.at);
        if again.is_allowed() { refused } else { again }
    }
}
