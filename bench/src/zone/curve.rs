//! The cost of a decision from a thousand keys to ten million.

use super::Options;
use super::THREADS;
use super::candidate::Candidate;
use super::plot::draw;
use super::side::{Keys, Side};
use super::sides::{BATCHES_OF_16, EMPTY, GOVERNOR, MANY_KEYS, MAP, ZONE, main_sides, zone_for};
use super::table::Table;
use super::visits::Visits;
use crate::goal::Goal;
use crate::promise::Promise;

const FEWER: [u32; 4] = [1000, 10_000, 100_000, 1_000_000];
const MOST: u32 = 10_000_000;
const NAMES: [&str; 5] = [EMPTY, ZONE, BATCHES_OF_16, MAP, GOVERNOR];

/// What each name costs with so many keys.
pub(super) struct Point {
    pub(super) keys: u32,
    pub(super) costs: Vec<(&'static str, f64)>,
}

/// Prints a table for the most keys, and one line for each number of keys; draws them if that was asked for.
pub(super) fn run(options: &Options) -> Vec<Goal> {
    let mut points: Vec<_> = FEWER.into_iter().map(point).collect();
    points.push(most());
    print(&points);
    if options.plot {
        draw(&points);
    }
    Vec::new()
}

fn sides(keys: u32) -> Vec<Side<'static>> {
    let promise = Promise::read(MANY_KEYS);
    let zone = zone_for(keys, promise);
    let mut sides = main_sides(&zone, promise, keys, Keys::Written);
    sides.push(Side::in_batches(BATCHES_OF_16, 16, zone));
    sides
}

fn measure(sides: &[Side<'_>], threads: usize, visits: &Visits) -> Table {
    let candidates: Vec<_> = sides.iter().map(|side| Candidate::new(side, threads, visits)).collect();
    Table::measure(&candidates)
}

fn point(keys: u32) -> Point {
    Point::of(keys, &measure(&sides(keys), 1, &Visits::uniform(keys)))
}

/// The last point, and the same keys with two threads, and with zipf.
fn most() -> Point {
    let sides = sides(MOST);
    let [uniform, _] =
        [(Visits::uniform(MOST), "uniform"), (Visits::zipf(MOST), "zipf(1.0)")].map(|(visits, kind)| {
            let [alone, _] = THREADS.map(|threads| {
                let table = measure(&sides, threads, &visits);
                table.print(&format!("{MOST} keys, {kind}, {MANY_KEYS}, {threads} thread(s)"));
                table
            });
            alone
        });
    Point::of(MOST, &uniform)
}

impl Point {
    fn of(keys: u32, table: &Table) -> Point {
        Point { keys, costs: NAMES.map(|name| (name, table.cpu(name))).into() }
    }
}

fn print(points: &[Point]) {
    println!("ns CPU of one decision by the number of keys, uniform, 1 thread");
    print!("{:<40}", "");
    points.iter().for_each(|point| print!(" {:>10}", point.keys));
    println!();
    for (row, name) in NAMES.into_iter().enumerate() {
        print!("{name:<40}");
        points.iter().for_each(|point| print!(" {:>10.1}", point.costs[row].1));
        println!();
    }
    println!();
}
