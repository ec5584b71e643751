//! All forms in which servers report the remaining quota and its reset.

use tidegate::SECOND;
use tidegate_tower::{Dialect, RateLimitLayer, key};

use super::*;

fn five_in_ten_seconds() -> Limit {
    "5/10s fixed-window".parse().unwrap()
}

/// The forms that report the remaining quota and its reset before a denial.
const BEFORE_A_REFUSAL: [(&str, Tell); 6] = [
    ("the tenth draft", |headers, decision, _| {
        let value =
            format!("\"long\";r=900;t=3600, \"api\";r={};t={}", decision.remaining(), seconds(decision));
        headers.insert("ratelimit", text(&value));
    }),
    ("the seventh draft", |headers, decision, _| {
        let value = format!("limit=5, remaining={}, reset={}", decision.remaining(), seconds(decision));
        headers.insert("ratelimit", text(&value));
    }),
    ("the third draft", |headers, decision, _| {
        headers.insert("ratelimit-remaining", decision.remaining().into());
        headers.insert("ratelimit-reset", seconds(decision).into());
    }),
    ("seconds in x fields", |headers, decision, _| {
        headers.insert("x-ratelimit-remaining", decision.remaining().into());
        headers.insert("x-ratelimit-reset", seconds(decision).into());
    }),
    ("moments in x fields, by the server's own time", |headers, decision, now| {
        headers.insert("x-ratelimit-remaining", decision.remaining().into());
        headers.insert("x-ratelimit-reset", moment(now, seconds(decision)).into());
    }),
    ("moments in milliseconds, by the server's own time", |headers, decision, now| {
        headers.insert("x-ratelimit-remaining", decision.remaining().into());
        headers.insert("x-ratelimit-reset", (moment(now, seconds(decision)) * 1000).into());
    }),
];

/// Calls as fast as the layer allows for four windows; the server has to deny none of the calls.
#[tokio::test]
async fn what_is_said_before_a_refusal_is_obeyed_in_every_dialect() {
    for (dialect, tell) in BEFORE_A_REFUSAL {
        let caller = Caller::new(OutboundLimitLayer::new(), five_in_ten_seconds(), tell).await;
        for window in 1..=4 {
            for _ in 0..5 {
                assert_eq!(caller.status().await, 200, "{dialect}");
            }
            assert!(caller.is_held(), "{dialect}: there is nothing left in this window");
            caller.clock.advance(10 * SECOND - Duration::from_nanos(1));
            assert!(caller.is_held(), "{dialect}: the window is not over");
            assert_eq!((caller.counts.arrived(), caller.counts.refused()), (window * 5, 0), "{dialect}");
            caller.clock.advance(Duration::from_nanos(1));
        }
        assert_eq!(caller.status().await, 200, "{dialect}");
    }
}

/// The forms that report with a denial when to try again.
const WITH_A_REFUSAL: [(&str, Tell); 2] = [
    ("seconds", |headers, decision, _| {
        if !decision.is_allowed() {
            headers.insert("retry-after", seconds(decision).into());
        }
    }),
    ("a date, by the server's own time", |headers, decision, now| {
        if !decision.is_allowed() {
            headers.insert("retry-after", text(&date(now, seconds(decision))));
        }
    }),
];

/// A server that reports nothing before it denies gets one call too many in each window, and then none.
#[tokio::test]
async fn a_retry_after_is_obeyed() {
    for (dialect, tell) in WITH_A_REFUSAL {
        let caller = Caller::new(OutboundLimitLayer::new(), five_in_ten_seconds(), tell).await;
        for window in 1..=3 {
            for _ in 0..5 {
                assert_eq!(caller.status().await, 200, "{dialect}");
            }
            assert_eq!(caller.status().await, 429, "{dialect}");
            assert!(caller.is_held(), "{dialect}");
            caller.clock.advance(10 * SECOND - Duration::from_nanos(1));
            assert!(caller.is_held(), "{dialect}");
            assert_eq!((caller.counts.arrived(), caller.counts.refused()), (window * 6, window), "{dialect}");
            caller.clock.advance(Duration::from_nanos(1));
        }
    }
}

#[tokio::test]
async fn our_own_layer_on_the_other_side_is_obeyed_in_its_dialects() {
    for dialect in [Dialect::Ietf, Dialect::Draft07, Dialect::Draft03, Dialect::None] {
        let clock = Arc::new(ManualClock::new());
        let limiter = tidegate::Limiter::with_clock(five_in_ten_seconds(), clock.clone());
        let limits = RateLimitLayer::with(limiter, key::everyone()).fields(dialect);
        let server = Server::start(Router::new().fallback(|| async { "hello" }).layer(limits)).await;
        let layer = OutboundLimitLayer::new().max_wait(Duration::ZERO).with_clock(clock.clone());
        let mut client = layer.layer(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
        let mut statuses = Vec::new();
        for _ in 0..2 {
            for _ in 0..9 {
                let request = Request::get(format!("http://{}/", server.address)).body(Empty::new()).unwrap();
                match client.ready().await.unwrap().call(request).await {
                    Ok(response) => statuses.push(response.status().as_u16()),
                    Err(error) => {
                        let held = error.downcast_ref::<Throttled>().expect("an error of ours");
                        assert_eq!(held.retry_after(), Some(10 * SECOND), "{dialect:?}");
                    }
                }
            }
            clock.advance(10 * SECOND);
        }
        let refusals = usize::from(dialect == Dialect::None);
        let once = [vec![200; 5], vec![429; refusals]].concat();
        assert_eq!(statuses, [once.clone(), once].concat(), "{dialect:?}");
    }
}
