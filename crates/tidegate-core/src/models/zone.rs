//! Models of a zone of two buckets with two cells each: every key may be in any of them.

use std::sync::Arc;

use super::{SLOW, both, clock};
use crate::{Limit, Limiter, MILLISECOND, ManualClock, SECOND, Zone, admit_all};

/// The smallest zone.
const BYTES: usize = 0;
const CELLS: u32 = 4;
/// A limit whose debts are repaid before all others here.
const QUICK: Limit = Limit::per_second(10).burst(10);

/// Keys with different cells in the zone.
const NAMES: [&str; 4] = ["ana", "bob", "cleo", "dan"];

fn zone() -> (Zone, Arc<ManualClock>) {
    let clock = clock();
    (Zone::with_clock(BYTES, clock.clone()), clock)
}

fn admitted(limiter: &Limiter, key: &str, asks: usize) -> usize {
    (0..asks).filter(|_| limiter.admit(key).is_allowed()).count()
}

/// Fills every cell with a key that has a small debt under this limit.
fn fill(zone: &Zone, limit: Limit) -> Limiter {
    let limiter = Limiter::on(zone, "before", limit);
    assert!((0..CELLS).all(|key| limiter.admit(key).is_allowed()));
    limiter
}

#[test]
fn a_newcomer_gets_one_cell() {
    loom::model(|| {
        let (zone, _) = zone();
        let limiter = Limiter::on(&zone, "", SLOW);
        let other = limiter.clone();
        let (one, two) = both(move || admitted(&other, "ana", 1), move || admitted(&limiter, "ana", 1));
        assert_eq!(one + two, 1);
        assert_eq!(zone.counts().live, 1);
    });
}

#[test]
fn two_newcomers_want_the_same_cells() {
    loom::model(|| {
        let (zone, _) = zone();
        let limiter = Limiter::on(&zone, "", SLOW);
        let other = limiter.clone();
        let (one, two) = both(move || admitted(&other, "ana", 1), {
            let limiter = limiter.clone();
            move || admitted(&limiter, "bob", 1) + admitted(&limiter, "ana", 1)
        });
        assert_eq!(one + two, 2);
        assert_eq!(admitted(&limiter, "ana", 1) + admitted(&limiter, "bob", 1), 0);
    });
}

#[test]
fn a_newcomer_takes_the_cell_of_a_neighbour_that_comes_back() {
    loom::model(|| {
        let (zone, clock) = zone();
        let before = fill(&zone, QUICK.burst(1));
        clock.advance(SECOND);
        let limiter = Limiter::on(&zone, "", SLOW);
        let other = limiter.clone();
        let (one, (two, back)) = both(
            move || admitted(&other, "ana", 1),
            move || (admitted(&limiter, "ana", 1), before.admit(0_u32).is_allowed()),
        );
        assert_eq!(one + two, 1);
        assert!(back, "the neighbour owes nothing any more");
    });
}

#[test]
fn two_bring_a_newcomer_and_see_different_cells_free() {
    for key in NAMES {
        loom::model(move || {
            let (zone, clock) = zone();
            assert!(Limiter::on(&zone, "before", QUICK).admit("old").is_allowed());
            clock.advance(150 * MILLISECOND);
            let limiter = Limiter::on(&zone, "", SLOW);
            let other = limiter.clone();
            let (one, two) = both(
                move || {
                    // From now on the cell of the old key is free.
                    clock.advance(60 * MILLISECOND);
                    admitted(&other, key, 1)
                },
                move || admitted(&limiter, key, 1),
            );
            assert_eq!(one + two, 1, "{key}");
        });
    }
}

#[test]
fn a_cell_becomes_free_for_one_who_shares_a_moment_before() {
    for key in NAMES {
        loom::model(move || {
            let (zone, clock) = zone();
            // None of these keys has any debt left; they may only not have been evicted yet.
            let before = Limiter::on(&zone, "before", Limit::per_second(1000));
            assert!(before.admit("old").is_allowed());
            clock.advance(50 * MILLISECOND);
            assert!((1..CELLS).all(|key| before.admit(key).is_allowed()));
            clock.advance(50 * MILLISECOND);
            let limiter = Limiter::on(&zone, "", SLOW.burst(2));
            let other = limiter.clone();
            let (one, two) = both(
                move || {
                    clock.advance(2 * MILLISECOND);
                    admitted(&other, key, 2)
                },
                {
                    let limiter = limiter.clone();
                    move || admitted(&limiter, key, 1)
                },
            );
            let rest = admitted(&limiter, key, 2);
            assert!(one + two + rest <= 2, "{key}: {one}, {two} and {rest}");
        });
    }
}

#[test]
fn a_cell_becomes_shared_while_its_owner_asks() {
    loom::model(|| {
        let (zone, _) = zone();
        let before = fill(&zone, SLOW.burst(2));
        let other = Limiter::on(&zone, "", SLOW.burst(2));
        let (ana, owners) = both(move || admitted(&other, "ana", 2), {
            let before = before.clone();
            move || [0_u32, 1].map(|key| usize::from(before.admit(key).is_allowed()))
        });
        assert!(ana <= 1, "what is shared was owed already");
        for (key, passed) in [0_u32, 1].into_iter().zip(owners) {
            let rest = (0..3).filter(|_| before.admit(key).is_allowed()).count();
            assert!(passed + rest <= 1, "{key} had one left, and passed {passed} and {rest}");
        }
    });
}

#[test]
fn two_share_a_cell() {
    loom::model(|| {
        let (zone, _) = zone();
        let before = fill(&zone, QUICK);
        let limiter = Limiter::on(&zone, "", SLOW.burst(3));
        let other = limiter.clone();
        let (one, two) = both(move || admitted(&other, "ana", 2), {
            let limiter = limiter.clone();
            move || admitted(&limiter, "ana", 2)
        });
        let rest = admitted(&limiter, "ana", 3);
        assert!((1..=3).contains(&(one + two + rest)), "{one}, {two} and {rest}");
        drop(before);
    });
}

#[test]
fn a_cell_becomes_free_for_one_who_shares() {
    loom::model(|| {
        let (zone, clock) = zone();
        let before = fill(&zone, QUICK);
        let limiter = Limiter::on(&zone, "", SLOW.burst(3));
        let other = limiter.clone();
        let (one, two) = both(
            move || {
                let one = admitted(&other, "ana", 1);
                clock.advance(SECOND);
                one + admitted(&other, "ana", 1)
            },
            {
                let limiter = limiter.clone();
                move || admitted(&limiter, "ana", 2)
            },
        );
        let rest = admitted(&limiter, "ana", 3);
        assert!((1..=3).contains(&(one + two + rest)), "{one}, {two} and {rest}");
        drop(before);
    });
}

#[test]
fn a_batch_meets_others() {
    loom::model(|| {
        let (zone, _) = zone();
        let limiter = Limiter::on(&zone, "", SLOW);
        assert!(limiter.admit("bob").is_allowed());
        let other = limiter.clone();
        let (one, two) = both(
            move || {
                other.admit_each(["ana", "bob"]).map(|decision| decision.is_allowed()).collect::<Vec<_>>()
            },
            move || admitted(&limiter, "ana", 1),
        );
        assert_eq!((usize::from(one[0]) + two, one[1]), (1, false));
    });
}

#[test]
fn two_limits_of_a_zone_are_asked_in_two_orders() {
    loom::model(|| {
        let (zone, _) = zone();
        let (user, ip) = (Limiter::on(&zone, "user", SLOW), Limiter::on(&zone, "ip", SLOW.burst(2)));
        assert!(ip.admit("ana").is_allowed());
        assert_eq!(ip.refund("ana"), crate::Adjusted::Whole);
        let (other_user, other_ip) = (user.clone(), ip.clone());
        let (one, two) =
            both(move || admit_all([other_user.ask("ana"), other_ip.ask("ana")]).is_allowed(), {
                let (user, ip) = (user.clone(), ip.clone());
                move || admit_all([ip.ask("ana"), user.ask("ana")]).is_allowed()
            });
        assert!(!(one && two), "one for the user is all there is");
        assert_eq!(user.peek("ana").remaining(), u64::from(!(one || two)));
        assert_eq!(ip.peek("ana").remaining(), 2 - u64::from(one || two), "what was refused is given back");
    });
}
