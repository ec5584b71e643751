//! What is left, in header fields: whoever reads no bodies reads these.
//!
//! `ietf` is draft-ietf-httpapi-ratelimit-headers-10; its strings and integers are those of RFC 9651.

use bytes::{Bytes, BytesMut};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::digits;
use crate::answer::Answer;
use crate::settings::HeaderDialect;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The largest integer that a structured field can have.
pub(super) const MAX_INTEGER: u64 = 999_999_999_999_999;

/// What header fields speak of.
pub(super) struct Spoken<'a, P> {
    /// The name of what decided.
    pub(super) name: &'a str,
    /// What it promises, as the value of `RateLimit-Policy`.
    pub(super) policy: P,
    pub(super) answer: Answer,
}

/// The name of a limit that came with the request.
pub(super) const ADHOC: &str = "adhoc";

/// Writes what is left in this dialect, and when to try again if it was refused.
#[inline]
pub(super) fn put<P: FnOnce(&mut BytesMut) -> HeaderValue>(
    headers: &mut HeaderMap,
    out: &mut BytesMut,
    dialect: HeaderDialect,
    spoken: Spoken<'_, P>,
) {
    let answer = spoken.answer;
    let retry_after = answer.retry_after_seconds().map(|seconds| seconds.max(1));
    // What was refused passes then, which may be long before everything is regained.
    let seconds = retry_after.unwrap_or_else(|| answer.reset_after_seconds());
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, number(out, seconds));
    }
    match dialect {
        HeaderDialect::Ietf => {
            let policy = (spoken.policy)(out);
            out.extend_from_slice(b"\"");
            out.extend_from_slice(spoken.name.as_bytes());
            out.extend_from_slice(b"\";r=");
            digits::put(out, answer.0.remaining().min(MAX_INTEGER));
            out.extend_from_slice(b";t=");
            digits::put(out, seconds);
            headers.insert(POLICY, policy);
            headers.insert(RATE_LIMIT, value(out.split().freeze()));
        }
        HeaderDialect::Draft03 => {
            const NAMES: [HeaderName; 3] = [
                HeaderName::from_static("ratelimit-limit"),
                HeaderName::from_static("ratelimit-remaining"),
                HeaderName::from_static("ratelimit-reset"),
            ];
            put_each(headers, out, NAMES, [answer.0.limit(), answer.0.remaining(), seconds]);
        }
        HeaderDialect::XRateLimit => {
            const NAMES: [HeaderName; 3] = [
                HeaderName::from_static("x-ratelimit-limit"),
                HeaderName::from_static("x-ratelimit-remaining"),
                HeaderName::from_static("x-ratelimit-reset"),
            ];
            let at = since_1970().saturating_add(seconds);
            put_each(headers, out, NAMES, [answer.0.limit(), answer.0.remaining(), at]);
        }
        HeaderDialect::None => {}
    }
}

fn put_each(headers: &mut HeaderMap, out: &mut BytesMut, names: [HeaderName; 3], numbers: [u64; 3]) {
    for (name, number) in names.into_iter().zip(numbers) {
        headers.insert(name, self::number(out, number));
    }
}

pub(super) fn number(out: &mut BytesMut, number: u64) -> HeaderValue {
    digits::put(out, number);
    value(out.split().freeze())
}

/// A value of our own making: digits, punctuation and the names of rules, which are plain.
pub(super) fn value(bytes: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(bytes)
        .expect("digits, letters and punctuation may stand in a header field")
}

/// Seconds by the wall clock, for whoever wants a date; nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "this dialect prints a time of day")]
fn since_1970() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
