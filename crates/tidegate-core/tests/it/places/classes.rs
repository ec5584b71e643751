//! Tests of the reserves and the order of classes.

use tidegate::{Class, ClassId, ConcurrencyLimiter};

use super::{CRITICAL, bulk_class, classes, fill, over, poll, ranked, wait};

#[test]
fn without_classes_there_is_one_and_it_has_all_places() {
    let places = ConcurrencyLimiter::at_most(3);
    assert_eq!(fill(&places, ClassId::FIRST).len(), 3);
    let [all] = places.class_ids();
    let held = fill(&places, all);
    assert_eq!(held.len(), 3);
    assert_eq!((held[0].class(), held[0].class().rank()), (ClassId::FIRST, 0));
    let refusal = places.admit(ClassId::FIRST).unwrap_err();
    assert!(refusal.is_overloaded() && refusal.retry_after().is_some());
    assert_eq!((refusal.decision().limit(), refusal.decision().remaining()), (3, 0));
}

#[test]
fn a_class_is_found_by_its_name() {
    let places = ConcurrencyLimiter::builder(3).classes(classes(50, 10)).build();
    assert_eq!(
        (places.class_named("critical"), places.class_named("bulk")),
        (Some(CRITICAL), Some(ranked(&places, 1)))
    );
    assert_eq!(places.class_named("other"), None);
    let place = places.admit(bulk_class(&places)).unwrap();
    assert_eq!((place.class().rank(), places.in_flight_of(place.class())), (1, 1));
    let names: Vec<_> = places.classes().map(|(_, class)| class.name()).collect();
    assert_eq!(names, ["critical", "bulk"]);
    assert_eq!(places.in_flight_of(CRITICAL), 0);
}

#[test]
fn no_call_within_its_share_is_denied_because_of_others() {
    for limit in 1..60 {
        for (critical, bulk) in [(50, 10), (0, 100), (33, 33), (99, 1), (1, 0), (60, 40)] {
            let places = ConcurrencyLimiter::builder(limit).classes(classes(critical, bulk)).build();
            let kept = limit * u64::from(critical) / 100;
            let pressing = fill(&places, bulk_class(&places));
            assert!(pressing.len() as u64 <= limit - kept, "{limit} places, {critical} percent");
            assert!(fill(&places, CRITICAL).len() as u64 >= kept, "{limit} places, {critical} percent");
        }
    }
}

#[test]
fn all_places_together_are_never_more_than_the_limit() {
    for limit in 1..60 {
        let places = ConcurrencyLimiter::builder(limit)
            .classes([90, 5, 5].map(|share| Class::new("any").share(share)))
            .build();
        let held: Vec<_> = (0..3).rev().flat_map(|class| fill(&places, ranked(&places, class))).collect();
        assert_eq!((held.len() as u64, places.in_flight()), (limit, limit));
        assert!((0..3).all(|class| places.admit(ranked(&places, class)).is_err()));
    }
}

#[test]
fn an_unreserved_place_goes_to_the_first_class_that_waits() {
    let places = ConcurrencyLimiter::builder(2).classes(classes(0, 0)).max_waiters(10).build();
    let mut held = fill(&places, bulk_class(&places));
    let mut bulk = wait(places.acquire(bulk_class(&places)));
    let mut critical = wait(places.acquire(CRITICAL));
    held.pop();
    assert!(poll(&mut bulk).is_pending(), "it came first and is less important");
    let place = over(&mut critical).unwrap();
    assert_eq!(place.class(), CRITICAL);
    held.pop();
    assert!(over(&mut bulk).is_ok());
}

#[test]
fn a_reserved_slot_goes_to_its_class_before_a_more_important_one() {
    let places = ConcurrencyLimiter::builder(4).classes(classes(25, 25)).max_waiters(10).build();
    let mut critical = fill(&places, CRITICAL);
    let mut bulk = fill(&places, bulk_class(&places));
    assert_eq!((critical.len(), bulk.len()), (3, 1));
    let mut more_critical = wait(places.acquire(CRITICAL));
    let mut more_bulk = wait(places.acquire(bulk_class(&places)));
    bulk.clear();
    assert!(poll(&mut more_critical).is_pending(), "this place is kept for bulk");
    let one = over(&mut more_bulk).unwrap();
    critical.pop();
    assert!(over(&mut more_critical).is_ok());
    drop(one);
}

#[test]
fn a_call_within_its_share_does_not_wait_behind_other_classes() {
    let places = ConcurrencyLimiter::builder(4).classes(classes(50, 0)).max_waiters(10).build();
    let _bulk = fill(&places, bulk_class(&places));
    let waiting = wait(places.acquire(bulk_class(&places)));
    let mut critical = places.acquire(CRITICAL);
    assert!(over(&mut critical).is_ok());
    assert_eq!(
        (places.waiting(), places.waiting_of(bulk_class(&places)), places.waiting_of(CRITICAL)),
        (1, 1, 0)
    );
    drop(waiting);
    assert_eq!(places.waiting(), 0);
}

#[test]
fn a_lowered_limit_ends_no_call_and_admits_none_until_it_is_met() {
    let places = ConcurrencyLimiter::builder(8).classes(classes(50, 0)).max_waiters(10).build();
    let mut critical = fill(&places, CRITICAL);
    critical.truncate(4);
    let mut bulk = fill(&places, bulk_class(&places));
    assert_eq!((critical.len(), bulk.len()), (4, 4));
    assert!(places.set_limit(2));
    assert_eq!((places.limit(), places.in_flight()), (2, 8));
    let mut waiting = [wait(places.acquire(bulk_class(&places))), wait(places.acquire(CRITICAL))];
    for _ in 0..4 {
        critical.pop();
        assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    }
    bulk.truncate(2);
    assert!(waiting.iter_mut().all(|waiter| poll(waiter).is_pending()));
    bulk.truncate(1);
    assert!(poll(&mut waiting[0]).is_pending(), "one of two is kept for critical calls");
    assert!(over(&mut waiting[1]).is_ok());
}

#[test]
fn a_raised_limit_admits_waiters() {
    let places = ConcurrencyLimiter::builder(1).classes(classes(0, 0)).max_waiters(10).build();
    let held = fill(&places, bulk_class(&places));
    let mut bulk = [(); 2].map(|()| wait(places.acquire(bulk_class(&places))));
    let mut critical = wait(places.acquire(CRITICAL));
    assert!(places.set_limit(3));
    assert!(over(&mut critical).is_ok() && over(&mut bulk[0]).is_ok());
    drop(held);
    assert!(over(&mut bulk[1]).is_ok());
}

#[test]
fn invalid_settings_panic_at_once() {
    fn complaint(make: impl FnOnce() + std::panic::UnwindSafe) -> String {
        let panic = std::panic::catch_unwind(make).expect_err("it was accepted");
        panic.downcast_ref::<String>().expect("a message with a value").clone()
    }
    let none = complaint(|| drop(ConcurrencyLimiter::at_most(0)));
    assert_eq!(none, "0 places: there may be 1 to 4294967296 in flight");
    assert!(
        complaint(|| assert!(ConcurrencyLimiter::at_most(1).set_limit(1 << 33)))
            .contains("8589934592 places")
    );
    assert!(complaint(|| drop(Class::new("bulk").share(101))).contains("class \"bulk\", share 101"));
    assert!(
        complaint(|| drop(ConcurrencyLimiter::builder(9).classes(classes(60, 41)).build()))
            .contains("101 percent")
    );
    assert!(complaint(|| drop(ConcurrencyLimiter::builder(9).classes([]).build())).contains("0 classes"));
    let many = (0..65).map(|rank| Class::new(rank.to_string()));
    assert!(complaint(|| drop(ConcurrencyLimiter::builder(9).classes(many).build())).contains("65 classes"));
}

#[test]
fn settings_make_new_places() {
    let builder = ConcurrencyLimiter::builder(2).max_waiters(1);
    let (places, others) = (builder.build(), builder.build());
    assert!(places.set_limit(3));
    let held = fill(&places, ClassId::FIRST);
    assert_eq!((others.limit(), others.in_flight()), (2, 0), "each has its own limit and its own calls");
    drop(held);
    let held = fill(&others, ClassId::FIRST);
    assert_eq!((places.in_flight(), others.in_flight()), (0, 2));
    drop(held);
}
