//! Carrying counts over to other numbers of the same algorithm.
//!
//! A state belongs to one limit. When the numbers of a rule change, a key may have no live state under the new limit.
//! It then starts with its usage under the old limit, as of the instant of the change:
//!
//! ```text
//!   old limit   5 of 5 used  |                       a raised limit gives its difference at once:
//!   -------------------------+--------------> time   95 of 100 are left
//!   new limit                | 5 of 100 used
//!                        changed_at
//! ```
//!
//! - Usage is carried in units, rounded up, whatever a unit costs under either limit.
//! - It is clamped to the largest debt of the new limit at the change. A lowered limit denies for at most one full
//!   refill of its own, and [`StateFootprint::longest_carried`] after the change nothing of it is left.
//! - The function is pure and does not modify the old state. The result is the same as long as the old state is the
//!   same, so denials and peeks need not write.
//! - A state that no limit could have produced is carried like the nearest valid one: it never causes a panic, and an
//!   overflow only denies.

use super::State;
use super::state::{StateFootprint, StateSlot};
use crate::limit::AlgorithmParams;
use crate::time::Timestamp;

/// Returns the state under the limit `new` of a key that has this state under `old`. Nothing is carried between
/// different algorithms.
pub(crate) fn carry(
    old: &AlgorithmParams,
    state: &State,
    changed_at: Timestamp,
    new: &AlgorithmParams,
) -> State {
    match (old, new) {
        (AlgorithmParams::TokenBucket(old), AlgorithmParams::TokenBucket(new)) => {
            carry_into(old, state, changed_at, new)
        }
        (AlgorithmParams::LeakyBucket(old), AlgorithmParams::LeakyBucket(new)) => {
            carry_into(old, state, changed_at, new)
        }
        (AlgorithmParams::FixedWindow(old), AlgorithmParams::FixedWindow(new)) => {
            carry_into(old, state, changed_at, new)
        }
        (AlgorithmParams::Calendar(old), AlgorithmParams::Calendar(new)) => {
            carry_into(old, state, changed_at, new)
        }
        (AlgorithmParams::SlidingLog(old), AlgorithmParams::SlidingLog(new)) => {
            carry_into(old, state, changed_at, new)
        }
        (AlgorithmParams::SlidingWindow(old), AlgorithmParams::SlidingWindow(new)) => {
            carry_into(old, state, changed_at, new)
        }
        (AlgorithmParams::Pacer(old), AlgorithmParams::Pacer(new)) => carry_into(old, state, changed_at, new),
        (AlgorithmParams::Concurrency(old), AlgorithmParams::Concurrency(new)) => {
            carry_into(old, state, changed_at, new)
        }
        _ => State::default(),
    }
}

/// Carries between numbers of one algorithm. A state of another algorithm counts as a key never seen.
fn carry_into<A: StateFootprint + StateSlot>(
    old: &A,
    state: &State,
    changed_at: Timestamp,
    new: &A,
) -> State {
    let carried = match old.seen(state) {
        Some(seen) => new.carry(old, seen, changed_at),
        None => new.carry(old, &A::State::default(), changed_at),
    };
    let mut state = State::default();
    if let Some(carried) = carried {
        *new.within(&mut state) = carried;
    }
    state
}

#[cfg(all(test, not(tidegate_models)))]
mod tests;
