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
mod headers;
mod keeper;
mod pages;
mod purchase;
mod receive;
mod routes;
mod serve;
mod spelling;
mod tasks;
mod wanted;

pub use app::{App, Settings};
pub use serve::serve;

pub(crate) use app::PER_ADDRESS;
pub(crate) use degraded::Degraded;
pub(crate) use receive::Buyer;
pub(crate) use wanted::Wanted;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::routing::{get, post};

use answer::Answer;

/// Returns the routes of the shop.
pub fn router(app: App) -> Router {
    let buy = post(buy::buy)
        .route_layer(app.limits.bucket.clone())
        .route_layer(from_fn(receive::refuse_strangers))
        .route_layer(app.limits.rules.clone())
        .route_layer(from_fn_with_state(app.clone(), receive::receive_buyer));
    let link = post(routes::link)
        .route_layer(from_fn(receive::refuse_strangers))
        .route_layer(app.limits.rules.clone())
        .route_layer(from_fn_with_state(app.clone(), receive::receive_visitor));
    let pay = post(routes::pay)
        .route_layer(from_fn(receive::refuse_strangers))
        .route_layer(app.limits.rules.clone())
        .route_layer(from_fn_with_state(app.clone(), receive::receive_payer));
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
        .layer(from_fn(spelling::refuse_encoded))
        .layer(map_response(headers::complete))
        .with_state(app)
}
