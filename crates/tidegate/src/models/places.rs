//! Model of a concurrency limit with few slots: no slot is taken twice, and no waiter that could be admitted keeps
//! waiting.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};

use super::{block_on, both, clock};
use crate::{Class, Outcome, Places};

fn places(limit: u64) -> Places {
    Places::at_most(limit).line(3).with_clock(clock())
}

#[test]
fn one_place_is_held_by_one() {
    loom::model(|| {
        let (places, inside) = (places(1), Arc::new(AtomicUsize::new(0)));
        let call = |places: Places, inside: Arc<AtomicUsize>| {
            move || {
                let place = block_on(&mut places.acquire(0)).expect("there is room in the line");
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                inside.fetch_sub(1, Ordering::SeqCst);
                place.done(Outcome::Done);
            }
        };
        both(call(places.clone(), inside.clone()), call(places.clone(), inside));
        assert_eq!((places.in_flight(), places.waiting()), (0, 0));
    });
}

#[test]
fn a_larger_limit_comes_while_somebody_begins_to_wait() {
    loom::model(|| {
        let places = places(1);
        let _place = places.enter(0).expect("the place is free");
        let other = places.clone();
        let (_, entered) = both(move || other.set_limit(2), move || block_on(&mut places.acquire(0)).is_ok());
        assert!(entered);
    });
}

#[test]
fn a_reserved_place_is_not_lost_to_others() {
    loom::model(|| {
        let classes = [Class::new("critical").share(50), Class::new("bulk")];
        let places = Places::at_most(2).classes(classes).line(3).with_clock(clock());
        let other = places.clone();
        let pressing =
            move || (0..2).filter(|_| other.enter(1).is_ok_and(|place| place.class() == 1)).count();
        let (_, entered) = both(pressing, {
            let places = places.clone();
            move || places.enter(0).is_ok()
        });
        assert!(entered);
        assert_eq!(places.in_flight(), 0);
    });
}
