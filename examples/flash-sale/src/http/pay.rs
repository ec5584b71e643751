//! Paying for what is reserved.

use axum::Extension;
use axum::extract::State;

use super::answer::{Answer, unavailable};
use super::app::App;
use super::notes::failed;
use super::receive::{Buyer, Order};

pub(super) async fn pay(
    State(app): State<App>,
    Order(order): Order,
    Extension(buyer): Extension<Buyer>,
) -> Answer {
    // Begun, it is carried to its end also if nobody waits for the answer.
    let task = tokio::spawn(async move {
        let payment = app.shop.pay(&order, &buyer.user).await;
        if let Err(fault) = &payment {
            failed("paying", fault);
        }
        Answer::to_payment(&order, &payment)
    });
    task.await.unwrap_or_else(|_| unavailable())
}
