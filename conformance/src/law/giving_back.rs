//! What giving back means: as if the take had never been, or less.

use tidegate::{Ask, Cost, State, Ticks, Timestamp};

use super::promises::{modest, unit_of};
use crate::promise::Promise;
use crate::random::Random;

/// A take given back never leaves more room than if it had not been.
///
/// Two subjects do the same, but for one take; when that is given back, they are compared.
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
    let mut without = with.clone();
    let extra = ask(&mut random);
    let taken = limit.decide(&mut with, Timestamp::from_ticks(now), extra);
    let Some(receipt) = limit.receipt(&with, Timestamp::from_ticks(now), extra, &taken) else {
        return Ok(());
    };
    for _ in 0..random.between(0, 6) {
        now = pass(&mut random, now);
        let (at, more) = (Timestamp::from_ticks(now), ask(&mut random));
        let refused = !limit.peek(&with, at, more).is_allowed();
        if !refused {
            let both = [limit.decide(&mut with, at, more), limit.decide(&mut without, at, more)];
            if !both[1].is_allowed() {
                return Err(format!("{more:?} passed only beside another take\nseed {seed}, {promise:?}"));
            }
        }
    }
    now = pass(&mut random, now);
    let at = Timestamp::from_ticks(now);
    let adjusted = limit.give_back(&mut with, at, receipt);
    let (with, without) = (limit.peek(&with, at, Ask::ONE), limit.peek(&without, at, Ask::ONE));
    if with.remaining() > without.remaining() || with.reset_after() < without.reset_after() {
        return Err(format!(
            "{extra:?} was given back ({adjusted:?}): {with:?}, without it: {without:?}\nseed {seed}, {promise:?}"
        ));
    }
    Ok(())
}
