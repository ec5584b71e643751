//! The remaining quota, in the header fields that servers use for it.
//!
//! Servers have used four generations of fields. Each kind is read independently of the others, so a server that sends
//! two kinds reports two quotas, and both apply.

use http::header::HeaderName;
use sfv::{BareItem, ListEntry};

use super::when::{There, whole};
use super::{ReportedQuota, structured};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The fields of the remaining quota and of its reset, for servers that use two fields.
const PAIRS: [(HeaderName, HeaderName); 3] = [
    (HeaderName::from_static("ratelimit-remaining"), HeaderName::from_static("ratelimit-reset")),
    (HeaderName::from_static("x-ratelimit-remaining"), HeaderName::from_static("x-ratelimit-reset")),
    (HeaderName::from_static("x-rate-limit-remaining"), HeaderName::from_static("x-rate-limit-reset")),
];

/// Returns every quota that a response reports.
pub(super) fn quotas(there: There<'_>, headers: &http::HeaderMap) -> Vec<ReportedQuota> {
    let mut quotas = Vec::new();
    for value in headers.get_all(RATE_LIMIT) {
        quotas.extend(rate_limit(value.as_bytes(), headers));
    }
    for (remaining, reset) in &PAIRS {
        quotas.extend(pair(there, remaining, reset));
    }
    quotas
}

/// Parses `"name";r=0;t=30`, one or several, or as in older drafts `limit=9, remaining=0, reset=30`.
fn rate_limit(text: &[u8], headers: &http::HeaderMap) -> Vec<ReportedQuota> {
    if let Some(members) = structured::list(text) {
        return members.iter().filter_map(|member| named(member, headers)).collect();
    }
    let Some(members) = structured::dictionary(text) else { return Vec::new() };
    let number = |name: &str| structured::integer(&structured::item(members.get(name)?)?.bare_item);
    match (number("remaining"), number("reset")) {
        (Some(left), Some(seconds)) => {
            vec![ReportedQuota::new(RATE_LIMIT.as_str().as_bytes(), left, seconds)]
        }
        _ => Vec::new(),
    }
}

/// Returns the quota of a member `"name";r=0;t=30`; `None` if it has no name, or an invalid number.
fn named(member: &ListEntry, headers: &http::HeaderMap) -> Option<ReportedQuota> {
    let item = structured::item(member)?;
    let name = structured::name(item)?;
    let left = structured::integer(item.params.get("r")?)?;
    let seconds = match item.params.get("t") {
        Some(BareItem::Integer(seconds)) => u64::try_from(*seconds).ok()?,
        // No quota remains, and no reset is reported: it is at the latest the end of the window.
        None if left == 0 => window(name, headers)?,
        _ => return None,
    };
    Some(ReportedQuota::new(name.as_bytes(), left, seconds))
}

/// Returns the length of this policy's window, in seconds.
///
/// The first policy of that name counts. Without one, a used-up quota without a reset is ignored: its end is unknown.
fn window(name: &str, headers: &http::HeaderMap) -> Option<u64> {
    headers.get_all(POLICY).iter().find_map(|value| {
        let members = structured::list(value.as_bytes())?;
        let mut items = members.iter().filter_map(structured::item);
        let policy = items.find(|item| structured::name(item) == Some(name))?;
        structured::integer(policy.params.get("w")?)
    })
}

/// Parses a pair of fields. If a field occurs several times, the strictest value applies.
fn pair(there: There<'_>, remaining: &HeaderName, reset: &HeaderName) -> Option<ReportedQuota> {
    let left = there.each(remaining, whole).min()?;
    let lasts = there.each(reset, |text| there.reset(text)).max()?;
    Some(ReportedQuota { policy: reset.as_str().as_bytes().into(), left, lasts })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::HeaderMap;

    use super::*;

    fn reported(fields: &[(&'static str, &str)]) -> Vec<(String, u64, u64)> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let there = There::new(&headers, || UNIX_EPOCH + Duration::from_secs(1_900_000_000));
        quotas(there, &headers)
            .into_iter()
            .map(|quota| (String::from_utf8(quota.policy.into()).unwrap(), quota.left, quota.lasts.as_secs()))
            .collect()
    }

    fn one(policy: &str, left: u64, seconds: u64) -> Vec<(String, u64, u64)> {
        vec![(policy.to_owned(), left, seconds)]
    }

    #[test]
    fn every_dialect_is_understood() {
        assert_eq!(reported(&[("ratelimit", "\"default\";r=50;t=30")]), one("default", 50, 30));
        assert_eq!(reported(&[("ratelimit", "default;r=0;t=5;pk=:cHJpdg==:")]), one("default", 0, 5));
        assert_eq!(reported(&[("ratelimit", "limit=100, remaining=7, reset=9")]), one("ratelimit", 7, 9));
        let draft_03 = [("ratelimit-limit", "10"), ("ratelimit-remaining", "3"), ("ratelimit-reset", "4")];
        assert_eq!(reported(&draft_03), one("ratelimit-reset", 3, 4));
        let older = |reset| reported(&[("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", reset)]);
        for reset in ["60", "1900000060", "1900000060000"] {
            assert_eq!(older(reset), one("x-ratelimit-reset", 3, 60), "{reset}");
        }
    }

    #[test]
    fn a_used_up_quota_without_a_reset_holds_for_the_window_of_the_policy() {
        let fields = [("ratelimit", "\"a\";r=0"), ("ratelimit-policy", "\"b\";q=1;w=9, \"a\";q=5;w=30")];
        assert_eq!(reported(&fields), one("a", 0, 30));
    }

    #[test]
    fn of_lines_that_stand_there_twice_the_strictest_count_and_a_fraction_is_left_out() {
        let twice = [
            ("ratelimit-remaining", "3"),
            ("ratelimit-remaining", "0.0"),
            ("ratelimit-reset", "4"),
            ("ratelimit-reset", "9"),
        ];
        assert_eq!(reported(&twice), one("ratelimit-reset", 0, 9));
    }

    #[test]
    fn every_policy_of_an_answer_counts() {
        let several = reported(&[
            ("ratelimit", "\"burst\";r=0;t=1, \"daily\";r=7;t=600"),
            ("ratelimit", "\"more\";r=1;t=2"),
        ]);
        assert_eq!(several, [one("burst", 0, 1), one("daily", 7, 600), one("more", 1, 2)].concat());
    }

    #[test]
    fn nonsense_is_left_alone() {
        for value in [
            "\"a\";r=-1;t=5",
            "\"a\";r=1;t=-5",
            "\"a\";r=1.5;t=5",
            "\"a\";r=1",
            "\"a\";t=1",
            "\"a\" r=1;t=5",
            "5;r=1;t=5",
            "(\"a\");r=1;t=5",
            "\"a\";r=1;t=5,",
            "limit=1, remaining=-1, reset=5",
            "remaining=1",
            "reset=1",
            "remaining=\"1\", reset=5",
            "",
            "\"a\";r=1234567890123456;t=5",
            "remaining=1;reset=5",
        ] {
            assert_eq!(reported(&[("ratelimit", value)]), [], "{value}");
        }
        for (left, reset) in [("-1", "5"), ("5", "-1"), ("", "5"), ("5", ""), ("five", "5"), ("1, 2", "5")] {
            assert_eq!(
                reported(&[("x-ratelimit-remaining", left), ("x-ratelimit-reset", reset)]),
                [],
                "{left} {reset}"
            );
        }
        assert_eq!(reported(&[("ratelimit-remaining", "1")]), []);
        for (left, policy) in [
            ("\"a\";r=0", "\"b\";q=5;w=30"),
            ("\"a\";r=1", "\"a\";q=5;w=30"),
            ("\"a\";r=0;t=-1", "\"a\";q=5;w=30"),
            ("\"a\";r=0", "\"a\";q=5"),
        ] {
            assert_eq!(reported(&[("ratelimit", left), ("ratelimit-policy", policy)]), [], "{left} {policy}");
        }
    }
}
