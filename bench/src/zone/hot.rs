//! One hot key, and two in turn: a thread remembers where the last key of a limiter was, and not the one before.

use super::candidate::Candidate;
use super::key::first;
use super::side::Keys;
use super::sides::{DENIED, FEW_KEYS, GOVERNOR, ZONE, main_sides, other_sides, zone_for};
use super::table::Table;
use super::visits::Visits;
use super::{Options, THREADS};
use crate::goal::Goal;
use crate::promise::Promise;

/// Prints a table for each number of keys, promise and number of threads.
pub(super) fn run(_: &Options) -> Vec<Goal> {
    println!("not measured here: making the keys, which are at hand; newcomers\n");
    let [allowed, denied] = [(FEW_KEYS, "allowed"), (DENIED, "denied")].map(|(promise, kind)| {
        let promise = Promise::read(promise);
        let one = compare(1, &format!("one hot key, {kind}"), promise);
        compare(2, &format!("two hot keys in turn, {kind}"), promise);
        one
    });
    vec![
        Goal::at_most("zone/hot-allowed", allowed, 0.7, 0.5),
        Goal::at_most("zone/hot-denied", denied, 0.7, 0.5),
    ]
}

/// Our time divided by governor's, with one thread.
fn compare(count: u32, title: &str, promise: Promise) -> f64 {
    let (keys, visits) = (first(count), Visits::in_turn(count));
    let keys = Keys::Ready(&keys);
    let mut sides = main_sides(&zone_for(count, promise), promise, count, keys);
    sides.extend(other_sides(promise, count, keys));
    let [alone, _] = THREADS.map(|threads| {
        let candidates: Vec<_> = sides.iter().map(|side| Candidate::new(side, threads, &visits)).collect();
        let table = Table::measure(&candidates);
        table.print(&format!("{title}, {promise}, {threads} thread(s)"));
        table
    });
    alone.ratio(ZONE, GOVERNOR)
}
