//! Where ticks go: at multiples of 1, 2 or 5 times a power of ten.

/// Ticks of a linear axis and the distance between them.
#[derive(Debug)]
pub(crate) struct Ticks {
    pub(crate) values: Vec<f64>,
    pub(crate) step: f64,
}

/// The largest of 1, 2, 5, 10, 20, … that does not exceed a positive value.
pub(crate) fn round_down(value: f64) -> f64 {
    let power = power_of_ten_below(value);
    let leading = value / power * (1.0 + 1e-9);
    [10.0, 5.0, 2.0].into_iter().find(|&digit| digit <= leading).unwrap_or(1.0) * power
}

/// The smallest of 1, 2, 5, 10, 20, … that is not below a positive value.
pub(crate) fn round_up(value: f64) -> f64 {
    let power = power_of_ten_below(value);
    let leading = value / power * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(|&digit| digit >= leading).unwrap_or(10.0) * power
}

/// Round values from `low` to `high`, about as many as wanted and at least two.
pub(crate) fn linear(low: f64, high: f64, wanted: usize) -> Ticks {
    let step = round_up((high - low) / wanted.max(1) as f64);
    let ticks = multiples(low, high, step);
    if ticks.values.len() >= 2 { ticks } else { multiples(low, high, round_down((high - low) / 2.0)) }
}

/// The multiples of a step from `low` to `high`.
pub(crate) fn multiples(low: f64, high: f64, step: f64) -> Ticks {
    let first = (low / step - 1e-6).ceil();
    let last = (high / step + 1e-6).floor();
    let count = (last - first).max(0.0) as usize;
    Ticks { values: (0..=count).map(|n| (first + n as f64) * step).collect(), step }
}

/// Powers of ten from `low` to `high`, with 2 and 5 between them when there is room.
///
/// Falls back to linear ticks where the range holds fewer than two of them.
pub(crate) fn logarithmic(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let decades = last.abs_diff(first) as usize;
    let digits: &[f64] = if decades * 2 <= wanted { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let values: Vec<f64> = (first..=last)
        .step_by(decades.div_ceil(wanted.max(1)).max(1))
        .flat_map(|exponent| digits.iter().map(move |digit| digit * 10f64.powi(exponent)))
        .filter(|value| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value))
        .collect();
    if values.len() < 2 { linear(low, high, wanted).values } else { values }
}

fn power_of_ten_below(value: f64) -> f64 {
    10f64.powi(value.log10().floor() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_one_two_or_five() {
        assert_eq!(linear(0.0, 10.0, 5).values, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear(0.0, 7.0, 8).step, 1.0);
        assert_eq!(linear(-30.0, 130.0, 4).values, [0.0, 50.0, 100.0]);
        assert_eq!(linear(-3.0, -1.0, 4).values, [-3.0, -2.5, -2.0, -1.5, -1.0]);
    }

    #[test]
    fn no_range_is_left_with_one_tick() {
        assert_eq!(linear(0.0, 4.5, 1).values, [0.0, 2.0, 4.0]);
        assert_eq!(linear(3.1, 3.9, 1).values.len(), 4);
    }

    #[test]
    fn huge_and_tiny_ranges_have_a_handful_of_ticks() {
        for (low, high) in [(0.0, 1e300), (-1e300, 1e300), (0.0, 1e-280), (1e9, 1e9 + 1e-2), (-1e-5, 1e-5)] {
            let ticks = linear(low, high, 6).values;
            assert!((2..=8).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| tick.is_finite()));
        }
    }

    #[test]
    fn rounding_keeps_values_that_are_round() {
        for value in [1e-9, 0.2, 5.0, 1e3, 2e6, 5e12] {
            assert!((round_up(value) / value - 1.0).abs() < 1e-9, "{value}");
            assert!((round_down(value) / value - 1.0).abs() < 1e-9, "{value}");
        }
        assert_eq!((round_down(7.0), round_up(7.0)), (5.0, 10.0));
    }

    #[test]
    fn a_logarithmic_axis_shows_decades() {
        assert_eq!(logarithmic(1.0, 1e4, 5), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(logarithmic(1.0, 10.0, 5), [1.0, 2.0, 5.0, 10.0]);
        assert!(logarithmic(1e-290, 1e300, 6).len() <= 7);
        assert!(logarithmic(3.0, 4.0, 5).len() >= 2);
    }
}
