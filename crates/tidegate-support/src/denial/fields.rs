//! The remaining quota in header fields.
//!
//! `Ietf` is draft-ietf-httpapi-ratelimit-headers-10; its strings and integers are those of RFC 9651.
//!
//! The name of a limit is a string of the field, the remaining quota its parameter `r`, and the wait its parameter `t`.
//! Times are whole seconds, rounded up, so that a client that waits is not denied again.
//!
//! A response may pass several layers. The list fields of the tenth draft get one item per limit. The older fields have
//! room for one limit, and the innermost layer, which writes first, keeps them.

use bytes::BytesMut;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use tidegate_core::{Algorithm, Ask, Decision, Limit, State, Timestamp};

use super::header_buf::{HeaderBuf, StackBuf, USUAL, put_number};
use crate::digits::FromEnd;
use crate::rounding::{ceil_seconds, in_seconds, retry_after};

/// The policy of each limit: its quota and its window.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// The state of each limit: its remaining quota and its wait.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The largest integer of a structured field.
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// The header fields that report the remaining quota. The choice is for clients that exist already. New clients are
/// best served by [`Dialect::Ietf`].
///
/// `Retry-After` does not depend on the dialect.
#[doc(alias = "RateLimit")]
#[doc(alias = "X-RateLimit-Limit")]
#[doc(alias = "X-RateLimit-Remaining")]
#[doc(alias = "Retry-After")]
#[doc(alias = "draft-ietf-httpapi-ratelimit-headers")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// `RateLimit-Policy: "api";q=15;w=30` and `RateLimit: "api";r=14;t=2`, as in the tenth IETF draft.
    #[default]
    Ietf,
    /// `RateLimit-Policy: 15;w=30` and `RateLimit: limit=15, remaining=14, reset=2`, as in the seventh draft.
    Draft07,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` in seconds from now, as in the third draft.
    Draft03,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` in seconds since 1970.
    XRateLimit,
    /// No such fields; only `Retry-After` on denials.
    None,
}

/// The bytes after which a value gets no further limit. Proxies fail a response whose head is larger than their buffer,
/// which is 4 KiB in nginx.
const ENOUGH_BYTES: usize = 512;

/// A decision of a limit, as header fields report it. Where only one of several limits can be reported, it is the
/// binding one: the one with the longest wait, or the least remaining quota.
#[derive(Clone, Copy, Debug)]
pub struct LimitStatus<'a> {
    /// The name of the limit: letters, digits and punctuation, but neither `"` nor `\`.
    pub name: &'a str,
    /// The value of `RateLimit-Policy`.
    pub policy: PolicyHeader<'a>,
    /// The decision.
    pub decision: &'a Decision,
}

/// The value of `RateLimit-Policy`. It depends on the limit alone, so a layer makes it once, and clones it for each
/// response.
#[derive(Clone, Copy, Debug)]
pub enum PolicyHeader<'a> {
    /// A value that [`policy_value`](super::policy_value) returned before.
    Made(&'a HeaderValue),
    /// A limit from which the value is derived, if the dialect has one.
    Of(&'a Limit),
}

/// Writes the remaining quota in this dialect, and `Retry-After` on a denial unless it is present.
///
/// `others` are further limits that decided. The list fields of [`Dialect::Ietf`] have one item for each, after that of
/// `status`, up to a bound of bytes; other dialects ignore them.
///
/// Fields of an inner layer are kept: a list gets more items, other fields are unchanged. It allocates only for
/// values, and for a name that exceeds the buffer on the stack.
#[inline]
pub fn put_fields(
    headers: &mut HeaderMap,
    dialect: Dialect,
    status: LimitStatus<'_>,
    others: &[LimitStatus<'_>],
) {
    put_fields_on(&mut StackBuf::new(), headers, dialect, status, others);
}

/// Writes the same fields, with a buffer for the values: an empty [`BytesMut`](bytes::BytesMut). The values are parts
/// of that buffer, without an allocation of their own.
#[inline]
pub fn put_fields_on(
    out: &mut impl HeaderBuf,
    headers: &mut HeaderMap,
    dialect: Dialect,
    status: LimitStatus<'_>,
    others: &[LimitStatus<'_>],
) {
    if let Some(seconds) = retry_after_seconds(status.decision) {
        headers.entry(header::RETRY_AFTER).or_insert_with(|| number_on(out, seconds));
    }
    put_remaining_on(out, headers, dialect, status, others);
}

/// Writes the remaining quota and never `Retry-After`, for a response of the service. It is for a response of a service
/// that was allowed, and possibly denied the request itself with its own `Retry-After`.
#[inline]
pub fn put_remaining(
    headers: &mut HeaderMap,
    dialect: Dialect,
    status: LimitStatus<'_>,
    others: &[LimitStatus<'_>],
) {
    put_remaining_on(&mut StackBuf::new(), headers, dialect, status, others);
}

/// Writes the fields of a dialect. The usual one is inlined, the others are not.
#[inline]
fn put_remaining_on(
    out: &mut impl HeaderBuf,
    headers: &mut HeaderMap,
    dialect: Dialect,
    status: LimitStatus<'_>,
    others: &[LimitStatus<'_>],
) {
    let (decision, seconds) = (status.decision, status.seconds());
    match dialect {
        Dialect::Ietf if !others.is_empty() => put_lists(headers, status, others),
        Dialect::Ietf => {
            let policy = match status.policy {
                PolicyHeader::Made(value) => value.clone(),
                PolicyHeader::Of(limit) => policy_value_on(out, status.name, limit),
            };
            headers.append(POLICY, policy);
            headers.append(RATE_LIMIT, remaining(out, status.name, decision.remaining(), seconds));
        }
        Dialect::None => {}
        older => put_older(out, headers, older, status, seconds),
    }
}

/// Writes the list fields, each with one item for each limit. Both have the same limits.
#[cold]
fn put_lists(headers: &mut HeaderMap, status: LimitStatus<'_>, others: &[LimitStatus<'_>]) {
    let (mut policies, mut left) = (BytesMut::new(), BytesMut::new());
    for status in [&status].into_iter().chain(others) {
        if policies.len() >= ENOUGH_BYTES {
            break;
        }
        if !policies.is_empty() {
            policies.put(b", ");
            left.put(b", ");
        }
        match status.policy {
            PolicyHeader::Made(value) => policies.put(value.as_bytes()),
            PolicyHeader::Of(limit) => put_policy(&mut policies, status.name, limit),
        }
        let remaining = status.decision.remaining().min(MAX_INTEGER);
        left.put(b"\"");
        left.put(status.name.as_bytes());
        put_parts(&mut left, [("\";r=", remaining), (";t=", status.seconds())]);
    }
    headers.append(POLICY, policies.value());
    headers.append(RATE_LIMIT, left.value());
}

impl LimitStatus<'_> {
    /// Returns the seconds until the same ask passes, which may be long before the full quota is regained; the seconds
    /// until then if the ask passed, or never passes.
    #[inline]
    fn seconds(&self) -> u64 {
        let decision = self.decision;
        retry_after_seconds(decision).unwrap_or_else(|| in_seconds(decision.reset_after_in_ticks()))
    }
}

/// Writes the fields of older dialects, unless an inner layer has written them.
#[cold]
fn put_older(
    out: &mut impl HeaderBuf,
    headers: &mut HeaderMap,
    dialect: Dialect,
    status: LimitStatus<'_>,
    seconds: u64,
) {
    let (limit, remaining) = (status.decision.limit(), status.decision.remaining());
    match dialect {
        Dialect::Ietf | Dialect::None => {}
        Dialect::Draft07 => {
            // Only one limit can be reported: the first.
            if headers.contains_key(RATE_LIMIT) || headers.contains_key(POLICY) {
                return;
            }
            // Integers of structured fields, as in the tenth draft.
            let [limit, remaining] = [limit, remaining].map(|number| number.min(MAX_INTEGER));
            put_parts(out, [("limit=", limit), (", remaining=", remaining), (", reset=", seconds)]);
            headers.insert(RATE_LIMIT, out.value());
            if let Some(window) = window(status.policy) {
                put_parts(out, [("", limit), (";w=", window)]);
                headers.insert(POLICY, out.value());
            }
        }
        Dialect::Draft03 => {
            const NAMES: [HeaderName; 3] = [
                HeaderName::from_static("ratelimit-limit"),
                HeaderName::from_static("ratelimit-remaining"),
                HeaderName::from_static("ratelimit-reset"),
            ];
            put_each(out, headers, NAMES, [limit, remaining, seconds]);
        }
        Dialect::XRateLimit => {
            const NAMES: [HeaderName; 3] = [
                HeaderName::from_static("x-ratelimit-limit"),
                HeaderName::from_static("x-ratelimit-remaining"),
                HeaderName::from_static("x-ratelimit-reset"),
            ];
            let at = since_1970().saturating_add(seconds);
            put_each(out, headers, NAMES, [limit, remaining, at]);
        }
    }
}

/// Writes three fields with a number each, or none of them.
fn put_each(out: &mut impl HeaderBuf, headers: &mut HeaderMap, names: [HeaderName; 3], numbers: [u64; 3]) {
    // Numbers of two limits must not be mixed.
    if names.iter().any(|name| headers.contains_key(name)) {
        return;
    }
    for (name, number) in names.into_iter().zip(numbers) {
        headers.insert(name, number_on(out, number));
    }
}

/// Returns the whole seconds in which the full quota is regained, as in the policy.
fn window(policy: PolicyHeader<'_>) -> Option<u64> {
    match policy {
        PolicyHeader::Of(limit) => Some(regained_in_seconds(limit)),
        // Searched from the right, because the name may contain the same text.
        PolicyHeader::Made(value) => value.to_str().ok()?.rsplit_once(";w=")?.1.parse().ok(),
    }
}

/// Returns the whole seconds until the same ask passes, at least one; `None` if it was allowed or can never pass.
#[inline]
fn retry_after_seconds(decision: &Decision) -> Option<u64> {
    retry_after(decision).map(|wait| in_seconds(wait).max(1))
}

/// Returns a value such as `"api";r=14;t=2`. The value is written from its end, because the number of digits is known
/// last.
#[inline]
fn remaining(out: &mut impl HeaderBuf, name: &str, remaining: u64, seconds: u64) -> HeaderValue {
    let mut text = FromEnd::<USUAL>::new();
    text.put_number(seconds);
    text.put(*b";t=");
    text.put_number(remaining.min(MAX_INTEGER));
    text.put(*b"\";r=");
    if name.len() < text.room() {
        text.put_text(name);
        text.put(*b"\"");
        return out.whole(text.as_bytes());
    }
    out.put(b"\"");
    out.put(name.as_bytes());
    out.put(text.as_bytes());
    out.value()
}

/// Appends texts, each followed by a number.
#[inline]
fn put_parts<const PARTS: usize>(out: &mut impl HeaderBuf, parts: [(&str, u64); PARTS]) {
    for (text, number) in parts {
        out.put(text.as_bytes());
        put_number(out, number);
    }
}

/// Returns the digits of a number as a header value.
#[inline]
fn number_on(out: &mut impl HeaderBuf, number: u64) -> HeaderValue {
    put_number(out, number);
    out.value()
}

/// Returns the value of `RateLimit-Policy`, such as `"api";q=15;w=30`: the most that passes at one instant, its unit
/// unless it is requests, and the whole seconds in which all of it is regained.
pub fn policy_value(name: &str, limit: &Limit) -> HeaderValue {
    policy_value_on(&mut StackBuf::new(), name, limit)
}

/// Writes the value to this buffer.
fn policy_value_on(out: &mut impl HeaderBuf, name: &str, limit: &Limit) -> HeaderValue {
    put_policy(out, name, limit);
    out.value()
}

/// Appends the policy of a limit.
fn put_policy(out: &mut impl HeaderBuf, name: &str, limit: &Limit) {
    let most = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit();
    out.put(b"\"");
    out.put(name.as_bytes());
    put_parts(out, [("\";q=", most.min(MAX_INTEGER))]);
    if limit.algorithm() == Algorithm::Concurrency {
        out.put(b";qu=\"concurrent-requests\"");
    }
    put_parts(out, [(";w=", regained_in_seconds(limit))]);
}

/// Returns the whole seconds in which the full quota is regained, at least one.
fn regained_in_seconds(limit: &Limit) -> u64 {
    ceil_seconds(limit.time_to_full()).max(1)
}

/// Returns the seconds since 1970, rounded up, for a dialect with an absolute time; no decision uses it. A clock before
/// 1970 yields zero.
#[expect(clippy::disallowed_methods, reason = "this dialect prints a time of day")]
fn since_1970() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, ceil_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    fn policy_of(text: &str) -> String {
        policy_value("api", &text.parse().unwrap()).to_str().unwrap().to_owned()
    }

    #[test]
    fn a_limit_has_its_amount_and_the_seconds_in_which_it_is_regained() {
        assert_eq!(policy_of("30/60s burst 15"), "\"api\";q=15;w=30");
        assert_eq!(policy_of("10/s burst 15"), "\"api\";q=15;w=2");
        assert_eq!(policy_of("10/s burst 1"), "\"api\";q=1;w=1");
        assert_eq!(policy_of("8/30s concurrency"), "\"api\";q=8;qu=\"concurrent-requests\";w=30");
        assert_eq!(policy_of("unlimited pacer"), "\"api\";q=999999999999999;w=1");
    }

    #[test]
    fn the_window_of_a_policy_is_read_past_whatever_its_name_says() {
        let limit: Limit = "30/60s burst 15".parse().unwrap();
        let decision = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE);
        let made = policy_value("a;w=b", &limit);
        for policy in [PolicyHeader::Made(&made), PolicyHeader::Of(&limit)] {
            let mut headers = HeaderMap::new();
            let status = LimitStatus { name: "a;w=b", policy, decision: &decision };
            put_fields(&mut headers, Dialect::Draft07, status, &[status]);
            assert_eq!(headers[POLICY], "15;w=30", "{policy:?}");
        }
    }

    #[test]
    fn the_remaining_quota_is_written_as_formatting_would() {
        for name in ["", "api", &"x".repeat(40), &"y".repeat(41), &"z".repeat(128)] {
            for (left, seconds) in [(0, 0), (14, 2), (MAX_INTEGER, u64::MAX), (9, 10), (100, 99)] {
                let expected = format!("\"{name}\";r={left};t={seconds}");
                assert_eq!(remaining(&mut StackBuf::new(), name, left, seconds), expected.as_str());
                assert_eq!(remaining(&mut BytesMut::new(), name, left, seconds), expected.as_str());
            }
        }
    }

    #[test]
    fn every_limit_is_an_item_of_both_lists_in_order_and_the_fields_of_a_layer_before_stay() {
        let limits: Vec<Limit> =
            ["1/60s", "30/60s burst 15", "8/30s concurrency"].map(|text| text.parse().unwrap()).into();
        let decisions: Vec<_> =
            limits.iter().map(|limit| limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE)).collect();
        let made = policy_value("b", &limits[1]);
        let policies =
            [PolicyHeader::Of(&limits[0]), PolicyHeader::Made(&made), PolicyHeader::Of(&limits[2])];
        let names = ["a", "b", "c"];
        let each = names.iter().zip(policies).zip(&decisions);
        let all: Vec<_> =
            each.map(|((name, policy), decision)| LimitStatus { name, policy, decision }).collect();
        let mut headers = HeaderMap::new();
        put_fields(&mut headers, Dialect::Ietf, all[1], &[]);
        put_fields(&mut headers, Dialect::Ietf, all[0], &all[1..]);
        let lines =
            |name| headers.get_all(name).iter().map(|line| line.to_str().unwrap()).collect::<Vec<_>>();
        let policies = "\"a\";q=1;w=60, \"b\";q=15;w=30, \"c\";q=8;qu=\"concurrent-requests\";w=30";
        assert_eq!(lines(POLICY), ["\"b\";q=15;w=30", policies]);
        assert_eq!(lines(RATE_LIMIT), ["\"b\";r=15;t=0", "\"a\";r=1;t=0, \"b\";r=15;t=0, \"c\";r=8;t=0"]);
        for older in [Dialect::Draft07, Dialect::Draft03, Dialect::XRateLimit, Dialect::None] {
            let fields = |others: &[LimitStatus<'_>]| {
                let mut headers = HeaderMap::new();
                put_fields(&mut headers, older, all[0], others);
                headers.remove("x-ratelimit-reset");
                headers
            };
            assert_eq!(fields(&all[1..]), fields(&[]), "{older:?}");
        }
    }

    #[test]
    fn a_thousand_limits_make_no_endless_field_and_both_lists_have_the_same() {
        let limit: Limit = "1/60s".parse().unwrap();
        let decision = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE);
        let name = "n".repeat(128);
        let one = LimitStatus { name: &name, policy: PolicyHeader::Of(&limit), decision: &decision };
        let mut headers = HeaderMap::new();
        put_fields(&mut headers, Dialect::Ietf, one, &[one; 1000]);
        let items = [POLICY, RATE_LIMIT].map(|name| {
            let value = headers[name].to_str().unwrap();
            assert!(value.len() < ENOUGH_BYTES + 200, "{}", value.len());
            value.split(", ").count()
        });
        assert_eq!(items, [4, 4]);
    }
}
