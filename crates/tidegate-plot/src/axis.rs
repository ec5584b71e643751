//! What an axis measures, and which part of it is shown.

use crate::number::{short_number, short_seconds};

/// Larger values are treated as not finite, so that spans and sums stay finite.
const LARGEST: f64 = 1e300;

/// Spans below this cannot be divided into ticks.
const SMALLEST: f64 = 1e-280;

/// One axis of a chart: its label, what its numbers mean and the range it shows.
///
/// Without a [`range`](Axis::range) it shows all data; a linear y axis then also shows zero.
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) quantity: Quantity,
    pub(crate) growth: Growth,
    pub(crate) ticks: Ticks,
    range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis of plain numbers.
    pub fn number(label: impl Into<String>) -> Self {
        Self::new(label.into(), Quantity::Number)
    }

    /// An axis of time whose values are seconds; ticks use the unit that suits the range.
    pub fn seconds(label: impl Into<String>) -> Self {
        Self::new(label.into(), Quantity::Time { seconds: 1.0 })
    }

    /// An axis of time whose values are milliseconds; ticks use the unit that suits the range.
    pub fn milliseconds(label: impl Into<String>) -> Self {
        Self::new(label.into(), Quantity::Time { seconds: 1e-3 })
    }

    /// An axis of time whose values are nanoseconds; ticks use the unit that suits the range.
    pub fn nanoseconds(label: impl Into<String>) -> Self {
        Self::new(label.into(), Quantity::Time { seconds: 1e-9 })
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

    /// Leaves out the ticks, for an axis whose values mean nothing by themselves.
    #[must_use]
    pub fn without_ticks(mut self) -> Self {
        self.ticks = Ticks::Hidden;
        self
    }

    fn new(label: String, quantity: Quantity) -> Self {
        Self { label, quantity, growth: Growth::Linear, range: None, ticks: Ticks::Shown }
    }

    /// The range to show for these values.
    pub(crate) fn domain(&self, values: impl Iterator<Item = f64>, fit: Fit) -> Domain {
        if let Some((low, high)) = self.range.filter(|&(low, high)| self.shows(low) && self.shows(high)) {
            return self.widened(Domain { low, high, fit: Fit::Tight });
        }
        let zero = (fit == Fit::Round && self.growth == Growth::Linear).then_some(0.0);
        let shown = zero.into_iter().chain(values.filter(|&value| self.shows(value)));
        let (low, high) = shown
            .map(|value| (value, value))
            .reduce(|range, value| (range.0.min(value.0), range.1.max(value.1)))
            .unwrap_or(self.growth.empty());
        self.widened(Domain { low, high, fit })
    }

    fn shows(&self, value: f64) -> bool {
        value.abs() <= LARGEST && self.growth.accepts(value)
    }

    /// A range of no length is given one.
    fn widened(&self, domain: Domain) -> Domain {
        let Domain { low, high, fit } = domain;
        let size = low.abs().max(high.abs());
        if high - low > SMALLEST.max(size * 1e-12) {
            return domain;
        }
        let (low, high) = match self.growth {
            Growth::Log10 => (low / 2.0, high * 2.0),
            Growth::Linear if size <= SMALLEST => (0.0, 1.0),
            Growth::Linear => (low - size / 2.0, high + size / 2.0),
        };
        Domain { low, high, fit }
    }
}

/// What the numbers of an axis mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Quantity {
    Number,
    Time { seconds: f64 },
}

impl Quantity {
    /// A value in at most three digits.
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Quantity::Number => short_number(value),
            Quantity::Time { seconds } => short_seconds(value * seconds),
        }
    }
}

/// Whether an axis is marked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ticks {
    Shown,
    Hidden,
}

/// How values grow along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Linear,
    Log10,
}

impl Growth {
    pub(crate) fn accepts(self, value: f64) -> bool {
        value.is_finite() && (self == Growth::Linear || value > SMALLEST)
    }

    fn empty(self) -> (f64, f64) {
        match self {
            Growth::Linear => (0.0, 1.0),
            Growth::Log10 => (1.0, 10.0),
        }
    }
}

/// Whether a range ends with the data or at the next round value, zero included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Tight,
    Round,
}

/// A range that can be divided into ticks: finite, `low` below `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Domain {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) fit: Fit,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(axis: &Axis, values: &[f64], fit: Fit) -> (f64, f64) {
        let domain = axis.domain(values.iter().copied(), fit);
        (domain.low, domain.high)
    }

    #[test]
    fn a_range_is_never_without_length() {
        let linear = Axis::number("n");
        assert_eq!(range(&linear, &[], Fit::Tight), (0.0, 1.0));
        assert_eq!(range(&linear, &[0.0], Fit::Round), (0.0, 1.0));
        assert_eq!(range(&linear, &[8.0], Fit::Tight), (4.0, 12.0));
        assert_eq!(range(&linear, &[-8.0], Fit::Tight), (-12.0, -4.0));
        assert_eq!(range(&linear, &[5e-324], Fit::Tight), (0.0, 1.0));
        assert_eq!(range(&linear.range(3.0, 3.0), &[], Fit::Tight), (1.5, 4.5));
        assert_eq!(range(&Axis::number("n").log(), &[8.0], Fit::Round), (4.0, 16.0));
    }

    #[test]
    fn values_that_cannot_be_shown_do_not_count() {
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0, 2.0, 4.0];
        assert_eq!(range(&Axis::number("n"), &odd, Fit::Tight), (-1.0, 4.0));
        assert_eq!(range(&Axis::number("n").log(), &odd, Fit::Tight), (2.0, 4.0));
    }

    #[test]
    fn a_wish_that_cannot_be_shown_is_ignored() {
        let values = [1.0, 2.0];
        assert_eq!(range(&Axis::number("n").range(f64::NAN, 9.0), &values, Fit::Round), (0.0, 2.0));
        assert_eq!(range(&Axis::number("n").range(0.0, 9.0).log(), &values, Fit::Round), (1.0, 2.0));
        assert_eq!(range(&Axis::number("n").range(9.0, 3.0), &values, Fit::Round), (3.0, 9.0));
    }
}
