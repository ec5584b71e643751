mod traffic;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{BreakerPermit, BreakerState, CircuitBreaker};
use crate::adaptive::Outcome;
use crate::{MILLISECOND, ManualClock, SECOND};

/// Returns a breaker with the defaults, on a clock that the test moves.
fn guard() -> (CircuitBreaker, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    clock.advance(100 * SECOND);
    (CircuitBreaker::builder().clock(Arc::clone(&clock) as _).build(), clock)
}

/// Asks so many times, ends each admitted call with this outcome, and returns the number admitted.
fn ask(guard: &CircuitBreaker, times: u64, outcome: Outcome) -> u64 {
    let passed = (0..times).filter_map(|_| guard.admit().ok());
    passed.map(|passage| passage.done(outcome)).count() as u64
}

/// Returns a breaker that has just opened: calls failed at 1/2, 1/4, 1/8, 1/16 and 1/32.
fn shut() -> (CircuitBreaker, Arc<ManualClock>) {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    for _ in 0..5 {
        ask(&guard, 100, Outcome::Overloaded);
        clock.advance(SECOND);
        guard.state();
    }
    (guard, clock)
}

fn limiting(percent: u64) -> BreakerState {
    BreakerState::Limiting { percent }
}

fn shut_for(seconds: u32) -> BreakerState {
    BreakerState::Shut { left: seconds * SECOND }
}

#[test]
fn below_the_least_number_of_calls_it_never_limits() {
    let (guard, _) = guard();
    assert_eq!(ask(&guard, 19, Outcome::Failed), 19);
    assert_eq!(guard.state(), BreakerState::Clear);
    assert_eq!(ask(&guard, 1, Outcome::Failed), 1);
    assert_eq!(guard.state(), limiting(50));
}

#[test]
fn at_the_percentage_it_does_not_limit_and_above_it_does() {
    let (guard, _) = guard();
    ask(&guard, 50, Outcome::Done);
    ask(&guard, 50, Outcome::Overloaded);
    assert_eq!(guard.state(), BreakerState::Clear);
    ask(&guard, 1, Outcome::Failed);
    assert_eq!(guard.state(), limiting(50));
}

#[test]
fn ignored_and_dropped_calls_are_not_judged() {
    let (guard, _) = guard();
    ask(&guard, 19, Outcome::Failed);
    ask(&guard, 1000, Outcome::Ignored);
    drop((0..1000).map(|_| guard.admit()).collect::<Vec<_>>());
    assert_eq!(guard.state(), BreakerState::Clear);
}

#[test]
fn calls_older_than_the_window_are_not_judged() {
    let (guard, clock) = guard();
    ask(&guard, 19, Outcome::Failed);
    clock.advance(10 * SECOND);
    ask(&guard, 19, Outcome::Failed);
    assert_eq!(guard.state(), BreakerState::Clear);
    clock.advance(9 * SECOND);
    ask(&guard, 1, Outcome::Failed);
    assert_eq!(guard.state(), limiting(50), "those of nine seconds ago are within it");
}

#[test]
fn exactly_the_share_passes_at_any_number_of_calls() {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    let mut passed = 0;
    for asked in 1..=1000 {
        passed += ask(&guard, 1, Outcome::Failed);
        assert_eq!(passed, asked / 2);
    }
    clock.advance(SECOND);
    assert_eq!(guard.state(), limiting(25));
    assert_eq!(ask(&guard, 1003, Outcome::Failed), 250);
    clock.advance(SECOND);
    assert_eq!((guard.state(), ask(&guard, 1000, Outcome::Done)), (limiting(12), 125));
    clock.advance(SECOND);
    assert_eq!((guard.state(), ask(&guard, 1000, Outcome::Done)), (limiting(25), 250));
}

#[test]
fn the_share_grows_to_all_calls_while_calls_succeed() {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    for percent in [50, 62, 75, 87] {
        assert_eq!(guard.state(), limiting(percent));
        ask(&guard, 100, Outcome::Done);
        clock.advance(SECOND);
    }
    assert_eq!(guard.state(), BreakerState::Clear);
    assert_eq!(ask(&guard, 19, Outcome::Failed), 19, "nothing of before counts");
    assert_eq!(guard.state(), BreakerState::Clear);
}

#[test]
fn a_call_from_before_a_change_is_not_counted_after_it() {
    let (guard, clock) = guard();
    let early: Vec<BreakerPermit> = (0..100).filter_map(|_| guard.admit().ok()).collect();
    ask(&guard, 20, Outcome::Failed);
    early.into_iter().for_each(|passage| passage.done(Outcome::Failed));
    clock.advance(SECOND);
    assert_eq!(guard.state(), limiting(50));
    ask(&guard, 6, Outcome::Done);
    assert_eq!(guard.state(), limiting(62));
}

#[test]
fn without_results_the_share_grows_by_a_step_per_window() {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    ask(&guard, 4, Outcome::Done); // two pass: too few for a step
    clock.advance(10 * SECOND - MILLISECOND);
    assert_eq!(guard.state(), limiting(50));
    clock.advance(MILLISECOND);
    assert_eq!(guard.state(), limiting(62));
    clock.advance(30 * SECOND);
    assert_eq!(guard.state(), BreakerState::Clear);
}

#[test]
fn a_call_in_flight_suspends_growth_for_eight_windows() {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    let hung: Vec<_> = (0..2).filter_map(|_| guard.admit().ok()).collect();
    assert_eq!(hung.len(), 1);
    clock.advance(80 * SECOND - MILLISECOND);
    assert_eq!(guard.state(), limiting(50));
    clock.advance(MILLISECOND);
    assert_eq!(guard.state(), limiting(62));
    clock.advance(10 * SECOND);
    assert_eq!(guard.state(), limiting(75), "what was given up is not waited for again");
}

#[test]
fn a_failed_call_suspends_growth_for_eight_windows() {
    for looks_in_between in [true, false] {
        let (guard, clock) = guard();
        ask(&guard, 20, Outcome::Failed);
        ask(&guard, 4, Outcome::Failed);
        clock.advance(80 * SECOND - MILLISECOND);
        if looks_in_between {
            assert_eq!(guard.state(), limiting(50));
        }
        clock.advance(20 * SECOND + MILLISECOND);
        assert_eq!(guard.state(), limiting(87), "a step after 80 s, and one per window from there");
    }
}

#[test]
fn when_no_share_helps_the_breaker_is_open_for_the_pause() {
    let (guard, clock) = shut();
    assert_eq!(guard.state(), shut_for(5));
    clock.advance(5 * SECOND - MILLISECOND);
    let refusal = guard.admit().unwrap_err();
    assert_eq!(refusal.retry_after(), Some(MILLISECOND));
    assert!(refusal.is_overloaded());
    clock.advance(MILLISECOND);
    assert_eq!(guard.state(), BreakerState::HalfOpen);
}

#[test]
fn a_late_reading_finds_the_pause_over() {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    for _ in 0..4 {
        ask(&guard, 100, Outcome::Overloaded);
        clock.advance(SECOND);
    }
    assert_eq!((guard.state(), ask(&guard, 100, Outcome::Overloaded)), (limiting(3), 3));
    clock.advance(4 * SECOND);
    assert_eq!(guard.state(), shut_for(2), "it was shut three seconds ago");
    clock.advance(2 * SECOND);
    assert_eq!(guard.state(), BreakerState::HalfOpen);
}

#[test]
fn half_open_admits_a_bounded_number_of_probes_and_a_dropped_one_frees_its_slot() {
    let (guard, clock) = shut();
    clock.advance(5 * SECOND);
    let mut probes: Vec<_> = (0..3).map(|_| guard.admit().unwrap()).collect();
    assert!(guard.admit().is_err());
    drop(probes.pop());
    probes.push(guard.admit().unwrap());
    assert!(guard.admit().is_err());
    probes.into_iter().for_each(|probe| probe.done(Outcome::Done));
    assert_eq!(guard.state(), limiting(12), "it eases off from a small share");
    for _ in 0..7 {
        ask(&guard, 100, Outcome::Done);
        clock.advance(SECOND);
        guard.state();
    }
    assert_eq!(guard.state(), BreakerState::Clear);
}

#[test]
fn each_probe_that_fails_makes_the_next_pause_longer_up_to_a_bound() {
    let (guard, clock) = shut();
    for seconds in [5, 10, 20, 40, 40, 40] {
        assert_eq!(guard.state(), shut_for(seconds));
        clock.advance(seconds * SECOND);
        let late = guard.admit().unwrap();
        ask(&guard, 1, Outcome::Failed);
        late.done(Outcome::Done);
    }
    clock.advance(40 * SECOND);
    ask(&guard, 3, Outcome::Done);
    for _ in 0..7 {
        ask(&guard, 100, Outcome::Done);
        clock.advance(SECOND);
        guard.state();
    }
    assert_eq!(guard.state(), BreakerState::Clear);
    ask(&guard, 20, Outcome::Failed);
    for _ in 0..5 {
        ask(&guard, 100, Outcome::Failed);
        clock.advance(SECOND);
        guard.state();
    }
    assert_eq!(guard.state(), shut_for(5), "clear forgets the longer pauses");
}

#[test]
fn each_eight_pauses_one_more_probe_passes_beside_probes_that_never_end() {
    let (guard, clock) = shut();
    clock.advance(5 * SECOND);
    let mut hung: Vec<_> = (0..3).map(|_| guard.admit().unwrap()).collect();
    for _ in 0..4 {
        clock.advance(40 * SECOND - MILLISECOND);
        assert!(guard.admit().is_err());
        clock.advance(MILLISECOND);
        hung.push(guard.admit().unwrap());
        assert!(guard.admit().is_err());
    }
    clock.advance(40 * SECOND);
    assert_eq!(ask(&guard, 3, Outcome::Done), 3);
    assert_eq!(guard.state(), limiting(12), "probes that succeed count, whatever hangs");
}

#[test]
fn an_overdue_probe_that_ends_frees_no_additional_slot() {
    let (guard, clock) = shut();
    clock.advance(5 * SECOND);
    let mut probes: Vec<_> = (0..3).map(|_| guard.admit().unwrap()).collect();
    clock.advance(40 * SECOND);
    probes.push(guard.admit().unwrap());
    drop(probes);
    let held: Vec<_> = (0..10).filter_map(|_| guard.admit().ok()).collect();
    assert_eq!(held.len(), 3);
}

#[test]
fn a_probe_that_takes_longer_than_eight_pauses_still_counts() {
    for (outcome, state) in [(Outcome::Done, limiting(12)), (Outcome::Overloaded, shut_for(10))] {
        let (guard, clock) = shut();
        clock.advance(5 * SECOND);
        let slow: Vec<_> = (0..3).map(|_| guard.admit().unwrap()).collect();
        clock.advance(45 * SECOND);
        assert_eq!(guard.state(), BreakerState::HalfOpen);
        slow.into_iter().for_each(|probe| probe.done(outcome));
        assert_eq!(guard.state(), state);
    }
}

#[test]
fn a_clock_step_back_does_not_extend_the_open_time() {
    let (guard, clock) = shut();
    clock.step_back(90 * SECOND);
    assert_eq!(guard.state(), shut_for(5));
    clock.advance(5 * SECOND);
    assert_eq!(guard.state(), BreakerState::HalfOpen);
    ask(&guard, 3, Outcome::Done);
    clock.step_back(15 * SECOND);
    ask(&guard, 100, Outcome::Done);
    clock.advance(SECOND);
    assert_eq!(guard.state(), limiting(25));
}

#[test]
fn counts_from_before_a_clock_step_back_are_dropped() {
    let (guard, clock) = guard();
    ask(&guard, 19, Outcome::Failed);
    clock.step_back(50 * MILLISECOND);
    assert_eq!(guard.state(), BreakerState::Clear, "readings out of order are no step");
    clock.step_back(SECOND);
    ask(&guard, 19, Outcome::Failed);
    assert_eq!(guard.state(), BreakerState::Clear);
    ask(&guard, 1, Outcome::Failed);
    assert_eq!(guard.state(), limiting(50));
}

#[test]
fn settings_are_bounded_and_create_an_independent_breaker() {
    let (guard, clock) = guard();
    ask(&guard, 20, Outcome::Failed);
    let builder = || CircuitBreaker::builder().clock(Arc::clone(&clock) as _);
    let strict =
        builder().window(Duration::ZERO).at_least(0).percent(0).probes(0).pause(Duration::ZERO).build();
    assert_eq!((guard.state(), strict.state()), (limiting(50), BreakerState::Clear));
    ask(&strict, 1, Outcome::Failed);
    assert_eq!(strict.state(), limiting(50));
    for _ in 0..5 {
        ask(&strict, 32, Outcome::Failed);
        clock.advance(MILLISECOND / 10);
    }
    assert_eq!(strict.state(), BreakerState::Shut { left: MILLISECOND });
    let never = builder().percent(1000).build();
    ask(&never, 1000, Outcome::Failed);
    assert_eq!(never.state(), BreakerState::Clear);
    let endless = builder().percent(1).window(Duration::MAX).pause(Duration::MAX).build();
    ask(&endless, 20, Outcome::Failed);
    clock.advance(Duration::MAX);
    assert_eq!(ask(&endless, 4, Outcome::Failed), 2);
}

#[test]
fn threads_get_exactly_the_share_together() {
    let (guard, _) = guard();
    ask(&guard, 20, Outcome::Failed);
    let times = if cfg!(miri) { 25 } else { 25_000 };
    let passed: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| ask(&guard, times, Outcome::Failed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 2 * times);
}

#[cfg(not(miri))]
mod random {
    use proptest::prelude::*;

    use super::*;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            1 => Just(Outcome::Done),
            4 => Just(Outcome::Failed),
            4 => Just(Outcome::Overloaded),
            1 => Just(Outcome::Ignored)
        ]
    }

    proptest! {
        /// While every window contains fewer judged calls than the threshold, every call passes.
        #[test]
        fn with_few_calls_in_every_window_everything_passes(
            history in prop::collection::vec((0..4_000_u64, outcome(), any::<bool>()), 0..300),
        ) {
            let (guard, clock) = guard();
            let (mut now, mut ended, mut open) = (0_u64, Vec::new(), Vec::new());
            for (gap, outcome, waits) in history {
                clock.advance(Duration::from_millis(gap));
                now += gap;
                ended.retain(|at| at + 10_000 > now);
                open.push((guard.admit().expect("it is clear"), outcome));
                if waits {
                    continue;
                }
                for (passage, outcome) in open.drain(..) {
                    let is_judged = outcome != Outcome::Ignored;
                    if !is_judged || ended.len() < 19 {
                        ended.extend(is_judged.then_some(now));
                        passage.done(outcome);
                    }
                }
            }
            prop_assert_eq!(guard.state(), BreakerState::Clear);
        }

        /// No history causes a panic, and after a quiet time the breaker is closed or admits probes.
        #[test]
        fn no_history_keeps_the_breaker_open_for_ever(
            history in prop::collection::vec((any::<i32>(), outcome(), 0..30_u64), 0..100),
        ) {
            let (guard, clock) = guard();
            for (milliseconds, outcome, times) in history {
                let step = Duration::from_millis(u64::from(milliseconds.unsigned_abs()) / 10_000);
                if milliseconds < 0 { clock.step_back(step) } else { clock.advance(step) }
                ask(&guard, times, outcome);
            }
            clock.advance(100 * SECOND);
            prop_assert!((0..32).any(|_| guard.admit().is_ok()), "the least share is one in 32");
        }
    }
}
