//! Tests of the internals of a zone.

use std::sync::Arc;

use super::cell::{Content, Kind};
use super::table::{BUCKET, BucketPair, Table};
use super::*;
use crate::store::state_key::{EncodedKey, Namespace};
use crate::{Ask, Key, Limiter, ManualClock, SECOND, Subject};

const HOURLY: Limit = Limit::per_hour(1);

fn zone(bytes: usize) -> (Zone, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    clock.advance(1000 * SECOND);
    (Zone::with_clock(bytes, clock.clone()), clock)
}

/// Returns the buckets of this key's state under the limit.
fn spot(zone: &Zone, namespace: &str, key: &str) -> BucketPair {
    prefix(zone, namespace).spot(&zone.inner.core.table, key)
}

/// Returns the hash state of the prefix of all state names under the limit.
fn prefix(zone: &Zone, namespace: &str) -> StatePrefix {
    StatePrefix::new(zone.limits().seed(), &HOURLY.terms().pack(), Namespace::new(namespace).bytes())
}

fn free(view: &table::View<'_>, now: crate::Timestamp) -> Option<table::CellSnapshot> {
    view.survey(now).free.map(|index| view.sighting(index))
}

fn own_cells(zone: &Zone, key: &str) -> usize {
    zone.inner.core.table.view(&spot(zone, "", key)).own().count()
}

fn admits(limiter: &Limiter, key: &str) -> bool {
    limiter.admit(key).is_allowed()
}

#[test]
fn a_subject_is_in_the_same_place_however_it_is_named() {
    let (zone, _) = zone(1 << 16);
    for key in ["", "a", "ana", "seven77", "eight888", "a key of sixteen", "a key of more than sixteen bytes"]
    {
        let (namespace, long) = (Namespace::new("user"), key.repeat(9));
        for key in [key, &long] {
            let prefix = prefix(&zone, "user");
            let straight = prefix.hash(key);
            assert_eq!(prefix.hash(&Key::new(key)), straight);
            assert_eq!(prefix.hash_encoded(EncodedKey::new(&namespace, key).key()), straight, "{key}");
            let table = &zone.inner.core.table;
            let (by_memory, by_hash) = (prefix.spot(table, key), table.spot(straight));
            assert_eq!((by_memory.place(), by_memory.fingerprint), (by_hash.place(), by_hash.fingerprint));
        }
    }
}

#[test]
fn a_subject_has_two_buckets_whatever_its_hash() {
    let (zone, _) = zone(0);
    let table: &Table = &zone.inner.core.table;
    assert_eq!((table.buckets(), table.cell_count()), (2, 2 * BUCKET));
    for place in [0, 1, u64::MAX, u64::MAX / 2, 1 << 63, 1 << 31, 0xffff_ffff] {
        let view = table.view(&table.spot([place, 0]));
        let mut numbers: Vec<_> = view.later_than(crate::Timestamp::EPOCH).map(|seen| seen.number).collect();
        assert!(numbers.is_empty());
        numbers.extend((0..2 * BUCKET).filter(|_| free(&view, crate::Timestamp::LAST).is_some()));
        assert_eq!(numbers.len(), 2 * BUCKET);
    }
}

#[test]
fn a_claim_that_was_abandoned_is_taken_over() {
    let (zone, clock) = zone(0);
    let limiter = Limiter::on(&zone, "", HOURLY);
    let spot = spot(&zone, "", "ana");
    let table = &zone.inner.core.table;
    let now = zone.inner.core.clock.now();
    let wants = |view: &table::View<'_>, attempt| {
        let free = free(view, now).expect("it is empty");
        assert!(view.replace(free, Content::tentative(spot.fingerprint, now, attempt)));
    };
    wants(&table.view(&spot), 1);
    wants(&table.view(&spot), 2);
    assert_eq!(own_cells(&zone, "ana"), 2);
    assert!(limiter.peek("ana").is_allowed());
    assert!(admits(&limiter, "ana") && !admits(&limiter, "ana"));
    assert_eq!(own_cells(&zone, "ana"), 1);
    clock.advance(SECOND);
    assert_eq!(zone.counts().live, 1);
}

#[test]
fn places_that_are_only_wanted_give_way_when_there_are_no_others() {
    let (zone, _) = zone(0);
    let limiter = Limiter::on(&zone, "", HOURLY);
    let table = &zone.inner.core.table;
    let now = zone.inner.core.clock.now();
    for stranger in 0..2 * BUCKET as u64 {
        let spot = table.spot([stranger << 60, !stranger << 8]);
        let view = table.view(&spot);
        let free = free(&view, now).expect("there is room still");
        assert!(view.replace(free, Content::tentative(spot.fingerprint, now, 7)));
    }
    assert!(admits(&limiter, "ana"));
    assert_eq!(zone.counts().shared, 0);
}

#[test]
fn a_cell_of_another_kind_holds_the_same_state() {
    let (zone, _) = zone(0);
    let limiter = Limiter::builder(HOURLY).on(&zone, "").when_full(WhenFull::Forget).build();
    assert!(admits(&limiter, "ana"));
    let view = zone.inner.core.table.view(&spot(&zone, "", "ana"));
    assert_eq!(view.own().map(|own| own.content.kind()).collect::<Vec<_>>(), [Kind::Forgettable]);
    let important = Limiter::on(&zone, "", HOURLY);
    assert!(!admits(&important, "ana"), "one subject has one state");
}

#[test]
fn a_debt_that_no_limit_made_is_cut_by_the_next_key_that_needs_the_cell() {
    let (zone, clock) = zone(0);
    let limiter = Limiter::on(&zone, "", Limit::per_second(10));
    let far = clock.now().saturating_add(crate::Ticks::saturating_from(500 * SECOND)).ticks();
    let table = &zone.inner.core.table;
    for stranger in 0..2 * BUCKET as u64 {
        let view = table.view(&table.spot([stranger << 60, !stranger << 8]));
        let free = free(&view, clock.now()).expect("there is room still");
        let spot = table.spot([0, !stranger << 8]);
        assert!(view.replace(free, Content::own(spot.fingerprint, Kind::Own, far)));
    }
    assert!(!admits(&limiter, "ana"));
    clock.advance(3 * SECOND);
    assert!(admits(&limiter, "ana"), "it is cut to the longest debt in use, and not for 500 seconds");
}

#[test]
fn a_window_that_is_cut_keeps_its_count() {
    let (zone, clock) = zone(0);
    let limit: Limit = "5/10s fixed-window".parse().unwrap();
    let limiter = Limiter::on(&zone, "", limit);
    // The time to which debts are shortened has no bits where the count is.
    let deepest = 2 * 160_000_000_000 + (2 << 24);
    let later = (36_000 * 16_000_000_000_u64 + deepest).next_multiple_of(1 << 24) - deepest;
    clock.set(
        crate::Timestamp::from_ticks(later).saturating_add(crate::Ticks::saturating_from(3600 * SECOND)),
    );
    let passes = |key: &u32| limiter.admit(crate::ask(*key).cost(5)).is_allowed();
    let passed: Vec<u32> = (0..1000).filter(passes).take(2 * BUCKET).collect();
    clock.step_back(3600 * SECOND);
    assert!(!limiter.admit("newcomer").is_allowed());
    assert_eq!(passed.iter().filter(|key| passes(key)).count(), 0, "a step back has wiped counts");
}

#[test]
fn a_zone_is_named_before_it_is_used() {
    let zone = Zone::new(4096).named("logins");
    assert_eq!(zone.name(), "logins");
    assert!(format!("{zone:?}").contains("logins"));
    let key = Key::new("ana");
    assert!(zone.take(Subject::new("n", &key, &HOURLY), Ask::ONE).0.is_allowed());
}
