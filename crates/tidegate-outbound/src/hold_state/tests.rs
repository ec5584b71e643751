//! State updates, by hand-made responses.

use proptest::prelude::*;
use tidegate_core::SECOND;

use super::*;
use crate::hints::ReportedQuota;

fn terms() -> PaceConfig {
    PaceConfig { pace: None, longest_hold: 3600 * SECOND, jitter: 0 }
}

fn at(seconds: u32) -> Timestamp {
    Timestamp::after_epoch(seconds * SECOND)
}

fn quota(policy: &str, left: u64, seconds: u64) -> ServerHints {
    let quota = ReportedQuota { policy: policy.as_bytes().into(), left, lasts: Duration::from_secs(seconds) };
    ServerHints { quotas: vec![quota], ..ServerHints::default() }
}

fn hold(hold: Duration) -> ServerHints {
    ServerHints { hold: Some(hold), ..ServerHints::default() }
}

fn learn(
    course: &mut HoldState,
    now: Timestamp,
    hints: &ServerHints,
    (left_at, learned, others): (u64, u64, u64),
) {
    course.learn(&terms(), now, &Answer { hints, left_at, learned, others, chance: 0 });
}

fn leaving(course: &mut HoldState, now: Timestamp) -> u32 {
    let mut count = 0;
    while count < 1000 && course.look(&terms(), now) == Look::Clear {
        course.let_go(&terms(), now);
        count += 1;
    }
    count
}

fn waits_until(course: &mut HoldState, now: Timestamp) -> Timestamp {
    match course.look(&terms(), now) {
        Look::Clear => panic!("it may leave"),
        Look::Wait { until, .. } | Look::Perhaps { until } => until,
    }
}

#[test]
fn a_hold_holds_until_it_is_over_and_no_longer() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &hold(30 * SECOND), (1, 2, 0));
    assert_eq!(waits_until(&mut course, at(0)), at(30));
    assert_eq!(waits_until(&mut course, at(29)), at(30));
    assert_eq!(course.look(&terms(), at(30)), Look::Clear);
}

#[test]
fn a_shorter_hold_does_not_end_a_longer_one() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &hold(30 * SECOND), (1, 3, 0));
    learn(&mut course, at(1), &hold(SECOND), (2, 4, 0));
    assert_eq!(waits_until(&mut course, at(5)), at(30));
}

#[test]
fn of_a_quota_as_many_leave_as_are_left_and_those_on_their_way_count() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &quota("a", 5, 30), (1, 4, 2));
    assert_eq!(leaving(&mut course, at(0)), 3);
    assert_eq!(waits_until(&mut course, at(29)), at(30));
    assert_eq!(leaving(&mut course, at(30)), 1, "and then one, until it is answered");
}

#[test]
fn more_on_their_way_than_are_left_is_as_none_left() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &quota("a", 1, 30), (1, 9, 7));
    assert_eq!(leaving(&mut course, at(0)), 0);
    // One of them never left.
    let let_go = course.let_go(&terms(), at(0));
    course.give_back(&terms(), at(0), let_go);
    assert_eq!(leaving(&mut course, at(0)), 0);
}

#[test]
fn the_answer_to_a_later_call_replaces_what_was_known() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &quota("a", 0, 3), (1, 2, 0));
    learn(&mut course, at(3), &quota("a", 7, 9), (3, 4, 0));
    assert_eq!(leaving(&mut course, at(3)), 7);
    learn(&mut course, at(4), &quota("a", 5, 9), (5, 6, 0));
    assert_eq!(leaving(&mut course, at(4)), 5);
    assert_eq!(waits_until(&mut course, at(4)), at(13));
}

#[test]
fn of_answers_that_overlap_the_stricter_counts() {
    for order in [[3, 9], [9, 3]] {
        let mut course = HoldState::default();
        learn(&mut course, at(0), &quota("a", order[0], 30), (1, 3, 0));
        learn(&mut course, at(0), &quota("a", order[1], 30), (2, 4, 0));
        assert_eq!(leaving(&mut course, at(0)), 3, "{order:?}");
    }
}

#[test]
fn of_answers_that_overlap_the_later_end_counts() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &quota("a", 5, 100), (1, 3, 0));
    learn(&mut course, at(0), &quota("a", 3, 10), (2, 4, 0));
    assert_eq!(leaving(&mut course, at(0)), 3);
    assert_eq!(waits_until(&mut course, at(10)), at(100));
}

#[test]
fn every_policy_holds_by_itself() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &quota("burst", 0, 1), (1, 2, 0));
    learn(&mut course, at(0), &quota("daily", 7, 600), (1, 2, 0));
    assert_eq!(waits_until(&mut course, at(0)), at(1));
    // After "burst" is full again calls leave by slow start, until its remaining quota is reported.
    learn(&mut course, at(1), &quota("burst", 100, 1), (3, 4, 0));
    assert_eq!(leaving(&mut course, at(1)), 7);
    assert_eq!(waits_until(&mut course, at(1)), at(600));
}

#[test]
fn a_server_that_invents_policies_takes_no_more_memory() {
    let mut course = HoldState::default();
    for number in (0..100).rev() {
        learn(&mut course, at(0), &quota(&number.to_string(), number, 30), (1, 2, 0));
        assert!(course.quotas.len() <= MAX_POLICIES);
    }
    assert_eq!(leaving(&mut course, at(0)), 0, "the tightest is among those that are kept");
}

#[test]
fn nothing_holds_longer_than_allowed() {
    let mut course = HoldState::default();
    learn(&mut course, at(0), &hold(Duration::MAX), (1, 2, 0));
    learn(&mut course, at(0), &quota("a", 0, u64::MAX), (1, 2, 0));
    assert_eq!(waits_until(&mut course, at(100)), at(3600), "counted from when it was said");
    assert!(!is_clear(&mut course, at(3599)));
    assert_eq!(course.look(&terms(), at(3600)), Look::Clear);
    assert!(is_clear(&mut course, at(3660)));
}

#[test]
fn a_clock_that_steps_back_holds_no_call_longer_than_allowed() {
    let mut course = HoldState::default();
    learn(&mut course, at(90_000), &hold(30 * SECOND), (1, 2, 0));
    assert_eq!(waits_until(&mut course, at(10)), at(3610));
}

#[test]
fn a_pace_lets_its_burst_leave_and_then_one_by_one() {
    let terms = PaceConfig { pace: Some(Limit::per_second(10).burst(2)), ..terms() };
    let mut course = HoldState::default();
    for _ in 0..2 {
        assert_eq!(course.look(&terms, at(0)), Look::Clear);
        course.let_go(&terms, at(0));
    }
    let tenth = Timestamp::after_epoch(SECOND / 10);
    assert_eq!(course.look(&terms, at(0)), Look::Wait { until: tenth, reason: Reason::Paced });
    let let_go = {
        assert_eq!(course.look(&terms, tenth), Look::Clear);
        course.let_go(&terms, tenth)
    };
    assert_ne!(course.look(&terms, tenth), Look::Clear);
    course.give_back(&terms, tenth, let_go);
    assert_eq!(course.look(&terms, tenth), Look::Clear);
}

#[test]
fn jitter_only_makes_a_wait_longer_and_by_no_more_than_its_share() {
    let terms = PaceConfig { jitter: 50, ..terms() };
    let wait = |chance| terms.wait(10 * SECOND, chance).to_duration();
    assert_eq!(wait(0), 10 * SECOND);
    assert_eq!(wait(u64::MAX), 15 * SECOND);
    let half = wait(u64::MAX / 2);
    assert!(half > 12 * SECOND && half < 13 * SECOND);
}

proptest! {
    /// In whatever order responses arrive, no more calls leave than the strictest of the certainly newest ones allows.
    #[test]
    fn after_any_answers_no_more_leave_than_the_last_of_its_own_said(
        lefts in proptest::collection::vec(0_u64..20, 1..20),
    ) {
        let mut course = HoldState::default();
        let mut moment = 0;
        for left in &lefts {
            moment += 2;
            learn(&mut course, at(0), &quota("a", *left, 30), (moment, moment + 1, 0));
            moment += 2;
        }
        prop_assert_eq!(u64::from(leaving(&mut course, at(0))), *lefts.last().unwrap());
    }

    #[test]
    fn of_any_answers_that_overlap_no_more_leave_than_the_least(
        lefts in proptest::collection::vec(0_u64..20, 1..20),
    ) {
        let mut course = HoldState::default();
        for (number, left) in (100_u64..).zip(&lefts) {
            learn(&mut course, at(0), &quota("a", *left, 30), (number - 100, number, 0));
        }
        prop_assert_eq!(u64::from(leaving(&mut course, at(0))), *lefts.iter().min().unwrap());
    }
}

/// Returns true if no state holds a call back.
fn is_clear(course: &mut HoldState, now: Timestamp) -> bool {
    course.looseness(&terms(), now) == Some(i128::MAX)
}
