//! Tests of clocks that fail, wakers that misbehave, and limits that change while callers wait.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tidegate::{
    Acquire, Clock, DirectLimiter, HOUR, Limit, Limiter, MILLISECOND, ManualClock, Map, Permits, SECOND,
    SystemClock, Timestamp, Verdict, ask,
};

use crate::failing::Failing;

use super::{clock, over, poll};

const SOON: Duration = Duration::from_secs(30);

fn limit(text: &str) -> Limit {
    text.parse().expect("a limit")
}

fn wait(limiter: &Limiter, key: &str) -> Acquire {
    let mut acquire = limiter.acquire(key);
    assert!(poll(&mut acquire).is_pending());
    acquire
}

/// A clock that runs at nine tenths of the speed of the system clock, whose timer therefore fires too early.
#[derive(Debug)]
struct Slow(SystemClock);

impl Clock for Slow {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.now().ticks() / 10 * 9)
    }
}

#[test]
fn an_alarm_that_comes_early_is_not_the_last_one() {
    let limiter = Limiter::with_clock(limit("50/s burst 1"), Arc::new(Slow(SystemClock::new())));
    let (passed, passes) = channel();
    std::thread::spawn(move || {
        for _ in 0..4 {
            passed.send(limiter.acquire("ana").blocking().is_ok()).expect("the test waits");
        }
    });
    for _ in 0..4 {
        assert_eq!(passes.recv_timeout(SOON), Ok(true));
    }
}

/// A clock on a machine that is slow compared to the limit: every reading takes half an interval.
#[derive(Debug)]
struct Busy {
    ticks: AtomicU64,
    alarm: Mutex<Option<Waker>>,
}

impl Clock for Busy {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.ticks.fetch_add(8_000, Ordering::SeqCst))
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        let is_to_come = at > self.now();
        if is_to_come {
            *self.alarm.lock().expect("no holder panics") = Some(waker);
        }
        Ok(is_to_come)
    }
}

#[test]
fn a_queue_that_is_due_repeatedly_needs_no_deeper_stack() {
    let clock = Arc::new(Busy { ticks: AtomicU64::new(1 << 44), alarm: Mutex::new(None) });
    let single = DirectLimiter::with_clock(limit("1/h burst 1"), clock.clone());
    assert!(single.admit().is_allowed());
    let mut waiting: Vec<_> = (0..20_000).map(|_| single.acquire()).collect();
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    clock.ticks.fetch_add(3600 * 16_000_000_000, Ordering::SeqCst);
    single.set_limit(Limit::per_second(1_000_000).burst(1));
    while let Some(alarm) = { clock.alarm.lock().unwrap().take() } {
        alarm.wake();
    }
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_ready()));
}

#[test]
fn no_waiter_hangs_when_an_alarm_cannot_be_set() {
    let clock = Arc::new(Failing::default());
    let limiter = Limiter::with_clock(limit("10/s burst 1"), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let [mut first, mut second] = [(); 2].map(|()| wait(&limiter, "ana"));
    clock.fails.store(true, Ordering::SeqCst);
    clock.clock.advance(100 * MILLISECOND);
    assert!(over(&mut first).is_ok());
    let refused = over(&mut second).unwrap_err();
    assert!(refused.to_string().contains("threads"), "{refused}");
    assert!(over(&mut limiter.acquire("ana")).is_err());
    clock.fails.store(false, Ordering::SeqCst);
    let mut third = wait(&limiter, "ana");
    clock.clock.advance(SECOND);
    assert!(over(&mut third).is_ok());
}

#[test]
fn a_waker_that_owns_another_wait_may_be_dropped_anywhere() {
    struct Task(#[expect(dead_code, reason = "it is there to be dropped")] Mutex<Acquire>);
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }
    let limiter = Limiter::with_clock(limit("1/h burst 1"), clock());
    assert!(limiter.admit("ana").is_allowed());
    let (done, dones) = channel();
    std::thread::spawn(move || {
        let wait_with_owner = || {
            let waker = Waker::from(Arc::new(Task(Mutex::new(wait(&limiter, "ana")))));
            let mut acquire = limiter.acquire("ana");
            assert!(Pin::new(&mut acquire).poll(&mut Context::from_waker(&waker)).is_pending());
            acquire
        };
        let mut polled_again = wait_with_owner();
        assert!(poll(&mut polled_again).is_pending(), "with another waker: the one before is dropped");
        drop(wait_with_owner());
        done.send(()).expect("the test waits");
    });
    assert_eq!(dones.recv_timeout(SOON), Ok(()), "it waits for its own lock");
}

#[test]
fn a_waker_that_waits_itself_keeps_no_alarm_from_being_set() {
    struct Inline(Limiter, Sender<bool>);
    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let _ = self.1.send(self.0.acquire("bob").blocking().is_ok());
        }
    }
    let clock = clock();
    let limiter = Limiter::with_clock(limit("10/s burst 1"), clock.clone());
    assert!(limiter.admit("ana").is_allowed() && limiter.admit("bob").is_allowed());
    let (passed, passes) = channel();
    let waker = Waker::from(Arc::new(Inline(limiter.clone(), passed)));
    let mut first = limiter.acquire("ana");
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)).is_pending());
    let _second = wait(&limiter, "ana");
    let _ = limiter.charge("bob");
    let mover = clock.clone();
    std::thread::spawn(move || mover.advance(100 * MILLISECOND));
    while passes.try_recv().is_err() {
        clock.advance(MILLISECOND);
        std::thread::yield_now();
    }
}

#[test]
fn what_was_taken_under_one_algorithm_is_not_given_back_under_another() {
    let clock = clock();
    let limiter = Limiter::with_clock(limit("10/s burst 1"), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let waiting = wait(&limiter, "ana");
    clock.advance(100 * MILLISECOND);
    limiter.set_limit(limit("5/h sliding-window"));
    let passed = || (0..9).filter(|_| limiter.admit("ana").is_allowed()).count();
    assert_eq!(passed(), 5);
    drop(waiting);
    assert_eq!(passed(), 0, "five an hour");
    limiter.set_limit(limit("10/s burst 1"));
    assert_eq!(passed(), 1, "it went back to where it was taken");
}

#[test]
fn a_head_that_pays_for_itself_begins_anew_under_another_limit() {
    for change in ["10/s burst 1", "10/s pacer burst 0s pay self", "10/s pacer burst 0s"] {
        let clock = clock();
        let limiter = Limiter::with_clock(limit("1/h pacer burst 0s pay self"), clock.clone());
        let [mut head, mut next] = [(); 2].map(|()| wait(&limiter, "ana"));
        limiter.set_limit(limit(change));
        clock.advance(100 * MILLISECOND);
        assert!(over(&mut head).is_ok(), "{change}");
        clock.advance(100 * MILLISECOND);
        assert!(over(&mut next).is_ok(), "{change}");
    }
    let clock = clock();
    let limiter = Limiter::with_clock(limit("1/h pacer burst 0s pay self"), clock.clone());
    let [mut head, mut next] = [(); 2].map(|()| wait(&limiter, "ana"));
    clock.advance(HOUR / 2);
    limiter.reset("ana");
    clock.advance(HOUR);
    assert!(over(&mut head).is_ok(), "what it had paid was forgotten, too");
    assert!(poll(&mut next).is_pending());
}

#[test]
fn a_head_of_a_single_that_pays_for_itself_is_charged_under_one_limit_only() {
    for change in ["10/s burst 1", "10/s pacer burst 0s pay self", "10/s pacer burst 0s"] {
        let clock = clock();
        let single = DirectLimiter::with_clock(limit("1/h pacer burst 0s pay self"), clock.clone());
        let [mut head, mut next] = [(); 2].map(|()| {
            let mut acquire = single.acquire();
            assert!(poll(&mut acquire).is_pending());
            acquire
        });
        single.set_limit(limit(change));
        clock.advance(100 * MILLISECOND);
        assert!(over(&mut head).is_ok(), "{change}");
        clock.advance(100 * MILLISECOND);
        assert!(over(&mut next).is_ok(), "{change}");
    }
}

#[test]
fn max_wait_ends_in_time_although_the_clock_stepped_back() {
    let clock = clock();
    let permits = Permits::builder(1).lease(10 * HOUR).clock(clock.clone()).build();
    let _holder = permits.admit("ana").unwrap();
    let mut waiting = permits.acquire("ana").max_wait(SECOND);
    assert!(poll(&mut waiting).is_pending());
    clock.step_back(500 * SECOND);
    clock.advance(SECOND);
    assert!(over(&mut waiting).unwrap_err().is_timed_out());
}

#[test]
fn a_late_alarm_makes_no_waiter_spin() {
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
    let limiter = Limiter::with_clock(limit("20/s sliding-log"), clock.clone());
    while limiter.admit("ana").is_allowed() {}
    let _waiting = wait(&limiter, "ana");
    clock.0.advance(3 * SECOND);
    let refused = limiter.admit("ana");
    assert!(refused.retry_after().is_some_and(|wait| wait > Duration::ZERO), "{refused:?}");
}

#[test]
fn strict_promises_are_kept_to_the_tick_although_a_call_is_late() {
    let clock = clock();
    let limiter = Limiter::with_clock(limit("1/s sliding-log"), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let [mut first, mut second] = [(); 2].map(|()| wait(&limiter, "ana"));
    clock.advance(SECOND + MILLISECOND);
    assert!(over(&mut first).is_ok());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(poll(&mut second).is_pending(), "two within less than a second");
    clock.advance(Duration::from_nanos(1));
    assert!(over(&mut second).is_ok());
}

#[test]
fn a_waiter_that_timed_out_behind_a_heavier_one_may_try_again() {
    let clock = clock();
    let permits = Permits::builder(2).clock(clock.clone()).build();
    let _holder = permits.admit("ana").unwrap();
    let mut heavy = permits.acquire(ask("ana").cost(2));
    let mut light = permits.acquire("ana").max_wait(SECOND);
    assert!(poll(&mut heavy).is_pending() && poll(&mut light).is_pending());
    clock.advance(SECOND);
    let refused = over(&mut light).unwrap_err();
    assert!(refused.is_timed_out() && refused.retry_after().is_some(), "{refused:?}");
}

#[test]
fn a_queue_beyond_the_prediction_bound_reports_a_lower_bound() {
    let clock = clock();
    let limiter = Limiter::with_clock(limit("1/s sliding-log"), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let mut waiting = Vec::new();
    for count in 1..=1100_u32 {
        waiting.push(wait(&limiter, "ana"));
        let reported = limiter.peek("ana").retry_after().unwrap();
        assert_eq!(reported, (count.min(1000) + 1) * SECOND, "{count} wait");
    }
    clock.advance(SECOND);
    assert!(over(&mut waiting.remove(0)).is_ok());
    assert_eq!(limiter.peek("ana").retry_after(), Some(1001 * SECOND));
    let refused = over(&mut limiter.acquire("ana").max_wait(10 * SECOND)).unwrap_err();
    assert!(!refused.is_timed_out());
    drop(waiting);
    assert_eq!(limiter.peek("ana").retry_after(), Some(SECOND));

    let tokens = Limiter::with_clock(limit("1/s burst 1"), clock);
    assert!(tokens.admit("ana").is_allowed());
    let _waiting: Vec<_> = (0..1500).map(|_| wait(&tokens, "ana")).collect();
    assert_eq!(tokens.peek("ana").verdict(), Verdict::Denied { retry_after: 1501 * SECOND });
}

#[test]
fn a_head_is_denied_when_the_store_has_no_room() {
    #[derive(Debug)]
    struct Held {
        clock: ManualClock,
        alarm: Mutex<Option<Waker>>,
    }
    impl Clock for Held {
        fn now(&self) -> Timestamp {
            self.clock.now()
        }

        fn wake_at(&self, _: Timestamp, waker: Waker) -> io::Result<bool> {
            *self.alarm.lock().expect("no holder panics") = Some(waker);
            Ok(true)
        }
    }
    let clock = Arc::new(Held { clock: ManualClock::new(), alarm: Mutex::new(None) });
    let map = Map::with_clock(clock.clone()).max_keys(1);
    let limiter = Limiter::on(&map, "", limit("1/s burst 1"));
    assert!(limiter.admit("ana").is_allowed());
    let [mut first, mut second] = [(); 2].map(|()| wait(&limiter, "ana"));
    clock.clock.advance(10 * SECOND);
    let other = Limiter::on(&map, "other", limit("1/h"));
    while !(0..100_u64).any(|key| other.admit(key).is_allowed()) {}
    let alarm = clock.alarm.lock().unwrap().take().unwrap();
    alarm.wake();
    for waiter in [&mut first, &mut second] {
        assert!(over(waiter).unwrap_err().is_store_full());
    }
}
