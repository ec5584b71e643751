//! Buying: at once, or when one's turn has come.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::json;
use tidegate::Refusal;
use tokio::time::sleep;

use super::answer::{Answer, milliseconds, unavailable, unknown_sale};
use super::app::App;
use super::body;
use super::notes::failed;
use super::receive::{Buyer, Number};
use super::wanted::Wanted;
use crate::limits::Limiting;
use crate::outcome::Wish;
use crate::queue::Turn;
use crate::strategy::Strategy;

/// Between two lines that tell the place.
const EVERY: Duration = Duration::from_millis(250);

/// A wish whose every part was looked at.
#[derive(Debug)]
struct Purchase {
    app: App,
    sale: i64,
    user: String,
    key: String,
    strategy: Strategy,
}

pub(super) async fn buy(
    State(app): State<App>,
    Number(sale): Number,
    Extension(buyer): Extension<Buyer>,
    Extension(wanted): Extension<Wanted>,
    request: Request,
) -> Response {
    let Some(sale) = sale else { return unknown_sale().into_response() };
    let (head, body) = request.into_parts();
    let key = match (body::key(&head.headers), body::one_piece(body).await) {
        (Ok(key), Ok(())) => key,
        (Err(answer), _) | (_, Err(answer)) => return answer.into_response(),
    };
    let strategy = wanted.strategy;
    let purchase = Purchase { app, sale, user: buyer.user, key, strategy };
    if wanted.limiting != Limiting::Queue {
        return purchase.carry_out().await.into_response();
    }
    match purchase.app.queue.join() {
        Ok(turn) => in_line(turn, purchase),
        Err(refusal) => purchase.refused(&refusal, &head.headers),
    }
}

impl Purchase {
    /// Buys. Begun, it is carried to its end also if nobody waits for the answer: then the same key learns it later.
    async fn carry_out(self) -> Answer {
        let task = tokio::spawn(async move {
            let wish = Wish { sale: self.sale, user: &self.user, key: &self.key };
            let outcome = self.app.shop.buy(&wish, self.strategy).await;
            if let Err(fault) = &outcome {
                failed("buying", fault);
            }
            Answer::to_wish(&self.app.signer, &self.user, outcome)
        });
        task.await.unwrap_or_else(|_| unavailable())
    }

    fn refused(&self, refusal: &Refusal, headers: &axum::http::HeaderMap) -> Response {
        let wait = refusal.retry_after().unwrap_or(Duration::from_secs(1));
        self.app.degraded.limited(self.sale, wait, headers).map(Body::from)
    }
}

/// Where somebody is who waits in line.
#[derive(Debug)]
enum Stage {
    Comes(Turn, Purchase),
    Waits(Turn, Purchase),
    Over,
}

/// Tells the place until the turn has come, then buys and tells what came of it.
///
/// Whoever hangs up before drops all of this: nothing was bought, and everybody behind moves up.
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
    // Nobody is refused in the line unless the machine has no thread to wake people by.
    let answer = match came {
        Ok(()) => purchase.carry_out().await,
        Err(_) => unavailable(),
    };
    (answer.into_line(), Stage::Over)
}

fn place(turn: &Turn) -> String {
    let place = turn.place();
    format!("{}\n", json!({ "place": place, "wait_ms": milliseconds(turn.wait(place)) }))
}
