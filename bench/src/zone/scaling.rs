//! What a second thread is worth, beside what it is worth to those who share nothing.
//!
//! Decisions per second follow from the CPU time of a decision, as if both threads always had a processor each; by
//! wall time they also wait for one on a busy machine.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

use tidegate::{Clock, CounterClock};

use super::candidate::Candidate;
use super::side::{Keys, Side};
use super::sides::{BATCHES_OF_16, GOVERNOR, MAP, ZONE};
use super::table::Table;
use super::visits::Visits;

const IDEAL: &str = "(nothing shared: hash and clock only)";
/// Each side, and its name with two threads.
const TWICE: [(&str, &str); 5] = [
    (IDEAL, "nothing, two"),
    (ZONE, "zone, two"),
    (BATCHES_OF_16, "batches, two"),
    (MAP, "map, two"),
    (GOVERNOR, "governor, two"),
];

/// How much more two threads of the zone decide than one, divided by how much more those do who share nothing.
pub(super) fn compare(sides: &[Side<'_>], visits: &Visits) -> f64 {
    let hasher = RandomState::new();
    let ideal = Side::new(IDEAL, Keys::Written, |key| {
        black_box(hasher.hash_one(key));
        black_box(CounterClock::new().now()).ticks() > 0
    });
    let mut candidates = Vec::new();
    for (name, two) in TWICE {
        let side = sides.iter().chain([&ideal]).find(|side| side.name == name).expect("it is there");
        candidates.push(Candidate::new(side, 1, visits));
        candidates.push(Candidate { name: two, ..Candidate::new(side, 2, visits) });
    }
    let table = Table::measure(&candidates);
    print(&table);
    of_ideal(&table, ZONE, "zone, two")
}

fn print(table: &Table) {
    println!("decisions per second with 2 threads divided by those with 1, keys uniform");
    println!(
        "{:<40} {:>9} {:>9} {:>4} {:>7} {:>8} {:>8}",
        "", "ns CPU, 1", "ns CPU, 2", "met", "gain", "of ideal", "by wall"
    );
    for (name, two) in TWICE {
        println!(
            "{name:<40} {:>9.1} {:>9.1} {:>4} {:>7.2} {:>8.2} {:>8.2}",
            table.cpu(name),
            table.cpu(two),
            table.met(two),
            gain(table, name, two),
            of_ideal(table, name, two),
            table.compare(name, two, |sample| sample.wall),
        );
    }
    println!();
}

fn of_ideal(table: &Table, one: &str, two: &str) -> f64 {
    let [(ideal, ideal_two), ..] = TWICE;
    gain(table, one, two) / gain(table, ideal, ideal_two)
}

fn gain(table: &Table, one: &str, two: &str) -> f64 {
    2.0 * table.ratio(one, two)
}
