//! Tests of the queue: order, deadlines, cancellation.

use std::time::Duration;

use tidegate::{ClassId, ConcurrencyLimiter, MILLISECOND, Outcome, SECOND};

use super::{clock, fill, over, poll, refused, wait, wait_counted};

#[test]
fn without_a_queue_no_caller_waits() {
    let places = ConcurrencyLimiter::at_most(1);
    let _held = fill(&places, ClassId::FIRST);
    let refusal = refused(&mut places.acquire(ClassId::FIRST).max_wait(SECOND));
    assert!(refusal.is_overloaded() && !refusal.is_queue_full());
}

#[test]
fn a_full_queue_is_distinct_from_missing_permits() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(2).build();
    let _held = fill(&places, ClassId::FIRST);
    let waiting = [(); 2].map(|()| wait(places.acquire(ClassId::FIRST)));
    assert!(refused(&mut places.acquire(ClassId::FIRST)).is_queue_full());
    assert!(places.admit(ClassId::FIRST).unwrap_err().is_overloaded());
    drop(waiting);
    drop(wait(places.acquire(ClassId::FIRST)));
}

#[test]
fn waiters_are_admitted_in_fifo_order_and_own_their_slot_when_woken() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).build();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting: Vec<_> = (0..5).map(|_| wait_counted(places.acquire(ClassId::FIRST))).collect();
    for turn in 0..5 {
        held.pop().expect("a place").done(Outcome::Done);
        assert_eq!(places.in_flight(), 1, "the slot is taken for the woken waiter");
        assert!(places.admit(ClassId::FIRST).is_err(), "no caller overtakes a waiter");
        let woken: Vec<_> = waiting.iter().map(|(_, woken)| woken.count()).collect();
        assert_eq!(woken, [vec![1; turn + 1], vec![0; 4 - turn]].concat(), "each is woken once");
        held.push(over(&mut waiting[turn].0).unwrap());
    }
    held.clear();
    assert_eq!((places.in_flight(), places.waiting()), (0, 0));
}

#[test]
fn ten_thousand_waiters_pass_in_order_and_none_is_lost() {
    let places = ConcurrencyLimiter::builder(3).max_waiters(10_000).build();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting: Vec<_> = (0..10_000).map(|_| wait(places.acquire(ClassId::FIRST))).collect();
    assert_eq!(places.waiting(), 10_000);
    for turn in 0..waiting.len() {
        drop(held.remove(0));
        held.push(over(&mut waiting[turn]).unwrap());
        if let Some(next) = waiting.get_mut(turn + 1) {
            assert!(poll(next).is_pending());
        }
    }
    assert_eq!((places.in_flight(), places.waiting()), (3, 0));
}

#[test]
fn a_thousand_random_cancellations_leave_no_gap() {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        usize::try_from(word % below as u64).expect("it is below a number of that type")
    };
    let places = ConcurrencyLimiter::builder(1).max_waiters(2000).build();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting: Vec<_> = (0..2000).map(|_| wait(places.acquire(ClassId::FIRST))).collect();
    let mut passed = 0;
    // In one of three cases the head leaves, sometimes after a slot was taken for it.
    for _ in 0..1000 {
        if random(4) == 0 {
            held.clear();
        }
        drop(waiting.remove(if random(3) == 0 { 0 } else { random(waiting.len()) }));
        assert_eq!(places.in_flight(), 1, "the place is taken for the next one");
        if held.is_empty() {
            held.push(over(&mut waiting.remove(0)).unwrap());
            passed += 1;
        }
        assert_eq!(places.waiting(), waiting.len());
    }
    assert!(passed > 100, "{passed} passed between the cancellations");
    for mut waiter in waiting {
        assert!(poll(&mut waiter).is_pending());
        held.clear();
        held.push(over(&mut waiter).expect("each is next in its turn"));
    }
    assert_eq!((places.in_flight(), places.waiting()), (1, 0));
}

#[test]
fn a_waiter_that_gives_up_frees_its_queue_slot_and_blocks_no_other() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(3).build();
    let held = fill(&places, ClassId::FIRST);
    let mut first = wait(places.acquire(ClassId::FIRST));
    let second = wait(places.acquire(ClassId::FIRST));
    let mut third = wait(places.acquire(ClassId::FIRST));
    drop(second);
    assert_eq!(places.waiting(), 2);
    drop(held);
    let place = over(&mut first).unwrap();
    assert!(poll(&mut third).is_pending());
    drop(place);
    assert!(over(&mut third).is_ok());
}

#[test]
fn a_slot_given_to_a_dropped_waiter_is_passed_on() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(3).build();
    let held = fill(&places, ClassId::FIRST);
    let (first, woken_first) = wait_counted(places.acquire(ClassId::FIRST));
    let (mut second, woken_second) = wait_counted(places.acquire(ClassId::FIRST));
    drop(held);
    assert_eq!((woken_first.count(), woken_second.count()), (1, 0));
    drop(first);
    assert_eq!((places.in_flight(), woken_second.count()), (1, 1));
    drop(over(&mut second));
    assert_eq!(places.in_flight(), 0);
}

#[test]
fn a_future_that_was_never_polled_is_not_queued() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(1).build();
    let early = places.acquire(ClassId::FIRST);
    assert!(over(&mut places.acquire(ClassId::FIRST)).is_ok());
    let held = fill(&places, ClassId::FIRST);
    let mut late = wait(places.acquire(ClassId::FIRST));
    drop(early);
    drop(held);
    assert!(over(&mut late).is_ok());
}

#[test]
fn a_deadline_denies_at_its_time_and_not_before() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let (mut late, _) = wait_counted(places.acquire(ClassId::FIRST).max_wait(3 * SECOND));
    let (mut soon, woken) = wait_counted(places.acquire(ClassId::FIRST).max_wait(SECOND));
    let (mut patient, woken_patient) = wait_counted(places.acquire(ClassId::FIRST));
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(woken.count(), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!((woken.count(), places.waiting()), (1, 2), "one alarm, for the whole line");
    let refusal = refused(&mut soon);
    assert!(refusal.is_timed_out() && refusal.retry_after().is_some(), "{refusal:?}");
    clock.advance(2 * SECOND);
    assert!(refused(&mut late).is_timed_out());
    clock.advance(3600 * SECOND);
    assert_eq!(woken_patient.count(), 0, "it has no deadline");
    drop(held);
    assert!(over(&mut patient).is_ok());
}

#[test]
fn a_slot_freed_in_time_is_taken_and_cancels_the_deadline() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let (mut waiting, woken) = wait_counted(places.acquire(ClassId::FIRST).max_wait(SECOND));
    clock.advance(SECOND - Duration::from_nanos(1));
    drop(held);
    clock.advance(SECOND);
    assert_eq!(woken.count(), 1);
    assert!(over(&mut waiting).is_ok(), "it had it in time, although it looks late");
}

#[test]
fn with_a_max_wait_of_zero_the_denial_is_immediate() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).build();
    let held = fill(&places, ClassId::FIRST);
    assert!(refused(&mut places.acquire(ClassId::FIRST).max_wait(Duration::ZERO)).is_overloaded());
    assert_eq!(places.waiting(), 0);
    drop(held);
    assert!(over(&mut places.acquire(ClassId::FIRST).max_wait(Duration::ZERO)).is_ok());
}

#[test]
fn a_thread_waits_and_is_woken() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).build();
    let held = fill(&places, ClassId::FIRST);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| places.acquire(ClassId::FIRST).blocking().is_ok());
        while places.waiting() == 0 {
            std::thread::yield_now();
        }
        drop(held);
        assert!(waiting.join().expect("it does not panic"));
    });
}

#[test]
fn a_blocked_thread_is_denied_at_its_deadline() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).build();
    let _held = fill(&places, ClassId::FIRST);
    let refusal = places.acquire(ClassId::FIRST).max_wait(MILLISECOND).blocking().unwrap_err();
    assert!(refusal.is_timed_out());
    assert_eq!(places.waiting(), 0);
}

#[test]
fn waiters_keep_the_limiter_alive() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let mut first = wait(places.acquire(ClassId::FIRST));
    let mut second = wait(places.acquire(ClassId::FIRST).max_wait(SECOND));
    let mut third = wait(places.acquire(ClassId::FIRST));
    drop(places);
    drop(held);
    let place = over(&mut first).unwrap();
    clock.advance(SECOND);
    assert!(refused(&mut second).is_timed_out());
    drop(first);
    drop(place);
    drop(over(&mut third));
}

#[test]
fn waiters_dropped_together_leave_no_entry() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let (waiting, woken) = wait_counted(places.acquire(ClassId::FIRST).max_wait(SECOND));
    drop((places, waiting));
    assert_eq!(std::sync::Arc::strong_count(&woken), 1, "its waker is gone");
    drop(held);
    clock.advance(SECOND);
    assert_eq!(woken.count(), 0);
    assert_eq!(std::sync::Arc::strong_count(&clock), 1, "and the hall with it");
}

#[test]
fn the_future_runs_on_any_runtime() {
    let places = ConcurrencyLimiter::builder(1).max_waiters(100).build();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let on_tokio: Vec<_> = (0..50)
        .map(|_| {
            let places = places.clone();
            runtime.spawn(async move {
                let place = places.acquire(ClassId::FIRST).max_wait(60 * SECOND).await?;
                tokio::task::yield_now().await;
                place.done(Outcome::Done);
                Ok::<_, tidegate::Denied>(())
            })
        })
        .collect();
    smol::block_on(async {
        for _ in 0..50 {
            drop(places.acquire(ClassId::FIRST).await.expect("there is room in the line"));
        }
    });
    for task in on_tokio {
        assert!(runtime.block_on(task).expect("it does not panic").is_ok());
    }
    assert_eq!((places.in_flight(), places.waiting()), (0, 0));
}
