//! Tests of docs/gateways.md: its configurations in a real nginx, Caddy and Traefik in front of a real application.
//!
//! ```text
//!   Talk --> gateway --GET /v1/auth--> the server under test
//!               '----------------------> App
//! ```
//!
//! A test replaces the addresses, the token and the timeouts of a configuration, and nothing else.

mod app;
mod caddy;
mod load;
mod nginx;
mod place;
mod traefik;

use crate::wire::http::{Answer, Talk};
use app::App;
use place::{Place, TOKEN};

/// Sends a request of a client. `fields` are further header fields.
fn send(talk: &mut Talk, method: &str, path: &str, fields: &[&str]) -> Answer {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    talk.ask(format!("{method} {path} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 0\r\n{fields}\r\n"))
}

/// Checks what holds behind every gateway: what is counted, what is denied, and what the service and the client see.
fn holds_behind(place: &Place) {
    let mut talk = place.talk();
    // The original path and method are counted, by the address of the client.
    for nth in 1..=5 {
        let allowed = send(&mut talk, "POST", "/login?step=2", &["X-Forwarded-For: 203.0.113.9"]);
        assert_eq!((allowed.status, &*allowed.body), (200, "POST /login?step=2"), "login {nth}: {allowed:?}");
    }
    let denied = send(&mut talk, "POST", "/login?step=2", &["X-Forwarded-For: 203.0.113.8"]);
    assert_eq!((denied.status, denied.field("retry-after")), (429, Some("60")), "{denied:?}");
    let policy = "\"login\";q=5;w=60, \"per-client\";q=100;w=60";
    assert_eq!(denied.field("ratelimit-policy"), Some(policy), "{denied:?}");
    let left = denied.field("ratelimit").unwrap_or_default();
    assert!(left.starts_with("\"login\";r=0;t=60, \"per-client\";r="), "{denied:?}");
    assert_eq!(send(&mut talk, "GET", "/login", &[]).status, 200, "the rule is about POST");

    // A client cannot describe another request than its own.
    for spoof in [
        "X-Original-URI: /free",
        "X-Original-Method: GET",
        "X-Forwarded-Uri: /free",
        "X-Forwarded-Method: GET",
    ] {
        assert_eq!(send(&mut talk, "POST", "/login", &[spoof]).status, 429, "{spoof}");
    }
    // Nor can it set attributes, or the status of its denials.
    for query in ["denial_status=403", "user=ana", "header.user-agent=x", "ip=203.0.113.8"] {
        assert_eq!(send(&mut talk, "POST", &format!("/login?{query}"), &[]).status, 429, "{query}");
    }
    // A rule that always denies is 403, and has no time to retry.
    let robot = send(&mut talk, "GET", "/", &["User-Agent: BadBot/1"]);
    assert_eq!((robot.status, robot.field("retry-after")), (403, None), "{robot:?}");

    // The service sees no secret. Its own statuses reach the client as they are.
    assert!(!place.app.has_seen(TOKEN), "the token reached the service");
    for status in [403, 404, 429, 500] {
        let own = send(&mut talk, "GET", &format!("/status/{status}"), &[]);
        assert_eq!((own.status, own.field("retry-after")), (status, None), "{own:?}");
    }
}
