//! Steady traffic to a service that fails or is slow, until the breaker has found its share.

use std::collections::VecDeque;

use super::*;

/// Asks so many times per second, for so many seconds. Each call takes so many seconds and ends with this outcome.
/// Returns the share admitted in the last half, in thousandths.
fn passed_of_thousand(
    guard: &CircuitBreaker,
    clock: &ManualClock,
    traffic: (u32, u64),
    calls: (u64, Outcome),
) -> u64 {
    let ((rate, seconds), (takes, outcome)) = (traffic, calls);
    let (gap, mut in_flight, mut passed) = (SECOND / rate, VecDeque::new(), 0);
    let asked = u64::from(rate) * seconds;
    for asking in 0..asked {
        while in_flight.front().is_some_and(|(ends, _)| *ends <= asking) {
            in_flight
                .pop_front()
                .into_iter()
                .for_each(|(_, passage): (u64, BreakerPermit)| passage.done(outcome));
        }
        if let Ok(passage) = guard.admit() {
            in_flight.push_back((asking + takes * u64::from(rate), passage));
            passed += u64::from(asking >= asked / 2);
        }
        clock.advance(gap);
    }
    passed * 1000 / (asked / 2)
}

#[test]
#[cfg_attr(miri, ignore = "thousands of calls")]
fn time_outs_longer_than_the_window_shut_it() {
    let (guard, clock) = guard();
    let passed = passed_of_thousand(&guard, &clock, (100, 600), (15, Outcome::Overloaded));
    assert!(passed <= 5, "{passed} of 1000");
}

#[test]
#[cfg_attr(miri, ignore = "thousands of calls")]
fn a_few_calls_that_all_fail_shut_it() {
    let (guard, clock) = guard();
    let passed = passed_of_thousand(&guard, &clock, (3, 1200), (0, Outcome::Failed));
    assert!(passed <= 25, "{passed} of 1000");
}

#[test]
#[cfg_attr(miri, ignore = "thousands of calls")]
fn a_recovered_service_slower_than_eight_pauses_gets_all_calls_again() {
    let (guard, clock) = shut();
    let passed = passed_of_thousand(&guard, &clock, (10, 1800), (45, Outcome::Done));
    assert_eq!(passed, 1000);
}
