//! One plot, described in plain words.

use super::axis::Axis;
use super::color::Color;
use super::page::{Page, Stack};
use super::series::{Reference, Series};

/// One plot with its axes, series, legend and reference lines.
///
/// ```
/// use harness::plot::{Axis, Chart, Color, Reference, Series};
///
/// let passed = [(0.0, 5.0), (0.5, 6.0), (1.0, 7.0)];
/// let svg = Chart::new("Ten per second, burst five")
///     .x(Axis::seconds("time"))
///     .y(Axis::number("passed"))
///     .series(Series::steps("token bucket", passed).color(Color::Allowed))
///     .reference(Reference::horizontal(10.0, "limit"))
///     .render();
/// assert!(svg.starts_with("<svg"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a chart is drawn by `render`"]
pub struct Chart {
    pub(crate) page: Page,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) references: Vec<Reference>,
    pub(crate) notes: Vec<String>,
}

impl Chart {
    /// An empty chart, 720 by 400 pixels, with unlabelled axes of plain numbers.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            page: Page { title: title.into(), width: 720, height: 400, ..Page::default() },
            x: Axis::number(""),
            y: Axis::number(""),
            series: Vec::new(),
            references: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A quieter line under the title, or beside the heading when the chart is a panel.
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.page.subtitle = subtitle.into();
        self
    }

    /// The axis along the bottom.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The axis along the left side.
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Adds a series; later ones are drawn over earlier ones, marks over all.
    ///
    /// The n-th series has the n-th series colour unless it brings its own.
    pub fn series(mut self, mut series: Series) -> Self {
        series.color.get_or_insert(Color::series(self.series.len()));
        self.series.push(series);
        self
    }

    /// Adds a reference line; the axes grow to show it unless their range is fixed.
    pub fn reference(mut self, reference: Reference) -> Self {
        self.references.push(reference);
        self
    }

    /// Adds a line of text to the column right of the plot.
    pub fn note(mut self, line: impl Into<String>) -> Self {
        self.notes.push(line.into());
        self
    }

    /// The chart as an SVG document, which may also be placed inside HTML.
    pub fn render(&self) -> String {
        self.page.render(Stack::Single, &self.x, std::slice::from_ref(self))
    }

    /// The x and the y values that the axes have to show.
    pub(crate) fn values(&self) -> (Vec<f64>, Vec<f64>) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let (mut x, mut y): (Vec<f64>, Vec<f64>) = finite.copied().unzip();
        x.extend(self.references.iter().filter_map(|reference| reference.x));
        y.extend(self.references.iter().filter_map(|reference| reference.y));
        (x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::series::Mark;

    fn busy(points: &[(f64, f64)]) -> Chart {
        let points = || points.iter().copied();
        Chart::new("busy")
            .series(Series::line("line", points()).dashed())
            .series(Series::steps("steps", points()))
            .series(Series::area("area", points()))
            .series(Series::marks("rings", Mark::Ring, points()))
            .series(Series::marks("ticks", Mark::Tick, points()))
            .reference(Reference::horizontal(points().map(|(_, y)| y).sum(), "sum"))
            .reference(Reference::vertical(points().map(|(x, _)| x).sum(), "sum"))
    }

    /// Everything that is drawn: the style sheet has words of its own.
    fn drawn(svg: &str) -> &str {
        svg.split_once("</style>").expect("every chart has a style sheet").1
    }

    fn assert_sound(svg: &str) {
        let drawn = drawn(svg);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(!svg.contains('\r') && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn the_same_chart_gives_the_same_bytes() {
        let chart = busy(&[(0.0, 1.0), (0.3, 2.5), (1.0, 0.1)]);
        assert_eq!(chart.render(), chart.clone().render());
    }

    #[test]
    fn odd_points_are_skipped() {
        let odd =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0, 1e-300];
        for value in odd {
            for points in [vec![(value, value)], vec![(0.0, 1.0), (value, 2.0), (3.0, value), (4.0, 1.0)]] {
                assert_sound(&busy(&points).render());
                let log = || Axis::seconds("log").log();
                assert_sound(&busy(&points).x(log()).y(log()).render());
                assert_sound(&busy(&points).x(Axis::number("x").range(value, 1.0)).render());
                assert_sound(
                    &Chart::new("bars").series(Series::bars("b", [("a", value), ("b", 1.0)])).render(),
                );
            }
        }
    }

    #[test]
    fn a_chart_without_data_says_so() {
        for chart in [Chart::new(""), busy(&[]), busy(&[(f64::NAN, 1.0)])] {
            let svg = chart.render();
            assert_sound(&svg);
            assert!(svg.contains(">no data</text>"));
        }
        assert!(!busy(&[(1.0, 1.0)]).render().contains("no data"));
    }

    #[test]
    fn every_size_can_be_drawn() {
        for (width, height) in [(0, 0), (1, 1), (100_000, 20), (u32::MAX, u32::MAX)] {
            let mut chart = busy(&[(0.0, 1.0), (2.0, 3.0)]).note("a note");
            (chart.page.width, chart.page.height) = (width, height);
            assert_sound(&chart.render());
        }
    }

    #[test]
    fn names_are_escaped() {
        let svg = Chart::new("a < b & c")
            .subtitle("<sub>")
            .x(Axis::number("<x>"))
            .y(Axis::number("<y>"))
            .series(Series::bars("<series>", [("<category>", 1.0)]))
            .reference(Reference::horizontal(1.0, "<limit>"))
            .note("<note>")
            .render();
        assert!(svg.contains("a &lt; b &amp; c"));
        for name in ["sub", "x", "y", "series", "category", "limit", "note"] {
            assert!(svg.contains(&format!("&lt;{name}&gt;")), "{name}");
            assert!(!svg.contains(&format!("<{name}>")), "{name}");
        }
    }

    #[test]
    fn screen_readers_hear_axes_and_series() {
        let chart = Chart::new("Passed").x(Axis::seconds("time")).y(Axis::number("requests"));
        let svg = chart.series(Series::line("token bucket", [(0.0, 1.0)])).render();
        assert!(svg.contains("role=\"img\"") && svg.contains("<title>Passed</title>"));
        assert!(svg.contains("<desc>requests by time. Series: token bucket.</desc>"), "{svg}");
    }

    #[test]
    fn a_series_without_a_colour_has_that_of_its_place() {
        let line = || Series::line("", []);
        let plain = Chart::new("").series(line()).series(line().color(Color::Denied)).series(line());
        let colors: Vec<_> = plain.series.iter().filter_map(|series| series.color).collect();
        assert_eq!(colors, [Color::Series1, Color::Denied, Color::Series3]);
    }

    #[test]
    fn a_line_outside_a_fixed_range_is_cut_and_a_mark_is_left_out() {
        let points = [(0.0, 0.5), (1.0, 9.0)];
        let svg = Chart::new("cut")
            .y(Axis::number("y").range(0.0, 1.0))
            .series(Series::marks("", Mark::Ring, points).color(Color::Denied))
            .render();
        assert_eq!(drawn(&svg).matches("a3 3 0 1 0 6 0").count(), 1);
    }
}
