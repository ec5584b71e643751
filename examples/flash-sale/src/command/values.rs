//! Values of arguments: money, times, limits.

use std::fs;
use std::time::Duration;

use tidegate::{Algorithm, Limit};
use tidegate_rules::Policy;

/// The maximum price of a piece, in cents.
const MOST_CENTS: i64 = 100_000_000_000;

/// Parses a price such as `9.99` or `10`, in cents.
pub(crate) fn cents(text: &str) -> Result<i64, String> {
    let wrong = || format!("price \"{text}\": this is none; write one such as 9.99");
    let (whole, rest) = text.split_once('.').unwrap_or((text, "00"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(rest) || rest.len() != 2 {
        return Err(wrong());
    }
    let cents = format!("{whole}{rest}").parse().map_err(|_| wrong())?;
    if cents > MOST_CENTS {
        Err(format!("price \"{text}\": too much; write at most 1000000000"))
    } else {
        Ok(cents)
    }
}

/// Formats cents as a price.
pub(crate) fn price(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Parses a time such as `10s`, `15m` or `1m30s`, or `0s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    tidegate_support::duration(text).map_err(|wrong| format!("time \"{text}\": {wrong}"))
}

/// Parses a time that is not zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    tidegate_support::positive(text).map_err(|wrong| format!("time \"{text}\": {wrong}"))
}

/// Formats a time in minutes or seconds, rounded up.
pub(crate) fn in_words(span: Duration) -> String {
    match span.as_millis().div_ceil(1000) {
        seconds if seconds >= 120 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// Parses a limit such as `500/s burst 50`.
pub(crate) fn rate(text: &str) -> Result<Limit, String> {
    text.parse().map_err(|wrong: tidegate::LimitError| wrong.to_string())
}

/// Parses a queue such as `200/s queue 2000`; `leaky-bucket` may be omitted.
pub(crate) fn queue(text: &str) -> Result<Limit, String> {
    let limit = rate(text).or_else(|_| rate(&format!("{text} leaky-bucket")));
    match limit? {
        limit if limit.algorithm() == Algorithm::LeakyBucket => Ok(limit),
        _ => Err(format!("queue \"{text}\": it has no queue; write such as \"200/s queue 2000\"")),
    }
}

/// Parses the name of a product.
pub(crate) fn name(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=200 => Ok(text.to_owned()),
        _ => Err("name: it has 1 to 200 characters".to_owned()),
    }
}

/// Reads rules from a file.
pub(crate) fn rules(path: &str) -> Result<Policy, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("rules {path}: {error}"))?;
    Policy::from_toml(&text).map_err(|wrong| format!("rules {path}:\n{wrong}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact() {
        assert_eq!(cents("9.99"), Ok(999));
        assert_eq!(cents("10"), Ok(1000));
        assert_eq!(cents("0.05"), Ok(5));
        for text in ["", ".", "9.9", "9.999", "-1", "+1", "1e3", "1,00", "9.", ".99", "99999999999999999999"]
        {
            assert!(cents(text).is_err(), "{text}");
        }
        assert_eq!(price(999), "9.99");
        assert_eq!(price(5), "0.05");
    }

    #[test]
    fn a_line_is_a_leaky_bucket_without_saying_so() {
        let limit = queue("200/s queue 2000").unwrap();
        assert_eq!(limit.to_string(), "200/s queue 2000 leaky-bucket");
        assert_eq!(queue("200/s queue 2000 leaky-bucket"), Ok(limit));
        assert!(queue("200/s burst 5").is_err());
        assert!(queue("many").unwrap_err().starts_with("limit \"many"));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        assert!(some_time("0s").is_err() && time("10").is_err());
        assert_eq!(
            (in_words(Duration::from_millis(89_001)), in_words(Duration::from_secs(900))),
            ("90 s".into(), "15 min".into())
        );
    }
}
