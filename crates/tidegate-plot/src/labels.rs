//! Finds room for the labels of reference lines.
//!
//! Each label has a few places along its line and takes the one that hides least of what is drawn.

use crate::bars::Bar;
use crate::chart::Chart;
use crate::plot::Plot;
use crate::reference::Position;
use crate::svg::{Anchor, Area, Label, Svg};
use crate::text;

const FONT_SIZE: f64 = 11.0;
const HEIGHT: f64 = 14.0;

/// Hiding another label is worse than hiding any stretch of a line.
const LABEL_WEIGHT: usize = 10_000;

/// How far apart lines are probed, in pixels.
const PROBE: f64 = 6.0;

impl Plot<'_> {
    pub(crate) fn draw_reference_labels(&self, svg: &mut Svg, chart: &Chart, bars: &[Bar]) {
        let drawn = self.drawn(chart, bars);
        let mut labels: Vec<Area> = Vec::new();
        for reference in &chart.references {
            let label = text::fit(&reference.label, self.area.width / 2.0, FONT_SIZE);
            let hidden = |(place, _): &(Area, Anchor)| {
                let hits = |areas: &[Area]| areas.iter().filter(|area| area.overlaps(place)).count();
                hits(&drawn) + hits(&labels) * LABEL_WEIGHT
            };
            let places = self.places(reference.position, text::width(&label, FONT_SIZE));
            let Some((area, anchor)) = places.into_iter().min_by_key(hidden) else { continue };
            let x = if anchor == Anchor::End { area.right() } else { area.left };
            svg.text(&Label::new("tg-tick tg-halo", &label, x, area.top + 11.0).anchor(anchor));
            labels.push(area);
        }
    }

    /// What a label could hide: bars, and small probes along every line.
    fn drawn(&self, chart: &Chart, bars: &[Bar]) -> Vec<Area> {
        let mut drawn: Vec<Area> = bars.iter().map(|bar| bar.area.grown(HEIGHT)).collect();
        for series in &chart.series {
            drawn.extend(probes(&self.corners(series)));
        }
        for reference in &chart.references {
            drawn.extend(self.reference_line(reference.position).iter().flat_map(|ends| probes(ends)));
        }
        drawn
    }

    /// The places for a label of this width, the most usual first.
    fn places(&self, position: Position, width: f64) -> Vec<(Area, Anchor)> {
        let Some([(x, y), _]) = self.reference_line(position) else { return Vec::new() };
        let at = |left, top, anchor| (Area { left, top, width, height: HEIGHT }, anchor);
        let (left, right) = (self.area.left + 6.0, self.area.right() - 4.0 - width);
        let places: Vec<_> = match position {
            Position::Y(_) => [y - 16.0, y + 2.0]
                .into_iter()
                .flat_map(|top| [at(right, top, Anchor::End), at(left, top, Anchor::Start)])
                .collect(),
            Position::X(_) => [3.0, 19.0, self.area.height - 17.0]
                .into_iter()
                .map(|down| self.area.top + down)
                .flat_map(|top| [at(x + 5.0, top, Anchor::Start), at(x - 5.0 - width, top, Anchor::End)])
                .collect(),
        };
        places.into_iter().filter(|(place, _)| self.area.contains(place)).collect()
    }
}

/// Points along a line, close enough that no label fits between them.
fn probes(corners: &[(f64, f64)]) -> Vec<Area> {
    let point = |left, top| Area { left, top, width: 0.0, height: 0.0 };
    let mut probes: Vec<Area> = corners.iter().map(|&(x, y)| point(x, y)).collect();
    for pair in corners.windows(2) {
        let [(x, y), (to_x, to_y)] = [pair[0], pair[1]];
        let count = ((to_x - x).hypot(to_y - y) / PROBE).min(500.0) as usize;
        let share = |n: usize| n as f64 / count as f64;
        probes.extend((1..count).map(|n| point(x + (to_x - x) * share(n), y + (to_y - y) * share(n))));
    }
    probes
}

#[cfg(test)]
mod tests {
    use crate::{Chart, Reference, Series};

    /// Where the label stands that says this.
    fn place(svg: &str, text: &str) -> (f64, f64) {
        let line =
            svg.lines().find(|line| line.ends_with(&format!(">{text}</text>"))).expect("it is written");
        let number = |name: &str| {
            let value = line.split_once(&format!(" {name}=\"")).expect("it has a place").1;
            value.split('"').next().expect("it is quoted").parse().expect("it is a number")
        };
        (number("x"), number("y"))
    }

    #[test]
    fn a_label_stands_above_the_right_end_of_its_line_if_nothing_is_there() {
        let chart = Chart::new("t").series(Series::line("", [(0.0, 0.0), (1.0, 1.0)]));
        let low = chart.reference(Reference::horizontal(0.5, "limit")).render();
        assert!(place(&low, "limit").0 > 600.0);
    }

    #[test]
    fn a_label_makes_way_for_a_line_and_for_other_labels() {
        let points = [(0.0, 0.0), (0.8, 0.5), (0.9, 0.53), (1.0, 0.51)];
        let chart =
            Chart::new("t").series(Series::line("", points)).reference(Reference::horizontal(1.0, "top"));
        let svg = chart
            .reference(Reference::horizontal(0.5, "limit"))
            .reference(Reference::horizontal(0.5, "target"))
            .render();
        assert!(place(&svg, "limit").0 < 100.0);
        assert_ne!(place(&svg, "limit"), place(&svg, "target"));
    }
}
