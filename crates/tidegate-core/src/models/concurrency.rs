//! Model of a concurrency limit with few slots: no slot is taken twice, and no waiter that could be admitted keeps
//! waiting.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};

use super::{block_on, both, clock};
use crate::{Class, ClassId, ConcurrencyLimiter, Outcome};

fn concurrency(limit: u64) -> ConcurrencyLimiter {
    ConcurrencyLimiter::builder(limit).max_waiters(3).clock(clock()).build()
}

#[test]
fn one_permit_has_one_holder() {
    loom::model(|| {
        let (limiter, inside) = (concurrency(1), Arc::new(AtomicUsize::new(0)));
        let call = |limiter: ConcurrencyLimiter, inside: Arc<AtomicUsize>| {
            move || {
                let permit =
                    block_on(&mut limiter.acquire(ClassId::FIRST)).expect("there is room in the queue");
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                inside.fetch_sub(1, Ordering::SeqCst);
                permit.done(Outcome::Done);
            }
        };
        both(call(limiter.clone(), inside.clone()), call(limiter.clone(), inside));
        assert_eq!((limiter.in_flight(), limiter.waiting()), (0, 0));
    });
}

#[test]
fn a_larger_limit_comes_while_a_waiter_joins() {
    loom::model(|| {
        let limiter = concurrency(1);
        let _permit = limiter.admit(ClassId::FIRST).expect("the permit is free");
        let other = limiter.clone();
        let (_, admitted) =
            both(move || other.set_limit(2), move || block_on(&mut limiter.acquire(ClassId::FIRST)).is_ok());
        assert!(admitted);
    });
}

#[test]
fn a_reserved_permit_is_not_lost_to_others() {
    loom::model(|| {
        let classes = [Class::new("critical").share(50), Class::new("bulk")];
        let limiter = ConcurrencyLimiter::builder(2).classes(classes).max_waiters(3).clock(clock()).build();
        let [_, bulk] = limiter.class_ids();
        let other = limiter.clone();
        let pressing =
            move || (0..2).filter(|_| other.admit(bulk).is_ok_and(|permit| permit.class() == bulk)).count();
        let (_, admitted) = both(pressing, {
            let limiter = limiter.clone();
            move || limiter.admit(ClassId::FIRST).is_ok()
        });
        assert!(admitted);
        assert_eq!(limiter.in_flight(), 0);
    });
}
