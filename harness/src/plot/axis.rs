//! What an axis measures, and which part of it is shown.

use super::number::{short_number, short_seconds, time_unit};

/// One axis of a chart: its label, what its numbers mean and the range it shows.
///
/// Without a [`range`](Axis::range) it shows all data; a linear y axis then also shows zero.
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) label: String,
    /// How many seconds a value of one is, if the axis measures time.
    seconds: Option<f64>,
    pub(crate) growth: Growth,
    pub(crate) range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis of plain numbers.
    pub fn number(label: impl Into<String>) -> Self {
        Self { label: label.into(), seconds: None, growth: Growth::Linear, range: None }
    }

    /// An axis of time whose values are seconds; ticks use the unit that suits the range.
    pub fn seconds(label: impl Into<String>) -> Self {
        Self { seconds: Some(1.0), ..Self::number(label) }
    }

    /// An axis of time whose values are milliseconds; ticks use the unit that suits the range.
    pub fn milliseconds(label: impl Into<String>) -> Self {
        Self { seconds: Some(1e-3), ..Self::number(label) }
    }

    /// An axis of time whose values are nanoseconds; ticks use the unit that suits the range.
    pub fn nanoseconds(label: impl Into<String>) -> Self {
        Self { seconds: Some(1e-9), ..Self::number(label) }
    }

    /// Shows exactly this range; what lies outside is cut off.
    ///
    /// A range that cannot be shown (not finite, or not positive on a logarithmic axis) is ignored.
    #[must_use]
    pub fn range(mut self, from: f64, to: f64) -> Self {
        self.range = Some(if from <= to { (from, to) } else { (to, from) });
        self
    }

    /// Makes each power of ten equally long; values that are not positive are skipped.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.growth = Growth::Log10;
        self
    }

    /// The unit in which ticks up to this value are written, as a value, and its suffix.
    pub(crate) fn unit(&self, largest: f64) -> (f64, &'static str) {
        let Some(seconds) = self.seconds else { return (1.0, "") };
        let (unit, suffix) = time_unit(largest * seconds);
        (unit / seconds, suffix)
    }

    /// A value in at most three digits.
    pub(crate) fn write(&self, value: f64) -> String {
        self.seconds.map_or_else(|| short_number(value), |seconds| short_seconds(value * seconds))
    }
}

/// How values grow along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Linear,
    Log10,
}

impl Growth {
    /// Where a value lies on the axis, if it can be shown: at itself, or at its power of ten.
    ///
    /// Huge values count as not finite, so that spans and sums stay finite.
    pub(crate) fn position(self, value: f64) -> Option<f64> {
        let position = if self == Growth::Log10 { value.log10() } else { value };
        Some(position).filter(|position| position.is_finite() && value.abs() <= 1e300)
    }
}
