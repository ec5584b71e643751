//! What everybody may know about a sale, from memory.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::answer::unknown_sale;
use super::app::App;
use super::receive::Number;
use crate::seen::View;

pub(super) async fn in_front(State(app): State<App>) -> Response {
    tell(app.seen.in_front().as_ref())
}

pub(super) async fn by_number(State(app): State<App>, Number(sale): Number) -> Response {
    tell(sale.and_then(|sale| app.seen.sale(sale)).as_ref())
}

fn tell(view: Option<&View>) -> Response {
    match view {
        Some(view) => Json(view.to_json()).into_response(),
        None => unknown_sale().into_response(),
    }
}
