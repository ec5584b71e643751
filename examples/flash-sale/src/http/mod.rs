//! The shop over HTTP: pages for browsers, JSON for programs.
//!
//! ```text
//!   receive: verify link or cookie --> limits --> buy: at once, or looked up and queued --> reserve --> Shop
//! ```
//!
//! A request for a page, or for the stock, never reaches the database.

mod answer;
mod app;
mod body;
mod buy;
mod degraded;
mod keeper;
mod pages;
mod receive;
mod routes;
mod serve;
mod tasks;

pub use app::{App, Settings};
pub use serve::serve;

pub(crate) use answer::span;
pub(crate) use degraded::Degraded;
pub(crate) use receive::{Buyer, Wanted};

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::{MethodRouter, get, post};

use answer::Answer;
use receive::{Authenticate, receive, refuse_encoded, refuse_strangers};

/// Returns the routes of the shop.
pub fn router(app: App) -> Router {
    let guarded = |route: MethodRouter<App>, authenticate: Authenticate| {
        route
            .route_layer(from_fn(refuse_strangers))
            .route_layer(app.limits.rules.clone())
            .route_layer(from_fn_with_state((app.clone(), authenticate), receive))
    };
    let buy = guarded(post(buy::buy).route_layer(app.limits.bucket.clone()), receive::buyer);
    let link = guarded(post(routes::link), receive::visitor);
    let pay = guarded(post(routes::pay), receive::payer);
    Router::new()
        .route("/", get(pages::buyer))
        .route("/pages/{file}", get(pages::file))
        .route("/keeper", get(keeper::page))
        .route("/keeper/numbers", get(keeper::numbers))
        .route("/healthz", get(async || Answer::new(StatusCode::OK, "ok")))
        .route("/api/sale", get(routes::in_front))
        .route("/api/sales/{id}", get(routes::by_number))
        .route("/api/sales/{id}/link", link)
        .route("/api/sales/{id}/buy", buy)
        .route("/api/orders/{id}/pay", pay)
        .route("/api/keeper/numbers", get(keeper::numbers))
        .fallback(async || answer::unknown_path())
        .method_not_allowed_fallback(async || answer::wrong_method())
        .layer(from_fn(refuse_encoded))
        .layer(map_response(pages::complete))
        .with_state(app)
}
