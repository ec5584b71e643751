//! What stands inside the axes: grid, series and reference lines.

use super::chart::Chart;
use super::color::Color;
use super::scale::Scale;
use super::series::{Reference, Series, Shape};
use super::svg::{Area, Svg};
use super::text;

const WIDEST_BAR: f64 = 64.0;

/// One pair of axes on the page.
#[derive(Debug)]
pub(crate) struct Plot<'a> {
    pub(crate) area: Area,
    pub(crate) x: &'a Scale,
    pub(crate) y: &'a Scale,
    /// The categories along x, if there are any.
    pub(crate) names: &'a [&'a str],
}

impl Plot<'_> {
    pub(crate) fn draw(&self, svg: &mut Svg, chart: &Chart) {
        let Area { left, top, right, bottom } = self.area;
        self.draw_grid(svg);
        self.draw_bars(svg, chart);
        svg.clipped(self.area, |svg| chart.series.iter().for_each(|series| self.draw_line(svg, series)));
        svg.lines("tg-frame", &[(left, top), (left, bottom), (right, bottom)]);
        chart.references.iter().for_each(|reference| self.draw_reference(svg, reference));
        chart.series.iter().for_each(|series| self.draw_marks(svg, series));
        if chart.series.iter().all(|series| self.corners(series).is_empty()) {
            let middle = ((left + right) / 2.0, (top + bottom) / 2.0 + 4.0);
            svg.text("tg-quiet tg-halo tg-middle", middle, "no data");
        }
    }

    /// The points of a series that the axes can show, as pixels; for steps, also the corners between them.
    fn corners(&self, series: &Series) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for (x, y) in series.points.iter().filter_map(|&(x, y)| self.x.place(x).zip(self.y.place(y))) {
            if let (Some(&(_, held)), Shape::Steps | Shape::Area) = (corners.last(), series.shape) {
                corners.push((x, held));
            }
            corners.push((x, y));
        }
        corners.dedup();
        corners
    }

    fn draw_grid(&self, svg: &mut Svg) {
        let Area { left, top, right, bottom } = self.area;
        for tick in &self.y.ticks {
            svg.lines("tg-grid", &[(left, tick.at), (right, tick.at)]);
            svg.text("tg-tick tg-end", (left - 6.0, tick.at + 4.0), &tick.label);
        }
        // Between bars, upright lines would only cut the names off from each other.
        for tick in self.x.ticks.iter().filter(|_| self.names.is_empty()) {
            svg.lines("tg-grid", &[(tick.at, top), (tick.at, bottom)]);
        }
    }

    /// Bars of one category share its slot; each carries its value if there is room.
    fn draw_bars(&self, svg: &mut Svg, chart: &Chart) {
        let all = || chart.series.iter().filter(|series| series.shape == Shape::Bars);
        let columns = all().count() as f64;
        let width = (self.x.slot() * 0.74 / columns).min(WIDEST_BAR);
        for (column, series) in all().enumerate() {
            let shift = (column as f64 - columns / 2.0) * width;
            for (category, &(_, value)) in series.categories.iter().zip(&series.points) {
                let slot = self.names.iter().position(|name| name == category);
                let place = slot.and_then(|slot| self.x.place(slot as f64)).zip(self.y.place(value));
                let Some((middle, end)) = place else { continue };
                let (left, base) = (middle + shift + 1.0, self.y.base());
                let end = end.clamp(self.area.top, self.area.bottom);
                let bar = Area { left, top: end.min(base), right: left + width - 2.0, bottom: end.max(base) };
                svg.group(series.class(), &series.name, |svg| svg.rect("tg-fill", bar));
                let written = chart.y.write(value);
                if text::width(&written, 11.0) <= width {
                    let y = if end > base { end + 13.0 } else { end - 4.0 };
                    svg.text("tg-tick tg-halo tg-middle", (left + width / 2.0 - 1.0, y), &written);
                }
            }
        }
    }

    fn draw_line(&self, svg: &mut Svg, series: &Series) {
        let corners = self.corners(series);
        let (Some(first), Some(last)) = (corners.first(), corners.last()) else { return };
        if let Shape::Marks(_) | Shape::Bars = series.shape {
            return;
        }
        svg.group(series.class(), &series.name, |svg| {
            if series.shape == Shape::Area {
                let base = self.y.base();
                svg.lines("tg-wash", &[&[(first.0, base)], corners.as_slice(), &[(last.0, base)]].concat());
            }
            svg.lines(series.line_class(), &corners);
        });
    }

    /// Marks stand over everything and may reach over the edge, but not lie beyond it.
    fn draw_marks(&self, svg: &mut Svg, series: &Series) {
        let Shape::Marks(mark) = series.shape else { return };
        let inside = |&(x, y): &(f64, f64)| self.x.place_inside(x).zip(self.y.place_inside(y));
        let places: Vec<(f64, f64)> = series.points.iter().filter_map(inside).collect();
        svg.group(series.class(), &series.name, |svg| svg.stamps(mark.outline(), &places));
    }

    /// The label of a level line stands above its right end, that of an upright line beside its top.
    fn draw_reference(&self, svg: &mut Svg, reference: &Reference) {
        let Area { left, top, right, bottom } = self.area;
        let (ends, class, label) = if let Some(x) = reference.x.and_then(|x| self.x.place_inside(x)) {
            let beside = if x > (left + right) / 2.0 { ("tg-end", x - 5.0) } else { ("", x + 5.0) };
            ([(x, top), (x, bottom)], beside.0, (beside.1, top + 14.0))
        } else if let Some(y) = reference.y.and_then(|y| self.y.place_inside(y)) {
            ([(left, y), (right, y)], "tg-end", (right - 4.0, y - 5.0))
        } else {
            return;
        };
        svg.group(Color::Reference.class(), &reference.label, |svg| svg.lines("tg-glyph tg-dashed", &ends));
        svg.text(&format!("tg-tick tg-halo {class}"), label, &reference.label);
    }
}

#[cfg(test)]
mod tests {
    use crate::plot::{Axis, Chart, Reference, Series};

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
    fn a_label_stands_above_the_right_end_of_its_line() {
        let chart = Chart::new("t").series(Series::line("", [(0.0, 0.0), (1.0, 1.0)]));
        let low = chart.reference(Reference::horizontal(0.5, "limit")).render();
        assert!(place(&low, "limit").0 > 600.0);
    }

    #[test]
    fn the_label_of_an_upright_line_stays_inside() {
        let chart = Chart::new("t").series(Series::line("", [(0.0, 0.0), (1.0, 1.0)]));
        let svg = chart
            .reference(Reference::vertical(0.0, "start"))
            .reference(Reference::vertical(1.0, "end"))
            .render();
        assert!(place(&svg, "start").0 < 80.0 && place(&svg, "end").0 < 700.0);
    }

    #[test]
    fn a_bar_beyond_a_fixed_range_is_cut_and_keeps_its_value() {
        let chart = Chart::new("t").y(Axis::number("").range(0.0, 10.0));
        let svg = chart.series(Series::bars("", [("small", 5.0), ("large", 1234.0)])).render();
        assert!(place(&svg, "1.23 k").1 > 0.0 && place(&svg, "large").1 > place(&svg, "5").1);
    }
}
