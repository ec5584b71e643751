//! Receipts that are worthless because debt was taken off without them, and takes for those who wait.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{Adjusted, Limit, Limiter, SECOND, Zone, ask};

use super::{clock, limit};

fn hourly(burst: u64) -> Limit {
    Limit::per_hour(1).burst(burst)
}

/// What is left after a take was refunded that was made before debt was taken off, and another take behind it.
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

#[test]
fn a_receipt_is_worthless_after_the_clock_has_stepped_back() {
    let clock = clock();
    let limiter = Limiter::with_clock(hourly(5), clock.clone());
    let (_, take) = limiter.admit_tracked("ana");
    clock.step_back(10 * SECOND);
    assert_eq!(take.expect("it is allowed").refund(), Adjusted::Capped);
}

#[test]
fn a_take_of_one_who_waited_comes_back() {
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
fn a_refund_wakes_those_who_wait() {
    let limiter = Limiter::with_clock(limit("1/h burst 1"), clock());
    let (_, take) = limiter.admit_tracked("ana");
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = pin!(limiter.acquire("ana"));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    take.expect("it is allowed").refund();
    assert!(matches!(waiting.poll(&mut context), Poll::Ready(Ok(_))));
}

#[test]
fn a_take_that_waited_in_vain_goes_back() {
    let zone = Zone::with_clock(1 << 14, clock());
    // What it costs itself it waits for, so it takes before it waits.
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
