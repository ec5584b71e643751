//! Exemptions, keys and costs of requests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{Method, Request, StatusCode};
use tidegate::{Limit, Limiter, ManualClock, Zone};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::key::{self, Extract as _, Grouped as _};
use tidegate_tower::{RateLimitLayer, Settle};

use super::{Counting, field, now, of};

const HOURLY: Limit = Limit::per_hour(1);

#[test]
fn options_and_whom_one_says_are_not_limited_and_say_nothing() {
    let layer =
        RateLimitLayer::new(HOURLY, key::everyone()).exempt_options().exempt(|head| head.path() == "/health");
    let mut service = Counting::default().behind(&layer);
    let request = |method: Method, path: &str| Request::builder().method(method).uri(path).body(()).unwrap();
    for _ in 0..3 {
        for free in [request(Method::OPTIONS, "/x"), request(Method::GET, "/health")] {
            let response = now(&mut service, free);
            assert_eq!((response.status(), field(&response, "ratelimit")), (StatusCode::OK, None));
        }
    }
    assert_eq!(now(&mut service, request(Method::GET, "/x")).status(), StatusCode::OK);
    assert_eq!(now(&mut service, request(Method::GET, "/x")).status(), StatusCode::TOO_MANY_REQUESTS);
    let mut strict = Counting::default().behind(&RateLimitLayer::new(HOURLY, key::everyone()));
    assert_eq!(now(&mut strict, request(Method::OPTIONS, "/x")).status(), StatusCode::OK);
    assert_eq!(now(&mut strict, request(Method::OPTIONS, "/x")).status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn a_request_weighs_what_the_function_says_and_nothing_is_free() {
    let layer = RateLimitLayer::new(Limit::per_hour(10), key::everyone())
        .cost(|head| head.header("x-cost").map_or(1, |cost| cost.to_str().unwrap().parse().unwrap()));
    let mut service = Counting::default().behind(&layer);
    let mut left = |cost: &str| {
        let response = now(&mut service, Request::builder().header("x-cost", cost).body(()).unwrap());
        let left =
            field(&response, "ratelimit").map(|left| left.split([';', '=']).nth(2).unwrap().to_owned());
        (response.status().as_u16(), left)
    };
    let left_is = |left: &str| Some(left.to_owned());
    assert_eq!(left("4"), (200, left_is("6")));
    assert_eq!(left("0"), (200, None));
    assert_eq!(left("7"), (429, left_is("6")));
    assert_eq!(left("6"), (200, left_is("0")));
    assert_eq!(left("0"), (200, None));
}

/// The same rule as for a function under `#[rate_limit(cost = …)]`.
#[test]
fn a_request_that_weighs_nothing_passes_and_spends_nothing_whatever_decides() {
    let rules = "[[rule]]\nname = 'all'\nlimit = '1/h'\n[[rule]]\nname = 'one'\nlimit = '1/h concurrency'";
    let gate = Gate::new(Policy::from_toml(rules).unwrap(), Zone::new(1 << 16))
        .expect("the store supports the policy");
    for layer in [
        RateLimitLayer::new(HOURLY, key::everyone()),
        RateLimitLayer::new(HOURLY, key::header("x-user")),
        RateLimitLayer::each(key::everyone(), |_| HOURLY),
        RateLimitLayer::rules(gate),
    ] {
        let layer = layer.cost(|head| u64::from(head.path() != "/free"));
        let mut service = Counting::default().behind(&layer);
        let mut status = |path: &str| {
            let request = Request::builder().uri(path).header("x-user", "ana").body(()).unwrap();
            now(&mut service, request).status().as_u16()
        };
        assert_eq!(["/free", "/x", "/free", "/x", "/free"].map(&mut status), [200, 200, 200, 429, 200]);
    }
}

#[test]
fn addresses_are_counted_by_network_and_however_a_server_leaves_them() {
    #[derive(Clone)]
    struct Connected(Option<IpAddr>);
    let peer = |ip: &str| {
        let ip: IpAddr = ip.parse().unwrap();
        Request::builder().extension(SocketAddr::new(ip, 80)).body(()).unwrap()
    };
    let mut service = Counting::default().behind(&RateLimitLayer::new(HOURLY, key::peer()));
    let mut status = |ip: &str| now(&mut service, peer(ip)).status().as_u16();
    assert_eq!((status("192.0.2.1"), status("192.0.2.1"), status("::ffff:192.0.2.1")), (200, 429, 429));
    assert_eq!((status("192.0.2.2"), status("2001:db8::1"), status("2001:db8::ffff:1")), (200, 200, 429));
    assert_eq!(status("2001:db8:0:1::1"), 200);

    let by_24 = key::peer_in(|connected: &Connected| connected.0).ipv4_bits(24);
    let mut service = Counting::default().behind(&RateLimitLayer::new(HOURLY, by_24));
    let connected = |ip: Option<&str>| {
        Request::builder().extension(Connected(ip.map(|ip| ip.parse().unwrap()))).body(()).unwrap()
    };
    let mut status = |ip| now(&mut service, connected(ip)).status().as_u16();
    assert_eq!(
        (status(Some("192.0.2.1")), status(Some("192.0.2.9")), status(Some("192.0.3.1"))),
        (200, 429, 200)
    );
    assert_eq!((status(None), status(None)), (500, 500), "it is there, and says nothing");
}

/// All requests would share one key, and the first caller would lock out all others.
#[test]
fn an_address_that_no_server_added_is_a_mistake_of_the_program_and_the_reply_has_the_remedy() {
    #[derive(Clone)]
    struct Connected(IpAddr);
    let nowhere = || Request::builder().body(()).unwrap();
    let of_peer_in = || key::peer_in(|connected: &Connected| connected.0);
    for layer in [
        RateLimitLayer::new(HOURLY, key::peer()),
        RateLimitLayer::new(HOURLY, of_peer_in()),
        RateLimitLayer::new(HOURLY, key::client(key::peer()).trusting(["10.0.0.0/8"]).unwrap()),
        RateLimitLayer::new(HOURLY, (key::path(), key::peer(), key::header("x-none").or_skip())),
        RateLimitLayer::each(key::peer(), |_| HOURLY),
    ] {
        let counting = Counting::default();
        let mut service = counting.behind(&layer);
        for _ in 0..3 {
            let response = now(&mut service, nowhere());
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            assert_eq!(field(&response, "content-type"), Some("application/problem+json"));
            let problem: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(problem["status"], 500);
            let detail = problem["detail"].as_str().unwrap();
            assert!(
                detail.contains("key::peer_in") && detail.contains("into_make_service_with_connect_info")
            );
        }
        assert_eq!(counting.asked(), 0);
    }
    let call = Request::post("/a/b").header("content-type", "application/grpc").body(()).unwrap();
    let response = now(&mut Counting::default().behind(&RateLimitLayer::new(HOURLY, key::peer())), call);
    assert_eq!((response.status().as_u16(), field(&response, "grpc-status")), (200, Some("13")));

    let statuses = |layer: RateLimitLayer| {
        let mut service = Counting::default().behind(&layer);
        [(); 2].map(|()| now(&mut service, nowhere()).status().as_u16())
    };
    assert_eq!(statuses(RateLimitLayer::new(HOURLY, key::peer().or_share())), [200, 429]);
    assert_eq!(statuses(RateLimitLayer::new(HOURLY, of_peer_in().or_share())), [200, 429]);
    assert_eq!(statuses(RateLimitLayer::new(HOURLY, key::peer().or_skip())), [200, 200]);
    assert_eq!(statuses(RateLimitLayer::new(HOURLY, key::peer().or_deny())), [400, 400]);
    assert_eq!(statuses(RateLimitLayer::new(HOURLY, key::header("x-none").or_share())), [200, 429]);
}

#[test]
#[should_panic(expected = "attribute \"user\": only rules look at it, and this layer has none")]
fn an_attribute_without_rules_panics_at_once() {
    let _ = RateLimitLayer::new(HOURLY, key::everyone()).attribute("user", key::header("x-user"));
}

#[test]
#[should_panic(expected = "peer: only rules look for it, and this layer has none")]
fn a_peer_without_rules_panics_at_once() {
    let _ = RateLimitLayer::each(key::everyone(), |_| HOURLY).peer(key::peer());
}

#[test]
fn several_parts_name_one_subject_and_what_a_layer_outside_found_is_one() {
    #[derive(Clone)]
    struct User {
        id: u64,
        plan: String,
    }
    let key = (key::extension(|user: &User| user.id), key::path(), key::from(|head| head.host().into()));
    let mut service = Counting::default().behind(&RateLimitLayer::new(HOURLY, key));
    let mut status = |id, uri: &str| {
        let user = User { id, plan: "free".to_owned() };
        now(&mut service, Request::builder().uri(uri).extension(user).body(()).unwrap()).status().as_u16()
    };
    assert_eq!((status(1, "http://a/x"), status(1, "http://a/x")), (200, 429));
    assert_eq!((status(2, "http://a/x"), status(1, "http://a/y"), status(1, "http://b/x")), (200, 200, 200));

    let plan = key::extension(|user: &User| user.plan.clone());
    let mut service = Counting::default().behind(&RateLimitLayer::new(HOURLY, plan));
    let free = || Request::builder().extension(User { id: 1, plan: "free".to_owned() }).body(()).unwrap();
    assert_eq!(now(&mut service, free()).status(), StatusCode::OK);
    assert_eq!(now(&mut service, free()).status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_key_that_has_to_be_asked_for_is_waited_for() {
    let later = key::later(|head| {
        let user = head.header("x-user").map(|user| user.to_str().unwrap().to_owned());
        async move {
            tokio::task::yield_now().await;
            user
        }
    });
    let counting = Counting::default();
    let mut service = counting.behind(&RateLimitLayer::new(HOURLY, (later, key::path())));
    let mut statuses = Vec::new();
    for user in ["ana", "bob", "ana"] {
        statuses.push(tower::Service::call(&mut service, of(user)).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(counting.asked(), 2);
}

#[test]
fn the_key_is_the_one_that_a_limiter_knows() {
    let limiter = Limiter::with_clock(Limit::per_hour(9), Arc::new(ManualClock::new()));
    let by_user = Counting::default().behind(&RateLimitLayer::with(limiter.clone(), key::header("x-user")));
    assert_eq!(now(&mut by_user.clone(), of("ana")).status(), StatusCode::OK);
    assert_eq!((limiter.peek("ana").remaining(), limiter.peek("bob").remaining()), (8, 9));
    let layer = RateLimitLayer::with(limiter.clone(), (key::peer(), key::path()));
    let ip: IpAddr = "192.0.2.7".parse().unwrap();
    let request = Request::builder().uri("/login").extension(ip).body(()).unwrap();
    assert_eq!(now(&mut Counting::default().behind(&layer), request).status(), StatusCode::OK);
    assert_eq!(limiter.peek((ip, "/login")).remaining(), 8);
}

#[test]
fn settings_of_a_clone_are_its_own_and_counts_are_shared() {
    let first = RateLimitLayer::new(Limit::per_hour(2), key::everyone()).named("first");
    let second = first.clone().named("second").after(|_| Settle::Refund);
    let (mut one, mut other) = (Counting::default().behind(&first), Counting::default().behind(&second));
    let policy =
        |response: &super::Got| field(response, "ratelimit").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(policy(&now(&mut one, of("ana"))), "\"first\"");
    for _ in 0..5 {
        let response = now(&mut other, of("ana"));
        assert_eq!((response.status(), policy(&response)), (StatusCode::OK, "\"second\"".to_owned()));
    }
    assert_eq!(now(&mut one, of("ana")).status(), StatusCode::OK);
    assert_eq!(now(&mut other, of("ana")).status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn places_in_flight_come_back_when_the_response_is_over() {
    let layer = RateLimitLayer::new(Limit::concurrency(2, tidegate::HOUR), key::header("x-user"));
    let mut service = Counting::default().behind(&layer);
    let call = |service: &mut tidegate_tower::RateLimit<Counting>| {
        super::at_once(tower::Service::call(service, of("ana"))).unwrap().unwrap()
    };
    let (first, second) = (call(&mut service), call(&mut service));
    assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::OK));
    assert_eq!(call(&mut service).status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(&super::whole(first).body()[..], b"/x");
    let third = call(&mut service);
    assert_eq!(third.status(), StatusCode::OK);
    drop((second, third));
    assert_eq!(call(&mut service).status(), StatusCode::OK);

    let everyone = RateLimitLayer::new(Limit::concurrency(1, tidegate::HOUR), key::everyone());
    let mut service = Counting::default().behind(&everyone);
    let held = call(&mut service);
    assert_eq!(call(&mut service).status(), StatusCode::TOO_MANY_REQUESTS);
    drop(held);
    assert_eq!(call(&mut service).status(), StatusCode::OK);
}
