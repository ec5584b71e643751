//! The picture of what a decision costs by the number of keys.

use std::fs;
use std::path::Path;

use tidegate_plot::{Axis, Chart, Series};

use super::curve::Point;
use super::sides::EMPTY;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/zone_cost.svg");

/// Writes the picture; says so, or why not.
pub(super) fn draw(points: &[Point]) {
    let file = Path::new(FILE);
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| fs::write(file, picture(points))) {
        Ok(()) => eprintln!("drawn: docs/zone_cost.svg"),
        Err(error) => eprintln!("docs/zone_cost.svg is not drawn: {error}"),
    }
}

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
    use crate::zone::sides::{GOVERNOR, ZONE};

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
