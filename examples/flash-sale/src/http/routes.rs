//! The data of a sale, from memory; a link to buy, for a visitor; and payments.
//!
//! Links are valid for a while after the end of a sale: a buyer who reserved at the last moment and lost the reply can
//! repeat the request with the same key, and pay. The database sells nothing after the end.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::answer::{Answer, not_open, over, unavailable, unknown_sale};
use super::app::App;
use super::receive::{Buyer, sale_number};
use super::tasks::failed;
use crate::link::LONGEST;
use crate::seen::View;

pub(super) async fn in_front(State(app): State<App>) -> Response {
    tell(app.seen.in_front().as_ref())
}

pub(super) async fn by_number(State(app): State<App>, Path(sale): Path<String>) -> Response {
    tell(sale_number(&sale).and_then(|sale| app.seen.sale(sale)).as_ref())
}

fn tell(view: Option<&View>) -> Response {
    match view {
        Some(view) => Json(view.to_json()).into_response(),
        None => unknown_sale().into_response(),
    }
}

pub(super) async fn link(
    State(app): State<App>,
    Path(sale): Path<String>,
    Extension(buyer): Extension<Buyer>,
) -> Answer {
    let Some(view) = sale_number(&sale).and_then(|sale| app.seen.sale(sale)) else { return unknown_sale() };
    if view.opens_in() > 0 {
        return not_open(view.opens_in());
    }
    if view.is_settled() {
        return over();
    }
    let until = view.settled_at().min(view.now.saturating_add(LONGEST));
    let url = app.settings.signer.buy_url(view.sale.id, &buyer.user, until);
    Answer::new(StatusCode::OK, "link").with("url", url)
}

pub(super) async fn pay(
    State(app): State<App>,
    Path(order): Path<String>,
    Extension(buyer): Extension<Buyer>,
) -> Answer {
    // Once started, it completes even if the client disconnects.
    let task = tokio::spawn(async move {
        let payment = app.shop.pay(&order, &buyer.user).await;
        if let Err(fault) = &payment {
            failed("paying", fault);
        }
        Answer::to_payment(&order, &payment)
    });
    task.await.unwrap_or_else(|_| unavailable())
}
