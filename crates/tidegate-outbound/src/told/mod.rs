//! What an answer tells about when the next call may come.
//!
//! Servers say it in many ways; all of them become one of two things here. A hold: nothing for so long.
//! A quota: at most so many for so long. What cannot be read, is negative or already over tells nothing.

mod base64;
mod fields;
mod grpc;
mod structured;
mod when;

use std::time::{Duration, SystemTime};

use http::StatusCode;

use self::when::There;
use tidegate_tower::ResponseHead;

/// More policies than this nobody has; of more, those with the least left count.
pub(super) const MAX_POLICIES: usize = 8;

/// What an answer told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Nothing may come for so long.
    pub(super) hold: Option<Duration>,
    pub(super) quotas: Vec<Quota>,
    pub(super) went: Went,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Went {
    /// Nobody knows.
    #[default]
    Unanswered,
    Answered,
    /// There were too many.
    Refused,
}

/// At most so many for so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quota {
    /// What the server calls it.
    pub(super) policy: Box<[u8]>,
    pub(super) left: u64,
    pub(super) lasts: Duration,
}

impl Quota {
    fn new(policy: &[u8], left: u64, seconds: u64) -> Quota {
        Quota { policy: policy.into(), left, lasts: Duration::from_secs(seconds) }
    }
}

impl Told {
    /// What this answer tells; dates without a `Date` beside them are compared with `wall`.
    pub(super) fn by(head: ResponseHead<'_>, wall: fn() -> SystemTime) -> Told {
        let there = There::new(head.headers(), wall);
        let is_error = head.status().is_client_error() || head.status().is_server_error();
        let retry_after = if is_error { there.retry_after() } else { None };
        // An answer out of a cache says when to come back, so much earlier, and nothing about what is left now.
        let age = there.age();
        let retry_after = retry_after.map(|wait| wait.saturating_sub(age));
        let hold = retry_after.max(grpc::hold(head)).filter(|hold| !hold.is_zero());
        let mut quotas = if age.is_zero() { fields::quotas(there, head.headers()) } else { Vec::new() };
        quotas.retain(|quota| !quota.lasts.is_zero());
        if let Some(hold) = hold {
            // When both speak of the same wait, the one that was written for it counts.
            for quota in quotas.iter_mut().filter(|quota| quota.left == 0) {
                quota.lasts = hold;
            }
        }
        quotas.sort_by_key(|quota| quota.left);
        quotas.truncate(MAX_POLICIES);
        let went = if hold.is_some() || is_refusal(head) { Went::Refused } else { Went::Answered };
        Told { hold, quotas, went }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.hold.is_none() && self.quotas.is_empty()
    }
}

/// Whether it says that there were too many, by HTTP or by gRPC.
fn is_refusal(head: ResponseHead<'_>) -> bool {
    matches!(head.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
        || matches!(head.grpc_status(), Some(8 | 14))
}

/// The time of day, for dates that came without one.
#[expect(clippy::disallowed_methods, reason = "a date that a server wrote can be compared with nothing else")]
pub(super) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn told(status: u16, fields: &[(&str, &str)]) -> Told {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        Told::by(ResponseHead::of(&response.body(()).unwrap()), wall_clock)
    }

    #[test]
    fn only_an_error_holds_by_retry_after() {
        let held = [403, 408, 413, 429, 500, 503].map(|status| (status, Some(7)));
        for (status, expected) in held.into_iter().chain([(200, None), (202, None), (301, None)]) {
            let hold = told(status, &[("retry-after", "7")]).hold;
            assert_eq!(hold, expected.map(Duration::from_secs), "{status}");
        }
        assert!(told(429, &[("retry-after", "0")]).is_nothing());
        assert!(told(429, &[]).is_nothing());
    }

    #[test]
    fn a_retry_after_takes_the_place_of_the_reset_of_what_is_used_up() {
        let fields = [("retry-after", "2"), ("ratelimit", "\"burst\";r=0;t=30, \"daily\";r=9;t=600")];
        let quotas = told(429, &fields).quotas;
        assert_eq!(quotas, [Quota::new(b"burst", 0, 2), Quota::new(b"daily", 9, 600)]);
    }

    #[test]
    fn of_too_many_policies_the_tightest_are_kept() {
        let many: Vec<_> = (0..40).rev().map(|left| format!("p{left};r={left};t=5")).collect();
        let quotas = told(200, &[("ratelimit", &many.join(", "))]).quotas;
        assert_eq!(quotas.iter().map(|quota| quota.left).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }
}
