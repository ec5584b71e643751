//! Tests of zones in files, through the public API.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use conformance::Folder;
use tidegate::{Ask, DynamicLimiter, HOUR, Limit, Limiter, ManualClock, SECOND, Zone, ask};

fn open(path: &Path) -> Zone {
    Zone::in_file(path, 1 << 16).expect("a zone")
}

fn limiter(zone: &Zone) -> Limiter {
    Limiter::on(zone, "user", Limit::per_hour(3))
}

#[test]
fn debts_survive_the_zone() {
    let folder = Folder::new();
    for passes in [3, 0, 0] {
        let zone = open(&folder.zone());
        let limiter = limiter(&zone);
        assert_eq!((0..5).filter(|_| limiter.admit("ana").is_allowed()).count(), passes);
        zone.flush().expect("it is written");
    }
    let zone = open(&folder.zone());
    assert!(limiter(&zone).admit("bob").is_allowed());
    assert!(zone.name().ends_with("zone.tg"));
    assert_eq!(zone.clone().bytes(), 1 << 16);
}

#[test]
fn two_zones_on_one_file_share_debts() {
    let folder = Folder::new();
    let zones = [open(&folder.zone()), open(&folder.zone())];
    let limiters = zones.each_ref().map(limiter);
    for key in 0..200_u32 {
        let admit = |limiter: &Limiter| (0..3).filter(|_| limiter.admit(key).is_allowed()).count();
        let passed: usize = thread::scope(|scope| {
            let threads = limiters.each_ref().map(|limiter| scope.spawn(move || admit(limiter)));
            threads.into_iter().map(|thread| thread.join().expect("no holder panics")).sum()
        });
        assert_eq!(passed, 3, "key {key}");
    }
}

#[test]
fn time_goes_on_from_one_process_to_the_next() {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new());
    let open = || Zone::in_file_with_clock(folder.zone(), 4096, clock.clone()).expect("a zone");
    let first = limiter(&open());
    assert_eq!((0..5).filter(|_| first.admit("ana").is_allowed()).count(), 3);
    drop(first);
    clock.advance(HOUR / 3 - SECOND);
    assert!(!limiter(&open()).admit("ana").is_allowed());
    clock.advance(SECOND);
    assert!(limiter(&open()).admit("ana").is_allowed());
}

#[test]
fn a_file_that_is_no_zone_of_this_size_is_rejected_and_unchanged() {
    let folder = Folder::new();
    drop(open(&folder.zone()));
    let wrong_size = Zone::in_file(folder.zone(), 1 << 20).unwrap_err();
    assert!(wrong_size.is_wrong_size(), "{wrong_size}");
    let foreign = folder.path().join("notes.txt");
    fs::write(&foreign, "dear diary".repeat(1000)).expect("it is written");
    let refused = Zone::in_file(&foreign, 1 << 16).unwrap_err();
    assert!(refused.is_not_a_zone() && refused.to_string().contains("notes.txt"), "{refused}");
    assert_eq!(fs::read_to_string(&foreign).expect("it is there"), "dear diary".repeat(1000));
    let nowhere = Zone::in_file(folder.path().join("no/such/folder/zone.tg"), 1 << 16).unwrap_err();
    assert!(nowhere.to_string().contains("no/such/folder"), "{nowhere}");
}

#[test]
fn a_restart_with_other_numbers_keeps_used_units() {
    let folder = Folder::new();
    let zone = open(&folder.zone());
    let quota = |zone: &Zone, limit: &str| Limiter::on(zone, "quota", limit.parse().expect(limit));
    assert!(quota(&zone, "5/d").admit(ask("ana").cost(5)).is_allowed());
    assert!(quota(&zone, "5/d").admit(ask("bob").cost(2)).is_allowed());
    drop(zone);
    let zone = open(&folder.zone());
    assert_eq!(quota(&zone, "5/d").peek("ana").remaining(), 0, "the same numbers");
    assert_eq!(quota(&zone, "100/d").peek("ana").remaining(), 95);
    drop(zone);
    let zone = open(&folder.zone());
    let lowered = quota(&zone, "1/d").peek("bob");
    assert!(!lowered.is_allowed() && lowered.retry_after().is_some_and(|wait| wait <= 24 * HOUR));
}

#[test]
fn old_and_new_numbers_in_two_processes_each_keep_their_bound() {
    let folder = Folder::new();
    let (one, other) = (open(&folder.zone()), open(&folder.zone()));
    let old = Limiter::on(&one, "quota", "1000/d".parse().expect("a limit"));
    let new = Limiter::on(&other, "quota", "100/h".parse().expect("a limit"));
    let (mut by_old, mut by_new) = (0, 0);
    for _ in 0..3000 {
        by_old += u32::from(old.admit("ana").is_allowed());
        by_new += u32::from(new.admit("ana").is_allowed());
    }
    assert!((1000..=1001).contains(&by_old), "{by_old} of 1000 a day");
    assert!((90..=101).contains(&by_new), "{by_new} of 100 an hour");
}

#[test]
fn a_reset_after_a_restart_finds_the_states_under_all_limits() {
    let folder = Folder::new();
    let limits = ["5/d", "7/h burst 2", "9/d fixed-window", "4/h queue 3 leaky-bucket"];
    let limits = limits.map(|text| text.parse::<Limit>().expect(text));
    let take = |zone: &Zone, limit: &Limit| {
        let adhoc = DynamicLimiter::on(zone, "");
        adhoc.admit("ana", &adhoc.prepare(*limit), Ask::ONE).is_allowed()
    };
    let zone = open(&folder.zone());
    assert!(limits.iter().all(|limit| take(&zone, limit)));
    drop(zone);
    let zone = open(&folder.zone());
    let adhoc = DynamicLimiter::on(&zone, "");
    let is_full = |limit: &Limit| {
        let decision = adhoc.peek("ana", &adhoc.prepare(*limit), Ask::ONE);
        decision.remaining() == decision.limit()
    };
    assert!(!limits.iter().any(is_full));
    let one = adhoc.prepare(limits[1]);
    assert!(adhoc.reset_limit("ana", &one) && is_full(&limits[1]) && !is_full(&limits[0]));
    assert!(adhoc.reset("ana").is_ok_and(|was_known| was_known));
    assert!(limits.iter().all(is_full));
    assert!(adhoc.reset("ana").is_ok_and(|was_known| !was_known));
}

#[test]
fn a_file_of_the_previous_format_is_rejected_with_a_remedy() {
    let folder = Folder::new();
    drop(open(&folder.zone()));
    let mut bytes = fs::read(folder.zone()).expect("a zone");
    bytes[16] = 3;
    fs::write(folder.zone(), &bytes).expect("a zone");
    let error = Zone::in_file(folder.zone(), 1 << 16).expect_err("another format").to_string();
    assert!(error.contains("has format 3, and this program writes 4"), "{error}");
    assert!(error.contains("zone.tg.*\" away to begin with all counts anew"), "{error}");
    assert_eq!(fs::read(folder.zone()).expect("a zone"), bytes, "it is as it was");
}

/// Regression test: only one process stored that limits are not listed. Others removed some states and reported
/// success.
#[test]
fn every_process_knows_that_some_limits_are_not_listed() {
    let folder = Folder::new();
    let (one, other) = (open(&folder.zone()), open(&folder.zone()));
    let adhoc = DynamicLimiter::on(&one, "");
    for nth in 1..=1025 {
        let limit = adhoc.prepare(Limit::per_day(nth));
        assert!(adhoc.admit("ana", &limit, Ask::ONE).is_allowed());
    }
    assert!(adhoc.reset("ana").is_err() && DynamicLimiter::on(&other, "").reset("ana").is_err());
    drop((one, other, adhoc));
    let zone = open(&folder.zone());
    let adhoc = DynamicLimiter::on(&zone, "");
    assert!(adhoc.reset("ana").is_err(), "after a restart, too");
    assert!(adhoc.reset_limit("ana", &adhoc.prepare(Limit::per_day(1025))));
}

#[test]
fn records_of_limits_that_no_limit_has_are_passed_over() {
    for fill in [0xff_u8, 0x80, 0x01, 0x5a] {
        let folder = Folder::new();
        drop(open(&folder.zone()));
        let mut bytes = fs::read(folder.zone()).expect("a zone");
        bytes[4096..151_552].fill(fill);
        fs::write(folder.zone(), &bytes).expect("a zone");
        let zone = open(&folder.zone());
        for limit in ["5/d", "6/d", "3/h fixed-window"] {
            let limiter = Limiter::on(&zone, "quota", limit.parse().expect(limit));
            assert!(limiter.admit("ana").is_allowed(), "{limit}");
            limiter.reset("ana");
            assert_eq!(limiter.peek("ana").remaining(), limiter.peek("ana").limit(), "{limit}");
        }
        let _ = DynamicLimiter::on(&zone, "").reset("ana");
    }
}
