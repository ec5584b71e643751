//! The limits that a response reports for further calls.
//!
//! Servers report them in many forms; each becomes one of two things. A hold: no calls for some time. A quota: at most
//! so many calls for some time. Values that are invalid, negative or already over are ignored.
//!
//! A server may be wrong or hostile. Every time is bounded by the longest hold of the layer, the number of quotas by
//! [`MAX_POLICIES`], and a value that cannot be parsed changes nothing.

mod base64;
mod fields;
mod grpc;
mod structured;
mod when;

use std::time::{Duration, SystemTime};

use http::StatusCode;

use self::when::There;
use tidegate_tower::ResponseHead;

/// The maximum number of policies. Of more policies, those with the least remaining quota apply.
pub(super) const MAX_POLICIES: usize = 8;

/// The limits that a response reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerHints {
    /// The time for which no call may leave.
    pub(super) hold: Option<Duration>,
    /// The quotas, the least remaining first.
    pub(super) quotas: Vec<ReportedQuota>,
    /// The result of the call, for slow start.
    pub(super) went: CallResult,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallResult {
    /// There is no response.
    #[default]
    Unanswered,
    /// The server processed it, with success or not.
    Answered,
    /// The server denied it for overload.
    Refused,
}

/// A quota: at most so many calls for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportedQuota {
    /// The name that the server uses.
    pub(super) policy: Box<[u8]>,
    /// The number of calls that the server still allows.
    pub(super) left: u64,
    /// The time until the quota is refilled.
    pub(super) lasts: Duration,
}

impl ReportedQuota {
    fn new(policy: &[u8], left: u64, seconds: u64) -> ReportedQuota {
        ReportedQuota { policy: policy.into(), left, lasts: Duration::from_secs(seconds) }
    }
}

impl ServerHints {
    /// Reads the limits of a response; dates are compared with its `Date`, or with `wall` if it has none.
    pub(super) fn by(head: ResponseHead<'_>, wall: fn() -> SystemTime) -> ServerHints {
        let there = There::new(head.headers(), wall);
        let is_error = head.status().is_client_error() || head.status().is_server_error();
        let retry_after = if is_error { there.retry_after() } else { None };
        // A response from a cache has a valid retry time, reduced by its age. Its remaining quota is out of date.
        let age = there.age();
        let retry_after = retry_after.map(|wait| wait.saturating_sub(age));
        let hold = retry_after.max(grpc::hold(head)).filter(|hold| !hold.is_zero());
        let mut quotas = if age.is_zero() { fields::quotas(there, head.headers()) } else { Vec::new() };
        quotas.retain(|quota| !quota.lasts.is_zero());
        if let Some(hold) = hold {
            // If both report the same wait, the field that is meant for it applies.
            for quota in quotas.iter_mut().filter(|quota| quota.left == 0) {
                quota.lasts = hold;
            }
        }
        quotas.sort_by_key(|quota| quota.left);
        quotas.truncate(MAX_POLICIES);
        let went =
            if hold.is_some() || is_refusal(head) { CallResult::Refused } else { CallResult::Answered };
        ServerHints { hold, quotas, went }
    }

    /// Returns true if the response reports no limit.
    pub(super) fn is_nothing(&self) -> bool {
        self.hold.is_none() && self.quotas.is_empty()
    }
}

/// Returns true if the server denied the call for overload, in HTTP or in gRPC.
fn is_refusal(head: ResponseHead<'_>) -> bool {
    matches!(head.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
        || matches!(head.grpc_status(), Some(8 | 14))
}

/// Returns the time of the wall clock, for dates of servers that send no `Date`.
#[expect(clippy::disallowed_methods, reason = "a date that a server wrote can be compared with nothing else")]
pub(super) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Request, Response};
    use tidegate_core::{ManualClock, Zone};
    use tidegate_rules::{Gate, Policy};
    use tidegate_tower::RateLimitLayer;
    use tower::Service as _;
    use tower_layer::Layer as _;

    use super::*;

    fn hints(status: u16, fields: &[(&str, &str)]) -> ServerHints {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        ServerHints::by(ResponseHead::of(&response.body(()).unwrap()), wall_clock)
    }

    #[test]
    fn only_an_error_holds_by_retry_after() {
        let held = [403, 408, 413, 429, 500, 503].map(|status| (status, Some(7)));
        for (status, expected) in held.into_iter().chain([(200, None), (202, None), (301, None)]) {
            let hold = hints(status, &[("retry-after", "7")]).hold;
            assert_eq!(hold, expected.map(Duration::from_secs), "{status}");
        }
        assert!(hints(429, &[("retry-after", "0")]).is_nothing());
        assert!(hints(429, &[]).is_nothing());
    }

    #[test]
    fn a_retry_after_takes_the_place_of_the_reset_of_what_is_used_up() {
        let fields = [("retry-after", "2"), ("ratelimit", "\"burst\";r=0;t=30, \"daily\";r=9;t=600")];
        let quotas = hints(429, &fields).quotas;
        assert_eq!(quotas, [ReportedQuota::new(b"burst", 0, 2), ReportedQuota::new(b"daily", 9, 600)]);
    }

    #[test]
    fn of_too_many_policies_the_tightest_are_kept() {
        let many: Vec<_> = (0..40).rev().map(|left| format!("p{left};r={left};t=5")).collect();
        let quotas = hints(200, &[("ratelimit", &many.join(", "))]).quotas;
        assert_eq!(quotas.iter().map(|quota| quota.left).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    /// Returns the hints of responses by these rules, one for each request.
    async fn by_rules(text: &str, requests: usize) -> Vec<ServerHints> {
        let zone = Zone::with_clock(1 << 16, Arc::new(ManualClock::new()));
        let gate = Gate::new(Policy::from_toml(text).unwrap(), zone).unwrap();
        let service = tower::service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
        let mut service = RateLimitLayer::rules(gate).layer(service);
        let mut hints = Vec::new();
        for _ in 0..requests {
            let response = service.call(Request::new(())).await.unwrap().map(drop);
            hints.push(ServerHints::by(ResponseHead::of(&response), wall_clock));
        }
        hints
    }

    #[tokio::test]
    async fn a_list_of_our_own_rules_is_one_quota_for_each_rule() {
        let rules = "[[rule]]\nname = 'day'\nlimit = '9/d'\n[[rule]]\nname = 'minute'\nlimit = '1/m'\n\
                     [[rule]]\nname = 'uploads'\nlimit = '4/30s concurrency'\n";
        let [allowed, denied] = by_rules(rules, 2).await.try_into().unwrap();
        let quotas = |day: u64, minute: u64| {
            let (day, uploads) = (ReportedQuota::new(b"day", 8, day), ReportedQuota::new(b"uploads", 3, 30));
            [ReportedQuota::new(b"minute", 0, minute), uploads, day]
        };
        assert_eq!((allowed.hold, &allowed.quotas[..]), (None, &quotas(9600, 60)[..]));
        assert_eq!(denied.hold, Some(Duration::from_secs(60)));
        // The denied request holds no permit, and a limit that nothing uses has no reset.
        assert_eq!(denied.quotas, [&quotas(9600, 60)[..1], &quotas(9600, 60)[2..]].concat());
    }
}
