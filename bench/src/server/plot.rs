//! The picture of what a request costs the server by the depth of the pipeline.

use std::fs;
use std::path::Path;

use tidegate_plot::{Axis, Chart, Series};

use super::PING;
use super::resp::{CRAB, OURS, OURS_HOT, PIPELINES, SCRIPT};
use super::table::Table;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/server_cost.svg");
/// What refers to a line under the tables.
const FOOTNOTE: char = '*';
const NAMES: [&str; 5] = [OURS, OURS_HOT, PING, SCRIPT, CRAB];

/// Writes the picture of a table per pipeline; says so, or why not.
pub(super) fn draw(tables: &[Table]) {
    let cost = |name| tables.iter().map(|table| table.middle(name, |sample| sample.cpu)).collect();
    let costs = NAMES.map(|name| (name, cost(name)));
    let file = Path::new(FILE);
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| fs::write(file, picture(&costs))) {
        Ok(()) => eprintln!("drawn: docs/server_cost.svg"),
        Err(error) => eprintln!("docs/server_cost.svg is not drawn: {error}"),
    }
}

/// A line per name, from its microseconds at each pipeline; whoever was left out has none.
fn picture(costs: &[(&str, Vec<f64>)]) -> String {
    let chart = Chart::new("What a request costs the server")
        .subtitle("CPU time of the server, RESP, 50 connections; both axes are logarithmic")
        .x(Axis::number("requests in flight on a connection").log())
        .y(Axis::nanoseconds("CPU per request").log());
    let measured = costs.iter().filter(|(_, costs)| costs.iter().any(|cost| cost.is_finite()));
    let drawn = measured.fold(chart, |chart, (name, costs)| {
        let points = PIPELINES.iter().zip(costs).map(|(depth, cost)| (*depth as f64, cost * 1e3));
        let line = Series::line(name.replace(FOOTNOTE, ""), points);
        chart.series(if *name == PING { line.dashed() } else { line })
    });
    drawn.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_was_measured_is_a_line() {
        let svg =
            picture(&[(PING, vec![6.0, 0.5, 0.3]), (OURS, vec![f64::NAN; 3]), (CRAB, vec![9.0, 4.0, 4.0])]);
        assert!(
            svg.contains(PING) && svg.contains("throttlecrab THROTTLE,") && !svg.contains("tidegate CL"),
            "{svg}"
        );
    }
}
