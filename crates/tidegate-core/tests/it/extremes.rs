//! Tests of extreme numbers: no panic, and no admission that big integers would deny.

use conformance::calendar::{Calendar, Place};
use conformance::extreme::{bucket_allows, second_allowed};
use conformance::promise::Promise;
use tidegate::algorithm::{Decide, LeakyBucket, TokenBucket};
use tidegate::{
    Adjustment, Algorithm, Ask, Cost, History, Limit, LimitBuilder, Predecessor, State, Ticks, Timestamp,
};

const EDGES: [u64; 15] = [
    0,
    1,
    2,
    3,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    (1 << 53) + 1,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX - 1,
    u64::MAX,
];

/// The periods in microseconds, from the shortest to the longest and beyond.
const PERIODS: [u64; 8] =
    [0, 1, 1000, 1_000_000, 60_000_000, 365 * 86_400_000_000, 3650 * 86_400_000_000, u64::MAX];

fn draft(algorithm: Algorithm, amount: u64, micros: u64) -> LimitBuilder {
    LimitBuilder::new(algorithm, amount, std::time::Duration::from_micros(micros))
}

/// Returns the step width through the list of limits.
fn thinned() -> usize {
    if crate::is_quick() { 23 } else { 1 }
}

/// Returns every valid bucket of the edges, with its promise.
fn buckets() -> Vec<(Limit, Promise)> {
    let mut buckets = Vec::new();
    for amount in EDGES {
        for micros in PERIODS {
            for burst in EDGES {
                for max_debt in [0, 1, burst] {
                    let token = draft(Algorithm::TokenBucket, amount, micros).burst(burst).max_debt(max_debt);
                    if let Ok(limit) = token.build() {
                        let period = micros * 16_000;
                        buckets.push((limit, Promise::TokenBucket { amount, period, burst, max_debt }));
                    }
                    let leaky = draft(Algorithm::LeakyBucket, amount, micros)
                        .queue(burst)
                        .delay_after(tidegate::DelayAfter::All)
                        .max_debt(max_debt);
                    if let Ok(limit) = leaky.build() {
                        let (period, delay_after) = (micros * 16_000, None);
                        let queue = burst;
                        buckets.push((
                            limit,
                            Promise::LeakyBucket { amount, period, queue, delay_after, max_debt },
                        ));
                    }
                }
            }
        }
    }
    buckets
}

#[test]
fn extremes_never_make_a_bucket_allow_what_big_integers_deny() {
    let buckets: Vec<_> = buckets().into_iter().step_by(thinned()).collect();
    let mut combinations = 0_u64;
    for (limit, promise) in &buckets {
        for clear_at in EDGES {
            for now in EDGES {
                for cost in EDGES.into_iter().filter(|cost| *cost > 0) {
                    combinations += 1;
                    let mut state = Timestamp::from_ticks(clear_at);
                    let at = Timestamp::from_ticks(now);
                    let ask = Ask::new(Cost::of(cost));
                    let allowed = match promise {
                        Promise::TokenBucket { .. } => {
                            TokenBucket::try_from(*limit).unwrap().decide(&mut state, at, ask).is_allowed()
                        }
                        _ => LeakyBucket::try_from(*limit).unwrap().decide(&mut state, at, ask).is_allowed(),
                    };
                    let expected = bucket_allows(promise, clear_at, now, cost);
                    assert_eq!(allowed, expected, "{limit}: state {clear_at}, now {now}, cost {cost}");
                }
            }
        }
    }
    println!("extremes: {} buckets, {combinations} combinations, 0 panics, 0 wrong", buckets.len());
    assert!(combinations >= 500_000 || crate::is_quick());
}

/// Returns promises of every other kind at the edges.
fn others() -> Vec<Promise> {
    let mut promises = Vec::new();
    for amount in EDGES {
        for micros in PERIODS {
            let Some(period) = micros.checked_mul(16_000) else { continue };
            for more in EDGES {
                promises.push(Promise::FixedWindow {
                    amount,
                    period,
                    first_hit: more % 2 == 0,
                    max_debt: more,
                });
                promises.push(Promise::SlidingLog { amount, period, count_denied: false });
                promises.push(Promise::SlidingWindow { amount, period, slots: more, max_debt: more });
                promises.push(Promise::SlidingWindow { amount, period, slots: 3, max_debt: more });
                promises.push(Promise::Estimate { amount, period, max_debt: more });
                let savings = more / 16_000 * 16_000;
                promises.push(Promise::Steady { amount, period, savings, own: more % 2 == 0 });
                promises.push(Promise::WarmUp {
                    amount,
                    period,
                    warm_up: savings,
                    cold_factor: more,
                    own: false,
                });
                promises.push(Promise::Concurrency { max: amount, lease: period });
            }
        }
    }
    for (unit, amount) in (0..5).flat_map(|unit| EDGES.map(|amount| (unit, amount))) {
        for max_debt in EDGES {
            let calendar = Calendar { unit, first_day: i64::from(unit > 2), place: Place::LordHowe };
            promises.push(Promise::Calendar { amount, calendar, max_debt });
        }
    }
    promises.retain(|promise| promise.draft().build().is_ok());
    promises.dedup();
    promises
}

#[test]
fn extremes_never_make_anything_else_allow_what_big_integers_deny() {
    let mut combinations = 0_u64;
    let promises: Vec<_> = others().into_iter().step_by(thinned()).collect();
    for promise in &promises {
        let limit = promise.limit();
        for then in EDGES {
            for first in EDGES.into_iter().filter(|cost| *cost > 0) {
                let mut state = State::default();
                let at = Timestamp::from_ticks(then);
                let patient = Ask::new(Cost::of(first)).max_wait_in_ticks(Ticks::MAX);
                if !limit.decide(&mut state, at, patient).is_allowed() {
                    continue;
                }
                for now in EDGES.into_iter().filter(|now| *now >= then) {
                    for second in EDGES.into_iter().filter(|cost| *cost > 0) {
                        combinations += 1;
                        let ask = Ask::new(Cost::of(second));
                        let at = Timestamp::from_ticks(now);
                        let allowed = limit.decide(&mut state.clone(), at, ask).is_allowed();
                        assert_eq!(allowed, limit.peek(&state, at, ask).is_allowed());
                        if allowed && !matches!(promise, Promise::WarmUp { .. }) {
                            let expected = second_allowed(promise, then, first, now, second);
                            assert!(expected, "{limit}: {first} at {then}, then {second} at {now}");
                        }
                    }
                }
            }
        }
    }
    println!("extremes: {} other limits, {combinations} combinations, 0 panics, 0 wrong", promises.len());
    assert!(combinations >= 500_000 || crate::is_quick());
}

#[test]
fn extremes_of_adjustments_and_clocks_never_panic() {
    let mut calls = 0_u64;
    let limits =
        others().into_iter().map(|promise| promise.limit()).chain(buckets().into_iter().map(|pair| pair.0));
    for limit in limits.step_by(7 * thinned()) {
        for first in EDGES {
            let mut state = State::default();
            for now in EDGES.into_iter().rev().chain(EDGES) {
                for cost in [1, first.max(1), u64::MAX] {
                    calls += 1;
                    let at = Timestamp::from_ticks(now);
                    limit.adjust(&mut state, at, Adjustment::Charge(Cost::of(cost)));
                    let _ = limit.decide(&mut state, at, Ask::new(Cost::of(cost)));
                    limit.adjust(&mut state, at, Adjustment::Refund(Cost::of(first.max(1))));
                    let decision = limit.peek(&state, at, Ask::ONE);
                    let _ = (decision.remaining(), decision.reset_after(), limit.clear_at(&state));
                }
            }
        }
    }
    println!("extremes: {calls} rounds of charge, take, refund and peek, 0 panics");
    assert!(calls >= 100_000 || crate::is_quick());
}

/// Returns the words of a state as they are, and changed so that they are a valid state.
fn words(algorithm: Algorithm, [a, b, c]: [u64; 3]) -> Vec<Vec<u64>> {
    match algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => vec![vec![a]],
        Algorithm::FixedWindow => vec![vec![a, b]],
        Algorithm::SlidingLog => vec![vec![c, a, b], vec![0, a, 1, b, c]],
        Algorithm::SlidingWindow => vec![vec![a, b, c, c], vec![a, 16_000_000, c, b, c, b]],
        Algorithm::Pacer => vec![vec![a, b, c, 1], vec![a, b, c, 8]],
        _ => vec![vec![a, b, c, 1, 7]],
    }
}

#[test]
fn whatever_bits_are_carried_end_within_one_refill_of_the_new_limit() {
    let texts = [
        ["5/h", "1000000/s burst 3 max-debt 0"],
        ["5/3650d burst 5", "7/m burst 2"],
        ["5/h queue 4 leaky-bucket", "9/s queue 99 leaky-bucket"],
        ["5/h fixed-window", "9/7s fixed-window align first-hit"],
        ["5/h fixed-window align first-hit", "9/3650d fixed-window"],
        ["5/h sliding-log", "9/7s sliding-log"],
        ["5/h sliding-window", "9/7s sliding-window slots 3"],
        ["5/h sliding-window mode estimate", "9/3650d sliding-window slots 1000"],
        ["5/h pacer", "9/s pacer warm-up 4s"],
        ["unlimited pacer", "9/s pacer burst 3650d"],
        ["5/h concurrency", "9/s concurrency"],
    ];
    let mut tried = 0_u64;
    for [one, other] in texts {
        for (old, new) in [(one, other), (other, one)] {
            let [old, new]: [Limit; 2] = [old, new].map(|text| text.parse().expect(text));
            for bits in EDGES.iter().flat_map(|a| EDGES.iter().flat_map(|b| EDGES.map(|c| [*a, *b, c]))) {
                for state in words(old.algorithm(), bits) {
                    let Some(state) = State::from_words(old.algorithm(), &state) else { continue };
                    for changed_at in EDGES.map(Timestamp::from_ticks) {
                        let carried = new.carry(&old, &state, changed_at);
                        tried += 1;
                        if new.algorithm() == Algorithm::Concurrency {
                            assert_eq!(carried, state);
                            continue;
                        }
                        let history = History::new(changed_at, vec![Predecessor::new(&old, changed_at)]);
                        let clear_at = new.clear_at(&carried);
                        let before =
                            clear_at.checked_sub(conformance::ticks(1)).filter(|before| *before > changed_at);
                        let ends = before.is_none_or(|before| history.matters_at(&new, before));
                        assert!(ends, "{old} to {new} at {changed_at:?}: {state:?} became {carried:?}");
                        let _ = new.peek(&carried, changed_at, Ask::ONE);
                    }
                }
            }
        }
    }
    println!("extremes: {tried} states carried, 0 panics, all end in time");
}
