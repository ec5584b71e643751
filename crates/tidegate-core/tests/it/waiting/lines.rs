//! Tests of queues under a manual clock: the order of admission, immediate denials, and moving up.

use std::time::Duration;

use tidegate::{DirectLimiter, Limit, Limiter, MILLISECOND, Pacer, SECOND, Shaper, Verdict, ask};

use super::{clock, over, poll};

const TEN: Limit = Limit::per_second(10).burst(1);

#[test]
fn later_waiters_move_up_when_one_leaves() {
    let clock = clock();
    let limiter = Limiter::with_clock(TEN, clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let [mut first, second, mut third] = [(); 3].map(|()| {
        let mut acquire = limiter.acquire("ana");
        assert!(poll(&mut acquire).is_pending());
        acquire
    });
    drop(second);
    clock.advance(100 * MILLISECOND);
    assert_eq!(over(&mut first).unwrap().duration, 100 * MILLISECOND);
    assert!(poll(&mut third).is_pending());
    clock.advance(100 * MILLISECOND - Duration::from_nanos(1));
    assert!(poll(&mut third).is_pending());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(over(&mut third).unwrap().duration, 200 * MILLISECOND);
}

#[test]
fn a_lighter_one_behind_a_heavy_one_that_leaves_passes_at_once() {
    let clock = clock();
    let limiter = Limiter::with_clock(Limit::per_second(10).burst(5), clock.clone());
    assert!(limiter.admit(ask("ana").cost(4)).is_allowed());
    let mut heavy = limiter.acquire(ask("ana").cost(5));
    let mut light = limiter.acquire("ana");
    assert!(poll(&mut heavy).is_pending() && poll(&mut light).is_pending());
    drop(heavy);
    assert_eq!(over(&mut light).unwrap().duration, Duration::ZERO);
}

#[test]
fn a_wait_that_would_be_too_long_is_refused_at_once() {
    for text in ["10/s burst 1", "10/s queue 99 leaky-bucket", "10/s pacer", "10/s pacer burst 0s"] {
        let clock = clock();
        let limiter = Limiter::with_clock(text.parse().unwrap(), clock.clone());
        while limiter.admit("ana").is_allowed() {}
        let mut waiting = Vec::new();
        for nth in 1..=5 {
            let wait = nth * 100 * MILLISECOND;
            let almost = wait - Duration::from_nanos(1);
            let refused = over(&mut limiter.acquire("ana").max_wait(almost)).unwrap_err();
            assert_eq!(refused.retry_after(), Some(wait), "{text}");
            assert!(!refused.is_timed_out() && !refused.is_queue_full());
            let mut acquire = limiter.acquire(ask("ana").max_wait(wait));
            assert!(poll(&mut acquire).is_pending(), "{text}");
            waiting.push(acquire);
        }
        for nth in 1..=5_u32 {
            clock.advance(100 * MILLISECOND);
            let waited = over(&mut waiting.remove(0)).unwrap();
            assert_eq!(waited.duration, nth * 100 * MILLISECOND, "{text}");
        }
    }
}

#[test]
fn after_a_cancellation_later_waiters_get_their_new_wait() {
    for text in ["10/s burst 1", "10/s leaky-bucket queue 9", "1/100ms sliding-log", "10/s pacer burst 0s"] {
        let clock = clock();
        let limiter = Limiter::with_clock(text.parse().unwrap(), clock.clone());
        assert!(limiter.admit("ana").is_allowed());
        let mut waiting: Vec<_> = (0..5).map(|_| limiter.acquire("ana").max_wait(SECOND)).collect();
        assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
        let reported = || limiter.peek("ana").retry_after();
        assert_eq!(reported(), Some(600 * MILLISECOND), "{text}");
        drop(waiting.drain(1..4));
        assert_eq!(reported(), Some(300 * MILLISECOND), "{text}");
        clock.advance(100 * MILLISECOND);
        assert!(over(&mut waiting.remove(0)).is_ok());
        assert_eq!(reported(), Some(200 * MILLISECOND), "{text}");
        drop(waiting);
        assert_eq!(reported(), Some(100 * MILLISECOND), "{text}");
    }
}

#[test]
fn a_fast_queue_that_is_served_late_catches_up() {
    let clock = clock();
    let shaper = Shaper::with_clock(Limit::leaky_bucket(10_000, SECOND).queue(50), clock.clone());
    assert!(over(&mut shaper.acquire()).is_ok());
    let mut waiting: Vec<_> = (0..30).map(|_| shaper.acquire()).collect();
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    clock.advance(MILLISECOND);
    waiting.retain_mut(|waiter| match poll(waiter) {
        std::task::Poll::Ready(result) => result.is_err(),
        std::task::Poll::Pending => true,
    });
    assert_eq!(waiting.len(), 20, "ten were due within the millisecond");
}

#[test]
fn an_ask_that_cannot_wait_does_not_overtake() {
    let clock = clock();
    let limiter = Limiter::with_clock(Limit::per_second(10).burst(2), clock.clone());
    assert!(limiter.admit(ask("ana").cost(2)).is_allowed());
    let mut waiting = limiter.acquire(ask("ana").cost(2));
    assert!(poll(&mut waiting).is_pending());
    clock.advance(100 * MILLISECOND);
    let refused = limiter.admit("ana");
    assert_eq!(refused.verdict(), Verdict::Denied { retry_after: 200 * MILLISECOND });
    assert_eq!(refused.remaining(), 0);
    assert_eq!(limiter.peek("ana").verdict(), refused.verdict());
    let other = Limiter::with_clock(TEN, clock.clone());
    let both = tidegate::admit_all([other.ask("ana"), limiter.ask("ana")]);
    assert_eq!((both.is_allowed(), both.binding()), (false, Some(1)));
    assert_eq!(other.peek("ana").remaining(), 1, "nothing was spent");
    assert!(limiter.admit("bob").is_allowed(), "bob has no waiters");
    clock.advance(100 * MILLISECOND);
    assert!(over(&mut waiting).is_ok());

    let single = DirectLimiter::with_clock(Limit::per_second(10).burst(1), clock.clone());
    assert!(single.admit().is_allowed());
    let mut waiting = single.acquire();
    assert!(poll(&mut waiting).is_pending());
    clock.advance(100 * MILLISECOND);
    assert!(over(&mut waiting).is_ok());
    let mut waiting = single.acquire();
    assert!(poll(&mut waiting).is_pending());
    assert_eq!(single.admit().retry_after(), Some(200 * MILLISECOND));
    assert_eq!(single.peek().retry_after(), Some(200 * MILLISECOND));
    drop(waiting);
    assert_eq!(single.peek().retry_after(), Some(100 * MILLISECOND));
}

#[test]
fn the_queue_holds_max_waiters_and_no_more() {
    let limiter = Limiter::builder(TEN).clock(clock()).max_waiters(2).build();
    assert!(limiter.admit("ana").is_allowed() && limiter.admit("bob").is_allowed());
    let mut first = limiter.acquire("ana");
    let mut second = limiter.acquire("bob");
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    let refused = over(&mut limiter.acquire("ana")).unwrap_err();
    assert!(refused.is_queue_full(), "{refused}");
    assert_eq!(refused.retry_after(), Some(200 * MILLISECOND), "then it would have passed");
    assert!(over(&mut limiter.acquire("eve")).is_ok(), "a call that need not wait is not counted");
    drop(first);
    assert!(poll(&mut limiter.acquire("ana")).is_pending());
    let none = DirectLimiter::builder(TEN).clock(clock()).max_waiters(0).build();
    assert!(over(&mut none.acquire()).is_ok());
    assert!(over(&mut none.acquire()).unwrap_err().is_queue_full());
}

#[test]
fn a_shaper_queues_as_many_as_its_queue_and_releases_evenly() {
    let clock = clock();
    let shaper = Shaper::with_clock(Limit::leaky_bucket(100, SECOND).queue(5), clock.clone());
    assert!(over(&mut shaper.acquire()).unwrap().duration.is_zero());
    let mut waiting: Vec<_> = (0..5).map(|_| shaper.acquire()).collect();
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    assert!(over(&mut shaper.acquire()).unwrap_err().is_queue_full());
    assert!(over(&mut shaper.acquire_units(7)).unwrap_err().is_impossible());
    drop(waiting.remove(2));
    let mut again = shaper.acquire();
    assert!(poll(&mut again).is_pending(), "the queue slot of the waiter that left is free");
    waiting.push(again);
    for (nth, mut waiter) in (1..).zip(waiting) {
        clock.advance(10 * MILLISECOND);
        assert_eq!(over(&mut waiter).unwrap().duration, nth * 10 * MILLISECOND);
    }
    shaper.set_limit(Limit::leaky_bucket(1, SECOND));
    assert_eq!(shaper.limit(), Limit::leaky_bucket(1, SECOND));
}

#[test]
fn a_pacer_makes_its_callers_wait_as_guava_does() {
    let waits = |limit: Limit, calls: usize| -> Vec<u128> {
        let clock = clock();
        let pacer = Pacer::with_clock(limit, clock.clone()).unwrap();
        if limit.to_string().contains("burst") {
            // It has saved nothing since the epoch: the first call is free, the next one pays for it.
            assert_eq!(limit, Limit::pacer(5, SECOND).burst_span(Duration::ZERO));
        }
        let wait = |_| {
            let mut acquire = pacer.acquire(1);
            let mut microseconds = 0;
            while poll(&mut acquire).is_pending() {
                clock.advance(Duration::from_micros(125));
                microseconds += 125;
            }
            microseconds
        };
        (0..calls).map(wait).collect()
    };
    assert_eq!(waits(Limit::pacer(5, SECOND).burst_span(Duration::ZERO), 3), [0, 200_000, 200_000]);
    let warming = Limit::pacer(2, SECOND).warm_up(4 * SECOND);
    let expected = [0, 1_375_000, 1_125_000, 875_000, 625_000, 500_000, 500_000, 500_000];
    assert_eq!(waits(warming, 8), expected);
}

#[test]
fn a_caller_that_pays_for_itself_waits_for_its_own_cost() {
    let clock = clock();
    let limit: Limit = "10/s pacer burst 0s pay self".parse().unwrap();
    let limiter = Limiter::with_clock(limit, clock.clone());
    let mut first = limiter.acquire(ask("ana").cost(3));
    let mut second = limiter.acquire("ana");
    let mut third = limiter.acquire("ana");
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    assert!(poll(&mut third).is_pending());
    let refused = over(&mut limiter.acquire("ana").max_wait(SECOND / 2)).unwrap_err();
    assert_eq!(refused.retry_after(), Some(600 * MILLISECOND));
    drop(second);
    clock.advance(300 * MILLISECOND);
    assert_eq!(over(&mut first).unwrap().duration, 300 * MILLISECOND);
    assert!(poll(&mut third).is_pending());
    clock.advance(100 * MILLISECOND);
    assert_eq!(over(&mut third).unwrap().duration, 400 * MILLISECOND);
    let refused = over(&mut limiter.acquire("bob").max_wait(Duration::from_nanos(99_999_999))).unwrap_err();
    assert_eq!(refused.retry_after(), Some(100 * MILLISECOND));
    let mut bob = limiter.acquire("bob").max_wait(100 * MILLISECOND);
    assert!(poll(&mut bob).is_pending(), "the refused one gave back what it had taken");
    drop(bob);
    assert_eq!(limiter.peek("bob").reset_after(), Duration::ZERO, "so did the one that left");
}

#[test]
fn what_was_taken_for_one_that_left_goes_to_the_next() {
    let clock = clock();
    let limiter = Limiter::with_clock(TEN, clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let mut first = limiter.acquire("ana");
    let mut second = limiter.acquire("ana");
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    clock.advance(100 * MILLISECOND);
    drop(first);
    assert_eq!(over(&mut second).unwrap().duration, 100 * MILLISECOND);
}

#[test]
fn a_refund_a_reset_and_a_larger_limit_admit_waiters() {
    let clock = clock();
    let limiter = Limiter::with_clock(TEN, clock.clone());
    let single = DirectLimiter::with_clock(TEN, clock.clone());
    assert!(limiter.admit("ana").is_allowed() && single.admit().is_allowed());
    let wait = || {
        let (mut keyed, mut alone) = (limiter.acquire("ana"), single.acquire());
        assert!(poll(&mut keyed).is_pending() && poll(&mut alone).is_pending());
        (keyed, alone)
    };
    let (mut keyed, mut alone) = wait();
    let _ = (limiter.refund("ana"), single.refund(1));
    assert!(over(&mut keyed).is_ok() && over(&mut alone).is_ok());
    let (mut keyed, mut alone) = wait();
    limiter.reset("ana");
    single.reset();
    assert!(over(&mut keyed).is_ok() && over(&mut alone).is_ok());
    let (mut keyed, mut alone) = wait();
    limiter.set_limit(Limit::per_second(10).burst(2));
    single.set_limit(Limit::per_second(10).burst(2));
    assert!(over(&mut keyed).is_ok() && over(&mut alone).is_ok());
    let (mut keyed, mut alone) = wait();
    let _ = (limiter.charge("ana"), single.charge(1));
    clock.advance(100 * MILLISECOND);
    assert!(poll(&mut keyed).is_pending() && poll(&mut alone).is_pending(), "a late charge comes first");
    clock.advance(100 * MILLISECOND);
    assert!(over(&mut keyed).is_ok() && over(&mut alone).is_ok());
}

#[test]
fn a_limit_that_became_too_small_denies_waiters() {
    let limiter = Limiter::with_clock(Limit::per_second(10).burst(5), clock());
    assert!(limiter.admit(ask("ana").cost(5)).is_allowed());
    let mut heavy = limiter.acquire(ask("ana").cost(5));
    let mut light = limiter.acquire("ana");
    assert!(poll(&mut heavy).is_pending() && poll(&mut light).is_pending());
    limiter.set_limit(Limit::per_second(10).burst(3));
    assert!(over(&mut heavy).unwrap_err().is_impossible());
    assert!(poll(&mut light).is_pending());
    limiter.set_limit("3/s sliding-log".parse().unwrap());
    assert!(over(&mut light).is_ok(), "another algorithm has another state");
}

#[test]
fn a_clock_that_steps_back_makes_no_waiter_wait_longer_than_the_limit_can() {
    let clock = clock();
    let limiter = Limiter::with_clock(TEN.max_debt(0), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let mut waiting = limiter.acquire("ana");
    assert!(poll(&mut waiting).is_pending());
    clock.step_back(500 * SECOND);
    clock.advance(100 * MILLISECOND);
    assert!(over(&mut waiting).is_ok());

    let pays_itself = Limiter::with_clock("10/s pacer burst 0s pay self".parse().unwrap(), clock.clone());
    let mut waiting = pays_itself.acquire("ana");
    assert!(poll(&mut waiting).is_pending());
    clock.step_back(400 * SECOND);
    clock.advance(100 * MILLISECOND);
    assert!(over(&mut waiting).is_ok());
}

#[test]
fn a_late_call_of_the_clock_slows_no_later_waiter_down() {
    let clock = clock();
    let shaper = Shaper::with_clock(Limit::leaky_bucket(100, SECOND).queue(9), clock.clone());
    let mut passes: Vec<_> = (0..4).map(|_| shaper.acquire()).collect();
    assert!(over(&mut passes[0]).is_ok());
    assert!(passes[1..].iter_mut().all(|pass| poll(pass).is_pending()));
    clock.advance(11 * MILLISECOND);
    assert!(over(&mut passes[1]).is_ok());
    clock.advance(9 * MILLISECOND);
    assert!(over(&mut passes[2]).is_ok(), "one millisecond late is not added to the next wait");
    clock.advance(15 * MILLISECOND);
    assert!(over(&mut passes[3]).is_ok());
    let mut after = shaper.acquire();
    assert!(poll(&mut after).is_pending());
    clock.advance(9 * MILLISECOND - Duration::from_nanos(1));
    assert!(poll(&mut after).is_pending(), "five milliseconds late are, but for one");
    clock.advance(Duration::from_nanos(1));
    assert!(over(&mut after).is_ok());
}

#[test]
fn asks_that_wait_are_not_counted_as_denials() {
    let clock = clock();
    let limit: Limit = "1/s sliding-log count-denied".parse().unwrap();
    let limiter = Limiter::with_clock(limit, clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    clock.advance(SECOND / 2);
    let mut waiting = limiter.acquire("ana");
    assert!(poll(&mut waiting).is_pending());
    clock.advance(SECOND / 2);
    assert!(over(&mut waiting).is_ok());
}

#[test]
fn a_full_store_denies_at_once_instead_of_queueing() {
    let map = tidegate::Map::with_clock(clock()).max_keys(1);
    let limiter = Limiter::on(&map, "", TEN);
    assert!(limiter.admit("ana").is_allowed());
    let refused = over(&mut limiter.acquire("bob")).unwrap_err();
    assert!(refused.decision().is_store_full(), "{refused}");
}

#[test]
fn an_impossible_cost_is_denied_also_behind_other_waiters() {
    let limiter = Limiter::with_clock(TEN, clock());
    assert!(over(&mut limiter.acquire(ask("ana").cost(2))).unwrap_err().is_impossible());
    assert!(limiter.admit("ana").is_allowed());
    let mut waiting = limiter.acquire("ana");
    assert!(poll(&mut waiting).is_pending());
    assert!(over(&mut limiter.acquire(ask("ana").cost(2))).unwrap_err().is_impossible());
    assert!(over(&mut limiter.acquire(ask("ana").cost(2)).max_wait(SECOND)).unwrap_err().is_impossible());
    assert_eq!(limiter.admit(ask("ana").cost(2)).verdict(), Verdict::Impossible);
    assert_eq!(limiter.peek(ask("ana").cost(2)).verdict(), Verdict::Impossible);
}

#[test]
fn after_a_late_call_later_waiters_get_their_exact_wait() {
    let clock = clock();
    let limiter = Limiter::with_clock("1/s sliding-log".parse().unwrap(), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    let mut waiting: Vec<_> = (0..3).map(|_| limiter.acquire("ana")).collect();
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    assert_eq!(limiter.peek("ana").retry_after(), Some(4 * SECOND));
    clock.advance(3 * SECOND / 2);
    assert!(over(&mut waiting.remove(0)).is_ok());
    assert_eq!(limiter.peek("ana").retry_after(), Some(3 * SECOND), "half a second later than foreseen");
}

#[test]
fn a_waiter_that_leaves_a_direct_limiter_returns_its_take() {
    let single = DirectLimiter::with_clock("10/s pacer burst 0s pay self".parse().unwrap(), clock());
    let mut first = single.acquire_units(3);
    assert!(poll(&mut first).is_pending());
    drop(first);
    let mut second = single.acquire().max_wait(100 * MILLISECOND);
    assert!(poll(&mut second).is_pending(), "the first one has left nothing to wait for");
}

#[test]
fn a_pacer_goes_on_at_another_rate_and_is_made_for_no_other_limit() {
    let clock = clock();
    let pacer = Pacer::with_clock("10/s pacer burst 0s".parse().unwrap(), clock.clone()).unwrap();
    pacer.set_rate("2/s".parse().unwrap()).unwrap();
    assert!(pacer.admit(1).is_allowed());
    assert_eq!(pacer.admit(1).retry_after(), Some(500 * MILLISECOND));
    let mut waiting = pacer.acquire(1);
    assert!(poll(&mut waiting).is_pending());
    clock.advance(500 * MILLISECOND);
    assert!(over(&mut waiting).is_ok());
    assert!(Pacer::with_clock(TEN, clock).is_none() && Pacer::new(TEN).is_none());
}
