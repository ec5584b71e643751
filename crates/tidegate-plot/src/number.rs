//! Numbers and durations as a person would write them: few digits, one unit.

const MISSING: &str = "–";

const PREFIXES: [(f64, &str); 5] = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")];

/// A unit of time is used once a value reaches its `from`, so that 90 s stays 90 s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeUnit {
    pub(crate) seconds: f64,
    pub(crate) suffix: &'static str,
    from: f64,
}

const TIME_UNITS: [TimeUnit; 7] = [
    TimeUnit { seconds: 86_400.0, suffix: " d", from: 432_000.0 },
    TimeUnit { seconds: 3_600.0, suffix: " h", from: 18_000.0 },
    TimeUnit { seconds: 60.0, suffix: " min", from: 300.0 },
    TimeUnit { seconds: 1.0, suffix: " s", from: 1.0 },
    TimeUnit { seconds: 1e-3, suffix: " ms", from: 1e-3 },
    TimeUnit { seconds: 1e-6, suffix: " µs", from: 1e-6 },
    TimeUnit { seconds: 1e-9, suffix: " ns", from: 0.0 },
];

const SECOND: TimeUnit = TIME_UNITS[3];

/// A number in at most three digits and a prefix: `1.5 k`, `2 M`; a dash if it is not finite.
pub fn short_number(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let rounded = three_digits(value);
    let size = rounded.abs();
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return scientific(rounded, 2);
    }
    let (unit, suffix) = prefix(|unit| size >= unit);
    format!("{}{suffix}", trimmed(rounded / unit, 5))
}

/// A duration in at most three digits and the unit that suits it: `1.5 ms`, `20 s`; a dash if it is not finite.
pub fn short_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return MISSING.to_owned();
    }
    let rounded = three_digits(seconds);
    let unit = time_unit(rounded);
    format!("{}{}", short_number(rounded / unit.seconds), unit.suffix)
}

/// The unit in which a duration of this size is written.
pub(crate) fn time_unit(seconds: f64) -> TimeUnit {
    let size = seconds.abs();
    if size == 0.0 {
        return SECOND;
    }
    TIME_UNITS.into_iter().find(|unit| size >= unit.from).unwrap_or(SECOND)
}

/// A tick's value with just the digits that tell it from its neighbours.
pub(crate) fn tick_number(value: f64, step: f64) -> String {
    if value.abs() < step / 2.0 {
        return "0".to_owned();
    }
    let size = value.abs();
    if size >= 1e15 || step < 1e-4 {
        let digits = (size.log10().floor() - step.log10().floor()).clamp(0.0, 15.0);
        return scientific(value, digits as usize);
    }
    let (unit, suffix) = prefix(|unit| size >= unit && (unit == 1.0 || decimals(step / unit) <= 2));
    format!("{}{suffix}", trimmed(value / unit, decimals(step / unit)))
}

fn prefix(fits: impl Fn(f64) -> bool) -> (f64, &'static str) {
    PREFIXES.into_iter().find(|&(unit, _)| fits(unit)).unwrap_or((1.0, ""))
}

/// Decimal places in which a step of 1, 2 or 5 times a power of ten is exact.
fn decimals(step: f64) -> usize {
    (-(step.log10() + 1e-9).floor()).max(0.0) as usize
}

fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn scientific(value: f64, digits: usize) -> String {
    let written = format!("{value:.digits$e}");
    match written.split_once('e') {
        Some((mantissa, exponent)) => format!("{}e{exponent}", without_trailing_zeros(mantissa)),
        None => written,
    }
}

fn trimmed(value: f64, decimals: usize) -> String {
    let written = format!("{value:.decimals$}");
    match without_trailing_zeros(&written) {
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

fn without_trailing_zeros(written: &str) -> &str {
    if written.contains('.') { written.trim_end_matches('0').trim_end_matches('.') } else { written }
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
