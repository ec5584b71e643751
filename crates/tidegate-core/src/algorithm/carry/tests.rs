use std::time::Duration;

use crate::{
    Adjustment, Algorithm, Ask, Cost, DAY, Decision, HOUR, Limit, MINUTE, SECOND, State, Ticks, Timestamp,
    Verdict,
};

fn limit(text: &str) -> Limit {
    text.parse().expect(text)
}

fn at(after: Duration) -> Timestamp {
    Timestamp::after_epoch(after)
}

/// A whole number of days after the epoch, so that windows of every length begin there.
const MONDAY: Duration = Duration::from_secs(700 * 86_400);

fn ask(units: u64) -> Ask {
    Ask { cost: Cost::of(units), max_wait: Ticks::MAX }
}

/// Returns the state after a take of so many units at this time.
fn taken(limit: &Limit, units: u64, now: Timestamp) -> State {
    let mut state = State::default();
    assert!(limit.decide(&mut state, now, ask(units)).is_allowed(), "{limit}");
    state
}

/// Returns the decision about one unit right after a limit under which so many were taken became another.
fn after_change(old: &str, units: u64, new: &str) -> Decision {
    let (old, new, now) = (limit(old), limit(new), at(MONDAY));
    new.peek(&new.carry(&old, &taken(&old, units, now), now), now, Ask::ONE)
}

#[test]
fn a_raised_limit_gives_its_difference_at_once() {
    for (old, new) in [
        ("5/h", "100/h"),
        ("5/h", "100/h burst 100 max-debt 0"),
        ("5/h", "100/s"),
        ("5/h burst 5", "1/h burst 100"),
        ("5/h queue 4 delay-after all leaky-bucket", "100/h queue 99 delay-after all leaky-bucket"),
        ("5/h fixed-window", "100/h fixed-window"),
        ("5/h fixed-window align first-hit", "100/h fixed-window align first-hit"),
        ("5/h fixed-window align first-hit", "100/d fixed-window"),
        ("5/h sliding-log", "100/h sliding-log"),
        ("5/h sliding-log", "100/d sliding-log"),
        ("5/h sliding-window", "100/h sliding-window slots 3"),
        ("5/h sliding-window", "100/h sliding-window mode estimate"),
    ] {
        let decision = after_change(old, 5, new);
        assert_eq!((decision.limit(), decision.remaining()), (100, 95), "{old} to {new}");
    }
}

#[test]
fn a_lowered_limit_denies_for_one_interval_of_its_own() {
    for (old, new, wait) in [
        ("1000/d", "100/d", DAY / 100),
        ("1000/h queue 999 delay-after all leaky-bucket", "1/h queue 9 delay-after all leaky-bucket", HOUR),
        ("1000/d fixed-window", "100/d fixed-window", DAY),
        ("1000/d sliding-log", "100/d sliding-log", DAY),
        ("1000/d sliding-window slots 4", "100/d sliding-window slots 4", 5 * DAY / 4),
    ] {
        let decision = after_change(old, 900, new);
        assert_eq!((decision.remaining(), decision.retry_after()), (0, Some(wait)), "{old} to {new}");
    }
}

#[test]
fn a_unit_that_is_partly_repaid_is_carried_whole() {
    let (old, new) = (limit("1/s burst 5"), limit("1/m burst 5"));
    let state = taken(&old, 2, at(MONDAY));
    for (passed, remaining) in [(0, 3), (1, 3), (999, 3), (1000, 4), (1001, 4), (1999, 4), (2000, 5)] {
        let now = at(MONDAY + Duration::from_millis(passed));
        assert_eq!(new.peek(&new.carry(&old, &state, now), now, Ask::ONE).remaining(), remaining, "{passed}");
    }
}

#[test]
fn a_debt_beyond_the_burst_stays_beyond_it_up_to_the_new_max_debt() {
    let (old, now) = (limit("10/h burst 10 max-debt 10"), at(MONDAY));
    let mut state = taken(&old, 10, now);
    old.adjust(&mut state, now, Adjustment::Charge(Cost::of(4)));
    for (new, owed) in [
        ("10/h burst 10", 14),
        ("10/h burst 2", 4),
        ("10/h burst 2 max-debt 6", 6),
        ("10/h burst 2 max-debt 0", 2),
        ("10/h burst 20 max-debt 0", 14),
        ("10/h burst 12 max-debt 0", 12),
    ] {
        let new = limit(new);
        let reset_after = new.peek(&new.carry(&old, &state, now), now, Ask::ONE).reset_after();
        assert_eq!(reset_after, owed * HOUR / 10, "{new}");
    }
}

#[test]
fn a_debt_left_by_a_clock_step_back_is_cut_to_the_capacity_of_the_old_limit() {
    let (old, new) = (limit("1/h burst 3 max-debt 2"), limit("1/s burst 1000"));
    let state = taken(&old, 3, at(MONDAY));
    let carried = new.carry(&old, &state, at(DAY));
    assert_eq!(new.peek(&carried, at(DAY), Ask::ONE).reset_after(), 5 * SECOND);
}

#[test]
fn a_state_that_is_clear_carries_nothing_and_one_that_is_not_carries_something() {
    for (old, new) in [
        ("3/s", "3/m"),
        ("3/s queue 2 leaky-bucket", "3/m queue 7 leaky-bucket"),
        ("3/s fixed-window", "3/m fixed-window"),
        ("3/s fixed-window align first-hit", "3/m fixed-window align first-hit"),
        ("3/s sliding-log", "3/m sliding-log"),
        ("3/s sliding-window", "3/m sliding-window"),
        ("3/s sliding-window mode estimate", "3/m sliding-window"),
        ("3/s pacer burst 2s", "3/s pacer burst 1m"),
        ("3/s pacer warm-up 2s", "3/m pacer warm-up 1m"),
    ] {
        let (old, new) = (limit(old), limit(new));
        let state = taken(&old, 3, at(MONDAY));
        let clear_at = old.clear_at(&state);
        assert_eq!(new.carry(&old, &state, clear_at), State::default(), "{old} to {new}");
        let before = clear_at.checked_sub(Ticks::new(1)).expect("after the epoch");
        assert_ne!(new.carry(&old, &state, before), State::default(), "{old} to {new}");
        assert_eq!(new.carry(&old, &State::default(), before), State::default(), "{old} to {new}");
    }
}

#[test]
fn the_same_numbers_carry_a_state_that_decides_the_same() {
    for text in [
        "2/s burst 9",
        "2/s queue 5 delay-after 2 leaky-bucket",
        "9/m fixed-window",
        "9/m sliding-log",
        "9/m sliding-window slots 7",
        "9/m sliding-window mode estimate",
        "3/s pacer",
        "3/s pacer warm-up 9s pay self",
        "9/30s concurrency",
    ] {
        let limit = limit(text);
        let state = taken(&limit, 4, at(MONDAY));
        let changed_at = at(MONDAY + SECOND);
        let carried = limit.carry(&limit, &state, changed_at);
        for units in [1, 5, 6] {
            let [kept, carried] = [&state, &carried].map(|state| limit.peek(state, changed_at, ask(units)));
            assert_eq!(carried.verdict(), kept.verdict(), "{text}");
            assert_eq!(carried.remaining(), kept.remaining(), "{text}");
        }
    }
}

#[test]
fn between_different_algorithms_nothing_is_carried() {
    let texts = ["1/h", "1/h leaky-bucket", "1/h fixed-window", "1/h sliding-log", "1/h sliding-window"];
    for old in texts.map(limit) {
        let state = taken(&old, 1, at(MONDAY));
        for new in texts.map(limit).into_iter().filter(|new| new.algorithm() != old.algorithm()) {
            assert_eq!(new.carry(&old, &state, at(MONDAY)), State::default(), "{old} to {new}");
        }
    }
}

fn window(state: &State) -> (Duration, u64) {
    let words = state.words();
    (Ticks::new(words[0]).to_duration(), words[1])
}

#[test]
fn a_count_goes_into_the_new_window_that_contains_the_change() {
    let old = limit("9/h fixed-window");
    let state = taken(&old, 7, at(MONDAY));
    let changed_at = at(MONDAY + 30 * MINUTE + SECOND / 2);
    for (new, end, count) in [
        ("9/s fixed-window", MONDAY + 30 * MINUTE + SECOND, 7),
        ("9/d fixed-window", MONDAY + DAY, 7),
        ("2/m fixed-window max-debt 1", MONDAY + 31 * MINUTE, 3),
        ("9/m fixed-window align first-hit", MONDAY + 31 * MINUTE + SECOND / 2, 7),
    ] {
        assert_eq!(window(&limit(new).carry(&old, &state, changed_at)), (end, count), "{new}");
    }
}

#[test]
fn a_window_of_the_first_hit_opens_with_the_change() {
    let old = limit("9/h fixed-window align first-hit");
    let state = taken(&old, 7, at(MONDAY + 7 * MINUTE));
    let changed_at = MONDAY + 17 * MINUTE;
    for (new, end) in [
        ("8/h fixed-window align first-hit", changed_at + HOUR),
        ("9/m fixed-window align first-hit", changed_at + MINUTE),
        ("9/d fixed-window", MONDAY + DAY),
    ] {
        assert_eq!(window(&limit(new).carry(&old, &state, at(changed_at))), (end, 7), "{new}");
    }
}

#[test]
fn a_limit_that_comes_back_has_no_window_cut_short() {
    let [four, three] = ["4/h", "3/h"].map(|rate| limit(&format!("{rate} fixed-window align first-hit")));
    let minutes = |minutes: u32| at(MONDAY + minutes * MINUTE);
    // Four in a window that ends at 60 min, most of them late; the other limit counts one from 20 min on.
    let mut state = taken(&four, 1, minutes(0));
    assert!(four.decide(&mut state, minutes(59), ask(3)).is_allowed());
    let other = taken(&three, 1, minutes(20));
    let mut passed = vec![(0, 1), (59, 3)];
    // The first limit returns at 61 min: its own state is clear, and one is carried.
    assert!(four.clear_at(&state) <= minutes(61));
    state = four.carry(&three, &other, minutes(61));
    for now in 61..=130 {
        while four.decide(&mut state, minutes(now), Ask::ONE).is_allowed() {
            passed.push((now, 1));
        }
    }
    let within_an_hour = |start: u32| {
        let within = passed.iter().filter(|(at, _)| (start..=start + 60).contains(at));
        within.map(|(_, units)| units).sum::<u32>()
    };
    assert!((0..=70).all(|start| within_an_hour(start) <= 2 * 4), "{passed:?}");
    assert_eq!(within_an_hour(61), 3 + 4, "three beside the one, and four in the next window");
}

/// Returns the time after Monday and the units of each entry.
fn entries(state: &State) -> Vec<(Duration, u64)> {
    let words = state.words();
    let Some((&forgotten, entries)) = words.split_first() else { return Vec::new() };
    let mut before = forgotten;
    let entry = |pair: &[u64]| {
        let units = pair[1] - before;
        before = pair[1];
        (Ticks::new(pair[0]).to_duration() - MONDAY, units)
    };
    entries.chunks(2).map(entry).collect()
}

#[test]
fn a_log_keeps_the_times_of_the_actions_that_count_at_the_change() {
    let old = limit("9/m sliding-log");
    let mut state = State::default();
    for (second, units) in [(0, 2), (10, 3), (40, 1), (65, 2)] {
        assert!(old.decide(&mut state, at(MONDAY + second * SECOND), ask(units)).is_allowed());
    }
    let carried = |new: &str, second: u32| {
        let carried = limit(new).carry(&old, &state, at(MONDAY + second * SECOND));
        entries(&carried).into_iter().map(|(time, units)| (time.as_secs(), units)).collect::<Vec<_>>()
    };
    assert_eq!(carried("99/m sliding-log", 65), [(10, 3), (40, 1), (65, 2)], "the first have left");
    assert_eq!(carried("99/h sliding-log", 65), [(10, 3), (40, 1), (65, 2)], "there as well");
    assert_eq!(carried("99/m sliding-log", 64), [(10, 3), (40, 1)], "the last come after the change");
    assert_eq!(carried("99/25s sliding-log", 65), [(65, 2)], "those at 40 s have left a shorter period");
    assert_eq!(carried("99/26s sliding-log", 65), [(40, 1), (65, 2)]);
    assert_eq!(carried("4/m sliding-log", 65), [(10, 1), (40, 1), (65, 2)], "the newest four");
    assert_eq!(carried("1/m sliding-log", 65), [(65, 1)]);
}

#[test]
fn slots_that_have_left_the_old_period_do_not_count_in_a_longer_one() {
    let (old, new) = (limit("9/m sliding-window slots 4"), limit("9/h sliding-window slots 4"));
    let mut state = State::default();
    for (second, units) in [(0, 2), (20, 3), (40, 1)] {
        assert!(old.decide(&mut state, at(MONDAY + second * SECOND), ask(units)).is_allowed());
    }
    for (second, used) in [(40, 6), (74, 6), (75, 4), (89, 4), (90, 1), (104, 1), (105, 0)] {
        let now = at(MONDAY + second * SECOND);
        let remaining = new.peek(&new.carry(&old, &state, now), now, Ask::ONE).remaining();
        assert_eq!(remaining, 9 - used, "{second} s");
    }
}

#[test]
fn the_newest_slots_are_kept_up_to_the_most_that_is_counted() {
    let (old, new) = (limit("9/m sliding-window slots 4"), limit("2/m sliding-window slots 4 max-debt 1"));
    let mut state = taken(&old, 4, at(MONDAY));
    assert!(old.decide(&mut state, at(MONDAY + 20 * SECOND), ask(2)).is_allowed());
    let carried = new.carry(&old, &state, at(MONDAY + 20 * SECOND));
    assert_eq!(carried.words()[2..], [2, 1, 0, 0, 0]);
}

#[test]
fn each_of_the_two_windows_of_an_estimate_may_be_full() {
    let limit = limit("9/m sliding-window mode estimate max-debt 0");
    let mut state = taken(&limit, 9, at(MONDAY + 59 * SECOND));
    let late = at(MONDAY + 118 * SECOND);
    assert!(limit.decide(&mut state, late, ask(8)).is_allowed());
    let carried = limit.carry(&limit, &state, late);
    assert_eq!(
        carried.words()[2..],
        [8, 9],
        "the older one counts a part of nine, not of the one that is left"
    );
}

#[test]
fn a_pacer_keeps_its_debt_as_a_time_and_its_share_of_savings() {
    let old = limit("10/s pacer burst 2s");
    let now = at(MONDAY);
    let spent = taken(&old, 5, now);
    for (new, saved) in [
        ("1/s pacer burst 20s", 15),
        ("10/s pacer burst 4s", 30),
        ("20/s pacer burst 2s", 30),
        ("10/s pacer burst 0s", 0),
    ] {
        let new = limit(new);
        let decision = new.peek(&new.carry(&old, &spent, now), now, Ask::ONE);
        assert_eq!((decision.remaining(), decision.reset_after()), (saved, Duration::ZERO), "{new}");
    }
    let owes = taken(&old, 50, now);
    for new in ["1/s pacer", "1000/s pacer", "1/s pacer warm-up 9s", "unlimited pacer"].map(limit) {
        let decision = new.peek(&new.carry(&old, &owes, now), now, Ask::ONE);
        assert_eq!(decision.reset_after(), 3 * SECOND, "{new}");
    }
}

#[test]
fn after_an_unlimited_rate_a_pacer_is_full_or_warm() {
    let steady = limit("10/s pacer burst 3s");
    let warming = limit("10/s pacer warm-up 4s");
    for (old, passed) in [
        ("unlimited pacer", Duration::ZERO),
        ("unlimited pacer", MONDAY),
        ("unlimited pacer warm-up 9s", Duration::ZERO),
        ("unlimited pacer warm-up 9s", DAY),
    ] {
        let old = limit(old);
        for state in [State::default(), taken(&old, 1000, Timestamp::EPOCH)] {
            let now = at(passed);
            let remaining = |new: &Limit| new.peek(&new.carry(&old, &state, now), now, Ask::ONE).remaining();
            assert_eq!((remaining(&steady), remaining(&warming)), (30, 0), "{old} after {passed:?}");
        }
    }
}

#[test]
fn holders_of_permits_stay_as_they_are() {
    let (old, new) = (limit("4/m concurrency"), limit("2/s concurrency"));
    let state = taken(&old, 3, at(MONDAY));
    assert_eq!(new.carry(&old, &state, at(MONDAY)), state);
    let decision = new.peek(&state, at(MONDAY), Ask::ONE);
    assert!(matches!(decision.verdict(), Verdict::Denied { .. }));
    assert_eq!(new.carry(&old, &State::default(), at(MONDAY)), State::default());
    assert_eq!(Algorithm::Concurrency, new.algorithm());
}
