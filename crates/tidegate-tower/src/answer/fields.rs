//! What is left, in header fields.
//!
//! `Ietf` is draft-ietf-httpapi-ratelimit-headers-10; its strings and integers are those of RFC 9651.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use tidegate::{Decision, Limit, Ticks, Verdict};

use super::digits::{Digits, put_number};
use super::paper::{Line, Paper};
use super::promise::{policy_value_on, regained_in_seconds};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The largest integer that a structured field can have.
pub(super) const MAX_INTEGER: u64 = 999_999_999_999_999;

const TICKS_PER_SECOND: u64 = 16_000_000_000;

/// In which header fields a caller is told what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// `RateLimit-Policy: "api";q=15;w=30` and `RateLimit: "api";r=14;t=2`, as the tenth draft of the IETF has it.
    #[default]
    Ietf,
    /// `RateLimit-Policy: 15;w=30` and `RateLimit: limit=15, remaining=14, reset=2`, as the seventh draft had it.
    Draft07,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` in seconds from now, as the third draft had it.
    Draft03,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` in seconds since 1970.
    XRateLimit,
    /// None of them; only `Retry-After` on refusals.
    None,
}

/// What header fields speak of.
#[derive(Clone, Copy, Debug)]
pub struct Spoken<'a> {
    /// The name of what decided: letters, digits and punctuation, but neither `"` nor `\`.
    pub name: &'a str,
    /// What it promises.
    pub policy: Promised<'a>,
    /// What was decided.
    pub decision: &'a Decision,
}

/// What a limit promises, to be said in `RateLimit-Policy`.
#[derive(Clone, Copy, Debug)]
pub enum Promised<'a> {
    /// The value that [`policy_value`](super::policy_value) made before, for whoever keeps it.
    Made(&'a HeaderValue),
    /// Made of the limit, if the dialect says it at all.
    Of(&'a Limit),
}

/// Writes what is left in this dialect, and when to try again if it was refused and nothing says so yet.
///
/// What an inner layer has told before stays: a list gets one item more, other fields are left as they are.
#[inline]
pub fn put_fields(headers: &mut HeaderMap, dialect: Dialect, spoken: Spoken<'_>) {
    put_fields_on(&mut Line::new(), headers, dialect, spoken);
}

/// The same for whoever has a buffer for the values: a [`BytesMut`](bytes::BytesMut) in which nothing waits to be taken.
#[inline]
pub fn put_fields_on(paper: &mut impl Paper, headers: &mut HeaderMap, dialect: Dialect, spoken: Spoken<'_>) {
    if let Some(seconds) = retry_after_seconds(spoken.decision)
        && !headers.contains_key(header::RETRY_AFTER)
    {
        headers.insert(header::RETRY_AFTER, number_on(paper, seconds));
    }
    put_left_on(paper, headers, dialect, spoken);
}

/// Writes what is left, and never when to try again: for a response of the service, which was not refused.
#[inline]
pub(crate) fn put_left(headers: &mut HeaderMap, dialect: Dialect, spoken: Spoken<'_>) {
    put_left_on(&mut Line::new(), headers, dialect, spoken);
}

#[inline]
fn put_left_on(paper: &mut impl Paper, headers: &mut HeaderMap, dialect: Dialect, spoken: Spoken<'_>) {
    let decision = spoken.decision;
    // What was refused passes then, which may be long before everything is regained.
    let seconds =
        retry_after_seconds(decision).unwrap_or_else(|| in_seconds(decision.reset_after_in_ticks()));
    match dialect {
        Dialect::Ietf => {
            let policy = match spoken.policy {
                Promised::Made(value) => value.clone(),
                Promised::Of(limit) => policy_value_on(paper, spoken.name, limit),
            };
            headers.append(POLICY, policy);
            headers.append(RATE_LIMIT, left(paper, spoken.name, (decision.remaining(), seconds)));
        }
        Dialect::None => {}
        older => put_older(paper, headers, older, (spoken, seconds)),
    }
}

#[cold]
fn put_older(
    paper: &mut impl Paper,
    headers: &mut HeaderMap,
    dialect: Dialect,
    (spoken, seconds): (Spoken<'_>, u64),
) {
    let (limit, remaining) = (spoken.decision.limit(), spoken.decision.remaining());
    match dialect {
        Dialect::Ietf | Dialect::None => {}
        Dialect::Draft07 => {
            // Only one limit can be told: that which was told first.
            if headers.contains_key(RATE_LIMIT) || headers.contains_key(POLICY) {
                return;
            }
            // Integers of structured fields, as in the tenth draft.
            let [limit, remaining] = [limit, remaining].map(|number| number.min(MAX_INTEGER));
            put_parts(paper, [("limit=", limit), (", remaining=", remaining), (", reset=", seconds)]);
            headers.insert(RATE_LIMIT, paper.value());
            if let Some(window) = window(spoken.policy) {
                put_parts(paper, [("", limit), (";w=", window)]);
                headers.insert(POLICY, paper.value());
            }
        }
        Dialect::Draft03 => {
            const NAMES: [HeaderName; 3] = [
                HeaderName::from_static("ratelimit-limit"),
                HeaderName::from_static("ratelimit-remaining"),
                HeaderName::from_static("ratelimit-reset"),
            ];
            put_each(paper, headers, NAMES, [limit, remaining, seconds]);
        }
        Dialect::XRateLimit => {
            const NAMES: [HeaderName; 3] = [
                HeaderName::from_static("x-ratelimit-limit"),
                HeaderName::from_static("x-ratelimit-remaining"),
                HeaderName::from_static("x-ratelimit-reset"),
            ];
            let at = since_1970().saturating_add(seconds);
            put_each(paper, headers, NAMES, [limit, remaining, at]);
        }
    }
}

fn put_each(paper: &mut impl Paper, headers: &mut HeaderMap, names: [HeaderName; 3], numbers: [u64; 3]) {
    // Numbers of two limits must not be mixed.
    if names.iter().any(|name| headers.contains_key(name)) {
        return;
    }
    for (name, number) in names.into_iter().zip(numbers) {
        headers.insert(name, number_on(paper, number));
    }
}

/// The whole seconds in which everything is regained, as the policy says them.
fn window(policy: Promised<'_>) -> Option<u64> {
    match policy {
        Promised::Of(limit) => Some(regained_in_seconds(limit)),
        // From the right, as a name may say anything.
        Promised::Made(value) => value.to_str().ok()?.rsplit_once(";w=")?.1.parse().ok(),
    }
}

/// Whole seconds until the same ask passes, at least one; nothing if it was allowed or can never pass.
#[inline]
pub(super) fn retry_after_seconds(decision: &Decision) -> Option<u64> {
    match decision.verdict_in_ticks() {
        Verdict::Denied { retry_after } => Some(in_seconds(retry_after).max(1)),
        _ => None,
    }
}

#[inline]
fn in_seconds(span: Ticks) -> u64 {
    span.get().div_ceil(TICKS_PER_SECOND)
}

/// `"api";r=14;t=2`.
#[inline]
fn left(paper: &mut impl Paper, name: &str, (remaining, seconds): (u64, u64)) -> HeaderValue {
    paper.put(b"\"");
    paper.put(name.as_bytes());
    put_parts(paper, [("\";r=", remaining.min(MAX_INTEGER)), (";t=", seconds)]);
    paper.value()
}

/// Texts, each with a number behind it.
#[inline]
pub(super) fn put_parts<const PARTS: usize>(paper: &mut impl Paper, parts: [(&str, u64); PARTS]) {
    for (text, number) in parts {
        paper.put(text.as_bytes());
        put_number(paper, number);
    }
}

/// The digits of a number, as the value of a field.
#[inline]
fn number_on(paper: &mut impl Paper, number: u64) -> HeaderValue {
    put_number(paper, number);
    paper.value()
}

/// The digits of a number, as the value of a field.
pub(super) fn number(number: u64) -> HeaderValue {
    value(Digits::of(number).as_bytes())
}

/// A value of our own making: digits, punctuation and plain names.
#[inline]
pub(super) fn value(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).expect("digits, plain letters and punctuation may stand in a header field")
}

/// Seconds by the wall clock, rounded up, for whoever wants a date; nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "this dialect prints a time of day")]
fn since_1970() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() + u64::from(since.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use tidegate::{Ask, State, Timestamp};

    use super::super::policy_value;
    use super::*;

    #[test]
    fn the_window_of_a_policy_is_read_past_whatever_its_name_says() {
        let limit: Limit = "30/60s burst 15".parse().unwrap();
        let decision = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE);
        let made = policy_value("a;w=b", &limit);
        for policy in [Promised::Made(&made), Promised::Of(&limit)] {
            let mut headers = HeaderMap::new();
            let spoken = Spoken { name: "a;w=b", policy, decision: &decision };
            put_fields(&mut headers, Dialect::Draft07, spoken);
            assert_eq!(headers[POLICY], "15;w=30", "{policy:?}");
        }
    }

    #[test]
    fn what_is_left_is_written_as_it_would_be_by_others() {
        for name in ["", "api", &"x".repeat(40), &"y".repeat(41), &"z".repeat(128)] {
            for (remaining, seconds) in [(0, 0), (14, 2), (MAX_INTEGER, u64::MAX), (9, 10), (100, 99)] {
                let expected = format!("\"{name}\";r={remaining};t={seconds}");
                assert_eq!(left(&mut Line::new(), name, (remaining, seconds)), expected.as_str());
                assert_eq!(left(&mut BytesMut::new(), name, (remaining, seconds)), expected.as_str());
            }
        }
    }
}
