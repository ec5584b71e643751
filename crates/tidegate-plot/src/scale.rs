//! From values to pixels, with the ticks on the way.

use crate::axis::{Axis, Domain, Fit, Growth, Quantity, Ticks};
use crate::number::{tick_number, time_unit};
use crate::ticks;

/// One axis laid over a stretch of pixels.
#[derive(Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    growth: Growth,
    pixels: Pixels,
    pub(crate) ticks: Vec<Tick>,
}

/// Where an axis starts and ends, in pixels; y axes start at the bottom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pixels {
    pub(crate) start: f64,
    pub(crate) end: f64,
}

/// A labelled value.
#[derive(Debug)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

impl Scale {
    /// Lays an axis over pixels, with about as many ticks as wanted.
    pub(crate) fn new(axis: &Axis, domain: Domain, pixels: Pixels, wanted: usize) -> Self {
        let mut scale = match axis.growth {
            Growth::Linear => Self::linear(axis.quantity, domain, pixels, wanted),
            Growth::Log10 => Self::logarithmic(axis.quantity, domain, pixels, wanted),
        };
        if axis.ticks == Ticks::Hidden {
            scale.ticks.clear();
        }
        scale
    }

    /// Gives each name an equal share of the pixels; the first name is at 0, the next at 1.
    pub(crate) fn of_names(names: &[&str], pixels: Pixels) -> Self {
        let tick = |(at, name): (usize, &&str)| Tick { value: at as f64, label: (*name).to_owned() };
        Self {
            low: -0.5,
            high: names.len() as f64 - 0.5,
            growth: Growth::Linear,
            pixels,
            ticks: names.iter().enumerate().map(tick).collect(),
        }
    }

    fn linear(quantity: Quantity, domain: Domain, pixels: Pixels, wanted: usize) -> Self {
        let Domain { mut low, mut high, fit } = domain;
        let (unit, suffix) = match quantity {
            Quantity::Number => (1.0, ""),
            Quantity::Time { seconds } => {
                let unit = time_unit(low.abs().max(high.abs()) * seconds);
                (unit.seconds / seconds, unit.suffix)
            }
        };
        let mut ticks = ticks::linear(low / unit, high / unit, wanted);
        let step = ticks.step;
        if fit == Fit::Round {
            low = (low / unit / step + 1e-6).floor() * step * unit;
            high = (high / unit / step - 1e-6).ceil() * step * unit;
            ticks = ticks::multiples(low / unit, high / unit, step);
        }
        let tick = |value| Tick { value: value * unit, label: tick_number(value, step) + suffix };
        let ticks = ticks.values.into_iter().map(tick).collect();
        Self { low, high, growth: Growth::Linear, pixels, ticks }
    }

    fn logarithmic(quantity: Quantity, domain: Domain, pixels: Pixels, wanted: usize) -> Self {
        let (low, high) = match domain.fit {
            Fit::Tight => (domain.low, domain.high),
            Fit::Round => (ticks::round_down(domain.low), ticks::round_up(domain.high)),
        };
        let values = ticks::logarithmic(low, high, wanted);
        let ticks = values.into_iter().map(|value| Tick { value, label: quantity.write(value) }).collect();
        Self { low, high, growth: Growth::Log10, pixels, ticks }
    }

    /// The pixel of a value, also outside the range; none if the axis cannot show it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !self.growth.accepts(value) {
            return None;
        }
        let share = match self.growth {
            Growth::Linear => (value - self.low) / (self.high - self.low),
            Growth::Log10 => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        Some(self.pixels.start + share * (self.pixels.end - self.pixels.start)).filter(|at| at.is_finite())
    }

    /// The pixel of a value within the range.
    pub(crate) fn place_inside(&self, value: f64) -> Option<f64> {
        let slack = 0.01;
        let (first, last) = (self.pixels.start.min(self.pixels.end), self.pixels.start.max(self.pixels.end));
        self.place(value).filter(|at| (first - slack..=last + slack).contains(at))
    }

    /// The pixel that filled shapes stand on: zero, or the end of the axis nearest to it.
    pub(crate) fn base(&self) -> f64 {
        self.place(0.0_f64.clamp(self.low, self.high)).unwrap_or(self.pixels.start)
    }

    /// The first and the last pixel.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.pixels.start, self.pixels.end)
    }

    /// The distance between two names.
    pub(crate) fn slot(&self) -> f64 {
        (self.pixels.end - self.pixels.start).abs() / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Pixels = Pixels { start: 100.0, end: 0.0 };

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    fn scale(axis: &Axis, values: &[f64]) -> Scale {
        Scale::new(axis, axis.domain(values.iter().copied(), Fit::Round), UP, 5)
    }

    #[test]
    fn values_land_between_the_ends() {
        let scale = scale(&Axis::number("n"), &[10.0]);
        assert_eq!(
            (scale.place(0.0), scale.place(5.0), scale.place(10.0)),
            (Some(100.0), Some(50.0), Some(0.0))
        );
        assert_eq!((scale.place(f64::NAN), scale.place_inside(11.0)), (None, None));
    }

    #[test]
    fn a_round_range_ends_on_ticks() {
        assert_eq!(labels(&scale(&Axis::number("n"), &[1730.0])), ["0", "500", "1 k", "1.5 k", "2 k"]);
        assert_eq!(labels(&scale(&Axis::number("n"), &[-3.0, 4.0])), ["-4", "-2", "0", "2", "4"]);
        assert_eq!(labels(&scale(&Axis::number("n"), &[-3.0, 12.0])), ["-5", "0", "5", "10", "15"]);
    }

    #[test]
    fn time_ticks_share_one_unit() {
        assert_eq!(
            labels(&scale(&Axis::seconds("t"), &[0.4])),
            ["0 ms", "100 ms", "200 ms", "300 ms", "400 ms"]
        );
        assert_eq!(
            labels(&scale(&Axis::milliseconds("t"), &[2000.0])),
            ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"]
        );
        assert_eq!(
            labels(&scale(&Axis::seconds("t"), &[600.0])),
            ["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]
        );
    }

    #[test]
    fn logarithmic_time_names_each_unit() {
        let axis = Axis::nanoseconds("t").log();
        assert_eq!(labels(&scale(&axis, &[120.0, 9e4])), ["100 ns", "1 µs", "10 µs", "100 µs"]);
    }

    #[test]
    fn filled_shapes_stand_on_zero_or_the_nearest_end() {
        assert_eq!(scale(&Axis::number("n"), &[-10.0, 10.0]).base(), 50.0);
        assert_eq!(scale(&Axis::number("n").range(5.0, 10.0), &[]).base(), 100.0);
        assert_eq!(scale(&Axis::number("n").log(), &[1.0, 10.0]).base(), 100.0);
    }
}
