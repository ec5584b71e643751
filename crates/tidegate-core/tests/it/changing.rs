//! Tests of limits that change while keys have debts and asks are in progress.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{
    DirectLimiter, HOUR, Limit, Limiter, MILLISECOND, ManualClock, Map, Pacer, SECOND, admit_all, ask,
};

fn limit(text: &str) -> Limit {
    text.parse().expect("a limit")
}

fn clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.advance(1000 * SECOND);
    Arc::new(clock)
}

#[test]
fn an_ask_made_before_the_algorithm_changed_is_decided_by_the_new_one() {
    let limiter = Limiter::with_clock(limit("1/h burst 1"), clock());
    let early = limiter.ask("ana");
    limiter.set_limit(limit("1/h sliding-log"));
    assert!(limiter.admit("ana").is_allowed());
    assert!(!admit_all([early.clone()]).is_allowed(), "one an hour");

    limiter.set_limit(limit("1/h burst 1"));
    assert!(limiter.admit("ana").is_allowed());
    let early = limiter.ask("ana");
    limiter.set_limit(limit("9/h sliding-log"));
    assert!(admit_all([early]).is_allowed());
    limiter.set_limit(limit("1/h burst 1"));
    assert!(!limiter.admit("ana").is_allowed(), "what is owed was kept");
}

#[test]
fn a_single_decides_by_the_limit_in_force_and_by_the_clock_it_was_given() {
    let clock = clock();
    for single in [
        DirectLimiter::new(limit("1/h burst 3")),
        DirectLimiter::with_clock(limit("1/h burst 3"), clock.clone()),
    ] {
        assert!(single.admit().is_allowed());
        single.set_limit(limit("1/h burst 1"));
        assert!(!single.admit().is_allowed());
        single.set_limit(limit("1/h burst 3"));
        assert_eq!([(); 3].map(|()| single.admit().is_allowed()), [true, true, false]);
        single.set_limit(limit("1/h sliding-log"));
        assert_eq!([(); 2].map(|()| single.admit().is_allowed()), [true, false]);
    }
    let single = DirectLimiter::with_clock(limit("1/h burst 1"), clock.clone());
    assert_eq!([(); 2].map(|()| single.admit().is_allowed()), [true, false]);
    clock.advance(HOUR);
    assert_eq!([(); 2].map(|()| single.admit().is_allowed()), [true, false]);
}

#[test]
fn every_algorithm_finds_the_state_it_left() {
    let texts = [
        "1/h burst 1",
        "1/h leaky-bucket",
        "1/h fixed-window",
        "1/h sliding-log",
        "1/h sliding-window",
        "1/h pacer burst 0s",
        "1/h concurrency",
    ];
    let single = DirectLimiter::with_clock(limit(texts[0]), clock());
    let limiter = Limiter::with_clock(limit(texts[0]), clock());
    for passes in [true, false] {
        for text in texts {
            single.set_limit(limit(text));
            limiter.set_limit(limit(text));
            assert_eq!(single.admit().is_allowed(), passes, "{text}");
            assert_eq!(limiter.admit("ana").is_allowed(), passes, "{text}");
        }
    }
    single.reset();
    limiter.reset("ana");
    for text in texts {
        single.set_limit(limit(text));
        limiter.set_limit(limit(text));
        assert!(single.admit().is_allowed() && limiter.admit("ana").is_allowed(), "{text}");
    }
}

#[test]
fn a_longer_period_counts_what_the_shorter_one_counts_until_that_is_clear() {
    for [short, long] in [
        ["2/s sliding-log", "2/h sliding-log"],
        ["2/s sliding-window", "2/h sliding-window"],
        ["1/s pacer burst 0s", "1/s pacer burst 1h"],
    ] {
        let clock = clock();
        let map = Map::with_clock(clock.clone());
        let limiter = Limiter::on(&map, "user", limit(short));
        while limiter.admit("ana").is_allowed() {}
        limiter.set_limit(limit(long));
        let others = Limiter::on(&map, "other", limit("1/s"));
        let sweep = || {
            for key in 0..20_000_u64 {
                let _ = others.admit(key);
            }
        };
        sweep();
        let wait = limiter.peek("ana").retry_after().expect(long);
        assert!(wait <= 2 * SECOND, "{long}: {wait:?}");
        clock.advance(wait - Duration::from_nanos(1));
        sweep();
        assert!(!limiter.peek("ana").is_allowed(), "{long}");
        clock.advance(Duration::from_nanos(1));
        sweep();
        assert!(limiter.peek("ana").is_allowed(), "{long}");
    }
}

#[test]
fn a_joint_denial_reports_each_limit_exactly() {
    let map = Map::with_clock(clock()).max_keys(2);
    let places = Limiter::on(&map, "place", limit("1/h concurrency"));
    let tokens = Limiter::on(&map, "token", limit("5/h"));
    let other = Limiter::on(&map, "other", limit("1/h"));
    let held = places.admit("ana").permit().unwrap();
    assert!(places.release("ana", held) && tokens.admit("ana").is_allowed());
    let all = admit_all([places.ask("ana"), tokens.ask("ana"), other.ask("new")]);
    assert!(!all.is_allowed() && all.each()[2].is_store_full());
    assert_eq!(all.each()[0].permit(), None, "it holds no permit");
    assert_eq!(all.each()[1].remaining(), tokens.peek("ana").remaining());
    assert_eq!((map.keys(), places.peek("ana").remaining()), (2, 1));

    let twice =
        admit_all([tokens.ask(ask("ana").cost(2)), places.ask("ana"), tokens.ask(ask("ana").cost(3))]);
    assert!(!twice.is_allowed());
    assert_eq!(twice.each()[1].permit(), None);
    assert_eq!(tokens.peek("ana").remaining(), 4);
    assert!(admit_all([tokens.ask(ask("ana").cost(2)), tokens.ask(ask("ana").cost(2))]).is_allowed());
    assert_eq!(tokens.peek("ana").remaining(), 0);
}

#[test]
fn a_counted_denial_reports_the_wait_that_it_caused() {
    let clock = clock();
    let limiter = Limiter::with_clock(limit("2/s sliding-log count-denied"), clock.clone());
    assert!(limiter.admit("ana").is_allowed());
    clock.advance(SECOND / 2);
    assert!(limiter.admit("ana").is_allowed());
    clock.advance(SECOND / 10);
    let wait = admit_all([limiter.ask("ana")]).retry_after().unwrap();
    clock.advance(wait);
    assert!(limiter.admit("ana").is_allowed(), "after the reported wait of {wait:?}");
}

#[test]
fn several_limits_together_need_no_copy_of_a_long_log() {
    let clock = clock();
    let map = Map::with_clock(clock.clone()).max_bytes(600_000);
    let all = Limiter::on(&map, "all", limit("20000/d sliding-log"));
    for _ in 0..16_000 {
        clock.advance(Duration::from_nanos(1));
        assert!(all.admit("").is_allowed());
    }
    let per_ip = Limiter::on(&map, "ip", limit("1/h"));
    for address in 0..100_u64 {
        assert!(admit_all([all.ask(""), per_ip.ask(address)]).is_allowed());
    }
    assert_eq!(all.peek("").remaining(), 20_000 - 16_100);
}

#[test]
fn several_limits_together_never_outgrow_the_map() {
    const MOST: usize = 20_000;
    let clock = clock();
    let map = Map::with_clock(clock.clone()).max_bytes(MOST);
    let log = Limiter::on(&map, "log", limit("100000/d sliding-log"));
    let tokens = Limiter::on(&map, "token", limit("100000/s"));
    let refused = loop {
        clock.advance(Duration::from_nanos(1));
        let both = admit_all([tokens.ask("ana"), log.ask("ana")]);
        assert!(map.bytes() <= MOST, "{} bytes", map.bytes());
        if !both.is_allowed() {
            break both;
        }
    };
    assert!(refused.each()[1].is_store_full() && !refused.each()[0].is_store_full());
}

#[test]
fn joint_asks_without_room_in_the_store_leave_no_state() {
    let map = Map::with_clock(clock()).max_keys(1);
    let log = Limiter::on(&map, "log", limit("5/d sliding-log"));
    let tokens = Limiter::on(&map, "token", limit("5/d"));
    for _ in 0..1000 {
        let both = admit_all([log.ask("ana"), tokens.ask("ana")]);
        assert!(both.each()[1].is_store_full());
        assert_eq!(map.keys(), 0);
        assert!(map.bytes() < 4000, "{} bytes for two empty tables", map.bytes());
    }
    assert!(tokens.admit("ana").is_allowed());
    assert_eq!(log.peek("ana").remaining(), 5);
}

#[test]
fn a_pacer_from_an_unlimited_rate_has_its_full_burst_saved() {
    for passed in [0, 200, 10_000] {
        for asks in [0, 1, 100] {
            for first in ["unlimited pacer", "5/s pacer"] {
                let clock = clock();
                let pacer = Pacer::with_clock(limit(first), clock.clone()).expect("a pacer");
                pacer.set_rate("unlimited".parse().unwrap()).unwrap();
                for _ in 0..asks {
                    assert!(pacer.admit(7).is_allowed(), "an unlimited rate");
                }
                clock.advance(passed * MILLISECOND);
                pacer.set_rate("5/s".parse().unwrap()).unwrap();
                let granted =
                    std::iter::repeat_with(|| pacer.admit(1)).take_while(|grant| grant.is_allowed());
                let case = format!("{first}, {asks} asks at an unlimited rate for {passed} ms");
                assert_eq!(granted.count(), 5 + 1, "{case}: five saved, and one that the next pays for");
            }
        }
    }
}
