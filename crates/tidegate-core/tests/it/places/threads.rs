//! Tests with many threads: never too many in flight, no waiter lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use conformance::random::Random;
use tidegate::{AdaptiveLimit, ConcurrencyLimiter, MILLISECOND, Outcome, SECOND};

use super::{CRITICAL, bulk_class, classes, poll};

const THREADS: u64 = 8;

fn calls() -> u64 {
    if crate::is_quick() { 200 } else { 4000 }
}

/// Counts that the calls in flight keep themselves.
#[derive(Default)]
struct Counted {
    in_flight: AtomicU64,
    most: AtomicU64,
    entered: AtomicU64,
}

impl Counted {
    fn come(&self) {
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(in_flight, Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
    }

    fn go(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Enters in one of the possible ways, or gives up; the choice is random.
fn call(places: &ConcurrencyLimiter, counted: &Counted, random: &mut Random) {
    let rank = random.between(0, 1) as usize;
    let class = places.classes().nth(rank).map_or(CRITICAL, |(class, _)| class);
    let place = match random.between(0, 9) {
        0..3 => places.admit(class).ok(),
        3..7 => places.acquire(class).max_wait(SECOND * 60).blocking().ok(),
        7 => places.acquire(class).max_wait(MILLISECOND / 100).blocking().ok(),
        _ => {
            let mut acquire = places.acquire(class);
            let _ = poll(&mut acquire).is_ready();
            None
        }
    };
    if let Some(place) = place {
        counted.come();
        if random.percent(30) {
            std::thread::yield_now();
        }
        counted.go();
        place.done(if random.percent(90) { Outcome::Done } else { Outcome::Overloaded });
    }
}

/// Runs many threads that enter and leave; at the end nothing is in flight.
fn hammer(places: &ConcurrencyLimiter) -> Counted {
    let (seed, counted) = (Random::seed_from_environment(), Counted::default());
    println!("seed {seed}");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let counted = &counted;
            scope.spawn(move || {
                let mut random = Random::new(seed ^ (thread << 32));
                (0..calls()).for_each(|_| call(places, counted, &mut random));
            });
        }
    });
    assert_eq!((places.in_flight(), places.waiting()), (0, 0));
    assert!(counted.entered.load(Ordering::SeqCst) > 0);
    counted
}

/// A guard that signals the end of a thread, also after a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn in_flight_never_exceeds_the_limit() {
    let places = ConcurrencyLimiter::builder(3).classes(classes(40, 20)).max_waiters(100).build();
    assert!(hammer(&places).most.into_inner() <= 3);
}

#[test]
fn newest_first_loses_no_waiter() {
    let places = ConcurrencyLimiter::builder(2)
        .classes(classes(0, 50))
        .max_waiters(4)
        .newest_first_after(MILLISECOND / 50)
        .build();
    assert!(hammer(&places).most.into_inner() <= 2);
}

#[test]
fn a_limit_that_is_changed_all_the_time_loses_no_waiter() {
    let places = ConcurrencyLimiter::builder(4).classes(classes(40, 20)).max_waiters(100).build();
    let is_over = AtomicBool::new(false);
    let counted = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while !is_over.load(Ordering::SeqCst) {
                turn += 1;
                assert!(places.set_limit(1 + turn % 6));
                std::thread::yield_now();
            }
        });
        let _over = Over(&is_over);
        hammer(&places)
    });
    assert!(counted.most.into_inner() <= 6);
}

#[test]
fn an_adaptive_limit_stays_within_its_bounds() {
    for adapt in [AdaptiveLimit::aimd(1..=5), AdaptiveLimit::vegas(1..=5), AdaptiveLimit::gradient2(1..=5)] {
        let places =
            ConcurrencyLimiter::adaptive_builder(adapt).classes(classes(40, 20)).max_waiters(100).build();
        assert!(hammer(&places).most.into_inner() <= 5);
        assert!((1..=5).contains(&places.limit()));
    }
}

/// The other classes compete all the time; a class within its share is never denied.
#[test]
fn reserved_places_hold_under_pressure() {
    let places = ConcurrencyLimiter::builder(4).classes(classes(50, 0)).max_waiters(10).build();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    drop(places.admit(bulk_class(&places)));
                    drop(places.acquire(bulk_class(&places)).max_wait(MILLISECOND).blocking());
                }
            });
        }
        let critical = [(); 2]
            .map(|()| scope.spawn(|| (0..calls()).filter(|_| places.admit(CRITICAL).is_err()).count()));
        let _over = Over(&is_over);
        let refused: usize = critical.into_iter().map(|caller| caller.join().expect("no panic")).sum();
        assert_eq!(refused, 0, "two callers, and two places kept for them");
    });
}
