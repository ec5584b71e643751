//! Loom models: every thread interleaving, explored on the files that are shipped.
//!
//! `cargo xtask models` runs them. Time stands still or is moved by hand. The models check that no unit is admitted
//! twice, that none is charged without an admission, and that no wake-up is lost.

mod concurrency;
mod queue;
mod zone;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Notify;
use loom::thread;

use crate::seqlock::SeqLock;
use crate::{DirectLimiter, Limit, Limiter, MILLISECOND, ManualClock, Map, SECOND, admit_all};

const SLOW: Limit = Limit::per_hour(1);

fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.advance(1000 * SECOND);
    Arc::new(clock)
}

/// Runs two closures concurrently and returns both results.
fn both<A: 'static, B: 'static>(
    one: impl FnOnce() -> A + 'static,
    other: impl FnOnce() -> B + 'static,
) -> (A, B) {
    let one = thread::spawn(one);
    let other = other();
    (one.join().expect("no model panics"), other)
}

/// A thread that sleeps until it is woken; loom reports a deadlock if it never is.
struct Sleeper(Notify);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

fn block_on<F: Future + Unpin>(future: &mut F) -> F::Output {
    let sleeper = Arc::new(Sleeper(Notify::new()));
    let waker = Waker::from(sleeper.clone());
    loop {
        match Pin::new(&mut *future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => sleeper.0.wait(),
        }
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn words_are_read_from_one_publication() {
    loom::model(|| {
        let words = Arc::new(SeqLock::new([0, 0]));
        let writer = words.clone();
        let (_, [first, second]) = both(
            move || {
                writer.replace(|[first, second]| [first + 1, second + 1]);
                writer.replace(|[first, second]| [first + 1, second + 1]);
            },
            move || words.read(),
        );
        assert_eq!(first, second);
    });
}

#[test]
fn a_word_is_spent_once() {
    loom::model(|| {
        let limiter = DirectLimiter::with_clock(SLOW.burst(2), clock());
        let other = limiter.clone();
        let admit = |limiter: &DirectLimiter| u8::from(limiter.admit().is_allowed());
        let (one, two) = both(move || admit(&other) + admit(&other), {
            let limiter = limiter.clone();
            move || admit(&limiter) + admit(&limiter)
        });
        assert_eq!(one + two, 2);
        assert_eq!(limiter.peek().remaining(), 0);
    });
}

#[test]
fn a_refund_meets_a_take() {
    loom::model(|| {
        let limiter = DirectLimiter::with_clock(SLOW.burst(2), clock());
        assert!(limiter.admit().is_allowed());
        let other = limiter.clone();
        let (_, taken) = both(move || other.refund(1), {
            let limiter = limiter.clone();
            move || limiter.admit().is_allowed()
        });
        assert!(taken);
        assert_eq!(limiter.peek().remaining(), 1);
    });
}

#[test]
fn a_limit_is_changed_while_it_decides() {
    loom::model(|| {
        let limiter = DirectLimiter::with_clock(SLOW.burst(1), clock());
        let other = limiter.clone();
        let (_, passed) = both(move || other.set_limit(SLOW.burst(2)), {
            let limiter = limiter.clone();
            move || (0..3).filter(|_| limiter.admit().is_allowed()).count()
        });
        assert!((1..=2).contains(&passed));
        let rest = (0..3).filter(|_| limiter.admit().is_allowed()).count();
        assert_eq!(passed + rest, 2);
    });
}

#[test]
fn a_spent_limit_that_is_replaced_admits_no_caller_in_between() {
    loom::model(|| {
        // Its debt is small for the previous limit: a caller that still decides by that limit must not use this
        // state as its own.
        let fast = Limit::per_second(1);
        let limiter = DirectLimiter::with_clock(SLOW.burst(2), clock());
        assert!(limiter.admit_with(crate::Ask::new(crate::Cost::of(2))).is_allowed());
        let other = limiter.clone();
        let (passed, ()) = both(move || other.admit().is_allowed(), {
            let limiter = limiter.clone();
            move || limiter.set_limit(fast)
        });
        assert!(!passed, "spent under both limits");
        assert!(!limiter.admit().is_allowed());
    });
}

#[test]
fn a_newcomer_comes_twice_at_once() {
    loom::model(|| {
        let limiter = Limiter::with_clock(SLOW, clock());
        let other = limiter.clone();
        let (one, two) =
            both(move || other.admit("ana").is_allowed(), move || limiter.admit("ana").is_allowed());
        assert!(one != two, "{one} and {two}");
    });
}

#[test]
fn a_key_expires_while_it_is_asked() {
    loom::model(|| {
        let clock = clock();
        let map = Map::with_clock(clock.clone()).max_keys(1);
        let limiter = Limiter::on(&map, "", Limit::per_second(1));
        assert!(limiter.admit("ana").is_allowed());
        let other = limiter.clone();
        let (_, passed) = both(
            move || {
                clock.advance(2 * SECOND);
                // A new key in a full map takes the slot of a key that is clear.
                let _ = other.admit("bob");
            },
            {
                let limiter = limiter.clone();
                move || (0..2).filter(|_| limiter.admit("ana").is_allowed()).count()
            },
        );
        assert!(passed <= 1);
        assert!(map.keys() <= 1);
    });
}

#[test]
fn two_limits_are_asked_in_two_orders() {
    loom::model(|| {
        let map = Map::with_clock(clock());
        let (user, ip) = (Limiter::on(&map, "user", SLOW), Limiter::on(&map, "ip", SLOW.burst(2)));
        let (other_user, other_ip) = (user.clone(), ip.clone());
        let (one, two) =
            both(move || admit_all([other_user.ask("ana"), other_ip.ask("ana")]).is_allowed(), {
                let (user, ip) = (user.clone(), ip.clone());
                move || admit_all([ip.ask("ana"), user.ask("ana")]).is_allowed()
            });
        assert!(one != two);
        assert_eq!((user.peek("ana").remaining(), ip.peek("ana").remaining()), (0, 1));
    });
}

#[test]
fn the_clock_moves_while_a_waiter_joins() {
    loom::model(|| {
        let clock = clock();
        let limiter = Limiter::with_clock(Limit::per_second(10).burst(1), clock.clone());
        assert!(limiter.admit("ana").is_allowed());
        let (_, passed) = both(
            move || {
                clock.advance(50 * MILLISECOND);
                clock.advance(100 * MILLISECOND);
            },
            move || block_on(&mut limiter.acquire("ana")).is_ok(),
        );
        assert!(passed);
    });
}

#[test]
fn a_refund_comes_while_a_waiter_joins() {
    loom::model(|| {
        let limiter = Limiter::with_clock(SLOW, clock());
        assert!(limiter.admit("ana").is_allowed());
        let other = limiter.clone();
        let (_, passed) =
            both(move || other.refund("ana"), move || block_on(&mut limiter.acquire("ana")).is_ok());
        assert!(passed);
    });
}

#[test]
fn a_refund_of_a_word_comes_while_a_waiter_joins() {
    loom::model(|| {
        let limiter = DirectLimiter::with_clock(SLOW, clock());
        assert!(limiter.admit().is_allowed());
        let other = limiter.clone();
        let (_, passed) = both(move || other.refund(1), move || block_on(&mut limiter.acquire()).is_ok());
        assert!(passed);
    });
}

#[test]
fn a_larger_limit_comes_while_a_waiter_joins() {
    loom::model(|| {
        let limiter = DirectLimiter::with_clock(SLOW, clock());
        assert!(limiter.admit().is_allowed());
        let other = limiter.clone();
        let larger = move || other.set_limit(SLOW.burst(2));
        let (_, passed) = both(larger, move || block_on(&mut limiter.acquire()).is_ok());
        assert!(passed);
    });
}
