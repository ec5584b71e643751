//! A link to buy, for a visitor, from the opening on.
//!
//! Links are good for a while after the closing: whoever reserved at the last moment and was not told can ask again
//! with the same key, and pay. Nothing is sold by them then, because the database refuses.

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;

use super::answer::{Answer, not_open, over, unknown_sale};
use super::app::App;
use super::receive::{Buyer, Number};
use crate::link::LONGEST;

pub(super) async fn link(
    State(app): State<App>,
    Number(sale): Number,
    Extension(buyer): Extension<Buyer>,
) -> Answer {
    let Some(view) = sale.and_then(|sale| app.seen.sale(sale)) else { return unknown_sale() };
    if view.opens_in() > 0 {
        return not_open(view.opens_in());
    }
    if view.is_settled() {
        return over();
    }
    let until = view.settled_at().min(view.now.saturating_add(LONGEST));
    let url = app.signer.buy_url(view.sale.id, &buyer.user, until);
    Answer::new(StatusCode::OK, "link").with("url", url)
}
