//! Tests of permit numbers: a caller that counts up from its own permit does not find those of other callers.

use std::sync::Arc;

use tidegate::{
    Ask, DynamicLimiter, Key, Limit, Limiter, ManualClock, Map, PermitId, Permits, SECOND, Subject, Zone,
    admit_all,
};

const PLACES: u64 = 4;
const LIMIT: Limit = Limit::concurrency(PLACES, SECOND);

/// Takes all permits, one after the other at one instant, and guesses from the first one.
fn attack(of: &str, mut take: impl FnMut() -> Option<PermitId>, release: impl Fn(PermitId) -> bool) {
    let permits: Vec<PermitId> =
        (0..PLACES).map(|_| take().unwrap_or_else(|| panic!("{of}: a place is free"))).collect();
    let mine = permits[0].number();
    for step in 1..50 {
        for guess in [mine.wrapping_add(step), mine.wrapping_sub(step)] {
            let guess = PermitId::from_number(guess).expect("a number far from zero");
            assert!(!release(guess), "{of}: the holder of {mine:x} has released {guess:?}");
        }
    }
    assert_eq!(take(), None, "{of}: all places are held");
    for permit in &permits {
        assert!(release(*permit), "{of}: each has a permit of its own: {permits:?}");
    }
}

#[test]
fn no_handle_and_no_store_grants_permits_that_can_be_guessed() {
    let clock = Arc::new(ManualClock::new());
    let zone = Zone::with_clock(1 << 20, clock.clone());
    let map = Map::with_clock(clock.clone());
    let key = Key::new("ana");

    let subject = Subject::new("alone", &key, &LIMIT);
    attack("map", || map.take(subject, Ask::ONE).0.permit(), |permit| map.release(subject, permit));
    attack("zone", || zone.take(subject, Ask::ONE).0.permit(), |permit| zone.release(subject, permit));

    let together = Subject::new("together", &key, &LIMIT);
    let other = Limit::per_second(100);
    let both = [(together, Ask::ONE), (Subject::new("beside", &key, &other), Ask::ONE)];
    let take_all = || zone.take_all(&both).each()[0].permit();
    attack("all or none", take_all, |permit| zone.release(together, permit));

    let limiter = Limiter::with_clock(LIMIT, clock.clone());
    attack("limiter", || limiter.admit("ana").permit(), |permit| limiter.release("ana", permit));
    let each = || limiter.admit_each(["ana"]).next().and_then(|decision| decision.permit());
    attack("batch", each, |permit| limiter.release("ana", permit));
    let all = || admit_all([limiter.ask("ana")]).each()[0].permit();
    attack("limiters together", all, |permit| limiter.release("ana", permit));

    let permits = Permits::builder(PLACES).lease(SECOND).clock(clock).build();
    let enter = || {
        let permit = permits.admit("ana").ok()?;
        let id = permit.id();
        std::mem::forget(permit);
        id
    };
    attack("permits", enter, |permit| permits.release("ana", permit));

    let adhoc = DynamicLimiter::on(&zone, "adhoc");
    let limit = adhoc.prepare(LIMIT);
    let take = || adhoc.admit("ana", &limit, Ask::ONE).permit();
    attack("ad hoc", take, |permit| adhoc.release("ana", &limit, permit));
}

#[test]
fn a_permit_of_a_waiter_cannot_be_guessed() {
    let permits = Permits::builder(PLACES).lease(SECOND).clock(Arc::new(ManualClock::new())).build();
    let enter = || {
        let permit = permits.acquire("ana").max_wait(std::time::Duration::ZERO).blocking().ok()?;
        let id = permit.id();
        std::mem::forget(permit);
        id
    };
    attack("waiting", enter, |permit| permits.release("ana", permit));
}
