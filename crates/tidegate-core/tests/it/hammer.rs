//! Tests with eight threads on one key: exactly the burst passes, in every interleaving.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Ask, Decision, DirectLimiter, Limit, Limiter, MILLISECOND, ManualClock, Map, admit_all};

const THREADS: usize = 8;
const BURST: u64 = 1000;

/// One limit of each kind under which exactly `BURST` units pass within an hour.
const LIMITS: [&str; 8] = [
    "1/d burst 1000",
    "1/d queue 999 delay-after all leaky-bucket",
    "1000/d fixed-window",
    "1000/d sliding-log",
    "1000/d sliding-window",
    "1000/d mode estimate sliding-window",
    "1/m burst 1000m pacer pay self",
    "1000/d concurrency",
];

fn limit(text: &str) -> Limit {
    text.parse().expect("a limit")
}

/// Returns a clock that stands still, far enough from its epoch for a pacer to have saved its maximum.
fn frozen() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.advance(100_000 * tidegate::HOUR);
    Arc::new(clock)
}

/// Returns the number of allowed calls of all threads together.
fn hammer(calls: u64, admit: impl Fn(u64) -> bool + Sync) -> u64 {
    let admitted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let (admit, admitted) = (&admit, &admitted);
            scope.spawn(move || {
                let mine = (0..calls).filter(|call| admit(thread * calls + call)).count();
                admitted.fetch_add(mine as u64, Ordering::Relaxed);
            });
        }
    });
    admitted.into_inner()
}

#[test]
fn hammer_one_key_with_a_frozen_clock() {
    for text in LIMITS {
        let limiter = Limiter::with_clock(limit(text), frozen());
        assert_eq!(hammer(400, |_| limiter.admit("ana").is_allowed()), BURST, "{text}");
        let single = DirectLimiter::with_clock(limit(text), frozen());
        assert_eq!(hammer(400, |_| single.admit().is_allowed()), BURST, "{text}");
    }
}

#[test]
fn hammer_one_word_until_threads_have_met_there() {
    let single = DirectLimiter::with_clock(limit("1/m burst 500000"), frozen());
    assert_eq!(hammer(100_000, |_| single.admit().is_allowed()), 500_000);
    // Time follows the clock of the process, and no unit is refilled within hours.
    let single = DirectLimiter::new(limit("1/16h burst 5000"));
    assert_eq!(hammer(100_000, |_| single.admit().is_allowed()), 5_000);
}

#[test]
fn hammer_one_key_with_the_clock_that_moves() {
    // A pacer of this process has saved nothing yet.
    for text in LIMITS.into_iter().filter(|text| !text.contains("pacer")) {
        let limiter = Limiter::new(limit(text));
        assert_eq!(hammer(400, |_| limiter.admit("ana").is_allowed()), BURST, "{text}");
        let single = DirectLimiter::new(limit(text));
        assert_eq!(hammer(400, |_| single.admit().is_allowed()), BURST, "{text}");
    }
}

#[test]
fn hammer_one_key_while_its_burst_comes_back() {
    for text in ["1000/s burst 1000", "1000/s queue 999 delay-after all leaky-bucket"] {
        let clock = frozen();
        let (limiter, single) = (
            Limiter::with_clock(limit(text), clock.clone()),
            DirectLimiter::with_clock(limit(text), clock.clone()),
        );
        assert_eq!(hammer(400, |_| limiter.admit("ana").is_allowed()), BURST);
        assert_eq!(hammer(400, |_| single.admit().is_allowed()), BURST);
        let stop = AtomicBool::new(false);
        let passed = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        for (passed, decision) in passed.iter().zip([limiter.admit("ana"), single.admit()]) {
                            passed.fetch_add(u64::from(decision.is_allowed()), Ordering::Relaxed);
                        }
                    }
                });
            }
            // Less than the burst is refilled in all, so that no refill is lost to a full bucket.
            for _ in 0..900 {
                clock.advance(MILLISECOND);
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let drained =
            |admit: &dyn Fn() -> Decision| (0..).take_while(|_| admit().is_allowed()).count() as u64;
        let rest = [drained(&|| limiter.admit("ana")), drained(&|| single.admit())];
        let totals = [0, 1].map(|nth: usize| passed[nth].load(Ordering::Relaxed) + rest[nth]);
        assert_eq!(totals, [900, 900], "{text}");
    }
}

#[test]
fn hammer_three_limits_at_once() {
    for clock in [None, Some(frozen())] {
        let map = clock.map_or_else(Map::new, |clock| Map::with_clock(clock));
        let per_user = Limiter::on(&map, "user", limit("1/d burst 1000"));
        let per_ip = Limiter::on(&map, "ip", limit("1500/d sliding-log"));
        let in_all = Limiter::on(&map, "all", limit("1200/d fixed-window"));
        let on_own_store = Limiter::new(limit("1300/d sliding-window"));
        let admitted = hammer(400, |call| {
            // The order differs in each call; locks are taken in one fixed order nevertheless.
            let mut asks =
                vec![per_user.ask("ana"), per_ip.ask("ana"), in_all.ask(""), on_own_store.ask("ana")];
            asks.rotate_left(call as usize % 4);
            admit_all(asks).is_allowed()
        });
        assert_eq!(admitted, BURST);
        let left = [per_user.peek("ana"), per_ip.peek("ana"), in_all.peek(""), on_own_store.peek("ana")];
        assert_eq!(
            left.map(|decision| decision.remaining()),
            [0, 500, 200, 300],
            "a refusal spent something"
        );
    }
}

#[test]
fn hammer_many_keys_that_come_and_go() {
    let keys = crate::traces(20_000);
    let clock = frozen();
    let map = Map::with_clock(clock.clone());
    let limiter = Limiter::on(&map, "", limit("1/m burst 3"));
    for _ in 0..3 {
        let admitted = hammer(keys, |call| limiter.admit(call * 7 % keys).is_allowed());
        assert_eq!(admitted, 3 * keys, "each key lets three through");
        clock.advance(200 * tidegate::SECOND);
    }
    let admitted = hammer(100_000 / THREADS as u64, |call| limiter.admit(call % 10).is_allowed());
    assert_eq!(admitted, 30);
    assert!(map.keys() < 10 + keys as usize / 10, "{} keys are left of {keys}", map.keys());
}

#[test]
fn hammer_a_limit_that_is_changed_meanwhile() {
    let limits = ["1/d burst 1000", "1/d burst 500", "1000/d sliding-log", "1/d burst 800"];
    let limits = limits.map(limit);
    let (limiter, single) = (Limiter::new(limits[0]), DirectLimiter::new(limits[0]));
    let tokens = AtomicU64::new(0);
    let admitted = hammer(1000, |call| {
        if call % 10 == 0 {
            limiter.set_limit(limits[call as usize / 10 % 4]);
            single.set_limit(limits[call as usize / 10 % 4]);
        }
        tokens.fetch_add(u64::from(single.admit().is_allowed()), Ordering::Relaxed);
        limiter.admit("ana").is_allowed()
    });
    // A state belongs to one limit, and each limit keeps its own promise.
    for admitted in [admitted, tokens.into_inner()] {
        assert!((BURST..=1000 + 500 + 1000 + 800).contains(&admitted), "{admitted}");
    }
}

#[test]
fn hammer_refunds_and_charges() {
    let limiter = Limiter::with_clock(limit("1/d burst 1000"), frozen());
    let single = DirectLimiter::with_clock(limit("1/d burst 1000"), frozen());
    let counted = hammer(1000, |call| {
        if call % 3 == 0 {
            let _ = (limiter.charge("ana"), single.charge(1), limiter.refund("ana"), single.refund(1));
        }
        let allowed = (limiter.admit("ana").is_allowed(), single.admit_with(Ask::ONE).is_allowed());
        if allowed.0 && call % 2 == 0 {
            let _ = limiter.refund("ana");
        }
        if allowed.1 && call % 2 == 0 {
            let _ = single.refund(1);
        }
        false
    });
    assert_eq!(counted, 0);
    for decision in [limiter.peek("ana"), single.peek()] {
        assert!(decision.remaining() <= BURST);
        assert!(decision.reset_after() <= Duration::from_secs(2000 * 86_400));
    }
}
