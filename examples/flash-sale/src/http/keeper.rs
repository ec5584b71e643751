//! The shopkeeper's page and its numbers, for whoever has the token.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::app::App;
use super::pages;
use crate::meter::Latency;

#[derive(Deserialize)]
struct Shown {
    token: String,
}

pub(super) async fn page(State(app): State<App>, uri: Uri) -> Response {
    if is_keeper(&app, &uri) { pages::keeper() } else { wrong_token().into_response() }
}

pub(super) async fn numbers(State(app): State<App>, uri: Uri) -> Response {
    if !is_keeper(&app, &uri) {
        return wrong_token().into_response();
    }
    let totals = app.shop.meter.totals();
    let (since, began) = app.since;
    let at = since.saturating_add(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    Json(json!({
        "at_ms": at,
        "sale": app.seen.in_front().map(|view| view.to_json()),
        "totals": {
            "requests": totals.requests,
            "admitted": totals.admitted,
            "sold": totals.sold,
            "refused": totals.refused,
            "conflicts": totals.conflicts,
            "sold_out": totals.sold_out,
            "attempts": totals.attempts,
            "faults": totals.faults,
        },
        "latency_ms": latency(app.shop.meter.latency_now()),
        "all_latency_ms": latency(app.shop.meter.latency()),
    }))
    .into_response()
}

/// Nothing where nothing was measured: no attempt takes no time.
fn latency(latency: Latency) -> Value {
    let milliseconds = |span: std::time::Duration| (!span.is_zero()).then_some(span.as_secs_f64() * 1000.0);
    json!({ "p50": milliseconds(latency.median), "p99": milliseconds(latency.p99) })
}

fn is_keeper(app: &App, uri: &Uri) -> bool {
    Query::<Shown>::try_from_uri(uri).is_ok_and(|Query(shown)| app.signer.is_keeper(&shown.token))
}

fn wrong_token() -> Answer {
    Answer::new(StatusCode::FORBIDDEN, "bad_token")
        .message("this token is not the shopkeeper's; open the address that the shop printed when it started")
}
