//! Numbers and durations as a person would write them: few digits, one unit.

const PREFIXES: [(f64, &str); 4] = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];

/// Units of time: the size from which each is used, so that 90 s stays 90 s, its seconds and its suffix.
const TIME_UNITS: [(f64, f64, &str); 7] = [
    (432_000.0, 86_400.0, " d"),
    (18_000.0, 3_600.0, " h"),
    (300.0, 60.0, " min"),
    (1.0, 1.0, " s"),
    (1e-3, 1e-3, " ms"),
    (1e-6, 1e-6, " µs"),
    (f64::MIN_POSITIVE, 1e-9, " ns"),
];

/// A number in at most three digits and a prefix: `1.5 k`, `2 M`; a dash if it is not finite.
pub fn short_number(value: f64) -> String {
    if value.is_finite() { written(value, 2) } else { "–".to_owned() }
}

/// A duration in at most three digits and the unit that suits it: `1.5 ms`, `20 s`; a dash if it is not finite.
pub(crate) fn short_seconds(seconds: f64) -> String {
    let (unit, suffix) = time_unit(rounded(seconds, 2));
    short_number(seconds / unit) + if seconds.is_finite() { suffix } else { "" }
}

/// The unit in which a duration of this size is written: its seconds and its suffix.
pub(crate) fn time_unit(seconds: f64) -> (f64, &'static str) {
    let fitting = TIME_UNITS.into_iter().find(|&(from, ..)| seconds.abs() >= from);
    fitting.map_or((1.0, " s"), |(_, unit, suffix)| (unit, suffix))
}

/// A tick's value with just the digits that tell it from its neighbours.
pub(crate) fn tick_number(value: f64, step: f64) -> String {
    if value.abs() < step / 2.0 {
        return "0".to_owned();
    }
    // A step is 1, 2 or 5 times a power of ten, but the power may be a little short.
    let digits = value.abs().log10().floor() - (step.log10() + 1e-9).floor();
    written(value, digits.clamp(0.0, 15.0) as usize)
}

/// A number with this many digits after the first, and a prefix that leaves at most two of them decimals.
fn written(value: f64, digits: usize) -> String {
    let value = rounded(value, digits);
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{value:e}");
    }
    let fits = |unit: f64| size >= unit && digits as f64 <= (size / unit).log10().floor() + 2.0;
    match PREFIXES.into_iter().find(|&(unit, _)| fits(unit)) {
        Some((unit, suffix)) => format!("{}{suffix}", value / unit),
        None => value.to_string(),
    }
}

fn rounded(value: f64, digits: usize) -> f64 {
    let rounded = format!("{value:.digits$e}").parse().ok();
    // The largest numbers would become infinite. Adding zero turns -0 into 0.
    rounded.filter(|rounded: &f64| rounded.is_finite()).unwrap_or(value) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let written =
            [0.0, -0.0, 1.0, 0.25, 999.9, 1500.0, 2e6, -12_345.0, 3e9, 1e15, 1e-7].map(short_number);
        assert_eq!(written, ["0", "0", "1", "0.25", "1 k", "1.5 k", "2 M", "-12.3 k", "3 G", "1e15", "1e-7"]);
    }

    #[test]
    fn durations_take_the_unit_that_suits_them() {
        let written = [0.0, 5e-10, 1.5e-3, 0.9999, 90.0, 600.0, 36_000.0, 864_000.0].map(short_seconds);
        assert_eq!(written, ["0 s", "0.5 ns", "1.5 ms", "1 s", "90 s", "10 min", "10 h", "10 d"]);
    }

    #[test]
    fn what_is_not_finite_is_a_dash() {
        assert_eq!(short_number(f64::NAN), "–");
        assert_eq!(short_seconds(f64::INFINITY), "–");
        assert!(short_number(f64::MAX).ends_with("e308"));
    }

    #[test]
    fn ticks_keep_the_digits_that_tell_them_apart() {
        assert_eq!(tick_number(1500.0, 500.0), "1.5 k");
        assert_eq!(tick_number(1001.0, 1.0), "1001");
        assert_eq!(tick_number(0.1 + 0.2, 0.1), "0.3");
        assert_eq!(tick_number(-1e-20, 0.5), "0");
        assert_eq!(tick_number(3e-7, 1e-7), "3e-7");
        assert_eq!(tick_number(1.2e300, 2e299), "1.2e300");
    }
}
