//! Asking: what is to be taken, or only looked at.

use std::collections::HashSet;

use tidegate::{Ask, Subject};

use super::key::state_key;
use super::limits::{Unsupported, held, pack_take};
use super::text::{Job, Kind, Kinds};
use super::{Call, Time};

/// Takes all or none. [`read_take`](super::read_take) reads the answer.
pub(crate) fn take(asks: &[(Subject<'_>, Ask)], prefix: &[u8], time: Time) -> Result<Call, Unsupported> {
    let mut keys: Vec<_> = asks.iter().map(|(subject, _)| state_key(prefix, subject)).collect();
    let mut arguments = Vec::with_capacity(asks.len() + 2);
    for (subject, ask) in asks {
        arguments.push(pack_take(&held(subject.limit)?, *ask).into_bytes());
    }
    let job = job(asks, &keys);
    match job {
        // Every argument costs the server something.
        Job::TakeDebts => arguments = vec![arguments.concat()],
        Job::Take(_) => keys.extend(copies(&keys)),
        _ => {}
    }
    arguments.extend(time.arguments());
    Ok(Call { script: job.script(), keys, arguments })
}

/// What a take of each by itself would say. [`read_peek`](super::read_peek) reads the answer.
pub(crate) fn peek(asks: &[(Subject<'_>, Ask)], prefix: &[u8], time: Time) -> Result<Call, Unsupported> {
    let keys = asks.iter().map(|(subject, _)| state_key(prefix, subject)).collect();
    let mut arguments = Vec::with_capacity(asks.len() + 2);
    for (subject, ask) in asks {
        arguments.push(pack_take(&held(subject.limit)?, *ask).into_bytes());
    }
    arguments.extend(time.arguments());
    Ok(Call { script: Job::Peek(kinds_of(asks)).script(), keys, arguments })
}

fn kinds_of(asks: &[(Subject<'_>, Ask)]) -> Kinds {
    asks.iter().map(|(subject, _)| Kind::of(subject.limit.algorithm())).collect()
}

fn job(asks: &[(Subject<'_>, Ask)], keys: &[Vec<u8>]) -> Job {
    let kinds = kinds_of(asks);
    match asks {
        [_] if kinds == Kinds::DEBTS => Job::TakeDebt,
        _ if kinds == Kinds::DEBTS && !has_twins(keys) => Job::TakeDebts,
        _ => Job::Take(kinds),
    }
}

/// Whether a state is asked for more than once.
pub(super) fn has_twins(keys: &[Vec<u8>]) -> bool {
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
