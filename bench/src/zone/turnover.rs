//! What is resident per live key in a steady state: keys expire all the time, and as many newcomers come.
//!
//! Each newcomer asks once, so a shared decision is a newcomer that found no cell. A process of its own each.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::FakeRelativeClock;
use tidegate::{Limiter, ManualClock, Map, Zone, ZoneCounts};

use super::sides::{Key, on};
use crate::promise::Promise;
use harness::Goal;
use harness::{in_own_process, resident};

/// Of this many keys, 24 bytes each are a whole number of huge pages.
const LIVE: u32 = 1 << 20;
const TURNOVERS: u32 = 3;
/// An allowed take is owed for as long as it takes until as many others have come.
const PROMISE: &str = "1/600s burst 1000";
const LIFE: Duration = Duration::from_secs(600);
/// Percent of newcomers that may find no cell.
const MOST_WITHOUT: f64 = 0.3;
const CANDIDATES: [(&str, &str); 4] = [
    ("24", "tidegate Zone of 24 bytes a live key"),
    ("32", "tidegate Zone of 32 bytes a live key"),
    ("map", "tidegate Map"),
    ("governor", "governor dashmap, retain_recent each time"),
];

/// Prints a table of all candidates.
pub(super) fn run() -> Vec<Goal> {
    println!("resident memory per live key: {LIVE} live keys of 14 bytes, all replaced {TURNOVERS} times");
    println!("without a cell: newcomers whose first decision was a shared one, in the worst turnover");
    println!("not measured: what is resident while governor's old keys are not yet dropped");
    println!("{:<42} {:>9} {:>16} {:>14}", "", "bytes", "without a cell", "cells in use");
    let figures = CANDIDATES.map(|(name, title)| {
        let figures = in_own_process(&["zone", "resident", name]);
        let figures = figures.and_then(|text| Figures::read(&text).ok_or(text));
        match &figures {
            Ok(Figures { bytes, zone: None }) => println!("{title:<42} {bytes:>9.1}"),
            Ok(Figures { bytes, zone: Some((without, in_use)) }) => {
                println!("{title:<42} {bytes:>9.1} {without:>15.4}% {in_use:>13.1}%");
            }
            Err(problem) => println!("{title:<42} {problem}"),
        }
        figures.ok()
    });
    println!();
    let [small, large, ..] = figures;
    let fits = |figures: &Figures| figures.zone.is_some_and(|(without, _)| without < MOST_WITHOUT);
    let chosen = small.filter(fits).or(large).unwrap_or(Figures { bytes: f64::NAN, zone: None });
    let without = chosen.zone.map_or(f64::NAN, |(without, _)| without);
    vec![
        Goal::at_most("zone/bytes-per-live-key", chosen.bytes, 32.0, 24.0),
        Goal::at_most("zone/percent-without-a-cell", without, MOST_WITHOUT, 0.0),
    ]
}

/// Prints the figures of one candidate.
pub(super) fn print_one(name: &str) -> ExitCode {
    // What the program itself needs is resident before it is measured.
    turn_over_zone(0);
    let before = resident().ok();
    let per_key = |after: Option<u64>| Some((after? - before?) as f64 / f64::from(LIVE));
    let figures = match name {
        "map" => per_key(turn_over_map()).map(|bytes| Figures { bytes, zone: None }),
        "governor" => per_key(turn_over_governor()).map(|bytes| Figures { bytes, zone: None }),
        bytes => bytes.parse().ok().and_then(|bytes: usize| {
            let (after, zone) = turn_over_zone(bytes * LIVE as usize);
            per_key(after).map(|bytes| Figures { bytes, zone: Some(zone) })
        }),
    };
    match figures {
        Some(figures) => {
            println!("{}", figures.write());
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("unknown candidate {name}, or /proc/self/status does not say what is resident");
            ExitCode::FAILURE
        }
    }
}

/// Bytes per key; of a zone also the percentage of newcomers without a cell, and of its cells that are in use.
#[derive(Debug, PartialEq)]
struct Figures {
    bytes: f64,
    zone: Option<(f64, f64)>,
}

impl Figures {
    fn write(&self) -> String {
        match self.zone {
            Some((without, in_use)) => format!("{} {without} {in_use}", self.bytes),
            None => self.bytes.to_string(),
        }
    }

    fn read(text: &str) -> Option<Figures> {
        let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
        match numbers.ok()?[..] {
            [bytes] => Some(Figures { bytes, zone: None }),
            [bytes, without, in_use] => Some(Figures { bytes, zone: Some((without, in_use)) }),
            _ => None,
        }
    }
}

/// What is resident then, and the figures of the zone.
fn turn_over_zone(bytes: usize) -> (Option<u64>, (f64, f64)) {
    let clock = Arc::new(ManualClock::new());
    let zone = Zone::with_clock(bytes, clock.clone());
    let limiter = on(&zone, Promise::read(PROMISE));
    let (mut before, mut worst) = (zone.counts(), 0.0_f64);
    turn_over(
        |key| limiter.admit(key).is_allowed(),
        || clock.advance(LIFE / LIVE),
        || {
            let counts = zone.counts();
            worst = worst.max(percent_without(&before, &counts));
            before = counts;
        },
    );
    let in_use = before.live as f64 / before.cells as f64 * 100.0;
    (resident().ok(), (worst, in_use))
}

fn percent_without(before: &ZoneCounts, after: &ZoneCounts) -> f64 {
    let without = (after.shared_decisions - before.shared_decisions) as f64;
    let with = (after.inserts - before.inserts) as f64;
    without / (without + with) * 100.0
}

fn turn_over_map() -> Option<u64> {
    let clock = Arc::new(ManualClock::new());
    let map = Map::with_clock(clock.clone()).max_keys(2 * LIVE as usize).max_bytes(1 << 30);
    let limiter = Limiter::on(&map, "user", Promise::read(PROMISE).limit());
    turn_over(|key| limiter.admit(key).is_allowed(), || clock.advance(LIFE / LIVE), || {});
    resident().ok()
}

fn turn_over_governor() -> Option<u64> {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::dashmap_with_clock(Promise::read(PROMISE).quota(), clock.clone());
    turn_over(
        |key| limiter.check_key(key).is_ok(),
        || clock.advance(LIFE / LIVE),
        || limiter.retain_recent(),
    );
    resident().ok()
}

/// The first keys come, then as many others in place of them, several times.
fn turn_over(decide: impl Fn(&String) -> bool, wait: impl Fn(), mut rest: impl FnMut()) {
    let mut key = Key::new();
    for turnover in 0..=TURNOVERS {
        for number in 0..LIVE {
            decide(key.write(turnover * LIVE + number));
            wait();
        }
        rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_were_written() {
        for zone in [None, Some((0.25, 66.5))] {
            let figures = Figures { bytes: 24.5, zone };
            assert_eq!(Figures::read(&figures.write()), Some(figures));
        }
        assert_eq!(Figures::read("24.5 1"), None);
        assert_eq!(Figures::read("no zone"), None);
    }
}
