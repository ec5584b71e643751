//! Bars side by side, with their values.

use crate::axis::Quantity;
use crate::chart::Chart;
use crate::plot::Plot;
use crate::svg::{Anchor, Area, Label, Svg};
use crate::text;

const WIDEST: f64 = 64.0;

/// One bar of a chart.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) area: Area,
    color: &'static str,
    value: f64,
    end: f64,
}

impl Bar {
    /// The bars of all series; those of one category share its slot.
    pub(crate) fn all(chart: &Chart, plot: &Plot<'_>, names: &[&str]) -> Vec<Self> {
        let with_bars = || chart.colored_series().filter(|(series, _)| !series.bars_by_category().is_empty());
        let columns = with_bars().count().max(1) as f64;
        let width = (plot.x.slot() * 0.74 / columns).min(WIDEST);
        let gap = (width * 0.06).min(2.0);
        let base = plot.y.base();
        let mut bars = Vec::new();
        for (column, (series, color)) in with_bars().enumerate() {
            let shift = (column as f64 - columns / 2.0) * width + gap;
            for (category, value) in series.bars_by_category() {
                let slot = names.iter().position(|name| name == category).map(|at| at as f64);
                let place = slot.and_then(|slot| plot.x.place(slot)).zip(plot.y.place(*value));
                let Some((middle, end)) = place else { continue };
                let (left, width) = (middle + shift, width - 2.0 * gap);
                let area = Area { left, top: end.min(base), width, height: (end - base).abs() };
                bars.push(Self { area, color: color.class(), value: *value, end });
            }
        }
        bars
    }

    pub(crate) fn draw(&self, svg: &mut Svg) {
        svg.group(self.color, "", |svg| svg.rect("tg-fill", self.area));
    }

    /// Writes the value at the end of the bar, if the plot shows that end and there is room.
    pub(crate) fn draw_value(&self, svg: &mut Svg, quantity: Quantity, plot: &Plot<'_>) {
        let written = quantity.write(self.value);
        if text::width(&written, 11.0) > self.area.width + 4.0 || plot.y.place_inside(self.value).is_none() {
            return;
        }
        let y = if self.end > self.area.top { self.end + 13.0 } else { self.end - 4.0 };
        let middle = self.area.left + self.area.width / 2.0;
        svg.text(&Label::new("tg-tick tg-halo", &written, middle, y).anchor(Anchor::Middle));
    }
}
