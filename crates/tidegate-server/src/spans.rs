//! Formats times and numbers for people.
//!
//! Spans are rounded up, so that a reader who waits for a span is never too early.

use std::time::Duration;

/// Units of a rate, in microseconds.
const UNITS: [(&str, u128); 7] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Formats a time with its two largest units, rounded up: `1m30s`.
///
/// A time of less than one microsecond is shown as one microsecond, and zero as `0s`.
pub(crate) fn span(time: Duration) -> String {
    let micros = time.as_nanos().div_ceil(1000);
    let Some(first) = UNITS.iter().position(|(_, unit)| micros >= *unit) else { return "0s".to_owned() };
    let least = UNITS[(first + 1).min(UNITS.len() - 1)].1;
    let mut rest = micros.div_ceil(least) * least;
    let mut text = String::new();
    for (name, unit) in UNITS.iter().skip(first.saturating_sub(1)).filter(|(_, unit)| *unit >= least) {
        if rest >= *unit {
            text += &format!("{}{name}", rest / unit);
            rest %= unit;
        }
    }
    text
}

/// Formats a number with a comma after every three digits.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_two_largest_units_and_is_rounded_up() {
        for (micros, text) in [
            (0, "0s"),
            (1, "1us"),
            (1_500, "1ms500us"),
            (1_000_000, "1s"),
            (90_000_000, "1m30s"),
            (90_000_001, "1m31s"),
            (3_599_999_999, "1h"),
            (86_400_000_000, "1d"),
            (604_800_000_000, "1w"),
            (604_800_000_001, "1w1d"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), text, "{micros}");
        }
        assert_eq!(span(Duration::from_nanos(1)), "1us");
    }

    #[test]
    fn large_numbers_are_grouped_in_threes() {
        for (value, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567"), (100_000, "100,000")]
        {
            assert_eq!(number(value), text);
        }
    }
}
