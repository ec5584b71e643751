//! Tests of `GET /v1/auth`: a proxy describes a request of its client by header fields.

use std::time::Duration;

use tidegate_server::Settings;
use tidegate_server::settings::{AuthSettings, TrustedProxies};

use crate::wire::http::{Answer, Talk};
use crate::wire::{Running, settings};

const RULES: &str = r#"
[[rule]]
name = "robots"
when = { "header.user-agent" = "Bad*" }
decision = "deny"

[[rule]]
name = "login"
when = { path = "/login", method = "POST", host = "shop.example" }
key = ["ip", "query.user"]
limit = "2/60s"

[[rule]]
name = "plan"
when = { plan = "free" }
key = ["cookie.session"]
limit = "1/60s"
on_missing = "skip"
"#;

/// The request of a client, as a proxy of the family `X-Forwarded-*` describes it.
const LOGIN: [&str; 4] = [
    "X-Forwarded-For: 192.0.2.7",
    "X-Forwarded-Uri: /login?user=ana",
    "X-Forwarded-Method: POST",
    "X-Forwarded-Host: shop.example",
];

/// The least that describes a request.
const PROXY: [&str; 1] = ["X-Forwarded-For: 192.0.2.7"];

fn ask(talk: &mut Talk, path: &str, fields: &[&str]) -> Answer {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    talk.ask(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n"))
}

/// Replaces the field of a name, or adds it.
fn with<'a>(fields: &[&'a str], field: &'a str) -> Vec<&'a str> {
    let (name, _) = field.split_once(':').expect("a field has a name");
    let others = fields.iter().copied().filter(|other| !other.starts_with(name));
    others.chain([field]).collect()
}

fn without<'a>(fields: &[&'a str], name: &str) -> Vec<&'a str> {
    fields.iter().copied().filter(|field| !field.starts_with(name)).collect()
}

#[test]
fn rules_decide_about_the_request_of_the_client() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let allowed = ask(&mut talk, "/v1/auth", &LOGIN);
    assert_eq!((allowed.status, &allowed.json()["rule"]), (200, &"login".into()));
    assert_eq!(allowed.field("ratelimit"), Some("\"login\";r=1;t=30"));
    assert_eq!(allowed.field("ratelimit-policy"), Some("\"login\";q=2;w=60"));

    assert_eq!(ask(&mut talk, "/v1/auth", &LOGIN).status, 200);
    let denied = ask(&mut talk, "/v1/auth", &LOGIN);
    denied.is_problem(429, "Denied by rule \"login\"");
    assert_eq!((denied.field("retry-after"), denied.field("cache-control")), (Some("30"), Some("no-store")));

    for other in [
        "X-Forwarded-For: 192.0.2.8",
        "X-Forwarded-Uri: /login?user=bob",
        "X-Forwarded-Uri: /other?user=ana",
        "X-Forwarded-Method: GET",
        "X-Forwarded-Host: other.example",
    ] {
        assert_eq!(ask(&mut talk, "/v1/auth", &with(&LOGIN, other)).status, 200, "{other}");
    }
    let robot = ask(&mut talk, "/v1/auth", &with(&LOGIN, "User-Agent: BadBot/1"));
    robot.is_problem(403, "Rule \"robots\" always denies");
    assert_eq!(robot.field("retry-after"), None);
}

#[test]
fn each_family_of_fields_describes_the_same_request() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let original = [
        "X-Forwarded-For: 192.0.2.7",
        "X-Original-URI: /login?user=ana",
        "X-Original-Method: POST",
        LOGIN[3],
    ];
    let url = ["X-Forwarded-For: 192.0.2.7", "X-Original-URL: https://shop.example/login?user=ana", LOGIN[2]];
    assert_eq!(ask(&mut talk, "/v1/auth", &LOGIN).json()["remaining"], 1);
    assert_eq!(ask(&mut talk, "/v1/auth", &original).json()["remaining"], 0);
    assert_eq!(ask(&mut talk, "/v1/auth", &url).status, 429);
    let both = [&LOGIN[..], &original[1..], &url[1..2]].concat();
    assert_eq!(ask(&mut talk, "/v1/auth", &both).status, 429);
    let root = ["X-Forwarded-For: 192.0.2.7", "X-Original-URL: https://shop.example", LOGIN[2]];
    assert_eq!(ask(&mut talk, "/v1/auth", &root).status, 200);
}

/// A client chooses its `Host`. With `shop?` the proxy passes the same path on, and describes a URL without it.
#[test]
fn a_host_with_a_query_hides_no_path() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    for url in ["http://shop?/login", "http://shop?x=1/login", "http://shop#/login", "http://shop?"] {
        for name in ["X-Original-URL", "X-Forwarded-Uri"] {
            let fields = [LOGIN[0], &format!("{name}: {url}"), LOGIN[2], LOGIN[3]];
            ask(&mut talk, "/v1/auth", &fields).is_problem_of(url, 400, "has no path before its query");
        }
    }
}

#[test]
fn a_fragment_is_no_part_of_the_query() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    for (uri, remaining) in [("/login?user=ana#1", 1), ("/login?x&user=ana#?user=bob", 0)] {
        let fields = with(&LOGIN, &format!("X-Forwarded-Uri: {uri}")).join("\r\n");
        assert_eq!(ask(&mut talk, "/v1/auth", &[&fields]).json()["remaining"], remaining, "{uri}");
    }
    assert_eq!(ask(&mut talk, "/v1/auth", &LOGIN).status, 429);
    let hidden = with(&LOGIN, "X-Forwarded-Uri: /health#/../login?user=ana");
    assert_eq!(ask(&mut talk, "/v1/auth", &hidden).json()["rule"], "login", "a server may know no fragments");
}

/// Caddy appends the query of the client unless its configuration says otherwise.
#[test]
fn the_query_of_the_client_sets_no_attributes() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let fields = with(&LOGIN, "X-Forwarded-Uri: /?plan=paid");
    ask(&mut talk, "/v1/auth?plan=paid", &fields).is_problem(400, "passes the query of its client on");
    assert_eq!(ask(&mut talk, "/v1/auth?plan=paid&denial_status=403", &fields).status, 200);
}

/// A page of another site can make a browser send a GET request, but none of these header fields.
#[test]
fn a_request_that_no_proxy_describes_spends_nothing() {
    let (_running, mut talk) =
        Running::under("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '1/h'").with_http();
    let page = ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"];
    ask(&mut talk, "/v1/auth?user=ana", &page).is_problem(400, "no header field describes a request");
    assert_eq!(ask(&mut talk, "/v1/auth?user=ana", &PROXY).json()["remaining"], 0);
}

#[test]
fn fields_that_disagree_are_an_error() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    for spoof in [
        "X-Original-URI: /free",
        "X-Original-URL: https://shop.example/free",
        "X-Original-URL: https://other.example/login?user=ana",
        "X-Original-Method: GET",
    ] {
        let answer = ask(&mut talk, "/v1/auth", &[&LOGIN[..], &[spoof]].concat());
        answer.is_problem_of(spoof, 400, "disagree");
    }
    let twice = [&LOGIN[..], &["X-Forwarded-Uri: /free"]].concat();
    ask(&mut talk, "/v1/auth", &twice).is_problem(400, "x-forwarded-uri");
    // Nothing of it was counted.
    assert_eq!(ask(&mut talk, "/v1/auth", &LOGIN).json()["remaining"], 1);
}

#[test]
fn what_rules_match_has_to_be_sent() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    for (name, said) in [
        (
            "X-Forwarded-For",
            "rules match ip, and the proxy does not send it; let the proxy set X-Forwarded-For",
        ),
        ("X-Forwarded-Uri", "set X-Forwarded-Uri or X-Original-URI"),
        ("X-Forwarded-Method", "set X-Forwarded-Method or X-Original-Method"),
        ("X-Forwarded-Host", "set X-Forwarded-Host"),
    ] {
        ask(&mut talk, "/v1/auth", &without(&LOGIN, name)).is_problem_of(name, 400, said);
    }
    let empty = with(&LOGIN, "X-Forwarded-Uri: ");
    ask(&mut talk, "/v1/auth", &empty).is_problem(400, "rules match path");
    let unknown = with(&LOGIN, "X-Forwarded-For: 192.0.2.7, unknown");
    ask(&mut talk, "/v1/auth", &unknown).is_problem(400, "no address");

    let (_running, mut talk) = Running::start().with_http();
    assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).status, 200, "no rule matches anything");
}

#[test]
fn the_address_is_the_first_from_the_right_that_is_no_trusted_proxy() {
    let mut trusted_proxies = TrustedProxies::default();
    trusted_proxies.add_text("10.0.0.0/8").unwrap();
    let policy = tidegate_rules::Policy::from_toml(RULES).unwrap();
    let auth = AuthSettings { trusted_proxies, ..AuthSettings::default() };
    let (_running, mut talk) = Running::with(Settings { policy, auth, ..settings() }).with_http();
    let remaining = |talk: &mut Talk, list: &str| {
        let field = format!("X-Forwarded-For: {list}");
        ask(talk, "/v1/auth", &with(&LOGIN, &field)).json()["remaining"].as_u64().expect("a number")
    };
    assert_eq!(remaining(&mut talk, "192.0.2.7"), 1);
    assert_eq!(remaining(&mut talk, "1.1.1.1, 192.0.2.7, 10.1.2.3:443, 10.9.9.9"), 0);
    assert_eq!(remaining(&mut talk, "1.1.1.1, 198.51.100.9"), 1);
}

#[test]
fn the_query_adds_attributes_and_chooses_the_status_of_a_denial() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let fields = with(&LOGIN, "Cookie: session=abc");
    let fields = with(&fields, "X-Forwarded-Uri: /");
    assert_eq!(ask(&mut talk, "/v1/auth?plan=free", &fields).json()["rule"], "plan");
    ask(&mut talk, "/v1/auth?plan=free", &fields).is_problem(429, "rule \"plan\"");
    let of_nginx = ask(&mut talk, "/v1/auth?plan=free&denial_status=403", &fields);
    of_nginx.is_problem(403, "rule \"plan\"");
    assert_eq!(of_nginx.field("retry-after"), Some("60"));
    assert_eq!(ask(&mut talk, "/v1/auth?plan=paid", &fields).status, 200);

    for (query, said) in [
        ("denial_status=500", "write denial_status=403 or denial_status=429"),
        ("ip=192.0.2.9", "\"ip\" comes from the header fields of the proxy"),
        ("denial_status=403&denial_status=429", "denial_status twice"),
        ("header.user-agent=Bad", "\"header.user-agent\" comes from the header fields of the proxy"),
        ("cookie.session=1", "\"cookie.session\" comes from the header fields"),
        ("query.user=bob", "\"query.user\" comes from the header fields"),
        ("plan=free&plan=paid", "the attribute \"plan\" in the query is there twice"),
        ("%ff=1", "no text"),
    ] {
        ask(&mut talk, &format!("/v1/auth?{query}"), &fields).is_problem_of(query, 400, said);
    }
}

#[test]
fn the_setting_is_the_status_of_a_denial() {
    let policy = tidegate_rules::Policy::from_toml("[[rule]]\nname = 'all'\nlimit = '1/60s'").unwrap();
    let auth = AuthSettings { denial_status: hyper::StatusCode::FORBIDDEN, ..AuthSettings::default() };
    let (_running, mut talk) = Running::with(Settings { policy, auth, ..settings() }).with_http();
    assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).status, 200);
    assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).status, 403);
    assert_eq!(ask(&mut talk, "/v1/auth?denial_status=429", &PROXY).status, 429);
}

#[test]
fn a_delay_holds_the_reply() {
    let rules = "[[rule]]\nname = 'all'\nlimit = '10/s leaky-bucket queue 5 delay-after 0'\nmax_wait = '5s'";
    let (_running, mut talk) = Running::under(rules).with_http();
    let begin = testbed::now();
    for _ in 0..3 {
        assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).json()["delay_ms"], 0, "nothing is left to wait for");
    }
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

/// The delays are hours, so a held reply is not written during the test.
#[test]
fn a_client_that_hangs_up_during_its_delay_leaves_no_connection_and_no_permit() {
    let rules = "[[rule]]\nname = 'queue'\nkey = ['ip']\nlimit = '1/h leaky-bucket queue 9'\n\
        [[rule]]\nname = 'calls'\nlimit = '6/30m concurrency'\n";
    let (running, mut talk) = Running::under(rules).with_http();
    assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).status, 200);
    let open = |talk: &mut Talk| {
        let metrics = talk.get("/metrics").body;
        let number = metrics.lines().find_map(|line| line.strip_prefix("tidegate_open_connections "));
        number.and_then(|number| number.parse::<u64>().ok()).expect("it is a metric")
    };
    let wait_for = |talk: &mut Talk, count: u64| {
        testbed::until("connections", Duration::from_secs(120), || (open(talk) == count).then_some(()));
    };
    let held: Vec<_> = (0..4)
        .map(|_| {
            let mut talk = Talk::to(&running);
            talk.send(format!("GET /v1/auth HTTP/1.1\r\nhost: localhost\r\n{}\r\n\r\n", PROXY[0]));
            talk
        })
        .collect();
    wait_for(&mut talk, 5);
    drop(held);
    wait_for(&mut talk, 1);
    // One permit is held for the first request, and one for this.
    let answer = ask(&mut talk, "/v1/auth", &["X-Forwarded-For: 192.0.2.8"]).json();
    assert_eq!((&answer["rule"], &answer["remaining"]), (&"calls".into(), &4.into()));
}

#[test]
fn a_permit_is_in_a_header_field_and_can_be_released() {
    let rules = "[[rule]]\nname = 'uploads'\nlimit = '1/30s concurrency'";
    let (_running, mut talk) = Running::under(rules).with_http();
    let allowed = ask(&mut talk, "/v1/auth", &PROXY);
    let permit = allowed.field("tidegate-permit").unwrap().to_owned();
    assert_eq!(allowed.json()["permit"], *permit);
    assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).status, 429);
    assert_eq!(talk.post("/v1/release", &format!(r#"{{"permit":"{permit}"}}"#)).status, 200);
    assert_eq!(ask(&mut talk, "/v1/auth", &PROXY).status, 200);
}

/// A permit contains its key. nginx fails a request if the head of the reply is longer than 4 KiB.
#[test]
fn a_permit_with_a_long_key_is_not_in_a_header_field() {
    let rules = "[[rule]]\nname = 'uploads'\nkey = ['header.x-key']\nlimit = '1/30s concurrency'";
    let (_running, mut talk) = Running::under(rules).with_http();
    for (bytes, is_sent) in [(100, true), (2000, false)] {
        let answer = ask(&mut talk, "/v1/auth", &[PROXY[0], &format!("X-Key: {}", "k".repeat(bytes))]);
        assert_eq!(
            (answer.status, answer.field("tidegate-permit").is_some()),
            (200, is_sent),
            "{bytes} bytes"
        );
        assert!(answer.json()["permit"].is_string());
    }
}

#[test]
fn a_proxy_sends_the_token_in_a_field_of_its_own() {
    let (_running, mut talk) = Running::guarded().with_http();
    let of_client = "Authorization: Bearer of-the-client";
    assert_eq!(ask(&mut talk, "/v1/auth", &["Tidegate-Token: sesame", of_client, PROXY[0]]).status, 200);
    ask(&mut talk, "/v1/auth", &["Tidegate-Token: wrong", of_client, PROXY[0]])
        .is_problem(401, "Tidegate-Token: TOKEN");
}
