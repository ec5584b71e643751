//! The rows that say which sign stands for which series.

use super::chart::Chart;
use super::series::{Series, Shape};
use super::svg::{Area, Svg};
use super::text;

const ROW_HEIGHT: f64 = 20.0;
const SIGN_WIDTH: f64 = 22.0;

/// Every named series once, in rows that fit the width, each with its place.
#[derive(Debug)]
pub(crate) struct Legend<'a>(Vec<(&'a Series, f64, f64)>);

impl<'a> Legend<'a> {
    pub(crate) fn new(charts: &'a [Chart], width: f64) -> Self {
        let look = |series: &'a Series| (&series.name, series.shape, series.color, series.dashed);
        let mut entries: Vec<(&'a Series, f64, f64)> = Vec::new();
        let (mut x, mut y) = (0.0, 0.0);
        for series in charts.iter().flat_map(|chart| &chart.series) {
            if series.name.is_empty() || entries.iter().any(|&(entry, ..)| look(entry) == look(series)) {
                continue;
            }
            let taken = SIGN_WIDTH + 6.0 + text::width(&series.name, 12.0);
            if x > 0.0 && x + taken > width {
                (x, y) = (0.0, y + ROW_HEIGHT);
            }
            entries.push((series, x, y));
            x += taken + 18.0;
        }
        Self(entries)
    }

    pub(crate) fn height(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, _, y)| y + ROW_HEIGHT)
    }

    pub(crate) fn draw(&self, svg: &mut Svg, left: f64, top: f64) {
        for &(series, x, y) in &self.0 {
            let (x, middle) = (left + x, top + y + ROW_HEIGHT / 2.0);
            svg.group(series.class(), &series.name, |svg| draw_sign(svg, series, x, middle));
            svg.text("", (x + SIGN_WIDTH + 6.0, middle + 4.0), &series.name);
        }
    }
}

fn draw_sign(svg: &mut Svg, series: &Series, x: f64, middle: f64) {
    let line = |y| [(x, y), (x + SIGN_WIDTH, y)];
    let area = Area { left: x, top: middle - 4.0, right: x + SIGN_WIDTH, bottom: middle + 5.0 };
    match series.shape {
        Shape::Line | Shape::Steps => svg.lines(series.line_class(), &line(middle)),
        Shape::Area => {
            svg.rect("tg-wash", area);
            svg.lines(series.line_class(), &line(area.top));
        }
        Shape::Marks(mark) => {
            svg.stamps(mark.outline(), &[(x + SIGN_WIDTH / 2.0, middle)]);
        }
        Shape::Bars => svg.rect("tg-fill", area),
    }
}
