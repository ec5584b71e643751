//! The rows that say which sign stands for which series.

use crate::chart::Chart;
use crate::series::{Series, Shape};
use crate::svg::{Area, Label, Path, Svg};
use crate::text;

const ROW_HEIGHT: f64 = 20.0;
const SIGN_WIDTH: f64 = 22.0;
const FONT_SIZE: f64 = 12.0;

/// Every named series once, in rows that fit the width.
#[derive(Debug)]
pub(crate) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    rows: usize,
}

#[derive(Debug)]
struct Entry<'a> {
    series: &'a Series,
    color: &'static str,
    name: String,
    x: f64,
    row: usize,
}

impl<'a> Legend<'a> {
    pub(crate) fn new(charts: &'a [Chart], width: f64) -> Self {
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let (mut x, mut row) = (0.0, 0);
        let shown = charts.iter().filter(|chart| chart.legend).flat_map(Chart::colored_series);
        for (series, color) in shown.filter(|(series, _)| !series.name.is_empty()) {
            let color = color.class();
            if entries.iter().any(|entry| entry.stands_for(series, color)) {
                continue;
            }
            let name = text::fit(&series.name, width - SIGN_WIDTH - 6.0, FONT_SIZE);
            let taken = SIGN_WIDTH + 6.0 + text::width(&name, FONT_SIZE);
            if x > 0.0 && x + taken > width {
                (x, row) = (0.0, row + 1);
            }
            entries.push(Entry { series, color, name, x, row });
            x += taken + 14.0;
        }
        let rows = entries.last().map_or(0, |entry| entry.row + 1);
        Self { entries, rows }
    }

    pub(crate) fn height(&self) -> f64 {
        self.rows as f64 * ROW_HEIGHT
    }

    pub(crate) fn draw(&self, svg: &mut Svg, left: f64, top: f64) {
        for entry in &self.entries {
            let (x, middle) = (left + entry.x, top + (entry.row as f64 + 0.5) * ROW_HEIGHT);
            svg.group(entry.color, "", |svg| draw_sign(svg, entry.series, x, middle));
            svg.text(&Label::new("", &entry.name, x + SIGN_WIDTH + 6.0, middle + 4.0));
        }
    }
}

impl Entry<'_> {
    fn stands_for(&self, series: &Series, color: &str) -> bool {
        let same_shape = match (&self.series.shape, &series.shape) {
            (Shape::Marks(one, _), Shape::Marks(other, _)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        same_shape
            && self.color == color
            && self.series.name == series.name
            && self.series.line_class() == series.line_class()
    }
}

fn draw_sign(svg: &mut Svg, series: &Series, x: f64, middle: f64) {
    let mut path = Path::default();
    match &series.shape {
        Shape::Line(_) => {
            path.through(&[(x, middle), (x + SIGN_WIDTH, middle)]);
            svg.path(series.line_class(), &path);
        }
        Shape::Steps(_) => {
            path.move_to(x, middle + 4.0);
            path.then("h11v-8h11");
            svg.path(series.line_class(), &path);
        }
        Shape::Area(_) => {
            svg.rect("tg-wash", Area { left: x, top: middle - 4.0, width: SIGN_WIDTH, height: 9.0 });
            path.through(&[(x, middle - 4.0), (x + SIGN_WIDTH, middle - 4.0)]);
            svg.path(series.line_class(), &path);
        }
        Shape::Marks(mark, _) => {
            mark.outline(&mut path, x + SIGN_WIDTH / 2.0, middle);
            svg.path(mark.class(), &path);
        }
        Shape::Bars(_) => {
            svg.rect("tg-fill", Area { left: x, top: middle - 5.0, width: SIGN_WIDTH, height: 10.0 });
        }
    }
}
