//! The value of `RateLimit-Policy`.

use http::HeaderValue;
use tidegate::{Algorithm, Ask, Limit, State, Timestamp};

use super::fields::{MAX_INTEGER, put_parts};
use super::header_buf::{HeaderBuf, StackBuf};
use crate::rounding::ceil_seconds;

/// Returns the value of `RateLimit-Policy`, such as `"api";q=15;w=30`: the most that passes at one instant, its unit
/// unless it is requests, and the whole seconds in which all of it is regained.
pub fn policy_value(name: &str, limit: &Limit) -> HeaderValue {
    policy_value_on(&mut StackBuf::new(), name, limit)
}

pub(super) fn policy_value_on(out: &mut impl HeaderBuf, name: &str, limit: &Limit) -> HeaderValue {
    let most = limit.peek(&State::default(), Timestamp::EPOCH, Ask::ONE).limit();
    out.put(b"\"");
    out.put(name.as_bytes());
    put_parts(out, [("\";q=", most.min(MAX_INTEGER))]);
    if limit.algorithm() == Algorithm::Concurrency {
        out.put(b";qu=\"concurrent-requests\"");
    }
    put_parts(out, [(";w=", regained_in_seconds(limit))]);
    out.value()
}

/// The whole seconds in which everything is regained, at least one.
pub(super) fn regained_in_seconds(limit: &Limit) -> u64 {
    ceil_seconds(limit.regained_in()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
