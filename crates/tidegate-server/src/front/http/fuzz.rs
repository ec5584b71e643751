//! Fuzz targets of the HTTP front: arbitrary bytes as a body.
//!
//! A body can reach every parser of the front: JSON, limits, permits, attributes and dates. No byte sequence may
//! panic, and every error has to be a problem.

use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use hyper::header::HeaderMap;
use tidegate::{ManualClock, Zone};
use tidegate_rules::Policy;
use tokio::sync::watch;

use super::{admit, bans, batch, overrides, top, verbs};
use crate::engine::Engine;
use crate::permit::Lease;
use crate::precondition::Precondition;
use crate::settings::Settings;
use crate::worker::WorkerContext;

/// Rules of every kind, which match short requests.
const RULES: &str = r#"
[[rule]]
name = "a"
when = { ip = "10.0.0.0/8" }
decision = "deny"

[[rule]]
name = "b"
when = { path = "/{*rest}" }
key = ["ip", "user"]
limit = "2/60s"

[[rule]]
name = "c"
candidate_for = "b"
limit = "1/60s concurrency"
"#;

/// Checks that each route replies with a JSON object to any body.
pub fn http_body(bytes: &[u8]) {
    // The default settings inspect the machine, which takes longer than a reply.
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
        let policy = Policy::from_toml(RULES).expect("these rules hold");
        Settings { policy, ..Settings::default() }
    });
    let zone = Zone::with_clock(1 << 12, Arc::new(ManualClock::new()));
    let engine = Engine::new(SETTINGS.clone(), zone, None).expect("there is memory");
    let worker = WorkerContext::new(engine, 0, watch::channel(false).1);
    let (engine, headers) = (&worker.engine, &mut HeaderMap::new());
    let replies = [
        to_the_end(verbs::take(bytes, headers, &worker)),
        to_the_end(verbs::peek(bytes, headers, engine)),
        to_the_end(verbs::adjust(bytes, engine)),
        to_the_end(verbs::reset(bytes, engine)),
        to_the_end(verbs::lease(bytes, Lease::Release, engine)),
        to_the_end(verbs::lease(bytes, Lease::Renew, engine)),
        to_the_end(admit::admit(bytes, headers, engine)),
        to_the_end(batch::admit(bytes, headers, engine)),
        to_the_end(admit::explain(bytes, engine)),
        overrides::put(bytes, &Precondition::default(), headers, engine),
        overrides::delete(bytes, &Precondition::default(), engine),
        top::top(bytes, engine),
        to_the_end(bans::bans(bytes, engine)),
    ];
    for reply in replies {
        let reply = reply.unwrap_or_else(|problem| problem.reply(headers));
        let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("every answer is JSON");
        assert!(body.is_object());
    }
}

/// Polls a future to its end. It only yields, and never waits for a waker.
fn to_the_end<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
