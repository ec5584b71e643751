//! The cost of a decision from a thousand keys to ten million.

use std::fs;

use harness::Goal;
use harness::plot::{Axis, Chart, Series};

use super::measure;
use super::sides::{BATCHES_OF_16, EMPTY, GOVERNOR, Keys, MANY_KEYS, MAP, Side, ZONE, main_sides, zone_for};
use super::table::{Candidate, Table};
use super::visits::Visits;
use crate::promise::Promise;

const FEWER: [u32; 4] = [1000, 10_000, 100_000, 1_000_000];
const MOST: u32 = 10_000_000;
const NAMES: [&str; 5] = [EMPTY, ZONE, BATCHES_OF_16, MAP, GOVERNOR];

/// What each name costs with so many keys.
struct Point {
    keys: u32,
    costs: Vec<(&'static str, f64)>,
}

/// Prints a table for the most keys, and one line for each number of keys; draws them if that was asked for.
pub(super) fn run(plot: bool) -> Result<Vec<Goal>, String> {
    let mut points: Vec<_> = FEWER.into_iter().map(point).collect();
    points.push(most());
    print(&points);
    if plot {
        fs::write(PICTURE, picture(&points))
            .map_err(|error| format!("docs/zone_cost.svg is not drawn: {error}"))?;
        eprintln!("drawn: docs/zone_cost.svg");
    }
    Ok(Vec::new())
}

fn sides(keys: u32) -> Vec<Side<'static>> {
    let promise = Promise::read(MANY_KEYS);
    let zone = zone_for(keys, promise);
    let mut sides = main_sides(&zone, promise, keys, Keys::Written);
    sides.push(Side::in_batches(BATCHES_OF_16, 16, zone));
    sides
}

fn point(keys: u32) -> Point {
    let (sides, visits) = (sides(keys), Visits::uniform(keys));
    let candidates: Vec<_> = sides.iter().map(|side| Candidate::new(side, 1, &visits)).collect();
    Point::of(keys, &Table::measure(&candidates))
}

/// The last point, and the same keys with two threads, and with zipf.
fn most() -> Point {
    let sides = sides(MOST);
    let uniform = measure(&sides, &Visits::uniform(MOST), &format!("{MOST} keys, uniform, {MANY_KEYS}"));
    measure(&sides, &Visits::zipf(MOST), &format!("{MOST} keys, zipf(1.0), {MANY_KEYS}"));
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

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/zone_cost.svg");

fn picture(points: &[Point]) -> String {
    let chart = Chart::new("What a decision costs by the number of keys")
        .subtitle("keys at random, one thread; writing the key is included")
        .x(Axis::number("keys").log())
        .y(Axis::nanoseconds("CPU time of a decision"));
    let names = points.first().map(|point| point.costs.iter().map(|(name, _)| *name)).into_iter().flatten();
    let of = |row: usize| points.iter().map(move |point| (f64::from(point.keys), point.costs[row].1));
    let drawn = names.enumerate().fold(chart, |chart, (row, name)| {
        let line = Series::line(name, of(row));
        chart.series(if name == EMPTY { line.dashed() } else { line })
    });
    drawn.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_line_over_all_numbers_of_keys() {
        let point =
            |keys, cost| Point { keys, costs: vec![(EMPTY, 5.0), (ZONE, cost), (GOVERNOR, 4.0 * cost)] };
        let svg = picture(&[point(1000, 40.0), point(1_000_000, 80.0), point(10_000_000, 120.0)]);
        for text in [EMPTY, ZONE, GOVERNOR, ">1 k<", ">10 M<"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }
}
