//! Tests with wakers that misbehave, and clocks that fail or step back.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tidegate::{
    AcquireConcurrencyPermit, ClassId, Clock, ConcurrencyLimiter, ConcurrencyPermit, ManualClock, SECOND,
    Timestamp,
};

use crate::failing::Failing;

use super::{clock, fill, over, poll, refused, wait};

const SOON: Duration = Duration::from_secs(30);

fn wait_with(acquire: AcquireConcurrencyPermit, waker: &Waker) -> AcquireConcurrencyPermit {
    let mut acquire = acquire;
    assert!(Pin::new(&mut acquire).poll(&mut Context::from_waker(waker)).is_pending());
    acquire
}

#[test]
fn a_waker_that_panics_blocks_no_other_waiter() {
    struct Broken;
    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics, for a test");
        }
    }
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).build();
    let held = fill(&places, ClassId::FIRST);
    let mut broken = wait_with(places.acquire(ClassId::FIRST), &Waker::from(Arc::new(Broken)));
    let mut sound = wait(places.acquire(ClassId::FIRST));
    assert!(places.set_limit(2));
    drop(over(&mut broken));
    assert!(over(&mut sound).is_ok());
    drop(held);
    assert_eq!((places.in_flight(), places.waiting()), (0, 0));
}

#[test]
fn a_waker_may_enter_leave_and_wait_itself() {
    struct Inline(ConcurrencyLimiter, Mutex<Vec<ConcurrencyPermit>>, Mutex<Vec<AcquireConcurrencyPermit>>);
    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let held = std::mem::take(&mut *self.1.lock().expect("no holder panics"));
            drop(held);
            drop(self.0.admit(ClassId::FIRST));
            let acquire = wait(self.0.acquire(ClassId::FIRST).max_wait(SECOND));
            self.2.lock().expect("no holder panics").push(acquire);
        }
    }
    let clock = clock();
    let places = ConcurrencyLimiter::builder(2).max_waiters(10).clock(clock.clone()).build();
    let mut held = fill(&places, ClassId::FIRST);
    let other = Mutex::new(vec![held.pop().expect("two places")]);
    let inline = Arc::new(Inline(places.clone(), other, Mutex::default()));
    let mut first = wait_with(places.acquire(ClassId::FIRST), &Waker::from(inline.clone()));
    let mut second = wait(places.acquire(ClassId::FIRST));
    let _third = wait(places.acquire(ClassId::FIRST));
    drop(held);
    let kept = (over(&mut first).unwrap(), over(&mut second).unwrap());
    clock.advance(SECOND);
    let mut inner = inline.2.lock().unwrap();
    assert!(refused(&mut inner[0]).is_timed_out(), "its alarm was set");
    drop(kept);
}

#[test]
fn a_waker_that_owns_another_wait_may_be_dropped_anywhere() {
    struct Task(#[expect(dead_code, reason = "it is there to be dropped")] Mutex<AcquireConcurrencyPermit>);
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }
    let (done, dones) = channel();
    std::thread::spawn(move || {
        let places = ConcurrencyLimiter::builder(1).max_waiters(10).build();
        let held = fill(&places, ClassId::FIRST);
        let owner = || Waker::from(Arc::new(Task(Mutex::new(wait(places.acquire(ClassId::FIRST))))));
        let mut polled_again = wait_with(places.acquire(ClassId::FIRST), &owner());
        assert!(poll(&mut polled_again).is_pending(), "with another waker: the one before is dropped");
        drop(wait_with(places.acquire(ClassId::FIRST), &owner()));
        let refused = ConcurrencyLimiter::builder(1).max_waiters(1).build();
        let full = (fill(&refused, ClassId::FIRST), wait(refused.acquire(ClassId::FIRST)));
        let waker = owner();
        let mut newcomer = refused.acquire(ClassId::FIRST);
        assert!(Pin::new(&mut newcomer).poll(&mut Context::from_waker(&waker)).is_ready());
        drop((waker, newcomer, full, polled_again, held));
        assert_eq!(places.waiting(), 0);
        done.send(()).expect("the test waits");
    });
    assert_eq!(dones.recv_timeout(SOON), Ok(()), "it waits for its own lock");
}

#[test]
fn a_waiter_with_a_deadline_is_denied_when_no_alarm_can_be_set() {
    let clock = Arc::new(Failing::default());
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let mut before = wait(places.acquire(ClassId::FIRST).max_wait(2 * SECOND));
    let mut patient = wait(places.acquire(ClassId::FIRST));
    clock.fails.store(true, Ordering::SeqCst);
    let refusal = refused(&mut places.acquire(ClassId::FIRST).max_wait(SECOND));
    assert!(refusal.to_string().contains("threads"), "{refusal}");
    assert!(refused(&mut before).to_string().contains("threads"));
    assert_eq!(places.waiting(), 1, "a waiter without a deadline needs no alarm");
    drop(held);
    let held = over(&mut patient).unwrap();
    clock.fails.store(false, Ordering::SeqCst);
    let mut after = wait(places.acquire(ClassId::FIRST).max_wait(SECOND));
    clock.clock.advance(SECOND);
    assert!(refused(&mut after).is_timed_out());
    drop(held);
}

#[test]
fn max_wait_ends_in_time_although_the_clock_stepped_back() {
    let clock = clock();
    let places = ConcurrencyLimiter::builder(1).max_waiters(10).clock(clock.clone()).build();
    let _held = fill(&places, ClassId::FIRST);
    let mut waiting = wait(places.acquire(ClassId::FIRST).max_wait(SECOND));
    clock.step_back(500 * SECOND);
    assert!(poll(&mut waiting).is_pending());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(poll(&mut waiting).is_pending());
    clock.advance(Duration::from_nanos(1));
    assert!(refused(&mut waiting).is_timed_out());
}

#[test]
fn a_late_alarm_gives_no_permit_to_a_waiter_that_gave_up() {
    #[derive(Debug)]
    struct Late(ManualClock);
    impl Clock for Late {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn wake_at(&self, _: Timestamp, _: Waker) -> io::Result<bool> {
            Ok(true)
        }
    }
    let clock = Arc::new(Late(ManualClock::new()));
    let places = ConcurrencyLimiter::builder(1).max_waiters(2).clock(clock.clone()).build();
    let held = fill(&places, ClassId::FIRST);
    let mut impatient = wait(places.acquire(ClassId::FIRST).max_wait(SECOND));
    let mut patient = wait(places.acquire(ClassId::FIRST));
    clock.0.advance(SECOND);
    let _third = wait(places.acquire(ClassId::FIRST));
    assert!(refused(&mut impatient).is_timed_out(), "the next arrival finds its queue slot free");
    drop(held);
    assert!(over(&mut patient).is_ok());
}

#[test]
#[should_panic(expected = "awaited again")]
fn a_wait_that_is_over_is_not_awaited_again() {
    let mut acquire = ConcurrencyLimiter::at_most(1).acquire(ClassId::FIRST);
    let _place = over(&mut acquire);
    let _ = poll(&mut acquire);
}
