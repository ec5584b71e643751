//! Tests of the bounds of open receipts.

use tidegate::{Adjusted, Limit, Limiter, Map, Zone};

const LARGE: Limit = Limit::per_hour(100_000);
/// The largest number of open receipts of a store, and of one key.
const MOST: usize = 65_536;
const MOST_OF_KEY: usize = 1024;

#[test]
fn the_oldest_receipt_of_a_key_beyond_its_bound_is_worthless() {
    let zone = Zone::new(1 << 16);
    let limiter = Limiter::on(&zone, "", LARGE);
    let take = || limiter.admit_tracked("ana").1.expect("it is allowed");
    let mut takes: Vec<_> = (0..MOST_OF_KEY).map(|_| take()).collect();
    assert_eq!((zone.receipt_counts().open, zone.receipt_counts().dropped), (MOST_OF_KEY, 0));
    takes.push(take());
    assert_eq!((zone.receipt_counts().open, zone.receipt_counts().dropped), (MOST_OF_KEY, 1));
    let mut takes = takes.into_iter();
    let before = limiter.peek("ana").remaining();
    assert_eq!(takes.next().map(|oldest| oldest.refund()), Some(Adjusted::Capped));
    assert_eq!(limiter.peek("ana").remaining(), before, "its take stays charged");
    let newest = takes.next_back().map(|newest| newest.refund());
    assert!(newest.is_some() && limiter.peek("ana").remaining() > before);
    drop(takes);
    assert_eq!(zone.receipt_counts().open, 0, "receipts that are dropped leave the table");
}

#[test]
#[cfg_attr(miri, ignore = "it takes long")]
fn a_store_keeps_a_bounded_number_of_receipts() {
    let map = Map::new();
    let limiter = Limiter::on(&map, "", LARGE);
    let takes: Vec<_> = (0..MOST + 5000).filter_map(|key| limiter.admit_tracked(key.to_string()).1).collect();
    let counts = map.receipt_counts();
    assert!(counts.open <= MOST && counts.open > MOST - MOST / 10, "{counts:?}");
    assert_eq!(counts.open as u64 + counts.dropped, takes.len() as u64);
    drop(takes);
    assert_eq!(map.receipt_counts().open, 0);
}

#[test]
fn only_tracked_takes_are_entered() {
    let zone = Zone::new(1 << 16);
    let bucket = Limiter::on(&zone, "bucket", LARGE);
    for _ in 0..100 {
        let _ = bucket.admit("ana");
    }
    let counted = ["9/h fixed-window", "9/h sliding-log", "9/h sliding-window", "9/h concurrency"];
    let takes = counted.map(|text| Limiter::on(&zone, text, super::limit(text)).admit_tracked("ana"));
    assert_eq!(zone.receipt_counts().open, 3, "a permit is released, not refunded");
    let paced = Limiter::on(&zone, "paced", super::limit("9/s pacer")).admit_tracked("ana");
    assert_eq!(zone.receipt_counts().open, 4);
    drop((takes, paced));
    assert_eq!(zone.receipt_counts().open, 0);
}
