//! `POST /throttle`, compatible with throttlecrab.
//!
//! The limit is a token bucket of the numbers in the body. It is the state of `/v1/take` with the same numbers.
//!
//! ```text
//! {"allowed":true,"limit":10,"remaining":9,"reset_after":1,"retry_after":0}
//! ```

use hyper::header::{self, HeaderMap};
use tidegate::{Ask, Cost, Decision, Key};
use tidegate_support::{in_seconds, put_number, retry_after};

use super::admit::NO_STORE;
use super::json::{self, ThrottleBody};
use super::limits;
use super::problem::Problem;
use super::reply::{self, Reply};
use crate::worker::WorkerContext;

/// An example of the body.
const EXAMPLE: &str = r#"{"key":"user123","max_burst":10,"count_per_period":100,"period":60}"#;

/// Takes from a token bucket, or peeks if the quantity is 0.
///
/// A denial is status 200 as well, since clients of throttlecrab read `allowed` only.
pub(super) async fn throttle(
    body: &[u8],
    headers: &mut HeaderMap,
    worker: &WorkerContext,
) -> Result<Reply, Problem> {
    let asked: ThrottleBody<'_> = json::read_like(EXAMPLE, body)?;
    let (key, engine) = (json::key(&asked.key)?, &worker.engine);
    let [burst, count, period] =
        [asked.max_burst, asked.count_per_period, asked.period].map(|number| number.0);
    let known = limits::known(engine, &format!("{count}/{period}s burst {burst}"))?;
    let quantity = asked.quantity.map_or(1, |quantity| quantity.0);
    let (decision, is_allowed) = match Cost::new(quantity) {
        Ok(cost) => {
            let decision = engine.take(key.as_bytes(), &known.limit, Ask::new(cost)).await?.decision;
            worker.meter().decided(&decision);
            (decision, decision.is_allowed())
        }
        // Nothing is spent, so there is nothing to deny.
        Err(_) => (engine.peek(&Key::new(key), &known.limit, Ask::ONE).await?.decision, true),
    };
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    Ok(written(&decision, is_allowed))
}

/// Writes the reply. Times are whole seconds, rounded up; a denial without a retry time has -1.
fn written(decision: &Decision, is_allowed: bool) -> Reply {
    reply::written(|out| {
        let allowed: &[u8] = if is_allowed { b"{\"allowed\":true" } else { b"{\"allowed\":false" };
        out.extend_from_slice(allowed);
        let reset_after = in_seconds(decision.reset_after_in_ticks());
        let numbers: [(&[u8], u64); 3] = [
            (b",\"limit\":", decision.limit()),
            (b",\"remaining\":", decision.remaining()),
            (b",\"reset_after\":", reset_after),
        ];
        for (name, number) in numbers {
            out.extend_from_slice(name);
            put_number(out, number);
        }
        out.extend_from_slice(b",\"retry_after\":");
        match retry_after(decision) {
            _ if is_allowed => out.extend_from_slice(b"0"),
            Some(wait) => put_number(out, in_seconds(wait)),
            None => out.extend_from_slice(b"-1"),
        }
        out.extend_from_slice(b"}");
        Reply::json(out.split().freeze())
    })
}
