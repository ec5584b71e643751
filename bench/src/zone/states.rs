//! States of more than one word: a take in a file beside the same take in memory, and a start with a full state file.
//!
//! Both go by one clock that is moved by hand, so that half of the takes are allowed. Not measured: real clocks, contention.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Ask, Clock, Key, Limit, PreparedLimit, Timestamp, Zone};

use super::folder;
use crate::rounds::{Candidate, measure};
use harness::{Goal, now};

/// A name, a limit, the ticks between two takes, and how many permits are held meanwhile.
type Kind = (&'static str, &'static str, u64, usize);

const KINDS: [Kind; 9] = [
    ("fixed window from the first hit", "1000/s fixed-window align first-hit", 8_000_000, 0),
    ("sliding log of 10", "10/s sliding-log", 800_000_000, 0),
    ("sliding log of 1,000", "1000/s sliding-log", 8_000_000, 0),
    ("sliding window, 16 slots", "1000/s sliding-window", 8_000_000, 0),
    ("sliding window, estimate", "1000/s sliding-window mode estimate", 8_000_000, 0),
    ("pacer", "1000/s pacer", 8_000_000, 0),
    ("pacer with a warm-up", "1000/s pacer warm-up 4s", 8_000_000, 0),
    ("permits, 10 in flight", "11/h concurrency", 16_000, 10),
    ("permits, 1,000 in flight", "1001/h concurrency", 16_000, 1_000),
];

const OPERATIONS: u64 = 20_000;
/// The keys of the second table.
const KEYS: usize = 10_000;
const ZONE_BYTES: usize = 64 << 20;

/// A clock of one word.
#[derive(Debug, Default)]
struct WordClock(AtomicU64);

impl Clock for WordClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.load(Ordering::Relaxed))
    }
}

/// Measures both.
pub(super) fn run() -> Vec<Goal> {
    let hot = table("one key", &KINDS, 1);
    // A thousand holders for each of ten thousand keys are more than a zone has room for.
    let many = table("10,000 keys at random", &KINDS[..KINDS.len() - 2], KEYS);
    let start = start_with_full_file();
    println!("a start with {} MiB of states took {:.0} ms\n", ZONE_BYTES >> 20, start.as_secs_f64() * 1e3);
    vec![
        Goal::at_most("zone/states-in-a-file/one-key", hot, 2.0, 1.3),
        Goal::at_most("zone/states-in-a-file/many-keys", many, 2.0, 1.3),
        Goal::at_most("zone/states-start-seconds", start.as_secs_f64(), 0.5, 0.2),
    ]
}

/// Prints each kind, and returns the largest ratio.
fn table(title: &str, kinds: &[Kind], keys: usize) -> f64 {
    println!("{title:<36} {:>10} {:>10} {:>8}", "memory ns", "file ns", "ratio");
    let ratios = kinds.iter().map(|kind| compare(kind, keys));
    let worst = ratios.fold(0.0, f64::max);
    println!();
    worst
}

fn compare((name, text, step, held): &Kind, keys: usize) -> f64 {
    let folder = folder();
    let clocks = [(); 2].map(|()| Arc::new(WordClock(AtomicU64::new(1 << 56))));
    let memory = Zone::with_clock(ZONE_BYTES, clocks[0].clone());
    let file = Zone::in_file_with_clock(folder.file("zone"), ZONE_BYTES, clocks[1].clone());
    let zones = [memory, file.expect("a new file")];
    let limit: Limit = text.parse().expect(text);
    let keys: Vec<_> = (0..keys).map(|number| Key::new(format!("user {number}"))).collect();
    let mut candidates: Vec<_> = zones
        .iter()
        .zip(&clocks)
        .zip(["memory", "file"])
        .map(|((zone, clock), name)| {
            let prepared = PreparedLimit::of_rule("rule", limit);
            for key in keys.iter().flat_map(|key| std::iter::repeat_n(key, *held)) {
                assert!(zone.take(prepared.subject(key), Ask::ONE).0.is_allowed());
            }
            let (keys, mut random, step, held) = (&keys, fastrand::Rng::with_seed(1), *step, *held);
            Candidate::repeated(name, OPERATIONS, move || {
                clock.0.fetch_add(step / keys.len() as u64, Ordering::Relaxed);
                let subject = prepared.subject(&keys[random.u32(..keys.len() as u32) as usize]);
                let (decision, _) = zone.take(subject, Ask::ONE);
                match decision.permit().filter(|_| held > 0) {
                    Some(permit) => zone.release(subject, permit),
                    None => decision.is_allowed(),
                }
            })
        })
        .collect();
    let times = measure(&mut candidates);
    let ratio = times[1] / times[0];
    println!("{name:<36} {:>10.1} {:>10.1} {ratio:>8.2}", times[0], times[1]);
    ratio
}

/// Opens a zone whose state file is full of live states.
fn start_with_full_file() -> Duration {
    let folder = folder();
    let open = || Zone::in_file(folder.file("zone"), ZONE_BYTES).expect("a zone");
    let zone = open();
    let prepared = PreparedLimit::of_rule("rule", "10/h sliding-log".parse().expect("a limit"));
    let is_held = |number: &u64| {
        let key = Key::new(format!("user {number}"));
        zone.take(prepared.subject(&key), Ask::ONE).0.is_allowed()
    };
    let held = (0..).take_while(is_held).count();
    drop(zone);
    let start = now();
    let zone = open();
    let took = start.elapsed();
    assert_eq!(zone.state_counts().keys, held);
    println!("{held} states of a log fill {} MiB", ZONE_BYTES >> 20);
    took
}
