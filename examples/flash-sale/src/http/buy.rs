//! Purchases: at once, or after a wait in the queue; looked up, counted by their address, and executed.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde_json::json;
use tidegate_support::ceil_ms;
use tokio::time::sleep;

use super::answer::{Answer, span, unavailable, unknown_sale, wait_for};
use super::app::App;
use super::body;
use super::receive::{Buyer, Wanted, sale_number};
use super::tasks::failed;
use crate::database::Fault;
use crate::limits::Limiting;
use crate::link::LONGEST;
use crate::outcome::{Outcome, Prospect, Wish};
use crate::queue::{Claim, Turn, Wanted as PlaceWanted};

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

/// A validated purchase request.
#[derive(Debug)]
struct Purchase {
    app: App,
    sale: i64,
    buyer: Buyer,
    key: String,
    wanted: Wanted,
}

impl Purchase {
    /// Returns its request for a place in the queue.
    fn place(&self) -> PlaceWanted<'_> {
        PlaceWanted { sale: self.sale, user: &self.buyer.user, address: &self.buyer.address }
    }

    /// Returns the reply if no piece is to be taken: a buyer who has an order, or may have none, need not wait for a
    /// turn.
    ///
    /// The number of concurrent lookups is limited, so that a crowd before the queue leaves connections to buyers whose
    /// turn has come.
    async fn settled(&self) -> Option<Answer> {
        match self.look().await {
            Ok(Prospect::Open { .. }) => None,
            Ok(Prospect::Settled(outcome)) => Some(self.answer(Ok(outcome))),
            Err(fault) => Some(self.answer(Err(fault))),
        }
    }

    /// Returns the reply to a request whose turn was used by another request of the same buyer.
    async fn after_another(&self) -> Answer {
        let prospect = self.look().await;
        self.answer(prospect.map(|prospect| match prospect {
            Prospect::Settled(outcome) => outcome,
            Prospect::Open { left } => Outcome::Conflict { left },
        }))
    }

    /// Buys. Once started, it completes even if the client disconnects: a request with the same key then gets the
    /// outcome.
    async fn carry_out(self, claim: Option<Claim>) -> Answer {
        let task = tokio::spawn(async move {
            let answer = self.reserve().await;
            drop(claim);
            answer
        });
        task.await.unwrap_or_else(|_| unavailable())
    }

    /// Denies the request, which may try again after this wait.
    fn refused(&self, wait: Duration, headers: &HeaderMap) -> Response {
        self.app.degraded.limited(self.sale, wait, headers).map(Into::into)
    }

    async fn reserve(&self) -> Answer {
        if self.wanted.limiting == Limiting::Off {
            return self.answer(self.app.shop.buy(&self.wish(), self.wanted.strategy).await);
        }
        let take = match self.app.reservations.take(&self.buyer.address, self.pay_within()) {
            Ok(take) => take,
            Err(wait) => return self.without_reserving(wait).await,
        };
        let outcome = self.app.shop.buy(&self.wish(), self.wanted.strategy).await;
        // After any other fault a piece may be reserved, so the reservation stays counted.
        let is_reserved = match &outcome {
            Ok(outcome) => outcome.is_new(),
            Err(fault) => !fault.is_in_the_way(),
        };
        if !is_reserved {
            take.refund();
        }
        self.answer(outcome)
    }

    /// Returns the reply to an address that may reserve nothing now: its earlier reservations stay valid.
    async fn without_reserving(&self, wait: Duration) -> Answer {
        if let Some(answer) = self.settled().await {
            return answer;
        }
        self.app.shop.meter.refused();
        wait_for(wait, "limited", "this address has reserved as many pieces as it may")
            .with("left", self.app.seen.left(self.sale))
    }

    async fn look(&self) -> Result<Prospect, Fault> {
        let _permit = self.app.looks.acquire().await;
        self.app.shop.look(&self.wish()).await
    }

    fn wish(&self) -> Wish<'_> {
        Wish { sale: self.sale, user: &self.buyer.user, key: &self.key }
    }

    /// Returns the time for which a piece is reserved; for a sale that was not read yet, the maximum validity of a
    /// link.
    fn pay_within(&self) -> Duration {
        span(self.app.seen.sale(self.sale).map_or(LONGEST, |view| view.sale.pay_within))
    }

    fn answer(&self, outcome: Result<Outcome, Fault>) -> Answer {
        if let Err(fault) = &outcome {
            failed("buying", fault);
        }
        Answer::to_wish(&self.app.settings.signer, &self.buyer.user, outcome)
    }
}
