//! A line to compare with, such as the limit.

use crate::color::Color;

/// A labelled straight line across a chart.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(crate) label: String,
    /// Where an upright line stands.
    pub(crate) x: Option<f64>,
    /// Where a level line lies.
    pub(crate) y: Option<f64>,
    pub(crate) color: Color,
}

impl Reference {
    /// A level line at this y value.
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self { label: label.into(), x: None, y: Some(y), color: Color::Reference }
    }

    /// An upright line at this x value.
    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self { label: label.into(), x: Some(x), y: None, color: Color::Reference }
    }

    /// Draws the line in another colour.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = color;
        self
    }
}
