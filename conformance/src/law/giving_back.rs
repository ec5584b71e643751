//! What giving back means: as if the take had never been, or less.

use tidegate::{Ask, Cost, State, Ticks, Timestamp};

use super::promises::{modest, unit_of};
use crate::promise::Promise;
use crate::random::Random;

/// Takes given back never leave more room than if they had not been.
///
/// Two subjects do the same, but for one or two takes; when those are given back, they are compared.
pub fn giving_back_is_safe(kind: &str, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let promise = modest(kind, &mut random);
    // Without the take that is given back, a window of the first hit would have opened later.
    if matches!(promise, Promise::FixedWindow { first_hit: true, .. }) {
        return Ok(());
    }
    let limit = promise.limit();
    let (mut with, mut now) = (State::default(), random.sized(0, u64::MAX / 4));
    let pass = |random: &mut Random, now: u64| now + random.sized(0, unit_of(&promise).saturating_mul(4));
    let ask = |random: &mut Random| {
        let cost = Cost::of(random.between(1, promise.most_at_once()));
        Ask { cost, patience: if random.percent(50) { Ticks::MAX } else { Ticks::ZERO } }
    };
    for _ in 0..random.between(0, 6) {
        now = pass(&mut random, now);
        let _ = limit.decide(&mut with, Timestamp::from_ticks(now), ask(&mut random));
    }
    // One or two takes that are given back, among others that stay.
    let mut without = with.clone();
    let mut receipts = Vec::new();
    for turn in 0..random.between(1, 8) {
        now = pass(&mut random, now);
        let (at, more) = (Timestamp::from_ticks(now), ask(&mut random));
        if receipts.len() < 2 && (turn == 0 || random.percent(30)) {
            let taken = limit.decide(&mut with, at, more);
            receipts.extend(limit.receipt(&with, at, more, &taken));
        } else if limit.peek(&with, at, more).is_allowed() {
            let _ = limit.decide(&mut with, at, more);
            if !limit.decide(&mut without, at, more).is_allowed() {
                return Err(format!("{more:?} passed only beside another take\nseed {seed}, {promise:?}"));
            }
        } else if random.percent(20) {
            if let Some(receipt) = receipts.pop() {
                limit.give_back(&mut with, at, receipt);
            }
        }
    }
    now = pass(&mut random, now);
    let at = Timestamp::from_ticks(now);
    if random.percent(50) {
        receipts.reverse();
    }
    let given_back: Vec<_> =
        receipts.into_iter().map(|receipt| limit.give_back(&mut with, at, receipt)).collect();
    let (with, without) = (limit.peek(&with, at, Ask::ONE), limit.peek(&without, at, Ask::ONE));
    if with.remaining() > without.remaining() || with.reset_after() < without.reset_after() {
        let told = format!("given back {given_back:?}: {with:?}, without the takes: {without:?}");
        return Err(format!("{told}\nseed {seed}, {promise:?}"));
    }
    Ok(())
}
