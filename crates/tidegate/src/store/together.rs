//! Several limits at once: all are looked at, and only if every one passes, all are taken from.
//!
//! Maps are locked around it, so nobody comes in between there. In a zone nobody can be kept out: its takes come
//! first, and if one of them finds that another thread was faster, those before it are undone. A moment's refusal
//! of somebody else is possible then; an admission too many is not.
//!
//! One key under two limits is two states. One state that is asked for twice is decided as one ask (`twins.rs`).

use super::Holder;
use super::map::{self, Held};
use super::name::Account;
use super::twins::Twins;
use super::zone::Zone;
use crate::algorithm::State;
use crate::ask::Ask;
use crate::decision::Decision;
use crate::decisions::Decisions;
use crate::few::Few;
use crate::receipt::Receipt;
use crate::time::Timestamp;

/// One of several asks that stand or fall together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bid<'a> {
    pub(crate) holder: Holder<'a>,
    pub(crate) account: &'a Account,
    pub(crate) ask: Ask,
}

impl<'a> Bid<'a> {
    fn of_map(&self) -> Option<map::Bid<'a>> {
        let Holder::Map(map) = self.holder else { return None };
        Some(map::Bid { map, account: self.account, ask: self.ask })
    }
}

/// Spends on all, or on none.
pub(crate) fn take_all(bids: &[Bid<'_>]) -> Decisions {
    take(None, bids, None)
}

/// The same as of a reading of the clock from a moment ago, if there is one, after the first of them were taken and one
/// behind those did not pass after all.
pub(crate) fn take_again(at: Option<Timestamp>, bids: &[Bid<'_>], taken: Vec<Receipt>) -> Decisions {
    let undone: Few<_> = bids.iter().filter_map(|bid| ZoneBid::of(bid, at)).zip(taken).collect();
    // The last first: then each finds the state as its take has left it.
    undone.into_iter().rev().for_each(|(bid, receipt)| bid.undo(receipt));
    take(at, bids, None)
}

/// The same with proof of each take, for a caller that has locked the open receipts of all bids.
pub(crate) fn take_with_receipts(bids: &[Bid<'_>]) -> (Decisions, Vec<Option<Receipt>>) {
    let mut receipts = Vec::new();
    let decisions = take(None, bids, Some(&mut receipts));
    (decisions, receipts)
}

fn take(at: Option<Timestamp>, bids: &[Bid<'_>], receipts: Option<&mut Vec<Option<Receipt>>>) -> Decisions {
    let places = |is_in_map: bool| {
        let all = bids.iter().enumerate();
        all.filter(move |(_, bid)| matches!(bid.holder, Holder::Map(_)) == is_in_map).map(|(place, _)| place)
    };
    let map_bids: Few<_> = bids.iter().filter_map(Bid::of_map).collect();
    let zone_bids: Few<_> = bids.iter().filter_map(|bid| ZoneBid::of(bid, at)).collect();
    let mut held = Held::lock(at, &map_bids);
    if receipts.is_some() {
        held.keep_receipts();
    }
    let map_twins = Twins::of(map_bids.iter().map(|bid| (bid.account, bid.ask)));
    let zone_twins = Twins::of(zone_bids.iter().map(|bid| (bid.account, bid.ask)));
    let has_twins = !(map_twins.is_empty() && zone_twins.is_empty());
    // What is taken from first need not be looked at before: if it denies, nothing is spent yet.
    let is_alone = map_bids.is_empty() && !has_twins;
    let looked_at = zone_bids.len().saturating_sub(usize::from(is_alone));
    let mut of_maps: Few<_> = (0..map_bids.len()).map(|bid| held.peek(bid)).collect();
    let mut of_zones: Few<_> = zone_bids[..looked_at].iter().map(ZoneBid::peek).collect();
    let deny_twins = |held: &Held<'_>, of_maps: &mut [Decision], of_zones: &mut [Decision]| {
        let peek = |bid: usize, ask| ZoneBid { ask, ..zone_bids[bid] }.peek();
        map_twins.deny(of_maps, |bid, ask| held.peek_as(bid, ask), |bid| held.state_of(bid));
        zone_twins.deny(of_zones, peek, |bid| zone_bids[bid].state());
    };
    let mut passes = of_maps.iter().chain(&*of_zones).all(Decision::is_allowed);
    if passes && has_twins {
        let (mut of_maps, mut of_zones) = (of_maps.clone(), of_zones.clone());
        deny_twins(&held, &mut of_maps, &mut of_zones);
        passes = of_maps.iter().chain(&*of_zones).all(Decision::is_allowed);
    }
    let taken = if passes {
        spend(&mut held, &mut of_maps, &zone_bids, &mut of_zones)
    } else {
        of_zones.extend(zone_bids[looked_at..].iter().map(ZoneBid::peek));
        ZoneTakes::Nothing
    };
    if matches!(taken, ZoneTakes::Nothing) {
        record_refusals(&mut held, &mut of_maps, &zone_bids, &mut of_zones);
    }
    match taken {
        ZoneTakes::All(_) => {
            map_twins.report_last(&mut of_maps);
            zone_twins.report_last(&mut of_zones);
        }
        // Limits that have seen the denial of one ask report the wait of that one.
        ZoneTakes::Nothing => deny_twins(&held, &mut of_maps, &mut of_zones),
        ZoneTakes::Some { .. } => {}
    }
    let of_map_takes = held.tend();
    match (taken, receipts) {
        // A take that is undone under the lock of its state leaves those before it where they were.
        (ZoneTakes::Some { receipts, first }, wanted) => {
            let undo_one = if wanted.is_some() { ZoneBid::undo_locked } else { ZoneBid::undo };
            undo(receipts, first, &zone_bids, &mut of_zones, undo_one);
        }
        (ZoneTakes::All(of_zone_takes), Some(receipts)) => {
            receipts.extend(bids.iter().map(|_| None));
            let of_zone_takes = of_zone_takes.into_iter().map(Some);
            for (place, receipt) in places(false).zip(of_zone_takes).chain(places(true).zip(of_map_takes)) {
                receipts[place] = receipt;
            }
        }
        (ZoneTakes::All(_) | ZoneTakes::Nothing, _) => {}
    }
    if of_maps.is_empty() {
        return Decisions::new(of_zones);
    }
    let of_both = places(true).zip(of_maps).chain(places(false).zip(of_zones));
    let mut decisions: Few<_> = of_both.collect();
    decisions.sort_unstable_by_key(|(place, _)| *place);
    Decisions::new(decisions.into_iter().map(|(_, decision)| decision).collect::<Few<_>>())
}

/// What was taken from zones.
enum ZoneTakes {
    /// Nothing: one was seen not to pass.
    Nothing,
    /// From all of them, and from all maps.
    All(Few<Receipt>),
    /// From the first of them, because one does not pass after all: these are to be undone.
    Some { receipts: Few<Receipt>, first: Option<Receipt> },
}

/// Each limit that denies by itself sees that it does.
fn record_refusals(
    held: &mut Held<'_>,
    of_maps: &mut [Decision],
    zone_bids: &[ZoneBid<'_>],
    of_zones: &mut [Decision],
) {
    held.record_refusals(of_maps);
    for (bid, decision) in zone_bids.iter().zip(of_zones) {
        if !decision.is_allowed() {
            *decision = bid.refuse(*decision);
        }
    }
}

/// Spends on one after the other: first on what was not looked at, if that is one of them.
fn spend(
    held: &mut Held<'_>,
    of_maps: &mut [Decision],
    zone_bids: &[ZoneBid<'_>],
    of_zones: &mut Few<Decision>,
) -> ZoneTakes {
    let looked_at = of_zones.len();
    let mut first = None;
    if let Some(bid) = zone_bids.get(looked_at) {
        let (taken, receipt) = bid.take();
        of_zones.push(taken);
        first = receipt;
        if !taken.is_allowed() {
            return ZoneTakes::Nothing;
        }
    }
    // A take that is denied has no receipt, and ends it.
    let takes = zone_bids[..looked_at].iter().zip(of_zones.iter_mut()).map_while(|(bid, decision)| {
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

/// Undoes takes, and corrects the decisions. No map is locked any more: a take by receipt locks the receipts first.
fn undo<'b>(
    taken: Few<Receipt>,
    first: Option<Receipt>,
    zone_bids: &[ZoneBid<'b>],
    of_zones: &mut [Decision],
    undo: impl Fn(&ZoneBid<'b>, Receipt),
) {
    let looked_at = zone_bids.len() - usize::from(first.is_some());
    let lost = (taken.len() < looked_at).then_some(taken.len());
    // The last first: then each finds the state as its take has left it.
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

/// An ask whose state is in a zone.
#[derive(Clone, Copy, Debug)]
struct ZoneBid<'a> {
    zone: &'a Zone,
    account: &'a Account,
    ask: Ask,
    at: Option<Timestamp>,
}

impl<'a> ZoneBid<'a> {
    fn of(bid: &Bid<'a>, at: Option<Timestamp>) -> Option<ZoneBid<'a>> {
        let Holder::Zone(zone) = bid.holder else { return None };
        Some(ZoneBid { zone, account: bid.account, ask: bid.ask, at })
    }

    fn peek(&self) -> Decision {
        self.zone.look(self.account, self.ask, self.at)
    }

    /// The state that it is about, and the time that it is decided as of.
    fn state(&self) -> (State, Timestamp) {
        let now = self.at.unwrap_or_else(|| self.zone.clock().now());
        (self.zone.state_of(self.account), now)
    }

    fn take(&self) -> (Decision, Option<Receipt>) {
        let era = self.zone.receipts().era();
        let (decision, receipt) = self.zone.take_if_free(self.account, self.ask, self.at);
        (decision, receipt.map(|receipt| Receipt { era, ..receipt }))
    }

    fn undo(&self, receipt: Receipt) {
        let era = receipt.era;
        self.zone.receipts().out_of_order(self.account, era, || self.undo_locked(receipt));
    }

    fn undo_locked(&self, receipt: Receipt) {
        self.zone.undo(self.account, receipt);
    }

    /// The limit sees that it has refused; if it would no longer, the refusal stands as it was given.
    fn refuse(&self, refused: Decision) -> Decision {
        let again = self.zone.refuse(self.account, self.ask, self.at);
        if again.is_allowed() { refused } else { again }
    }
}
