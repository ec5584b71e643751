//! Tests of joining a queue before the future is awaited.

use tidegate::{Enqueued, Limit, Limiter, Permits, Queued, SECOND};

use super::{clock as start, over};

fn waiting(enqueued: Enqueued) -> Queued {
    match enqueued {
        Enqueued::Waiting(queued) => queued,
        other => panic!("it does not wait: {other:?}"),
    }
}

#[test]
fn enqueue_returns_passed_denied_or_waiting_at_once() {
    let clock = start();
    let limiter = Limiter::builder(Limit::per_second(1).burst(1)).clock(clock.clone()).max_waiters(1).build();
    let Enqueued::Passed(waited) = limiter.acquire("ana").enqueue() else { panic!("the burst is free") };
    assert!(waited.duration.is_zero() && waited.decision.is_allowed());
    let Enqueued::Denied(denied) = limiter.acquire("ana").max_wait(SECOND / 2).enqueue() else {
        panic!("it takes a second")
    };
    assert_eq!((denied.retry_after(), denied.decision().remaining()), (Some(SECOND), 0));
    let mut queued = waiting(limiter.acquire("ana").enqueue());
    let Enqueued::Denied(full) = limiter.acquire("ana").enqueue() else { panic!("one waiter is the most") };
    assert!(full.is_queue_full());
    clock.advance(SECOND);
    assert_eq!(queued.position(), None, "its turn has come");
    assert_eq!(over(&mut queued).expect("it passes").duration, SECOND);
}

#[test]
fn a_position_counts_the_waiters_of_the_same_key_ahead_and_only_falls() {
    let clock = start();
    let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock.clone());
    let _ = (limiter.admit("ana"), limiter.admit("bob"));
    let bob = waiting(limiter.acquire("bob").enqueue());
    let mut anas: Vec<_> = (0..5).map(|_| waiting(limiter.acquire("ana").enqueue())).collect();
    let positions = |anas: &[Queued]| anas.iter().map(Queued::position).collect::<Vec<_>>();
    assert_eq!(positions(&anas), [0, 1, 2, 3, 4].map(Some));
    drop(anas.remove(2));
    assert_eq!(positions(&anas), [0, 1, 2, 3].map(Some));
    clock.advance(SECOND);
    assert_eq!(positions(&anas), [None, Some(0), Some(1), Some(2)]);
    drop(anas.remove(0));
    assert_eq!(positions(&anas), [None, Some(0), Some(1)], "its take went to the next");
    assert_eq!(bob.position(), None);
}

#[test]
fn waiters_pass_in_the_order_in_which_they_joined_whenever_they_are_polled() {
    let clock = start();
    let limiter = Limiter::with_clock(Limit::per_second(1).burst(1), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let [mut first, second] = [(); 2].map(|()| waiting(limiter.acquire("ana").enqueue()));
    clock.advance(SECOND);
    assert_eq!((first.position(), second.position()), (None, Some(0)));
    assert_eq!(over(&mut first).expect("it passes").duration, SECOND);
}

#[test]
fn a_permit_is_waited_for_in_the_same_queue() {
    let permits = Permits::builder(1).clock(start()).build();
    let Enqueued::Passed(permit) = permits.acquire("ana").enqueue() else { panic!("it is free") };
    let Enqueued::Waiting(mut queued) = permits.acquire("ana").enqueue() else { panic!("it is taken") };
    assert_eq!(queued.position(), Some(0));
    drop(permit);
    assert_eq!(queued.position(), None);
    assert!(super::poll(&mut queued).is_ready());
}
