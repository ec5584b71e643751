//! What is drawn: named points in a shape and a colour.

use crate::color::Color;
use crate::svg::Path;

/// A named set of values, and how they are drawn.
///
/// Points are drawn in the order given; a point that is not finite is skipped.
#[derive(Debug, Clone)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) color: Option<Color>,
    stroke: Stroke,
}

impl Series {
    /// Points joined by straight lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name.into(), Shape::Line(points.into_iter().collect()))
    }

    /// A value that holds until the next point; the last point only says where the one before it ends.
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name.into(), Shape::Steps(points.into_iter().collect()))
    }

    /// Steps, filled down to zero.
    pub fn area(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name.into(), Shape::Area(points.into_iter().collect()))
    }

    /// A small mark at each point.
    pub fn marks(name: impl Into<String>, mark: Mark, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name.into(), Shape::Marks(mark, points.into_iter().collect()))
    }

    /// One upright bar per category; bars of several series stand side by side.
    ///
    /// The chart's x axis then shows the categories, in the order in which they first appear.
    pub fn bars<C: Into<String>>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = (C, f64)>,
    ) -> Self {
        let bars = values.into_iter().map(|(category, value)| (category.into(), value)).collect();
        Self::new(name.into(), Shape::Bars(bars))
    }

    /// Draws in this colour instead of one that no other series has.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = Some(color);
        self
    }

    /// Draws lines dashed.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.stroke = Stroke::Dashed;
        self
    }

    fn new(name: String, shape: Shape) -> Self {
        Self { name, shape, color: None, stroke: Stroke::Solid }
    }

    pub(crate) fn line_class(&self) -> &'static str {
        match self.stroke {
            Stroke::Solid => "tg-line",
            Stroke::Dashed => "tg-line tg-dashed",
        }
    }

    /// Its points; bars have none, their place depends on the categories.
    pub(crate) fn points(&self) -> &[(f64, f64)] {
        match &self.shape {
            Shape::Line(points) | Shape::Steps(points) | Shape::Area(points) | Shape::Marks(_, points) => {
                points
            }
            Shape::Bars(_) => &[],
        }
    }

    pub(crate) fn bars_by_category(&self) -> &[(String, f64)] {
        match &self.shape {
            Shape::Bars(bars) => bars,
            _ => &[],
        }
    }

    pub(crate) fn y_values(&self) -> impl Iterator<Item = f64> {
        let points = self.points().iter().filter(|(x, _)| x.is_finite()).map(|&(_, y)| y);
        points.chain(self.bars_by_category().iter().map(|&(_, y)| y))
    }
}

/// How the values of a series are drawn.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Line(Vec<(f64, f64)>),
    Steps(Vec<(f64, f64)>),
    Area(Vec<(f64, f64)>),
    Marks(Mark, Vec<(f64, f64)>),
    Bars(Vec<(String, f64)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stroke {
    Solid,
    Dashed,
}

/// A small sign at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A filled circle.
    Dot,
    /// A hollow circle.
    Ring,
    /// A diagonal cross.
    Cross,
    /// A short upright bar.
    Tick,
}

impl Mark {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Mark::Dot => "tg-fill",
            Mark::Ring | Mark::Cross | Mark::Tick => "tg-glyph",
        }
    }

    pub(crate) fn outline(self, path: &mut Path, x: f64, y: f64) {
        match self {
            Mark::Dot | Mark::Ring => {
                path.move_to(x - 3.0, y);
                path.then("a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z");
            }
            Mark::Cross => {
                path.move_to(x - 3.0, y - 3.0);
                path.then("l6 6m0 -6l-6 6");
            }
            Mark::Tick => {
                path.move_to(x, y - 5.0);
                path.then("v10");
            }
        }
    }
}
