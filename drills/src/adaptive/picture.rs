//! The picture: what each algorithm did over time, and what the best fixed limit of each phase was.

use std::fs;

use harness::plot::{Axis, Chart, Color, Panels, Reference, Series};

use super::contest::{ALGORITHMS, Contest, Scenario};
use super::counted::Best;
use super::simulation::{MOMENT, Moment, SECOND, Time};
use crate::Outcome;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/adaptive.svg");

/// Goodput is drawn as the mean of so many moments.
const SMOOTHED: usize = 10;

/// Writes the picture.
pub(super) fn draw(scenario: &Scenario, contest: &Contest) -> Outcome {
    fs::write(FILE, picture(scenario, contest)).map_err(|error| format!("docs/adaptive.svg: {error}"))
}

fn picture(scenario: &Scenario, contest: &Contest) -> String {
    let length = seconds(scenario.world.phase_length);
    let panels = Panels::new("Places that adapt")
        .subtitle(format!(
            "simulated: {} from {length:.0} to {:.0} s; deadline {} ms",
            scenario.name,
            2.0 * length,
            scenario.deadline().as_millis()
        ))
        .panel_height(150)
        .x(Axis::seconds("time").range(0.0, 3.0 * length));
    let panels = ALGORITHMS
        .iter()
        .zip(&contest.runs)
        .fold(panels, |panels, (name, run)| panels.panel(limits(name, &run.moments, &contest.best, length)));
    panels.panel(goodput(contest, length)).render()
}

fn limits(name: &str, moments: &[Moment], best: &[Best; 3], length: f64) -> Chart {
    let at = |value: fn(&Moment) -> u64| {
        let points = moments.iter().enumerate();
        points.map(move |(index, moment)| (time(index), value(moment) as f64))
    };
    let fixed = best.iter().enumerate().flat_map(|(phase, best)| {
        let begin = phase as f64 * length;
        [(begin, best.limit as f64), (begin + length, best.limit as f64)]
    });
    let chart = Chart::new(name)
        .y(Axis::number("calls"))
        .series(Series::line("in flight", at(|moment| moment.in_flight)).color(Color::series(1)))
        .series(Series::steps("limit", at(|moment| moment.limit)).color(Color::series(0)))
        .series(Series::line("best fixed limit of the phase", fixed).dashed().color(Color::series(2)));
    changes(chart, length)
}

fn goodput(contest: &Contest, length: f64) -> Chart {
    let chart = Chart::new("answers in time, per second").y(Axis::number("1/s"));
    let chart = ALGORITHMS.iter().zip(&contest.runs).enumerate().fold(chart, |chart, (row, (name, run))| {
        let means = run.moments.chunks(SMOOTHED).enumerate().map(|(index, chunk)| {
            let good: u64 = chunk.iter().map(|moment| moment.good).sum();
            (time(index * SMOOTHED + SMOOTHED / 2), good as f64 / (chunk.len() as f64 * seconds(MOMENT)))
        });
        chart.series(Series::line(*name, means).color(Color::series(3 + row)))
    });
    let fixed = contest.best.iter().enumerate().flat_map(|(phase, best)| {
        let (begin, good) = (phase as f64 * length, best.good as f64 / length);
        [(begin, good), (begin + length, good)]
    });
    let fixed = Series::line("best fixed limit of the phase", fixed).dashed().color(Color::series(2));
    changes(chart.series(fixed), length)
}

/// Marks where capacity falls and comes back.
fn changes(chart: Chart, length: f64) -> Chart {
    chart
        .reference(Reference::vertical(length, "a fifth"))
        .reference(Reference::vertical(2.0 * length, "full again"))
}

fn time(moment: usize) -> f64 {
    (moment + 1) as f64 * seconds(MOMENT)
}

fn seconds(time: Time) -> f64 {
    time as f64 / SECOND as f64
}
