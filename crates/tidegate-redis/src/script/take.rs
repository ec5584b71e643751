//! Asking: what is to be taken, or only looked at.

use std::collections::HashSet;

use super::bid::{Begin, Bid, Target};
use super::limits::pack_take;
use super::text::{Job, Kind, Kinds};
use super::{Call, Time};

/// Takes all or none. [`read_take`](super::read_take) reads the answer.
pub(crate) fn take(bids: &[Bid], time: Time) -> Call {
    let mut keys: Vec<_> = bids.iter().map(|bid| bid.target.name.clone()).collect();
    let mut arguments = packs(bids);
    let job = job(bids, &keys);
    match job {
        // Every argument costs the server something.
        Job::TakeDebts => arguments = vec![arguments.concat()],
        Job::Take(_) => keys.extend(copies(&keys)),
        _ => {}
    }
    if bids.iter().any(|bid| bid.begin.is_some()) {
        let begin = |bid: &Bid| {
            bid.begin.as_ref().map_or_else(Begin::none, |begin| begin.argument(&bid.target.limit))
        };
        arguments.extend(bids.iter().map(begin));
    }
    arguments.extend(time.arguments());
    Call { script: job.script(), keys, arguments }
}

/// What a take of each by itself would say. [`read_peek`](super::read_peek) reads the answer.
pub(crate) fn peek(bids: &[Bid], time: Time) -> Call {
    let keys = bids.iter().map(|bid| bid.target.name.clone()).collect();
    let mut arguments = packs(bids);
    arguments.extend(time.arguments());
    Call { script: Job::Peek(kinds_of(bids)).script(), keys, arguments }
}

fn packs(bids: &[Bid]) -> Vec<Vec<u8>> {
    let mut packs = Vec::with_capacity(bids.len() + 2);
    packs.extend(bids.iter().map(|bid| pack_take(bid).into_bytes()));
    packs
}

fn kinds_of(bids: &[Bid]) -> Kinds {
    bids.iter().map(|bid| kind_of(&bid.target)).collect()
}

fn kind_of(target: &Target) -> Kind {
    Kind::of(target.limit.algorithm())
}

fn job(bids: &[Bid], keys: &[Vec<u8>]) -> Job {
    let kinds = kinds_of(bids);
    let is_plain = kinds == Kinds::DEBTS && bids.iter().all(|bid| bid.begin.is_none());
    match bids {
        [_] if is_plain => Job::TakeDebt,
        _ if is_plain && !has_twins(keys) => Job::TakeDebts,
        _ => Job::Take(kinds),
    }
}

/// Returns true if a state is asked for more than once.
fn has_twins(keys: &[Vec<u8>]) -> bool {
    let mut seen = HashSet::with_capacity(keys.len());
    keys.len() > 1 && !keys.iter().all(|key| seen.insert(key))
}

/// Where states are copied to if one is asked for more than once; that they are there tells the script so.
fn copies(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if !has_twins(keys) {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    keys.iter().filter(|key| seen.insert(*key)).map(|key| [key, &b"~"[..]].concat()).collect()
}
