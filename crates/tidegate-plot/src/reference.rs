//! A line to compare with, such as the limit.

use crate::color::Color;

/// A labelled straight line across a chart.
#[derive(Debug, Clone)]
pub struct Reference {
    pub(crate) label: String,
    pub(crate) position: Position,
    pub(crate) color: Color,
}

impl Reference {
    /// A level line at this y value.
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self { label: label.into(), position: Position::Y(y), color: Color::Reference }
    }

    /// An upright line at this x value.
    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self { label: label.into(), position: Position::X(x), color: Color::Reference }
    }

    /// Draws the line in another colour.
    #[must_use]
    pub fn color(mut self, color: Color) -> Self {
        self.color = color;
        self
    }

    pub(crate) fn x(&self) -> Option<f64> {
        match self.position {
            Position::X(x) => Some(x),
            Position::Y(_) => None,
        }
    }

    pub(crate) fn y(&self) -> Option<f64> {
        match self.position {
            Position::X(_) => None,
            Position::Y(y) => Some(y),
        }
    }
}

/// The axis a reference line stands on, and where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Position {
    X(f64),
    Y(f64),
}
