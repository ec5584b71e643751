//! Several charts over one x axis.

use super::axis::Axis;
use super::chart::Chart;
use super::page::{Page, Stack};

/// Charts stacked in one picture, sharing an x axis and a legend.
///
/// Each chart's title becomes its heading, its notes stand right of it.
///
/// ```
/// use harness::plot::{Axis, Chart, Color, Mark, Panels, Series};
///
/// let panel = |name: &str| {
///     Chart::new(name)
///         .y(Axis::number("").range(0.0, 2.0))
///         .series(Series::marks("denied", Mark::Tick, [(0.2, 1.0), (0.7, 1.0)]).color(Color::Denied))
///         .note("2 denied")
/// };
/// let svg = Panels::new("The same requests, two ways")
///     .x(Axis::seconds("time").range(0.0, 1.0))
///     .panel(panel("token bucket"))
///     .panel(panel("fixed window"))
///     .render();
/// assert!(svg.contains("fixed window"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "panels are drawn by `render`"]
pub struct Panels {
    /// Its height is that of each plot.
    page: Page,
    x: Option<Axis>,
    charts: Vec<Chart>,
}

impl Panels {
    /// No panels yet; each will have a plot 110 pixels high in a picture 900 pixels wide.
    pub fn new(title: impl Into<String>) -> Self {
        let page = Page { title: title.into(), width: 900, height: 110, ..Page::default() };
        Self { page, x: None, charts: Vec::new() }
    }

    /// A quieter line under the title.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.page.subtitle = subtitle.into();
        self
    }

    /// What screen readers say about the picture; without it, the axes and series are named.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.page.description = description.into();
        self
    }

    /// The height of each plot in pixels, without its heading; it grows if a panel has many notes.
    pub fn panel_height(mut self, height: u32) -> Self {
        self.page.height = height;
        self
    }

    /// The axis that all panels share; without it, that of the first panel.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = Some(axis);
        self
    }

    /// Adds a panel below the others.
    pub fn panel(mut self, chart: Chart) -> Self {
        self.charts.push(chart);
        self
    }

    /// The picture as an SVG document, which may also be placed inside HTML.
    pub fn render(&self) -> String {
        let empty = [Chart::new("")];
        let charts = if self.charts.is_empty() { &empty } else { self.charts.as_slice() };
        self.page.render(Stack::Panels, self.x.as_ref().unwrap_or(&charts[0].x), charts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::series::Series;

    fn panel(name: &str, to: f64) -> Chart {
        Chart::new(name).series(Series::line("passed", [(0.0, 1.0), (to, 2.0)])).note(format!("{name} note"))
    }

    #[test]
    fn panels_share_the_x_axis_and_the_legend() {
        let svg = Panels::new("two")
            .x(Axis::seconds("time"))
            .panel(panel("a", 1.0))
            .panel(panel("b", 10.0))
            .render();
        assert_eq!(svg.matches(">10 s</text>").count(), 1, "ticks stand below the last panel only");
        assert_eq!(svg.matches(">passed</text>").count(), 1, "the legend names a series once");
        for text in ["a", "b", "a note", "b note", "time"] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}");
        }
    }

    #[test]
    fn panels_lie_below_each_other() {
        let one = Panels::new("t").panel(panel("a", 1.0)).render();
        let two = Panels::new("t").panel(panel("a", 1.0)).panel(panel("b", 1.0)).render();
        assert!(height(&two) >= height(&one) + 110.0);
    }

    #[test]
    fn no_panels_is_still_a_picture() {
        let svg = Panels::new("nothing").panel_height(0).render();
        assert!(svg.contains(">nothing</text>") && svg.contains(">no data</text>"));
    }

    fn height(svg: &str) -> f64 {
        let after = svg.split_once("height=\"").expect("the document has a height").1;
        after.split('"').next().expect("the value is quoted").parse().expect("it is a number")
    }
}
