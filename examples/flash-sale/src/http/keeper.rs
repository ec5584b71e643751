//! The shopkeeper's page and its numbers.
//!
//! The token in the URL starts a session: the first request with it gets a cookie and a redirect to the URL without it.
//! So the token stays neither in the browser's history nor in the logs of proxies. Programs may send the token each
//! time.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

use super::answer::Answer;
use super::app::App;
use super::pages::{self, Cookie};

/// The duration of a session, in seconds.
const VISIT_S: u32 = 12 * 60 * 60;

/// The session cookie, sent only to the page and to its numbers.
const VISIT: Cookie =
    Cookie { name: "keeper", path: "/keeper", prefix: "__Secure-", same_site: "Strict", max_age_s: VISIT_S };

#[derive(Deserialize)]
struct Shown {
    token: Option<String>,
}

/// The proof that a request is the shopkeeper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Token,
    Visit,
}

pub(super) async fn page(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    match proof(&app, &uri, &headers) {
        Some(Proof::Token) => {
            let until = app.seen.now().saturating_add(i64::from(VISIT_S) * 1000);
            let cookie = VISIT.set(&app.settings.signer.keeper_visit(until), app.settings.is_behind_tls);
            (AppendHeaders([(SET_COOKIE, cookie)]), Redirect::to(VISIT.path)).into_response()
        }
        Some(Proof::Visit) => pages::keeper(),
        None => wrong_token().into_response(),
    }
}

pub(super) async fn numbers(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    if proof(&app, &uri, &headers).is_none() {
        return wrong_token().into_response();
    }
    let (since, began) = app.since;
    let at = since.saturating_add(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    Json(json!({
        "at_ms": at,
        "sale": app.seen.in_front().map(|view| view.to_json()),
        "totals": app.shop.meter.totals(),
        "latency_ms": app.shop.meter.latency_now(),
        "all_latency_ms": app.shop.meter.latency(),
    }))
    .into_response()
}

/// Returns the proof of a request. A wrong token is an error, even beside a valid cookie.
fn proof(app: &App, uri: &Uri, headers: &HeaderMap) -> Option<Proof> {
    let Query(shown) = Query::<Shown>::try_from_uri(uri).ok()?;
    if let Some(token) = shown.token {
        return app.settings.signer.is_keeper(&token).then_some(Proof::Token);
    }
    let now = app.seen.now();
    let mut visits = VISIT.values(headers, app.settings.is_behind_tls);
    visits.any(|cookie| app.settings.signer.is_keeper_visit(cookie, now)).then_some(Proof::Visit)
}

fn wrong_token() -> Answer {
    Answer::new(StatusCode::FORBIDDEN, "bad_token")
        .message("this token is not the shopkeeper's; open the address that the shop printed when it started")
}
