//! Tests of the parts that only a zone can get wrong: cells that are won and lost, and keys that have to share one.

mod file;
mod flood;
mod newcomers;
mod states;

use std::sync::Arc;

use tidegate::{
    Adjusted, Ask, Cost, HOUR, Key, Limit, Limiter, ManualClock, Map, SECOND, Subject, WhenFull, Zone,
    admit_all, ask,
};

use crate::map::{decides_like_states_kept_apart, stands_or_falls_together};

/// The size in bytes of the smallest zone: two buckets of eight cells.
const SMALLEST: usize = 256;

fn zone(bytes: usize) -> (Zone, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR);
    (Zone::with_clock(bytes, clock.clone()), clock)
}

#[test]
fn many_keys_in_a_zone_decide_like_states_kept_apart() {
    decides_like_states_kept_apart::<Zone>("zone");
}

#[test]
fn asks_together_in_a_zone_stand_or_fall_together() {
    stands_or_falls_together::<Zone>("zone");
}

#[test]
fn a_full_zone_denies_newcomers_early_and_forgets_no_key() {
    let (zone, clock) = zone(SMALLEST);
    let limiter = Limiter::on(&zone, "", Limit::per_minute(1));
    let first: Vec<_> = (0..1000_u32).map(|key| limiter.admit(key).is_allowed()).collect();
    let passed = first.iter().filter(|allowed| **allowed).count();
    assert!((16..=18).contains(&passed), "{passed} passed: each of 16 cells, and what shared ones had left");
    let counts = zone.counts();
    assert_eq!((counts.cells, counts.live), (16, 16));
    assert!(counts.shared >= 1 && counts.shared <= 2 && counts.shared_decisions >= 900, "{counts:?}");
    clock.advance(59 * SECOND);
    for (key, _) in first.iter().enumerate().filter(|(_, allowed)| **allowed) {
        assert!(!limiter.admit(key).is_allowed(), "{key} was forgotten");
    }
    clock.advance(62 * SECOND);
    assert!(limiter.admit(5000).is_allowed(), "once everything is repaid there is room again");
    assert_eq!(zone.counts().shared, 0);
}

#[test]
fn a_key_in_a_shared_cell_gets_the_time_at_which_it_passes() {
    let (zone, clock) = zone(SMALLEST);
    let hourly = Limiter::on(&zone, "hourly", Limit::token_bucket(1, HOUR));
    let quick = Limiter::on(&zone, "quick", Limit::per_second(10).burst(20));
    assert!((0..1000_u32).any(|key| !hourly.admit(key).is_allowed()));
    let refused = quick.admit("ana");
    let wait = refused.retry_after().expect("there is no cell for her");
    assert!(wait > 50 * tidegate::MINUTE, "{wait:?}");
    assert_eq!(quick.peek("ana").retry_after(), Some(wait));
    clock.advance(wait - std::time::Duration::from_nanos(1));
    assert!(!quick.admit("ana").is_allowed(), "a nanosecond before");
    clock.advance(std::time::Duration::from_nanos(1));
    assert!(quick.admit("ana").is_allowed());
}

#[test]
fn keys_that_may_be_forgotten_make_room_and_are_never_denied_early() {
    let (zone, _) = zone(SMALLEST);
    let unimportant =
        Limiter::builder(Limit::per_minute(1)).on(&zone, "unimportant").when_full(WhenFull::Forget).build();
    let important = Limiter::on(&zone, "important", Limit::per_minute(1));
    assert!((0..1000_u32).all(|key| unimportant.admit(key).is_allowed()));
    let counts = zone.counts();
    assert_eq!((counts.shared, counts.shared_decisions), (0, 0));
    assert!(counts.forgotten >= 1000 - 16, "{counts:?}");
    assert!((0..8_u32).all(|key| important.admit(key).is_allowed()), "they get the cells of the others");
    assert!((0..8_u32).all(|key| !important.admit(key).is_allowed()), "and keep them");
    assert!((0..1000_u32).any(|key| !important.admit(key).is_allowed()));
    assert!((5000..6000_u32).all(|key| unimportant.admit(key).is_allowed()), "not remembered, not refused");
}

#[test]
fn one_reset_forgets_one_subject_under_every_algorithm() {
    let (zone, _) = zone(1 << 16);
    let key = Key::new("ana");
    let limits =
        ["1/m", "1/m queue 0 leaky-bucket", "1/m fixed-window", "1/m sliding-log", "1/m concurrency"];
    let limits = limits.map(|text| text.parse::<Limit>().unwrap());
    let all = |key: &Key| {
        let take = |limit| zone.take(Subject::new("n", key, limit), Ask::ONE).0.is_allowed();
        limits.iter().filter(|limit| take(limit)).count()
    };
    let bob = Key::new("bob");
    assert_eq!((all(&key), all(&key), all(&bob), all(&bob)), (5, 0, 5, 0));
    assert!(zone.reset(Subject::new("n", &key, &limits[0])).is_ok());
    assert_eq!((all(&key), all(&bob)), (5, 0));
}

#[test]
fn states_of_more_than_a_word_are_kept_beside_the_zone() {
    let (zone, _) = zone(SMALLEST);
    for (text, kept) in [
        ("10/s", true),
        ("10/s queue 3 leaky-bucket", true),
        ("10/m fixed-window", true),
        ("10/m fixed-window align first-hit", false),
        ("20000000/d fixed-window", false),
        ("10/1ms fixed-window", false),
        ("10/s sliding-log", false),
        ("10/s pacer", false),
    ] {
        let limit: Limit = text.parse().unwrap();
        assert_eq!(zone.keeps(&limit), kept, "{text}");
        let limiter = Limiter::on(&zone, text, limit);
        assert!(limiter.admit("ana").is_allowed(), "{text}");
    }
    assert_eq!(zone.counts().inserts, 3);
}

#[test]
fn limits_in_a_zone_and_a_map_are_all_or_none() {
    let (zone, clock) = zone(1 << 16);
    let map = Map::with_clock(clock.clone());
    let (five, three) = (Limit::per_minute(5), Limit::per_minute(3));
    let here = Limiter::on(&zone, "here", five);
    let there = Limiter::on(&map, "there", three);
    let log = Limiter::on(&zone, "log", Limit::sliding_log(4, tidegate::MINUTE));
    let all = || admit_all([here.ask("ana"), there.ask("ana"), log.ask("ana")]);
    assert_eq!((0..10).filter(|_| all().is_allowed()).count(), 3);
    assert_eq!([&here, &there, &log].map(|limiter| limiter.peek("ana").remaining()), [2, 0, 1]);
    let twice = admit_all([here.ask("ana"), here.ask("ana")]);
    assert!(twice.is_allowed());
    assert!(!admit_all([here.ask("ana"), here.ask("ana")]).is_allowed());
    assert!(!admit_all([here.ask("bob"), there.ask("ana")]).is_allowed());
    assert_eq!(here.peek("bob").remaining(), 5);
}

#[test]
fn a_joint_take_in_a_shared_cell_is_undone_when_another_is_denied() {
    let (zone, clock) = zone(SMALLEST);
    let limit = Limit::per_minute(10).burst(4);
    let limiter = Limiter::on(&zone, "", limit);
    for key in 0..100_u32 {
        let _ = limiter.admit(ask(key).cost(4));
    }
    clock.advance(12 * SECOND);
    let shares = (50..100_u32).find(|key| limiter.peek(key).remaining() == 2);
    let key = Key::new(shares.expect("a shared cell has some left"));
    let (decision, receipt) = zone.take(Subject::new("", &key, &limit), Ask::ONE);
    let before = decision.remaining() + 1;
    assert_eq!(zone.give_back(Subject::new("", &key, &limit), receipt.unwrap()), Adjusted::Whole);
    assert_eq!(zone.peek(Subject::new("", &key, &limit), Ask::ONE).remaining(), before);
    let refund = tidegate::Adjustment::Refund(Cost::ONE);
    let adjusted = zone.adjust(Subject::new("", &key, &limit), refund);
    assert!(zone.peek(Subject::new("", &key, &limit), Ask::ONE).remaining() <= before + 1, "{adjusted:?}");
}

/// Rules that set when keys may be evicted rely on `Limit::fits_cell`.
#[test]
fn keys_are_forgotten_under_limits_that_fit_a_cell_and_under_no_others() {
    for text in [
        "1/h",
        "1/h leaky-bucket",
        "1/h fixed-window",
        "1/h fixed-window align first-hit",
        "20000000/d fixed-window",
        "1/h sliding-log",
        "1/h sliding-window",
        "1/h pacer",
        "1/h concurrency",
    ] {
        let (zone, _) = zone(SMALLEST);
        let limit: Limit = text.parse().unwrap();
        let limiter = Limiter::builder(limit).on(&zone, "").when_full(WhenFull::Forget).build();
        let admitted = (0..2000).filter(|key| limiter.admit(format!("{key}")).is_allowed()).count();
        assert_eq!(admitted, 2000, "{text}: each is a newcomer");
        assert_eq!(zone.counts().forgotten > 0, limit.fits_cell(), "{text}");
    }
}
