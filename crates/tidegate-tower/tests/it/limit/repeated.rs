//! Repeated names: a caller gets no key of its own by repeating a name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use http::{HeaderMap, Request, StatusCode};
use tidegate::{Limit, Zone};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::key::Extract as _;
use tidegate_tower::{OnRepeated, RateLimitLayer, key};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::over_grpc::{Health, check_as};
use super::{Counting, Server, now};

/// The number of times that the application received each value.
type Tried = Arc<Mutex<HashMap<String, u32>>>;

fn by_rules(rule: &str) -> RateLimitLayer {
    let text = format!("[[rule]]\nname = 'per-account'\nlimit = '2/h'\n{rule}\n");
    let policy = Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
    RateLimitLayer::rules(Gate::new(policy, Zone::new(1 << 20)).expect("the store supports the policy"))
        .peer(key::peer().or_skip())
}

/// Starts a server whose application reads the last value; returns it with the values received.
async fn reads_the_last(layer: RateLimitLayer) -> (Server, Tried) {
    let tried = Tried::default();
    let seen = Arc::clone(&tried);
    let login = move |Query(query): Query<Vec<(String, String)>>, headers: HeaderMap| async move {
        let of_query = query.into_iter().rfind(|(name, _)| name == "account").map(|(_, value)| value);
        let of_header =
            headers.get_all("x-account").iter().next_back().map(|value| value.to_str().unwrap().to_owned());
        let account = of_query.or(of_header).unwrap_or_default();
        *seen.lock().unwrap().entry(account).or_default() += 1;
        "tried"
    };
    (Server::start(Router::new().route("/login", get(login)).layer(layer)).await, tried)
}

/// Sends bytes as they are, and returns the status of the response.
async fn raw(server: &Server, target: &str, fields: &str) -> u16 {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_client_that_repeats_a_name_gets_no_more_tries_than_others() {
    let layers = [
        by_rules("key = ['query.account']"),
        by_rules("key = ['header.x-account']"),
        by_rules("key = ['account']").attribute("account", key::query("account")),
        RateLimitLayer::new(Limit::per_hour(2), key::query("account")),
        RateLimitLayer::new(Limit::per_hour(2), key::header("x-account")),
    ];
    for (number, layer) in layers.into_iter().enumerate() {
        let (server, tried) = reads_the_last(layer).await;
        for guess in 0..20 {
            let target = format!("/login?account=x{guess}&account=victim");
            let fields = format!("x-account: x{guess}\r\nX-Account: victim\r\n");
            match number {
                1 | 4 => raw(&server, "/login", &fields).await,
                _ => raw(&server, &target, "").await,
            };
        }
        assert_eq!(tried.lock().unwrap().get("victim"), Some(&2), "layer {number}");
        // A request with one value is counted by it, and not together with those.
        let one = match number {
            1 | 4 => raw(&server, "/login", "x-account: victim\r\n").await,
            _ => raw(&server, "/login?account=victim", "").await,
        };
        assert_eq!(one, 200, "layer {number}");
    }
}

#[tokio::test]
async fn a_rule_says_which_value_counts_or_that_none_may_be_repeated() {
    for (on_repeated, statuses) in
        [("first", [200, 200, 429, 200]), ("last", [200, 200, 200, 429]), ("deny", [403, 403, 403, 403])]
    {
        let rule = format!("key = ['query.account']\non_repeated = '{on_repeated}'");
        let (server, _) = reads_the_last(by_rules(&rule)).await;
        let mut got = Vec::new();
        for (first, last) in [("a", "b"), ("a", "c"), ("a", "b"), ("d", "b")] {
            got.push(raw(&server, &format!("/login?account={first}&account={last}"), "").await);
        }
        assert_eq!(got, statuses, "{on_repeated}");
        // The same value twice is one value.
        assert_eq!(raw(&server, "/login?account=e&%61ccount=e", "").await, 200);
    }
}

#[test]
fn a_condition_looks_at_every_value() {
    let limited = by_rules("when = { 'header.x-plan' = 'free' }");
    let free = "[[rule]]\nname = 'vip'\nwhen = { 'header.x-plan' = 'vip' }\ndecision = 'allow'\n\
        [[rule]]\nname = 'all'\nlimit = '2/h'\n";
    let gate = Gate::new(Policy::from_toml(free).unwrap(), Zone::new(1 << 16))
        .expect("the store supports the policy");
    let exempt = RateLimitLayer::rules(gate).peer(key::peer().or_skip());
    for layer in [limited, exempt] {
        let mut service = Counting::default().behind(&layer);
        let mut send = || {
            let request = Request::builder().header("x-plan", "vip").header("x-plan", "free");
            now(&mut service, request.body(()).unwrap()).status()
        };
        assert_eq!([send(), send(), send()], [StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS]);
    }
}

#[test]
fn an_extractor_says_what_happens_where_there_are_no_rules() {
    let of = |on_repeated, values: &[&str]| {
        let layer = RateLimitLayer::new(Limit::per_hour(1), key::cookie("session").on_repeated(on_repeated));
        let mut service = Counting::default().behind(&layer);
        let mut send = |cookie: &str| {
            let request = Request::builder().header("cookie", cookie).body(()).unwrap();
            now(&mut service, request).status().as_u16()
        };
        values.iter().map(|cookie| send(cookie)).collect::<Vec<_>>()
    };
    let cookies = ["session=a; session=b", "session=c; session=b", "session=a; x=1; session=d", "session=b"];
    assert_eq!(of(OnRepeated::Share, &cookies), [200, 429, 429, 200]);
    assert_eq!(of(OnRepeated::First, &cookies), [200, 200, 429, 200]);
    assert_eq!(of(OnRepeated::Last, &cookies), [200, 429, 200, 429]);
    assert_eq!(of(OnRepeated::Deny, &cookies), [400, 400, 400, 200]);
}

#[tokio::test]
async fn metadata_of_grpc_is_repeated_in_the_same_way() {
    let server = Health::behind(RateLimitLayer::new(Limit::per_hour(2), key::header("x-user"))).await;
    let mut client = server.connect().await;
    let mut passed = 0;
    for guess in 0..10 {
        passed += u32::from(check_as(&mut client, &[&format!("x{guess}"), "victim"]).await.is_ok());
    }
    assert_eq!(passed, 2);
    assert!(check_as(&mut client, &["victim"]).await.is_ok());
}
