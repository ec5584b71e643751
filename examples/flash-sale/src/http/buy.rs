//! Purchases: at once, or after a wait in the queue.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::json;
use tidegate_support::ceil_ms;
use tokio::time::sleep;

use super::answer::{unavailable, unknown_sale};
use super::app::App;
use super::body;
use super::purchase::Purchase;
use super::receive::{Buyer, Wanted, sale_number};
use crate::limits::Limiting;
use crate::queue::Turn;

/// The time between two lines that report the place.
const EVERY: Duration = Duration::from_millis(250);

pub(super) async fn buy(
    State(app): State<App>,
    Path(sale): Path<String>,
    Extension(buyer): Extension<Buyer>,
    Extension(wanted): Extension<Wanted>,
    request: Request,
) -> Response {
    let Some(sale) = sale_number(&sale) else { return unknown_sale().into_response() };
    let (head, body) = request.into_parts();
    let key = match (body::key(&head.headers), body::one_piece(body).await) {
        (Ok(key), Ok(())) => key,
        (Err(answer), _) | (_, Err(answer)) => return answer.into_response(),
    };
    let purchase = Purchase { app, sale, buyer, key, wanted };
    if wanted.limiting != Limiting::Queue {
        return purchase.carry_out(None).await.into_response();
    }
    if let Some(turn) = purchase.app.queue.rejoin(purchase.place()) {
        return in_line(turn, purchase);
    }
    if let Some(answer) = purchase.settled().await {
        return answer.into_response();
    }
    match purchase.app.queue.join(purchase.place()) {
        Ok(turn) => in_line(turn, purchase),
        Err(wait) => purchase.refused(wait, &head.headers),
    }
}

/// The progress of a request in the queue.
#[derive(Debug)]
enum Stage {
    Comes(Turn, Purchase),
    Waits(Turn, Purchase),
    Over,
}

/// Reports the place until the turn has come, then buys and reports the outcome.
///
/// A client that disconnects before drops all of this: nothing was bought, and all places behind move up.
fn in_line(turn: Turn, purchase: Purchase) -> Response {
    let lines = lines(Stage::Comes(turn, purchase));
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

fn lines(stage: Stage) -> impl Stream<Item = Result<String, Infallible>> {
    stream::unfold(stage, async |stage| {
        let (line, stage) = match stage {
            Stage::Comes(turn, purchase) if turn.place() > 0 => (place(&turn), Stage::Waits(turn, purchase)),
            Stage::Comes(turn, purchase) | Stage::Waits(turn, purchase) => wait(turn, purchase).await,
            Stage::Over => return None,
        };
        Some((Ok(line), stage))
    })
}

async fn wait(mut turn: Turn, purchase: Purchase) -> (String, Stage) {
    let came = tokio::select! {
        biased;
        came = &mut turn => came,
        () = sleep(EVERY) => return (place(&turn), Stage::Waits(turn, purchase)),
    };
    // The queue denies none of its waiters unless the system has no thread to wake them.
    if came.is_err() {
        return (unavailable().into_line(), Stage::Over);
    }
    let answer = match turn.claim().await {
        Some(claim) => purchase.carry_out(Some(claim)).await,
        None => purchase.after_another().await,
    };
    (answer.into_line(), Stage::Over)
}

fn place(turn: &Turn) -> String {
    let place = turn.place();
    format!("{}\n", json!({ "place": place, "wait_ms": ceil_ms(turn.wait(place)) }))
}
