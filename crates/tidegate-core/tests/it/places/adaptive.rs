//! Tests of an adaptive concurrency limit: bounds, adaptation, and admission.

use conformance::random::Random;
use tidegate::{AdaptiveLimit, ClassId, Clock, ConcurrencyLimiter, Estimator, MILLISECOND, Outcome, Sample};

use super::{clock, fill, poll, wait};

fn algorithms() -> [AdaptiveLimit; 3] {
    [AdaptiveLimit::aimd(2..=40), AdaptiveLimit::vegas(2..=40), AdaptiveLimit::gradient2(2..=40)]
}

/// Runs `count` rounds in which all slots are used and all calls end with this outcome.
fn rounds(places: &ConcurrencyLimiter, clock: &tidegate::ManualClock, count: usize, outcome: Outcome) {
    for _ in 0..count {
        let held = fill(places, ClassId::FIRST);
        assert_eq!(held.len() as u64, places.limit(), "all of them can be used");
        clock.advance(10 * MILLISECOND);
        for place in held {
            place.done(outcome);
            assert!((2..=40).contains(&places.limit()));
        }
    }
}

#[test]
fn successful_calls_raise_the_limit_and_overloaded_ones_lower_it() {
    for adapt in algorithms() {
        let clock = clock();
        let places =
            ConcurrencyLimiter::adaptive_builder(adapt.clone().starting_at(10)).clock(clock.clone()).build();
        assert_eq!(places.limit(), 10);
        rounds(&places, &clock, 60, Outcome::Done);
        let high = places.limit();
        assert!(high > 10, "{adapt:?}: {high}");
        rounds(&places, &clock, 60, Outcome::Overloaded);
        assert!(places.limit() < high, "{adapt:?}: {}", places.limit());
        assert!(!places.set_limit(7), "it sets itself");
        assert_eq!(places.in_flight(), 0);
    }
}

#[test]
fn a_dropped_permit_does_not_move_the_limit() {
    for adapt in algorithms() {
        let clock = clock();
        let places = ConcurrencyLimiter::adaptive_builder(adapt.starting_at(10)).clock(clock.clone()).build();
        for _ in 0..60 {
            let held = fill(&places, ClassId::FIRST);
            clock.advance(10 * MILLISECOND);
            drop(held);
        }
        assert_eq!((places.limit(), places.in_flight()), (10, 0));
    }
}

#[test]
fn a_rising_limit_admits_several_waiters_per_release() {
    let clock = clock();
    let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(2..=40))
        .max_waiters(1000)
        .clock(clock.clone())
        .build();
    let start = places.limit();
    let mut held = fill(&places, ClassId::FIRST);
    let mut waiting: Vec<_> = (0..1000).map(|_| wait(places.acquire(ClassId::FIRST))).collect();
    while let Some(place) = held.pop() {
        clock.advance(MILLISECOND);
        place.done(Outcome::Done);
        assert!(places.waiting() == 0 || places.in_flight() == places.limit(), "no place stays empty");
        waiting.retain_mut(|waiter| match poll(waiter) {
            std::task::Poll::Ready(place) => {
                held.insert(0, place.expect("let in"));
                false
            }
            std::task::Poll::Pending => true,
        });
    }
    assert!(waiting.is_empty() && places.limit() > start, "{}", places.limit());
    assert_eq!((places.in_flight(), places.waiting()), (0, 0));
}

/// Calls of random length, beside an estimator that is fed the same samples by hand.
#[test]
fn an_estimator_gets_the_time_latency_in_flight_and_outcome() {
    const OUTCOMES: [Outcome; 4] = [Outcome::Done, Outcome::Failed, Outcome::Overloaded, Outcome::Ignored];
    let seed = Random::seed_from_environment();
    println!("seed {seed}");
    for adapt in algorithms() {
        let (clock, mut random) = (clock(), Random::new(seed));
        let places = ConcurrencyLimiter::adaptive_builder(adapt.clone()).clock(clock.clone()).build();
        let (mut estimator, mut held, mut highest) = (Estimator::new(&adapt), Vec::new(), 0);
        let mut most = 0;
        for step in 0..50_000 {
            clock.advance(MILLISECOND * random.between(0, 3) as u32);
            if step % 200 == 0 {
                most = random.between(1, places.limit()) as usize;
            }
            if held.len() < most && random.percent(60) {
                held.extend(places.admit(ClassId::FIRST).ok().map(|place| (place, clock.now())));
            } else if !held.is_empty() {
                let in_flight = held.len() as u64;
                let (place, entered) = held.swap_remove(random.between(0, in_flight - 1) as usize);
                let outcome = OUTCOMES[if random.percent(95) { 0 } else { random.between(1, 3) as usize }];
                place.done(outcome);
                let (now, latency) = (clock.now(), clock.now().since(entered));
                estimator.observe(Sample::new(now, latency, in_flight, outcome));
            }
            assert_eq!(places.limit(), estimator.limit(), "step {step} of {adapt:?}");
            assert_eq!(places.in_flight(), held.len() as u64);
            highest = highest.max(places.limit());
        }
        assert!(highest > 2, "{adapt:?}: it has learnt something");
    }
}
