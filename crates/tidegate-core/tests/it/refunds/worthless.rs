//! Tests of receipts that are void because debt was refunded without them, and of takes for waiters.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{Adjusted, Limit, Limiter, ManualClock, SECOND, TrackedTake, Zone, ask};

use super::{Arm, EVERYWHERE, LIMITS, clock, limit};

fn hourly(burst: u64) -> Limit {
    Limit::per_hour(1).burst(burst)
}

/// Takes, reduces the debt by `take_off`, takes again, and refunds the first take. Returns the result of the refund,
/// and the remaining quota.
fn left_after(take_off: impl FnOnce(&Limiter)) -> (Adjusted, u64) {
    let limiter = Limiter::with_clock(hourly(5), clock());
    let (_, take) = limiter.admit_tracked("ana");
    take_off(&limiter);
    assert!(limiter.admit("ana").is_allowed());
    (take.expect("it is allowed").refund(), limiter.peek("ana").remaining())
}

#[test]
fn a_receipt_is_worthless_after_debt_was_taken_off_without_it() {
    assert_eq!(left_after(|_| {}), (Adjusted::Whole, 4));
    assert_eq!(
        left_after(|limiter| assert_eq!(limiter.refund("ana"), Adjusted::Whole)),
        (Adjusted::Capped, 4)
    );
    assert_eq!(left_after(|limiter| limiter.reset("ana")), (Adjusted::Capped, 4));
    assert_eq!(
        left_after(|limiter| assert_eq!(limiter.refund("bob"), Adjusted::Capped)),
        (Adjusted::Whole, 4),
        "of another key"
    );
    assert_eq!(left_after(|limiter| limiter.set_limit(hourly(9))), (Adjusted::Capped, 7), "of another limit");
}

/// Calls `check` for each algorithm in each kind of store, with its clock.
fn everywhere(check: impl Fn(&Arm, &ManualClock, &str)) {
    for (place, text) in EVERYWHERE.into_iter().flat_map(|place| LIMITS.map(|text| (place, text))) {
        let clock = clock();
        check(&Arm::new(place, limit(text), &clock), &clock, &format!("{text} ({place:?})"));
    }
}

fn take(arm: &Arm, units: u64) -> TrackedTake {
    arm.take(units, Duration::ZERO).1.expect("it is allowed")
}

fn passes(arm: &Arm, units: u64) -> bool {
    arm.take_untracked(units, Duration::ZERO).is_allowed()
}

#[test]
fn a_receipt_is_worthless_after_a_reset() {
    everywhere(|arm, _, text| {
        let before = take(arm, 20);
        arm.reset();
        assert!(passes(arm, 20), "{text}");
        assert_eq!(before.refund(), Adjusted::Capped, "{text}");
        assert!(!passes(arm, 1), "{text}: the units of others came back");
    });
}

#[test]
fn a_take_after_a_reset_comes_back() {
    everywhere(|arm, _, text| {
        let before = take(arm, 20);
        arm.reset();
        let after = take(arm, 20);
        assert_eq!(before.refund(), Adjusted::Capped, "{text}");
        assert_eq!(after.refund(), Adjusted::Whole, "{text}");
        assert_eq!(arm.rest().0, 20, "{text}");
    });
}

#[test]
fn a_receipt_is_worthless_after_a_refund_without_one() {
    everywhere(|arm, _, text| {
        let before = take(arm, 1);
        assert_eq!(arm.refund_any(), Adjusted::Whole, "{text}");
        assert!(passes(arm, 20), "{text}");
        assert_eq!(before.refund(), Adjusted::Capped, "{text}");
        assert!(!passes(arm, 1), "{text}: the unit of another came back");
    });
}

#[test]
fn a_receipt_is_worthless_after_the_clock_has_stepped_back() {
    everywhere(|arm, clock, text| {
        let before = take(arm, 20);
        clock.step_back(10 * SECOND);
        assert_eq!(before.refund(), Adjusted::Capped, "{text}");
        let before = take_when_free(arm, clock);
        clock.step_back(600 * SECOND);
        let after = take_when_free(arm, clock);
        assert_eq!(before.refund(), Adjusted::Capped, "{text}");
        assert!(!passes(arm, 20), "{text}");
        drop(after);
    });
}

/// Takes 20 units, as soon as they are allowed.
fn take_when_free(arm: &Arm, clock: &ManualClock) -> TrackedTake {
    for _ in 0..3600 {
        if let Some(take) = arm.take(20, Duration::ZERO).1 {
            return take;
        }
        clock.advance(SECOND);
    }
    panic!("they never passed");
}

/// A waiter was admitted, and leaves before it is polled: its take from before the reset no longer exists.
#[test]
fn a_waiter_that_leaves_after_a_reset_gives_nothing_back() {
    everywhere(|arm, clock, text| {
        let mut context = Context::from_waker(Waker::noop());
        drop(take(arm, 20));
        let mut waiting = Box::pin(arm.acquire(20));
        if waiting.as_mut().poll(&mut context).is_ready() {
            assert!(text.contains("queue 19"), "{text}: only a full queue refuses at once");
            return;
        }
        clock.advance(120 * SECOND);
        arm.reset();
        assert!(passes(arm, 20), "{text}");
        drop(waiting);
        assert!(!passes(arm, 1), "{text}: the units of another came back");
    });
}

#[test]
fn a_take_of_a_waiter_is_refunded() {
    let clock = clock();
    let limiter = Limiter::with_clock(limit("1/s burst 1"), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(limiter.acquire("ana").tracked());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    clock.advance(SECOND);
    let Poll::Ready(Ok((waited, take))) = waiting.poll(&mut context) else { panic!("its time has come") };
    assert_eq!((waited.duration, take.units()), (SECOND, 1));
    assert!(!limiter.admit("ana").is_allowed());
    assert_eq!(take.refund(), Adjusted::Whole);
    assert!(limiter.admit("ana").is_allowed());
}

#[test]
fn a_refund_wakes_waiters() {
    let limiter = Limiter::with_clock(limit("1/h burst 1"), clock());
    let (_, take) = limiter.admit_tracked("ana");
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(limiter.acquire("ana"));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    take.expect("it is allowed").refund();
    assert!(matches!(waiting.poll(&mut context), Poll::Ready(Ok(_))));
}

#[test]
fn a_take_of_a_waiter_that_gave_up_is_returned() {
    let zone = Zone::with_clock(1 << 14, clock());
    // This pacer makes a caller wait for its own cost, so the take happens before the wait.
    let limiter = Limiter::on(&zone, "", limit("1/s pacer burst 0s pay self"));
    let mut context = Context::from_waker(Waker::noop());
    {
        let mut waiting = Box::pin(limiter.acquire(ask("ana").cost(3)).tracked());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(limiter.peek("ana").reset_after(), 3 * SECOND);
    }
    assert_eq!(limiter.peek("ana").reset_after(), Duration::ZERO);
    assert_eq!(zone.receipt_counts().open, 0);
}
