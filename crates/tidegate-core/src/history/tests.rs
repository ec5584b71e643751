use super::*;
use crate::{Ask, Cost, SECOND, Ticks};

fn limit(text: &str) -> Limit {
    text.parse().expect(text)
}

fn at(second: u32) -> Timestamp {
    Timestamp::after_epoch(second * SECOND)
}

fn spent(text: &str, units: u64, second: u32) -> State {
    let mut state = State::default();
    assert!(limit(text).decide(&mut state, at(second), Ask::new(Cost::of(units))).is_allowed(), "{text}");
    state
}

/// Creates a history from predecessors by text and time, newest first.
fn history(since: u32, before: &[(&str, u32)]) -> History {
    let before = before.iter().map(|(text, since)| Predecessor::new(&limit(text), at(*since)));
    History::new(at(since), before.collect())
}

fn remaining(history: &History, text: &str, states: &[&State]) -> u64 {
    let begun = history.begin(&limit(text), history.since(), |index, _| states[index].clone());
    begun.peek(&limit(text), history.since(), Ask::ONE).remaining()
}

#[test]
fn four_predecessors_are_kept_and_the_fifth_is_dropped() {
    let five: Vec<_> = (0..5).map(|age| Predecessor::new(&limit("9/h"), at(50 - age))).collect();
    assert_eq!(History::new(at(60), five[..4].to_vec()).before(), &five[..4]);
    assert_eq!(History::new(at(60), five.clone()).before(), &five[..4], "the oldest goes");
}

/// A key whose limit alternates keeps its usage under the limits before these.
#[test]
fn a_limit_that_comes_back_is_a_predecessor_once_and_never_its_own() {
    let [a, b, c] = [1, 2, 3].map(Limit::per_second);
    let mut history = History::new(at(1), vec![Predecessor::new(&c, at(0))]);
    let mut now = a;
    for (round, next) in [b, a, b, a, b].into_iter().enumerate() {
        history = history.followed_by(&now, &next, at(2 + u32::try_from(round).unwrap()));
        now = next;
        let other = if next == a { b } else { a };
        let numbers: Vec<_> = history.before().iter().map(Predecessor::numbers).collect();
        assert_eq!(numbers, [other.numbers(), c.numbers()], "round {round}");
    }
}

#[test]
fn a_history_matters_until_one_full_refill_after_the_change() {
    for (text, seconds) in [
        ("10/s burst 20 max-debt 10", 3),
        ("10/s queue 9 max-debt 10 leaky-bucket", 2),
        ("5/7s fixed-window", 7),
        ("5/7s sliding-log", 7),
        ("5/8s sliding-window slots 4", 10),
    ] {
        let (changed, limit) = (history(100, &[("9/h", 50)]), limit(text));
        let end = at(100 + seconds);
        let before = end.checked_sub(Ticks::new(1)).expect("after the epoch");
        assert!(changed.matters_at(&limit, before) && !changed.matters_at(&limit, end), "{text}");
        assert!(changed.matters_at(&limit, Timestamp::EPOCH), "a clock that stepped back");
        assert!(!history(100, &[]).matters_at(&limit, before), "nothing was before");
    }
    let holders = limit("5/h concurrency");
    assert!(!history(100, &[("9/h concurrency", 50)]).matters_at(&holders, at(100)));
}

#[test]
fn without_predecessors_a_key_begins_full() {
    let begun = history(100, &[]).begin(&limit("9/h"), at(100), |_, _| unreachable!("there is none"));
    assert_eq!(begun, Begun::FULL);
}

#[test]
fn counts_are_carried_through_each_predecessor_at_its_own_time() {
    // 8 of 9 are used at 10 s; two are refilled until 70 s, so 6 of 20 are used then; one is refilled each second.
    let oldest = spent("2/m burst 9", 8, 10);
    let changed = history(73, &[("1/s burst 20", 70), ("2/m burst 9", 0)]);
    let unseen = State::default();
    assert_eq!(remaining(&changed, "1/h burst 9", &[&unseen, &oldest]), 9 - 3);
    // Of several states the strictest decides, here the newer one.
    let newer = spent("1/s burst 20", 15, 71);
    assert_eq!(remaining(&changed, "1/h burst 99", &[&newer, &oldest]), 99 - 13);
    // A clear state is the same as none.
    let stale = spent("1/s burst 20", 20, 50);
    assert_eq!(remaining(&changed, "1/h burst 9", &[&stale, &oldest]), 9 - 3);
}

#[test]
fn the_oldest_state_is_used_however_old_it_is() {
    let oldest = spent("9/h burst 9", 5, 10);
    let changed = history(73, &[("9/h burst 9", 60)]);
    assert_eq!(remaining(&changed, "1/h burst 20", &[&oldest]), 15);
    let clear = spent("9/s burst 9", 5, 10);
    let changed = history(73, &[("9/s burst 9", 60)]);
    assert_eq!(remaining(&changed, "1/h burst 20", &[&clear]), 20);
}

#[test]
fn a_carried_state_ends_with_the_one_that_it_comes_from() {
    let spent = spent("5/s", 5, 10);
    let changed = history(10, &[("5/s", 0)]);
    let new = limit("5/h");
    let begun = |now| changed.begin(&new, now, |_, _| spent.clone());
    let last = at(11).checked_sub(Ticks::new(1)).expect("after the epoch");
    for (now, wait) in [(at(10), Ticks::saturating_from(SECOND)), (last, Ticks::new(1))] {
        let denied = begun(now).peek(&new, now, Ask::ONE);
        assert_eq!(denied.verdict_in_ticks(), Verdict::Denied { retry_after: wait });
        assert_eq!(denied.reset_after_in_ticks(), wait);
    }
    assert_eq!(begun(at(11)), Begun::FULL, "the old state is clear");
    let never = Ask::new(Cost::of(6));
    assert_eq!(begun(at(10)).peek(&new, at(10), never).verdict(), Verdict::Impossible);
}

#[test]
fn another_algorithm_between_two_starts_full() {
    let oldest = spent("9/h burst 9", 5, 10);
    let changed = history(73, &[("9/h sliding-log", 60), ("9/h burst 9", 0)]);
    assert_eq!(remaining(&changed, "1/h burst 20", &[&State::default(), &oldest]), 20);
}

#[test]
fn a_predecessor_is_made_of_its_numbers_again() {
    for text in [
        "10/s burst 20 max-debt 3",
        "10/s queue 5 delay-after 2 leaky-bucket",
        "10/s queue 5 delay-after all leaky-bucket",
        "7/60s fixed-window align first-hit max-debt 9",
        "7/60s fixed-window",
        "5/m sliding-log count-denied",
        "5/m sliding-window slots 7 max-debt 2",
        "5/3650d sliding-window slots 1000",
        "5/m sliding-window mode estimate",
        "5/s pacer burst 3s pay self",
        "5/s pacer burst 0s",
        "5/s pacer warm-up 4s cold-factor 5",
        "unlimited pacer",
        "8/30s concurrency",
    ] {
        let known = Predecessor::new(&limit(text), at(9));
        let read = Predecessor::from_numbers(known.algorithm(), known.numbers(), known.since());
        assert_eq!(read, Some(known), "{text}");
    }
}

#[test]
fn numbers_that_no_limit_has_are_no_predecessor() {
    let year = 365 * 86_400 * 16_000_000_000;
    for (algorithm, numbers) in [
        (Algorithm::TokenBucket, [1, 0, 0, 0, 0]),
        (Algorithm::TokenBucket, [0, 100, 0, 0, 0]),
        (Algorithm::TokenBucket, [2, 100, 300, 0, 0]),
        (Algorithm::TokenBucket, [2, 100, 200, 50, 0]),
        (Algorithm::TokenBucket, [2, 100, 200, 0, 1]),
        (Algorithm::TokenBucket, [11, year, 11 * year, 0, 0]),
        (Algorithm::LeakyBucket, [0, 100, 0, 0, 0]),
        (Algorithm::LeakyBucket, [2, 100, 200, 0, 50]),
        (Algorithm::FixedWindow, [5, 0, 0, 5, 0]),
        (Algorithm::FixedWindow, [5, 1000, 2, 5, 0]),
        (Algorithm::FixedWindow, [5, 1000, 0, 4, 0]),
        (Algorithm::FixedWindow, [5, 11 * year, 0, 5, 0]),
        (Algorithm::SlidingLog, [u64::MAX, 1000, 0, 0, 0]),
        (Algorithm::SlidingLog, [5, 1000, 0, 1, 0]),
        (Algorithm::SlidingWindow, [5, 0, 4, 0, 5]),
        (Algorithm::SlidingWindow, [5, 1000, 0, 0, 5]),
        (Algorithm::SlidingWindow, [5, 1000, u64::MAX, 0, 5]),
        (Algorithm::SlidingWindow, [5, year, 11, 0, 5]),
        (Algorithm::Pacer, [5, 0, u64::MAX, 0, 0]),
        (Algorithm::Pacer, [5, 2, 1000, 0, 0]),
        (Algorithm::Pacer, [5, 0, 1000, 0, 3]),
        (Algorithm::Pacer, [5, 0, 0, 1000, 101]),
        (Algorithm::Concurrency, [1 << 21, 1000, 0, 0, 0]),
        (Algorithm::Concurrency, [5, 0, 0, 0, 0]),
    ] {
        let read = Predecessor::from_numbers(algorithm, numbers, at(9));
        assert_eq!(read, None, "{algorithm} {numbers:?}");
    }
}

/// Regression: a key that owed under another algorithm, which carries nothing, had another wait under a pacer than
/// a key never seen. One whose rule had two pacers since then began with savings of none.
#[test]
fn a_pacer_after_another_algorithm_begins_as_for_a_key_never_seen() {
    let (log, pacer) = (limit("3/d sliding-log"), limit("4/d burst 2d pay self pacer"));
    let spent = spent("3/d sliding-log", 1, 24);
    let unsaving = limit("1/100ms burst 0w pay self pacer");
    let direct = vec![Predecessor::new(&log, at(0))];
    let indirect = vec![Predecessor::new(&unsaving, at(40)), Predecessor::new(&log, at(0))];
    for before in [direct, indirect] {
        let history = History::new(at(41), before);
        let begun = history.begin(&pacer, at(6329), |_, before| match before.algorithm() {
            Algorithm::SlidingLog => spent.clone(),
            _ => State::default(),
        });
        assert!(begun.is_full(), "{begun:?}");
    }
}
