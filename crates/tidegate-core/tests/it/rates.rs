//! Tests of long-run rates: never above the written rate, and at most a thousandth below it.

use std::time::Duration;

use tidegate::{Algorithm, Ask, LimitBuilder, State, Ticks, Timestamp};

const DAY: u64 = 86_400;

/// Returns rates from the slowest to the fastest, with amounts that divide no tick.
fn rates() -> Vec<(u64, Duration)> {
    let seconds = [1, 60, 3600, DAY, 7 * DAY, 365 * DAY];
    let amounts = [1, 2, 3, 7, 10, 97, 1000, 7919, 99_991, 999_983, 6_666_667, 9_999_991, 10_000_000];
    let mut rates: Vec<_> = seconds
        .into_iter()
        .flat_map(|seconds| amounts.map(|amount| (amount, Duration::from_secs(seconds))))
        .collect();
    rates.extend([
        (1, Duration::from_micros(1)),
        (10, Duration::from_micros(1)),
        (3, Duration::from_micros(7)),
    ]);
    rates
}

/// Takes one unit again and again, each time at the first instant at which it is allowed.
fn admitted_per_tick(draft: LimitBuilder, grants: u64) -> (u64, u64) {
    let limit = draft.build().expect("every rate above holds");
    let mut state = State::default();
    let mut now = Timestamp::EPOCH;
    let mut passed = 0;
    while passed < grants {
        let decision = limit.decide(&mut state, now, Ask::ONE);
        match decision.verdict_in_ticks() {
            tidegate::Verdict::Allowed { .. } => passed += 1,
            tidegate::Verdict::Denied { retry_after } => now = now.saturating_add(retry_after),
            tidegate::Verdict::Impossible => break,
        }
    }
    // A unit at the end of the last interval belongs to the next one.
    (passed - 1, now.ticks())
}

fn keeps_its_rate(algorithm: Algorithm) {
    let mut checked = 0;
    for (amount, period) in rates() {
        let ticks = Ticks::from_duration(period).expect("a period fits").get();
        let draft = LimitBuilder::new(algorithm, amount, period);
        let draft = match algorithm {
            Algorithm::TokenBucket => draft.burst(1),
            Algorithm::Pacer => draft.burst(0),
            _ => draft,
        };
        let fit = 30 * 365 * DAY * 16_000_000_000 / ticks.div_ceil(amount);
        let (passed, span) = admitted_per_tick(draft, 2000.min(fit).max(2));
        let (passed, span) = (u128::from(passed) * u128::from(ticks), u128::from(span) * u128::from(amount));
        assert!(passed <= span, "{amount} per {period:?}: above the rate");
        assert!(passed * 1000 >= span * 999, "{amount} per {period:?}: more than a thousandth below");
        checked += 1;
    }
    assert!(checked > 70);
}

#[test]
fn a_token_bucket_keeps_any_rate() {
    keeps_its_rate(Algorithm::TokenBucket);
}

#[test]
fn a_leaky_bucket_keeps_any_rate() {
    keeps_its_rate(Algorithm::LeakyBucket);
}

#[test]
fn a_pacer_keeps_any_rate() {
    keeps_its_rate(Algorithm::Pacer);
}

/// Checks windows: greedy traffic over many periods, counted by whole periods.
fn keeps_its_count(algorithm: Algorithm, per_mille: u128) {
    for (amount, period) in [(1, 365 * DAY), (1, 1), (7, 60), (1000, 1), (9_999_991, 1), (99_991, 3600)] {
        let draft = LimitBuilder::new(algorithm, amount, Duration::from_secs(period));
        let limit = draft.build().expect("every rate above holds");
        let mut state = State::default();
        let mut now = Timestamp::EPOCH;
        let mut passed = 0_u128;
        let end = 20.min(36 * 365 * DAY / period) * period * 16_000_000_000;
        while now.ticks() < end {
            let left = limit.peek(&state, now, Ask::ONE).remaining().max(1);
            match limit.decide(&mut state, now, Ask::new(tidegate::Cost::of(left))).verdict_in_ticks() {
                tidegate::Verdict::Allowed { .. } => passed += u128::from(left),
                tidegate::Verdict::Denied { retry_after } => now = now.saturating_add(retry_after),
                tidegate::Verdict::Impossible => break,
            }
        }
        let promised = u128::from(amount) * u128::from(end) / u128::from(period * 16_000_000_000);
        assert!(passed <= promised, "{amount} per {period} s: {passed} of {promised}");
        assert!(passed * 1000 >= promised * per_mille, "{amount} per {period} s: {passed} of {promised}");
    }
}

#[test]
fn a_fixed_window_admits_its_count_in_every_period() {
    keeps_its_count(Algorithm::FixedWindow, 999);
}

#[test]
fn a_strict_sliding_window_admits_its_count_less_a_slot() {
    // 16 of 17 slots; the last one, cut off by the end of the run, counts in full.
    keeps_its_count(Algorithm::SlidingWindow, 940);
}
