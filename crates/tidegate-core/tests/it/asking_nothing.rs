//! Tests of a cost of 0: it is allowed at once, spends nothing, and affects no other caller.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::{
    Adjusted, Algorithm, Decision, DirectLimiter, Limit, Limiter, ManualClock, Map, Pacer, Permits, SECOND,
    Shaper, Zone, admit_all, ask,
};

const LIMITS: [&str; 9] = [
    "2/h",
    "2/h leaky-bucket queue 1",
    "2/h fixed-window",
    "2/h fixed-window align first-hit",
    "2/h sliding-log",
    "2/h sliding-window",
    "2/h pacer",
    "2/h pacer pay self",
    "2/h concurrency",
];

/// Returns limiters of every algorithm, each in a zone and in a map.
fn limiters() -> impl Iterator<Item = Limiter> {
    LIMITS.iter().flat_map(|text| {
        let limit: Limit = text.parse().expect(text);
        let clock = || Arc::new(ManualClock::new());
        let map = Map::with_clock(clock());
        [Limiter::with_clock(limit, clock()), Limiter::on(&map, "", limit)]
    })
}

/// Takes one unit after the other until none remains.
fn drain(limiter: &Limiter) {
    while limiter.admit("ana").is_allowed() {}
}

fn is_free(decision: &Decision, remaining: u64) -> bool {
    decision.delay() == Some(Duration::ZERO)
        && decision.remaining() == remaining
        && decision.permit().is_none()
}

#[test]
fn a_cost_of_zero_is_allowed_and_spends_nothing_under_every_algorithm() {
    for limiter in limiters() {
        let limit = limiter.limit();
        let fresh = limiter.peek("ana");
        assert!(is_free(&limiter.admit(ask("ana").cost(0)), fresh.remaining()), "{limit}");
        assert_eq!(limiter.peek("ana"), fresh, "{limit}");
        drain(&limiter);
        let drained = limiter.peek("ana");
        for decision in [
            limiter.admit(ask("ana").cost(0)),
            limiter.peek(ask("ana").cost(0)),
            limiter.admit(ask("ana").cost(0).max_wait(SECOND)),
            limiter.acquire(ask("ana").cost(0)).blocking().expect("a cost of 0 never waits").decision,
        ] {
            assert!(is_free(&decision, drained.remaining()), "{limit}: {decision:?}");
        }
        assert_eq!(limiter.peek("ana"), drained, "{limit}");
        assert!(!limiter.admit("ana").is_allowed(), "{limit}");
    }
}

#[test]
fn a_tracked_take_of_cost_zero_refunds_nothing() {
    for limiter in limiters() {
        let limit = limiter.limit();
        drain(&limiter);
        let drained = limiter.peek("ana");
        let (decision, take) = limiter.admit_tracked(ask("ana").cost(0));
        let take = take.expect("an allowed ask has a take");
        assert!(is_free(&decision, drained.remaining()), "{limit}");
        assert_eq!((take.units(), take.refund()), (0, Adjusted::Whole), "{limit}");
        let (waited, take) =
            limiter.acquire(ask("ana").cost(0)).tracked().blocking().expect("a cost of 0 never waits");
        assert!(is_free(&waited.decision, drained.remaining()), "{limit}");
        assert_eq!((take.units(), take.refund()), (0, Adjusted::Whole), "{limit}");
        assert_eq!(limiter.peek("ana"), drained, "{limit}");
    }
}

#[test]
fn a_cost_of_zero_among_many_asks_is_decided_in_order() {
    for limiter in limiters() {
        let limit = limiter.limit();
        let single = Limiter::with_clock(limit, Arc::new(ManualClock::new()));
        let asks = [0, 1, 0, 1, 0, 1, 0].map(|cost| ask("ana").cost(cost));
        let each: Vec<_> = limiter.admit_each(asks).collect();
        let one_by_one: Vec<_> = asks.into_iter().map(|one| single.admit(one)).collect();
        let figures = |all: &[Decision]| -> Vec<_> {
            all.iter().map(|one| (one.verdict(), one.remaining(), one.permit().is_some())).collect()
        };
        assert_eq!(figures(&each), figures(&one_by_one), "{limit}");
        assert!(each.iter().step_by(2).all(Decision::is_allowed), "{limit}");
    }
}

#[test]
fn a_cost_of_zero_beside_other_asks_neither_denies_them_nor_is_denied() {
    let zone = Zone::with_clock(1 << 16, Arc::new(ManualClock::new()));
    let drained = Limiter::on(&zone, "drained", Limit::per_hour(1));
    let fresh = Limiter::on(&zone, "fresh", Limit::per_hour(2));
    drain(&drained);
    let both = |cost| admit_all([drained.ask(ask("ana").cost(cost)), fresh.ask("ana")]);
    let allowed = both(0);
    assert!(allowed.is_allowed());
    assert!(is_free(&allowed.each()[0], 0));
    assert!(!both(1).is_allowed());
    assert_eq!(fresh.peek("ana").remaining(), 1);
    let refused = admit_all([drained.ask("ana"), fresh.ask(ask("ana").cost(0))]);
    assert_eq!([refused.each()[0].is_allowed(), refused.each()[1].is_allowed()], [false, true]);
    assert!(admit_all([drained.ask(ask("ana").cost(0))]).is_allowed());
    assert_eq!(fresh.peek("ana").remaining(), 1);
}

#[test]
fn a_cost_of_zero_overtakes_a_queue_and_leaves_it_unchanged() {
    let limiter = Limiter::with_clock(Limit::per_hour(1), Arc::new(ManualClock::new()));
    drain(&limiter);
    let mut waiting = Box::pin(limiter.acquire("ana"));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    let before = limiter.peek("ana");
    assert!(limiter.admit(ask("ana").cost(0)).is_allowed());
    assert!(limiter.admit_each([ask("ana").cost(0)]).all(|one| one.is_allowed()));
    assert!(admit_all([limiter.ask(ask("ana").cost(0))]).is_allowed());
    assert!(limiter.acquire(ask("ana").cost(0)).max_wait(Duration::ZERO).blocking().is_ok());
    assert_eq!(limiter.peek("ana"), before);
    assert!(waiting.as_mut().poll(&mut context).is_pending());
}

#[test]
fn a_permit_of_cost_zero_holds_no_unit() {
    let permits = Permits::builder(1).clock(Arc::new(ManualClock::new())).build();
    let only = permits.admit("ana").expect("a free place");
    assert!(permits.admit("ana").is_err());
    let nothing = permits.admit(ask("ana").cost(0)).expect("it wants no place");
    let later = permits.acquire(ask("ana").cost(0)).blocking().expect("it wants no place");
    assert_eq!((nothing.id(), later.id()), (None, None));
    assert!(!nothing.renew() && !nothing.release() && only.id().is_some());
    drop(later);
    assert_eq!(permits.peek("ana").remaining(), 0);
    assert!(only.release());
    assert_eq!(permits.peek("ana").remaining(), 1);
}

#[test]
fn handles_of_one_key_pass_a_cost_of_zero_without_a_wait() {
    for text in LIMITS {
        let limit: Limit = text.parse().expect(text);
        if limit.algorithm() == Algorithm::Concurrency {
            continue; // places of one subject are those of `Permits`
        }
        let single = DirectLimiter::with_clock(limit, Arc::new(ManualClock::new()));
        while single.admit().is_allowed() {}
        let drained = single.peek();
        let waited = single.acquire_units(0).blocking().expect("a cost of 0 never waits");
        assert!(is_free(&waited.decision, drained.remaining()), "{text}");
        assert_eq!(single.peek(), drained, "{text}");
    }
    let pacer = Pacer::with_clock(Limit::pacer(1, SECOND), Arc::new(ManualClock::new())).expect("a pacer");
    assert!(pacer.admit(1).is_allowed() && !pacer.admit(1).is_allowed());
    assert!(pacer.admit(0).is_allowed() && pacer.acquire(0).blocking().is_ok());
    let shaper =
        Shaper::with_clock("1/h leaky-bucket".parse().expect("a limit"), Arc::new(ManualClock::new()));
    assert!(shaper.acquire_units(1).blocking().is_ok() && shaper.acquire_units(0).blocking().is_ok());
    let mut next = Box::pin(shaper.acquire_units(1).max_wait(Duration::ZERO));
    let refused = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(refused, Poll::Ready(Err(_))));
}
