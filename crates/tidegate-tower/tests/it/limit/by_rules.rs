//! Decisions by rules.

mod addresses;
mod correcting;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Request, StatusCode};
use tidegate::{ManualClock, SECOND, Zone};
use tidegate_rules::{Attributes, Gate, Policy};
use tidegate_tower::key::{self, Extract as _};
use tidegate_tower::{DecisionResult, Dialect, RateLimitLayer, Reason, Settle};
use tower::Service;

use super::{Counting, Server, Task, at_once, field, now, request, whole};
pub(crate) use correcting::lost;

const BOTH: &str = "
[[rule]]
name = 'per-user'
when = { path = '/api/{*rest}' }
key = ['user']
limit = '3/h'
[[rule]]
name = 'per-address'
when = { path = '/api/{*rest}' }
key = ['ip']
limit = '5/h'
";

fn gate(text: &str) -> (Gate, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let policy = Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    (
        Gate::new(policy, Zone::with_clock(1 << 18, clock.clone())).expect("the store supports the policy"),
        clock,
    )
}

fn by(gate: &Gate) -> RateLimitLayer {
    RateLimitLayer::rules(gate.clone()).attribute("user", key::header("x-user"))
}

fn from(user: &str, ip: &str, path: &str) -> Request<()> {
    let ip: IpAddr = ip.parse().unwrap();
    Request::builder().uri(path).header("x-user", user).extension(SocketAddr::new(ip, 9)).body(()).unwrap()
}

#[test]
fn users_and_addresses_are_limited_together_all_or_none() {
    let (gate, _) = gate(BOTH);
    let counting = Counting::default();
    let mut service = counting.behind(&by(&gate));
    let mut reply = |user, ip| {
        let response = now(&mut service, from(user, ip, "/api/x"));
        (response.status().as_u16(), field(&response, "ratelimit").unwrap().to_owned())
    };
    let expected = |status: u16, field: &str| (status, field.to_owned());
    assert_eq!(
        reply("ana", "192.0.2.1"),
        expected(200, "\"per-user\";r=2;t=1200, \"per-address\";r=4;t=720")
    );
    assert_eq!(reply("ana", "192.0.2.1").0, 200);
    assert_eq!(reply("ana", "192.0.2.1").0, 200);
    assert_eq!(
        reply("ana", "192.0.2.1"),
        expected(429, "\"per-user\";r=0;t=1200, \"per-address\";r=2;t=2160")
    );
    // A denial by one rule has cost the address nothing: two are left.
    assert_eq!(reply("bob", "192.0.2.1").0, 200);
    assert_eq!(
        reply("bob", "192.0.2.1"),
        expected(200, "\"per-address\";r=0;t=3600, \"per-user\";r=1;t=2400")
    );
    assert_eq!(
        reply("bob", "192.0.2.1"),
        expected(429, "\"per-address\";r=0;t=720, \"per-user\";r=1;t=2400")
    );
    assert_eq!(reply("bob", "192.0.2.2").0, 200, "and a refusal of the address has cost bob nothing");
    assert_eq!(counting.asked(), 6);
    let free = now(&mut service, from("ana", "192.0.2.1", "/else"));
    assert_eq!((free.status(), field(&free, "ratelimit")), (StatusCode::OK, None));
}

#[test]
fn a_refusal_names_the_rule_and_what_a_rule_always_refuses_is_forbidden() {
    let text =
        format!("{BOTH}\n[[rule]]\nname = 'no'\nwhen = {{ 'header.x-bad' = '1' }}\ndecision = 'deny'\n");
    let (gate, _) = gate(&text);
    let mut service = Counting::default().behind(&by(&gate));
    let mut bad = from("ana", "192.0.2.1", "/api/x");
    bad.headers_mut().insert("x-bad", "1".parse().unwrap());
    let forbidden = now(&mut service, bad);
    assert_eq!((forbidden.status(), field(&forbidden, "retry-after")), (StatusCode::FORBIDDEN, None));
    for _ in 0..3 {
        assert_eq!(now(&mut service, from("ana", "192.0.2.1", "/api/x")).status(), StatusCode::OK);
    }
    let refused = now(&mut service, from("ana", "192.0.2.1", "/api/x"));
    let problem: serde_json::Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["per-user"]));
    assert_eq!(
        field(&refused, "ratelimit-policy"),
        Some("\"per-user\";q=3;w=3600, \"per-address\";q=5;w=3600")
    );
}

#[test]
fn a_request_that_no_rule_matches_is_forbidden_if_the_rules_say_so() {
    let (gate, _) = gate(&format!("[rules]\nunmatched = 'deny'\n{BOTH}"));
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let seen = reasons.clone();
    let layer = by(&gate).on_decision(move |event| seen.lock().unwrap().push(event.result));
    let mut service = Counting::default().behind(&layer);
    let forbidden = now(&mut service, from("ana", "192.0.2.1", "/else"));
    assert_eq!((forbidden.status(), field(&forbidden, "retry-after")), (StatusCode::FORBIDDEN, None));
    let problem: serde_json::Value = serde_json::from_slice(forbidden.body()).unwrap();
    assert_eq!(problem["detail"], "No rule applies to this request, and such requests are denied.");
    assert_eq!(now(&mut service, from("ana", "192.0.2.1", "/api/x")).status(), StatusCode::OK);
    let reasons = reasons.lock().unwrap();
    assert_eq!(*reasons, [DecisionResult::Denied(Reason::Unmatched), DecisionResult::Allowed]);
}

#[test]
fn layers_choose_from_a_group_by_attributes_that_only_an_exception_uses() {
    let (gate, _) = gate(
        "[[rule]]\nname = 'browsers'\ngroup = 'g'\nunless = { 'header.x-api-key' = { present = true } }\nlimit = '1/h'\n\
         [[rule]]\nname = 'programs'\ngroup = 'g'\nlimit = '1/h'\n",
    );
    let mut service = Counting::default().behind(&RateLimitLayer::rules(gate.clone()));
    for key in [None, Some("k")] {
        let mut request = from("ana", "192.0.2.1", "/x");
        key.into_iter().for_each(|key| drop(request.headers_mut().insert("x-api-key", key.parse().unwrap())));
        assert_eq!(now(&mut service, request).status(), StatusCode::OK);
    }
    let counts = gate.counts();
    assert_eq!(counts.iter().map(|(_, counts)| counts.allowed).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn rules_see_method_host_header_cookie_and_query() {
    let (gate, _) = gate(
        "[[rule]]\nname = 'a'\nlimit = '1/h'\n\
         when = { method = 'POST', host = 'example.com', 'cookie.kind' = 'x', 'query.page' = '7', 'header.x-a' = 'b*' }\n",
    );
    let mut service = Counting::default().behind(&RateLimitLayer::rules(gate));
    let whole = || {
        Request::builder()
            .method("POST")
            .uri("http://Example.com:80/x?page=7")
            .header("cookie", "kind=x")
            .header("X-A", "bc")
    };
    for expected in [true, false] {
        let status = now(&mut service, whole().body(()).unwrap()).status();
        assert_eq!(status.is_success(), expected);
    }
    for other in [
        whole().method("GET"),
        whole().uri("http://other.com/x?page=7"),
        whole().uri("http://example.com/x?page=8"),
        Request::builder().method("POST").uri("http://example.com/x?page=7").header("x-a", "bc"),
    ] {
        assert_eq!(
            now(&mut service, other.body(()).unwrap()).status(),
            StatusCode::OK,
            "no rule is about it"
        );
    }
}

#[test]
fn other_rules_hold_from_the_next_request_on_and_counts_stay() {
    let (gate, clock) = gate("[[rule]]\nname = 'a'\nlimit = '10/h'\n");
    let mut service = Counting::default().behind(&RateLimitLayer::rules(gate.clone()));
    assert_eq!(field(&now(&mut service, Request::new(())), "ratelimit"), Some("\"a\";r=9;t=360"));
    let other = "[[rule]]\nname = 'a'\nkey = ['header.x-user']\nlimit = '10/h'\n";
    gate.replace(Policy::from_toml(other).unwrap()).unwrap();
    assert_eq!(field(&now(&mut service, super::of("ana")), "ratelimit"), Some("\"a\";r=9;t=360"));
    assert_eq!(field(&now(&mut service, super::of("ana")), "ratelimit"), Some("\"a\";r=8;t=720"));
    clock.advance(SECOND);
    gate.replace(Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '20/h'\n").unwrap()).unwrap();
    // One unit is carried over, which takes 180 s to repay now.
    assert_eq!(field(&now(&mut service, Request::new(())), "ratelimit"), Some("\"a\";r=18;t=360"));
}

#[test]
fn a_rule_that_delays_delays_and_a_request_without_a_max_wait_is_denied() {
    let (gate, clock) = gate("[[rule]]\nname = 'even'\nlimit = '1/s leaky-bucket queue 5'\n");
    let counting = Counting::default();
    let mut service = counting.behind(&RateLimitLayer::rules(gate).with_clock(clock.clone()));
    let call = |timeout: Option<&str>| {
        let request = Request::builder();
        match timeout {
            Some(timeout) => request.header("grpc-timeout", timeout),
            None => request,
        }
        .body(())
        .unwrap()
    };
    let mut task = Task::new([None, None, Some("1S"), Some("2S")].map(|timeout| service.call(call(timeout))));
    let over = task.run();
    let statuses: Vec<_> =
        over.iter().map(|(number, answer)| (*number, answer.as_ref().unwrap().status())).collect();
    assert_eq!(statuses, [(0, StatusCode::OK), (2, StatusCode::TOO_MANY_REQUESTS)]);
    clock.advance(SECOND);
    assert_eq!(task.run().len(), 1);
    clock.advance(SECOND);
    assert_eq!(task.run().len(), 1);
    assert_eq!(counting.asked(), 3);
}

#[test]
fn places_in_flight_are_given_back_when_the_response_is_over_or_the_request_is_dropped() {
    let text = "[[rule]]\nname = 'few'\nkey = ['user']\nlimit = '1/60s concurrency'\n\
        [[rule]]\nname = 'even'\nwhen = { path = '/even' }\nlimit = '1/s leaky-bucket queue 9'\n";
    let (gate, clock) = gate(text);
    let mut service = Counting::default().behind(&by(&gate).with_clock(clock.clone()));
    let mut call = |path: &str| service.call(from("ana", "192.0.2.1", path));
    let held = at_once(call("/x")).unwrap().unwrap();
    let refused = at_once(call("/x")).unwrap().unwrap();
    assert_eq!((held.status(), refused.status()), (StatusCode::OK, StatusCode::TOO_MANY_REQUESTS));
    assert_eq!(&whole(held).body()[..], b"/x");
    assert_eq!(at_once(call("/even")).unwrap().unwrap().status(), StatusCode::OK);
    // This one has its permit already, and a second to wait.
    let mut waiting = Box::pin(call("/even"));
    assert!(at_once(waiting.as_mut()).is_none());
    assert_eq!(at_once(call("/x")).unwrap().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    drop(waiting);
    assert_eq!(at_once(call("/x")).unwrap().unwrap().status(), StatusCode::OK);
}

#[test]
fn what_a_response_says_is_charged_to_all_rules_of_the_request() {
    let (gate, _) = gate(BOTH);
    let layer = by(&gate).after(|response| match response.status() {
        StatusCode::NOT_FOUND => Settle::Refund,
        _ => Settle::Charge(1),
    });
    let mut service = Counting::default().behind(&layer);
    let left = || {
        let ana = Attributes::new().path("/api/x").set("user", "ana").set("ip", "192.0.2.1");
        let explained = gate.explain(&ana).now().unwrap();
        explained.rules.iter().map(|rule| rule.decision.unwrap().remaining()).collect::<Vec<_>>()
    };
    let mut missing = from("ana", "192.0.2.1", "/api/x");
    missing.headers_mut().insert("x-status", "404".parse().unwrap());
    assert_eq!(now(&mut service, missing).status(), StatusCode::NOT_FOUND);
    assert_eq!(left(), [3, 5]);
    assert_eq!(now(&mut service, from("ana", "192.0.2.1", "/api/x")).status(), StatusCode::OK);
    assert_eq!(left(), [1, 3]);
}

#[tokio::test]
async fn attributes_that_have_to_be_asked_for_are_waited_for_and_may_refuse() {
    let (gate, _) = gate("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '1/h'\n");
    let user = key::later(|head| {
        let user = head.header("x-user").map(|user| user.to_str().unwrap().to_owned());
        async move {
            tokio::task::yield_now().await;
            user
        }
    });
    let mut service =
        Counting::default().behind(&RateLimitLayer::rules(gate).attribute("user", user.or_deny()));
    let mut statuses = Vec::new();
    for request in [super::of("ana"), super::of("bob"), super::of("ana"), Request::new(())] {
        statuses.push(service.call(request).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 400]);
}

#[tokio::test]
async fn in_a_real_server_users_and_addresses_are_limited_together() {
    let (gate, _) = gate(BOTH);
    let layer = by(&gate).peer(key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip()));
    let server = Server::start(Router::new().route("/api/x", get(|| async { "x" })).layer(layer)).await;
    let mut client = server.connect().await;
    let mut statuses = Vec::new();
    for user in ["ana", "ana", "ana", "ana", "bob", "bob", "bob"] {
        let mut request = request("/api/x");
        request.headers_mut().insert("x-user", user.parse().unwrap());
        statuses.push(client.send(request).await.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429, 200, 200, 429]);
}

#[test]
fn fields_with_room_for_one_limit_report_the_binding_one() {
    for (dialect, name) in [
        (Dialect::Draft07, "ratelimit"),
        (Dialect::Draft03, "ratelimit-remaining"),
        (Dialect::XRateLimit, "x-ratelimit-remaining"),
    ] {
        let (gate, _) = gate(BOTH);
        let mut service = Counting::default().behind(&by(&gate).fields(dialect));
        let response = now(&mut service, from("ana", "192.0.2.1", "/api/x"));
        let left = field(&response, name).unwrap();
        assert!(left == "2" || left == "limit=3, remaining=2, reset=1200", "{dialect:?}: {left}");
    }
}
