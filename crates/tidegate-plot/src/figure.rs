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

use crate::axis::{Axis, Fit};
use crate::chart::Chart;
use crate::foot::Foot;
use crate::head::Head;
use crate::plot::Plot;
use crate::scale::{Pixels, Scale};
use crate::svg::{Anchor, Area, Label, Svg};
use crate::text;

const MARGIN: f64 = 16.0;
const HEADING: f64 = 24.0;
const BETWEEN_PANELS: f64 = 10.0;
const SMALLEST_PLOT: f64 = 40.0;
const NOTE_LINE: f64 = 16.0;

/// One or more charts over a common x axis.
#[derive(Debug)]
pub(crate) struct Figure<'a> {
    pub(crate) title: &'a str,
    pub(crate) subtitle: &'a str,
    pub(crate) description: &'a str,
    pub(crate) width: f64,
    pub(crate) stack: Stack,
    pub(crate) x: &'a Axis,
    pub(crate) charts: &'a [Chart],
}

/// How the height is divided.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stack {
    /// One plot takes what the text leaves of the whole height.
    Single { height: f64 },
    /// Each plot has this height, and a heading.
    Panels { height: f64 },
}

/// A chart with its place on the page.
struct Row<'a> {
    chart: &'a Chart,
    notes: Vec<String>,
    y: Scale,
    top: f64,
    height: f64,
}

impl<'a> Figure<'a> {
    pub(crate) fn render(&self) -> String {
        let page = self.width.clamp(240.0, 10_000.0);
        let head = Head::new(self.title, self.subtitle, self.charts, page - 2.0 * MARGIN);
        let names = self.names();
        let notes_width = self.notes_width(page);
        let slot = (page - notes_width - 90.0) / names.len().max(1) as f64;
        let foot = Foot::new(&self.x.label, &names, slot);

        let rows = self.rows(MARGIN + head.height(), foot.height() + MARGIN / 2.0, notes_width);
        let left = self.left_edge(&rows).max(foot.reach() - slot / 2.0 + 4.0);
        let right = page - MARGIN - notes_width;
        let x = self.x_scale(&names, Pixels { start: left, end: right.max(left + SMALLEST_PLOT) });
        let bottom = rows.last().map_or(MARGIN + head.height() + SMALLEST_PLOT, |row| row.top + row.height);

        let height = bottom + foot.height() + MARGIN / 2.0;
        let mut svg = Svg::open(page, height, self.title, &self.spoken());
        head.draw(&mut svg, MARGIN, MARGIN - 4.0);
        for row in &rows {
            self.draw_row(&mut svg, row, &x, &names);
        }
        let (start, end) = x.ends();
        let last = Area { left: start, top: bottom, width: end - start, height: 0.0 };
        if rows.is_empty() {
            svg.text(&Label::new("tg-quiet", "no data", MARGIN, bottom));
        } else {
            foot.draw(&mut svg, &x, last, page);
        }
        svg.finish()
    }

    /// The categories of all bars, in the order in which they first appear.
    fn names(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        let series = self.charts.iter().flat_map(|chart| &chart.series);
        for (name, _) in series.flat_map(|series| series.bars_by_category()) {
            if !names.contains(&name.as_str()) {
                names.push(name.as_str());
            }
        }
        names
    }

    fn notes_width(&self, page: f64) -> f64 {
        let notes = self.charts.iter().flat_map(|chart| &chart.notes);
        let widest = notes.map(|note| text::width(note, 12.0)).fold(0.0, f64::max);
        if widest > 0.0 { widest.min(page * 0.3) + MARGIN } else { 0.0 }
    }

    /// Places the charts below each other, between a head and a foot of these heights.
    fn rows(&self, head: f64, foot: f64, notes_width: f64) -> Vec<Row<'a>> {
        let mut top = head;
        let place = |chart: &'a Chart| {
            let notes: Vec<String> =
                chart.notes.iter().flat_map(|note| text::wrap(note, notes_width - MARGIN, 12.0)).collect();
            let height = match self.stack {
                Stack::Single { height } => height.min(10_000.0) - head - foot,
                Stack::Panels { height } => {
                    top += HEADING;
                    height.min(10_000.0)
                }
            };
            let height = height.max(SMALLEST_PLOT).max(notes.len() as f64 * NOTE_LINE);
            let domain = chart.y.domain(chart.y_values(), Fit::Round);
            let pixels = Pixels { start: top + height, end: top };
            let y = Scale::new(&chart.y, domain, pixels, (height / 44.0) as usize);
            let row = Row { chart, notes, y, top, height };
            top += height + BETWEEN_PANELS;
            row
        };
        self.charts.iter().map(place).collect()
    }

    /// Where the plots begin: right of the widest tick label and, if there is one, the axis label.
    fn left_edge(&self, rows: &[Row<'_>]) -> f64 {
        let ticks = rows.iter().flat_map(|row| &row.y.ticks);
        let widest = ticks.map(|tick| text::width(&tick.label, 11.0) + 8.0).fold(0.0, f64::max);
        let labelled = self.charts.iter().any(|chart| !chart.y.label.is_empty());
        MARGIN + widest + if labelled { 20.0 } else { 0.0 }
    }

    fn x_scale(&self, names: &[&str], pixels: Pixels) -> Scale {
        if !names.is_empty() {
            return Scale::of_names(names, pixels);
        }
        let domain = self.x.domain(self.charts.iter().flat_map(Chart::x_values), Fit::Tight);
        Scale::new(self.x, domain, pixels, ((pixels.end - pixels.start) / 80.0) as usize)
    }

    fn draw_row(&self, svg: &mut Svg, row: &Row<'_>, x: &Scale, names: &[&str]) {
        let (left, right) = x.ends();
        let area = Area { left, top: row.top, width: right - left, height: row.height };
        if let Stack::Panels { .. } = self.stack {
            draw_heading(svg, row.chart, area);
        }
        Plot { area, x, y: &row.y }.draw(svg, row.chart, names);
        for tick in &row.y.ticks {
            let Some(y) = row.y.place_inside(tick.value) else { continue };
            svg.text(&Label::new("tg-tick", &tick.label, left - 6.0, y + 4.0).anchor(Anchor::End));
        }
        let label = text::fit(&row.chart.y.label, area.height + HEADING, 12.0);
        let middle = Label::new("", &label, MARGIN + 8.0, area.top + area.height / 2.0);
        svg.text(&middle.anchor(Anchor::Middle).turn(-90));
        for (line, note) in row.notes.iter().enumerate() {
            svg.text(&Label::new("", note, right + MARGIN, area.top + 11.0 + line as f64 * NOTE_LINE));
        }
    }

    /// What a screen reader says: the words given, or what the picture shows.
    fn spoken(&self) -> String {
        if !self.description.is_empty() {
            return self.description.to_owned();
        }
        let mut headings: Vec<&str> = Vec::new();
        let mut series: Vec<&str> = Vec::new();
        for chart in self.charts {
            headings.push(&chart.title);
            series.extend(chart.series.iter().map(|one| one.name.as_str()));
        }
        let axes = match (self.stack, self.charts) {
            (Stack::Single { .. }, [chart]) => listed("", &[&chart.y.label, &self.x.label], " by "),
            _ => listed("Panels: ", &headings, ", "),
        };
        listed("", &[self.subtitle, &axes, &listed("Series: ", &series, ", ")], ". ") + "."
    }
}

/// The words that are not empty, each once, after an introduction; nothing if there are none.
fn listed(introduction: &str, words: &[&str], between: &str) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for word in words {
        if !word.is_empty() && !distinct.contains(word) {
            distinct.push(word);
        }
    }
    if distinct.is_empty() { String::new() } else { introduction.to_owned() + &distinct.join(between) }
}

fn draw_heading(svg: &mut Svg, chart: &Chart, area: Area) {
    let heading = text::fit(&chart.title, area.width, 13.0);
    let rest = area.width - text::width(&heading, 13.0) - 12.0;
    svg.text(&Label::new("tg-heading", &heading, area.left, area.top - 8.0));
    if rest > 40.0 {
        let subtitle = text::fit(&chart.subtitle, rest, 12.0);
        svg.text(&Label::new("tg-quiet", &subtitle, area.right(), area.top - 8.0).anchor(Anchor::End));
    }
}
