//! The law of refunds: after a refund, at most as much passes as without the take.

use tidegate::{Ask, Cost, Key, Ticks, Timestamp};

use super::promises::unit_of;
use crate::keeper::{Keeper, judged};
use crate::promise::Promise;
use crate::random::Random;

/// Takes given back never leave more room than if they had not been.
///
/// Two subjects do the same, but for one or two takes; when those are given back, they are compared.
pub fn giving_back_is_safe(mut keeper: impl Keeper, kind: &str, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let promise = Promise::modest(kind, &mut random);
    // Without the take that is given back, a window of the first hit would have opened later.
    if matches!(promise, Promise::FixedWindow { first_hit: true, .. }) {
        return Ok(());
    }
    let (limit, keys) = (promise.limit(), ["with", "without"].map(Key::new));
    let [with, without] = keys.each_ref().map(|key| judged(key, &limit));
    let mut now = random.sized(0, u64::MAX / 4);
    let mut pass = |keeper: &mut _, random: &mut Random| {
        now += random.sized(0, unit_of(&promise).saturating_mul(4));
        Keeper::set_time(keeper, Timestamp::from_ticks(now));
    };
    let ask = |random: &mut Random| {
        let cost = Cost::of(random.between(1, promise.most_at_once()));
        Ask::new(cost).max_wait_in_ticks(if random.percent(50) { Ticks::MAX } else { Ticks::ZERO })
    };
    for _ in 0..random.between(0, 6) {
        pass(&mut keeper, &mut random);
        let more = ask(&mut random);
        let _ = [with, without].map(|subject| keeper.take(subject, more));
    }
    // One or two takes that are given back, among others that stay.
    let mut receipts = Vec::new();
    for turn in 0..random.between(1, 8) {
        pass(&mut keeper, &mut random);
        let more = ask(&mut random);
        if receipts.len() < 2 && (turn == 0 || random.percent(30)) {
            receipts.extend(keeper.take(with, more).1);
        } else if keeper.peek(with, more).is_allowed() {
            let _ = keeper.take(with, more);
            if !keeper.take(without, more).0.is_allowed() {
                return Err(format!("{more:?} passed only beside another take\nseed {seed}, {promise:?}"));
            }
        } else if random.percent(20) {
            if let Some(receipt) = receipts.pop() {
                keeper.give_back(with, receipt);
            }
        }
    }
    pass(&mut keeper, &mut random);
    if random.percent(50) {
        receipts.reverse();
    }
    let given_back: Vec<_> = receipts.into_iter().map(|receipt| keeper.give_back(with, receipt)).collect();
    let (with, without) = (keeper.peek(with, Ask::ONE), keeper.peek(without, Ask::ONE));
    if with.remaining() > without.remaining() || with.reset_after() < without.reset_after() {
        let states = format!("given back {given_back:?}: {with:?}, without the takes: {without:?}");
        return Err(format!("{states}\nseed {seed}, {promise:?}"));
    }
    Ok(())
}
