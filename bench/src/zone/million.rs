//! A million keys: uniform and zipf, one thread and two, one by one, in batches, and in a file.

use tidegate::Zone;

use super::Options;
use super::candidate::Candidate;
use super::folder::Folder;
use super::side::{Keys, Side};
use super::sides::{
    BATCHES_OF_16, BATCHES_OF_64, FILE, GOVERNOR, MANY_KEYS, ZONE, main_sides, on, other_sides, zone_bytes,
    zone_for,
};
use super::table::Table;
use super::visits::Visits;
use super::{THREADS, scaling};
use crate::goal::Goal;
use crate::promise::Promise;

const KEYS: u32 = 1_000_000;

/// Prints a table for each kind of visits and number of threads.
pub(super) fn run(_: &Options) -> Vec<Goal> {
    println!("not measured here: newcomers (each key was met before the first round and stays live)\n");
    let folder = Folder::new();
    let sides = sides(&folder);
    let uniform = Visits::uniform(KEYS);
    let alone = compare(&sides, &uniform, "uniform");
    compare(&sides, &Visits::zipf(KEYS), "zipf(1.0)");
    let of_ideal = scaling::compare(&sides, &uniform);
    vec![
        Goal::at_most("zone/million-uniform", alone.ratio(ZONE, GOVERNOR), 0.45, 0.33),
        Goal::at_most("zone/batches-of-16", alone.ratio(BATCHES_OF_16, GOVERNOR), 0.2, 0.1),
        Goal::at_most("zone/in-a-file", alone.ratio(FILE, GOVERNOR), 0.6, 0.45),
        Goal::at_least("zone/two-threads-of-ideal", of_ideal, 0.8, 1.0),
    ]
}

fn sides(folder: &Folder) -> Vec<Side<'static>> {
    let promise = Promise::read(MANY_KEYS);
    let zone = zone_for(KEYS, promise);
    let file = Zone::in_file(folder.path().join("zone"), zone_bytes(KEYS)).expect("a new file");
    let file = on(&file, promise);
    let mut sides = main_sides(&zone, promise, KEYS, Keys::Written);
    sides.push(Side::in_batches(BATCHES_OF_16, 16, zone.clone()));
    sides.push(Side::in_batches(BATCHES_OF_64, 64, zone));
    sides.push(Side::new(FILE, Keys::Written, move |key| file.admit(key).is_allowed()).meet(KEYS));
    sides.extend(other_sides(promise, KEYS, Keys::Written));
    sides
}

/// What was measured with one thread.
fn compare(sides: &[Side<'_>], visits: &Visits, kind: &str) -> Table {
    let [alone, _] = THREADS.map(|threads| {
        let candidates: Vec<_> = sides.iter().map(|side| Candidate::new(side, threads, visits)).collect();
        let table = Table::measure(&candidates);
        table.print(&format!("{KEYS} keys, {kind}, {MANY_KEYS}, {threads} thread(s)"));
        table
    });
    alone
}
