//! The page around the plots.
//!
//! ```text
//! title
//! subtitle
//! legend
//!        heading         subtitle
//! y  10 ┤ ▁▂▃ plot ▃▂▁             note
//!     0 └┬──────┬──────┬           note
//!        0      1      2
//!               x
//! ```

use super::axis::Axis;
use super::chart::Chart;
use super::inside::Plot;
use super::legend::Legend;
use super::scale::Scale;
use super::svg::{Area, Svg};
use super::text;

const MARGIN: f64 = 16.0;
/// Where plots begin: room for the labels of the y axis.
const LEFT: f64 = 66.0;
const NOTE_LINE: f64 = 16.0;
const HEADING: f64 = 34.0;
const SMALLEST_PLOT: f64 = 40.0;

/// What a picture says about itself, and its size in pixels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) description: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

/// How the height is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// One plot takes what the text leaves of the whole height.
    Single,
    /// Each plot has the whole height, and a heading.
    Panels,
}

impl Page {
    /// Draws charts over a common x axis.
    pub(crate) fn render(&self, stack: Stack, x: &Axis, charts: &[Chart]) -> String {
        let width = f64::from(self.width).clamp(240.0, 10_000.0);
        let legend = Legend::new(charts, width - 2.0 * MARGIN);
        let subtitle = text::fit(&self.subtitle, width - 2.0 * MARGIN, 12.0);
        let legend_top = MARGIN + if subtitle.is_empty() { 22.0 } else { 40.0 };
        let head = legend_top + legend.height() + 10.0;
        let foot = if x.label.is_empty() { 28.0 } else { 46.0 };
        let (heading, height) = match stack {
            Stack::Single => (0.0, f64::from(self.height) - head - foot),
            Stack::Panels => (HEADING, f64::from(self.height)),
        };
        let notes = charts.iter().map(|chart| chart.notes.len()).max().unwrap_or(0) as f64 * NOTE_LINE;
        let row = heading + height.clamp(SMALLEST_PLOT, 10_000.0).max(notes);
        let bottom = head + row * charts.len() as f64;
        let right = (width - 24.0 - notes_width(charts)).max(LEFT + SMALLEST_PLOT);

        let mut svg = Svg::open(width, bottom + foot, &self.title, &self.spoken(x, charts));
        svg.text("tg-title", (MARGIN, MARGIN + 12.0), &text::fit(&self.title, width - 2.0 * MARGIN, 16.0));
        svg.text("tg-quiet", (MARGIN, MARGIN + 32.0), &subtitle);
        legend.draw(&mut svg, MARGIN, legend_top);
        let series = charts.iter().flat_map(|chart| &chart.series);
        let names = distinct(series.flat_map(|series| &series.categories));
        let values: Vec<f64> = charts.iter().flat_map(|chart| chart.values().0).collect();
        let x_scale = match names.as_slice() {
            [] => Scale::new(x, &values, (LEFT, right)),
            names => Scale::of_names(names, (LEFT, right)),
        };
        for (number, chart) in charts.iter().enumerate() {
            let top = head + number as f64 * row;
            let area = Area { left: LEFT, top: top + heading, right, bottom: top + row };
            if stack == Stack::Panels {
                draw_heading(&mut svg, chart, area);
            }
            draw_row(&mut svg, chart, &x_scale, area, &names);
        }
        for tick in &x_scale.ticks {
            svg.text("tg-tick tg-middle", (tick.at, bottom + 16.0), &tick.label);
        }
        svg.text("tg-middle", ((LEFT + right) / 2.0, bottom + 36.0), &x.label);
        svg.finish()
    }

    /// What a screen reader says: the words given, or what the picture shows.
    fn spoken(&self, x: &Axis, charts: &[Chart]) -> String {
        if !self.description.is_empty() {
            return self.description.clone();
        }
        let y = distinct(charts.iter().map(|chart| &chart.y.label)).join(", ");
        let series = charts.iter().flat_map(|chart| &chart.series);
        let names = distinct(series.map(|series| &series.name)).join(", ");
        format!("{y} by {}. Series: {names}.", x.label)
    }
}

fn draw_heading(svg: &mut Svg, chart: &Chart, area: Area) {
    let heading = text::fit(&chart.page.title, area.right - area.left, 13.0);
    let rest = area.right - area.left - text::width(&heading, 13.0) - 12.0;
    svg.text("tg-heading", (area.left, area.top - 8.0), &heading);
    svg.text("tg-quiet tg-end", (area.right, area.top - 8.0), &text::fit(&chart.page.subtitle, rest, 12.0));
}

/// Draws a plot with its y axis and its notes.
fn draw_row(svg: &mut Svg, chart: &Chart, x: &Scale, area: Area, names: &[&str]) {
    let Area { top, right, bottom, .. } = area;
    let (_, mut values) = chart.values();
    // A logarithmic axis cannot show zero and leaves it out.
    values.push(0.0);
    let y = Scale::new(&chart.y, &values, (bottom, top));
    Plot { area, x, y: &y, names }.draw(svg, chart);
    let label = text::fit(&chart.y.label, bottom - top + HEADING, 12.0);
    svg.text_upwards((MARGIN + 8.0, (top + bottom) / 2.0), &label);
    for (number, note) in chart.notes.iter().enumerate() {
        svg.text("", (right + MARGIN, top + 11.0 + number as f64 * NOTE_LINE), note);
    }
}

/// The width of the column right of the plots.
fn notes_width(charts: &[Chart]) -> f64 {
    let notes = charts.iter().flat_map(|chart| &chart.notes);
    notes.map(|note| text::width(note, 12.0)).fold(0.0, f64::max)
}

/// Each word once, in the order in which they first appear.
fn distinct<'a>(words: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut distinct: Vec<&str> = Vec::new();
    for word in words {
        if !distinct.contains(&word.as_str()) {
            distinct.push(word);
        }
    }
    distinct
}
