//! A time span for people.

use std::fmt;

/// Milliseconds for display, rounded up so that a caller never retries too early.
pub(super) struct Span(pub(super) u64);

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenths, seconds) = (self.0.div_ceil(100), self.0.div_ceil(1000));
        let minutes = seconds.div_ceil(60);
        match seconds {
            _ if self.0 < 1000 => write!(out, "{} ms", self.0),
            0..=60 if tenths.is_multiple_of(10) => write!(out, "{} s", tenths / 10),
            0..=60 => write!(out, "{}.{} s", tenths / 10, tenths % 10),
            61..=3600 => write!(out, "{} min {} s", seconds / 60, seconds % 60),
            _ => write!(out, "{} h {} min", minutes / 60, minutes % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_up() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1 s"),
            (1001, "1.1 s"),
            (59_901, "60 s"),
            (60_000, "60 s"),
            (60_001, "1 min 1 s"),
            (3_600_000, "60 min 0 s"),
            (3_600_001, "1 h 1 min"),
            (7_200_000, "2 h 0 min"),
        ] {
            assert_eq!(Span(ms).to_string(), expected, "{ms}");
        }
    }
}
