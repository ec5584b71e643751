//! `POST /throttle`, compatible with throttlecrab.
//!
//! The limit is a token bucket of the numbers in the body. It is the state of `/v1/take` with the same numbers.
//!
//! ```text
//! {"allowed":true,"limit":10,"remaining":9,"reset_after":1,"retry_after":0}
//! ```

use hyper::header::{self, HeaderMap};
use tidegate::{Ask, Cost, Key};
use tidegate_support::{in_seconds, put_number, retry_after};

use super::admit::NO_STORE;
use super::json::{self, ThrottleBody};
use super::limits;
use super::problem::Problem;
use super::reply::{self, Reply};
use crate::engine::Decided;
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
    let (decided, is_allowed) = match Cost::new(quantity) {
        Ok(cost) => {
            let decided = engine.take(key.as_bytes(), &known.limit, Ask::new(cost)).await?;
            worker.decided(key.as_bytes(), &decided);
            (decided, decided.decision.is_allowed())
        }
        // Nothing is spent, so there is nothing to deny.
        Err(_) => (engine.peek(&Key::new(key), &known.limit, Ask::ONE).await?, true),
    };
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    Ok(written(&decided, is_allowed))
}

/// Writes the reply. Times are whole seconds, rounded up; -1 stands for no value.
fn written(decided: &Decided, is_allowed: bool) -> Reply {
    reply::written(|out| {
        let decision = &decided.decision;
        let counted = |number: u64| (!decided.is_uncounted()).then_some(number);
        let retry_after = retry_after(decision).map(in_seconds);
        let allowed: &[u8] = if is_allowed { b"{\"allowed\":true" } else { b"{\"allowed\":false" };
        out.extend_from_slice(allowed);
        let numbers: [(&[u8], Option<u64>); 4] = [
            (b",\"limit\":", counted(decision.limit())),
            (b",\"remaining\":", counted(decision.remaining())),
            (b",\"reset_after\":", counted(in_seconds(decision.reset_after_in_ticks()))),
            (b",\"retry_after\":", if is_allowed { Some(0) } else { retry_after }),
        ];
        for (name, number) in numbers {
            out.extend_from_slice(name);
            match number {
                Some(number) => put_number(out, number),
                None => out.extend_from_slice(b"-1"),
            }
        }
        out.extend_from_slice(b"}");
        Reply::json(out.split().freeze())
    })
}
