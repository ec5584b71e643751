//! Tests of the parts that only a store can get wrong: state ownership, eviction, and all-or-none takes.

pub(crate) mod lock_step;

use std::sync::Arc;
use std::time::Duration;

use conformance::keeper::Sheltering;
use conformance::random::Random;
use tidegate::{
    Adjusted, Ask, Cost, DAY, Key, Limit, Limiter, MILLISECOND, ManualClock, Map, SECOND, Subject, Timestamp,
    ask,
};

use lock_step::LockStep;

/// Returns the number of random traces on a map, which is slower than a plain state.
pub(crate) fn traces(usual: u64) -> u64 {
    let traces = crate::traces(usual);
    (traces / 20).max(traces.min(20))
}

/// Runs the same asks on a store and on separate states, for many keys. Returns the number of keys that the store
/// has evicted.
pub(crate) fn decides_like_states_kept_apart<S: Sheltering>(on: &str) -> usize {
    let seed = Random::seed_from_environment();
    let (rounds, steps) = (traces(20_000).div_ceil(50), 20_000);
    let (mut asked, mut refused, mut forgotten) = (0, 0, 0);
    for round in 0..rounds {
        let mut both = LockStep::<S>::new(seed.wrapping_add(round), 2000);
        (0..steps).for_each(|_| both.step());
        asked += both.asked;
        refused += both.refused;
        forgotten += both.forgotten();
    }
    println!(
        "{on}: {rounds} rounds of {steps} steps, {asked} asks, {refused} refused, {forgotten} subjects forgotten, 0 mismatches (seed {seed})"
    );
    assert!(refused > asked / 10, "only {refused} of {asked} asks were refused");
    forgotten
}

/// Runs sets of asks on both, for few keys.
pub(crate) fn stands_or_falls_together<S: Sheltering>(on: &str) {
    let seed = Random::seed_from_environment();
    let (rounds, steps) = (traces(20_000).div_ceil(5), 1000);
    let (mut sets, mut refused) = (0, 0);
    for round in 0..rounds {
        let mut both = LockStep::<S>::new(seed.wrapping_add(round), 4);
        for _ in 0..steps {
            both.step();
            both.pass_time();
            refused += u64::from(!both.take_together());
            sets += 1;
        }
    }
    println!("{on}: {rounds} rounds, {sets} sets of asks, {refused} refused, 0 mismatches (seed {seed})");
    assert!(refused > sets / 10 && refused < sets * 9 / 10, "{refused} of {sets} sets were refused");
}

#[test]
fn many_keys_in_a_map_decide_like_states_kept_apart() {
    let (forgotten, rounds) = (decides_like_states_kept_apart::<Map>("map"), traces(20_000).div_ceil(50));
    assert!(forgotten > 100 * rounds as usize, "only {forgotten} subjects were forgotten");
}

#[test]
fn joint_asks_are_all_allowed_or_all_denied() {
    stands_or_falls_together::<Map>("map");
}

#[test]
fn asks_denied_together_under_two_limits_leave_both_states_as_they_were() {
    let map = Map::with_clock(Arc::new(ManualClock::new()));
    let (large, small) = (Limit::per_second(1).burst(100), Limit::per_second(1).burst(1).max_debt(0));
    let key = Key::new("ana");
    let [large, small] = [&large, &small].map(|limit| Subject::new("shared", &key, limit));
    assert!(map.take(large, Ask::new(Cost::of(100))).0.is_allowed());

    let together = map.take_all(&[(small, Ask::ONE), (large, Ask::ONE)]);

    assert!(!together.is_allowed());
    assert_eq!(map.peek(large, Ask::ONE).reset_after(), 100 * SECOND);
    assert_eq!(map.peek(small, Ask::ONE).remaining(), 1, "another limit is another state");
}

#[test]
fn a_pacer_with_debt_at_a_change_of_its_limit_is_kept_until_it_is_repaid() {
    let (clock, key) = (Arc::new(ManualClock::new()), Key::new("ana"));
    let map = Map::with_clock(clock.clone());
    let pacer = |savings: u64| Limit::pacer(1, SECOND).burst_span(Duration::from_secs(savings));
    clock.advance(DAY);
    let limiter = Limiter::on(&map, "pace", pacer(0));
    assert_eq!(limiter.charge(ask(&key).cost(50)), Adjusted::Whole);
    limiter.set_limit(pacer(100));

    clock.advance(49 * SECOND);
    sweep(&map);
    assert_eq!(limiter.peek(&key).retry_after(), Some(SECOND));

    clock.advance(SECOND);
    sweep(&map);
    assert_eq!(
        limiter.peek(&key).remaining(),
        100,
        "the state before is clear, and nothing is carried from it"
    );
}

#[test]
fn a_window_is_still_spent_for_a_reading_out_of_order_behind_a_sweep() {
    let (clock, key) = (Arc::new(ManualClock::new()), Key::new("ana"));
    let (map, limit) = (Map::with_clock(clock.clone()), Limit::fixed_window(3, SECOND));
    let subject = Subject::new("window", &key, &limit);
    clock.set(Timestamp::after_epoch(Duration::from_millis(10_999)));
    assert!(map.take(subject, Ask::new(Cost::of(3))).0.is_allowed());

    clock.advance(MILLISECOND);
    sweep(&map);
    clock.step_back(MILLISECOND);

    assert!(!map.take(subject, Ask::ONE).0.is_allowed(), "six in one window");
}

/// Asks so often that every part of a map is swept, and leaves no state behind.
fn sweep(map: &Map) {
    let too_much = Ask::new(Cost::of(2));
    for stranger in 0..2000_u64 {
        let (key, limit) = (Key::new(stranger), Limit::per_second(1));
        let stranger = Subject::new("", &key, &limit);
        assert!(!map.take(stranger, too_much).0.is_allowed());
    }
}
