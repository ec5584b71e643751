//! What is drawn: named points in a shape and a colour.

use super::color::Color;

/// A named set of values, and how they are drawn.
///
/// Points are drawn in the order given; a point that is not finite is skipped.
#[derive(Debug, Clone)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) points: Vec<(f64, f64)>,
    /// For bars, the category of each point.
    pub(crate) categories: Vec<String>,
    pub(crate) color: Option<Color>,
    pub(crate) dashed: bool,
}

impl Series {
    /// Points joined by straight lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Line, points)
    }

    /// A value that holds until the next point; the last point only says where the one before it ends.
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Steps, points)
    }

    /// Steps, filled down to zero.
    pub fn area(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Area, points)
    }

    /// A small mark at each point.
    pub fn marks(name: impl Into<String>, mark: Mark, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Marks(mark), points)
    }

    /// One upright bar per category; bars of several series stand side by side.
    ///
    /// The chart's x axis then shows the categories, in the order in which they first appear.
    pub fn bars<C: Into<String>>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = (C, f64)>,
    ) -> Self {
        let (categories, values): (Vec<String>, Vec<f64>) =
            values.into_iter().map(|(category, value)| (category.into(), value)).unzip();
        let points = values.into_iter().enumerate().map(|(place, value)| (place as f64, value));
        Self { categories, ..Self::new(name, Shape::Bars, points) }
    }

    /// Draws in this colour instead of the one that its place among the series gives it.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    /// Draws lines dashed.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    fn new(name: impl Into<String>, shape: Shape, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), shape, points, categories: Vec::new(), color: None, dashed: false }
    }

    pub(crate) fn class(&self) -> &'static str {
        self.color.map_or("", Color::class)
    }

    pub(crate) fn line_class(&self) -> &'static str {
        if self.dashed { "tg-line tg-dashed" } else { "tg-line" }
    }
}

/// How the values of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Line,
    Steps,
    Area,
    Marks(Mark),
    Bars,
}

/// A small sign at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A hollow circle.
    Ring,
    /// A short upright bar.
    Tick,
}

impl Mark {
    /// The outline, from the middle.
    pub(crate) fn outline(self) -> &'static str {
        match self {
            Mark::Ring => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
            Mark::Tick => "m0 -5v10",
        }
    }
}

/// A labelled straight line across a chart.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(crate) label: String,
    /// Where an upright line stands.
    pub(crate) x: Option<f64>,
    /// Where a level line lies.
    pub(crate) y: Option<f64>,
}

impl Reference {
    /// A level line at this y value.
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self { label: label.into(), x: None, y: Some(y) }
    }

    /// An upright line at this x value.
    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self { label: label.into(), x: Some(x), y: None }
    }
}
