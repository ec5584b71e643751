//! Counters of allowed and denied requests, as a metrics library would keep them.
//!
//! Each layer calls a function once for each decision. Here it counts by limit and result; in a program it would
//! increment a counter of `metrics` or `prometheus`.
//!
//! `cargo run -p tidegate-tower --example count_denials`

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use tidegate::ConcurrencyLimiter;
use tidegate_tower::{ConcurrencyLimitLayer, DecisionEvent, DecisionResult, RateLimitLayer, key};
use tower::{Service as _, ServiceBuilder, service_fn};

/// The number of decisions by limit and result.
#[derive(Clone, Debug, Default)]
struct Counters(Arc<Mutex<BTreeMap<(String, &'static str), u64>>>);

impl Counters {
    fn count(&self, limit: &str, event: &DecisionEvent<'_>) {
        let result = match event.result {
            DecisionResult::Allowed => "allowed",
            DecisionResult::Waited => "allowed after a wait",
            DecisionResult::Denied(_) => "denied",
            _ => "other",
        };
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counters.entry((limit.to_owned(), result)).or_default() += 1;
    }

    fn print(&self) {
        for ((limit, result), count) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            println!("requests_total{{limit=\"{limit}\",result=\"{result}\"}} {count}");
        }
    }

    fn of(&self, limit: &str, result: &'static str) -> Option<u64> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.get(&(limit.to_owned(), result)).copied()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let counters = Counters::default();
    let rate = RateLimitLayer::try_new("3/m", key::header("x-api-key"))?.named("api").on_decision({
        let counters = counters.clone();
        move |event| counters.count(event.limit.unwrap_or("none"), event)
    });
    let in_flight = ConcurrencyLimitLayer::new(ConcurrencyLimiter::at_most(10)).on_decision({
        let counters = counters.clone();
        move |event| counters.count("in flight", event)
    });
    let hello =
        service_fn(|_: Request<String>| async { Ok::<_, Infallible>(Response::new(String::from("hello"))) });
    let mut service = ServiceBuilder::new().layer(rate).layer(in_flight).service(hello);

    for key in ["ana", "ana", "ana", "ana", "ana", "bob"] {
        service.call(Request::builder().header("x-api-key", key).body(String::new())?).await?;
    }
    counters.print();
    assert_eq!((counters.of("api", "allowed"), counters.of("api", "denied")), (Some(4), Some(2)));
    assert_eq!(counters.of("in flight", "allowed"), Some(4), "a denied request takes no permit");
    Ok(())
}
