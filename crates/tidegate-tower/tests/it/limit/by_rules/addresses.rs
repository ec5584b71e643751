//! The addresses that rules match: their source, their grouping, and requests without one.

use std::net::{IpAddr, SocketAddr};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use http::{Request, StatusCode};
use tidegate_tower::RateLimitLayer;
use tidegate_tower::key::{self, Extract as _, Grouped as _};

use super::super::{Counting, Server, field, now};
use super::gate;

const BLOCKED: &str = "[[rule]]\nname = 'blocked'\nwhen = { ip = '127.0.0.0/8' }\ndecision = 'deny'\n";

fn at(ip: &str) -> Request<()> {
    Request::builder().uri("/x").extension(ip.parse::<IpAddr>().unwrap()).body(()).unwrap()
}

/// Returns the number of fifty addresses with this prefix that pass.
fn passed(layer: &RateLimitLayer, beginning: &str) -> usize {
    let mut service = Counting::default().behind(layer);
    (1..=50).filter(|last| now(&mut service, at(&format!("{beginning}{last}"))).status().is_success()).count()
}

#[test]
fn without_a_part_that_is_skipped_the_other_rules_are_obeyed() {
    let (gate, _) = gate(
        "[[rule]]\nname = 'no'\nwhen = { path = '/admin' }\ndecision = 'deny'\n\
         [[rule]]\nname = 'ip'\nkey = ['ip']\nlimit = '2/h'\n\
         [[rule]]\nname = 'user'\nkey = ['user']\nlimit = '1/h'\non_missing = 'skip'\n",
    );
    let layer = RateLimitLayer::rules(gate).attribute("user", key::header("x-user").or_skip());
    let mut service = Counting::default().behind(&layer);
    let mut ask = |path: &str| {
        let mut request = at("192.0.2.7");
        *request.uri_mut() = path.parse().unwrap();
        now(&mut service, request).status().as_u16()
    };
    assert_eq!([ask("/admin"), ask("/x"), ask("/x"), ask("/x")], [403, 200, 200, 429]);
}

#[test]
fn an_address_under_another_name_is_counted_in_the_groups_of_its_extractor() {
    let by_client = || gate("[[rule]]\nname = 'a'\nkey = ['client']\nlimit = '2/h'\n").0;
    let layer = || RateLimitLayer::rules(by_client());
    assert_eq!(passed(&layer().attribute("client", key::peer()), "2001:db8:1:2::"), 2);
    assert_eq!(passed(&layer().attribute("client", key::peer().ipv6_bits(128)), "2001:db8:1:2::"), 50);
    assert_eq!(passed(&layer().attribute("client", key::peer()), "192.0.2."), 50);
    assert_eq!(passed(&layer().attribute("client", key::peer().ipv4_bits(24)), "192.0.2."), 2);
}

#[test]
fn the_address_is_counted_in_the_groups_of_its_rule_or_the_larger_ones_of_its_extractor() {
    for (rule, ipv4_bits, ipv6_bits, passing) in [
        ("", 32, 64, (50, 2, 50)),
        ("", 24, 48, (2, 2, 2)),
        ("ipv4_prefix = 24\nipv6_prefix = 128\n", 32, 64, (2, 50, 50)),
        ("ipv4_prefix = 24\nipv6_prefix = 128\n", 8, 48, (2, 2, 2)),
    ] {
        let text = format!("{BLOCKED}[[rule]]\nname = 'a'\nkey = ['ip']\nlimit = '2/h'\n{rule}");
        let layer = |named: bool| {
            let (rules, peer) =
                (RateLimitLayer::rules(gate(&text).0), key::peer().ipv4_bits(ipv4_bits).ipv6_bits(ipv6_bits));
            if named { rules.attribute("ip", peer) } else { rules.peer(peer) }
        };
        for named in [true, false] {
            let layer = layer(named);
            let many = |beginning: &str| passed(&layer, beginning);
            assert_eq!(
                (many("192.0.2."), many("2001:db8:1:2::"), fifty_networks(&layer)),
                passing,
                "{rule} {ipv4_bits}"
            );
            assert_eq!(many("127.0.0."), 0, "conditions look at the whole address");
        }
    }
}

/// Returns the number of fifty networks of one site that pass.
fn fifty_networks(layer: &RateLimitLayer) -> usize {
    let mut service = Counting::default().behind(layer);
    (1..=50)
        .filter(|net| now(&mut service, at(&format!("2001:db8:7:{net}::1"))).status().is_success())
        .count()
}

#[test]
fn rules_that_match_an_address_that_no_server_added_are_an_error_of_the_program() {
    let (without_address, known) = (|| Request::builder().uri("/x").body(()).unwrap(), || at("192.0.2.7"));
    let rules = || RateLimitLayer::rules(gate(BLOCKED).0);
    for layer in [
        rules(),
        rules().peer(key::peer_in(|ip: &IpAddr| *ip)),
        rules().peer(key::client(key::peer())),
        rules().attribute("ip", key::peer()),
    ] {
        let counting = Counting::default();
        let mut service = counting.behind(&layer);
        let mistake = now(&mut service, without_address());
        assert_eq!(mistake.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let problem: serde_json::Value = serde_json::from_slice(mistake.body()).unwrap();
        assert!(problem["detail"].as_str().unwrap().contains("key::peer_in"), "{problem}");
        let call = Request::post("/x").header("content-type", "application/grpc").body(()).unwrap();
        assert_eq!(field(&now(&mut service, call), "grpc-status"), Some("13"));
        assert_eq!(counting.asked(), 0);
        assert_eq!(now(&mut service, known()).status(), StatusCode::OK);
        assert_eq!(now(&mut service, at("127.0.0.1")).status(), StatusCode::FORBIDDEN);
    }
    for meant in [rules().peer(key::peer().or_skip()), rules().attribute("ip", key::peer().or_skip())] {
        assert_eq!(now(&mut Counting::default().behind(&meant), without_address()).status(), StatusCode::OK);
    }
    let refusing = rules().peer(key::peer().or_deny());
    assert_eq!(
        now(&mut Counting::default().behind(&refusing), without_address()).status(),
        StatusCode::BAD_REQUEST
    );
    let (others, _) = gate("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '1/h'\n");
    let service = &mut Counting::default().behind(&RateLimitLayer::rules(others));
    assert_eq!(now(service, without_address()).status(), StatusCode::OK, "no rule looks at it");
}

#[test]
fn text_that_is_no_address_does_not_get_past_rules_that_look_at_it() {
    let layer = RateLimitLayer::rules(gate(BLOCKED).0).peer(key::header("x-real-ip"));
    let mut service = Counting::default().behind(&layer);
    for (text, status) in [("127.0.0.1", 403), ("192.0.2.7", 200), ("127.0.0.1:80", 400), ("unknown", 400)] {
        let request = Request::builder().uri("/x").header("x-real-ip", text).body(()).unwrap();
        assert_eq!(now(&mut service, request).status().as_u16(), status, "{text}");
    }
}

#[tokio::test]
async fn in_a_real_server_a_rule_that_refuses_an_address_is_never_silently_passed() {
    let serve = |layer| Server::start(Router::new().route("/x", get(|| async { "x" })).layer(layer));
    let without_peer = serve(RateLimitLayer::rules(gate(BLOCKED).0)).await;
    assert_eq!(without_peer.connect().await.get("/x").await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let peer = key::peer_in(|info: &ConnectInfo<SocketAddr>| info.0.ip());
    let with_peer = serve(RateLimitLayer::rules(gate(BLOCKED).0).peer(peer)).await;
    assert_eq!(with_peer.connect().await.get("/x").await.status(), StatusCode::FORBIDDEN);
}
