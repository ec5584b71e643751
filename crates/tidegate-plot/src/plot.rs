//! What stands inside the axes: grid, series and reference lines.

use crate::bars::Bar;
use crate::chart::Chart;
use crate::reference::Position;
use crate::scale::Scale;
use crate::series::{Series, Shape};
use crate::svg::{Anchor, Area, Label, Path, Svg};

/// How far the stroke of a line along an edge reaches over it.
const STROKE: f64 = 1.5;

/// One pair of axes on the page.
#[derive(Debug)]
pub(crate) struct Plot<'a> {
    pub(crate) area: Area,
    pub(crate) x: &'a Scale,
    pub(crate) y: &'a Scale,
}

impl Plot<'_> {
    /// Draws a chart's content; `names` are the categories along x, if it has any.
    pub(crate) fn draw(&self, svg: &mut Svg, chart: &Chart, names: &[&str]) {
        let bars = Bar::all(chart, self, names);
        self.draw_grid(svg, names);
        svg.clipped(self.area.grown(STROKE), |svg| {
            bars.iter().for_each(|bar| bar.draw(svg));
            chart.colored_series().for_each(|(series, color)| self.draw_outline(svg, series, color.class()));
        });
        self.draw_frame(svg);
        self.draw_reference_lines(svg, chart);
        chart.colored_series().for_each(|(series, color)| self.draw_marks(svg, series, color.class()));
        bars.iter().for_each(|bar| bar.draw_value(svg, chart.y.quantity, self));
        self.draw_reference_labels(svg, chart, &bars);
        if bars.is_empty() && chart.series.iter().all(|series| self.corners(series).is_empty()) {
            let (x, y) =
                (self.area.left + self.area.width / 2.0, self.area.top + self.area.height / 2.0 + 4.0);
            svg.text(&Label::new("tg-quiet tg-halo", "no data", x, y).anchor(Anchor::Middle));
        }
    }

    /// The points of a series that the axes can show, as pixels; for steps, also the corners between them.
    pub(crate) fn corners(&self, series: &Series) -> Vec<(f64, f64)> {
        let places = series.points().iter().filter_map(|&(x, y)| self.x.place(x).zip(self.y.place(y)));
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for (x, y) in places {
            if let (Some(&(_, held)), Shape::Steps(_) | Shape::Area(_)) = (corners.last(), &series.shape) {
                corners.push((x, held));
            }
            corners.push((x, y));
        }
        corners
    }

    /// The pixels between which a reference line runs, if the axes show it.
    pub(crate) fn reference_line(&self, position: Position) -> Option<[(f64, f64); 2]> {
        let Area { left, top, .. } = self.area;
        match position {
            Position::X(x) => self.x.place_inside(x).map(|x| [(x, top), (x, self.area.bottom())]),
            Position::Y(y) => self.y.place_inside(y).map(|y| [(left, y), (self.area.right(), y)]),
        }
    }

    fn draw_grid(&self, svg: &mut Svg, names: &[&str]) {
        let mut grid = Path::default();
        for y in self.y.ticks.iter().filter_map(|tick| self.y.place(tick.value)) {
            grid.through(&[(self.area.left, y), (self.area.right(), y)]);
        }
        // Between bars, upright lines would only cut the names off from each other.
        for x in self.x.ticks.iter().filter(|_| names.is_empty()).filter_map(|tick| self.x.place(tick.value))
        {
            grid.through(&[(x, self.area.top), (x, self.area.bottom())]);
        }
        svg.path("tg-grid", &grid);
    }

    fn draw_frame(&self, svg: &mut Svg) {
        let Area { left, top, .. } = self.area;
        let mut frame = Path::default();
        frame.through(&[(left, top), (left, self.area.bottom()), (self.area.right(), self.area.bottom())]);
        svg.path("tg-frame", &frame);
    }

    fn draw_outline(&self, svg: &mut Svg, series: &Series, color: &str) {
        let corners = self.corners(series);
        let (Some(first), Some(last)) = (corners.first(), corners.last()) else { return };
        if let Shape::Marks(..) = series.shape {
            return;
        }
        let mut outline = Path::default();
        outline.through(&corners);
        svg.group(color, &series.name, |svg| {
            if let Shape::Area(_) = series.shape {
                let base = self.y.base();
                let mut filled = Path::default();
                filled.through(&[&[(first.0, base)], corners.as_slice(), &[(last.0, base)]].concat());
                svg.path("tg-wash", &filled);
            }
            svg.path(series.line_class(), &outline);
        });
    }

    /// Marks stand over everything and may reach over the edge, but not lie beyond it.
    fn draw_marks(&self, svg: &mut Svg, series: &Series, color: &str) {
        let Shape::Marks(mark, points) = &series.shape else { return };
        let mut path = Path::default();
        for (x, y) in points.iter().filter_map(|&(x, y)| self.x.place_inside(x).zip(self.y.place_inside(y))) {
            mark.outline(&mut path, x, y);
        }
        svg.group(color, &series.name, |svg| svg.path(mark.class(), &path));
    }

    fn draw_reference_lines(&self, svg: &mut Svg, chart: &Chart) {
        for reference in &chart.references {
            let Some(ends) = self.reference_line(reference.position) else { continue };
            let mut line = Path::default();
            line.through(&ends);
            svg.group(reference.color.class(), "", |svg| svg.path("tg-glyph tg-dashed", &line));
        }
    }
}
