//! The JSON bodies of requests.
//!
//! Bodies are strict: an unknown member, a repeated one or a wrong type is an error with its line and column. A
//! misspelled `cost` must not count as 1. Texts are borrowed from the body unless they contain escapes.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use tidegate::{Adjustment, Ask, Cost};

use super::problem::Problem;
use crate::settings::MAX_KEY_BYTES;

/// The body of `/v1/take` and `/v1/peek`.
///
/// ```text
/// {"key": "user123", "limit": "30/60s burst 16", "cost": 2, "max_wait_ms": 500}
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TakeBody<'a> {
    /// The key to count by.
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    /// The text of the limit.
    #[serde(borrow)]
    pub(super) limit: Cow<'a, str>,
    /// The cost; 1 if it is missing.
    #[serde(default)]
    cost: Units,
    /// The longest acceptable delay; 0 if it is missing.
    #[serde(default)]
    max_wait_ms: Milliseconds,
}

impl TakeBody<'_> {
    /// Returns the ask with this cost and maximum wait.
    #[inline]
    pub(super) fn ask(&self) -> Ask {
        Ask::new(self.cost.0).max_wait(self.max_wait_ms.0)
    }
}

/// The body of `/throttle`.
///
/// ```text
/// {"key": "user123", "max_burst": 10, "count_per_period": 100, "period": 60, "quantity": 2}
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThrottleBody<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    /// The burst, which counts the first request.
    pub(super) max_burst: WholeFrom<1>,
    pub(super) count_per_period: WholeFrom<1>,
    /// The period in seconds.
    pub(super) period: WholeFrom<1>,
    /// The cost; 1 if it is missing or null. A quantity of 0 peeks.
    #[serde(default)]
    pub(super) quantity: Option<WholeFrom<0>>,
}

/// The body of `/v1/adjust`.
///
/// ```text
/// {"key": "user123", "limit": "30/60s burst 16", "amount": -3}
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdjustBody<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) limit: Cow<'a, str>,
    /// The units to charge, or to refund if negative.
    pub(super) amount: Amount,
}

/// The body of `/v1/reset`.
///
/// ```text
/// {"key": "user123"}
/// ```
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResetBody<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    /// The limit whose state is removed; all limits if missing.
    #[serde(borrow, default)]
    pub(super) limit: Option<Cow<'a, str>>,
}

/// The body of `/v1/release` and `/v1/renew`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PermitBody<'a> {
    /// The text of the permit, as a reply contained it.
    #[serde(borrow)]
    pub(super) permit: Cow<'a, str>,
}

/// Reads a body with a key and a limit. Errors contain the line and column.
#[inline]
pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    read_like(r#"{"key":"ana","limit":"30/60s"}"#, body)
}

/// Reads a body that has the form of this example.
///
/// An array of the values is rejected, although serde would accept it: its meaning would depend on the order of
/// fields in this program.
#[inline]
pub(super) fn read_like<'a, T: Deserialize<'a>>(example: &str, body: &'a [u8]) -> Result<T, Problem> {
    // serde would also accept an array of the values.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(no_object(example, body));
    }
    serde_json::from_slice(body).map_err(|error| Problem::bad_request(format!("body: {error}")))
}

/// Returns the problem of a body that is not an object, with the example.
#[cold]
fn no_object(example: &str, body: &[u8]) -> Problem {
    let what = if body.trim_ascii().is_empty() { "the body is empty" } else { "the body is no JSON object" };
    Problem::bad_request(format!("{what}; send one such as {example}"))
}

/// Checks the length of a key.
#[inline]
pub(super) fn key(key: &str) -> Result<&str, Problem> {
    if key.len() <= MAX_KEY_BYTES {
        return Ok(key);
    }
    let detail = format!("key: {} bytes; at most {MAX_KEY_BYTES}, so send a hash of longer ones", key.len());
    Err(Problem::bad_request(detail))
}

/// A cost; 1 by default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Units(pub(super) Cost);

/// A time span; 0 by default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Milliseconds(pub(super) Duration);

/// An amount to charge or to refund.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount(pub(super) Adjustment);

/// A whole number that is not below `LEAST`, which is 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeFrom<const LEAST: u64>(pub(super) u64);

/// The bound of whole numbers that are written as floats. Below it, parsing a decimal fraction errs by far less than
/// one half.
const MAX_EXACT: f64 = 4_294_967_296.0;

/// A visitor that reads a whole number and converts it.
struct Number<T> {
    /// The description in errors.
    expected: &'static str,
    /// Converts the number; `None` if it is out of range.
    read: fn(i128) -> Option<T>,
}

impl<T> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    #[inline]
    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.read)(number.into()).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        (self.read)(number.into()).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    /// Accepts `3.0` as a whole number, unless it is so large that rounding may have changed it.
    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        let is_whole = number.fract() == 0.0 && number.abs() < MAX_EXACT;
        match number as i64 {
            whole if is_whole && whole < 0 => self.visit_i64(whole),
            whole if is_whole => self.visit_u64(whole.unsigned_abs()),
            _ => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Units {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Units, D::Error> {
        from.deserialize_u64(Number {
            expected: "a whole number of at least 1 (to look without spending there are /v1/peek and /v1/explain)",
            read: |number| cost(number).map(Units),
        })
    }
}

impl<'de, const LEAST: u64> Deserialize<'de> for WholeFrom<LEAST> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<WholeFrom<LEAST>, D::Error> {
        from.deserialize_u64(Number {
            expected: if LEAST == 0 {
                "a whole number of at least 0"
            } else {
                "a whole number of at least 1"
            },
            read: |number| number.try_into().ok().filter(|number| *number >= LEAST).map(WholeFrom),
        })
    }
}

impl<'de> Deserialize<'de> for Milliseconds {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Milliseconds, D::Error> {
        from.deserialize_u64(Number {
            expected: "a whole number of milliseconds of at least 0",
            read: |number| number.try_into().ok().map(|ms| Milliseconds(Duration::from_millis(ms))),
        })
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Amount, D::Error> {
        from.deserialize_u64(Number {
            expected: "a whole number, positive to charge and negative to give back",
            read: |number| {
                let adjust = if number < 0 { Adjustment::Refund } else { Adjustment::Charge };
                cost(number.abs()).map(adjust).map(Amount)
            },
        })
    }
}

/// Returns a cost; `None` below 1.
#[inline]
fn cost(number: i128) -> Option<Cost> {
    Cost::new(number.try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(body: &str) -> String {
        format!("{:?}", read::<TakeBody<'_>>(body.as_bytes()).unwrap_err())
    }

    #[test]
    fn what_is_not_said_is_one_and_no_max_wait() {
        let take: TakeBody<'_> = read(br#" {"limit":"1/s","key":"ana"} "#).unwrap();
        assert_eq!((&*take.key, &*take.limit, take.ask()), ("ana", "1/s", Ask::ONE));
        assert!(matches!(take.key, Cow::Borrowed(_)));
        let take: TakeBody<'_> =
            read(br#"{"limit":"1/s","key":"\u0061na","cost":3,"max_wait_ms":5}"#).unwrap();
        assert_eq!(take.key, "ana");
        assert_eq!(take.ask(), Ask::new(Cost::of(3)).max_wait(Duration::from_millis(5)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (body, said) in [
            (r#"{"key":"ana"}"#, "missing field `limit` at line 1 column 13"),
            (
                r#"{"key":"ana","limit":"1/s","cots":1}"#,
                "unknown field `cots`, expected one of `key`, `limit`, `cost`",
            ),
            (r#"{"key":"ana","key":"bob"}"#, "duplicate field `key` at line 1 column 18"),
            (r#"{"key":7}"#, "invalid type: integer `7`, expected a string"),
            (r#"{"key":"ana","limit":"1/s","cost":0}"#, "integer `0`, expected a whole number of at least 1"),
            (
                r#"{"key":"ana","limit":"1/s","cost":-1}"#,
                "integer `-1`, expected a whole number of at least 1",
            ),
            (r#"{"key":"ana","limit":"1/s","cost":1.5}"#, "floating point `1.5`, expected a whole number"),
            (r#"{"key":"ana","limit":"1/s","cost":null}"#, "null, expected a whole number"),
            (r#"{"key":"ana","limit":"1/s"} x"#, "trailing characters at line 1 column 29"),
            (r#"{"key":"ana""#, "EOF while parsing an object at line 1 column 12"),
            (r#"["ana","1/s",1,0]"#, "the body is no JSON object"),
            ("  ", "the body is empty"),
        ] {
            let error = rejected(body);
            assert!(error.contains(said), "{body} -> {error}");
        }
        let no_text = read::<TakeBody<'_>>(b"{\"key\":\"\xff\"}");
        assert!(format!("{:?}", no_text.unwrap_err()).contains("invalid unicode code point"));
    }

    #[test]
    fn an_amount_has_a_sign() {
        let amount = |number: &str| {
            let body = format!(r#"{{"key":"","limit":"","amount":{number}}}"#);
            read::<AdjustBody<'_>>(body.as_bytes()).map(|adjust| adjust.amount.0).ok()
        };
        assert_eq!(amount("5"), Some(Adjustment::Charge(Cost::of(5))));
        assert_eq!(amount("-5"), Some(Adjustment::Refund(Cost::of(5))));
        assert_eq!(amount("-9223372036854775808"), Some(Adjustment::Refund(Cost::of(1 << 63))));
        assert_eq!(amount("1e3"), Some(Adjustment::Charge(Cost::of(1000))));
        assert_eq!(amount("-2.0"), Some(Adjustment::Refund(Cost::of(2))));
        assert_eq!(amount("4294967295.0"), Some(Adjustment::Charge(Cost::of((1 << 32) - 1))));
        for none in ["0", "-0", "0.0", "0.5", "4294967296.0", "-9223372036854775809", "18446744073709551616"]
        {
            assert_eq!(amount(none), None, "{none}");
        }
    }

    #[test]
    fn the_longest_key_is_taken_and_the_next_is_not() {
        assert!(key(&"k".repeat(MAX_KEY_BYTES)).is_ok());
        assert!(format!("{:?}", key(&"k".repeat(MAX_KEY_BYTES + 1)).unwrap_err()).contains("65537 bytes"));
    }
}
