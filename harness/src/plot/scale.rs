//! From values to pixels, with the ticks on the way.
//!
//! A linear axis is laid out by value, a logarithmic one by power of ten; from there on both are the same.

use super::axis::{Axis, Growth};
use super::number::tick_number;
use super::text;

/// Spans below this cannot be divided into ticks.
const SMALLEST: f64 = 1e-280;

/// One axis laid over a stretch of pixels.
#[derive(Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    growth: Growth,
    /// Where the axis starts and ends; y axes start at the bottom.
    pixels: (f64, f64),
    pub(crate) ticks: Vec<Tick>,
}

/// A label at a pixel.
#[derive(Debug)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl Scale {
    /// Lays an axis over pixels; without a fixed range it shows these values, upwards to the next tick.
    pub(crate) fn new(axis: &Axis, values: &[f64], pixels: (f64, f64)) -> Self {
        let position = |value| axis.growth.position(value);
        let fixed = axis.range.and_then(|(low, high)| position(low).zip(position(high)));
        let shown = values.iter().filter_map(|&value| position(value)).map(|at| (at, at));
        let ends = fixed.or_else(|| shown.reduce(|ends, at| (ends.0.min(at.0), ends.1.max(at.1))));
        let (low, high) = widened(ends.unwrap_or((0.0, 1.0)), axis.growth);

        let unit = axis.unit(low.abs().max(high.abs()));
        let upwards = pixels.1 < pixels.0;
        let stretches = ((pixels.1 - pixels.0).abs() / if upwards { 80.0 } else { 160.0 }).max(2.0);
        let step = match axis.growth {
            Growth::Linear => round_down((high - low) / unit.0 / stretches) * unit.0,
            Growth::Log10 => round_down((high - low) / stretches).max(1.0),
        };
        let mut scale = Self { low, high, growth: axis.growth, pixels, ticks: Vec::new() };
        if upwards && fixed.is_none() {
            scale.low = (low / step + 1e-6).floor() * step;
            scale.high = (high / step - 1e-6).ceil() * step;
        }
        scale.ticks = scale.divided(axis, step, stretches, unit);
        scale
    }

    /// Gives each name an equal share of the pixels; the first name is at 0, the next at 1.
    pub(crate) fn of_names(names: &[&str], pixels: (f64, f64)) -> Self {
        let high = names.len() as f64 - 0.5;
        let mut scale = Self { low: -0.5, high, growth: Growth::Linear, pixels, ticks: Vec::new() };
        let tick = |(slot, name): (usize, &&str)| {
            let label = text::fit(name, scale.slot() - 6.0, 11.0);
            Some(Tick { at: scale.place(slot as f64)?, label })
        };
        scale.ticks = names.iter().enumerate().filter_map(tick).collect();
        scale
    }

    /// Ticks at the multiples of a step; between few powers of ten, also at 2 and 5 times them.
    fn divided(&self, axis: &Axis, step: f64, stretches: f64, (unit, suffix): (f64, &str)) -> Vec<Tick> {
        let first = (self.low / step).floor();
        let count = ((self.high / step).ceil() - first) as usize;
        let multiples = (0..=count).map(|n| (first + n as f64) * step);
        let tick = |value, label| Some(Tick { at: self.place_inside(value)?, label });
        if self.growth == Growth::Linear {
            let label = |value| tick_number(value / unit, step / unit) + suffix;
            return multiples.filter_map(|value| tick(value, label(value))).collect();
        }
        let digits: &[f64] = if self.high - self.low <= stretches { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let values = multiples.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powf(power)));
        values.filter_map(|value| tick(value, axis.write(value))).collect()
    }

    /// The pixel of a value, also outside the range; none if the axis cannot show it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let share = (self.growth.position(value)? - self.low) / (self.high - self.low);
        Some(self.pixels.0 + share * (self.pixels.1 - self.pixels.0)).filter(|at| at.is_finite())
    }

    /// The pixel of a value within the range.
    pub(crate) fn place_inside(&self, value: f64) -> Option<f64> {
        let (first, last) = (self.pixels.0.min(self.pixels.1), self.pixels.0.max(self.pixels.1));
        self.place(value).filter(|at| (first - 0.01..=last + 0.01).contains(at))
    }

    /// The pixel that filled shapes of a y axis stand on: zero, or the end of the axis nearest to it.
    pub(crate) fn base(&self) -> f64 {
        self.place(0.0).map_or(self.pixels.0, |zero| zero.clamp(self.pixels.1, self.pixels.0))
    }

    /// The distance between two names.
    pub(crate) fn slot(&self) -> f64 {
        (self.pixels.1 - self.pixels.0) / (self.high - self.low)
    }
}

/// The range itself, or a longer one around it if it has no length.
fn widened((low, high): (f64, f64), growth: Growth) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    match growth {
        _ if high - low > SMALLEST.max(size * 1e-12) => (low, high),
        Growth::Log10 => (low - 0.5, high + 0.5),
        Growth::Linear if size <= SMALLEST => (0.0, 1.0),
        Growth::Linear => (low - size / 2.0, high + size / 2.0),
    }
}

/// The largest of 1, 2, 5, 10, 20, … that does not exceed a positive value.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let leading = value / power * (1.0 + 1e-9);
    [10.0, 5.0, 2.0].into_iter().find(|&digit| digit <= leading).unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    /// A y axis with almost three stretches or more.
    fn scale(axis: &Axis, values: &[f64]) -> Scale {
        Scale::new(axis, values, (230.0, 0.0))
    }

    fn with_zero(axis: &Axis, values: &[f64]) -> Scale {
        scale(axis, &[&[0.0], values].concat())
    }

    fn range(axis: &Axis, values: &[f64]) -> (f64, f64) {
        let scale = scale(axis, values);
        (scale.low, scale.high)
    }

    #[test]
    fn values_land_between_the_ends() {
        let scale = with_zero(&Axis::number("n"), &[10.0]);
        assert_eq!(
            (scale.place(0.0), scale.place(5.0), scale.place(10.0)),
            (Some(230.0), Some(115.0), Some(0.0))
        );
        assert_eq!((scale.place(f64::NAN), scale.place_inside(11.0)), (None, None));
    }

    #[test]
    fn a_round_range_ends_on_ticks() {
        assert_eq!(labels(&with_zero(&Axis::number("n"), &[1730.0])), ["0", "500", "1 k", "1.5 k", "2 k"]);
        assert_eq!(labels(&with_zero(&Axis::number("n"), &[-3.0, 4.0])), ["-4", "-2", "0", "2", "4"]);
        assert_eq!(labels(&with_zero(&Axis::number("n"), &[-3.0, 12.0])), ["-5", "0", "5", "10", "15"]);
    }

    #[test]
    fn an_x_axis_ends_with_its_values() {
        let scale = Scale::new(&Axis::seconds("t"), &[0.5, 61.0], (0.0, 400.0));
        assert_eq!((scale.low, scale.high), (0.5, 61.0));
        assert_eq!(labels(&scale), ["20 s", "40 s", "60 s"]);
    }

    #[test]
    fn time_ticks_share_one_unit() {
        assert_eq!(
            labels(&with_zero(&Axis::seconds("t"), &[0.4])),
            ["0 ms", "100 ms", "200 ms", "300 ms", "400 ms"]
        );
        assert_eq!(
            labels(&with_zero(&Axis::milliseconds("t"), &[2000.0])),
            ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"]
        );
        assert_eq!(
            labels(&with_zero(&Axis::seconds("t"), &[600.0])),
            ["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]
        );
    }

    #[test]
    fn logarithmic_time_names_each_unit() {
        let axis = Axis::nanoseconds("t").log();
        assert_eq!(labels(&with_zero(&axis, &[120.0, 9e4])), ["100 ns", "1 µs", "10 µs", "100 µs"]);
    }

    #[test]
    fn filled_shapes_stand_on_zero_or_the_nearest_end() {
        assert_eq!(with_zero(&Axis::number("n"), &[-10.0, 10.0]).base(), 115.0);
        assert_eq!(with_zero(&Axis::number("n").range(5.0, 10.0), &[]).base(), 230.0);
        assert_eq!(with_zero(&Axis::number("n").log(), &[1.0, 10.0]).base(), 230.0);
    }

    #[test]
    fn a_range_is_never_without_length() {
        let linear = Axis::number("n");
        assert_eq!(range(&linear, &[]), (0.0, 1.0));
        assert_eq!(range(&linear, &[0.0]), (0.0, 1.0));
        assert_eq!(range(&linear, &[8.0]), (4.0, 12.0));
        assert_eq!(range(&linear, &[-8.0]), (-12.0, -4.0));
        assert_eq!(range(&linear, &[5e-324]), (0.0, 1.0));
        assert_eq!(range(&linear.range(3.0, 3.0), &[]), (1.5, 4.5));
        assert_eq!(
            labels(&scale(&Axis::number("n").log(), &[10.0])),
            ["1", "2", "5", "10", "20", "50", "100"]
        );
    }

    #[test]
    fn values_that_cannot_be_shown_do_not_count() {
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0, 2.0, 4.0];
        assert_eq!(range(&Axis::number("n"), &odd), (-1.0, 4.0));
        assert_eq!(range(&Axis::number("n").log(), &odd), (0.0, 1.0));
    }

    #[test]
    fn a_wish_that_cannot_be_shown_is_ignored() {
        let values = [0.0, 1.0, 2.0];
        assert_eq!(range(&Axis::number("n").range(f64::NAN, 9.0), &values), (0.0, 2.0));
        assert_eq!(range(&Axis::number("n").range(0.0, 9.0).log(), &values), (0.0, 1.0));
        assert_eq!(range(&Axis::number("n").range(9.0, 3.0), &values), (3.0, 9.0));
    }

    #[test]
    fn a_range_that_grows_to_its_next_tick_keeps_its_unit() {
        assert_eq!(labels(&with_zero(&Axis::seconds("t"), &[290.0])), ["0 s", "100 s", "200 s", "300 s"]);
    }

    #[test]
    fn no_range_is_left_with_one_tick() {
        assert_eq!(labels(&scale(&Axis::number("n").range(0.0, 4.5), &[])), ["0", "1", "2", "3", "4"]);
        assert!(scale(&Axis::number("n").range(3.1, 3.9), &[]).ticks.len() >= 2);
        assert_eq!(labels(&scale(&Axis::number("n").range(-30.0, 130.0), &[])), ["0", "50", "100"]);
    }

    #[test]
    fn huge_and_tiny_ranges_have_a_handful_of_ticks() {
        for (low, high) in [(0.0, 1e300), (-1e300, 1e300), (0.0, 1e-280), (1e9, 1e9 + 1e-2), (-1e-5, 1e-5)] {
            let ticks = scale(&Axis::number("n").range(low, high), &[]).ticks;
            assert!((2..=9).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| tick.at.is_finite()));
        }
    }

    #[test]
    fn rounding_keeps_values_that_are_round() {
        for value in [1e-9, 0.2, 5.0, 1e3, 2e6, 5e12] {
            assert!((round_down(value) / value - 1.0).abs() < 1e-9, "{value}");
        }
        assert_eq!(round_down(7.0), 5.0);
    }

    #[test]
    fn a_logarithmic_axis_shows_decades() {
        let log = |low, high| scale(&Axis::number("n").log(), &[low, high]);
        assert_eq!(labels(&log(1.0, 1e4)), ["1", "10", "100", "1 k", "10 k"]);
        assert_eq!(labels(&log(3.0, 7.0)), ["1", "2", "5", "10"]);
        assert!(log(1e-290, 1e300).ticks.len() <= 9);
        assert_eq!(labels(&scale(&Axis::number("n").log().range(3.0, 40.0), &[])), ["5", "10", "20"]);
    }
}
