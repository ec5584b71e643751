//! A shared limiter over every store of the library: counts, limits that change, permits and refunds.

use std::num::NonZeroU64;
use std::sync::Arc;

use smol::block_on;
use tidegate::{
    Adjusted, Adjustment, Ask, Ban, DecidedBy, Decision, Decisions, FallbackStore, HOUR, Key, Limit, Limiter,
    MINUTE, ManualClock, Map, OnStoreFailure, PermitId, PreparedLimit, PreparedPenalty, SECOND,
    SharedLimiter, Store, StoreError, StoreFuture, Subject, Zone, Zones, ask,
};

/// A remote store that is down.
#[derive(Clone, Debug)]
struct Down;

fn down<'a, T>() -> StoreFuture<'a, T> {
    StoreFuture::failed(StoreError::unavailable("connection refused"))
}

impl Store for Down {
    fn take<'a>(&'a self, _: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        down()
    }

    fn peek<'a>(&'a self, _: Subject<'a>, _: Ask) -> StoreFuture<'a, Decision> {
        down()
    }

    fn adjust<'a>(&'a self, _: Subject<'a>, _: Adjustment) -> StoreFuture<'a, Adjusted> {
        down()
    }

    fn release<'a>(&'a self, _: Subject<'a>, _: PermitId) -> StoreFuture<'a, bool> {
        down()
    }

    fn renew<'a>(&'a self, _: Subject<'a>, _: PermitId) -> StoreFuture<'a, bool> {
        down()
    }

    fn reset<'a>(&'a self, _: Subject<'a>) -> StoreFuture<'a, bool> {
        down()
    }

    fn reset_limit<'a>(&'a self, _: Subject<'a>) -> StoreFuture<'a, bool> {
        down()
    }
}

/// Calls `test` with a limiter over each store, all of them by one clock.
fn over_each(limit: Limit, test: impl Fn(&SharedLimiter, &ManualClock)) {
    let clock = || Arc::new(ManualClock::new());
    let at = clock();
    test(&SharedLimiter::on(&Map::with_clock(at.clone()), "user", limit), &at);
    let at = clock();
    test(&SharedLimiter::on(&Zone::with_clock(1 << 16, at.clone()), "user", limit), &at);
    let at = clock();
    let zones = Zones::new(&Zone::with_clock(1 << 16, at.clone()));
    test(&SharedLimiter::on(&zones, "user", limit), &at);
    let at = clock();
    let remote = Arc::new(Map::with_clock(at.clone()));
    let fallback = FallbackStore::new(remote, &Zone::with_clock(1 << 16, at.clone()));
    test(&SharedLimiter::on(&fallback, "user", limit), &at);
}

fn allowed(limiter: &SharedLimiter, key: &str, units: u64) -> bool {
    block_on(limiter.admit(ask(key).cost(units))).expect("the store decides").is_allowed()
}

fn remaining(limiter: &SharedLimiter, key: &str) -> u64 {
    block_on(limiter.peek(key)).expect("the store decides").remaining()
}

#[test]
fn each_key_has_its_own_count_which_clones_share() {
    over_each(Limit::per_second(2), |limiter, clock| {
        assert!(allowed(limiter, "ana", 1) && allowed(&limiter.clone(), "ana", 1));
        assert!(!allowed(limiter, "ana", 1) && allowed(limiter, "bob", 2));
        let denied = block_on(limiter.admit("ana")).unwrap();
        assert_eq!(denied.retry_after(), Some(SECOND / 2));
        clock.advance(SECOND / 2);
        assert!(allowed(limiter, "ana", 1));
    });
}

#[test]
fn a_cost_of_zero_is_allowed_and_spends_nothing() {
    over_each(Limit::per_hour(1), |limiter, _| {
        assert!(allowed(limiter, "ana", 1) && allowed(limiter, "ana", 0));
        let (decision, take) = block_on(limiter.admit_tracked(ask("ana").cost(0))).unwrap();
        assert!(decision.is_allowed());
        assert_eq!(take.map(|take| take.units()), Some(0));
        assert!(block_on(limiter.peek(ask("ana").cost(0))).unwrap().is_allowed());
        assert_eq!(block_on(limiter.charge(ask("ana").cost(0))).unwrap(), Adjusted::Whole);
        assert_eq!(remaining(limiter, "ana"), 0);
    });
    let offline = SharedLimiter::on(&Down, "user", Limit::per_hour(1));
    assert!(allowed(&offline, "ana", 0));
}

#[test]
fn a_changed_limit_carries_the_units_that_were_used() {
    over_each(Limit::per_day(5), |limiter, _| {
        assert!(allowed(limiter, "ana", 5));
        limiter.set_limit(Limit::per_day(100));
        assert_eq!((limiter.limit(), remaining(limiter, "ana")), (Limit::per_day(100), 95));
        limiter.set_limit(Limit::per_day(3));
        assert!(!allowed(limiter, "ana", 1) && allowed(limiter, "bob", 3));
        limiter.set_limit(Limit::per_day(100));
        assert_eq!(remaining(limiter, "bob"), 97);
    });
}

#[test]
fn a_limit_of_the_name_on_the_store_is_replaced() {
    let map = Map::new();
    let old = SharedLimiter::on(&map, "user", Limit::per_day(5));
    assert!(allowed(&old, "ana", 4));
    let new = SharedLimiter::on(&map, "user", Limit::per_day(10));
    assert_eq!(remaining(&new, "ana"), 6);
    let other = SharedLimiter::on(&map, "ip", Limit::per_day(10));
    assert_eq!(remaining(&other, "ana"), 10);
}

#[test]
fn a_limiter_with_the_same_name_has_the_same_states() {
    let zone = Zone::new(1 << 16);
    let shared = SharedLimiter::on(&zone, "user", Limit::per_day(5));
    let limiter = Limiter::on(&zone, "user", Limit::per_day(5));
    assert!(allowed(&shared, "ana", 3));
    assert_eq!(limiter.peek("ana").remaining(), 2);
    assert!(limiter.admit(ask("ana").cost(2)).is_allowed());
    assert!(!allowed(&shared, "ana", 1));
}

#[test]
fn units_go_back_and_come_late() {
    over_each(Limit::per_day(10), |limiter, _| {
        let (decision, take) = block_on(limiter.admit_tracked(ask("ana").cost(6))).unwrap();
        assert!(decision.is_allowed() && allowed(limiter, "ana", 2));
        let mut take = take.expect("an allowed ask has a take");
        assert_eq!((take.units(), block_on(take.refund_units(4)).unwrap()), (6, Adjusted::Whole));
        assert_eq!(remaining(limiter, "ana"), 6);
        assert_eq!(block_on(take.refund()).unwrap(), Adjusted::Whole);
        assert_eq!(remaining(limiter, "ana"), 8);
        let (denied, none) = block_on(limiter.admit_tracked(ask("ana").cost(9))).unwrap();
        assert!(!denied.is_allowed() && none.is_none());

        assert_eq!(block_on(limiter.charge(ask("ana").cost(8))).unwrap(), Adjusted::Whole);
        assert_eq!(remaining(limiter, "ana"), 0);
        assert_eq!(block_on(limiter.refund(ask("ana").cost(3))).unwrap(), Adjusted::Whole);
        assert_eq!(remaining(limiter, "ana"), 3);
        assert!(block_on(limiter.reset("ana")).unwrap());
        assert_eq!(remaining(limiter, "ana"), 10);
    });
}

#[test]
fn a_refund_after_a_change_goes_to_the_limit_of_the_take() {
    over_each(Limit::per_day(10), |limiter, _| {
        let (_, take) = block_on(limiter.admit_tracked(ask("ana").cost(6))).unwrap();
        limiter.set_limit(Limit::per_day(20));
        assert_eq!(remaining(limiter, "ana"), 14);
        assert_eq!(block_on(take.unwrap().refund()).unwrap(), Adjusted::Whole);
        assert_eq!(remaining(limiter, "ana"), 20, "it had no state of its own under the new limit");
    });
}

#[test]
fn permits_are_renewed_and_released() {
    over_each(Limit::concurrency(1, HOUR), |limiter, clock| {
        let permit = block_on(limiter.admit("ana")).unwrap().permit().expect("a concurrency limit");
        assert!(!allowed(limiter, "ana", 1));
        clock.advance(HOUR / 2);
        assert!(block_on(limiter.renew("ana", permit)).unwrap());
        clock.advance(HOUR / 2);
        assert!(!allowed(limiter, "ana", 1), "the lease has begun again");
        assert!(block_on(limiter.release("ana", permit)).unwrap());
        assert!(!block_on(limiter.release("ana", permit)).unwrap());
        assert!(!block_on(limiter.renew("ana", permit)).unwrap());
        assert!(allowed(limiter, "ana", 1));
    });
}

#[test]
fn a_store_that_is_down_is_an_error_or_its_fallback_decides() {
    let offline = SharedLimiter::on(&Down, "user", Limit::per_hour(4));
    assert!(block_on(offline.admit("ana")).is_err_and(|error| error.is_retryable()));
    assert!(block_on(offline.reset("ana")).is_err() && block_on(offline.charge("ana")).is_err());

    let two = NonZeroU64::new(2).expect("not zero");
    let memory = Zone::with_clock(1 << 16, Arc::new(ManualClock::new()));
    let store = FallbackStore::new(Arc::new(Down), &memory).nodes(two);
    let local = SharedLimiter::on(&store, "user", Limit::per_hour(4));
    let (decision, take) = block_on(local.admit_tracked(ask("ana").cost(2))).unwrap();
    let take = take.expect("the share of one of two nodes is 2");
    assert_eq!((decision.is_allowed(), take.decided_by()), (true, DecidedBy::Local));
    assert!(!allowed(&local, "ana", 1));
    assert_eq!(block_on(take.refund()).unwrap(), Adjusted::Whole);
    assert!(allowed(&local, "ana", 2));
    let failures = local.store_failures();
    assert_eq!((failures.failed, failures.decided.local_allowed, failures.decided.local_denied), (3, 2, 1));

    let open = SharedLimiter::on(&store.on_store_failure(OnStoreFailure::Open), "user", Limit::per_hour(4));
    assert!(allowed(&open, "ana", 4) && allowed(&open, "ana", 4) && !allowed(&open, "ana", 5));
    let decided = open.store_failures().decided;
    assert_eq!((decided.open, decided.open_denied, decided.total()), (2, 1, 6), "one store counts for both");
}

#[test]
fn a_permit_of_the_fallback_is_released_where_it_was_granted() {
    let store = FallbackStore::new(Arc::new(Down), &Zone::new(1 << 16));
    let limiter = SharedLimiter::on(&store, "user", Limit::concurrency(1, HOUR));
    let permit = block_on(limiter.admit("ana")).unwrap().permit().expect("a concurrency limit");
    assert!(!allowed(&limiter, "ana", 1));
    assert!(block_on(limiter.renew("ana", permit)).unwrap());
    assert!(block_on(limiter.release("ana", permit)).unwrap());
    assert!(block_on(limiter.release("ana", permit)).is_err(), "the remote store may hold it");
    assert!(allowed(&limiter, "ana", 1));
}

#[test]
fn handles_and_futures_can_be_sent_and_own_their_keys() {
    fn is_shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    fn is_sent<T: Send>(future: T) -> T {
        future
    }
    let store: Arc<dyn Store> = Arc::new(Map::with_clock(Arc::new(ManualClock::new())));
    let limiter = SharedLimiter::over(store, "user", Limit::per_hour(2));
    is_shared(&limiter);
    // A counted reference cannot be sent to another thread; the key that is made of it can.
    let local = std::rc::Rc::<str>::from("ana");
    assert!(block_on(is_sent(limiter.admit(local.clone()))).unwrap().is_allowed());
    assert!(block_on(is_sent(limiter.admit_tracked((local, 7)))).unwrap().0.is_allowed());
    assert_eq!(block_on(is_sent(limiter.peek(Key::new("ana")))).unwrap().remaining(), 1);
}

#[test]
fn without_the_remote_store_a_node_bans_by_whole_numbers_and_open_and_closed_ban_no_key() {
    let nodes = NonZeroU64::new(4).unwrap();
    for (policy, bans) in
        [(OnStoreFailure::Local, true), (OnStoreFailure::Open, false), (OnStoreFailure::Closed, false)]
    {
        let store = FallbackStore::new(Arc::new(Down), &Zone::new(1 << 16)).nodes(nodes);
        let (limit, ana) = (PreparedLimit::of_rule("login", Limit::per_hour(4)), Key::new("ana"));
        let penalty = PreparedPenalty::of_rule("login", 3, 10 * MINUTE, HOUR).expect("a valid penalty");
        let subject = limit.subject(&ana).penalty(Some(&penalty)).on_store_failure(policy);
        let take = || block_on(store.take(&[(subject, Ask::ONE)])).expect("the fallback decides").each()[0];
        let found: Vec<_> = (0..5).map(|_| take()).collect();
        // The share of the node is one unit, so the first is allowed, and the last comes during the ban.
        assert_eq!(found[3].ban().is_some() && found[4].ban() == Some(Ban::InForce), bans, "{policy:?}");
        assert!(bans || found.iter().all(|decision| decision.ban().is_none()), "{policy:?}");
        assert!(!bans || found[4].retry_after() > Some(59 * MINUTE), "{:?}", found[4]);
    }
}
