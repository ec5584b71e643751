//! A request is counted under the same key by a layer with extractors and by a rule.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Request;
use tidegate::{Limit, Limiter, ManualClock, Zone};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::RateLimitLayer;
use tidegate_tower::key::{self, Extract as _};

use super::{Counting, now};

const RULE: &str = "
[[rule]]
name = 'api'
key = ['header.x-user', 'query.q', 'ip']
limit = '1/h'
";

/// Returns a request with these users, in this order, to this path, from an address if one is known.
fn request(users: &[&str], path: &str, ip: Option<&str>) -> Request<()> {
    let mut request = Request::builder().uri(path);
    for user in users {
        request = request.header("x-user", *user);
    }
    if let Some(ip) = ip {
        request = request.extension(SocketAddr::new(ip.parse().unwrap(), 9));
    }
    request.body(()).unwrap()
}

#[test]
fn a_request_is_the_same_key_in_a_layer_and_in_a_rule() {
    let (v4, v6) = (Some("192.0.2.7"), Some("2001:db8:1:2:3:4:5:6"));
    let cases: [(&[&str], &str, Option<&str>); 9] = [
        (&["ana"], "/?q=1", v4),
        (&["ana"], "/?q=%31+2", v6),
        (&["ana"], "/", v4),
        (&[], "/?q=1", v4),
        (&[], "/", v6),
        (&[], "/", None),
        (&["ana", "bob"], "/?q=1", v4),
        (&["ana", "bob"], "/", v4),
        (&["ana", "bob"], "/?q=1&q=2", None),
    ];
    for is_rule_first in [false, true] {
        let zone = Zone::with_clock(1 << 18, Arc::new(ManualClock::new()));
        let parts = (key::header("x-user"), key::query("q"), key::peer().or_share());
        let limiter = Limiter::on(&zone, "api", Limit::per_hour(1));
        let by_key = Counting::default().behind(&RateLimitLayer::with(limiter, parts));
        let gate = Gate::new(Policy::from_toml(RULE).unwrap(), zone).expect("the store supports the policy");
        let by_rule = Counting::default().behind(&RateLimitLayer::rules(gate).peer(key::peer().or_share()));
        let (mut first, mut second) = if is_rule_first { (by_rule, by_key) } else { (by_key, by_rule) };
        for (users, path, ip) in cases {
            let case = format!("{users:?} {path} {ip:?}, rule first: {is_rule_first}");
            assert_eq!(now(&mut first, request(users, path, ip)).status(), 200, "{case}");
            assert_eq!(now(&mut second, request(users, path, ip)).status(), 429, "{case}");
        }
    }
}
